"""Scene tests: a Python file that names an orchestration, its kernels, inputs and a golden.

The file is imported with the user's rights, as its own test runner would do. The modules it
imports from its project are replaced by the few names defined here; nothing of the project's
native runtime is needed. Inputs and goldens are computed by the file itself, with torch.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pto.core.errors import Loc, fail
from pto.graphs import chips, stand_in
from pto.graphs.process import ArgTensor, Argument, GraphSource
from pto.graphs.scene_names import (
    ArgDirection,
    DataType,
    Scalar,
    SceneTestCase,
    SceneTestLevel,
    TaskArgsBuilder,
    TensorArg,
    scalar_to_uint64,
    scene_level,
    scene_test,
    torch_bytes,
    torch_dtype_to_datatype,
)
from pto.graphs.shapes import shapes_only
from pto.lang.file import users_code

T = TypeVar("T")
_NETWORK = 2  # the level of a test that runs on one chip


_TYPES = (SceneTestLevel, TensorArg, Scalar, TaskArgsBuilder, SceneTestCase)
_NAMES = (*_TYPES, scene_test, scene_level)
_DEFINED = {
    "simpler.task_interface": (ArgDirection, DataType, scalar_to_uint64, *chips.INTERFACE),
    "simpler_setup": _NAMES,
    "simpler_setup.scene_test": (*_NAMES, *chips.SETUP),
}
_MODULES = {name: {each.__name__: each for each in own} for name, own in _DEFINED.items()}


def replaced_modules(root: Path) -> AbstractContextManager[None]:
    """A context in which a test of this checkout finds its project's names defined here."""
    return stand_in.replaced_modules(_MODULES, root)


# ---- scenes


@dataclass(frozen=True, slots=True)
class Scene:
    """One case of one scene test."""

    file: Path
    root: Path
    test: type[SceneTestCase]
    case: Mapping[str, Any]
    profile: str

    @property
    def name(self) -> str:
        return f"{self.file.parent.name}/{self.test.__name__}/{self.case['name']}"

    @property
    def level(self) -> int:
        return int(getattr(self.test, "scene_level", _NETWORK))

    @property
    def runtime(self) -> str:
        return str(getattr(self.test, "scene_runtime", ""))

    def limited(self, most: Mapping[str, int]) -> Scene:
        """The same case with parameters limited to these numbers; its name lists the limited
        ones."""
        params: Mapping[str, Any] = self.case.get("params", {})
        less = {
            name: limit
            for name, limit in most.items()
            if type(params.get(name)) is int and params[name] > limit
        }
        if not less:
            return self
        name = f"{self.case['name']}[{','.join(f'{n}={v}' for n, v in less.items())}]"
        return replace(self, case={**self.case, "name": name, "params": {**params, **less}})

    @property
    def programs(self) -> dict[str, GraphSource]:
        """The graphs of a scene of several chips, by name."""
        listed = self.test.CALLABLE["callables"]
        return {p["name"]: self.source(p) for p in listed if "incores" in p}

    def on_chips(self, worker: chips.Worker, programs: Mapping[str, GraphSource]) -> str:
        """Run on several chips; returns the mismatch with the test's golden, empty if it
        matches."""
        with replaced_modules(self.root):
            try:
                chips.run_case(self.test(), self.case, programs, worker)
            except AssertionError as error:
                return str(error) or "the comparison of the test failed"
        return ""

    def source(self, callable: Mapping[str, Any] | None = None) -> GraphSource:
        """The sources to compile for it, or for one of its graphs."""
        declared, settings = callable or self.test.CALLABLE, self.case.get("config", {})
        return GraphSource.listed(
            declared["orchestration"],
            declared["incores"],
            self.profile,
            self.root,
            self.runtime,
            self.file.parent,
            settings.get("runtime_env"),
        )

    def arguments(self, with_values: bool = True) -> Arguments:
        """Inputs as the test generates them; without values, large ones have no memory."""
        with replaced_modules(self.root), nullcontext() if with_values else shapes_only():
            built = self.test().generate_args(self.case.get("params", {}))
        entry = self.test.CALLABLE["orchestration"]  # of several chips: a function
        signature = entry.get("signature", ()) if isinstance(entry, Mapping) else ()
        return Arguments(built, [d.value for d in signature])

    @property
    def has_golden(self) -> bool:
        return not (self.case.get("skip_golden") or self.test.SKIP_GOLDEN)

    @property
    def tolerances(self) -> tuple[float, float]:
        return self.test.RTOL, self.test.ATOL

    def judge(self, arguments: Arguments, passed: Sequence[Argument]) -> str:
        """The difference that the test's own golden reports; empty if the outputs match."""
        if not self.has_golden:
            return ""
        test, params = self.test(), self.case.get("params", {})
        with replaced_modules(self.root):
            golden = arguments.original.clone()
            test.compute_golden(golden, params)
            try:
                test.compare_outputs(arguments.outcome(passed), golden, arguments.outputs, params)
            except AssertionError as error:
                return str(error) or "the comparison of the test failed"
        return ""


class Arguments:
    """The tensors and scalars of one scene, with a copy of what they were."""

    def __init__(self, built: TaskArgsBuilder, signature: Sequence[str]) -> None:
        self.original = built
        self.listed: list[Argument] = []
        uses = iter(signature)
        for spec in built.specs:
            is_scalar = isinstance(spec, Scalar)
            made_of = (
                scalar_to_uint64 if is_scalar else partial(_tensor, spec.name, next(uses, "in"))
            )
            self.listed.append(made_of(spec.value))

    @property
    def outputs(self) -> list[str]:
        return [t.name for t in self.listed if isinstance(t, ArgTensor) and t.use != "in"]

    def copies(self) -> list[Argument]:
        """The arguments for one run."""
        return [
            replace(argument, data=argument.data.copy())
            if isinstance(argument, ArgTensor)
            else argument
            for argument in self.listed
        ]

    def outcome(self, passed: Sequence[Argument]) -> TaskArgsBuilder:
        """The arguments after a run, as the test compares them."""
        torch: Any = import_module("torch")

        tensors = {t.name: t for t in passed if isinstance(t, ArgTensor)}
        specs: list[TensorArg | Scalar] = []
        for spec in self.original.specs:
            if isinstance(spec, Scalar):
                specs.append(spec)
                continue
            raw = torch.from_numpy(tensors[spec.name].data.copy())
            kind = spec.value.dtype
            values = raw.bool() if kind is torch.bool else raw.view(kind)
            specs.append(TensorArg(spec.name, values.reshape(spec.value.shape)))
        return TaskArgsBuilder(*specs)


def _tensor(name: str, use: str, value: Any) -> ArgTensor:
    element, shape = torch_dtype_to_datatype(value.dtype).name, tuple(value.shape) or (1,)
    none = np.broadcast_to(np.uint8(0), value.numel() * value.element_size())
    return ArgTensor(name, none if value.is_meta else torch_bytes(value), shape, element, use)


def is_scene(file: Path) -> bool:
    """True if a Python file is a scene test."""
    return "CALLABLE" in file.read_text(encoding="utf-8", errors="replace")


def find(file: Path, wanted: str | None = None) -> Iterator[Scene]:
    """Every case of a scene test."""
    file = file.resolve()
    root = next(
        (p for p in file.parents if (p / "src" / "common" / "task_interface").is_dir()), None
    )
    if root is None:
        raise fail(
            "PTO-U321",
            f"{file} is in no checkout with the runtime's headers",
            help="a scene test needs src/common/task_interface in a folder above it",
        )
    with replaced_modules(root):
        module = _imported(file, root)
    parts = [p for p in file.parts if p in ("a2a3", "a5")]
    for test in vars(module).values():
        if not isinstance(test, type) or not issubclass(test, SceneTestCase) or not test.CALLABLE:
            continue
        if test.__module__ != module.__name__:
            continue  # a base class that belongs to another test
        for case in test.CASES:
            platforms = {p.removesuffix("sim") for p in case.get("platforms", ())} or set(parts)
            for profile in sorted(platforms & {"a2a3", "a5"}):
                if wanted in (None, profile):
                    yield Scene(file, root, test, case, profile)


def _imported(file: Path, root: Path) -> types.ModuleType:
    """The module of a test, as part of the packages that its folders are."""
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    sys.path.insert(1, str(file.parent))
    try:
        return imported(file, lambda: import_module(name))
    finally:
        sys.path.remove(str(file.parent))


def imported(file: Path, load: Callable[[], T]) -> T:
    """The result of a function that imports a file; what the file's Python raises is a finding."""
    with users_code():
        try:
            return load()
        except ModuleNotFoundError as error:
            raise fail(
                "PTO-U322",
                f"the module {error.name} is not installed; {file} needs it",
                help="pip install torch" if error.name == "torch" else None,
            ) from None
        except SyntaxError as error:
            loc = Loc(error.filename or str(file), error.lineno or 1, error.offset or 1)
            raise fail("PTO-U281", f"this is not Python: {error.msg}", loc=loc) from None
