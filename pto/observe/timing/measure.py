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
        rounds_shown = chosen(blocks, core, rounds, more)
        timed = _simulated(launch, bench, blocks, rounds_shown)
        if timed.proven or len(timed.stream.lines) > _MOST:
            return timed
        more = 2 * more + 2


def _simulated(
    launch: Described, bench: Bench, blocks: LaunchBlocks, rounds_shown: list[Shown]
) -> TimedCore:
    streams = [blocks.kinds[round_of.kind].stream for round_of in rounds_shown]
    stream = joined(streams)
    prices = priced(stream, bench)
    moved: list[TransferLoad] = []
    parts: list[tuple[int, int]] = []
    before = 0
    for round_of, block in zip(rounds_shown, streams, strict=True):
        round_of.transfer = len(moved)
        parts.append((round_of.transfer, round_of.position))
        moved += [m._replace(job=m.job + before) for m in round_of.moved]
        round_of.first, before = before, before + len(block.jobs)
        if round_of.skipped:
            stream.folds.append(
                LoopFold(round_of.first, before, 1, round_of.skipped, of_blocks=True)
            )
    load = load_of(moved, launch.arrays, bench.chip)
    load.parts = parts
    shared = settle(stream, bench.chip, bench.mhz, prices, load)
    times = shared.times
    times.busy = busy(stream, times, weights(stream).tolist())
    proven = all(
        not here.skipped or repeats(shared, here, after, len(jobs.jobs))
        for here, after, jobs in zip(rounds_shown, rounds_shown[1:], streams, strict=False)
    )
    return TimedCore(stream, prices, shared, load, rounds_shown, proven, left_out(stream, times))


def alone(stream: RecordStream, bench: Bench) -> float:
    """Cycles of the busiest pipe of a block, with all data in the cache and no other core."""
    cycles = [0.0] * len(stream.pipes)
    for job, price_of in zip(stream.jobs, priced(stream, bench), strict=True):
        cycles[job.pipe] += price_of.alone(job.work)
    return max(cycles, default=0.0)


def priced(stream: RecordStream, bench: Bench) -> list[Price]:
    """The price of every instruction; equal work costs the same."""
    prices_by_work: dict[Any, Price] = {}
    prices: list[Price] = []
    for job in stream.jobs:
        work = job.work
        key = work._replace(region=None) if isinstance(work, TransferWork) else work
        region = work.region if isinstance(work, TransferWork) else None
        key = (key, None if region is None else region.passes_by)
        cached = prices_by_work.get(key)
        if cached is None:
            cached = prices_by_work[key] = price(work, bench.costs)
        prices.append(cached)
    return prices


def joined(streams: Sequence[RecordStream]) -> RecordStream:
    """The stream of blocks that run on one core one after the other."""
    if len(streams) == 1:
        return streams[0]
    result = RecordStream(sides=streams[0].sides, names=streams[0].names)
    numbers: dict[Track, int] = {}
    done: Counter[int] = Counter()  # instructions so far, by pipe
    for stream in streams:
        pipes = [numbers.setdefault(track, len(numbers)) for track in stream.pipes]
        first, before = len(result.jobs), Counter(done)
        result.jobs += [job._replace(pipe=pipes[job.pipe]) for job in stream.jobs]
        for kind, pipe, agent, job, after in stream.lines:
            if kind == FENCE:
                result.lines.append(RecordLine(kind, pipe, agent, job, after))
                continue
            to = pipes[pipe]
            moved = tuple((pipes[p], count + before[pipes[p]]) for p, count in after)
            result.lines.append(RecordLine(kind, to, agent, job + first if job >= 0 else -1, moved))
            done[to] += kind != ISSUED
        result.folds += [
            fold._replace(first=fold.first + first, last=fold.last + first) for fold in stream.folds
        ]
        result.lines += [RecordLine(FENCE, -1, agent, -1, ()) for agent in range(len(stream.sides))]
    result.pipes = list(numbers)
    return result
