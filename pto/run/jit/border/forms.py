"""The form a value has where it crosses the border of compiled code."""

from __future__ import annotations

from math import prod
from typing import Final

from pto.core.global_layout import ND
from pto.core.memory import Space
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.scalar.unit import words_of
from pto.isa.row import types as t
from pto.run.jit.border.values import (
    Array,
    Handle,
    Mask,
    Native,
    Nothing,
    OwnPlace,
    Place,
    Reg,
    Stream,
    TilePlace,
    Vector,
    ViewPlace,
    Word,
)

_LONGEST: Final = 4096  # bytes of a logical vector that compiled code keeps in registers


def form_of(type: t.Type) -> Native:
    """The form a value has where it crosses the border, by its type alone."""
    if isinstance(type, t.Scalar):
        return Word(("",), type)
    if isinstance(type, t.VReg) and type.elem.dtype is not None:
        return Reg(("",), type.elem.dtype)
    if isinstance(type, t.Mask):
        return Mask(("",), 1)
    if isinstance(type, t.Ptr):
        elem = type.elem.dtype if isinstance(type.elem, t.Scalar) else None
        return Place(("", ""), elem)
    if isinstance(type, t.TileBuf | t.MultiTile):
        return TilePlace(("", "", ""), tile_type(type))
    if isinstance(type, t.View) and type.elem.dtype is not None:
        return ViewPlace(("",) * 12, type.elem.dtype, ND)
    if isinstance(type, t.MemRef) and type.elem.dtype is not None:
        if type.space is Space.GM:
            return ViewPlace(("",) * 12, type.elem.dtype, ND)
        if all(type.shape):
            return TilePlace(("", "", ""), tile_type(type))
    if isinstance(type, t.Align):
        return Stream(("",) * 5)
    if isinstance(type, t.LocalArray):
        return Array(("", ""), prod(type.shape))
    if isinstance(type, t.EventIdArray):
        return Array(("", ""), type.size)
    if isinstance(type, t.Opaque) and type.text == "!llvm.ptr":
        return OwnPlace(("", "", ""))
    if isinstance(type, t.Async):
        return Nothing(())
    if isinstance(type, t.Struct):
        return Array(("", ""), words_of(type))
    if isinstance(type, t.LogicalVReg | t.LogicalMask):
        kind = type.elem.dtype if isinstance(type, t.LogicalVReg) else None
        found = Vector(("",), kind, type.lanes)
        if found.nbytes <= _LONGEST and (kind is not None or isinstance(type, t.LogicalMask)):
            return found
    return Handle(("",))
