"""Signals between the cube and the vector sub-blocks of a core, and `syncall`, in compiled code.

Where an agent has to wait, others go on until the count is there. Meetings by signals are Python's.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.isa.meaning.handle import config
from pto.isa.meaning.memory import registers
from pto.isa.meaning.order import flags
from pto.isa.row.flag import event_of
from pto.isa.rules.rule import Case
from pto.run.jit.border.context import BLOCK, BLOCKS, COME, REGISTERS, SIGNALS, SUB
from pto.run.jit.border.state import (
    CUBES,
    SIGNAL_IDS,
    VECTORS,
    receiver,
    register_offset,
    signal_offset,
)
from pto.run.jit.border.values import Native, Word
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.handle.view import wide
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.llvm.text import I64, NotNative, Val
from pto.verify.operation import constant


def _id(s: Spot) -> Val:
    """The last operand there is, else the attribute."""
    given = s.all()
    if not given:
        return event_of(s.case)
    word = given[-1]
    if not isinstance(word, Word):
        raise NotNative("an id that is no number")
    return wide(s, word)


class _Counts:
    """Where signals are counted, as the agent at hand sees it."""

    def __init__(self, s: Spot) -> None:
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
        """The id that the second vector sub-block means by a number that the cube uses too."""
        x = self.x
        if not self.offset or (isinstance(number, int) and number < self.offset):
            return number
        named = x.mul(x.over(number, self.offset), self.sub)
        return x.add(number, x.mul(named, -self.offset))

    def sent(self, number: Val) -> list[str]:
        """Counts that a set of the agent reaches (`flags._receivers`)."""
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
        """The count a wait of the agent takes; of signals that are combined, the other one too."""
        if self.side == "vector":
            heard = self.x.add(receiver("vector"), self.sub)
            return self.place(heard, self.own(number), 0), None
        own = receiver(self.side)
        both = self.side == "cube" and not self.offset
        return self.place(own, number, 0), self.place(own, number, 1) if both else None


_EACH = signal_offset(1) - signal_offset(0)


@emits(flags.SEND, cheap=True)
def _send(s: Spot) -> Sequence[Native]:
    if flags.is_meeting(s.case):
        raise NotNative("a meeting of many cores")
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

    planes.either_way(s, x.compare("ult", number, limit), run, "no such signal")
    return []


@emits(flags.HEAR)
def _hear(s: Spot) -> Sequence[Native]:
    """Where many cores may meet, Python says whether they have."""
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


def _agents(s: Spot, kind: int) -> str:
    """How many vectors or cubes the core has."""
    return s.x.load(I64, s.x.at(s.e.word(SIGNALS), 8 * kind), 8)


@emits(config.SYNC_ALL)
def _sync_all(s: Spot) -> Sequence[Native]:
    """Wait until all blocks have come as often as this agent."""
    x, kind, used = s.x, s.case.word("core_type") or "mix", s.operand("used_cores")
    everyone = x.mul(_here(s, kind), x.load(I64, x.at("%ctx", 8 * BLOCKS), 8))
    takes_part = x.compare("ne", everyone, 0)
    if isinstance(used, Word):
        count = wide(s, used)
        block = x.load(I64, x.at("%ctx", 8 * BLOCK), 8)
        takes_part, everyone = x.compare("slt", block, count), x.mul(_here(s, kind), count)
        takes_part = x.both(takes_part, x.compare("ne", everyone, 0))
    x.when(takes_part, lambda: _come(s, kind, everyone))
    return []


def _here(s: Spot, kind: str) -> Val:
    """How many agents of this block take part; none where this agent does not."""
    side = s.e.compiler.side
    if side == "both":
        return 1
    if kind == "mix":
        return s.x.add(_agents(s, VECTORS), _agents(s, CUBES))
    if (kind == "aiv_only") != (side == "vector"):
        return 0
    return _agents(s, VECTORS) if side == "vector" else 1


def _come(s: Spot, kind: str, everyone: Val) -> None:
    x = s.x
    passed = x.at(s.e.word(REGISTERS), register_offset(f"{registers.SYNC_ALL} {kind}"))
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


def _take(s: Spot, place: str) -> None:
    s.x.store(I64, s.x.sub(s.x.load(I64, place, 8), 1), place, 8)


def _may_meet(s: Spot) -> bool:
    """Whether the program tells many cores of anything."""
    profile, ops = s.e.compiler.profile, s.e.compiler.module.walk()
    cases = [Case(op, op.row, profile, constant) for op in ops if op.row and op.body in _SENDS]
    return any(map(flags.is_meeting, cases))


_SENDS = flags.SEND, flags.ARRIVE
