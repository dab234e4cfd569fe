"""Times a launch: records a block of each kind without its data, then puts times on the record."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pto.ir.graph import Module, Operation
from pto.isa.cost.work import Region, Transfer
from pto.observe.timing.cache import LINE, SECTOR, Cache
from pto.observe.timing.chips import Bench
from pto.observe.timing.fold import Folded, Unsteady, busy, left_out, weights
from pto.observe.timing.kinds import Blocks, Described, regions_of
from pto.observe.timing.price import Price, price
from pto.observe.timing.shared import Load, Shared, settle
from pto.observe.timing.stream import FENCE, ISSUED, Line, Recording, Stream, Track
from pto.run.launch.prepared import Kernel
from pto.run.machine.agents import Agent, take_turns
from pto.run.machine.core import Cluster
from pto.run.machine.device import Device
from pto.run.watch.events import Tap
from pto.run.watch.outline import Addresses, Outline, meets_others, needs_registers
from pto.target.costs import Chip
from pto.target.facts import Profile

_BLOCK = 32  # bytes


@dataclass(slots=True)
class Launch:
    """A launch of a program, described block by block."""

    module: Module
    functions: Sequence[Operation]
    profile: Profile
    args: Sequence[Any]
    blocks: int
    data: bool = False
    whole: bool = False  # loops are described to their end
    _folded: bool = False

    def record(self, number: int) -> Stream:
        recording = Recording(self.profile.sync)
        registers = needs_registers(self.functions)
        if self.whole or self.data or meets_others(self.functions):
            self._run(Outline(recording, data=self.data, registers=registers), number)
        else:
            try:
                self._run(Folded(recording, registers=registers), number)
            except Unsteady:
                self.whole = True
                return self.record(number)
        recording.end()
        self._folded = bool(recording.stream.folds)
        return recording.stream

    def regions(self, number: int) -> list[Region]:
        if self.data or self._folded or meets_others(self.functions):
            return regions_of(self.record(number))
        tap = Addresses(registers=needs_registers(self.functions))
        self._run(tap, number)
        return tap.regions

    def _run(self, tap: Tap, number: int) -> None:
        device = Device(self.profile)
        device.watch(tap)
        kernel = Kernel(self.module, self.functions, self.profile, tap)
        values = device.values(kernel, self.args)
        waiting = [number]

        def start() -> list[Agent]:
            if not waiting:
                return []
            cluster = Cluster(device, waiting.pop(), self.blocks)
            return kernel.agents(cluster, values, lambda: None)

        with np.errstate(all="ignore"):
            take_turns(start)

    @property
    def arrays(self) -> list[tuple[int, int]]:
        found = [a for a in self.args if isinstance(a, np.ndarray)]
        return [(a.ctypes.data, a.nbytes) for a in found]


@dataclass(slots=True)
class Timed:
    """The blocks of one core, one after the other, with times on them."""

    stream: Stream
    prices: list[Price]
    shared: Shared
    load: Load
    rounds: int
    last: float  # cycles of the last round
    left_out: float  # cycles of iterations that were not simulated


def time_core(
    launch: Described, bench: Bench, blocks: Blocks, sequence: Sequence[int], traffic: Rounds
) -> Timed:
    """The blocks of one core, while the others do theirs; bytes are those of the whole launch."""
    left = -(-launch.blocks // blocks.cores) - len(sequence)  # rounds like the last of these
    streams = [blocks.kinds[which].stream for which in sequence]
    stream = joined(streams)
    prices = priced(stream, bench)
    moved: list[Moved] = []
    before = 0
    for n, which in enumerate(sequence):
        moved += [each._replace(job=each.job + before) for each in traffic[n][which]]
        before += len(streams[n].jobs)
    load = _load(moved, launch.arrays, bench.chip)
    load.drifts = left > 2 * len(sequence)
    shared = settle(stream, bench.chip, bench.mhz, prices, load)
    times = shared.times
    weight = weights(stream)
    if stream.folds:
        times.busy = busy(stream, times, weight.tolist())
    before = len(stream.jobs) - len(streams[-1].jobs)
    often = weight[load.items] * np.where(load.items >= before, 1 + left, 1)
    shared.hbm_bytes = float((load.memory * often).sum())
    shared.l2_bytes = float((load.lines * often).sum())
    last = times.end - max(times.done[:before], default=0.0) + left_out(stream, times, before)
    return Timed(stream, prices, shared, load, len(sequence), last, left_out(stream, times))


def alone(stream: Stream, bench: Bench) -> float:
    """Cycles of the busiest pipe of a block, were everything in the cache and nobody else there."""
    cycles = [0.0] * len(stream.pipes)
    for job, each in zip(stream.jobs, priced(stream, bench), strict=True):
        nbytes = job.work.nbytes if isinstance(job.work, Transfer) else 0
        cycles[job.pipe] += each.start + max(each.least_hit, nbytes / (each.hit_rate or 1e12))
    return max(cycles, default=0.0)


class Moved(NamedTuple):
    """A transfer of one core, and what the others do at the same time."""

    job: int
    region: Region
    cores: int  # that make it, or the like
    missed: float  # share that is not in the cache
    memory: float  # bytes, of all cores
    alike: float  # cores that want the same bytes


Rounds = list[dict[int, list[Moved]]]  # what blocks of each kind move, round by round


def traffic_of(launch: Described, bench: Bench, blocks: Blocks) -> Rounds:
    """Every transfer of a launch that comes after one of its like."""
    shortest = min(
        (r.row_bytes for kind in blocks.kinds for r in regions_of(kind.stream)), default=LINE
    )
    cache = Cache(bench.l2_bytes, launch.arrays, LINE if shortest >= LINE else SECTOR)
    rounds = -(-launch.blocks // blocks.cores)
    _through(cache, blocks, rounds)
    cache.forget_inputs()
    return _through(cache, blocks, rounds)


def _through(cache: Cache, blocks: Blocks, rounds: int) -> Rounds:
    """All blocks of a round at a time, each with its first transfer, then its second, ...

    The last round that is simulated stands for all that follow.
    """
    transfers = [_transfers(kind.stream) for kind in blocks.kinds]
    often = [weights(kind.stream) for kind in blocks.kinds]
    found: Rounds = []
    for n in range(blocks.rounds):
        left = max(1, rounds - n) if n == blocks.rounds - 1 else 1
        here = range(n * blocks.cores, (n + 1) * blocks.cores)
        places = {
            which: np.stack(mine)
            for which, kind in enumerate(blocks.kinds)
            if (mine := [starts for block, starts in kind.blocks.items() if block in here])
        }
        moved: dict[int, list[Moved]] = {which: [] for which in places}
        for i in range(max((len(transfers[which]) for which in places), default=0)):
            groups: dict[Any, list[int]] = defaultdict(list)  # kinds that move the like
            for which in places:
                if i < len(transfers[which]):
                    region = transfers[which][i][1]
                    groups[cache.array_of(region), region[1:]].append(which)
            running = sum(len(places[which]) for kinds in groups.values() for which in kinds)
            for kinds in groups.values():
                addresses = np.concatenate([places[which][:, i] for which in kinds])
                job, region = transfers[kinds[0]][i]
                each = cache.transfer(region, addresses, float(often[kinds[0]][job]) * left)
                memory = each.memory_bytes * running / addresses.size
                for which in kinds:
                    job, region = transfers[which][i]
                    moved[which].append(
                        Moved(job, region, running, each.missed, memory, each.alike)
                    )
        found.append(moved)
    return found


def _transfers(stream: Stream) -> list[tuple[int, Region]]:
    """The jobs that move to or from global memory, and what."""
    return [
        (number, job.work.region)
        for number, job in enumerate(stream.jobs)
        if isinstance(job.work, Transfer) and job.work.region is not None
    ]


def _load(traffic: list[Moved], arrays: list[tuple[int, int]], chip: Chip) -> Load:
    starts = sorted(start for start, _ in arrays)
    padded = np.array([_padding(each.region, starts, chip.unaligned) for each in traffic])
    lines, sectors = (
        np.array([_given(each.region, unit) for each in traffic]) * padded
        for unit in (LINE, SECTOR)
    )
    past = np.array([each.region.rows * each.cores * each.region.passes_by for each in traffic])
    return Load(
        np.array([each.job for each in traffic], np.int64),
        np.array([float(each.region.nbytes) for each in traffic]) * padded,
        np.array([each.missed for each in traffic]),
        np.array([each.memory for each in traffic]) * padded + past * chip.past_row,
        np.array([each.region.writes for each in traffic], bool),
        sectors * np.array([each.cores for each in traffic]),
        lines * np.array([each.alike for each in traffic]),
    )


def _given(region: Region, unit: int) -> float:
    """Bytes of whole units that the L2 cache gives for a load, whose rows may be shorter."""
    if region.writes:
        return 0.0
    if region.pitch == region.row_bytes:
        return float(region.nbytes)
    return float(region.rows * max(unit, region.row_bytes))


def _padding(region: Region, starts: list[int], unaligned: int) -> float:
    """How much more a transfer moves whose rows do not begin at a block; arrays begin at one."""
    at = bisect(starts, region.address) - 1
    offset = region.address - starts[at] if at >= 0 else 0
    off = offset % _BLOCK or (region.rows > 1 and region.pitch % _BLOCK)
    return 1.0 + unaligned / region.row_bytes if off and not region.writes else 1.0


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
