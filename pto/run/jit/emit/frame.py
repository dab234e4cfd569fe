"""Values in the argument buffer: the representation of each type, how compiled code reads and
writes it (`runtime/values.py` has the format), and parameters of functions that it calls."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from pto.core.dtypes import DType
from pto.core.global_layout import ND
from pto.core.memory import Space
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.scalar.unit import words_of
from pto.isa.row import types as t
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import I64, Text, Val
from pto.run.jit.runtime.values import (
    Array,
    Handle,
    Lowered,
    Mask,
    Nothing,
    OwnDesc,
    PointerDesc,
    ScalarValue,
    Stream,
    TileDesc,
    Vector,
    ViewDesc,
)

_PLACE: Final = 8 * 12  # bytes of a view, the largest but for vectors
_LONGEST: Final = 4096  # bytes of a logical vector that compiled code keeps in registers


def form_of(type: t.Type) -> Lowered:
    """The representation of a value that is passed to or from compiled code, by its type alone."""
    form = _FORMS.get(type.__class__)
    return (form and form(type)) or Handle(("",))


def bytes_of(type: t.Type) -> int:
    """Bytes in the argument buffer for a value of a type, whatever its representation is."""
    longest = 8 * type.lanes if isinstance(type, t.LogicalVReg | t.LogicalMask) else _PLACE
    return max(form_of(type).nbytes, longest)


def _of_memory(type: t.MemRef) -> Lowered | None:
    if type.elem.dtype is not None and type.space is Space.GM:
        return ViewDesc(("",) * 12, type.elem.dtype, ND)
    if type.elem.dtype is not None and all(type.shape):
        return TileDesc(("", "", ""), tile_type(type))
    return None


def _of_pointer(type: t.Ptr) -> Lowered:
    return PointerDesc(("", ""), type.elem.dtype if isinstance(type.elem, t.Scalar) else None)


def _of_tile(type: t.TileBuf | t.MultiTile) -> Lowered:
    return TileDesc(("", "", ""), tile_type(type))


def _of_lanes(kind: DType | None, lanes: int) -> Lowered | None:
    found = Vector(("",), kind, lanes)
    return found if found.nbytes <= _LONGEST else None


_FORMS: Final[dict[type[t.Type], Callable[[Any], Lowered | None]]] = {
    t.Scalar: lambda type: ScalarValue(("",), type),
    t.VReg: lambda type: type.elem.dtype and _of_lanes(type.elem.dtype, type.elem.dtype.lanes),
    t.Mask: lambda type: Mask(("",), 1),
    t.Ptr: _of_pointer,
    t.TileBuf: _of_tile,
    t.MultiTile: _of_tile,
    t.View: lambda type: type.elem.dtype and ViewDesc(("",) * 12, type.elem.dtype, ND),
    t.MemRef: _of_memory,
    t.Align: lambda type: Stream(("",) * 5),
    t.LocalArray: lambda type: Array(("", ""), prod(type.shape)),
    t.EventIdArray: lambda type: Array(("", ""), type.size),
    t.Opaque: lambda type: OwnDesc(("", "", "")) if type.text == "!llvm.ptr" else None,
    t.Async: lambda type: Nothing(()),
    t.Struct: lambda type: Array(("", ""), words_of(type)),
    t.LogicalVReg: lambda type: type.elem.dtype and _of_lanes(type.elem.dtype, type.lanes),
    t.LogicalMask: lambda type: _of_lanes(None, type.lanes),
}


def put(x: Text, native: Lowered, offset: int) -> None:
    """Store a value; a mask takes a byte for each bit."""
    if isinstance(native, Mask):
        native = Vector((masks.at_width(x, native, 1),), None, native.count)
    if isinstance(native, Vector) and native.dtype is None:
        image = x.new(f"zext {native.types[0]} {native.name} to <{native.count} x i8>")
        x.store(f"<{native.count} x i8>", image, x.at("%frame", offset))
    else:
        for n, (type, name) in enumerate(native.parts):
            x.store(type, name, x.at("%frame", offset + 8 * n))


def get(x: Text, form: Lowered, offset: int) -> Lowered:
    """Read a value of this form."""
    if isinstance(form, Mask) or (isinstance(form, Vector) and form.dtype is None):
        bytes = f"<{form.count} x i8>"
        image = x.load(bytes, x.at("%frame", offset))
        return form.renamed([x.new(f"trunc {bytes} {image} to {form.types[0]}")])
    names = [x.load(ty, x.at("%frame", offset + 8 * n)) for n, ty in enumerate(form.types)]
    return form.renamed(names)


class Parameters:
    """The arguments of a call, and their names inside the function: %p0, %p1, .. Integers of 64
    bits that are known now are not passed."""

    def __init__(self, *given: tuple[str, Val]) -> None:
        self.given = list(given)

    def name(self, value: Val, type: str = I64) -> Val:
        """The name of a value inside the function; equal values are one argument."""
        if isinstance(value, int) and type == I64:
            return value
        if (type, value) in self.given:
            return f"%p{self.given.index((type, value))}"
        return self.add(type, value)

    def add(self, type: str, value: Val) -> str:
        """The name of one more argument."""
        self.given.append((type, value))
        return f"%p{len(self.given) - 1}"

    @property
    def listed(self) -> str:
        """The arguments of the call."""
        return ", ".join(f"{type} {value}" for type, value in self.given)

    @property
    def types(self) -> list[str]:
        return [type for type, _ in self.given]
