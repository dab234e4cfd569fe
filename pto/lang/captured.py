"""What a kernel sees besides its arguments: globals, closures, attributes, and those of helpers.

A trace keeps the values it met, so they belong to the key that a program is found by: a kernel
that is called again after one has changed is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.lang.call.place import is_own
from pto.lang.call.source import definition_of
from pto.lang.front.variables import read
from pto.run.launch.call import Calls

_DEEP = 4  # levels of containers and objects that are looked into
_NONE = object()  # what a name without a value has
_PLAIN = (int, str, bytes, type(None), DType)
_read: dict[CodeType, tuple[str, ...]] = {}  # globals, by function


class Captured:
    """A key that is equal as long as everything that functions can see is."""

    def __init__(self, *functions: Callable[..., Any] | None) -> None:
        self._functions = functions
        self._is_plain = False
        self._own: set[int] = set()  # containers that the functions themselves change
        self._held: dict[int, Hashable] = {}  # the others, as last seen
        self._last: tuple[Hashable, ...] | None = None  # the key, where all of it cannot change ..
        self._names: list[tuple[dict[str, Any], str, Any]] = []  # .. but by other values for names,
        self._cells: list[tuple[Any, Any]] = []  # for cells,
        self._objects: list[tuple[Any, Any]] = []  # in objects, by what their attributes are in,
        self._codes: list[tuple[Any, Any, Any]] = []  # or in the functions
        self._calls: tuple[Any, Calls[Any]] = None, Calls()

    def key(self) -> tuple[Hashable, ...]:
        """The same object as before where nothing has changed and nothing can be looked into."""
        if self._last is not None and self._is_same():
            return self._last
        found: list[Hashable] = []
        seen: set[int] = set()
        for kept in (self._held, self._names, self._cells, self._objects, self._codes):
            kept.clear()
        self._is_plain = True
        for function in self._functions:
            self._function(function, found, seen)
        key = tuple(found)
        self._last = key if self._is_plain else None
        return key

    def calls(self) -> Calls[Any]:
        """What is known of calls in which the functions saw what they see now."""
        last, known = self._calls
        if last is None or last is not self._last or not self._is_same():
            seen = self.key()
            if seen != last:
                known = Calls[Any]()
            self._calls = seen, known
        return known

    def _is_same(self) -> bool:
        for around, name, value in self._names:
            if around.get(name, _NONE) is not value:
                return False
        for cell, value in self._cells:
            if cell.cell_contents is not value:
                return False
        for each, attributes in self._objects:
            if each.__dict__ is not attributes:
                return False
        for f, code, defaults in self._codes:
            if f.__code__ is not code or f.__defaults__ is not defaults:
                return False
        return True

    def leave_out_changed(self) -> None:
        """After a trace: what it changed itself, as a list of its calls, is its own affair."""
        before = dict(self._held)
        self.key()
        self._own |= {n for n, held in self._held.items() if before.get(n, held) != held}

    def _function(self, function: Any, found: list[Hashable], seen: set[int]) -> None:
        if id(function) in seen or not isinstance(function, FunctionType):
            return
        seen.add(id(function))
        code, around = function.__code__, function.__globals__
        self._codes.append((function, code, function.__defaults__))
        self._is_plain &= not function.__kwdefaults__
        found.append(code)
        names = _names(code)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._value(default, names, found, seen, 0)
        for name in _globals(code, function.__globals__):
            self._names.append((around, name, around.get(name, _NONE)))
            if name in around:
                found.append(name)
                self._value(around[name], names, found, seen, 0)
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
                self._cells.append((cell, content))
            except ValueError:  # not bound yet
                content, self._is_plain = None, False
            self._value(content, names, found, seen, 0)

    def _value(
        self, value: Any, names: tuple[str, ...], found: list[Hashable], seen: set[int], depth: int
    ) -> None:
        if isinstance(value, _PLAIN):
            found.append((type(value), value))
        elif isinstance(value, float | complex):
            found.append(repr(value))  # -0.0 equals 0.0, and NaN not even itself
        elif isinstance(value, FunctionType):
            if not is_own(value.__code__.co_filename):
                self._function(value, found, seen)
        elif isinstance(value, np.ndarray | np.generic):
            self._is_plain &= isinstance(value, np.generic)
            found.append((str(value.dtype), value.shape, value.tobytes()))
        elif depth < _DEEP and id(value) not in self._own and not _is_library(value):
            self._is_plain &= self._is_watched(value, names)
            inner: list[Hashable] = [type(value)]
            for each in _parts(value, names):
                self._value(each, names, inner, seen, depth + 1)
            found.append(tuple(inner))
            self._held[id(value)] = found[-1]

    def _is_watched(self, value: Any, names: tuple[str, ...]) -> bool:
        """Whether what is looked for in it can only change in ways that are noticed at once."""
        if isinstance(value, dict | list | set | partial):
            return False
        attributes = getattr(value, "__dict__", None)
        if attributes is not None and not isinstance(value, tuple | frozenset):
            self._names += [(attributes, name, attributes.get(name, _NONE)) for name in names]
            if isinstance(attributes, dict):  # that of a class is never another one
                self._objects.append((value, attributes))
        return True


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """Globals and attributes that a function and those inside it may ask for."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return tuple(dict.fromkeys((*code.co_names, *(n for each in inner for n in _names(each)))))


def _globals(code: CodeType, around: dict[str, Any]) -> tuple[str, ...]:
    """Those of the names that are globals; an attribute may have the name of one, which the source
    tells apart."""
    found = _read.get(code)
    if found is None:
        node = definition_of(code, around)
        names = _names(code)
        used = frozenset(names) if node is None else read(node[0])
        found = _read[code] = tuple(name for name in names if name in used)
    return found


def _parts(value: Any, names: tuple[str, ...]) -> Iterator[Any]:
    """What a container holds; of another object the attributes that the code may ask for."""
    if isinstance(value, dict):
        for key, each in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from (key, each)
    elif isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, set | frozenset):
        yield from sorted(value, key=repr)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)  # pyright: ignore[reportUnknownMemberType]
    else:
        slots = getattr(value, "__dict__", {})
        yield from (slots[name] for name in names if name in slots)


def _is_library(value: Any) -> bool:
    """Modules that a program does not set: this package, NumPy."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] in ("pto", "numpy")
