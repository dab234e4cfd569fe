"""The vocabulary of lane functions: every primitive has a form in LLVM, shortcuts give the bits of
their definitions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core import primitives
from pto.isa.meaning import lanes, mathlib
from pto.run.jit.emit import instructions
from pto.run.jit.llvm.lanes import PRIMITIVES

_FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16)
_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.75, 88.0, -103.0, np.inf, -np.inf, np.nan, 3e-39, 65504.0]


def test_every_primitive_has_a_form_in_compiled_code() -> None:
    instructions.load()
    assert lanes.convert is not None  # a primitive that another file adds
    assert set(primitives.NAMES) <= set(PRIMITIVES)


def _definition(fn: Any) -> Any:
    """What `shortcut` stands beside: the first name its wrapper closes over that is wrapped."""
    return fn.__wrapped__


@pytest.mark.parametrize("kind", _FLOATS, ids=str)
@pytest.mark.parametrize("fn", [lanes.maximum, lanes.minimum, lanes.div, mathlib.power])
def test_a_shortcut_of_two_floats_gives_the_bits_of_its_definition(fn: Any, kind: Any) -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate((np.array(_EDGES), rng.standard_normal(50) * 8)).astype(kind)
    a, b = (v.ravel() for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        _same(fn(a, b), _definition(fn)(a, b))


@pytest.mark.parametrize("kind", _FLOATS, ids=str)
@pytest.mark.parametrize("fn", [mathlib.exp, mathlib.log])
def test_a_shortcut_of_one_float_gives_the_bits_of_its_definition(fn: Any, kind: Any) -> None:
    rng = np.random.default_rng(4)
    values = np.concatenate((np.array(_EDGES), rng.standard_normal(2000) * 40)).astype(kind)
    with np.errstate(all="ignore"):
        _same(fn(values), _definition(fn)(values))


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64, np.uint64], ids=str)
def test_integers_divide_toward_zero_by_either_way(kind: Any) -> None:
    info = np.iinfo(kind)
    some = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 100]
    values = np.array([*some, *(-v for v in some[4:] if info.min < 0)], kind)
    a, b = (v.ravel() for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        _same(lanes.div(a, b), _definition(lanes.div)(a, b))
        _same(lanes.div(a, b), [primitives.quotient(x, y) for x, y in zip(a, b, strict=True)])


def _same(got: Any, want: Any) -> None:
    got = np.asarray(got)
    want = np.asarray(want, got.dtype)
    size = got.dtype.itemsize
    unknown = (got != got) & (want != want)
    assert (unknown | (got.view(f"u{size}") == want.view(f"u{size}"))).all()
