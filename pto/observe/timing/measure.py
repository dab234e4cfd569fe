"""Times of the blocks that one core runs, while the other cores run theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pto.isa.cost.work import Transfer
from pto.observe.timing.chips import Bench
from pto.observe.timing.fold import busy, left_out, weights
from pto.observe.timing.kinds import Blocks, Described
from pto.observe.timing.price import Price, price
from pto.observe.timing.rounds import Shown, chosen, repeats
from pto.observe.timing.shared import Load, Shared, settle
from pto.observe.timing.stream import FENCE, ISSUED, Fold, Line, Stream, Track
from pto.observe.timing.traffic import Moved, Round, load_of

_MOST = 200_000  # lines of a simulated run, beyond which rounds are not simulated to prove more


@dataclass(slots=True)
class Timed:
    """The blocks of one core, one after the other, with times on them."""

    stream: Stream
    prices: list[Price]
    shared: Shared
    load: Load
    shown: list[Shown]
    proven: bool  # rounds that were left out repeat exactly
    left_out: float  # cycles of rounds and iterations that were not simulated

    @property
    def cycles(self) -> float:
        return self.shared.times.end + self.left_out


def time_core(
    launch: Described, bench: Bench, blocks: Blocks, core: int, rounds: Sequence[Round]
) -> Timed:
    """The blocks of one core, while the others do theirs; bytes are those of the whole launch.

    Rounds are left out once two that follow each other took the same steps at the same distance.
    """
    more = 0
    while True:
        shown = chosen(blocks, core, rounds, more)
        timed = _simulated(launch, bench, blocks, shown)
        if timed.proven or len(timed.stream.lines) > _MOST:
            return timed
        more = 2 * more + 2


def _simulated(launch: Described, bench: Bench, blocks: Blocks, shown: list[Shown]) -> Timed:
    streams = [blocks.kinds[each.kind].stream for each in shown]
    stream = joined(streams)
    prices = priced(stream, bench)
    moved: list[Moved] = []
    parts: list[tuple[int, int]] = []
    before = 0
    for each, block in zip(shown, streams, strict=True):
        each.transfer = len(moved)
        parts.append((each.transfer, each.position))
        moved += [m._replace(job=m.job + before) for m in each.moved]
        each.first, before = before, before + len(block.jobs)
        if each.skipped:
            stream.folds.append(Fold(each.first, before, 1, each.skipped, of_blocks=True))
    load = load_of(moved, launch.arrays, bench.chip)
    load.parts = parts
    shared = settle(stream, bench.chip, bench.mhz, prices, load)
    times = shared.times
    times.busy = busy(stream, times, weights(stream).tolist())
    proven = all(
        not here.skipped or repeats(shared, here, after, len(jobs.jobs))
        for here, after, jobs in zip(shown, shown[1:], streams, strict=False)
    )
    return Timed(stream, prices, shared, load, shown, proven, left_out(stream, times))


def alone(stream: Stream, bench: Bench) -> float:
    """Cycles of the busiest pipe of a block, were everything in the cache and nobody else there."""
    cycles = [0.0] * len(stream.pipes)
    for job, each in zip(stream.jobs, priced(stream, bench), strict=True):
        nbytes = job.work.nbytes if isinstance(job.work, Transfer) else 0
        cycles[job.pipe] += each.start + max(each.least_hit, nbytes / (each.hit_rate or 1e12))
    return max(cycles, default=0.0)


def priced(stream: Stream, bench: Bench) -> list[Price]:
    """The price of every instruction; equal work costs the same."""
    known: dict[Any, Price] = {}
    prices: list[Price] = []
    for job in stream.jobs:
        work = job.work
        key = work._replace(region=None) if isinstance(work, Transfer) else work
        region = work.region if isinstance(work, Transfer) else None
        key = (key, None if region is None else region.passes_by)
        found = known.get(key)
        if found is None:
            found = known[key] = price(work, bench.costs)
        prices.append(found)
    return prices


def joined(streams: Sequence[Stream]) -> Stream:
    """Blocks that run on one core one after the other."""
    if len(streams) == 1:
        return streams[0]
    whole = Stream(sides=streams[0].sides, names=streams[0].names)
    numbers: dict[Track, int] = {}
    done: Counter[int] = Counter()  # instructions so far, by pipe
    for stream in streams:
        pipes = [numbers.setdefault(track, len(numbers)) for track in stream.pipes]
        first, before = len(whole.jobs), Counter(done)
        whole.jobs += [job._replace(pipe=pipes[job.pipe]) for job in stream.jobs]
        for kind, pipe, agent, job, after in stream.lines:
            if kind == FENCE:
                whole.lines.append(Line(kind, pipe, agent, job, after))
                continue
            to = pipes[pipe]
            moved = tuple((pipes[p], count + before[pipes[p]]) for p, count in after)
            whole.lines.append(Line(kind, to, agent, job + first if job >= 0 else -1, moved))
            done[to] += kind != ISSUED
        whole.folds += [
            fold._replace(first=fold.first + first, last=fold.last + first) for fold in stream.folds
        ]
        whole.lines += [Line(FENCE, -1, agent, -1, ()) for agent in range(len(stream.sides))]
    whole.pipes = list(numbers)
    return whole
