"""From a launch to its `Timing`: how its blocks lie on the cores, and what the times say."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from pto.ir.graph import Operation
from pto.observe.timing import clock, result
from pto.observe.timing.chips import Bench
from pto.observe.timing.fold import left_out, weights
from pto.observe.timing.kinds import Described, blocks_of
from pto.observe.timing.measure import Timed, alone, time_core, traffic_of
from pto.observe.timing.result import Roofline, Timing, Waiting

_Wait = tuple[int, int, str]  # who, for whom, on which pipe
_CORES = 3  # that have most to do, whose times are computed; and of the most common sort
_LEAST = 0.05  # us that a wait takes to be told
_TRIED, _SHOWN = 5, 3  # waits: the longest, and those of them that cost most


def time_launch(launch: Described, bench: Bench, name: str, notes: tuple[str, ...] = ()) -> Timing:
    """How long a launch takes on a chip."""
    blocks = blocks_of(launch, bench)
    rounds = -(-launch.blocks // blocks.cores)
    sequences = Counter(blocks.sequence(core, launch.blocks) for core in range(blocks.cores))
    tried = list(sequences)
    if len(tried) > _CORES:
        work = [alone(kind.stream, bench) for kind in blocks.kinds]
        tried.sort(key=lambda kinds: -sum(work[which] for which in kinds))
        tried = list(dict.fromkeys([*tried[:_CORES], sequences.most_common(1)[0][0]]))
    traffic = traffic_of(launch, bench, blocks)
    timed = [time_core(launch, bench, blocks, sequence, traffic) for sequence in tried]
    slowest = max(timed, key=lambda t: t.shared.times.end + t.left_out)
    if blocks.asked < launch.blocks:
        notes = (*notes, f"{blocks.asked} of {launch.blocks} blocks were asked for their addresses")
    return _timing(launch, bench, name, slowest, blocks.cores, rounds, notes)


def _timing(
    launch: Described,
    bench: Bench,
    name: str,
    timed: Timed,
    cores: int,
    rounds: int,
    notes: tuple[str, ...],
) -> Timing:
    shared, stream, chip = timed.shared, timed.stream, bench.chip
    skipped = sum(fold.skipped for fold in stream.folds)
    if skipped:
        notes = (*notes, f"{skipped:,} iterations like others were not simulated one by one")
    end = shared.times.end + timed.left_out
    more = 1 + (rounds - timed.rounds) * timed.last / max(end, 1e-9)  # as long as the last one
    core_us = end * more / bench.mhz
    us = core_us + chip.launch_us
    busy = result.shares(stream, shared.times, us * bench.mhz / more)
    bound, runner_up = result.busiest(busy, shared.hbm_share, shared.l2_share)
    found = Timing(
        kernel=name,
        device=bench.device.name,
        blocks=launch.blocks,
        cores=cores,
        us=us,
        core_us=core_us,
        band=(us, core_us / chip.slowest + chip.launch_us),
        busy=busy,
        bound=bound,
        runner_up=runner_up,
        hbm_bytes=shared.hbm_bytes,
        l2_bytes=shared.l2_bytes,
        hbm_share=shared.hbm_share,
        l2_share=shared.l2_share,
        guessed=result.guessed_share(timed.prices, shared.times),
        waits=waits_of(timed, bench, more, rounds / timed.rounds),
        roofline=None,
        notes=notes,
        stream=stream,
        times=shared.times,
        prices=timed.prices,
        mhz=bench.mhz,
        load=timed.load,
        memory_rate=chip.hbm_read,
        l2_rate=chip.l2_read,
    )
    found.roofline = _roofline(launch, timed, bench, found)
    return found


def _roofline(launch: Described, timed: Timed, bench: Bench, t: Timing) -> Roofline | None:
    """All blocks; the peak is that of the matrix unit, were it to do these products alone."""
    block, cycles = result.products(timed.stream, bench.costs)
    if not block:
        return None
    work = block / timed.rounds * launch.blocks
    peak = t.cores * bench.mhz * 1e6 * block / cycles
    return Roofline(work, t.hbm_bytes, work / t.core_us * 1e6, peak, bench.chip.hbm_read)


def waits_of(timed: Timed, bench: Bench, more: float, rounds: float) -> list[Waiting]:
    """The longest waits of pipes for other pipes, with what it would save to have none.

    The run takes `more` times as long as what was simulated of it, and has `rounds` as many blocks.
    """
    times, stream = timed.shared.times, timed.stream
    weight = weights(stream)  # iterations that were left out wait as those that were not
    cycles, counts = defaultdict[_Wait, float](float), defaultdict[_Wait, float](float)
    ops: dict[int, Operation] = {}
    for job, why in enumerate(times.cause):
        if why < 0 or times.start[job] <= times.ready[job]:
            continue
        here, there = stream.jobs[job], stream.jobs[why]
        ops[id(here.op)], ops[id(there.op)] = here.op, there.op
        key = (id(here.op), id(there.op), stream.pipes[here.pipe].name)
        cycles[key] += (times.start[job] - times.ready[job]) * weight[job]
        counts[key] += weight[job]
    felt = [key for key in cycles if cycles[key] >= _LEAST * bench.mhz]
    longest = sorted(felt, key=lambda key: -cycles[key])[:_TRIED]
    found = [
        Waiting(
            *(ops[op], ops[behind], pipe),
            *(float(cycles[key] / bench.mhz * more), round(counts[key] * rounds)),
        )
        for key in longest
        for op, behind, pipe in (key,)
    ]
    tried = [replace(wait, saves_us=_saved(timed, bench, wait) * more) for wait in found]
    return sorted(tried, key=lambda wait: -wait.saves_us)[:_SHOWN]


def _saved(timed: Timed, bench: Bench, wait: Waiting) -> float:
    """The same run, with what was waited for done at once."""
    times = timed.shared.times
    jobs = timed.stream.jobs
    took = [b - a for a, b in zip(times.start, times.free, strict=True)]
    late = [b - a for a, b in zip(times.free, times.done, strict=True)]
    for n, job in enumerate(jobs):
        if job.op is wait.behind:
            took[n] = late[n] = 0.0
    again = clock.run(timed.stream, bench.chip, took, late)
    less = times.end + timed.left_out - again.end - left_out(timed.stream, again)
    return max(0.0, less / bench.mhz)
