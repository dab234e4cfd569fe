"""Host fallbacks: the reference step of an operation, which compiled code calls through Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pto.core.errors import PtoError
from pto.ir.graph import Operation, Value
from pto.isa.meaning.kinds import Blocked
from pto.isa.meaning.order.ring import INIT_FRONTEND
from pto.isa.row import types as t
from pto.run.jit.emit.frame import form_of
from pto.run.jit.runtime.context import Context
from pto.run.jit.runtime.values import Handle, Lowered, TileDesc, ViewDesc
from pto.run.reference.code import Step, Wait, located

if TYPE_CHECKING:
    from pto.run.jit.compiler import NativeCompiler

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
