"""Reads of one element of a tile are proved only where data were written."""

from __future__ import annotations

import pytest

import pto
from pto import isa

X, Y = pto.Global[pto.f32, 4, 6], pto.Global[pto.f32, 8]
OPEN = pto.Global[pto.f32, "m", 6]


def _reads(kernel, *args) -> str:
    return next(a.verdict for _, a in kernel.prove(*args) if a.question == "reads")


@pytest.mark.parametrize(
    ("row", "col", "verdict"),
    [(0, 0, "proved"), (3, 5, "proved"), (0, 7, "unknown"), (2, 6, "unknown"), (3, 31, "unknown")],
)
def test_a_known_element(row: int, col: int, verdict: str):
    """4x6 of a tile of 4x32 are loaded."""

    @pto.kernel(profile="a5")
    def element(x: X, y: Y):
        t = pto.load(x, 4, 6)
        isa.store_scalar(y, 0, isa.tgetval(t, row * 32 + col))

    assert _reads(element) in (verdict, "refuted" if verdict == "unknown" else verdict)


def test_an_element_of_the_run():
    @pto.kernel(profile="a5")
    def anywhere(x: X, y: Y, k: pto.i32):
        isa.store_scalar(y, 0, pto.load(x, 4, 6)[1, k])

    @pto.kernel(profile="a5")
    def counted(x: X, y: Y):
        t = pto.load(x, 4, 6)
        for k in pto.range(6):
            isa.store_scalar(y, k, t[1, k])

    @pto.kernel(profile="a5")
    def one_more(x: X, y: Y):
        t = pto.load(x, 4, 6)
        for k in pto.range(7):
            isa.store_scalar(y, k, t[1, k])

    assert _reads(anywhere, (4, 6), (8,), 7) != "proved"
    assert _reads(counted) == "proved"
    assert _reads(one_more) != "proved"


def test_rows_that_the_end_of_an_array_cuts():
    @pto.kernel(profile="a5")
    def last_row(x: OPEN, y: Y, k: pto.i32):
        t = pto.load(x[k:, :], 4, 6)
        isa.store_scalar(y, 0, t[3, 0])

    @pto.kernel(profile="a5")
    def maximum(x: X, y: Y):
        isa.store_scalar(y, 0, isa.tgetval(pto.load(x, 4, 6).max(), 0))

    assert _reads(last_row) != "proved"
    assert _reads(maximum) == "proved"
