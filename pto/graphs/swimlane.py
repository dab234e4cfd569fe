"""A timed graph as text, as a page with a lane for each core, and as Chrome's trace events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from pto.observe.timing.page import document, sources

_DIGITS = 5  # of a microsecond
_SHOWN = 5  # kinds of tasks of the critical path
Times = Mapping[str, Any]  # what `GraphProcess.time` answers


def summary(times: Times) -> list[str]:
    """The parts of the total time, one fact a line."""
    tasks, path = times["tasks"], times["path"]
    spans = _spans(times)
    ran = sum(spans[n][1] - spans[n][0] for n in path if n in spans)
    lines = [
        f"{times['us']:,.1f} us on {times['device']}:"
        f" {len(tasks):,} tasks, {times['edges']:,} edges",
        f"critical path: {len(path):,} tasks, {ran:,.1f} us on cores,"
        f" {times['us'] - ran:,.1f} us of submission, dispatch and waiting",
    ]
    kinds: Counter[str] = Counter()
    for n in path:
        if n in spans:
            kinds[tasks[n][0]] += spans[n][1] - spans[n][0]  # type: ignore[assignment]
    for name, us in kinds.most_common(_SHOWN):
        count = sum(tasks[n][0] == name for n in path)
        lines.append(f"  {us:10,.1f} us  {count:5,} x {name}")
    idle = {kind: 1 - share for kind, share in times["busy"].items()}
    lines.append(f"idle: cube cores {idle['cube']:.0%}, vector cores {idle['vector']:.0%}")
    if times["needless"] is not None:
        saved = times["us"] - times["fewer_us"]
        lines.append(
            f"{times['needless']:,} edges that no data needs; {saved:,.1f} us less without"
        )
    lines.append(f"{times['kinds']:,} kinds of tasks timed; dispatch costs: {times['costs']}")
    if times["alike"]:
        lines.append(f"{times['alike']:,} tasks timed like others that differ in scalars alone")
    if times["untimed"]:
        lines.append(f"not compiled, timed as 0: {', '.join(times['untimed'])}")
    return lines


def _spans(times: Times) -> dict[int, tuple[float, float]]:
    spans: dict[int, tuple[float, float]] = {}
    for task, _, _, begin, end in times["slices"]:
        low, high = spans.get(task, (begin, end))
        spans[task] = min(low, begin), max(high, end)
    return spans


def _cores(times: Times) -> list[str]:
    """Cores that ran anything: cubes first, each by number."""
    used = {core for _, _, core, _, _ in times["slices"]}
    return sorted(used, key=lambda core: (core.split()[0], int(core.split()[1])))


def page(times: Times, name: str) -> str:
    """One HTML file that needs nothing else."""
    tasks, cores = times["tasks"], _cores(times)
    lanes = {core: n for n, core in enumerate(cores)}
    agents = list(dict.fromkeys(core.split()[0] for core in cores))
    slices = times["slices"]
    first: dict[int, int] = {}  # the last slice of each task
    for n, slice_ in enumerate(slices):
        first[slice_[0]] = n
    path = list(times["path"])
    before = dict(zip(path[1:], path, strict=False))
    kinds: dict[tuple[str, str, int], int] = {}  # name, file and line
    ops = [kinds.setdefault(tuple(tasks[slice_[0]][:3]), len(kinds)) for slice_ in slices]
    run = {
        "label": name,
        "mhz": 0,
        "end": times["us"],
        "agents": agents,
        "pipes": [
            {"agent": agents.index(kind), "name": f"core {n}"}
            for kind, n in (core.split() for core in cores)
        ],
        "ops": [
            {"name": title, "file": file, "line": line or None, "status": ""}
            for title, file, line in kinds
        ],
        "parts": [],
        "cores": [],
        "slices": {
            "start": [round(slice_[3], _DIGITS) for slice_ in slices],
            "dur": [round(slice_[4] - slice_[3], _DIGITS) for slice_ in slices],
            "late": [0] * len(slices),
            "ready": [round(tasks[slice_[0]][3], _DIGITS) for slice_ in slices],
            "pipe": [lanes[slice_[2]] for slice_ in slices],
            "op": ops,
            "cause": [first.get(before.get(slice_[0], -1), -1) for slice_ in slices],
        },
        "rounds": [],
        "gaps": [],
        "critical": [n for n, slice_ in enumerate(slices) if slice_[0] in set(path)],
        "waits": [],
        "counters": {"of": [f"task {slice_[0]}, block {slice_[1]}" for slice_ in slices]},
    }
    lines = summary(times)
    words = {"op": "task", "lane": "core", "which": ""}
    drawn = {
        "runs": [run],
        "words": words,
        "sources": sources(task[1] for task in tasks if task[1]),
    }
    return document(f"{name} on {times['device']}", f"{lines[0]}; {lines[1]}", drawn)


def chrome(times: Times) -> dict[str, Any]:
    """A lane for each core, a slice for each block, arrows along the critical path."""
    cores, tasks = _cores(times), times["tasks"]
    numbers = {core: n for n, core in enumerate(cores)}
    events: list[dict[str, Any]] = []
    for core, n in numbers.items():
        meta = {"ph": "M", "pid": 0, "tid": n}
        events.append({**meta, "name": "thread_name", "args": {"name": core}})
        events.append({**meta, "name": "thread_sort_index", "args": {"sort_index": n}})
    path, ends = set(times["path"]), defaultdict[int, tuple[float, int]](lambda: (0.0, 0))
    for task, block, core, begin, end in times["slices"]:
        name, file, line, ready, _ = tasks[task]
        args = {"task": task, "block": block, "file": file, "line": line, "ready": ready}
        category = "critical path" if task in path else "task"
        where = {"pid": 0, "tid": numbers[core]}
        slice = {"ph": "X", "name": name, "cat": category, "ts": begin, "dur": end - begin}
        events.append({**slice, "args": args, **where})
        ends[task] = max(ends[task], (end, numbers[core]))
    begins = {task: (begin, numbers[core]) for task, _, core, begin, _ in reversed(times["slices"])}
    for n, (a, b) in enumerate(zip(times["path"], times["path"][1:], strict=False)):
        if a in ends and b in begins:
            flow = {"name": "critical path", "cat": "critical path", "id": n, "pid": 0}
            events.append({"ph": "s", "ts": ends[a][0], "tid": ends[a][1], **flow})
            events.append({"ph": "f", "bp": "e", "ts": begins[b][0], "tid": begins[b][1], **flow})
    other = {"summary": summary(times)}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}
