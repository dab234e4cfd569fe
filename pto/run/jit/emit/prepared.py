"""The description of an operation before it is emitted."""

from __future__ import annotations

from collections.abc import Callable

from pto.ir.graph import Operation
from pto.run.jit.emit.emitter import Emitter, OpContext
from pto.run.jit.llvm.text import Val


class Prepared(OpContext):
    """The context of an operation that is described, and perhaps emitted later: conditions and
    accesses are collected. LLVM removes arithmetic without a use."""

    def __init__(self, emitter: Emitter, op: Operation) -> None:
        super().__init__(emitter, op)
        self.needs = "true"
        self._accesses: list[Callable[[], None]] = []

    def fault_unless(self, condition: str) -> None:
        self.needs = self.x.both(self.needs, condition)

    def log_access(self, *given: Val, writes: bool) -> None:
        self._accesses.append(lambda: self.e.log_access(*given, writes=writes))

    def commit(self) -> None:
        """Emit what was collected."""
        for log in self._accesses:
            log()
        self.e.fault(self.op, self.needs)
