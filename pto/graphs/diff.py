"""The first task with different results in two runs of a graph, and how the difference grew.

A recording is a folder: `values.bin` has the values of each task's output tensors, and `tasks.json`
their positions. Both runs take the tasks in the order of submission.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from pto.core.errors import Diagnostic, Loc, Note, fail
from pto.graphs.model import Task, TensorBox, Use

Bytes = npt.NDArray[np.uint8]
_FLOATS: Mapping[str, Any] = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "BFLOAT16": ml_dtypes.bfloat16,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
}
TASK = "task.pickle"  # the task that a recording keeps for `extract`
_GROWTH = 5  # tasks that the finding lists


def strided(region: TensorBox, memory: Bytes) -> Bytes:
    """The bytes of a region that is not empty, as an array with an axis more than the region."""
    size = region.itemsize
    strides = [s * size for s in region.strides]
    low, high = region.span
    return as_strided(memory[low:high], (*region.extents, size), (*strides, 1))


def gathered(region: TensorBox, memory: Bytes) -> bytes:
    """The elements of a region, one after another."""
    return b"" if region.is_empty else strided(region, memory).tobytes()


class ValueLog:
    """Writes the output values of tasks, and one task with its inputs for `extract`."""

    def __init__(self, folder: Path, kept: int | None = None) -> None:
        self._folder = folder
        self._kept = kept
        self._out = (folder / "values.bin").open("wb")
        self._tasks: list[dict[str, Any]] = []

    def before(self, task: Task, arrays: Sequence[Bytes]) -> None:
        """Keep the task and its buffers if it is the one to keep."""
        if task.number == self._kept:
            (self._folder / TASK).write_bytes(pickle.dumps(replace(task, where=None)))
            for number in {a.region.buffer for a in task.arguments}:
                arrays[number].tofile(self._folder / f"{number}.bin")

    def add(self, task: Task, arrays: Sequence[Bytes]) -> None:
        saved: list[dict[str, Any]] = []
        for n, argument in enumerate(task.arguments):
            if argument.use is Use.IN:
                continue
            region = argument.region
            at = self._out.tell()
            size = self._out.write(gathered(region, arrays[region.buffer]))
            saved.append({"argument": n, "element": region.element, "at": at, "size": size})
        loc = task.loc
        place = None if loc is None else [loc.file, loc.line]
        entry = {"number": task.number, "title": task.title, "loc": place, "saved": saved}
        self._tasks.append(entry)

    def end(self) -> None:
        self._out.close()
        (self._folder / "tasks.json").write_text(json.dumps(self._tasks), encoding="utf-8")


def results(folder: Path, task: Task) -> Iterator[tuple[TensorBox, Bytes]]:
    """The regions that a task may write, and their values in a recording."""
    listed = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    values = np.memmap(folder / "values.bin", np.uint8, "r")
    for each in next(e for e in listed if e["number"] == task.number)["saved"]:
        if each["size"]:
            region = task.arguments[each["argument"]].region
            yield region, values[each["at"] : each["at"] + each["size"]]


@dataclass(slots=True)
class TaskDifference:
    """Results of one task in two runs."""

    number: int
    title: str
    loc: Loc | None
    argument: int
    wrong: int  # elements outside of the tolerance
    count: int
    worst: float  # largest difference
    scale: float  # largest magnitude


@dataclass(slots=True)
class DiffReport:
    """Tasks that differ at all, in order, and the first that leaves the tolerance."""

    tasks: int
    first: TaskDifference | None = None
    small: list[TaskDifference] = field(default_factory=list[TaskDifference])  # before the first

    def finding(self) -> Diagnostic | None:
        if self.first is None:
            return None
        d = self.first
        message = (
            f"{d.title} is the first task whose results differ: {d.wrong:,} of {d.count:,} elements"
            f" of argument {d.argument}, by up to {d.worst:.3g} where values reach {d.scale:.3g}"
        )
        notes = [
            Note(f"{s.title} differed by up to {s.worst:.3g} of {s.scale:.3g} before", s.loc)
            for s in self.small[-_GROWTH:]
        ]
        return Diagnostic("PTO-G201", message, d.loc, "error", tuple(notes))


def compare(left: Path, right: Path, rtol: float, atol: float) -> DiffReport:
    """Compare two recordings of one graph task by task."""
    ours, theirs = (
        json.loads((p / "tasks.json").read_text(encoding="utf-8")) for p in (left, right)
    )
    if [t["title"] for t in ours] != [t["title"] for t in theirs]:
        raise fail(
            "PTO-U326",
            f"the recordings are of different graphs: {len(ours)} and {len(theirs)} tasks",
        )
    values = [np.fromfile(p / "values.bin", np.uint8) for p in (left, right)]
    report = DiffReport(len(ours))
    for a, b in zip(ours, theirs, strict=True):
        for each in _differences(a, b, values, rtol, atol):
            if each.wrong:
                report.first = each
                return report
            report.small.append(each)
    return report


def _differences(
    a: Mapping[str, Any], b: Mapping[str, Any], values: list[Bytes], rtol: float, atol: float
) -> Iterator[TaskDifference]:
    for x, y in zip(a["saved"], b["saved"], strict=True):
        p, q = (v[e["at"] : e["at"] + e["size"]] for v, e in zip(values, (x, y), strict=True))
        if np.array_equal(p, q):
            continue
        loc = None if a["loc"] is None else Loc(a["loc"][0], a["loc"][1])
        task = a["number"], a["title"], loc, x["argument"]
        kind = _FLOATS.get(x["element"])
        if kind is None or len(p) != len(q):
            yield TaskDifference(*task, int((p != q).sum()), len(p), 0.0, 0.0)
            continue
        u, v = p.view(kind).astype(np.float64), q.view(kind).astype(np.float64)
        with np.errstate(invalid="ignore"):
            same = (u == v) | (np.isnan(u) & np.isnan(v))
            far = np.where(same, 0.0, np.abs(u - v))
            wrong = ~same & ~(far <= atol + rtol * np.abs(v))
        scale = float(np.abs(v[np.isfinite(v)]).max(initial=0.0))
        yield TaskDifference(*task, int(wrong.sum()), len(u), float(far.max()), scale)
