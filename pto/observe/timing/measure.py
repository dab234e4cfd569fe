"""Times of the blocks that one core runs, while the other cores run theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pto.isa.cost.work import TransferWork
from pto.observe.timing.chips import Bench
from pto.observe.timing.fold import busy, left_out, weights
from pto.observe.timing.kinds import Described, LaunchBlocks
from pto.observe.timing.price import Price, price
from pto.observe.timing.rounds import Shown, chosen, repeats
from pto.observe.timing.shared import Load, SharedTimes, settle
from pto.observe.timing.stream import FENCE, ISSUED, LoopFold, RecordLine, RecordStream, Track
from pto.observe.timing.traffic import BlockRound, TransferLoad, load_of

_MOST = 200_000  # lines of a simulated run, beyond which rounds are not simulated to prove more


@dataclass(slots=True)
class TimedCore:
    """The blocks of one core, one after the other, with times on them."""

    stream: RecordStream
    prices: list[Price]
    shared: SharedTimes
    load: Load
    shown: list[Shown]
    proven: bool  # left-out rounds repeat exactly
    left_out: float  # cycles of rounds and iterations that were not simulated

    @property
    def cycles(self) -> float:
        return self.shared.times.end + self.left_out


def time_core(
    launch: Described, bench: Bench, blocks: LaunchBlocks, core: int, rounds: Sequence[BlockRound]
) -> TimedCore:
    """Time the blocks of one core while the other cores run theirs; bytes are of the whole launch.

    Rounds are left out once two consecutive ones took the same steps at the same distance.
    """
    more = 0
    while True:
        shown = chosen(blocks, core, rounds, more)
        timed = _simulated(launch, bench, blocks, shown)
        if timed.proven or len(timed.stream.lines) > _MOST:
            return timed
        more = 2 * more + 2


def _simulated(
    launch: Described, bench: Bench, blocks: LaunchBlocks, shown: list[Shown]
) -> TimedCore:
    streams = [blocks.kinds[each.kind].stream for each in shown]
    stream = joined(streams)
    prices = priced(stream, bench)
    moved: list[TransferLoad] = []
    parts: list[tuple[int, int]] = []
    before = 0
    for each, block in zip(shown, streams, strict=True):
        each.transfer = len(moved)
        parts.append((each.transfer, each.position))
        moved += [m._replace(job=m.job + before) for m in each.moved]
        each.first, before = before, before + len(block.jobs)
        if each.skipped:
            stream.folds.append(LoopFold(each.first, before, 1, each.skipped, of_blocks=True))
    load = load_of(moved, launch.arrays, bench.chip)
    load.parts = parts
    shared = settle(stream, bench.chip, bench.mhz, prices, load)
    times = shared.times
    times.busy = busy(stream, times, weights(stream).tolist())
    proven = all(
        not here.skipped or repeats(shared, here, after, len(jobs.jobs))
        for here, after, jobs in zip(shown, shown[1:], streams, strict=False)
    )
    return TimedCore(stream, prices, shared, load, shown, proven, left_out(stream, times))


def alone(stream: RecordStream, bench: Bench) -> float:
    """Cycles of the busiest pipe of a block, with all data in the cache and no other core."""
    cycles = [0.0] * len(stream.pipes)
    for job, each in zip(stream.jobs, priced(stream, bench), strict=True):
        cycles[job.pipe] += each.alone(job.work)
    return max(cycles, default=0.0)


def priced(stream: RecordStream, bench: Bench) -> list[Price]:
    """The price of every instruction; equal work costs the same."""
    known: dict[Any, Price] = {}
    prices: list[Price] = []
    for job in stream.jobs:
        work = job.work
        key = work._replace(region=None) if isinstance(work, TransferWork) else work
        region = work.region if isinstance(work, TransferWork) else None
        key = (key, None if region is None else region.passes_by)
        found = known.get(key)
        if found is None:
            found = known[key] = price(work, bench.costs)
        prices.append(found)
    return prices


def joined(streams: Sequence[RecordStream]) -> RecordStream:
    """The stream of blocks that run on one core one after the other."""
    if len(streams) == 1:
        return streams[0]
    whole = RecordStream(sides=streams[0].sides, names=streams[0].names)
    numbers: dict[Track, int] = {}
    done: Counter[int] = Counter()  # instructions so far, by pipe
    for stream in streams:
        pipes = [numbers.setdefault(track, len(numbers)) for track in stream.pipes]
        first, before = len(whole.jobs), Counter(done)
        whole.jobs += [job._replace(pipe=pipes[job.pipe]) for job in stream.jobs]
        for kind, pipe, agent, job, after in stream.lines:
            if kind == FENCE:
                whole.lines.append(RecordLine(kind, pipe, agent, job, after))
                continue
            to = pipes[pipe]
            moved = tuple((pipes[p], count + before[pipes[p]]) for p, count in after)
            whole.lines.append(RecordLine(kind, to, agent, job + first if job >= 0 else -1, moved))
            done[to] += kind != ISSUED
        whole.folds += [
            fold._replace(first=fold.first + first, last=fold.last + first) for fold in stream.folds
        ]
        whole.lines += [RecordLine(FENCE, -1, agent, -1, ()) for agent in range(len(stream.sides))]
    whole.pipes = list(numbers)
    return whole
