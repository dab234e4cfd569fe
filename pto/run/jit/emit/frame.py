"""Values in the argument buffer: the representation of each type, how compiled code reads and
writes it (`runtime/values.py` has the format), parameters of functions that it calls, and host
fallbacks: the reference step of an operation on values in that buffer, which compiled code calls
through Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.global_layout import ND
from pto.core.memory import Space
from pto.ir.graph import Operation, Value
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.kinds import Blocked
from pto.isa.meaning.order.ring import INIT_FRONTEND
from pto.isa.meaning.scalar.unit import words_of
from pto.isa.row import types as t
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import Val
from pto.run.jit.runtime.context import Context
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
from pto.run.reference.code import Step, Wait, located

if TYPE_CHECKING:
    from pto.run.jit.compiler import NativeCompiler


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


# ---- host fallbacks

Bound = tuple[int, Lowered, int]  # register, form, place in the frame


_LOCAL: Final = (t.Scalar, t.TileBuf, t.VReg, t.Mask, t.LogicalVReg, t.LogicalMask)


def is_global(type: t.Type) -> bool:
    """True if a value may refer to global memory."""
    if isinstance(type, t.Ptr | t.MemRef):
        return not type.space.is_local
    return not isinstance(type, _LOCAL)


def fallback_form(type: t.Type, *, plain: bool = False) -> Lowered:
    """The representation of a result of a host fallback. Tiles and views may have any form, so they
    stay objects of Python; a `plain` tile is in its own buffer and of its type."""
    form = form_of(type)
    if plain and isinstance(form, TileDesc):
        return form
    return Handle(("",)) if isinstance(form, TileDesc | ViewDesc) else form


class HostFallback:
    """The reference step of one operation on values in the argument buffer. It is counted as a host
    fallback under its reason `why`. Without a reason the step only reports an error. Such a step,
    and one that `seldom` runs, is made on demand."""

    def __init__(
        self,
        compiler: NativeCompiler,
        op: Operation,
        ins: Sequence[tuple[Value, Lowered, int]],
        outs: Sequence[tuple[Value, Lowered, int]],
        why: str | None,
        *,
        seldom: bool = False,
    ) -> None:
        self._compiler = compiler
        self._op = op
        self._given = ins, outs
        self._made: tuple[Step, list[Bound], list[Bound], int] | None = None
        self._why = why
        self.writes = op.body is not INIT_FRONTEND  # it may write to any buffer
        if why is not None and not seldom:
            self._make()

    def _make(self) -> tuple[Step, list[Bound], list[Bound], int]:
        step, slots, size = self._compiler.alone(self._op)
        ins, outs = (
            [(slots[id(v)], form, at) for v, form, at in each if id(v) in slots]
            for each in self._given
        )
        self._made = step, ins, outs, size
        return self._made

    def __call__(self, context: Context, frame: memoryview) -> Wait | None:
        step, ins, outs, size = self._made or self._make()
        regs: list[Any] = [None] * size
        for slot, form, at in ins:
            regs[slot] = form.decode(frame, at, context)
        try:
            found = step(context.core, regs)
        except PtoError as error:
            raise located(error, self._op) from None
        if isinstance(found, Blocked):
            return Wait(self._op, found)
        if self._why is None:
            raise RuntimeError(f"compiled code refused {self._op!r}, which the reference accepts")
        context.core.cluster.fallbacks[self._op.name, self._why] += 1
        for slot, form, at in outs:
            if not form.encode(frame, at, regs[slot], context):
                raise RuntimeError(f"a result of {self._op!r} has no form in compiled code")
        return None
