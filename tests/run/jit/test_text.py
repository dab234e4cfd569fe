"""LLVM text: numbers known while it is written never reach it as instructions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from pto.run.jit.llvm.text import Text, scalar_type
from pto.run.jit.llvm.value import FALSE, TRUE, all_of


def test_numbers_are_folded_and_names_are_not() -> None:
    x = Text()
    assert x.add(x.mul(6, 7), 0) == 42
    assert x.over(x.sub(42, 1), 4) == 10
    assert x.rest(41, 4) == 1
    assert x.up(41, 4) == 11
    assert x.smaller(3, -3) == -3
    assert x.compare("slt", 1, 2).is_true
    assert x.lines == []
    assert x.mul("%p0", 3) == "%v1"
    assert x.lines[-1] == "  %v1 = mul i64 %p0, 3"


def test_what_changes_nothing_is_not_written() -> None:
    x = Text()
    for found in (x.add("%p0", 0), x.sub("%p0", 0), x.mul(1, "%p0"), x.over("%p0", 1)):
        assert found == "%p0"
    assert x.mul("%p0", 0) == 0
    assert x.rest("%p0", 1) == 0
    assert x.at("%p1", 0) == "%p1"
    assert x.lines == []


def test_sums_wrap_as_64_bits_do() -> None:
    assert Text().add((1 << 63) - 1, 1) == -(1 << 63)


@pytest.mark.parametrize(("a", "b", "word"), [(-1, 1, "ult"), (1, -1, "ule")])
def test_an_unsigned_comparison_of_a_negative_number_is_left_to_llvm(
    a: int, b: int, word: str
) -> None:
    assert not Text().compare(word, a, b).is_known


def test_conditions_that_are_known_leave_no_instruction() -> None:
    x = Text()
    unknown = x.bit("%p0")
    for found in (TRUE & unknown, unknown & TRUE, FALSE | unknown, unknown | FALSE):
        assert found is unknown
    assert (FALSE & unknown).is_false and (unknown & FALSE).is_false and (~TRUE).is_false
    assert (TRUE | unknown).is_true and (unknown | TRUE).is_true and (~FALSE).is_true
    assert all_of().is_true and x.bit(1).is_true and x.bit("false").is_false
    assert x.lines == []
    assert str(unknown & ~x.bit("%p1")) == "%v2"
    assert x.lines == ["  %v1 = xor i1 %p1, true", "  %v2 = and i1 %p0, %v1"]
    with pytest.raises(TypeError, match="branches on a number"):
        bool(unknown)


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu"])
def test_floats_of_a_byte_are_their_bits(name: str):
    """Of these NumPy calls only e5m2 a float."""
    assert scalar_type(np.dtype(getattr(ml_dtypes, name))) == "i8"
