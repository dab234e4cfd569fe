"""How fast: the predicted time of each case of the task, its share of the bound, its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.judging.judgement import CaseResult, Judgement
from pto.judging.programs import Calls
from pto.judging.task import Case, Task
from pto.observe import timing
from pto.observe.timing.chips import Bench, bench
from pto.observe.timing.result import Timing
from pto.target.profile import device as find_device


def check_time(
    judgement: Judgement, task: Task, cases: Sequence[tuple[CaseResult, Case, Calls]]
) -> bool:
    """Predict the time of each case of the task at its real size."""
    chip = bench(judgement.device, find_device(judgement.device).profile)
    slowest: tuple[float, list[Timing]] = (0.0, [])
    for result, case, calls in cases:
        try:
            times = [
                _timed(task, case, calls, number, judgement)
                for number in range(len(calls.launches))
            ]
        except PtoError as error:
            return judgement.add("time", f"in {case.name}", error.diagnostics)
        _fill(result, task, case, times, chip)
        if (result.us or 0.0) > slowest[0]:
            slowest = result.us or 0.0, times
    every = sorted((r for t in slowest[1] for r in t.remedies), key=lambda r: -r.saves_us)
    judgement.remedies = [str(remedy) for remedy in every]
    timed = [r for r, _, _ in cases if r.us is not None]
    if any(r.values_on for r in timed):
        judgement.notes.append("values of large cases were compared at smaller sizes")
    judgement.notes.append("times are predictions of the cost model, not measurements")
    return judgement.add("time", f"{len(timed)} cases predicted at their real sizes")


def _timed(task: Task, case: Case, calls: Calls, number: int, judgement: Judgement) -> Timing:
    record = calls.launches[number]
    shapes = task.shapes(case)
    arrays: dict[str, Any] = {n: np.empty(s, k.numpy) for n, (s, k) in shapes.items()}

    def timed(arrays: dict[str, Any], data: bool) -> Timing:
        return timing.time(
            record.module,
            args=record.values(calls.with_scratch(arrays)),
            blocks=record.blocks,
            entry=record.entry,
            device=judgement.device,
            data=data,
        )

    try:
        return timed(arrays, data=False)
    except PtoError:  # control flow depends on data
        inputs = task.inputs(case, np.random.default_rng(judgement.seed))
        return timed({**arrays, **inputs}, data=True)


def _fill(result: CaseResult, task: Task, case: Case, times: Sequence[Timing], chip: Bench) -> None:
    """Write the figures of a case into its result."""
    result.us = sum(t.us for t in times)
    result.band = sum(t.band[0] for t in times), sum(t.band[1] for t in times)
    result.bound_us = case.anchors.get("bound_us") or _bound_us(task, case, times, chip)
    result.share = result.bound_us / result.us if result.us else None
    result.baseline_us = case.anchors.get("baseline_us")
    if result.baseline_us is not None:
        result.hap = hap(result.us, result.baseline_us, result.bound_us)


def _bound_us(task: Task, case: Case, times: Sequence[Timing], chip: Bench) -> float:
    """The time that memory and the matrix unit take at least."""
    nbytes, flops = task.floor(case)
    peaks = [t.roofline.peak for t in times if t.roofline is not None]
    products = flops / max(peaks) if peaks else 0.0
    return 1e6 * max(nbytes / chip.chip.hbm_read, products)


def hap(us: float, baseline_us: float, bound_us: float) -> float | None:
    """The share of the way from the baseline to the bound: 0.5 is the baseline, 1 the bound."""
    gap = baseline_us - bound_us
    span = us - bound_us + gap
    return None if us <= 0 or bound_us <= 0 or span <= 0 else gap / span
