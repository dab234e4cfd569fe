"""A compiled region: arguments are stored in a buffer, compiled code runs, results are loaded.

If a value has no representation in compiled code, the reference steps of the operations run
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.run.jit.emit.emitter import Emitter
from pto.run.jit.emit.unit import Unit
from pto.run.jit.runtime.context import Context, context_of
from pto.run.jit.runtime.values import Lowered
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, StepBlock

Bound = tuple[int, Lowered, int]  # register, representation, offset in the argument buffer
NO_FORM: Final = "an argument has no form in compiled code"


class CompiledRegion:
    """Compiled operations of one function; the engine calls `step`."""

    def __init__(
        self,
        unit: Unit,
        name: str,
        op: Operation,
        emitter: Emitter,
        ins: Sequence[Bound],
        outs: Sequence[Bound],
        kept: Sequence[Bound],
        sizes: Sequence[tuple[Lowered, int, int]],
        reference: Callable[[], tuple[StepBlock, int]],
    ) -> None:
        self._unit = unit
        self.name = name
        self.op = op  # its first operation
        self.ins = ins
        self._outs = outs
        self._sizes = sizes  # constants: representation, offset, value
        self._kept = kept  # live-in tiles with an address or valid region that is set here
        self.host_calls = emitter.host_calls
        self.nbytes = emitter.reserved + emitter.fallback_bytes
        self._reference = reference
        self._block: StepBlock | None = None
        self._size = 0
        self._function: Any = None

    @property
    def is_whole(self) -> bool:
        """True if the region has no live-out values."""
        return not self._outs and not self._kept

    def step(self, core: Core, regs: Regs) -> None:
        context = context_of(core, self._unit.needs)
        raw = np.empty(self.nbytes + 64, np.uint8)
        frame = raw.data
        if not self.fill(frame, regs, context):
            self._run_reference(core, regs)
            return
        if self._function is None:
            self._function = self._unit.function(self.name)
        outer = context.host_calls, context.frame
        context.host_calls, context.frame = self.host_calls, frame
        try:
            status = context.call(self._function, context.pointer, raw.ctypes.data)
        finally:
            context.host_calls, context.frame = outer
        if status:
            raise context.failed()
        self._load_results(context, frame, regs)

    def fill(self, frame: memoryview, regs: Regs, context: Context) -> bool:
        """Store the arguments in the buffer; False if a value has no representation there."""
        for form, at, value in self._sizes:
            form.encode(frame, at, value, context)
        return all(form.encode(frame, at, regs[n], context) for n, form, at in self.ins)

    def _load_results(self, context: Context, frame: memoryview, regs: Regs) -> None:
        for slot, form, at in self._kept:
            tile, now = regs[slot], form.decode(frame, at, context)
            if not isinstance(tile, Tile) or tile.address != now.address:
                regs[slot] = now
            else:
                tile.set_valid(*now.get_valid())
        for slot, form, at in self._outs:
            regs[slot] = form.decode(frame, at, context)
        context.objects.clear()

    def _run_reference(self, core: Core, regs: Regs) -> None:
        core.cluster.fallbacks[self.op.name, NO_FORM] += 1
        if self._block is None:
            self._block, self._size = self._reference()
        regs += [None] * (self._size - len(regs))  # absent operands have a register too
        self._block.run(core, regs)
