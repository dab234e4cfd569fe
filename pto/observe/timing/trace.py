"""A timeline as Chrome's trace events, which Perfetto and MindStudio Insight open."""

from __future__ import annotations

from bisect import bisect
from typing import Any

from pto.observe.timing.axis import agents, axis, drawn
from pto.observe.timing.result import Timing

_ORDER = ("S", "MTE2", "MTE1", "M", "V", "FIX", "MTE3")


def chrome(timing: Timing) -> dict[str, Any]:
    """Lanes for the pipes of every agent, a slice an instruction, arrows for waits."""
    stream = timing.stream
    times = timing.times
    mhz = timing.mhz
    if times is None:
        return {"traceEvents": []}
    events: list[dict[str, Any]] = []
    on, repeated = axis(timing), len(stream.pipes)
    for agent, name in enumerate(agents(timing)):
        events.append(_meta("process_name", agent, 0, name))
        if on.gaps:
            events.append(_meta("thread_name", agent, repeated, "repeated, not drawn"))
    for number, pipe in enumerate(stream.pipes):
        events.append(_meta("thread_name", pipe.agent, number, pipe.name))
        sort = _ORDER.index(pipe.name) if pipe.name in _ORDER else len(_ORDER)
        events.append(
            {
                "ph": "M",
                "name": "thread_sort_index",
                "pid": pipe.agent,
                "tid": number,
                "args": {"sort_index": sort},
            }
        )
    firsts = [shown_round.first for shown_round in timing.shown]
    for number, job in enumerate(stream.jobs):
        start, end = on.start[number] / mhz, on.done[number] / mhz
        mine = timing.shown[bisect(firsts, number) - 1] if firsts else None
        where = {"pid": stream.pipes[job.pipe].agent, "tid": job.pipe}
        loc = job.op.loc
        events.append(
            {
                "ph": "X",
                "name": job.op.name.removeprefix("pto."),
                "ts": start,
                "dur": end - start,
                "cat": timing.prices[number].cost,
                "args": {
                    "line": loc.line if loc else None,
                    "file": loc.file if loc else None,
                    "counters": list(job.counters),
                    "round": mine.number + 1 if mine else 1,
                    "block": mine.block if mine else 0,
                    "cycles": times.free[number] - times.start[number],
                    "cost": timing.prices[number].status,
                },
                **where,
            }
        )
        why = times.cause[number]
        if why >= 0 and times.start[number] > times.ready[number]:
            other = stream.jobs[why]
            source = {"pid": stream.pipes[other.pipe].agent, "tid": other.pipe}
            flow = {"name": "wait", "cat": "wait", "id": number}
            events.append({"ph": "s", "ts": on.done[why] / mhz, **flow, **source})
            events.append({"ph": "f", "bp": "e", "ts": start, **flow, **where})
    for gap in on.gaps:
        for agent in gap.agents:
            begin, took = gap.begin / mhz, (gap.end - gap.begin) / mhz
            event = {"ph": "X", "pid": agent, "tid": repeated}
            events.append({**event, "name": gap.text, "ts": begin, "dur": took, "args": {}})
    other = {"launch": str(timing).splitlines()[0], "drawn": drawn(timing)}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}


def _meta(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
