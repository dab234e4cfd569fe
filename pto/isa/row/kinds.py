"""Kinds of operands and results: named predicates over types, with the words for messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pto.core.memory import Space
from pto.isa.row import types as t


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


def _is_view_of(partition: bool) -> Callable[[t.Type], bool]:
    return lambda type: isinstance(type, t.View) and type.partition is partition


def _is_element(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and not type.is_index


def _is_fixed_integer(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and type.is_integer


def _is_integer(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and (type.is_index or type.is_integer)


def _is_float(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and type.is_float


def _in(*spaces: Space, classes: tuple[type[t.Type], ...]) -> Callable[[t.Type], bool]:
    return lambda type: isinstance(type, classes) and getattr(type, "space", None) in spaces


def _lane(type: t.Type) -> t.Type:
    """The element type of a builtin vector; any other type itself."""
    return type.elem if isinstance(type, t.Vector) else type


def _is(*classes: type[t.Type]) -> Callable[[t.Type], bool]:
    return lambda type: isinstance(type, classes)


def _is_async(*words: str) -> Callable[[t.Type], bool]:
    return lambda type: isinstance(type, t.Async) and type.what in words


def _is_index(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and type.is_index


def _named(*names: str) -> Callable[[t.Type], bool]:
    return lambda type: isinstance(type, t.Scalar) and type.name in names


KINDS: dict[str, Kind] = {
    "tile": Kind("a tile", _is_tile),
    "multiple tile": Kind("a multiple tile", _is(t.MultiTile)),
    "view": Kind("a view of global memory", _is_view),
    "tile or view": Kind("a tile or a view of global memory", lambda x: _is_tile(x) or _is_view(x)),
    "tile or scalar": Kind("a tile or a scalar", lambda x: _is_tile(x) or isinstance(x, t.Scalar)),
    "tensor view": Kind("a whole view of global memory", _is_view_of(partition=False)),
    "partition view": Kind("a window of global memory", _is_view_of(partition=True)),
    "pointer": Kind("a pointer", _is(t.Ptr)),
    "memref": Kind("a memref", _is(t.MemRef)),
    "pointer or memref": Kind("a pointer or memref", _is(t.Ptr, t.MemRef)),
    "pointer or gm memref": Kind(
        "a pointer or a memref in global memory", lambda x: isinstance(x, t.Ptr) or _in_gm(x)
    ),
    "pointer or integer": Kind(
        "a pointer or an integer", lambda x: isinstance(x, t.Ptr) or _is_fixed_integer(x)
    ),
    "pointer, memref or integer": Kind(
        "a pointer, a memref or an integer",
        lambda x: isinstance(x, t.Ptr | t.MemRef) or _is_fixed_integer(x),
    ),
    "address": Kind(
        "a pointer or memref", lambda x: isinstance(x, t.Ptr | t.MemRef | t.View | t.TileBuf)
    ),
    "gm place": Kind(
        "a pointer or a view in global memory",
        lambda x: _is_view(x) or (isinstance(x, t.Ptr) and x.space is Space.GM),
    ),
    "scalar": Kind("a scalar", _is(t.Scalar)),
    "element": Kind("an integer or a float", _is_element),
    "number": Kind("a number", _is(t.Scalar, t.Vector)),
    "integers": Kind("an integer", lambda x: _is_integer(_lane(x))),
    "floats": Kind("a float", lambda x: _is_float(_lane(x))),
    "vector": Kind("a vector", _is(t.Vector)),
    "llvm pointer": Kind("a pointer of LLVM", lambda x: x == t.Opaque("!llvm.ptr")),
    "int": Kind("an integer", _is_integer),
    "float": Kind("a float", _is_float),
    "index": Kind("an index", _named("index")),
    "i64": Kind("an i64", _named("i64")),
    "i32": Kind("an i32", _named("i32")),
    "i16": Kind("an i16", _named("i16")),
    "i1": Kind("an i1", _named("i1")),
    "vreg": Kind("a vector register", _is(t.VReg)),
    "mask": Kind("a mask", _is(t.Mask)),
    "mask or index": Kind("a mask or an index", lambda x: isinstance(x, t.Mask) or _is_index(x)),
    "vreg or mask": Kind("a vector register or a mask", _is(t.VReg, t.Mask)),
    "vreg or scalar": Kind("a vector register or a scalar", _is(t.VReg, t.Scalar)),
    "logical vreg": Kind("a logical vector", _is(t.LogicalVReg)),
    "logical mask": Kind("a logical mask", _is(t.LogicalMask)),
    "logical vreg or mask": Kind("a logical vector or mask", _is(t.LogicalVReg, t.LogicalMask)),
    "logical vreg or scalar": Kind("a logical vector or a scalar", _is(t.LogicalVReg, t.Scalar)),
    "align": Kind("an alignment state", _is(t.Align)),
    "pipe": Kind("a pipe handle", _is(t.PipeHandle)),
    "event ids": Kind("an event id array", _is(t.EventIdArray)),
    "struct": Kind("a struct", _is(t.Struct)),
    "local array": Kind("a local array", _is(t.LocalArray)),
    "async session": Kind("an async session", _is_async("async_session")),
    "async event": Kind("an async event", _is_async("async_event")),
    "prefetch context": Kind("a prefetch context", _is_async("prefetch_async_context")),
    "session or context": Kind(
        "an async session or a prefetch context",
        _is_async("async_session", "prefetch_async_context"),
    ),
    "any": Kind("any value", lambda _: True),
    "scalar or pointer": Kind("a scalar or a pointer", _is(t.Scalar, t.Ptr)),
    "gm or ub pointer": Kind("a pointer in gm or ub", _in(Space.GM, Space.UB, classes=(t.Ptr,))),
    **{
        f"{s.value} pointer": Kind(f"a pointer in {s.value}", _in(s, classes=(t.Ptr,)))
        for s in Space
    },
    **{
        f"{s.value} buffer": Kind(
            f"a pointer or memref in {s.value}", _in(s, classes=(t.Ptr, t.MemRef))
        )
        for s in Space
    },
}
