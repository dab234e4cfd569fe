"""Store streams without a flush: buffered bytes that never reach UB."""

from __future__ import annotations

from typing import Any

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation, Value
from pto.isa.meaning.vector import unaligned
from pto.isa.row.traits import Control
from pto.observe.races import counters_text
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.events import Hook

_STORES = (unaligned.VSTUS, unaligned.VSTUR, unaligned.VSTU, unaligned.PSTU)


def dropped(functions: list[Operation]) -> dict[int, Value]:
    """Stores, by operation, with a state that no later store or flush takes."""
    stores = (op for f in functions for op in f.walk() if op.body in _STORES)
    return {id(op): op.results[0] for op in stores if not _is_taken(op.results[0])}


def _is_taken(value: Value) -> bool:
    for op in value.uses:
        if op.control is not Control.YIELD:
            return True
        around = next(op.ancestors(), None)
        # the result of the loop is the value that the last iteration yields
        if around is None or _is_taken(around.results[op.operands.index(value)]):
            return True
    return False


class StreamTap(Hook):
    """Checks the bytes that these stores still buffer after their last execution."""

    def __init__(self, stores: dict[int, Value]) -> None:
        super().__init__()
        self._stores = stores
        self._last: dict[tuple[int, str], tuple[Operation, tuple[int, ...], Any]] = {}

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        value = self._stores.get(id(op))
        if value is None:
            return step
        slot = compiler.slot(value)
        loops = compiler.counters(op)

        def watched(core: Core, regs: Regs) -> Any:
            result = step(core, regs)
            counters = tuple([regs[i] for i in loops])
            self._last[id(op), core.name] = op, counters, regs[slot]
            return result

        return watched

    def findings(self) -> list[Diagnostic]:
        out: dict[int, Diagnostic] = {}
        for (key, core), (op, counters, state) in self._last.items():
            if not state.pending:
                continue
            name, where = op.name.removeprefix("pto."), counters_text(op, counters)
            message = (
                f"the last {len(state.pending)} bytes of a stream never reach UB: nothing flushes"
                f" what {name} has left on {core}{where}"
            )
            note = Note(f"they belong at {state.address:#06x}")
            out.setdefault(key, Diagnostic("PTO-V217", message, op.loc, notes=(note,)))
        return list(out.values())
