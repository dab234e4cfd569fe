"""Times a launch: records one block of each kind without its data, then puts times on the record.

Blocks whose transfers have the same shapes in the same order are of one kind; where theirs begin is
asked of each block, since cores share what the L2 cache holds.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pto.ir.graph import Module, Operation
from pto.isa.cost.work import Region, Transfer
from pto.observe.timing.cache import LINE, Cache
from pto.observe.timing.chips import Bench
from pto.observe.timing.price import Price, price
from pto.observe.timing.shared import Load, Shared, settle
from pto.observe.timing.stream import FENCE, Line, Recording, Stream, Track
from pto.run.launch.prepared import Kernel
from pto.run.machine.agents import Agent, take_turns
from pto.run.machine.core import Cluster
from pto.run.machine.device import Device
from pto.run.watch.events import Tap
from pto.run.watch.outline import Addresses, Outline, meets_others, needs_registers
from pto.target.facts import Profile

_CUBE = frozenset({"M", "MTE1", "FIX"})
ROUNDS = 4  # of blocks on a core that are simulated; the others take as long as the last of these
_BLOCK = 32  # bytes
_ASKED = 512  # blocks that are asked where their transfers begin


class Described(Protocol):
    """A launch that can be asked block by block what it would do."""

    @property
    def blocks(self) -> int: ...

    @property
    def arrays(self) -> list[tuple[int, int]]:
        """Where its arrays lie, and their bytes."""
        ...

    def record(self, number: int) -> Stream:
        """The stream of a block."""
        ...

    def regions(self, number: int) -> list[Region]:
        """What a block transfers, in order."""
        ...


@dataclass(slots=True)
class Launch:
    """A launch of a program, described block by block."""

    module: Module
    functions: Sequence[Operation]
    profile: Profile
    args: Sequence[Any]
    blocks: int
    data: bool = False

    def record(self, number: int) -> Stream:
        recording = Recording(self.profile.sync)
        registers = needs_registers(self.functions)
        self._run(Outline(recording, data=self.data, registers=registers), number)
        recording.end()
        return recording.stream

    def regions(self, number: int) -> list[Region]:
        if self.data or meets_others(self.functions):
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


def regions_of(stream: Stream) -> list[Region]:
    works = (job.work for job in stream.jobs)
    return [w.region for w in works if isinstance(w, Transfer) and w.region is not None]


@dataclass(slots=True)
class Kind:
    """Blocks that do the same at other addresses."""

    stream: Stream
    blocks: dict[int, list[int]]  # where the transfers of each begin


def kinds_of(launch: Described) -> tuple[list[Kind], bool]:
    """Every kind of block of a launch; False when there were too many to ask all."""
    found: dict[tuple[Any, ...], Kind] = {}
    asked = range(min(launch.blocks, _ASKED))
    for number in asked:
        regions = launch.regions(number)
        shape = tuple(region[1:] for region in regions)
        kind = found.get(shape)
        if kind is None:
            kind = found[shape] = Kind(launch.record(number), {})
        kind.blocks[number] = [region.address for region in regions]
    return list(found.values()), len(asked) == launch.blocks


def cores_for(stream: Stream, bench: Bench) -> int:
    """How many blocks run side by side; code without a matrix unit runs on the vector cores."""
    if "cube" in stream.sides or _CUBE & {pipe.name for pipe in stream.pipes}:
        return bench.device.cube_cores
    return bench.device.vector_cores // max(1, len(stream.sides))


@dataclass(slots=True)
class Timed:
    """The blocks of one core, one after the other, with times on them."""

    stream: Stream
    prices: list[Price]
    shared: Shared
    rounds: int
    load: Load


def time_core(launch: Described, bench: Bench, kinds: list[Kind], sequence: Sequence[int]) -> Timed:
    """The blocks of one core, while the others do the like."""
    cores = min(cores_for(kinds[0].stream, bench), launch.blocks)
    shortest = min((r.row_bytes for kind in kinds for r in regions_of(kind.stream)), default=LINE)
    line = LINE if shortest >= LINE else LINE // 4
    cache = Cache(bench.l2_bytes, launch.arrays, line)
    traffic_of(cache, kinds, sequence, cores)
    cache.forget_inputs()
    traffic = traffic_of(cache, kinds, sequence, cores)
    stream = joined([kinds[which].stream for which in sequence])
    prices = priced(stream, bench)
    load = _load(stream, traffic, cores, launch.arrays, bench.chip.unaligned)
    shared = settle(stream, bench.chip, bench.mhz, prices, load)
    return Timed(stream, prices, shared, len(sequence), load)


def traffic_of(
    cache: Cache, kinds: list[Kind], sequence: Sequence[int], cores: int
) -> list[tuple[int, float, float]]:
    """For every transfer of one core: its job, the share that misses, bytes of memory for all."""
    traffic: list[tuple[int, float, float]] = []
    jobs = 0
    for n, which in enumerate(sequence):
        kind = kinds[which]
        together = [b for b in kind.blocks if n * cores <= b < (n + 1) * cores] or list(kind.blocks)
        share = cores / max(1, len(together))
        at = 0
        for number, job in enumerate(kind.stream.jobs):
            if not isinstance(job.work, Transfer) or job.work.region is None:
                continue
            found = cache.transfer(job.work.region, [kind.blocks[b][at] for b in together])
            traffic.append((jobs + number, found.missed, found.memory_bytes * share))
            at += 1
        jobs += len(kind.stream.jobs)
    return traffic


def _load(
    stream: Stream,
    traffic: list[tuple[int, float, float]],
    cores: int,
    arrays: list[tuple[int, int]],
    unaligned: int,
) -> Load:
    items = np.array([job for job, _, _ in traffic], np.int64)
    works = [stream.jobs[job].work for job in items]
    regions = [w.region for w in works if isinstance(w, Transfer) and w.region is not None]
    starts = sorted(start for start, _ in arrays)
    padded = np.array([_padding(region, starts, unaligned) for region in regions])
    return Load(
        items,
        np.array([float(region.nbytes) for region in regions]) * padded,
        np.array([missed for _, missed, _ in traffic]),
        np.array([memory for _, _, memory in traffic]) * padded,
        cores,
        np.array([region.writes for region in regions], bool),
        np.array([_lines(region) for region in regions]) * padded,
    )


def _lines(region: Region) -> float:
    """Bytes that the L2 cache gives for a load: of rows that are shorter than a line, all of it."""
    if region.writes:
        return 0.0
    if region.pitch == region.row_bytes:
        return float(region.nbytes)
    return float(region.rows * max(LINE, region.row_bytes))


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
        is_global = isinstance(work, Transfer) and work.region is not None
        found = known.get((key, is_global))
        if found is None:
            found = known[(key, is_global)] = price(work, bench.costs)
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
            done[to] += kind != 0
        whole.lines += [Line(FENCE, -1, agent, -1, ()) for agent in range(len(stream.sides))]
    whole.pipes = list(numbers)
    return whole
