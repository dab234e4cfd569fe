"""How variables of a host program get their first value."""

from __future__ import annotations

from collections.abc import Sequence

from pto.gym.host import syntax as s
from pto.gym.host.runtime import char_array, vector
from pto.gym.host.values import (
    CArray,
    CStruct,
    CVector,
    Env,
    Value,
    cannot_follow,
    converted,
    text_of,
)

Item = tuple[str, s.Expr]  # of a list in braces: its designator ("" without one), and its value


def braces(scope: Env, *items: Item) -> Value:
    """`{a, .name = b}`."""
    raise cannot_follow("a list in braces stands where one value is needed")


def _items(init: s.Expr | None) -> tuple[Item, ...] | None:
    """The items of a list in braces; None for any other initialiser."""
    return init.operands if init is not None and init.meaning is braces else None


def initial(scope: Env, declared: s.Declare, type_: s.CType) -> Value:
    """The first value of a declared variable."""
    if declared.dims:
        return _array(scope, declared, type_)
    if declared.construct is not None:
        return constructed(scope, type_, declared.construct)
    if declared.init is not None:
        return built(scope, declared.init, type_)
    return default(scope, type_)


def default(scope: Env, type_: s.CType) -> Value:
    """Zeros; C++ would leave them undefined, and a run must not depend on that."""
    machine = scope.machine
    if type_.numpy is not None:
        return converted(0, type_)
    if type_.name == "string":
        return ""
    if type_.name in machine.structs:
        return _zero(scope, machine.structs[type_.name])
    if type_.name == "vector" and type_.arguments:
        return vector(machine.runtime, type_.arguments[0], 0)
    return None


def built(scope: Env, init: s.Expr, type_: s.CType) -> Value:
    """An initialiser as a value of `type_`."""
    items = _items(init)
    if items is None:
        return converted(init.value(scope), type_)
    if type_.name in scope.machine.structs:
        return _struct(scope, items, scope.machine.structs[type_.name])
    if type_.name in ("vector", "array"):
        return constructed(scope, type_, (init,))
    if len(items) > 1:
        raise cannot_follow(f"{len(items)} values for one {type_}", init.loc)
    return built(scope, items[0][1], type_) if items else default(scope, type_)


def constructed(scope: Env, type_: s.CType, arguments: Sequence[s.Expr]) -> Value:
    """`T x(a, b)` and `T(a, b)`."""
    if not arguments:
        return default(scope, type_)
    if type_.name == "ifstream":
        return scope.machine.runtime.open_file(*(each.value(scope) for each in arguments))
    if type_.name in ("vector", "array") and type_.arguments:
        return _vector(scope, type_.arguments[0], arguments)
    if type_.name == "string" and len(arguments) == 1:
        return text_of(arguments[0].value(scope))
    if len(arguments) == 1:
        return built(scope, arguments[0], type_)
    raise cannot_follow(f"a {type_} is built from {len(arguments)} values", arguments[0].loc)


def _vector(scope: Env, element: s.CType, arguments: Sequence[s.Expr]) -> CVector:
    runtime, listed = scope.machine.runtime, _items(arguments[0])
    if listed is None:
        return vector(runtime, element, *(each.value(scope) for each in arguments[:2]))
    values = [v.value(scope) for _, v in listed]
    made = vector(runtime, element, len(values))
    for index, value in enumerate(values):
        made.start.moved(index).place.set(value)
    return made


def _zero(scope: Env, definition: s.StructDef) -> CStruct:
    names = [name for place in definition.places for name in place]
    return CStruct(definition, {n: default(scope, definition.types[n]) for n in names})


def _struct(scope: Env, items: Sequence[Item], definition: s.StructDef) -> CStruct:
    made = _zero(scope, definition)
    at = 0
    for designator, value in items:
        if designator:
            at = _place_of(definition, designator, value)
        if at >= len(definition.places):
            raise cannot_follow(f"too many values for {definition.name}", value.loc)
        name = designator or definition.places[at][0]
        made.assign(name, built(scope, value, definition.types[name]))
        at += 1
    return made


def _place_of(definition: s.StructDef, name: str, value: s.Expr) -> int:
    for index, place in enumerate(definition.places):
        if name in place:
            return index
    raise cannot_follow(f"{definition.name} has no {name}", value.loc)


def _array(scope: Env, declared: s.Declare, type_: s.CType) -> Value:
    extent, *further = declared.dims
    if further:
        raise cannot_follow("arrays of arrays", declared.loc)
    asked = None if extent is None else int(extent.value(scope))
    listed = _items(declared.init)
    if declared.init is not None and listed is None:
        text = declared.init.value(scope)
        if isinstance(text, str):
            return char_array(scope.machine.runtime, text, asked)
    values = [v for _, v in listed or ()]
    count = len(values) if asked is None else asked
    if len(values) > count:
        raise cannot_follow(f"{len(values)} values for an array of {count}", declared.loc)
    if type_.numpy is None:
        items = [built(scope, v, type_) for v in values]
        rest = [default(scope, type_) for _ in range(count - len(items))]
        return CArray(items + rest, type_)
    start = scope.machine.runtime.array(type_, count)
    for index, value in enumerate(values):
        start.moved(index).place.set(value.value(scope))
    return start
