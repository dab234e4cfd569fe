"""How variables of a host program get their first value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from pto.gym.host.evaluator import Evaluator


def initial(machine: Evaluator, stmt: s.Declare, type_: s.CType, scope: Env) -> Value:
    """The first value of a declared variable."""
    if stmt.dims:
        return _array(machine, stmt, type_, scope)
    if stmt.construct is not None:
        return constructed(machine, type_, stmt.construct, scope)
    if stmt.init is not None:
        return built(machine, stmt.init, type_, scope)
    return default(machine, type_)


def default(machine: Evaluator, type_: s.CType) -> Value:
    """Zeros; C++ would leave them undefined, and a run must not depend on that."""
    if type_.numpy is not None:
        return converted(0, type_)
    if type_.name == "string":
        return ""
    if type_.name in machine.structs:
        return _zero(machine, machine.structs[type_.name])
    if type_.name == "vector" and type_.arguments:
        return vector(machine.runtime, type_.arguments[0], 0)
    return None


def built(machine: Evaluator, init: s.Expr, type_: s.CType, scope: Env) -> Value:
    """An initialiser as a value of `type_`."""
    if not isinstance(init, s.InitList):
        return converted(machine.evaluate(init, scope), type_)
    if type_.name in machine.structs:
        return _struct(machine, init, machine.structs[type_.name], scope)
    if type_.name in ("vector", "array"):
        return constructed(machine, type_, (init,), scope)
    if len(init.items) > 1:
        raise cannot_follow(f"{len(init.items)} values for one {type_}", init.loc)
    return built(machine, init.items[0][1], type_, scope) if init.items else default(machine, type_)


def constructed(
    machine: Evaluator, type_: s.CType, arguments: Sequence[s.Expr], scope: Env
) -> Value:
    """`T x(a, b)` and `T(a, b)`."""
    if not arguments:
        return default(machine, type_)
    if type_.name == "ifstream":
        return machine.runtime.open_file(*machine.values(arguments, scope))
    if type_.name in ("vector", "array") and type_.arguments:
        return _vector(machine, type_.arguments[0], arguments, scope)
    if type_.name == "string" and len(arguments) == 1:
        return text_of(machine.evaluate(arguments[0], scope))
    if len(arguments) == 1:
        return built(machine, arguments[0], type_, scope)
    raise cannot_follow(f"a {type_} is built from {len(arguments)} values", arguments[0].loc)


def _vector(
    machine: Evaluator, element: s.CType, arguments: Sequence[s.Expr], scope: Env
) -> CVector:
    listed = arguments[0]
    if not isinstance(listed, s.InitList):
        return vector(machine.runtime, element, *machine.values(arguments[:2], scope))
    values = [machine.evaluate(v, scope) for _, v in listed.items]
    made = vector(machine.runtime, element, len(values))
    for index, value in enumerate(values):
        made.start.moved(index).place.set(value)
    return made


def _zero(machine: Evaluator, definition: s.StructDef) -> CStruct:
    names = [name for place in definition.places for name in place]
    return CStruct(definition, {n: default(machine, definition.types[n]) for n in names})


def _struct(machine: Evaluator, init: s.InitList, definition: s.StructDef, scope: Env) -> CStruct:
    made = _zero(machine, definition)
    at = 0
    for designator, value in init.items:
        if designator:
            at = _place_of(definition, designator, value)
        if at >= len(definition.places):
            raise cannot_follow(f"too many values for {definition.name}", value.loc)
        name = designator or definition.places[at][0]
        made.assign(name, built(machine, value, definition.types[name], scope))
        at += 1
    return made


def _place_of(definition: s.StructDef, name: str, value: s.Expr) -> int:
    for index, place in enumerate(definition.places):
        if name in place:
            return index
    raise cannot_follow(f"{definition.name} has no {name}", value.loc)


def _array(machine: Evaluator, stmt: s.Declare, type_: s.CType, scope: Env) -> Value:
    extent, *further = stmt.dims
    if further:
        raise cannot_follow("arrays of arrays", stmt.loc)
    asked = None if extent is None else int(machine.evaluate(extent, scope))
    init = stmt.init
    if isinstance(init, s.LiteralExpr) and isinstance(init.value, str):
        return char_array(machine.runtime, init.value, asked)
    values = [v for _, v in init.items] if isinstance(init, s.InitList) else []
    count = len(values) if asked is None else asked
    if len(values) > count:
        raise cannot_follow(f"{len(values)} values for an array of {count}", stmt.loc)
    if type_.numpy is None:
        items = [built(machine, v, type_, scope) for v in values]
        rest = [default(machine, type_) for _ in range(count - len(items))]
        return CArray(items + rest, type_)
    start = machine.runtime.array(type_, count)
    for index, value in enumerate(values):
        start.moved(index).place.set(machine.evaluate(value, scope))
    return start
