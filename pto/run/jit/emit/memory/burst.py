"""Bursts: their conditions, and copies of rows of bytes.

Overlapping padded bursts and all errors are left to the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

from pto.core.dtypes import U8
from pto.core.layout import Mode
from pto.core.memory import Space
from pto.isa.meaning.memory import burst, registers
from pto.run.jit.emit.handle.view import wide_number
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import expect
from pto.run.jit.ir.strided import Access, Strided, distinct, span
from pto.run.jit.llvm.value import Condition, Val, all_of
from pto.run.jit.runtime import context
from pto.run.jit.runtime.values import PointerDesc, ScalarValue

SMALL = 1 << 30  # products of two such numbers, and a few of those added, fit 64 bits


@dataclass(frozen=True, slots=True)
class Loop:
    """How often, and by how many bytes source and destination advance; numbers may be names."""

    count: Val
    source: Val
    destination: Val


def words(s: OpContext, *names: str) -> list[Val]:
    return [wide_number(s, s.need(ScalarValue, name)) for name in names]


# ---- what must hold


def below(s: OpContext, limit: int, *numbers: Val) -> Condition:
    """True if no number is negative, or the limit or more."""
    return all_of(*(s.x.compare("ult", n, limit) for n in numbers))


def nonzero(s: OpContext, *numbers: Val) -> Condition:
    return all_of(*(s.x.compare("ne", n, 0) for n in numbers))


def in_range(s: OpContext, width: Val, loops: Sequence[Loop]) -> Condition:
    """True if no number is negative, and the number of bytes is neither 0 nor too large."""
    counts = (1, *(p.count for p in loops))
    *_, last = totals = [*accumulate(counts, s.x.mul, initial=width)][1:]
    few = (s.x.compare("ule", total, burst.MOST_BYTES) for total in totals)
    numbers = (n for p in loops for n in (p.count, p.source, p.destination))
    return all_of(below(s, SMALL, width, *numbers), *few, nonzero(s, last))


def multiple(s: OpContext, value: Val, step: int) -> Condition:
    return s.x.compare("eq", s.x.rest(value, step), 0)


def plain_writes(s: OpContext) -> Condition:
    """True if CTRL selects no combining of writes."""
    return s.x.compare("eq", s.control(7 << registers.ATOMIC_TYPE), 0)


# ---- moves


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bursts from one place to another; those written are `wider` bytes longer."""

    source: PointerDesc
    target: PointerDesc
    width: Val
    loops: Sequence[Loop]
    wider: Val = 0

    @property
    def counts(self) -> list[Val]:
        return [p.count for p in self.loops]

    @property
    def steps(self) -> tuple[list[Val], list[Val]]:
        return [p.source for p in self.loops], [p.destination for p in self.loops]


_UNLESS = "CTRL combines what is written, bursts overlap, or a number is out of range"


def move_bursts(
    s: OpContext, move: Transfer, guard: Condition, *, pads: Callable[..., None] | None = None
) -> None:
    """Copy rows of bytes if all conditions hold; else run the reference step."""
    x, (reads, writes) = s.x, move.steps
    long = x.add(move.width, move.wider)
    guard = guard & in_range(s, long, move.loops)
    ends = []
    for place, width, steps in ((move.source, move.width, reads), (move.target, long, writes)):
        reach = span(x, width, move.counts, steps)
        guard = guard & s.e.inside(place.memory, place.address, reach)
        ends.append(reach)
    order = distinct(x, long, move.counts, writes)
    if pads is None:  # one by one, as they come: the later one wins
        many = reduce(x.mul, move.counts)
        order = order | x.compare("ule", many, burst.MOST_OVERLAPPING)
    guard = guard & order & masked.disjoint(s, move.source, ends[0], move.target, ends[1])

    def run() -> None:
        pointers = [
            noted(s, move.source, move.width, move.counts, reads, ends[0], writes=False),
            noted(s, move.target, long, move.counts, writes, ends[1], writes=True),
        ]
        rows, cols = reduce(x.mul, move.counts), strided.axis(1)
        axes = (strided.coalesced([*map(Mode, move.counts, steps)]) for steps in (reads, writes))
        src, dst = (
            Access(Strided(U8, axis, cols), pointer)
            for axis, pointer in zip(axes, pointers, strict=True)
        )
        if pads is None:
            tile_moves.transfer(s, rows, move.width, dst, src)
        else:
            pads(dst, src, rows)

    masked.guarded(s, guard, run, _UNLESS)


def noted(
    s: OpContext,
    place: PointerDesc,
    width: Val,
    counts: Sequence[Val],
    steps: Sequence[Val],
    reach: Val,
    *,
    writes: bool,
) -> str:
    """The machine address of the first burst; the access to global memory is logged."""
    single = all(count == 1 for count in counts[1:])
    rows, nbytes, pitch = (counts[0], width, steps[0]) if single else (1, reach, 0)
    s.e.log_access(place.memory, place.address, rows, nbytes, pitch, writes=writes)
    return s.pointer(place.memory, place.address, logged=True)


def owner(s: OpContext, memory: Val, space: Space | None, sub: int | None = 0) -> Val:
    """The number of the buffer of its owner: the UB of vector sub-block `sub` for a cube, the L1 of
    the cube for a vector. `sub` None: known only when it runs."""
    side = s.e.compiler.side
    is_hint = space is not Space.UB or side == "vector"
    number, known = 0 if is_hint else sub, (0,) if side == "both" else (0, 1)
    why = "a sub-block that is known only when it runs, or another agent"
    number = expect(number if number in known else None, int, why)
    if space is None or (space, side) not in ((Space.UB, "cube"), (Space.L1, "vector")):
        return memory
    return context.PEER_BUFFERS[space, number]
