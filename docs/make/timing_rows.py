"""docs/timing_rows.md: published times of single launches next to predictions.

`python -m docs.make.timing_rows` times the rows of `examples/timing/measured.csv`; words choose
rows, and then nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from examples.timing.measured import Measured, fitted, measured

PAGE = Path(__file__).parents[1] / "timing_rows.md"
_INTRO = """\
# Times of single launches, measured and predicted

Published times of single launches next to the prediction of `kernel.time` for an equivalent kernel
(`examples/timing/measured.py`). Vendor operators have an unknown tiling: a natural tile kernel of
ours stands for them. Kernels in vector registers with published sources are written again by the
same tiling. *Interval* is what the report prints behind the time. Every other group of rows (an
operator and a case of it) is marked **test**; the rest decided the fixed costs of vector launches,
the rate of arrays that are new to the chip, the cost of transposes, and how wide intervals are.
`python -m docs.make.timing_rows` writes this page; [timing.md](timing.md) and
[timing_cpp.md](timing_cpp.md) have the kernels that all other costs come from.
"""
_SHORT, _LONG = 15.0, 50.0  # us


class Row(NamedTuple):
    """A measurement, and the prediction with its range."""

    row: Measured
    us: float
    low: float
    high: float
    is_fitted: bool

    @property
    def error(self) -> float:
        return self.us / self.row.us - 1

    @property
    def covered(self) -> bool:
        return self.low <= self.row.us <= self.high

    def line(self) -> str:
        row = self.row
        cells = (
            *(row.name, row.device, row.shape, row.dtype, f"{row.us:.1f}", f"{self.us:.1f}"),
            *(f"{self.low:.1f} to {self.high:.1f}", f"{self.error:+.0%}"),
            "fit" if self.is_fitted else "**test**",
        )
        return f"| {' | '.join(cells)} |"


def replayed(rows: Iterable[Measured]) -> Iterator[Row]:
    known = fitted()
    for row in rows:
        times = row.times()
        us, low, high = (sum(each) for each in zip(*((t.us, *t.band) for t in times), strict=True))
        found = Row(row, us, low, high, row.group in known)
        print(found.line(), flush=True)
        yield found


def summary(name: str, rows: list[Row]) -> str:
    """A line of the table of classes."""
    errors = [abs(each.error) for each in rows]
    shares = (
        sum(error <= 0.10 for error in errors),
        sum(error <= 0.25 for error in errors),
        sum(each.covered for each in rows),
    )
    cells = (
        *(name, str(len(rows)), f"{median(errors):.1%}", f"{mean(r.error for r in rows):+.0%}"),
        *(f"{share / len(rows):.0%}" for share in shares),
    )
    return f"| {' | '.join(cells)} |"


def classes(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for each in rows:
        found.setdefault(each.row.kind, []).append(each)
    sizes = {
        f"all below {_SHORT:.0f} us": [each for each in rows if each.row.us < _SHORT],
        f"all above {_LONG:.0f} us": [each for each in rows if each.row.us > _LONG],
        "all tests": [each for each in rows if not each.is_fitted],
        "all": rows,
    }
    return found | {name: some for name, some in sizes.items() if some}


def page(rows: list[Row]) -> str:
    head = (
        "class",
        "rows",
        "median error",
        "bias",
        "within 10 %",
        "within 25 %",
        "in the interval",
    )
    table = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    table += [summary(name, some) for name, some in classes(rows).items()]
    head = ("row", "chip", "shape", "type", "measured us", "predicted us", "interval", "error", "")
    every: list[str] = []
    for name, some in classes(rows).items():
        if not name.startswith("all"):
            every += ["", f"## {name[0].upper()}{name[1:]}", ""]
            every += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
            every += [each.line() for each in some]
    return "\n".join([_INTRO, *table, *every, ""])


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = [row for row in measured() if not row.in_cpp]
    chosen = [row for row in chosen if not words or any(word in row.name for word in words)]
    found = list(replayed(chosen))
    print(*(summary(name, some) for name, some in classes(found).items()), sep="\n")
    if not words:
        PAGE.write_text(page(found), encoding="utf-8")
