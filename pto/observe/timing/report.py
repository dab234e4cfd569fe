"""From a launch to its `Timing`: the assignment of blocks to cores, and the evaluation of times."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from pto.isa.cost.work import TransferWork, Work
from pto.observe.timing import clock, result
from pto.observe.timing.cache import State
from pto.observe.timing.chips import Bench
from pto.observe.timing.code import spread
from pto.observe.timing.fold import left_out, weights
from pto.observe.timing.interval import interval, terms_of
from pto.observe.timing.kinds import Described, LaunchBlocks, Sort, blocks_of
from pto.observe.timing.measure import TimedCore, alone, time_core
from pto.observe.timing.result import Cores, Roofline, Site, Timing, Waiting, site
from pto.observe.timing.stream import RecordStream, TimedJob
from pto.observe.timing.traffic import rounds_of

_Wait = tuple[Site, Site, str]  # waiting line, awaited line, pipe
_CORES = 3  # cores to time: the busiest, and of the most common sort
_LEAST = 0.05  # us of a wait that is reported
_NOTHING = 1e-3  # cycles
_TRIED, _SHOWN = 8, 3  # the longest waits, and the most costly of them


def time_launch(
    launch: Described,
    bench: Bench,
    name: str,
    notes: tuple[str, ...] = (),
    *,
    advice: bool = True,
    cache: State = "cold",
) -> Timing:
    """The time of a launch on a chip; with `advice` the longest waits too."""
    blocks = blocks_of(launch, bench)
    bench = bench.of_kind({s.side(n) for s in _streams(blocks) for n in range(len(s.sides))})
    sorts = blocks.sorts()
    simulated = _simulated(sorts, blocks, bench)
    rounds = rounds_of(launch, bench, blocks, cache)
    timed = [time_core(launch, bench, blocks, sort.cores[0], rounds) for sort in simulated]
    slowest = max(timed, key=lambda t: t.cycles)
    if blocks.asked < launch.blocks:
        notes = (
            *notes,
            f"the addresses of {blocks.asked:,} of {launch.blocks:,} blocks are known; the others"
            " are timed like the last of these",
        )
    timing = _timing(launch, bench, name, slowest, blocks, notes, cache)
    if advice:
        timing.waits = waits_of(slowest, bench)
    for sort, simulation in zip(simulated, timed, strict=True):
        drawn = timing if simulation is slowest else _core_of(timing, simulation)
        timing.groups.append(Cores(sort.cores, drawn))
    left = [core for sort in sorts if sort not in simulated for core in sort.cores]
    timing.groups += [Cores(left, None)] if left else []
    return timing


def _streams(blocks: LaunchBlocks) -> list[RecordStream]:
    return [kind.stream for kind in blocks.kinds]


def _simulated(sorts: list[Sort], blocks: LaunchBlocks, bench: Bench) -> list[Sort]:
    """The busiest sorts, and the most common of the rest."""
    if len(sorts) <= _CORES:
        return sorts
    work = [alone(kind.stream, bench) for kind in blocks.kinds]
    rest = sorted(sorts, key=lambda s: -sum(work[which] * n for which, n in s.kinds.items()))
    return [*rest[:_CORES], *sorted(rest[_CORES:], key=lambda s: -len(s.cores))[:1]]


def _core_of(launch: Timing, timed: TimedCore) -> Timing:
    """The times of another core of a launch, for its timeline."""
    return replace(
        launch,
        stream=timed.stream,
        times=timed.shared.times,
        prices=timed.prices,
        load=timed.load,
        shown=timed.shown,
        waits=[],
        groups=[],
    )


def _timing(
    launch: Described,
    bench: Bench,
    name: str,
    timed: TimedCore,
    blocks: LaunchBlocks,
    notes: tuple[str, ...],
    cache: State,
) -> Timing:
    stream = timed.stream
    times = timed.shared.times
    chip = bench.chip
    load = timed.load
    skipped = sum(fold.skipped for fold in stream.folds if not fold.of_blocks)
    if skipped:
        notes = (*notes, f"{skipped:,} iterations like others were not simulated one by one")
    if not timed.proven:
        notes = (*notes, "rounds of blocks do not repeat exactly: some were timed like others")
    core_us = timed.cycles / bench.mhz
    us = core_us + chip.launch_us
    code = spread(timed, chip)
    least, most = (cycles / bench.mhz + chip.launch_us for cycles in code[1:])
    if code.busiest:
        notes = (
            *notes,
            f"C++ between instructions takes {code.busiest / bench.mhz:.1f} us of a scalar unit,"
            f" estimated from its compiled code; if it takes half or twice that, the kernel takes"
            f" {least:.1f} or {most:.1f} us",
        )
    terms = terms_of(timed, chip, bench.mhz)
    busy = result.shares(stream, times, us * bench.mhz)
    often = weights(stream)[load.items]
    loads = (load.memory, load.lines, load.stored, load.written)
    hbm, l2, stored, written = (float((load_values * often).sum()) for load_values in loads)
    seconds = max(core_us / 1e6, 1e-12)
    hbm_share = float(max((load.seconds * often).sum(), (load.new * often).sum())) / seconds
    l2_share = l2 / seconds / chip.l2_read
    bound, runner_up = result.busiest(busy, hbm_share, l2_share)
    timing = Timing(
        kernel=name,
        device=bench.device.name,
        blocks=launch.blocks,
        cores=blocks.cores,
        us=us,
        core_us=core_us,
        band=interval(us, terms, (least, most), chip.slowest),
        busy=busy,
        bound=bound,
        runner_up=runner_up,
        hbm_bytes=hbm,
        l2_bytes=l2,
        stored_bytes=stored,
        kept_bytes=max(0.0, stored - written),
        l2_capacity=bench.l2_bytes,
        hbm_share=hbm_share,
        l2_share=l2_share,
        guessed=result.guessed_share(timed.prices, times),
        waits=[],
        roofline=None,
        terms=terms,
        notes=notes,
        cache=cache,
        kind=bench.kind,
        costs=bench.costs,
        stream=stream,
        times=times,
        prices=timed.prices,
        mhz=bench.mhz,
        load=load,
        shown=timed.shown,
        rounds=blocks.rounds,
        l2_rate=chip.l2_read,
    )
    timing.roofline = _roofline(launch, timed, bench, timing)
    return timing


def _roofline(launch: Described, timed: TimedCore, bench: Bench, t: Timing) -> Roofline | None:
    """The roofline of all blocks; the peak is the matrix unit's for these products alone."""
    core, cycles = result.products(timed.stream, bench.costs)
    if not core:
        return None
    mine = sum(1 + part.skipped for part in timed.shown)
    work = core / mine * launch.blocks
    peak = t.cores * bench.mhz * 1e6 * core / cycles
    return Roofline(work, t.hbm_bytes, work / t.core_us * 1e6, peak, bench.chip.hbm_read)


def waits_of(timed: TimedCore, bench: Bench) -> list[Waiting]:
    """The longest waits of pipes for other pipes, with the time that no wait would save."""
    times, stream = timed.shared.times, timed.stream
    weight = weights(stream)  # left-out iterations wait as recorded ones do
    cycles, counts = defaultdict[_Wait, float](float), defaultdict[_Wait, float](float)
    longest: dict[_Wait, tuple[TimedJob, TimedJob]] = {}
    for job, why in enumerate(times.cause):
        if why < 0 or times.start[job] <= times.ready[job] + _NOTHING:
            continue
        here, there = stream.jobs[job], stream.jobs[why]
        key = (site(here.op), site(there.op), stream.pipes[here.pipe].name)
        longest.setdefault(key, (here, there))
        cycles[key] += (times.start[job] - times.ready[job]) * weight[job]
        counts[key] += weight[job]
    felt = [key for key in cycles if cycles[key] >= _LEAST * bench.mhz]
    tried: list[Waiting] = []
    saved: dict[Site, float] = {}
    for key in sorted(felt, key=lambda key: -cycles[key])[:_TRIED]:
        here, there = longest[key]
        us, often = float(cycles[key] / bench.mhz), round(counts[key])
        wait = Waiting(here.op, there.op, key[2], us, often, _what(there.work))
        if key[1] not in saved:
            saved[key[1]] = _saved(timed, bench, key[1])
        tried.append(replace(wait, saves_us=saved[key[1]]))
    return sorted(tried, key=lambda wait: -wait.saves_us)[:_SHOWN]


def _what(work: Work) -> str:
    if isinstance(work, TransferWork) and work.region is not None:
        return "store" if work.region.writes else "load"
    return ""


def _saved(timed: TimedCore, bench: Bench, behind: Site) -> float:
    """The time saved if the awaited instruction took no time, at every occurrence."""
    times = timed.shared.times
    jobs = timed.stream.jobs
    took = [b - a for a, b in zip(times.start, times.free, strict=True)]
    late = [b - a for a, b in zip(times.free, times.done, strict=True)]
    for n, job in enumerate(jobs):
        if site(job.op) == behind:
            took[n] = late[n] = 0.0
    again = clock.run(timed.stream, bench.chip, took, late)
    less = timed.cycles - again.end - left_out(timed.stream, again)
    return max(0.0, less / bench.mhz)
