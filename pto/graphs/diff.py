"""The first task with different results in two runs of a graph, and how the difference grew.

A recording is a folder: `values.bin` has the values of each task's output tensors, and `tasks.json`
their positions. Both runs take the tasks in the order of submission.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import ml_dtypes
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from pto.core.errors import Diagnostic, Loc, Note, fail
from pto.graphs.model import Task, TensorBox, Use

Bytes = npt.NDArray[np.uint8]
Buffers = Mapping[int, Bytes] | Sequence[Bytes]  # by number
_FLOATS: Mapping[str, Any] = {  # by the runtime's name, or by NumPy's in capitals
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "BFLOAT16": ml_dtypes.bfloat16,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8_E4M3FN": ml_dtypes.float8_e4m3fn,
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

    def __init__(self, folder: Path, kept: int | None = None, inputs: bool = False) -> None:
        self._folder = folder
        self._kept = kept
        self._has_inputs = inputs  # the arguments of each task before it ran, for `shadow`
        self._given: list[dict[str, Any]] = []
        self._out = (folder / "values.bin").open("wb")
        self._tasks: list[dict[str, Any]] = []

    def before(self, task: Task, arrays: Buffers) -> None:
        """Keep the task and its buffers if it is the one to keep."""
        self._given = self._saved(task, arrays, False) if self._has_inputs else []
        if task.number == self._kept:
            (self._folder / TASK).write_bytes(pickle.dumps(replace(task, where=None)))
            for number in {a.region.buffer for a in task.arguments}:
                arrays[number].tofile(self._folder / f"{number}.bin")

    def add(self, task: Task, arrays: Buffers) -> None:
        loc = task.loc
        entry: dict[str, Any] = {
            "number": task.number,
            "title": task.title,
            "loc": None if loc is None else [loc.file, loc.line],
            "saved": self._saved(task, arrays, True),
        }
        if self._has_inputs:
            regions = [astuple(a.region) for a in task.arguments]
            record = {"name": task.name, "given": self._given, "regions": regions}
            entry |= {**record, "scalars": list(task.scalars)}
        self._tasks.append(entry)

    def _saved(self, task: Task, arrays: Buffers, results: bool) -> list[dict[str, Any]]:
        """Write the tensors that a task may write, or all; where each of them is."""
        saved: list[dict[str, Any]] = []
        for n, argument in enumerate(task.arguments):
            region = argument.region
            if not results or argument.use is not Use.IN:
                at = self._out.tell()
                size = self._out.write(gathered(region, arrays[region.buffer]))
                saved.append({"argument": n, "element": region.element, "at": at, "size": size})
        return saved

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._out.close()
        (self._folder / "tasks.json").write_text(json.dumps(self._tasks), encoding="utf-8")


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

    def add(
        self,
        task: Mapping[str, Any],
        argument: int,
        ours: npt.NDArray[Any],
        theirs: npt.NDArray[Any],
        rtol: float,
        atol: float,
    ) -> bool:
        """Compare a tensor in two runs; True if it is the first outside of the tolerance. Integers
        must be equal."""
        if ours.tobytes() == theirs.tobytes():
            return False
        loc = None if task["loc"] is None else Loc(task["loc"][0], task["loc"][1])
        if len(ours) != len(theirs):
            wrong = len(ours)
            far = 0.0
            scale = 0.0
        else:
            if ours.dtype.kind in "iu":
                rtol = atol = 0.0
            u, v = ours.astype(np.float64), theirs.astype(np.float64)
            with np.errstate(invalid="ignore"):
                same = (u == v) | (np.isnan(u) & np.isnan(v))
                apart = np.where(same, 0.0, np.abs(u - v))
                wrong = int((~same & ~(apart <= atol + rtol * np.abs(v))).sum())
            far, scale = float(apart.max()), float(np.abs(v[np.isfinite(v)]).max(initial=0.0))
        where = task["number"], task["title"], loc, argument
        difference = TaskDifference(*where, wrong, len(ours), far, scale)
        if wrong:
            self.first = difference
        else:
            self.small.append(difference)
        return bool(wrong)

    def finding(self) -> Diagnostic | None:
        if self.first is None:
            return None
        d = self.first
        message = (
            f"{d.title} is the first task with different results: {d.wrong:,} of {d.count:,} "
            f"elements"
            f" of argument {d.argument}, by up to {d.worst:.3g} where values reach {d.scale:.3g}"
        )
        notes = [
            Note(f"{s.title} differed by up to {s.worst:.3g} of {s.scale:.3g} before", s.loc)
            for s in self.small[-_GROWTH:]
        ]
        return Diagnostic("PTO-G201", message, d.loc, "error", tuple(notes))


class Recording:
    """The tasks of a recording in order, with the values of their tensors."""

    def __init__(self, folder: Path) -> None:
        self.tasks: list[dict[str, Any]] = json.loads(
            (folder / "tasks.json").read_text(encoding="utf-8")
        )
        empty = not (folder / "values.bin").stat().st_size
        values = np.zeros(0, np.uint8) if empty else np.memmap(folder / "values.bin", np.uint8, "r")
        self._values = values

    def bytes(self, saved: Mapping[str, Any]) -> Bytes:
        return self._values[saved["at"] : saved["at"] + saved["size"]]

    def results(self, task: Task) -> Iterator[tuple[TensorBox, Bytes]]:
        """The regions that a task may write, and their values."""
        for saved in next(t for t in self.tasks if t["number"] == task.number)["saved"]:
            if saved["size"]:
                yield task.arguments[saved["argument"]].region, self.bytes(saved)


def compare(left: Path, right: Path, rtol: float, atol: float) -> DiffReport:
    """Compare two recordings of one graph task by task."""
    ours, theirs = Recording(left), Recording(right)
    if [t["title"] for t in ours.tasks] != [t["title"] for t in theirs.tasks]:
        raise fail(
            "PTO-U326",
            "the recordings are of different graphs:"
            f" {len(ours.tasks)} and {len(theirs.tasks)} tasks",
        )
    report = DiffReport(len(ours.tasks))
    for a, b in zip(ours.tasks, theirs.tasks, strict=True):
        for x, y in zip(a["saved"], b["saved"], strict=True):
            p, q = ours.bytes(x), theirs.bytes(y)
            kind = float_type(x["element"])
            if len(p) != len(q) or kind is None:
                kind = np.uint8
            if report.add(a, x["argument"], p.view(kind), q.view(kind), rtol, atol):
                return report
    return report


def float_type(element: str) -> Any | None:
    """The type of a floating-point element; None for an integer."""
    return _FLOATS.get(element.upper())
