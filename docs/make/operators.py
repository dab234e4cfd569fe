"""docs/operators.md: every operator of examples/operators with its predicted times.

`python -m docs.make.operators` times the calls of `examples/operators/timed.csv` on two chips and
writes the page. Words choose operators: their rows are replaced, the others stay.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from examples.operators.cases import drawn, unfilled
from pto.core.errors import PtoError
from pto.judging.speed import hap

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operators.md"
CALLS = ROOT / "examples" / "operators" / "timed.csv"
DEVICES = ("910b2", "950pr")
_HEAD = """\
# Operators

Operators that others chose: those of the public benchmark
[cann-bench](https://gitcode.com/cann/cann-bench), as kernels of the
[expression language](guide/expressions.md), one file each in `examples/operators`. Every one takes
arrays of any shape and several element types, runs on a2a3 and a5, and is compared with a NumPy
reference on both engines (`tests/examples/test_operators.py`).

The times are **predictions** of the [timing model](timing.md), launches included: nothing in the
columns "as written", "optimised", "share" and "HAP" was measured. *As written* is the kernel of the
file, *optimised* the schedule that [`optimize=True`](guide/optimize.md) finds for it; the cell is
empty where it was not searched for, as without a baseline and where control flow depends on data,
and where nothing is faster. *Share* is the bound of the benchmark by the smaller time.
*Baseline* is the time of
the vendor's operator that the benchmark published for the chip (`tasks/metadata`, read in November
2026); it is empty where the benchmark derived it from the bound. HAP is (baseline - bound) / (time
- bound + baseline - bound): 0.5 is the baseline, 1 the bound. [Published launches](timing_rows.md)
beside their predictions show how far the model is off.

`python -m docs.make.operators` writes this page.
"""


class Call(NamedTuple):
    """One call of an operator, with published figures of two chips in microseconds."""

    level: str
    operator: str
    case: str
    arguments: dict[str, Any]
    anchors: dict[str, tuple[float | None, float]]


def calls() -> list[Call]:
    """The calls of the table."""
    made: list[Call] = []
    with CALLS.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            anchors = {
                chip: (_number(row[f"baseline_{chip}_us"]), float(row[f"bound_{chip}_us"]))
                for chip in DEVICES
            }
            own = row["level"], row["operator"], row["case"], json.loads(row["arguments"])
            made.append(Call(*own, anchors))
    return made


def _number(text: str) -> float | None:
    return float(text) if text else None


def predicted(call: Call, device: str) -> tuple[float, float | None]:
    """The predicted microseconds of a call, as it is written and optimised."""
    module = importlib.import_module(f"examples.operators.{call.operator}")
    try:
        us = module.run.time(**unfilled(call.arguments), device=device).us
    except PtoError:  # control flow depends on data
        arguments = drawn(call.arguments)
        if hasattr(module, "inputs"):
            arguments = module.inputs(arguments, np.random.default_rng(0))
        return module.run.time(**arguments, device=device, with_values=True).us, None
    if call.anchors[device][0] is None:
        return us, None
    try:
        fast = module.run.time(**unfilled(call.arguments), device=device, optimize=True).us
    except PtoError as error:
        print(f"{call.operator}, {device}: not optimised: {str(error)[:300]}", flush=True)
        return us, None
    return us, fast if fast < us else None


def line(call: Call) -> str:
    """The row of a call in the table of its level."""
    arrays = ", ".join(_arrays(call.arguments))
    cells = [f"`{call.operator}`", arrays]
    for device in DEVICES:
        baseline, bound = call.anchors[device]
        us, fast = predicted(call, device)
        least = us if fast is None else fast
        score = hap(least, baseline, bound) if baseline else None
        cells += [f"{us:.1f}", "" if fast is None else f"{fast:.1f}", f"{bound / least:.0%}"]
        cells.append(f"{baseline:.1f}" if baseline else "")
        cells.append("" if score is None else f"{score:.2f}")
    return f"| {' | '.join(cells)} |"


def _arrays(arguments: dict[str, Any]) -> Iterator[str]:
    """The largest arrays of a call, as `f16 8x128`."""
    texts = [t for v in arguments.values() for t in (v if isinstance(v, list) else [v])]
    found = [re.match(r"(\w+)\[([\d, ]+)\]", t) for t in texts if isinstance(t, str)]
    sizes = [f"{m[1]} {m[2].replace(', ', 'x')}" for m in found if m]
    for text in dict.fromkeys(sizes[:3]):
        count = sizes.count(text)
        yield text if count == 1 else f"{count} of {text}"


def page(lines: dict[str, str]) -> str:
    """The page of the rows, by operator."""
    parts = [_HEAD]
    head = "| operator | arrays | " + " | ".join(
        f"{chip}, us as written | optimised | share | baseline | HAP" for chip in ("910B2", "950PR")
    )
    for level in "1234":
        own = [lines[c.operator] for c in calls() if c.level == level and c.operator in lines]
        parts.append("\n".join([f"## Level {level}\n", f"{head} |", "| --- " * 12 + "|", *own, ""]))
    scores = [[_score(text, n) for text in lines.values()] for n in (7, 12)]
    for chip, found in zip(("910B2", "950PR"), scores, strict=True):
        known = [each for each in found if each is not None] or [0.0]
        good = sum(each >= 0.5 for each in known)
        parts.append(
            f"{chip}: mean HAP {mean(known):.2f} of {len(known)} calls with a baseline, {good} of"
            " them at 0.5 or better.\n"
        )
    return "\n".join(parts)


def _score(text: str, cell: int) -> float | None:
    return _number(text.split("|")[cell].strip())


def written() -> dict[str, str]:
    """The rows that stand on the page."""
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    rows = re.finditer(r"^\| `(\w+)` (?:[^|\n]*\|){11}.*$", text, re.MULTILINE)
    return {m[1]: m[0] for m in rows}


def main(chosen: list[str]) -> None:
    lines = written()
    for call in calls():
        if not chosen or call.operator in chosen:
            try:
                lines[call.operator] = line(call)
            except (PtoError, TypeError, ValueError) as error:
                print(f"{call.operator}: {str(error)[:300]}", flush=True)
                continue
            print(lines[call.operator], flush=True)
            PAGE.write_text(page(lines), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
