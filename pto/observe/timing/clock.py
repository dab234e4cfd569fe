"""Times of a recorded run: when each instruction is issued, starts and is done.

The scalar unit issues in program order and stalls at a full queue; a pipe starts its instructions
in order, each when everything it follows is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pto.observe.timing.stream import FENCE, ISSUED, STARTED, RecordStream
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


@dataclass(slots=True, eq=False)
class _Unit:
    """The scalar unit of an agent."""

    now: float = 0.0
    pipes: list[_Pipe] = field(default_factory=list["_Pipe"])
    stall: tuple[float, float, int] = (0.0, -1.0, ISSUE)  # its last stall: start, end, cause

    def fence(self) -> None:
        """Nothing after it is issued or starts before everything before it is done."""
        self.now = max([self.now, *(max(pipe.free, pipe.over[-1]) for pipe in self.pipes)])
        for pipe in self.pipes:
            pipe.free = self.now


@dataclass(slots=True, eq=False)
class _Pipe:
    """A pipe, after so many of its instructions."""

    unit: _Unit
    is_scalar: bool
    free: float = 0.0
    busy: float = 0.0
    issues: int = 0
    starts: list[float] = field(default_factory=list[float])
    over: list[float] = field(default_factory=lambda: [0.0])  # when the first n are all done
    last: list[int] = field(default_factory=lambda: [-1])  # the job done last of these
    held: tuple[float, int] = (-1.0, PIPE)  # by a wait: since when, for what

    def issue(self, chip: Chip) -> float:
        """Put an instruction into the queue as soon as there is a free entry; returns the time."""
        at = self.unit.now + chip.issue
        full = self.issues - chip.queue_depth
        if full >= 0 and self.starts[full] > at:
            at = self.starts[full]
        self.issues += 1
        self.unit.now = at
        return at

    def order(self, at: float, ready: float, why: int) -> None:
        """An ordering instruction ends when it starts; its wait delays later instructions."""
        before, unit = self.over[-1], self.unit
        self.free = at
        self.over.append(max(before, at))
        self.last.append(why if why >= 0 and at > before else self.last[-1])
        if at > ready and why >= 0:
            self.held = (self.held[0] if self.held[0] >= 0 else ready, why)
        if self.is_scalar and at > unit.now:
            if why >= 0:
                unit.stall = (unit.now, at, why)
            unit.now = at

    def reason(self, ready: float, why: int) -> tuple[float, int]:
        """Since when the next job has waited and for what, including the waits before it."""
        since, whom = self.held
        if since >= 0:
            self.held = (-1.0, PIPE)
            if why == PIPE:
                return since, whom
        began, until, cause = self.unit.stall
        if why == ISSUE and until > self.free:
            return max(self.free, began), cause
        return ready, why

    def work(self, job: int, at: float, free: float, latency: float) -> float:
        """Start a job; returns when it is done."""
        before = self.over[-1]
        self.free = free
        if self.is_scalar and self.free > self.unit.now:
            self.unit.now = self.free
        done = self.free + latency
        self.busy += max(0.0, done - max(at, before))
        self.over.append(max(done, before))
        self.last.append(job if done >= before else self.last[-1])
        return done


def run(
    stream: RecordStream,
    chip: Chip,
    occupancy: Sequence[float],
    latency: Sequence[float],
    floor: Sequence[float] = (),
) -> Times:
    """One pass over the record; `floor`: when each job leaves its pipe at the earliest."""
    jobs = len(stream.jobs)
    zeros = [0.0] * jobs
    times = Times([*zeros], [*zeros], [*zeros], [*zeros], [*zeros], [ISSUE] * jobs, [-1] * jobs)
    units = [_Unit() for _ in stream.sides]
    pipes = [_Pipe(units[track.agent], track.name == "S") for track in stream.pipes]
    for pipe in pipes:
        pipe.unit.pipes.append(pipe)

    for kind, number, agent, job, after in stream.lines:
        if kind == FENCE:
            units[agent].fence()
            continue
        pipe, issued = pipes[number], 0.0
        if kind != STARTED:
            issued = pipe.issue(chip)
            if job >= 0:
                times.issued[job] = issued
            if kind == ISSUED:
                continue
        elif job >= 0:
            issued = times.issued[job]
        ready, why = (issued, ISSUE) if issued > pipe.free else (pipe.free, PIPE)
        at = ready
        for other, count in after:
            source = pipes[other]
            when = source.over[count]
            if source is not pipe:
                when += chip.flag if source.unit is pipe.unit else chip.cross_core
            if when > at:
                at, why = when, source.last[count]
        pipe.starts.append(at)
        if job < 0:
            pipe.order(at, ready, why)
            continue
        times.start[job] = at
        times.ready[job], times.cause[job] = ready, why = pipe.reason(ready, why)
        times.before[job] = why if why >= 0 else pipe.last[-1]
        free = at + occupancy[job]
        if floor and floor[job] > free:
            free = floor[job]
        times.done[job] = pipe.work(job, at, free, latency[job])
        times.free[job] = pipe.free
    times.busy = [pipe.busy for pipe in pipes]
    ends = (end for pipe in pipes for end in (pipe.free, pipe.over[-1]))
    times.end = max([0.0, *(unit.now for unit in units), *ends])
    return times
