"""Examines the kernels of a Python file: findings, the instructions of each line, times.

`python -m pto.lsp.examine FILE` executes the file in a separate process, with the rights of the
user. It writes one JSON object per line, so results remain if it runs out of time. The language
server starts it with limits on time and memory (`core/confined.py`).
"""

from __future__ import annotations

import argparse
import json
import linecache
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pto.core import render
from pto.core.errors import Diagnostic, Loc, Note, PtoError
from pto.ir.graph import Module, Operation, Value
from pto.isa.cost.shown import cost_texts
from pto.isa.row.describe import pipe_text
from pto.isa.row.types import TileBuf
from pto.lang.example import example_of
from pto.lang.file import completed, executed, kernel_values, kernels_of, users_code
from pto.lang.kernel import Kernel
from pto.observe import sanitize
from pto.observe.timing import Timing, time
from pto.observe.timing.fold import weights
from pto.observe.timing.result import Site, site
from pto.plan.calls import entry_functions
from pto.plan.memory import plan_memory
from pto.prove.decide import highest, lowest
from pto.prove.number import number, of
from pto.prove.values import LaunchSymbols, Values
from pto.run.launch.call import count_of
from pto.target.profile import device as find_device
from pto.target.profile import profile as find_profile
from pto.transform.reuse import tiles_of
from pto.transform.separate import separate_all
from pto.verify import judge

_EXAMPLE = (
    "an example in the docstring gives arguments, as `>>> {0}[4](np.zeros((64, 128), np.float32))`"
)


class Call(NamedTuple):
    """The arguments with which a kernel is examined. `runs` is False if the sizes are invented."""

    values: list[Any]
    blocks: Any
    runs: bool


def reports(path: Path, profile: str | None, device: str | None) -> Iterator[dict[str, Any]]:
    """The findings of a file, kernel by kernel and step by step."""
    if device is not None and profile is None:
        profile = find_device(device).profile
    try:
        module = executed(path)
    except PtoError as error:
        yield {"findings": _plain(error.diagnostics, Loc(str(path), 1), str(path))}
        return
    for _, tunable in kernels_of(module):
        kernel = tunable if isinstance(tunable, Kernel) else tunable.kernel
        code = kernel.function.__code__
        if code.co_filename == str(path):
            definition = _definition(str(path), code.co_firstlineno, code.co_name)
            chosen = kernel if profile is None else kernel.on(profile)
            yield from _guarded(chosen, device, definition)


def _guarded(kernel: Kernel[...], device: str | None, definition: Loc) -> Iterator[dict[str, Any]]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            with users_code():
                yield from _kernel(kernel, device, definition)
        except PtoError as error:
            yield {"findings": _plain(error.diagnostics, definition, definition.file)}
        mine = {
            (str(caught.message), caught.lineno)
            for caught in heard
            if caught.filename == definition.file
        }
        yield {
            "remarks": [
                _remark(Loc(definition.file, n), text, "warning") for text, n in sorted(mine)
            ]
        }


def _kernel(kernel: Kernel[...], device: str | None, definition: Loc) -> Iterator[dict[str, Any]]:
    call = _call(kernel)
    if call is None:
        reason = (
            f"{kernel.name} is not checked: its annotations do not give the sizes of all arrays"
        )
        yield {"remarks": [_remark(definition, f"{reason}; {_EXAMPLE.format(kernel.name)}")]}
        return
    specialised, _, values = kernel.specialise(call.values, call.blocks)
    module, profile = specialised.module, kernel.profile
    _, findings = judge(module, profile=profile, device=device)
    yield {"findings": _plain(findings, definition, definition.file)}
    separated = separate_all(module, find_profile(profile)).module
    lines = LineFacts(
        separated, profile, definition.file, _formulas(separated, call, values), call.runs
    )
    yield lines.report(None)
    if not call.runs or any(d.severity == "error" for d in findings):
        return
    copies = [np.copy(each) if isinstance(each, np.ndarray) else each for each in values]
    verdict = sanitize(module, args=copies, blocks=call.blocks, profile=profile)
    yield {"findings": _plain(verdict.findings, definition, definition.file)}
    timing = time(module, args=values, blocks=call.blocks, profile=profile, device=device)
    waits = [_remark(wait.loc, str(wait)) for wait in timing.waits if wait.loc is not None]
    head = f"{timing.us:.1f} us on {timing.device}, bound by {timing.bound}"
    clean = "" if verdict.findings else f"; no findings: {verdict.about}"
    yield {
        "remarks": [each for each in waits if each["loc"]["file"] == definition.file],
        "heads": [{"line": definition.line, "text": head, "tip": f"{timing}{clean}"}],
        **lines.report(timing),
    }


def _call(kernel: Kernel[...]) -> Call | None:
    """Arguments from the example in the docstring, else from sizes in annotations.

    None if sizes are missing.
    """
    example = example_of(kernel)
    if example is not None:
        return Call(example.values, example.blocks, True)
    texts, declared = completed(kernel, {}), signature(kernel.function).parameters
    constants = (p.name for p in kernel.parameters if p.kind == "constant")
    defaults = {n for n in constants if declared[n].default is not Parameter.empty}
    if {p.name for p in kernel.parameters} - {*texts, *defaults}:
        return None
    runs = all(isinstance(n, int) for p in kernel.parameters for n in p.sizes or ())
    return Call(kernel_values(kernel, texts, 0), 1, runs)


# ---- the instructions of each line


class LineFacts:
    """The instructions of each line of a file, with pipes, costs, tiles and their addresses."""

    def __init__(
        self, module: Module, profile: str, file: str, formulas: Values, runs: bool
    ) -> None:
        self.profile = profile
        self.formulas = formulas
        self.runs = runs
        self.ops: defaultdict[int, list[Operation]] = defaultdict(list)
        self.left: dict[int, Value] = {}  # the tile that a line defines
        for op in module.op.walk():
            if op.loc is None or op.loc.file != file:
                continue
            written = tiles_of(op, "out", "inout")
            tiles = [v for v in op.results if isinstance(v.type, TileBuf)]
            if written or (tiles and op.loc.line not in self.ops):
                self.left[op.loc.line] = (written or tiles)[-1]
            if _does(op):
                self.ops[op.loc.line].append(op)
        self.places: dict[Value, tuple[str, int]] = {}  # buffer and address
        try:
            plans = plan_memory(module, find_profile(profile)).functions
        except PtoError:  # the tile does not fit: a finding reports it
            plans = ()
        for plan in plans:
            roots = [placed for placed in plan.placed if placed.buffer.root is not None]
            for value, numbers in plan.times.names.items():
                if len(numbers) == 1 and numbers[0] < len(roots):
                    placed = roots[numbers[0]]
                    self.places[value] = (placed.buffer.space.value.upper(), placed.start)

    def report(self, timing: Timing | None) -> dict[str, Any]:
        spent = _spent(timing)
        return {
            "lines": {
                n: [self._row(op, timing, spent) for op in ops] for n, ops in self.ops.items()
            },
            "tiles": {n: self._hint(value) for n, value in self.left.items()},
        }

    def _row(
        self, op: Operation, timing: Timing | None, spent: dict[Site, tuple[float, float]]
    ) -> dict[str, str]:
        row = op.row
        cost = cost_texts(row).get(self.profile, "")
        if timing is not None:
            us, times = spent.get(site(op), (0.0, 0.0))
            often = f" in {times:,.0f}" if times > 1.5 else ""
            cost = f"{us:.2f} us{often}, {us / timing.us:.0%} of {timing.us:.1f} us"
        used = dict.fromkeys(v for v in op.operands if isinstance(v.type, TileBuf))
        tiles = [f"%{value.name} {self._tile(value)}" for value in used]
        return {
            "op": op.name,
            "pipe": pipe_text(row.pipe),
            "cost": cost,
            "tiles": "; ".join(tiles),
        }

    def _tile(self, value: Value) -> str:
        return f"{self._shape(value)}{self._place(value)}"

    def _hint(self, value: Value) -> list[str]:
        """The text shown after a variable, and the tooltip about its tile."""
        assert isinstance(value.type, TileBuf)
        return [self._shape(value), f"{value.type.tile}{self._place(value)}"]

    def _place(self, value: Value) -> str:
        position = self.places.get(value)
        return f" at {position[0]} {position[1]:#x}" if position else ""

    def _shape(self, value: Value) -> str:
        """Rows, columns and type; also the valid region if it is not the whole tile."""
        assert isinstance(value.type, TileBuf)
        tile, names = value.type.tile, ("valid_row", "valid_col")
        sizes = [
            self._size(value, name) if extent is None else str(extent)
            for extent, name in zip(tile.valid, names, strict=True)
        ]
        shape = f"{tile.rows}x{tile.cols}"
        valid = " x ".join(sizes) if any(len(n) > 4 for n in sizes) else "x".join(sizes)
        return f"{shape}x{tile.dtype.name}" + ("" if valid == shape else f", valid {valid}")

    def _size(self, value: Value, name: str) -> str:
        """A size of the valid region that is known only at run time: its bounds, else its
        formula.
        """
        operands = value.maker.group(name) if value.maker else []
        if not operands:
            return "?"
        size = self.formulas.number(operands[0])
        low, high = lowest(size), highest(size)
        if low is not None and low == high:
            return str(low)
        return f"{low}..{high}" if self.runs and None not in (low, high) else str(size)


def _formulas(module: Module, call: Call, values: Sequence[Any]) -> Values:
    """Formulas of numbers; with values for the arguments and the grid if there is an example."""
    launch = LaunchSymbols(module.op, count_of(call.blocks) if call.runs else None)
    values_seen = Values(launch, checks=False)
    for function in entry_functions(module, None):
        for arg, value in zip(function.regions[0].block.args, values, strict=False):
            if not isinstance(value, int | np.integer):
                continue
            symbol = launch.symbol(arg.name, "argument")
            values_seen.numbers[id(arg)] = number(int(value)) if call.runs else of(symbol)
    return values_seen


def _does(op: Operation) -> bool:
    """True for an instruction with an effect: not for numbers or names of storage."""
    if op.regions or op.traits.pure or op.traits.names_only:
        return False
    return pipe_text(op.row.pipe) != "none"


def _spent(timing: Timing | None) -> dict[Site, tuple[float, float]]:
    """The time and the count of an instruction of a line, on the slowest core."""
    spent: dict[Site, tuple[float, float]] = {}
    if timing is None or timing.times is None:
        return spent
    times = zip(timing.times.start, timing.times.free, weights(timing.stream), strict=True)
    for job, (start, free, often) in zip(timing.stream.jobs, times, strict=True):
        us, count = spent.get(site(job.op), (0.0, 0.0))
        more = float((free - start) * often / timing.mhz)
        spent[site(job.op)] = us + more, count + float(often)
    return spent


# ---- plain data


def _definition(file: str, first: int, name: str) -> Loc:
    """The name of a function, below its decorators."""
    for n in range(first, first + 50):
        text = linecache.getline(file, n)
        if text.lstrip().startswith(f"def {name}"):
            col = text.index(name) + 1
            return Loc(file, n, col, col + len(name))
    return Loc(file, first)


def _plain(findings: Sequence[Diagnostic], kernel_loc: Loc, file: str) -> list[dict[str, Any]]:
    """Findings of this file as data.

    A finding in another file is shown at the kernel, with its location.
    """
    placed: list[Diagnostic] = []
    for finding in findings:
        if finding.loc is None:
            placed.append(replace(finding, loc=kernel_loc))
        elif finding.loc.file == file:
            placed.append(finding)
        else:
            there = Note(f"at {Path(finding.loc.file).name}:{finding.loc.line}", finding.loc)
            placed.append(replace(finding, loc=kernel_loc, notes=(there, *finding.notes)))
    return [render.plain(finding) for finding in placed]


def _remark(loc: Loc, message: str, severity: str = "information") -> dict[str, Any]:
    """A remark beside the findings: a time, a Python warning, or why nothing was checked."""
    location = {"file": loc.file, "line": loc.line, "col": loc.col, "end": loc.end}
    return {"message": message, "severity": severity, "loc": location}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--profile")
    parser.add_argument("--device")
    parser.add_argument("--root", action="append", default=[])
    args = parser.parse_args()
    sys.path[:0] = args.root
    sys.dont_write_bytecode = True  # no files are written beside the user's files
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # output of the file itself
        for report in reports(args.file, args.profile, args.device):
            out.write(json.dumps(report) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
