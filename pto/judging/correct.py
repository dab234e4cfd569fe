"""Are the results right: in every case, whatever the outputs held before, with inputs unchanged?

Outputs are poisoned before a run. Where a result is wrong, further runs say what kind of wrong it
is: never written, a copy of an input, the same for all inputs, right for known sizes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import decode
from pto.core.errors import Diagnostic, Note, PtoError
from pto.judging.judgement import CaseResult, Judgement
from pto.judging.precision import Compared
from pto.judging.programs import POISONS, ArrayPart, Calls
from pto.judging.task import Argument, Case, Task
from pto.lang.diff.difference import blame_notes
from pto.observe.memory.blame import blame
from pto.observe.replay import TrialRun
from pto.run.launch.host import launch

Array = npt.NDArray[Any]
SECONDS = 20.0  # of one launch
_REFERENCE = 1 << 13  # elements up to which the interpreter is faster than compiling


@dataclass
class CaseRun:
    """One case of a candidate: its launches, and the values drawn for it."""

    task: Task
    case: Case
    calls: Calls
    random: np.random.Generator
    device: str

    @cached_property
    def inputs(self) -> dict[str, Array]:
        return self.task.inputs(self.case, self.random)

    @cached_property
    def expected(self) -> dict[str, Array]:
        return self.task.expected(self.case, self.inputs)

    @cached_property
    def elements(self) -> int:
        shapes = self.task.shapes(self.case).values()
        return sum(int(np.prod(shape)) for shape, _ in shapes)

    @property
    def outputs(self) -> list[Argument]:
        arguments = self.task.arguments(self.case)
        return [a for a in arguments if a.is_array and a.is_written]

    def arrays(self, poison: int, inputs: dict[str, Array] | None = None) -> dict[str, Array]:
        """Copies of the inputs, poisoned outputs, and poisoned scratch memory."""
        contents = self.inputs if inputs is None else inputs
        filled: dict[str, Array] = {}
        for name, (shape, kind) in self.task.shapes(self.case).items():
            if name in contents:
                filled[name] = contents[name].copy()
            else:
                filled[name] = np.full(shape, np.frombuffer(bytes([poison] * 8), kind.numpy, 1)[0])
        return self.calls.with_scratch(filled, poison)

    def run(self, arrays: dict[str, Array], **how: Any) -> dict[str, Array]:
        """Execute all launches on these arrays."""
        how.setdefault("engine", "reference" if self.elements <= _REFERENCE else "jit")
        for recorded in self.calls.launches:
            launch(
                recorded.module,
                entry=recorded.entry,
                args=recorded.values(arrays),
                blocks=recorded.blocks,
                device=self.device,
                timeout=SECONDS,
                coverage=False,
                **how,
            )
        return arrays


def check_right(judgement: Judgement, runs: Sequence[CaseRun]) -> bool:
    """Run every case and compare; the findings are those of the first wrong case."""
    first: list[Diagnostic] = []
    failing = None
    for result, run in zip(judgement.cases, runs, strict=True):
        wrong = _wrong(result, run)
        result.right = not wrong
        if wrong and failing is None:
            failing, first = run, wrong
    if failing is not None and all(c.right for c in judgement.cases if c.is_declared):
        first = [*first, *_memorised(judgement, failing)]
    count = sum(bool(c.right) for c in judgement.cases)
    hidden = sum(not c.is_declared for c in judgement.cases)
    text = f"{count} of {len(runs)} cases; values and {hidden} cases drawn by the judge"
    return judgement.add("right", text, first)


def _memorised(judgement: Judgement, failing: CaseRun) -> list[Diagnostic]:
    if failing.case.fill != "random":
        return []
    return [
        Diagnostic("PTO-J012", f"right in the cases of the task only: {failing.case.name} fails")
    ]


def _wrong(result: CaseResult, run: CaseRun) -> list[Diagnostic]:
    """The findings of one case."""
    case = run.case.name
    try:
        arrays = run.run(run.arrays(POISONS[0]))
    except PtoError as error:
        result.reason = error.diagnostics[0].message
        return [_in_case(d, case) for d in error.diagnostics]
    for a in run.task.arguments(run.case):
        if a.is_array and not a.is_written and not _same(arrays[a.name], run.inputs[a.name]):
            result.reason = f"changes {a.name}"
            return [Diagnostic("PTO-J006", f"the input {a.name} has changed in {case}")]
    for a in run.outputs:
        compared = _compared(run, a, arrays[a.name])
        result.mean_error = max(result.mean_error or 0.0, compared.mean_error)
        result.max_error = max(result.max_error or 0.0, compared.max_error)
        if not compared.is_right:
            result.reason = f"{a.name}: {compared.reason}"
            return [_explained(run, a, arrays, compared)]
    return _poisoned(run, arrays) if run.elements <= _REFERENCE else []


def _compared(run: CaseRun, a: Argument, items: Array) -> Compared:
    kind = run.task.shapes(run.case)[a.name][1]

    def in_type() -> Array | None:
        try:
            return np.asarray(run.task.expected(run.case, run.inputs, same=True)[a.name], float)
        except (PtoError, TypeError, ValueError):
            return None

    return run.task.precision.compare(kind, items, run.expected[a.name], in_type)


def _in_case(finding: Diagnostic, case: str) -> Diagnostic:
    return replace(finding, notes=(*finding.notes, Note(f"in {case}")))


def _same(one: Array, other: Array) -> bool:
    return one.tobytes() == other.tobytes()


# ---- what kind of wrong


def _explained(
    run: CaseRun, a: Argument, arrays: dict[str, Array], compared: Compared
) -> Diagnostic:
    """The finding for a wrong output, by its most telling property."""
    case, got = run.case.name, arrays[a.name]
    for finding in _poisoned(run, arrays):
        return finding
    for name, values in run.inputs.items():
        if got.size and values.tobytes() == got.tobytes():
            return Diagnostic("PTO-J004", f"{a.name} is a copy of {name} in {case}")
    if _is_constant(run, a, got):
        message = f"{a.name} is the same for other values of the inputs in {case}"
        return Diagnostic("PTO-J003", message)
    return _first_wrong(run, a, got, compared)


def _poisoned(run: CaseRun, arrays: dict[str, Array]) -> list[Diagnostic]:
    """Differences to a run with other initial outputs and scratch memory."""
    other = run.run(run.arrays(POISONS[1]))
    for a in run.outputs:
        first, second = (_rows(outputs[a.name]) for outputs in (arrays, other))
        changed = (first != second).any(axis=1)
        if not changed.any():
            continue
        left = (first == POISONS[0]).all(axis=1) & (second == POISONS[1]).all(axis=1)
        where = _index(run, a, int(np.flatnonzero(left if left.any() else changed)[0]))
        if left.any():
            count = f"{int(left.sum()):,} of {left.size:,} elements"
            message = (
                f"{count} of {a.name} are never written in {run.case.name}; the first is {where}"
            )
            return [Diagnostic("PTO-J002", message)]
        message = f"{where} in {run.case.name} depends on what memory held before the launch"
        return [Diagnostic("PTO-J005", message)]
    return []


def _rows(items: Array) -> npt.NDArray[np.uint8]:
    """The bytes of each element."""
    return np.ascontiguousarray(items).reshape(-1).view(np.uint8).reshape(items.size, -1)


def _index(run: CaseRun, a: Argument, flat: int) -> str:
    shape = run.task.shapes(run.case)[a.name][0]
    return f"{a.name}[{', '.join(str(int(n)) for n in np.unravel_index(flat, shape))}]"


def _is_constant(run: CaseRun, a: Argument, got: Array) -> bool:
    """True if other inputs give the same bits, where the reference gives other values."""
    inputs = run.task.inputs(replace(run.case, fill="random"), run.random)
    again = run.run(run.arrays(POISONS[0], inputs))[a.name]
    if not _same(again, got):
        return False
    wanted = run.task.expected(run.case, inputs)[a.name]
    return not np.array_equal(wanted, run.expected[a.name], equal_nan=True)


def _first_wrong(run: CaseRun, a: Argument, got: Array, compared: Compared) -> Diagnostic:
    """The first wrong element, with the instruction that wrote it."""
    kind = run.task.shapes(run.case)[a.name][1]
    flat = int(np.flatnonzero(compared.wrong)[0])
    is_value = decode(kind, got).reshape(-1)[flat]
    wanted = np.asarray(run.expected[a.name]).reshape(-1)[flat]
    where = _index(run, a, flat)
    message = (
        f"{where} is {is_value:.8g}, wanted {wanted:.8g} in {run.case.name}: {compared.reason}"
    )
    notes, loc = _writer(run, a.name, flat * kind.itemsize, kind.itemsize)
    return Diagnostic("PTO-J001", message, loc, notes=notes)


def _writer(run: CaseRun, name: str, offset: int, width: int) -> tuple[tuple[Note, ...], Any]:
    """The instruction that wrote a byte, according to the last launch with the array."""
    arrays = run.arrays(POISONS[0])
    for launch_record in run.calls.launches:
        arguments = launch_record.values(arrays)
        options: dict[str, Any] = {"blocks": launch_record.blocks, "device": run.device}
        options |= {"entry": launch_record.entry, "timeout": SECONDS}
        for number, part in enumerate(launch_record.args):
            if not isinstance(part, ArrayPart) or part.name != name or part.offset > offset:
                continue
            try:
                who = blame(
                    launch_record.module,
                    TrialRun(arguments, options),
                    number,
                    offset - part.offset,
                    width,
                )
            except (PtoError, IndexError):
                continue
            if who is not None:
                return tuple(blame_notes(who)), (who.maker or who.store).op.loc
        try:
            launch(launch_record.module, args=arguments, coverage=False, **options)
        except PtoError:
            break
    return (), None
