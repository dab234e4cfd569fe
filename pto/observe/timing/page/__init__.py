"""A timed launch as a page: one HTML file that needs nothing else, and no network.

Two launches are shown one above the other. The page is `timeline.html`, `.css` and `.js` in this
folder; this module computes its data.
"""

from __future__ import annotations

import html
import json
import linecache
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pto.observe.timing.axis import TimeAxis, agents, axis, drawn
from pto.observe.timing.interval import critical
from pto.observe.timing.result import Timing, Waiting, site

_STEPS = 200  # of the counters
_DIGITS = 5  # of a microsecond
_NOT_DRAWN = -1  # in the place of a part


def page(*timings: Timing) -> str:
    """The page of one launch, or of several to compare."""
    title = " beside ".join(f"{t.kernel} on {t.device}" for t in timings)
    return document(title, "; ".join(map(_summary, timings)), data(timings))


def document(title: str, summary: str, drawn: Mapping[str, Any]) -> str:
    """The page that shows this data: runs with lanes and slices."""
    text = {
        "TITLE": html.escape(title),
        "SUMMARY": html.escape(summary),
        "CSS": _file("timeline.css"),
        "JS": _file("timeline.js"),
        # `<` must not end the script: the names in it come from programs
        "DATA": json.dumps(drawn, separators=(",", ":")).replace("<", "\\u003c"),
    }
    parts = _file("timeline.html").split("@")
    return "".join(text.get(part, part) if n % 2 else part for n, part in enumerate(parts))


def _summary(timing: Timing) -> str:
    launch = timing.us - timing.core_us
    parts = f"{timing.us:.1f} us: {launch:.1f} us launch and {timing.core_us:.1f} us on the cores"
    return f"{parts}, {timing.limits}; {drawn(timing)}"


@cache
def _file(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def data(timings: Sequence[Timing]) -> dict[str, Any]:
    """The data that the page draws."""
    parts = [timing_part for timing in timings for _, timing_part in _parts(timing)]
    places = [job.op.loc for timing in parts for job in timing.stream.jobs if job.op.loc]
    return {
        "runs": [_run(timing, n) for n, timing in enumerate(timings)],
        "sources": sources(loc.file for loc in places),
    }


def sources(names: Iterable[str]) -> list[dict[str, Any]]:
    """The files that instructions come from, with their lines; those of notebooks too."""
    texts = {name: linecache.getlines(name) for name in dict.fromkeys(names)}
    return [
        {"file": name, "name": Path(name).name, "lines": [line.rstrip("\n") for line in lines]}
        for name, lines in texts.items()
        if lines
    ]


def _parts(timing: Timing) -> list[tuple[Sequence[int], Timing]]:
    """Cores that have the same times, and these; the slowest come first."""
    drawn = [(cores.numbers, cores.timing) for cores in timing.groups if cores.timing is not None]
    return sorted(drawn, key=lambda each: each[1] is not timing) or [((), timing)]


def _run(timing: Timing, number: int) -> dict[str, Any]:
    """The slowest core of a launch as it is drawn, with the other cores as `parts`."""
    parts = _parts(timing)
    label = {"label": f"{timing.kernel} {number + 1}"}
    rest = [{**label, "parts": [], "cores": [], **_part(part)} for _, part in parts[1:]]
    groups = [(numbers, n) for n, (numbers, _) in enumerate(parts)]
    groups += [(group.numbers, _NOT_DRAWN) for group in timing.groups if group.timing is None]
    cores = [
        {"number": n, "part": part, "like": numbers[0], "blocks": _blocks(timing, n)}
        for numbers, part in groups
        for n in numbers
    ]
    return {**label, **_part(parts[0][1]), "parts": rest, "cores": cores}


def _blocks(timing: Timing, core: int) -> str:
    mine = range(core, timing.blocks, timing.cores)
    if len(mine) <= 3:
        return f"block{'s' * (len(mine) > 1)} {', '.join(map(str, mine))}"
    return f"{len(mine):,} blocks: {mine[0]}, {mine[1]}, ..., {mine[-1]}"


def _part(timing: Timing) -> dict[str, Any]:
    stream = timing.stream
    times = timing.times
    mhz = timing.mhz
    if times is None:
        raise RuntimeError("a launch without times has no page")
    ops: dict[int, int] = {}
    listed: list[dict[str, Any]] = []
    for job, price in zip(stream.jobs, timing.prices, strict=True):
        if id(job.op) not in ops:
            ops[id(job.op)] = len(listed)
            loc, name = job.op.loc, job.op.name.removeprefix("pto.")
            source = {"file": loc.file, "line": loc.line} if loc else {"file": None, "line": None}
            listed.append({"name": name, "status": price.status, **source})

    def us(cycles: Sequence[float]) -> list[float]:
        return [round(value / mhz, _DIGITS) for value in cycles]

    on = axis(timing)
    pairs = list(zip(on.start, on.free, on.done, strict=True))
    return {
        "mhz": mhz,
        "end": on.end / mhz,
        "agents": agents(timing),
        "pipes": [{"agent": pipe.agent, "name": pipe.name} for pipe in stream.pipes],
        "ops": listed,
        "slices": {
            "start": us(on.start),
            "dur": us([free - start for start, free, _ in pairs]),
            "late": us([done - free for _, free, done in pairs]),
            "ready": us(on.ready),
            "pipe": [job.pipe for job in stream.jobs],
            "op": [ops[id(job.op)] for job in stream.jobs],
            "cause": times.cause,
        },
        "rounds": [
            [shown_round.first, shown_round.number + 1, shown_round.block]
            for shown_round in timing.shown
        ],
        "gaps": [
            {
                "from": gap.begin / mhz,
                "to": gap.end / mhz,
                "text": gap.text,
                "agents": gap.agents,
                "busy": us(gap.busy),
                "waits": us(gap.waits),
                "count": [round(count) for count in gap.counts],
            }
            for gap in on.gaps
        ],
        "critical": critical(times),
        "waits": [{"text": str(wait), "at": _where(timing, wait)} for wait in timing.waits],
        "counters": {
            "step": on.end / mhz / _STEPS,
            **_rates(timing, on),
            "of": [", ".join(map(str, job.counters)) for job in stream.jobs],
        },
    }


def _where(timing: Timing, wait: Waiting) -> int:
    """The instance of a wait that was longest."""
    times, jobs = timing.times, timing.stream.jobs
    if times is None:
        return -1
    here, there = site(wait.op), site(wait.behind)
    mine = [
        n
        for n, job in enumerate(jobs)
        if (why := times.cause[n]) >= 0 and site(job.op) == here and site(jobs[why].op) == there
    ]
    return max(mine, key=lambda n: times.start[n] - times.ready[n], default=-1)


def _rates(timing: Timing, on: TimeAxis) -> dict[str, list[float]]:
    """The used fraction of memory and cache bandwidth, step by step; none in gaps."""
    rates = {"hbm": [0.0] * _STEPS, "l2": [0.0] * _STEPS}
    load = timing.load
    if load is None or not on.end:
        return rates
    seconds = on.end / timing.mhz / 1e6 / _STEPS
    rows = zip(load.items.tolist(), load.seconds.tolist(), load.lines.tolist(), strict=True)
    for job, memory, lines in rows:
        first = on.start[job] / on.end * _STEPS
        last = max(first + 1e-9, on.free[job] / on.end * _STEPS)
        for step in range(int(first), min(_STEPS, int(last) + 1)):
            share = (min(last, step + 1) - max(first, step)) / (last - first)
            rates["hbm"][step] += memory * share / seconds
            rates["l2"][step] += lines * share / seconds / timing.l2_rate
    return {key: [round(value, 3) for value in values] for key, values in rates.items()}
