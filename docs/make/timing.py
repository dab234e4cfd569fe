"""docs/timing.md: every published measurement beside what `time` says of the same kernel.

`python -m docs.make.timing` times them all, which takes minutes; with words, only those whose name
has one of them, and nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from examples.timing.published import Published, published

PAGE = Path(__file__).parents[1] / "timing.md"
_INTRO = """\
# Times, measured and predicted

What others measured on chips and published, beside what `kernel.time` says of a kernel of ours that
does the same by the same tiling (`examples/timing/published.py`). The costs were fitted to rows
marked *fit*; rows marked **test** were kept to judge them. Shares are how long a pipe was busy, in
percent of the time, measured/predicted. *Bound* says whether the busiest pipe is the measured one.
`python -m docs.make.timing` writes this page.
"""
_REASONS = """\
What it does not know: what slows loads of 128 bytes out of the L2 cache of the 910B by half where
blocks read all of a small matrix, even each elsewhere (loads of 256 bytes of a large one are not
slowed); that 16 blocks of flash attention take a third longer than 8 or 24 (2048, and the last
round of 8192; another published table of the kernel shows the same); that the FIX pipe works
beside the product with unit flags; the scalar work of a library.

Kernels of others in C++, unmodified, have [a table of their own](timing_cpp.md).
"""


class Row(NamedTuple):
    """A measurement and what the model says."""

    measured: Published
    us: float
    busy: dict[str, float]

    @property
    def error(self) -> float:
        return self.us / self.measured.us - 1

    @property
    def bound(self) -> str:
        """Whether the busiest pipe is the one that was measured; several have to be known."""
        known = self.measured.busy
        if len(known) < 2 or "MTE2" not in known:
            return ""
        wanted = max(known, key=lambda pipe: known[pipe])
        found = max(self.busy, key=lambda pipe: self.busy[pipe])
        return "right" if found == wanted else f"{found}, not {wanted}"

    def line(self) -> str:
        known = self.measured.busy
        shares = (f"{p} {known[p]:.0%}/{self.busy.get(p, 0):.0%}".replace("%", "") for p in known)
        cells = (
            self.measured.name,
            self.measured.device,
            f"{self.measured.us:.1f}",
            f"{self.us:.1f}",
            f"{self.error:+.1%}",
            ", ".join(shares),
            self.bound,
            "fit" if self.measured.fitted else "**test**",
        )
        return f"| {' | '.join(cells)} |"


def replayed(rows: Iterable[Published]) -> Iterable[Row]:
    """Each row timed; what a launch touches is let go before the next."""
    for each in rows:
        timing = each.time()
        busy = {pipe: share for pipes in timing.busy.values() for pipe, share in pipes.items()}
        row = Row(each, timing.us, busy)
        print(row.line(), flush=True)
        yield row


def page(rows: list[Row]) -> str:
    head = ("kernel", "chip", "measured us", "predicted us", "error", "busy", "bound", "")
    table = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(row.line() for row in rows)]
    return "\n".join([_INTRO, _summary(rows), "", *table, "", _REASONS])


def _summary(rows: list[Row]) -> str:
    errors = [abs(row.error) for row in rows]
    told = [row.bound for row in rows if row.bound]
    within = sum(error <= 0.10 for error in errors)
    tests = [abs(row.error) for row in rows if not row.measured.fitted]
    return (
        f"{len(rows)} rows, {len(tests)} of them tests. Median error {median(errors):.1%}"
        f" ({median(tests):.1%} of the tests), {within} within 10 %, the largest"
        f" {max(errors):.0%}. The busiest pipe is right in {told.count('right')} of {len(told)}."
    )


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = [
        p for p in published() if not words or any(w in f"{p.name} {p.device}" for w in words)
    ]
    found = list(replayed(chosen))
    if not words:
        PAGE.write_text(page(found))
