"""The time axis of a launch: the simulated instructions, and the gaps between them.

Rounds of blocks and iterations of loops that repeat earlier ones are timed once. On the axis they
are a gap with the time of all of them, which names them and counts the work of each pipe.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pto.observe.timing.clock import Times
from pto.observe.timing.fold import busy, gaps
from pto.observe.timing.result import Timing
from pto.observe.timing.rounds import Shown
from pto.observe.timing.stream import LoopFold

_FEW = 6  # items of a list that are all named


@dataclass(slots=True)
class AxisGap:
    """Work that repeats other work and is not drawn; in cycles."""

    begin: float
    end: float
    text: str
    agents: list[int]
    busy: list[float] = field(default_factory=list[float])  # by pipe
    waits: list[float] = field(default_factory=list[float])
    counts: list[float] = field(default_factory=list[float])


@dataclass(slots=True)
class TimeAxis:
    """Times of every instruction on the axis of the whole launch, and the gaps on it; in cycles."""

    start: list[float]
    free: list[float]
    done: list[float]
    ready: list[float]
    end: float
    gaps: list[AxisGap]


def axis(timing: Timing) -> TimeAxis:
    stream, times = timing.stream, timing.times
    assert times is not None
    left = gaps(stream, times)
    agent_of = [stream.pipes[job.pipe].agent for job in stream.jobs]
    shift = [0.0] * len(stream.jobs)
    for job, agent in enumerate(agent_of):
        shift[job] = sum(cycles for at, cycles in left[agent] if at <= job)

    def moved(cycles: Sequence[float]) -> list[float]:
        return [value + shift[n] for n, value in enumerate(cycles)]

    end = times.end + max((sum(c for _, c in gaps_of_agent) for gaps_of_agent in left), default=0.0)
    axis_gaps = _gaps(timing, times, left, agent_of, shift)
    return TimeAxis(
        moved(times.start), moved(times.free), moved(times.done), moved(times.ready), end, axis_gaps
    )


def _gaps(
    timing: Timing,
    times: Times,
    left: list[list[tuple[int, float]]],
    agent_of: list[int],
    shift: list[float],
) -> list[AxisGap]:
    stream = timing.stream
    weight, taken = np.ones(len(stream.jobs)), [0] * len(left)
    out: list[AxisGap] = []
    for fold in stream.folds:
        first = agent_of[fold.first]
        agents = list(range(len(left))) if fold.of_blocks else [first]
        cycles = left[first][taken[first]][1]
        for agent in agents:
            taken[agent] += 1
        after = min(fold.last, len(stream.jobs) - 1)
        end = times.start[after] + shift[after]
        gap = AxisGap(end - cycles, end, _text(timing, fold), agents)
        more = weight[fold.first : fold.last] * fold.skipped / fold.iterations
        weight[fold.first : fold.last] += more
        gap.busy = busy(stream, times, more.tolist(), fold.first)
        gap.waits, gap.counts = ([0.0] * len(stream.pipes) for _ in range(2))
        for n, often in enumerate(more.tolist(), fold.first):
            pipe = stream.jobs[n].pipe
            gap.counts[pipe] += often
            if times.cause[n] >= 0:
                gap.waits[pipe] += max(0.0, times.start[n] - times.ready[n]) * often
        out.append(gap)
    return out


def _text(timing: Timing, fold: LoopFold) -> str:
    if not fold.of_blocks:
        return f"{fold.skipped:,} iterations like those before"
    here = next(part for part in timing.shown if part.first == fold.first)
    return f"{_span('round', here.number + 1, here.skipped)} as round {here.number + 1}"


def _span(word: str, before: int, count: int) -> str:
    """So many after number `before`, counted from 1."""
    first, last = before + 1, before + count
    return f"{word} {first:,}" if count == 1 else f"{word}s {first:,} to {last:,}"


def drawn(timing: Timing) -> str:
    """The blocks and rounds of which instructions are drawn, as a sentence."""
    rounds_drawn = timing.shown
    if not rounds_drawn:
        return ""
    core = rounds_drawn[0].block % timing.cores
    blocks = f"of {timing.blocks:,} blocks on {timing.cores} cores"
    if timing.rounds == 1 and len(rounds_drawn) == 1:
        return f"drawn: block {rounds_drawn[0].block} {blocks}"
    repeated = [
        f"{_span('round', part.number + 1, part.skipped)} as round {part.number + 1}"
        for part in rounds_drawn
        if part.skipped
    ]
    rest = f"; repeated, not drawn: {_listed(repeated)}" if repeated else ""
    numbers = [part.number + 1 for part in rounds_drawn]
    return (
        f"drawn: core {core} with rounds {_runs(numbers)} of"
        f" {timing.rounds:,} ({_blocks(rounds_drawn)} {blocks}){rest}"
    )


def agents(timing: Timing) -> list[str]:
    """Names of lanes: the block where one is drawn, the core where it runs several."""
    if not timing.shown:
        return timing.stream.names
    block = timing.shown[0].block
    name = f"block {block}" if len(timing.shown) == 1 else f"core {block % timing.cores}"
    return [re.sub(r"block \d+", name, name_of) for name_of in timing.stream.names]


def _blocks(rounds_drawn: Sequence[Shown]) -> str:
    numbers = [f"{part.block:,}" for part in rounds_drawn]
    return f"block{'s' if len(numbers) > 1 else ''} {_listed(numbers)}"


def _listed(items: Sequence[str]) -> str:
    """All of a few, else the first ones and the last; the gaps on the axis name each."""
    return ", ".join(items if len(items) <= _FEW else [*items[:3], "...", items[-1]])


def _runs(numbers: Sequence[int]) -> str:
    """1, 2, 3 and 6 as `1-3, 6`."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return _listed([f"{run[0]:,}" if len(run) == 1 else f"{run[0]:,}-{run[-1]:,}" for run in runs])
