"""The words of agents that signal each other and wait (`isa/meaning/order/words.py`), compiled.

An agent that waits suspends its coroutine. Python handles barriers of several cores by signals, and
computes the reason of a wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.isa.meaning.memory import registers
from pto.isa.meaning.order import flags
from pto.isa.meaning.order.words import AgentSignals, Receiver
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.handle.view import emits_in, inside
from pto.run.jit.emit.handle.words import ViewAt, Words, native
from pto.run.jit.emit.operation import CHEAP, WORDS, OpContext
from pto.run.jit.ir.kinds import certain
from pto.run.jit.llvm.index import Count, Number
from pto.run.jit.llvm.text import I32, I64
from pto.run.jit.llvm.value import TRUE, Condition
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.state import CUBES, SIGNAL_IDS, VECTORS, receiver, signal_offset

_EACH = signal_offset(1) - signal_offset(0)


class SignalWords(Words):
    """Emits one instruction in place."""

    def __init__(self, s: OpContext) -> None:
        super().__init__(s)
        self.side: str = s.e.compiler.side

    def until(
        self,
        met: Callable[[], Condition],
        take: Callable[[], None],
        reason: object,
        *,
        polls: bool = False,
    ) -> None:
        naps = not (polls and _may_meet(self.s))
        coroutine.until(self.s, lambda _: (TRUE, met, take), naps=naps)

    def _at(self, place: str) -> Number:
        return Number(self.x, self.x.load(I64, place, 8))

    @property
    def agents(self) -> tuple[Number, Number]:
        table = self.context(Word.SIGNALS)
        vectors, cubes = (self._at(self.x.at(table, 8 * kind)) for kind in (VECTORS, CUBES))
        return vectors, cubes

    # ---- signals of one core

    def has_signal(self, number: Number) -> Condition:
        offset = self.s.case.profile.sync.second_vector_id_offset
        return self.below(number, 2 * offset if offset else SIGNAL_IDS // 2)

    def _signal(self, to: Receiver, sender: Count) -> str:
        side, sub, number = to
        heard = self.number(sub) + receiver(side)
        within = (self.number(number) * 2 + sender) * 8
        return self.x.at(
            self.context(Word.SIGNALS), (heard * _EACH + within + signal_offset(0)).value
        )

    def signal(self, to: Receiver, sender: Count) -> Number:
        return self._at(self._signal(to, sender))

    def set_signal(self, to: Receiver, sender: Count, count: Number) -> None:
        self.x.store(I64, count.value, self._signal(to, sender), 8)

    # ---- barriers of all cores

    def _come(self, kind: str) -> str:
        return self.x.at(self.context(Word.ARRIVALS), 8 * registers.CORE_TYPES.index(kind))

    def arrivals(self, kind: str) -> Number:
        return self._at(self._come(kind))

    def arrive(self, kind: str) -> None:
        self.x.store(I64, (self.arrivals(kind) + 1).value, self._come(kind), 8)

    # ---- words in global memory

    def words(self, signal: Any, type: object) -> ViewAt:
        view = certain(signal, ViewAt)
        aligned = view.address % view.dtype.itemsize == 0
        self.s.fault_unless(aligned & inside(self.s, native(view)))
        return view

    def _first(self, view: ViewAt) -> str:
        return self.s.pointer(view.memory, view.address.value)

    def every(self, view: ViewAt, holds: Callable[[Number], Condition]) -> Condition:
        x = self.x
        first = self._first(view)
        found = self.x.stack("i1")
        x.store("i1", "true", found)
        pairs = zip(view.shape, view.strides, strict=True)
        axes = [(size, step) for size, step in pairs if size.known != 1]

        def nested(left: Sequence[tuple[Number, Number]], at: Number) -> None:
            if left:
                (size, step), *inner = left
                x.loop(size.value, 1, lambda i: nested(inner, at + Number(x, i) * step))
                return
            word = x.load(I32, x.at(first, (at * 4).value), 4)
            guard = holds(Number(x, x.new(f"sext i32 {word} to i64")))
            x.store("i1", str(x.bit(x.load("i1", found)) & guard), found)

        nested(axes, Number(x, 0))
        return x.bit(x.load("i1", found))

    def notify(self, view: ViewAt, value: Number, *, adds: bool) -> None:
        x, first = self.x, self._first(view)
        word = x.new(f"trunc i64 {value.value} to i32")
        if adds:
            plain = x.compare("eq", self.context(Word.RECORDS_SUMS), "null", "ptr")
            self.leave_unless(plain, "another rank is told of the sum")
            word = x.new(f"add i32 {x.load(I32, first, 4)}, {word}")
        x.store(I32, word, first, 4)


def _may_meet(s: OpContext) -> bool:
    """True if the program has a barrier of several cores."""
    sends = (op for op in s.e.compiler.module.walk() if op.body is flags.SEND)
    return any(flags.is_meeting(s.e.case(op)) for op in sends)


CHEAP.add(id(flags.SEND))
WORDS[AgentSignals] = emits_in(SignalWords)
