"""Values that a kernel reads besides its arguments: globals, closures, attributes, also in helpers.

A trace embeds these values, so they are part of the cache key of the program: a kernel is traced
again after one of them has changed.
"""

from __future__ import annotations

import array
import functools
import sys
from collections import UserList, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Set
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, cast
from weakref import ref

import numpy as np

from pto.core.dtypes import DType
from pto.lang.call.place import is_own, is_users
from pto.lang.call.source import definition_of
from pto.lang.front.variables import read
from pto.run.launch.arrays import are_tensors
from pto.run.launch.call import Calls

_DEEP = 100  # levels of nested containers and objects that are compared
_NONE = object()  # the value of an unbound name
_PLAIN = (int, str, bytes, type(None), DType, Enum, range, np.dtype)
_NUMBERS = (int, float, complex, str, bytes)
_BYTES = (bytearray, array.array, memoryview)
_HEAP_TYPE = 1 << 9  # the flag of classes that are made by Python code
_read: dict[CodeType, tuple[str, ...]] = {}  # globals, by function


class Identity:
    """A key that equals only a key of the same object, which it keeps alive."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


@dataclass(slots=True)
class _ChangedContainer:
    """A container that traces change themselves, such as a call log.

    Its content is left out of the key; `version` counts the changes made between traces.
    """

    value: object  # alive, so that no other object gets its id
    content: Hashable
    version: int = 0


_Changed = dict[int, _ChangedContainer]


class Captured:
    """A cache key that changes when a value that the functions can read changes."""

    def __init__(self, *functions: Callable[..., object] | None) -> None:
        self._functions = functions
        self._read: set[str] = set()  # names of attributes that any of the functions may read
        self._changed: _Changed = {}
        self._walk = _Walk(self._read, self._changed)  # the last one
        self._last: tuple[Hashable, ...] | None = None  # the key, if all changes are watched
        self._calls: tuple[object, Calls[Any]] = None, Calls()

    def key(self) -> tuple[Hashable, ...]:
        """The key; the identical object as before if nothing can have changed."""
        if self._last is not None and self._walk.is_same():
            return self._last
        self._walk, key = self._walked(self._functions)
        self._last = key if self._walk.is_watched else None
        return key

    def calls(self) -> Calls[Any]:
        """The cached calls for the present key."""
        last, calls = self._calls
        if last is None or last is not self._last or not self._walk.is_same():
            key = self.key()
            if key != last:
                calls = Calls[Any]()
            self._calls = key, calls
        return calls

    def of(self, constant: object) -> Hashable:
        """The key of an argument that is a constant; TypeError if it is not hashable."""
        if _is_plain(constant):
            return type(constant), constant
        if type(constant) is float:
            return repr(constant)
        hash(constant)
        if self._last is None:
            self.key()  # which attributes are read
        return self._walked([constant])[1]

    def leave_out_changed(self) -> None:
        """After a trace: leave the contents of containers that it changed out of the key."""
        before = self._walk.contents
        self._walk, _ = self._walked(self._functions, after_trace=True)
        for number, (value, content) in self._walk.contents.items():
            if number in before and number not in self._changed and before[number][1] != content:
                self._changed[number] = _ChangedContainer(value, content)
        self._last = None

    def _walked(
        self, values: Iterable[object], *, after_trace: bool = False
    ) -> tuple[_Walk, tuple[Hashable, ...]]:
        while True:
            before = len(self._read)
            walk, key = _Walk(self._read, self._changed, after_trace), list[Hashable]()
            for value in values:
                walk.visit(value, key, 0)
            if len(self._read) == before:  # else an object lacks attributes that a helper reads
                return walk, tuple(key)


class _Walk:
    """One pass over all values that functions can read."""

    def __init__(self, read: set[str], changed: _Changed, after_trace: bool = False) -> None:
        self.contents: dict[int, tuple[object, Hashable]] = {}  # of containers
        self.is_watched = True  # changes of the key are changes of these names and attributes
        self._names: list[tuple[Mapping[str, object], str, object]] = []
        self._attributes: list[tuple[object, str, object]] = []
        self._read = read
        self._changed = changed
        self._after_trace = after_trace
        self._seen: dict[int, tuple[int, object]] = {}  # by id; the objects stay alive

    def is_same(self) -> bool:
        """True if no watched name or attribute has changed."""
        for around, name, value in self._names:
            if around.get(name, _NONE) is not value:
                return False
        for owner, name, value in self._attributes:  # noqa: SIM110, a launch waits for this
            if getattr(owner, name, _NONE) is not value:
                return False
        return True

    def visit(self, value: object, key: list[Hashable], depth: int) -> None:
        """Append the key of a value."""
        if _is_plain(value):
            key.append((type(value), value))
        elif isinstance(value, float | complex) and not is_users_class(type(value)):
            key.append(repr(value))  # -0.0 equals 0.0, and NaN not even itself
        elif id(value) in self._seen:
            key.append(("again", self._seen[id(value)][0]))
        else:
            self._seen[id(value)] = len(self._seen), value
            self._first_visit(value, key, depth)

    def _first_visit(self, value: object, key: list[Hashable], depth: int) -> None:
        if isinstance(value, FunctionType):
            self._function(value, key, depth)
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self.is_watched &= isinstance(value, np.generic)
            key.append((str(value.dtype), value.shape, value.tobytes()))
        elif isinstance(value, _BYTES):
            self.is_watched = False
            key.append((type(value), bytes(value)))
        elif are_tensors(type(value)):
            self.is_watched = False
            tensor: Any = value
            # a tensor of inference mode counts no versions
            state = repr(tensor.tolist()) if tensor.is_inference() else tensor._version
            key.append((Identity(value), state))
        elif depth >= _DEEP:
            self.is_watched = False
            key.append(Identity(object()))  # unknown: trace again
        elif not _is_library(value):
            self._container(value, key, depth)

    def _function(self, function: FunctionType, key: list[Hashable], depth: int) -> None:
        code, around = function.__code__, function.__globals__
        key.append(code)
        if is_own(code.co_filename):
            return
        self._attributes.append((function, "__code__", code))
        self._attributes.append((function, "__defaults__", function.__defaults__))
        if function.__dict__:
            for part in self._attributes_of(function, key):
                self.visit(part, key, depth + 1)
        self.is_watched &= not function.__kwdefaults__
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.visit(default, key, depth)
        if is_users(code.co_filename):
            self._read.update(names_of(code))
            for name in _globals(code, around):
                self._names.append((around, name, around.get(name, _NONE)))
                if name in around:
                    key.append(name)
                    self.visit(around[name], key, depth)
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
                self._attributes.append((cell, "cell_contents", content))
            except ValueError:  # not bound yet
                content, self.is_watched = None, False
            self.visit(content, key, depth)

    def _container(self, value: object, key: list[Hashable], depth: int) -> None:
        inner: list[Hashable] = [type(value)]
        parts = _parts(value)
        if parts is None:
            parts = self._attributes_of(value, inner)
        else:
            self.is_watched &= isinstance(value, tuple | frozenset | MethodType)
            if getattr(value, "__dict__", None):
                parts = [*parts, *self._attributes_of(value, inner)]
        for part in parts:
            self.visit(part, inner, depth + 1)
        content = tuple(inner)
        self.contents[id(value)] = value, content
        changed = self._changed.get(id(value))
        if changed is None:
            key.append(content)
            return
        if changed.content != content:
            changed.content = content
            changed.version += not self._after_trace
        key.append((Identity(value), changed.version))

    def _attributes_of(self, value: object, key: list[Hashable]) -> list[object]:
        """The attributes of an object, and of its classes, that the functions may read."""
        is_class = isinstance(value, type)
        attributes: dict[str, object] = {} if is_class else getattr(value, "__dict__", {})
        bases: tuple[type, ...] = type(value).__mro__
        if isinstance(value, type):
            bases = (*value.__mro__, *bases)
        kinds = [kind for kind in bases if is_users_class(kind)]
        if isinstance(value, Enum):
            key.append(Identity(value))
        elif isinstance(value, _NUMBERS):
            key.append((type(value), repr(value)))
        elif not attributes and not (kinds and not is_class):
            key.append(value if _is_hashable(value) else Identity(value))
        if attributes:
            self._attributes.append((value, "__dict__", attributes))  # it may be replaced
        parts: list[object] = []
        special = (n for kind in kinds for n, v in vars(kind).items() if _is_called(n, v))
        for name in sorted(self._read.union(special)):
            around = [attributes, *map(vars, kinds)]
            places = [space for space in around if name in space]
            if not places:
                continue
            key.append(name)
            self._names += [(space, name, space.get(name, _NONE)) for space in around]
            if any(isinstance(space[name], MemberDescriptorType) for space in places):
                self._attributes.append((value, name, getattr(value, name, _NONE)))
                parts.append(getattr(value, name, None))
            else:
                parts += [space[name] for space in places]
        return parts


@lru_cache(maxsize=1024)
def names_of(code: CodeType) -> tuple[str, ...]:
    """Names of globals and attributes that a function and its inner functions may read."""
    inner = (code_inside for code_inside in code.co_consts if isinstance(code_inside, CodeType))
    return tuple(
        dict.fromkeys(
            (*code.co_names, *(n for code_inside in inner for n in names_of(code_inside)))
        )
    )


def _globals(code: CodeType, around: dict[str, object]) -> tuple[str, ...]:
    """The names that are globals; the source distinguishes them from attributes of equal name."""
    names_read = _read.get(code)
    if names_read is None:
        node = definition_of(code, around)
        names = names_of(code)
        used = frozenset(names) if node is None else read(node[0])
        names_read = _read[code] = tuple(name for name in names if name in used)
    return names_read


def _parts(value: object) -> Collection[object] | None:
    """The items of a container or wrapper; None for any other object."""
    if is_users_class(type(value)) and not isinstance(value, dict | list | tuple | set | frozenset):
        return None
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return [part for pair in pairs for part in pair]
    if isinstance(value, list | tuple | deque):
        return cast("Collection[object]", value)
    if isinstance(value, Set):
        return sorted(cast("Set[object]", value), key=repr)
    if isinstance(value, ContextVar):
        return [cast("ContextVar[object]", value).get(None)]
    if isinstance(value, ref):
        return [cast("ref[object]", value)()]
    if isinstance(value, np.ndarray):  # of objects
        return cast("list[object]", value.ravel().tolist())
    attributes = next((names for kind, names in _WRAPPERS if isinstance(value, kind)), None)
    if attributes is None and callable(value) and hasattr(value, "__wrapped__"):
        attributes = ("__wrapped__",)
    return None if attributes is None else [getattr(value, name) for name in attributes]


# Objects that hold others, and where.
_WRAPPERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (partial, ("func", "args", "keywords")),
    (MethodType, ("__func__", "__self__")),
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (property, ("fget",)),
    (functools.cached_property, ("func",)),
    (UserList, ("data",)),
    (slice, ("start", "stop", "step")),
)


def is_users_class(kind: type) -> bool:
    """True for a class of the user's files."""
    if not kind.__flags__ & _HEAP_TYPE:
        return False
    name = kind.__module__  # of a class in a text without a name: builtins
    if name in sys.builtin_module_names and name != "builtins":
        return False
    return is_users(getattr(sys.modules.get(name), "__file__", None) or "")


def _is_called(name: str, value: object) -> bool:
    """True for methods that syntax calls, such as `__getitem__`."""
    return name.startswith("__") and isinstance(value, FunctionType | staticmethod | classmethod)


def _is_plain(value: object) -> bool:
    """True for a number, text, .. that has no attributes and methods of the user's."""
    return isinstance(value, _PLAIN) and not is_users_class(type(value))


def _is_hashable(value: object) -> bool:
    return getattr(type(value), "__hash__", None) is not None


def _is_library(value: object) -> bool:
    """True for modules assumed constant: this package, NumPy."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] in ("pto", "numpy")
