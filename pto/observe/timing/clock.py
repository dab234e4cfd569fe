"""Times of a recorded run: when each instruction is issued, starts and is done.

The scalar unit issues in program order and stalls at a full queue; a pipe starts its instructions
in order, each when what it comes after is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pto.observe.timing.stream import BOTH, FENCE, ISSUED, STARTED, Stream
from pto.target.costs import Chip

PIPE, ISSUE = -1, -2  # why an instruction did not start before: its own pipe, its issue


@dataclass(slots=True)
class Times:
    """Of every instruction with work, in cycles; and the end of the run."""

    issued: list[float]
    start: list[float]
    free: list[float]
    done: list[float]
    ready: list[float]  # when its pipe was free for it and it was issued
    cause: list[int]  # the instruction it waited for, PIPE or ISSUE
    before: list[int]  # the instruction that let it start, -1: none
    busy: list[float] = field(default_factory=list[float])  # by pipe
    end: float = 0.0


def run(stream: Stream, chip: Chip, occupancy: Sequence[float], latency: Sequence[float]) -> Times:
    """One pass over the record."""
    jobs, pipes = len(stream.jobs), len(stream.pipes)
    zeros = [0.0] * jobs
    times = Times([*zeros], [*zeros], [*zeros], [*zeros], [*zeros], [ISSUE] * jobs, [-1] * jobs)
    times.busy = [0.0] * pipes
    now = [0.0] * len(stream.sides)  # of the scalar units
    free = [0.0] * pipes
    over: list[list[float]] = [[0.0] for _ in range(pipes)]  # by pipe: the first n are all done
    last: list[list[int]] = [[-1] for _ in range(pipes)]  # by pipe: the job done last of these
    starts: list[list[float]] = [[] for _ in range(pipes)]
    issues = [0] * pipes
    held: list[tuple[float, int]] = [(-1.0, PIPE)] * pipes  # by a wait: since when, for what
    # scalar units that waited: since when, until when, for what
    stall: list[tuple[float, float, int]] = [(0.0, -1.0, ISSUE)] * len(stream.sides)
    owner = [pipe.agent for pipe in stream.pipes]
    scalar = [pipe.name == "S" for pipe in stream.pipes]
    mine: list[list[int]] = [[] for _ in stream.sides]
    for n, who in enumerate(owner):
        mine[who].append(n)
    depth, step, flag, cross = chip.queue_depth, chip.issue, chip.flag, chip.cross_core
    issued, start, done, freed = times.issued, times.start, times.done, times.free

    for kind, pipe, agent, job, after in stream.lines:
        if kind == FENCE:
            at = max([now[agent], *(max(free[p], over[p][-1]) for p in mine[agent])])
            now[agent] = at
            for p in mine[agent]:
                free[p] = at
            continue
        if kind != STARTED:
            at = now[agent] + step
            full = issues[pipe] - depth
            if full >= 0 and starts[pipe][full] > at:
                at = starts[pipe][full]
            now[agent] = at
            issues[pipe] += 1
            if job >= 0:
                issued[job] = at
            if kind == ISSUED:
                continue
        at, why = free[pipe], PIPE
        if job >= 0 and issued[job] > at:
            at, why = issued[job], ISSUE
        elif job < 0 and kind == BOTH and now[agent] > at:
            at = now[agent]
        ready, (since, whom) = at, held[pipe]
        for other, count in after:
            when = over[other][count]
            if other != pipe:
                when += flag if owner[other] == agent else cross
            if when > at:
                at, why = when, last[other][count]
        starts[pipe].append(at)
        before = over[pipe][-1]
        if job < 0:
            free[pipe] = at
            over[pipe].append(max(before, at))
            last[pipe].append(why if why >= 0 and at > before else last[pipe][-1])
            if at > ready and why >= 0:
                held[pipe] = (since if since >= 0 else ready, why)
            if scalar[pipe] and at > now[agent]:
                if why >= 0:
                    stall[agent] = (now[agent], at, why)
                now[agent] = at
            continue
        if since >= 0:
            held[pipe] = (-1.0, PIPE)
            if why == PIPE:
                ready, why = since, whom
        if why == ISSUE and stall[agent][1] > free[pipe]:
            began, _, why = stall[agent]
            ready = max(free[pipe], began)
        start[job], times.ready[job], times.cause[job] = at, ready, why
        times.before[job] = why if why >= 0 else last[pipe][-1]
        end = at + occupancy[job]
        free[pipe] = freed[job] = end
        if scalar[pipe] and end > now[agent]:
            now[agent] = end
        end += latency[job]
        done[job] = end
        times.busy[pipe] += max(0.0, end - max(at, before))
        over[pipe].append(max(end, before))
        last[pipe].append(job if end >= before else last[pipe][-1])
    times.end = max([0.0, *now, *free, *(each[-1] for each in over)])
    return times
