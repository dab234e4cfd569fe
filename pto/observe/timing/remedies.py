"""Remedies that need no other program: the recorded run is changed, and timed again.

One more buffer lets a pipe fill a tile while another still reads the previous one: in the record,
the wait of the n-th filling becomes that of the filling before it. Longer rows read fewer bursts.
Tiles twice as large do the same work in half as many instructions. A change that does not fit is
not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.cost.work import FractalWork, MatmulWork, ScopeWork, TransferWork, VectorWork, Work
from pto.isa.row import types as t
from pto.observe.storage.roots import Root, Roots
from pto.observe.timing import clock
from pto.observe.timing.chips import Bench
from pto.observe.timing.fold import left_out
from pto.observe.timing.price import Price, price
from pto.observe.timing.result import Remedy, Timing, Waiting, is_worth, short
from pto.observe.timing.shared import settle
from pto.observe.timing.stream import ISSUED, Place, RecordLine, RecordStream
from pto.target.costs import Chip
from pto.target.facts import Profile

_BURST = 512  # bytes that global memory delivers at once


@dataclass(slots=True)
class RemedyTrial:
    """A possible improvement: its description, and the run with it."""

    words: str
    stream: RecordStream
    chip: Chip
    prices: list[Price]
    condition: str = ""  # on which the saving depends


def remedies(timing: Timing, bench: Bench, free: FreeSpace | None) -> Iterator[Remedy]:
    """Changes that make it faster, with the microseconds they save."""
    if timing.times is None or timing.load is None:
        return
    for trial in _trials(timing, bench, free):
        if not is_worth(timing.times.end, _at_once(timing, trial)):
            continue  # not even with unlimited memory
        run = settle(trial.stream, trial.chip, timing.mhz, trial.prices, timing.load)
        cycles = run.times.end + left_out(trial.stream, run.times)
        saved = timing.core_us - cycles / timing.mhz
        if is_worth(timing.us, timing.us - saved):
            yield Remedy(trial.words, saved, trial.condition)


def _trials(timing: Timing, bench: Bench, free: FreeSpace | None) -> Iterator[RemedyTrial]:
    chip = bench.chip
    prices = timing.prices
    stream = timing.stream
    if free is not None:
        tiles = [tile for wait in timing.waits if (tile := free.refilled(wait)) is not None]
        for tile in filter(free.holds_more, dict.fromkeys(tiles)):
            words = f"one more buffer for {tile.name}{_line(tile.op)}"
            fills, reads = (free.touching(tile, role, stream) for role in ("out", "in"))
            yield RemedyTrial(words, _shifted(stream, fills, reads), chip, prices)
    for op in dict.fromkeys(job.op for job in stream.jobs if _is_short(job.work)):
        row_bytes = min(w.region.row_bytes for w in _transfers(stream, op) if w.region)
        words = f"rows of {_BURST} bytes, not {row_bytes}, in {short(op)}{_line(op)}"
        longer = [
            price(_in_bursts(job.work), bench.costs) if job.op is op else old
            for job, old in zip(stream.jobs, prices, strict=True)
        ]
        yield RemedyTrial(words, stream, chip, longer, "if tiles hold as many bytes as now")
    moved = [job.op for job in stream.jobs if isinstance(job.work, TransferWork)]
    if free is not None and free.holds_double() and len(set(moved)) < len(moved):
        half = replace(chip, issue=chip.issue / 2, flag=chip.flag / 2)
        larger = [_half(price(_double(job.work), bench.costs)) for job in stream.jobs]
        words = "tiles twice as large, half as many on each core"
        yield RemedyTrial(words, stream, half, larger, "from fixed costs alone")


def _at_once(timing: Timing, trial: RemedyTrial) -> float:
    """The end of the changed run with unlimited memory bandwidth."""
    times = timing.times
    assert times is not None
    took = [b - a for a, b in zip(times.start, times.free, strict=True)]
    late = [b - a for a, b in zip(times.free, times.done, strict=True)]
    for n, (new, old) in enumerate(zip(trial.prices, timing.prices, strict=True)):
        if new is not old:
            took[n] = new.alone(trial.stream.jobs[n].work)
            late[n] = min(late[n], new.lat_hit)
    return clock.run(trial.stream, trial.chip, took, late).end


def _line(op: Operation) -> str:
    return "" if op.loc is None else f" (line {op.loc.line})"


# ---- one more buffer


class FreeSpace:
    """The tiles of a program, and the free bytes of their buffers."""

    def __init__(self, functions: Sequence[Operation], profile: Profile) -> None:
        self._roots = Roots(list(functions))
        self._sizes = profile.buffers
        self._taken: dict[Space, int] = {}
        for root in self._roots.all:
            space, nbytes = _extent(root)
            self._taken[space] = self._taken.get(space, 0) + nbytes

    def refilled(self, wait: Waiting) -> Root | None:
        """The tile that the waiting operation fills and the awaited one reads."""
        both = sorted(self._tiles(wait.op, "out") & self._tiles(wait.behind, "in"))
        return self._roots.all[both[0]] if len(both) == 1 else None

    def touching(self, tile: Root, role: str, stream: RecordStream) -> set[int]:
        """The operations that fill or read a tile, by identity."""
        ops = {id(job.op): job.op for job in stream.jobs}
        index = self._roots.all.index(tile)
        return {number for number, op in ops.items() if index in self._tiles(op, role)}

    def _tiles(self, op: Operation, role: str) -> set[int]:
        return set(chain.from_iterable(map(self._roots.of, op.given(role, "inout"))))

    def holds_more(self, tile: Root) -> bool:
        space, nbytes = _extent(tile)
        return 0 < nbytes <= self._left(space)

    def holds_double(self) -> bool:
        return bool(self._taken) and all(n <= self._left(s) for s, n in self._taken.items())

    def _left(self, space: Space) -> int:
        return self._sizes.get(space.value, 0) - self._taken.get(space, 0)


def _extent(root: Root) -> tuple[Space, int]:
    type = root.value.type
    if isinstance(type, t.TileBuf):
        return type.tile.space, type.tile.nbytes
    return Space.GM, 0


def _shifted(stream: RecordStream, fills: set[int], reads: set[int]) -> RecordStream:
    """The record with each filling waiting for the readers of the filling before it."""
    mine, behind = (
        {job.pipe for job in stream.jobs if id(job.op) in ops} for ops in (fills, reads)
    )
    lines = list(stream.lines)
    since: dict[int, list[int]] = {pipe: [] for pipe in mine}  # lines after the last instruction
    before: dict[int, int] = {}  # by pipe of readers: what the last filling waited for
    for n, line in enumerate(stream.lines):
        if line.pipe not in mine or line.kind == ISSUED:
            continue
        since[line.pipe].append(n)
        if line.job < 0:
            continue
        if id(stream.jobs[line.job].op) in fills:
            now = dict(before)
            for at_line in since[line.pipe]:
                now |= {p: n for p, n in stream.lines[at_line].after if p in behind}
                lines[at_line] = _waits_as(stream.lines[at_line], behind, before)
            before = now
        since[line.pipe].clear()
    return replace(stream, lines=lines)


def _waits_as(line: RecordLine, behind: set[int], before: dict[int, int]) -> RecordLine:
    waits: list[Place] = [(p, n if p not in behind else before.get(p, 0)) for p, n in line.after]
    return line._replace(after=tuple(waits))


# ---- larger transfers


def _transfers(stream: RecordStream, op: Operation) -> Iterator[TransferWork]:
    for job in stream.jobs:
        if job.op is op and isinstance(job.work, TransferWork):
            yield job.work


def _is_short(work: Work) -> bool:
    """True if it moves rows shorter than a burst, of an array with longer rows."""
    if not isinstance(work, TransferWork) or work.region is None or work.bursts < 2:
        return False
    region = work.region
    return region.row_bytes < _BURST <= min(work.nbytes, region.pitch)


def _in_bursts(work: Work) -> Work:
    if not isinstance(work, TransferWork):
        return work
    return work._replace(bursts=max(1, -(-work.nbytes // _BURST)))


def _double(work: Work) -> Work:
    match work:
        case TransferWork():
            return work._replace(nbytes=2 * work.nbytes, bursts=2 * work.bursts)
        case FractalWork():
            return work._replace(nbytes=2 * work.nbytes, columns=2 * work.columns)
        case MatmulWork():
            return work._replace(steps=2 * work.steps)
        case VectorWork():
            twice = (s._replace(repeats=2 * s.repeats, elements=2 * s.elements) for s in work.steps)
            return work._replace(steps=tuple(twice))
        case ScopeWork():
            return work._replace(counts=tuple((name, 2 * n) for name, n in work.counts))
        case _:
            return work


_HALVED: tuple[str, ...] = ("start", "least_hit", "least_miss", "lat_hit", "lat_miss")


def _half(price: Price) -> Price:
    return price._replace(**{name: getattr(price, name) / 2 for name in _HALVED})
