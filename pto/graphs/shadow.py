"""The tasks of a recorded run again in f64, by functions of NumPy: the golden of each task.

A function has the name of a kernel. It receives the tensors of the task as arrays, floats in f64,
then the scalars as 64-bit words, and writes the outputs in place. Values stay in f64 from task to
task; a task without a function passes on the results of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.graphs.diff import DiffReport, Recording, float_type
from pto.graphs.model import TensorBox
from pto.graphs.scene_names import ELEMENTS
from pto.lang.file import executed, users_code

_NAMES = {runtime: name for name, runtime in ELEMENTS.items()}
Array = npt.NDArray[Any]


def compare(folder: Path, goldens: Path, rtol: float, atol: float) -> DiffReport:
    """Compare the results of each recorded task with those of the functions in a file."""
    with users_code():
        functions = {n: f for n, f in vars(executed(goldens)).items() if callable(f)}
    recorded = Recording(folder)
    if not any(task["name"] in functions for task in recorded.tasks):
        names = ", ".join(sorted({task["name"] for task in recorded.tasks}))
        raise fail("PTO-U326", f"{goldens} has no function with the name of a kernel: {names}")
    shadow, report = _Shadow(recorded), DiffReport(len(recorded.tasks))
    for task in recorded.tasks:
        wanted = shadow.after(task, functions.get(task["name"]))
        for saved in task["saved"]:
            ours, n = shadow.values(task, saved), saved["argument"]
            if report.add(task, n, ours.ravel(), wanted[n].ravel(), rtol, atol):
                return report
    return report


class _Shadow:
    """Elements of buffers in f64, by buffer and size of an element; integers as they are."""

    def __init__(self, recorded: Recording) -> None:
        self._recorded = recorded
        self._known: dict[tuple[int, int], tuple[Array, npt.NDArray[np.bool_]]] = {}

    def values(self, task: Mapping[str, Any], saved: Mapping[str, Any]) -> Array:
        """The values of a tensor in the recorded run."""
        region = TensorBox(*task["regions"][saved["argument"]])
        kind = float_type(region.element)
        raw = self._recorded.bytes(saved)
        if kind is None:
            return raw.view(_NAMES.get(region.element, region.element)).reshape(region.extents)
        return raw.view(kind).astype(np.float64).reshape(region.extents)

    def after(self, task: Mapping[str, Any], function: Callable[..., object] | None) -> list[Array]:
        """The tensors of a task after it, by its function if there is one."""
        regions = [TensorBox(*region) for region in task["regions"]]
        tensors = [
            self._before(r, self.values(task, s))
            for r, s in zip(regions, task["given"], strict=True)
        ]
        if function is None:
            for saved in task["saved"]:
                tensors[saved["argument"]] = self.values(task, saved)
        else:
            with users_code(), np.errstate(all="ignore"):
                function(*tensors, *task["scalars"])
        for saved in task["saved"]:
            self._keep(regions[saved["argument"]], tensors[saved["argument"]])
        return tensors

    def _places(self, region: TensorBox) -> tuple[Array, npt.NDArray[np.bool_], Array]:
        """The shadow of a buffer, which elements it knows, and the elements of a region."""
        key = (region.buffer, region.itemsize)
        values, has_value = self._known.get(key, (np.zeros(0), np.zeros(0, bool)))
        if len(values) < region.end:
            more = region.end - len(values)
            values = np.concatenate([values, np.zeros(more)])
            has_value = np.concatenate([has_value, np.zeros(more, bool)])
            self._known[key] = values, has_value
        at = np.full(region.extents, region.start)
        for n, stride in zip(np.indices(region.extents), region.strides, strict=True):
            at += n * stride
        return values, has_value, at

    def _before(self, region: TensorBox, recorded: Array) -> Array:
        """A tensor before a task: the shadow where a task before has written it."""
        if recorded.dtype != np.float64 or region.is_empty:
            return recorded.copy()
        values, has_value, at = self._places(region)
        return np.where(has_value[at], values[at], recorded)

    def _keep(self, region: TensorBox, now: Array) -> None:
        if now.dtype == np.float64 and not region.is_empty:
            values, has_value, at = self._places(region)
            values[at], has_value[at] = now, True
