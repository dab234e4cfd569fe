"""Signals between the cube and the vector sub-blocks of a core, and `syncall`.

An agent that waits suspends its coroutine until the count is reached. Python handles barriers of
several cores by signals.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.isa.meaning.handle import config
from pto.isa.meaning.memory import registers
from pto.isa.meaning.order import flags
from pto.isa.row.flag import event_of
from pto.isa.rules.rule import Case
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.handle.view import wide
from pto.run.jit.emit.registry import emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.llvm.text import I64, Val, expect, unsupported_if
from pto.run.jit.runtime.context import BLOCK, BLOCKS, COME, SIGNALS, SUB
from pto.run.jit.runtime.state import CUBES, SIGNAL_IDS, VECTORS, receiver, signal_offset
from pto.run.jit.runtime.values import Lowered, ScalarValue
from pto.verify.operation import constant


def _id(s: OpContext) -> Val:
    """The id: the last operand, else the attribute."""
    given = s.all()
    if not given:
        return event_of(s.case)
    return wide(s, expect(given[-1], ScalarValue, "an id that is no number"))


class _Counts:
    """The counters of signals, for the emitted agent."""

    def __init__(self, s: OpContext) -> None:
        self.s, self.x, self.side = s, s.x, s.e.compiler.side
        self.offset = s.case.profile.sync.second_vector_id_offset
        self.sub: Val = 0
        if self.side == "vector":
            self.sub = self.x.load(I64, self.x.at("%ctx", 8 * SUB), 8)

    def place(self, heard: Val, number: Val, sender: Val) -> str:
        x = self.x
        known = isinstance(heard, int)
        first = signal_offset(heard) if known else x.add(signal_offset(0), x.mul(heard, _EACH))
        within = x.mul(x.add(x.mul(number, 2), sender), 8)
        return x.at(self.s.e.word(SIGNALS), x.add(first, within))

    def own(self, number: Val) -> Val:
        """The id of the second vector sub-block for a number that the cube uses too."""
        x = self.x
        if not self.offset or (isinstance(number, int) and number < self.offset):
            return number
        named = x.mul(x.over(number, self.offset), self.sub)
        return x.add(number, x.mul(named, -self.offset))

    def sent(self, number: Val) -> list[str]:
        """The counters that a signal of this agent increments."""
        x, sender = self.x, 0 if self.offset else self.sub
        if self.side == "vector":
            number = x.add(self.own(number), x.mul(self.sub, self.offset))
        if self.side != "cube":
            return [
                self.place(receiver("cube" if self.side == "vector" else "both"), number, sender)
            ]
        first = receiver("vector")
        if not self.offset:
            return [self.place(first + n, number, sender) for n in range(2)]
        second = x.add(x.over(number, self.offset), first)
        return [self.place(second, x.rest(number, self.offset), sender)]

    def heard(self, number: Val) -> tuple[str, str | None]:
        """The counter that a wait of this agent decrements; for combined signals the second one
        too."""
        if self.side == "vector":
            heard = self.x.add(receiver("vector"), self.sub)
            return self.place(heard, self.own(number), 0), None
        own = receiver(self.side)
        both = self.side == "cube" and not self.offset
        return self.place(own, number, 0), self.place(own, number, 1) if both else None


_EACH = signal_offset(1) - signal_offset(0)


@emits(flags.SEND, cheap=True)
def _send(s: OpContext) -> Sequence[Lowered]:
    unsupported_if(flags.is_meeting(s.case), "a meeting of many cores")
    x, number, made = s.x, _id(s), _Counts(s)
    most = s.case.profile.sync.cross_core_counter_max
    limit = 2 * made.offset if made.side == "cube" and made.offset else SIGNAL_IDS // 2

    def run() -> None:
        places = made.sent(number)
        counts = [x.add(x.load(I64, place, 8), 1) for place in places]
        for count in counts if most is not None else ():
            s.fault_unless(x.compare("sle", count, most or 0))
        for place, count in zip(places, counts, strict=True):
            x.store(I64, count, place, 8)

    planes.guarded(s, x.compare("ult", number, limit), run, "no such signal")
    return []


@emits(flags.HEAR)
def _hear(s: OpContext) -> Sequence[Lowered]:
    """Wait for a signal. If the program has barriers of several cores, Python tests the wait."""
    x, number, taken = s.x, _id(s), list[tuple[str, str]]()

    def met() -> str:
        place, other = _Counts(s).heard(number)
        taken[:] = [(place, "true")]
        fine = x.compare("sgt", x.load(I64, place, 8), 0)
        if other is not None:
            alone = x.compare("slt", _agents(s, VECTORS), 2)
            fine = x.both(fine, x.either(alone, x.compare("sgt", x.load(I64, other, 8), 0)))
            taken.append((other, x.negated(alone)))
        return fine

    def take() -> None:
        for place, condition in taken:
            x.when(condition, lambda place=place: _take(s, place))

    known = x.compare("ult", number, SIGNAL_IDS)
    coroutine.until(s, met, take, known=known, naps=not _may_meet(s))
    return []


def _agents(s: OpContext, kind: int) -> str:
    """How many vectors or cubes the core has."""
    return s.x.load(I64, s.x.at(s.e.word(SIGNALS), 8 * kind), 8)


@emits(config.SYNC_ALL)
def _sync_all(s: OpContext) -> Sequence[Lowered]:
    """Wait until all blocks have arrived as often as this agent."""
    x, kind, used = s.x, s.case.word("core_type") or "mix", s.operand("used_cores")
    everyone = x.mul(_here(s, kind), x.load(I64, x.at("%ctx", 8 * BLOCKS), 8))
    takes_part = x.compare("ne", everyone, 0)
    if isinstance(used, ScalarValue):
        count = wide(s, used)
        block = x.load(I64, x.at("%ctx", 8 * BLOCK), 8)
        takes_part, everyone = x.compare("slt", block, count), x.mul(_here(s, kind), count)
        takes_part = x.both(takes_part, x.compare("ne", everyone, 0))
    x.when(takes_part, lambda: _come(s, kind, everyone))
    return []


def _here(s: OpContext, kind: str) -> Val:
    """The number of agents of this block that take part; 0 if this agent does not."""
    side = s.e.compiler.side
    if side == "both":
        return 1
    if kind == "mix":
        return s.x.add(_agents(s, VECTORS), _agents(s, CUBES))
    if (kind == "aiv_only") != (side == "vector"):
        return 0
    return _agents(s, VECTORS) if side == "vector" else 1


def _come(s: OpContext, kind: str, everyone: Val) -> None:
    x = s.x
    passed = s.register_at(f"{registers.SYNC_ALL} {kind}")
    waiting = x.at(passed, 8)
    count = x.at(s.e.word(COME), 8 * registers.CORE_TYPES.index(kind))

    def arrive() -> None:
        x.store(I64, x.add(x.load(I64, count, 8), 1), count, 8)
        x.store(I64, 1, waiting, 8)

    def met() -> str:
        x.when(x.compare("eq", x.load(I64, waiting, 8), 0), arrive)
        wanted = x.mul(x.add(x.load(I64, passed, 8), 1), everyone)
        return x.compare("sge", x.load(I64, count, 8), wanted)

    def take() -> None:
        x.store(I64, x.add(x.load(I64, passed, 8), 1), passed, 8)
        x.store(I64, 0, waiting, 8)

    coroutine.until(s, met, take)


def _take(s: OpContext, place: str) -> None:
    s.x.store(I64, s.x.sub(s.x.load(I64, place, 8), 1), place, 8)


def _may_meet(s: OpContext) -> bool:
    """True if the program has a barrier of several cores."""
    profile, ops = s.e.compiler.profile, s.e.compiler.module.walk()
    cases = [Case(op, op.row, profile, constant) for op in ops if op.row and op.body in _SENDS]
    return any(map(flags.is_meeting, cases))


_SENDS = flags.SEND, flags.ARRIVE
