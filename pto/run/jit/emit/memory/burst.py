"""Bursts in compiled code: what must hold before a byte is written, and rows of bytes copied.

What is unusual (padded bursts that write over each other, what is wrong) is the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pto.core.dtypes import U8
from pto.core.memory import Space
from pto.isa.meaning.memory import burst, registers
from pto.run.jit.border import context
from pto.run.jit.border.state import register_offset
from pto.run.jit.border.values import Place, Word
from pto.run.jit.emit.handle.view import number
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.emit.tile.boxes import Field
from pto.run.jit.emit.tile.move import Arguments, Side
from pto.run.jit.llvm.text import NotNative, Val

SMALL = 1 << 30  # products of two such numbers, and a few of those added, fit 64 bits


@dataclass(frozen=True, slots=True)
class Loop:
    """How often, and by how many bytes source and destination advance; numbers may be names."""

    count: Val
    source: Val
    destination: Val


def words(s: Spot, *names: str) -> list[Val]:
    return [number(s.need(Word, name)) for name in names]


# ---- what must hold


def in_range(s: Spot, width: Val, loops: Sequence[Loop]) -> str:
    """Whether no number is negative, something moves, and not too much."""
    x, fine = s.x, "true"
    for each in (width, *(n for p in loops for n in (p.count, p.source, p.destination))):
        fine = x.both(fine, x.compare("ult", each, SMALL))
    total = width
    for each in (1, *(p.count for p in loops)):
        total = x.mul(total, each)
        fine = x.both(fine, x.compare("ule", total, burst.MOST_BYTES))
    return x.both(fine, x.compare("ne", total, 0))


def reach_of(s: Spot, width: Val, counts: Sequence[Val], strides: Sequence[Val]) -> Val:
    """Bytes from the first to the end of the last burst."""
    x, found = s.x, width
    for count, stride in zip(counts, strides, strict=True):
        found = x.add(found, x.mul(x.sub(count, 1), stride))
    return found


def distinct(s: Spot, width: Val, counts: Sequence[Val], strides: Sequence[Val]) -> str:
    """Each loop steps over what the loops inside it write."""
    x, fine, extent = s.x, "true", width
    for count, stride in zip(counts, strides, strict=True):
        over = x.compare("uge", stride, extent)
        fine = x.both(fine, x.either(x.compare("eq", count, 1), over))
        extent = x.add(extent, x.mul(x.sub(count, 1), stride))
    return fine


def multiple(s: Spot, value: Val, step: int) -> str:
    return s.x.compare("eq", s.x.rest(value, step), 0)


def plain_writes(s: Spot) -> str:
    """CTRL selects no type that writes are combined in."""
    x = s.x
    ctrl = x.load("i64", x.at(s.e.word(context.REGISTERS), register_offset(registers.CTRL)), 8)
    kind = x.new(f"and i64 {ctrl}, {7 << registers.ATOMIC_TYPE}")
    return x.compare("eq", kind, 0)


# ---- moves


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bursts from one place to another; those written are `wider` bytes longer."""

    source: Place
    target: Place
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
    s: Spot, move: Transfer, fine: str, *, pads: Callable[..., None] | None = None
) -> None:
    """Where everything holds, rows of bytes; else the reference step."""
    x, (reads, writes) = s.x, move.steps
    long = x.add(move.width, move.wider)
    fine = x.both(fine, in_range(s, long, move.loops))
    ends = []
    for place, width, steps in ((move.source, move.width, reads), (move.target, long, writes)):
        reach = reach_of(s, width, move.counts, steps)
        fine = x.both(fine, s.e.inside(place.memory, place.address, reach))
        ends.append(reach)
    order = distinct(s, long, move.counts, writes)
    if pads is None:  # one by one, as they come: the later one wins
        many = reduce(x.mul, move.counts)
        order = x.either(order, x.compare("ule", many, burst.MOST_OVERLAPPING))
    fine = x.both(fine, order)
    fine = x.both(fine, planes.apart(s, move.source, ends[0], move.target, ends[1]))

    def run() -> None:
        pointers = [
            noted(s, move.source, move.width, move.counts, reads, ends[0], writes=False),
            noted(s, move.target, long, move.counts, writes, ends[1], writes=True),
        ]
        _around(s, move.loops, pointers, partial(_rows, s, move, pads))

    planes.either_way(s, fine, run, _UNLESS)


def noted(
    s: Spot,
    place: Place,
    width: Val,
    counts: Sequence[Val],
    steps: Sequence[Val],
    reach: Val,
    *,
    writes: bool,
) -> str:
    """The machine address of the first burst; uses of global memory are written down."""
    single = all(count == 1 for count in counts[1:])
    rows, nbytes, pitch = (counts[0], width, steps[0]) if single else (1, reach, 0)
    s.e.touched(place.memory, place.address, rows, nbytes, pitch, writes=writes)
    return s.pointer(place.memory, place.address, noted=True)


def _around(
    s: Spot, loops: Sequence[Loop], pointers: Sequence[str], body: Callable[[str, str], None]
) -> None:
    """The outer loops, then the body with the addresses of each round."""
    x, (source, target) = s.x, pointers
    if len(loops) == 1:
        body(source, target)
        return
    outer = loops[-1]
    if outer.count == 1:
        _around(s, loops[:-1], pointers, body)
        return

    def turn(i: Val) -> None:
        moved = [
            x.at(source, x.mul(i, outer.source)),
            x.at(target, x.mul(i, outer.destination)),
        ]
        _around(s, loops[:-1], moved, body)

    planes.loop(x, outer.count, 1, turn)


def _rows(
    s: Spot, move: Transfer, pads: Callable[..., None] | None, source: str, target: str
) -> None:
    """The innermost bursts."""
    inner, given = move.loops[0], Arguments()
    to_step, from_step = given.name(inner.destination), given.name(inner.source)
    names = tuple(given.names)
    dst = Side(Field(U8, boxes.line(to_step), boxes.line(1)), target)
    src = Side(Field(U8, boxes.line(from_step), boxes.line(1)), source, names)
    if pads is None:
        tile_moves.transfer(s, inner.count, move.width, dst, src)
    else:
        pads(dst, src, inner)


def owner(s: Spot, memory: Val, space: Space | None, sub: int = 0) -> Val:
    """The number of the buffer of the agent that owns it: a cube that names UB means that of vector
    `sub`, a vector that names L1 the cube's."""
    side = s.e.compiler.side
    if space is Space.UB and side == "both" and sub:
        raise NotNative("a buffer of another agent")
    if space is None or (space, side) not in ((Space.UB, "cube"), (Space.L1, "vector")):
        return memory
    return context.PEER_BUFFERS[space, sub]
