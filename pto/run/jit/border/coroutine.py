"""A function that waits for other agents, compiled: it stops where it must, and goes on there.

Where an argument has no form in compiled code the steps of the reference engine run instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pto.run.jit.border import clock
from pto.run.jit.border.context import BROKEN, DONE, PASSED, ROOMY, STATUS, Context, context_of
from pto.run.jit.border.piece import Piece
from pto.run.jit.emit.unit import Unit
from pto.run.machine.core import Core
from pto.run.reference.code import Code, Waits

_ROOM: Final = 1 << 14  # bytes that most coroutines do with


@dataclass(slots=True)
class Coroutine(Code):
    """The code of one function, as one piece; `plain` makes it for the reference engine."""

    unit: Unit = field(kw_only=True)
    piece: Piece = field(kw_only=True)
    plain: Callable[[], Code] = field(kw_only=True)
    _functions: tuple[Any, Any] | None = None

    def gen(self, core: Core, values: list[Any]) -> Waits:
        context = context_of(core, self.unit.needs)
        raw = np.empty(self.piece.nbytes + 64, np.uint8)
        if not self.piece.fill(raw.data, self.frame(values), context):
            return (yield from self.plain().gen(core, values))
        handle, room = self._start(context, raw)
        while context.words[STATUS] != DONE:
            if context.words[STATUS] == BROKEN:
                raise context.failed()
            if context.wait is None:
                raise RuntimeError("compiled code waits for nothing")
            yield context.wait
            self._enter(context, raw, self._linked()[1], handle, 0)
        del room
        return []

    def _start(self, context: Context, raw: Any) -> tuple[int, Any]:
        """The handle of a coroutine that stands at its first wait, or is over; and its memory."""
        size = _ROOM
        while True:
            room = np.empty(size + 64, np.uint8)
            start = room.ctypes.data + -room.ctypes.data % 64
            context.words[STATUS] = 0
            begin = self._linked()[0]
            handle = self._enter(context, raw, begin, context.pointer, raw.ctypes.data, start, size)
            if handle:
                return handle, room
            size = int(context.words[ROOMY])

    def _enter(self, context: Context, raw: Any, function: Any, *given: int) -> int:
        outer = context.outside, context.frame
        context.outside, context.frame = self.piece.outside, raw.data
        hand = context.begin()
        try:
            return function(*given)
        finally:
            clock.leave(hand)
            context.outside, context.frame = outer
            context.core.progress = int(context.words[PASSED])

    def _linked(self) -> tuple[Any, Any]:
        if self._functions is None:
            self._functions = self.unit.coroutine(self.piece.name)
        return self._functions
