"""The contents of lists, dictionaries, objects and iterators, which Python changes while it traces.

A block of the program is traced once, so Python changes them once, however often the block runs.
`contents` records what the variables of a block hold before it, `require_contents` raises if that
is different after it.
"""

from __future__ import annotations

import array
import operator
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum, EnumMeta
from functools import cached_property, partial
from types import BuiltinMethodType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from pto.lang.call.place import is_users, mistake
from pto.lang.call.session import ValueHandle
from pto.lang.captured import is_users_class, names_of
from pto.lang.trace import Trace

_LIBRARIES = ("pto", "numpy", "builtins", "types", "typing", "enum", "abc")
_ATOMS = (int, float, str, bytes, Enum, EnumMeta, ValueHandle, ModuleType, type(None))
_CONTAINERS = (list, set, deque, dict)
_MOST = 1 << 16  # bytes of an array that are compared


class ContainerState(NamedTuple):
    """One container: the variable that leads to it, its elements and its other state."""

    name: str
    value: object
    elements: list[object]
    state: object


def contents(blocks: Iterable[Callable[..., object] | None], trace: Trace) -> list[ContainerState]:
    """The containers that functions can reach through their variables."""
    plain = (block for block in blocks if isinstance(block, FunctionType))
    return reachable((variable for block in plain for variable in _variables(block)), trace)


def reachable(variables: Iterable[tuple[str, object]], trace: Trace) -> list[ContainerState]:
    """The containers that variables lead to."""
    states: list[ContainerState] = []
    visited: dict[int, object] = {}  # by id; methods and arguments would not stay alive
    todo = list(variables)
    while todo:
        name, value = todo.pop()
        if isinstance(value, _ATOMS) or id(value) in visited:
            continue
        visited[id(value)] = value
        state = _held(name, value, trace)
        if state is not None:
            states.append(state)
        todo += _behind(name, value, state)
    return states


def require_contents(trace: Trace, before: Iterable[ContainerState]) -> None:
    """Raise if a container was changed."""
    for old in before:
        now = _held(old.name, old.value, trace)
        if now is None or (now.state == old.state and _are_same(now.elements, old.elements)):
            continue
        is_object = _is_users(old.value) and not isinstance(old.value, _CONTAINERS)
        if is_object and _only_adds(trace, old.elements, now.elements):
            continue
        raise mistake(
            "PTO-U217",
            f"what `{old.name}` holds is changed inside a branch or loop of the program, which is"
            " traced once",
            help="bind variables instead, also to a new tuple or list of the same length",
        )


def _only_adds(trace: Trace, before: Collection[object], now: Collection[object]) -> bool:
    """True if an object got attributes with values of the block, which end with it: the block
    itself cannot have read them before, and a use after it is reported there."""
    handles = (v for v in (*before, *now) if isinstance(v, ValueHandle))
    ended = [v for v in handles if not trace.builder.sees(v.value)]
    remaining = (
        [v for v in values if not any(v is end for end in ended)] for values in (before, now)
    )
    return _are_same(*remaining)


def _are_same(a: Collection[object], b: Collection[object]) -> bool:
    return len(a) == len(b) and all(map(operator.is_, a, b))


# ---- the way from a variable to containers


def _variables(function: FunctionType) -> Iterator[tuple[str, object]]:
    """The variables around a function that it names, and the defaults of its parameters."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    around = function.__globals__
    yield from ((name, around[name]) for name in names_of(code) if name in around)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from ((f"a default of {function.__name__}", value) for value in defaults)


def _behind(name: str, value: Any, state: ContainerState | None) -> Iterable[tuple[str, object]]:
    if isinstance(value, FunctionType):
        return _variables(value) if is_users(value.__code__.co_filename) else ()
    if isinstance(value, MethodType):
        return [(name, value.__func__), (name, value.__self__)]
    if isinstance(value, BuiltinMethodType):
        return [(name, value.__self__)]
    if isinstance(value, partial):
        return [(name, item) for item in (value.func, *value.args, *value.keywords.values())]
    if isinstance(value, tuple):
        return [(name, item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if state is None or not (isinstance(value, _CONTAINERS) or _is_users(value)):
        return ()
    if isinstance(value, type):  # its methods change it by other variables
        return [(name, item) for item in state.elements if not isinstance(item, FunctionType)]
    kind = [] if isinstance(value, _CONTAINERS) else [(name, type(value))]
    return [*kind, *((name, item) for item in state.elements)]


# ---- one container


def _held(name: str, value: Any, trace: Trace) -> ContainerState | None:
    if isinstance(value, list | set | deque):
        return ContainerState(name, value, list(value), None)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        return ContainerState(name, value, [*value, *value.values()], None)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, np.ndarray):
        return ContainerState(name, value, [], value.tobytes() if value.nbytes <= _MOST else None)
    if isinstance(value, bytearray | array.array):
        return ContainerState(name, value, [], bytes(value))
    if isinstance(value, type):
        is_users = value.__module__.partition(".")[0] not in _LIBRARIES
        return ContainerState(name, value, [*vars(value).values()], None) if is_users else None
    if isinstance(value, FunctionType):
        return ContainerState(name, value, [*vars(value).values()], None) if vars(value) else None
    if isinstance(value, ModuleType | MethodType):
        return None
    if hasattr(type(value), "__next__"):
        return ContainerState(name, value, [], trace.advanced.get(id(value), 0))
    if type(value).__module__.partition(".")[0] in _LIBRARIES:
        return None
    return ContainerState(name, value, _attributes(value), None)


def _attributes(value: object) -> list[object]:
    """The values of the attributes of an object, but those that it computes at the first use."""
    fields: dict[str, object] = getattr(value, "__dict__", {})
    cached = {
        name for name in fields if isinstance(getattr(type(value), name, None), cached_property)
    }
    values: list[object] = [value_ for name, value_ in fields.items() if name not in cached]
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if isinstance(kind.__dict__.get(name), MemberDescriptorType):
                values.append(getattr(value, name, None))
    return values


def _is_users(value: object) -> bool:
    """True for a class of the user's files, and an object of one."""
    return is_users_class(value if isinstance(value, type) else type(value))
