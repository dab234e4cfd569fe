"""Modules of the runtime's project, provided by this machine: to scene tests and to pypto."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pto.core.errors import fail

Modules = Mapping[str, Mapping[str, Any]]  # by name of the module: what it contains
_STUBBED = ("simpler", "simpler_setup", "_task_interface")
_OWN = ("tests", "examples", "conftest")  # modules of the project that other folders have too


class _CallableModule(types.ModuleType):
    """A module that may also be called: importing `simpler_setup.scene_test` hides the decorator of
    that name in its package."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return vars(self)["scene_test"](*args, **options)


def _placeholder(name: str) -> type:
    """A name that only other levels of the project use: importing it must not fail."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _Placeholder(name, (), {})


class _Placeholder(type):
    """A class with every attribute; as a number it is a finding."""

    def __getattr__(cls, name: str) -> type:
        return _placeholder(name)

    def __floordiv__(cls, other: object) -> object:
        raise fail("PTO-U322", f"{cls.__name__} of the runtime's project has no value here")

    __add__ = __sub__ = __mul__ = __floordiv__


class ProvidedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of the project. With a checkout, its own Python files are found too, and other
    modules and names are placeholders."""

    def __init__(self, modules: Modules, root: Path | None = None) -> None:
        self._modules, self._root = modules, root

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        top, _, rest = name.partition(".")
        is_provided = name in self._modules
        if self._root is not None:
            if name in _OWN:  # not those of the current folder or of an installed package
                return importlib.machinery.PathFinder.find_spec(name, [str(self._root)])
            file = self._root.joinpath(*name.split("."))
            is_there = rest and (file.with_suffix(".py").exists() or file.is_dir())
            is_provided |= top in _STUBBED and not is_there
        if not is_provided:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=not rest)

    def create_module(self, spec: Any) -> types.ModuleType:
        module = _CallableModule(spec.name)
        vars(module).update(self._modules.get(spec.name, {}))
        if self._root is not None:
            module.__getattr__ = _placeholder  # type: ignore[attr-defined]
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations.append(str(self._root / spec.name))
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Everything is there already."""


@contextmanager
def replaced_modules(modules: Modules, root: Path) -> Generator[None]:
    """The project's own modules, replaced while a test is imported or asked."""
    names = (*_STUBBED, *_OWN)
    before = {n: m for n, m in sys.modules.items() if n.partition(".")[0] in names}
    for name in before:
        del sys.modules[name]
    paths, finder = list(sys.path), ProvidedModules(modules, root)
    sys.path.insert(0, str(root))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path[:] = paths
        for name in [n for n in sys.modules if n.partition(".")[0] in names]:
            del sys.modules[name]
        sys.modules.update(before)
