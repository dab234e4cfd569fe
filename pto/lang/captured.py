"""Values that a kernel reads besides its arguments: globals, closures, attributes, also in helpers.

A trace embeds these values, so they are part of the cache key of the program: a kernel is traced
again after one of them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.lang.call.place import is_own
from pto.lang.call.source import definition_of
from pto.lang.front.variables import read
from pto.run.launch.call import Calls

_DEEP = 4  # levels of nested containers and objects that are compared
_NONE = object()  # the value of an unbound name
_PLAIN = (int, str, bytes, type(None), DType)
_read: dict[CodeType, tuple[str, ...]] = {}  # globals, by function


class Captured:
    """A cache key that changes when a value that the functions can read changes."""

    def __init__(self, *functions: Callable[..., object] | None) -> None:
        self._functions = functions
        self._is_plain = False
        self._own: set[int] = set()  # containers changed by the functions themselves
        self._held: dict[int, Hashable] = {}  # other containers, as last seen
        self._last: tuple[Hashable, ...] | None = None  # the key, where all of it cannot change ..
        # .. but by other values for names, or for attributes of cells, objects and functions
        self._names: list[tuple[Mapping[str, object], str, object]] = []
        self._attributes: list[tuple[object, str, object]] = []
        self._calls: tuple[object, Calls[Any]] = None, Calls()

    def key(self) -> tuple[Hashable, ...]:
        """The key; the identical object as before if nothing can have changed."""
        if self._last is not None and self._is_same():
            return self._last
        found: list[Hashable] = []
        seen: set[int] = set()
        for kept in (self._held, self._names, self._attributes):
            kept.clear()
        self._is_plain = True
        for function in self._functions:
            self._function(function, found, seen)
        key = tuple(found)
        self._last = key if self._is_plain else None
        return key

    def calls(self) -> Calls[Any]:
        """The cached calls for the present key."""
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
        for owner, name, value in self._attributes:  # noqa: SIM110, a launch waits for this
            if getattr(owner, name) is not value:
                return False
        return True

    def leave_out_changed(self) -> None:
        """After a trace: exclude containers that the trace itself changed, such as a call log."""
        before = dict(self._held)
        self.key()
        self._own |= {n for n, held in self._held.items() if before.get(n, held) != held}

    def _function(self, function: object, found: list[Hashable], seen: set[int]) -> None:
        if id(function) in seen or not isinstance(function, FunctionType):
            return
        seen.add(id(function))
        code, around = function.__code__, function.__globals__
        self._attributes.append((function, "__code__", code))
        self._attributes.append((function, "__defaults__", function.__defaults__))
        self._is_plain &= not function.__kwdefaults__
        found.append(code)
        names = names_of(code)
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
                self._attributes.append((cell, "cell_contents", content))
            except ValueError:  # not bound yet
                content, self._is_plain = None, False
            self._value(content, names, found, seen, 0)

    def _value(
        self,
        value: object,
        names: tuple[str, ...],
        found: list[Hashable],
        seen: set[int],
        depth: int,
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

    def _is_watched(self, value: object, names: tuple[str, ...]) -> bool:
        """True if every change of the relevant parts of `value` is detected cheaply."""
        if isinstance(value, dict | list | set | partial):
            return False
        attributes = getattr(value, "__dict__", None)
        if attributes is not None and not isinstance(value, tuple | frozenset):
            self._names += [(attributes, name, attributes.get(name, _NONE)) for name in names]
            if isinstance(attributes, dict):  # that of a class is never another one
                self._attributes.append((value, "__dict__", attributes))
        return True


@lru_cache(maxsize=1024)
def names_of(code: CodeType) -> tuple[str, ...]:
    """Names of globals and attributes that a function and its inner functions may read."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return tuple(dict.fromkeys((*code.co_names, *(n for each in inner for n in names_of(each)))))


def _globals(code: CodeType, around: dict[str, object]) -> tuple[str, ...]:
    """The names that are globals; the source distinguishes them from attributes of equal name."""
    found = _read.get(code)
    if found is None:
        node = definition_of(code, around)
        names = names_of(code)
        used = frozenset(names) if node is None else read(node[0])
        found = _read[code] = tuple(name for name in names if name in used)
    return found


def _parts(value: object, names: tuple[str, ...]) -> Iterator[object]:
    """The items of a container; for other objects the attributes that the code may read."""
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


def _is_library(value: object) -> bool:
    """True for modules assumed constant: this package, NumPy."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] in ("pto", "numpy")
