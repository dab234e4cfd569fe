"""What an operand or result may be: named predicates over types, with the words messages use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pto.core.memory import Space
from pto.isa import types as t


@dataclass(frozen=True, slots=True)
class Kind:
    words: str
    accepts: Callable[[t.Type], bool]


def _in_gm(type: t.Type) -> bool:
    return isinstance(type, t.MemRef) and type.space is Space.GM


def _is_local(type: t.Type) -> bool:
    return isinstance(type, t.MemRef) and type.space is not Space.GM


def _is_tile(type: t.Type) -> bool:
    return isinstance(type, t.TileBuf) or _is_local(type)


def _is_view(type: t.Type) -> bool:
    return isinstance(type, t.View) or _in_gm(type)


def _is_integer(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and (type.is_index or type.is_integer)


def _is_float(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and type.is_float


def _is(*classes: type[t.Type]) -> Callable[[t.Type], bool]:
    return lambda type: isinstance(type, classes)


def _named(*names: str) -> Callable[[t.Type], bool]:
    return lambda type: isinstance(type, t.Scalar) and type.name in names


KINDS: dict[str, Kind] = {
    "tile": Kind("a tile", _is_tile),
    "view": Kind("a view of global memory", _is_view),
    "tile or view": Kind("a tile or a view of global memory", lambda x: _is_tile(x) or _is_view(x)),
    "tile or scalar": Kind("a tile or a scalar", lambda x: _is_tile(x) or isinstance(x, t.Scalar)),
    "pointer": Kind("a pointer", _is(t.Ptr)),
    "address": Kind(
        "a pointer or memref", lambda x: isinstance(x, t.Ptr | t.MemRef | t.View | t.TileBuf)
    ),
    "scalar": Kind("a scalar", _is(t.Scalar)),
    "number": Kind("a number", _is(t.Scalar, t.Vector)),
    "int": Kind("an integer", _is_integer),
    "float": Kind("a float", _is_float),
    "index": Kind("an index", _named("index")),
    "i64": Kind("an i64", _named("i64")),
    "i1": Kind("an i1", _named("i1")),
    "vreg": Kind("a vector register", _is(t.VReg)),
    "mask": Kind("a mask", _is(t.Mask)),
    "vreg or mask": Kind("a vector register or a mask", _is(t.VReg, t.Mask)),
    "vreg or scalar": Kind("a vector register or a scalar", _is(t.VReg, t.Scalar)),
    "align": Kind("an alignment state", _is(t.Align)),
    "pipe": Kind("a pipe handle", _is(t.PipeHandle)),
    "event ids": Kind("an event id array", _is(t.EventIdArray)),
    "local array": Kind("a local array", _is(t.LocalArray)),
    "async": Kind("an async session or event", _is(t.Async)),
    "any": Kind("any value", lambda _: True),
}
