"""A sample of programs that reach outside; `tests/guard_pages.py` runs as many as wanted."""

from __future__ import annotations

from tests.guard_pages import FORMS, guarded, in_a_process, text_of


def test_nothing_outside_is_touched():
    code, said = in_a_process(0, 250)
    assert code == 0, said
    assert "disagree" not in said
    assert "bytes" in said  # some stay inside


def test_the_pages_around_an_array_do_fault():
    code, said = in_a_process(0, -1)
    assert code != 0, said


def test_programs_are_well_formed():
    from pto.ir.text.parser import parse
    from pto.target.profile import profile
    from pto.verify import verify

    for name in FORMS:
        found = verify(parse(text_of(name)), profile("a5"))
        assert not [d for d in found if d.severity == "error"], name


def test_an_array_is_an_array():
    array = guarded(100)
    array[...] = 7
    assert array.sum() == 700
