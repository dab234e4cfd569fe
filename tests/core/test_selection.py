"""What `-k` asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto.core.errors import PtoError
from pto.core.selection import sampled, select

NAMES = ["tileop/tadd/f32", "tileop/tadds/f16", "pto/micro-op/vadd", "pto/kernels/softmax"]


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("", NAMES),
        ("add", NAMES[:3]),
        ("tadd and not tadds", NAMES[:1]),
        ("f16 or kernels", [NAMES[1], NAMES[3]]),
        ("not tileop", NAMES[2:]),
        ("not not pto", [n for n in NAMES if "pto" in n]),
        ("tileop and (f16 or f64)", [NAMES[1]]),
        ("tadd/f", [NAMES[0]]),
        ("add and f32 or softmax", [NAMES[0], NAMES[3]]),
        ("nothing", []),
    ],
)
def test_words_and_operators(expression: str, chosen: list[str]):
    selection = select(expression)
    assert [n for n in NAMES if selection.holds(n)] == chosen


@pytest.mark.parametrize(
    "expression", ["a b", "and", "a and", "(a", "a)", "not", "a or or b", "()"]
)
def test_what_is_no_expression(expression: str):
    with pytest.raises(PtoError) as caught:
        select(expression)
    assert caught.value.code == "PTO-U061"


def test_deep_parentheses_are_refused():
    with pytest.raises(PtoError, match="more than 50 deep"):
        select("(" * 5000 + "a" + ")" * 5000)


_EXPRESSIONS = st.recursive(
    st.sampled_from(["t", "add", "f16", "p/t", "tadd/f", "add/f16", "q", "/"]),
    lambda inner: st.one_of(
        inner.map(lambda a: f"not ({a})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
    ),
)


@given(_EXPRESSIONS, st.sampled_from(["f16", "f32_add", "q", "tadd"]))
def test_a_program_that_holds_a_case_asked_for_is_never_passed_over(expression: str, case: str):
    selection = select(expression)
    if selection.holds(f"p/tadd/{case}"):
        assert selection.may_hold("p/tadd/", f'static Row rows[] = {{"other", "{case}"}};')


def test_a_program_without_a_case_asked_for_is_passed_over():
    assert not select("tsub").may_hold("tileop/tadd/", '{"f32_16x64", 16, 64}')
    assert not select("tadd and not f32").may_hold("tileop/tsub/", '{"f32"}')
    assert not select("tsub/f32").may_hold("tileop/tadd/", '{"f32"}')


def test_a_sample_is_drawn_by_its_seed() -> None:
    found = list(range(20))
    assert sampled(found, "5:1") == sampled(found, "5:1")
    assert sampled(found, "5:1") != sampled(found, "5:2")
    assert sorted(sampled(found, "99")) == found


@pytest.mark.parametrize("text", ["", "0", "x", "3:x", "-1"])
def test_a_sample_that_is_no_number(text: str) -> None:
    with pytest.raises(PtoError, match="--sample"):
        sampled([1, 2, 3], text)
