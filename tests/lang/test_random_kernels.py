"""A sample of random kernels of control flow; `random_kernels.py` runs as many as wanted."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.lang.random_kernels import expected, outcome, written

WORDS = "if elif else: while pto.range break continue return match nonlocal += [:] = s[1] f1( in ("


@pytest.mark.filterwarnings("ignore")
def test_kernels_do_what_python_does_or_are_told_why_not():
    counts: Counter[str] = Counter()
    for seed in range(16):
        what, told = outcome(seed, ("reference", "jit") if seed % 8 == 0 else ("reference",))
        assert what in ("equal", "finding"), f"{told}\n{written(seed)}"
        counts[what] += 1
    assert counts["equal"] >= 6  # the others change a tile in place that may have two names


def test_kernels_have_every_statement():
    texts = [written(seed) for seed in range(60)]
    for word in (*WORDS.split(), "yield", "yield from"):
        assert sum(word in text for text in texts) > 5, word


def test_the_stand_in_changes_an_array_by_each_of_its_names():
    text = """def k(x, y, out, n, m):
    a = pto.zeros(8, 8, pto.f32)
    for i in pto.range(n):
        b = a
        a += 2.0
    pto.store(y[0:8, :], b + a)
    put(out, 0, n // 2 + m % 3)
"""
    result = expected(text, 3, -2)
    assert result is not None
    assert result[0][0] == 12.0  # 6 by either name
    assert result[1] == [2, -99]  # 1 + 1, and one number is not stored
