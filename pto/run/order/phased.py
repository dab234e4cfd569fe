"""Phases of an operation in a schedule: inputs as of an early phase, scratch space overwritten.

The semantics compute the result in one step, in the last phase. Inputs of an earlier phase are
copied when that phase runs, and put in place while the semantics run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pto.core.global_tensor import GlobalTensor
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Blocked
from pto.isa.row.phases import PipeAccess
from pto.isa.row.pipe_of import form_of, phases_of
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step

_SPOILT = 0xFF  # fills scratch space in UB: NaN in every float, -1 in every integer
_WORDS = (1, 2, 4, 8)


def is_phased(case: Case) -> bool:
    """True if an operation waits internally, or accesses memory on several pipes."""
    form = form_of(case)
    return form is not None and (len(form.steps) > 1 or len(form.pipes()) > 1)


def computing(case: Case) -> int:
    """The step in which the semantics run: the last that writes a result."""
    results = {o.name for o in case.row.operands if o.role in ("out", "inout")}
    touches = [(n, s) for n, s in enumerate(phases_of(case)) if isinstance(s, PipeAccess)]
    return max((n for n, s in touches if results & {*s.writes}), default=touches[-1][0])


def leading(case: Case) -> list[str]:
    """Pipes for which the scalar unit waits before it reads, in the first phases."""
    pipes: list[str] = []
    for step in phases_of(case):
        if isinstance(step, PipeAccess):
            return pipes if step.pipe == "S" else []
        if step.dst == "S":
            pipes.append(step.src)
    return pipes


class Seen:
    """Bytes of operands as an earlier phase has read them."""

    def __init__(self) -> None:
        self._bytes: list[tuple[Any, Any]] = []  # array, old content
        self._open = 0  # phases that have not read yet

    def take(self, slots: Sequence[int]) -> Step:
        """The step of a phase that reads these operands."""
        self._open += 1

        def look(core: Core, regs: Regs) -> None:
            self._open -= 1
            views = [_bytes(regs[slot]) for slot in slots]
            self._bytes += [(view, view.copy()) for view in views if view is not None]

        return look

    def around(self, step: Step) -> Step:
        """A step that runs on the recorded bytes, and restores the rest of memory afterwards."""

        def run(core: Core, regs: Regs) -> Any:
            if self._open:
                return Blocked("an earlier phase of its own")
            now = [view.copy() for view, _ in self._bytes]
            for view, then in self._bytes:
                view[...] = then
            result = step(core, regs)
            for (view, then), current in zip(self._bytes, now, strict=True):
                np.copyto(view, current, where=view == then)
            return result

        return run


def spoiling(step: Step, slots: Iterable[int]) -> Step:
    """A step that first overwrites its scratch space with invalid data."""
    places = tuple(slots)

    def run(core: Core, regs: Regs) -> Any:
        for slot in places:
            data = _bytes(regs[slot])
            if data is not None:
                data[...] = _SPOILT
        return step(core, regs)

    return run


def _bytes(value: Any) -> Any:
    """The elements of a tile or view as integers, to be read and written."""
    if isinstance(value, Tile):
        return value.memory.view(value.address, value.nbytes)
    if isinstance(value, GlobalTensor):
        array = value.as_array()
        return array.view(f"u{array.itemsize}") if array.itemsize in _WORDS else None
    return None
