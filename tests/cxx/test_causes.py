"""Findings by cause: one for each, with its places."""

from __future__ import annotations

from pto.core.errors import Diagnostic, Loc, Note
from pto.cxx.causes import grouped, summary


def race(line: int, earlier: int, code: str = "PTO-R001") -> Diagnostic:
    notes = (Note("write: tload #1 on MTE2, block 0", Loc("k.cpp", earlier)), Note("target: a2a3"))
    message = f"read-after-write race on UB[{line:#x}..0x40): V may read before MTE2 has written"
    return Diagnostic(code, message, Loc("k.cpp", line), notes=notes)


def test_races_with_one_earlier_access_are_one_cause():
    found = [race(12, 3), race(14, 3), race(12, 3), race(20, 7), race(14, 3, "PTO-R003")]
    causes = grouped(found)
    assert [(d.code, d.loc.line if d.loc else 0) for d in causes] == [
        ("PTO-R001", 12),
        ("PTO-R001", 20),
        ("PTO-R003", 14),
    ]
    also = [n for n in causes[0].notes if n.message.startswith("the same here")]
    assert [str(n.loc) for n in also] == ["k.cpp:14:1"]
    assert summary(causes, len(found)) == "3 causes, 5 findings"
    assert summary(causes[:1], 1) == ""


def test_many_places_are_counted():
    causes = grouped(race(10 + n, 3) for n in range(10))
    assert len(causes) == 1
    assert causes[0].notes[-1].message == "and at 3 more places"
