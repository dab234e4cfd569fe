"""Kernels that ask Python what a size is are proved as the program that runs."""

from __future__ import annotations

import copy
import functools
import numbers

import numpy as np
import pytest

import pto

F32 = pto.Global[pto.f32]


@functools.singledispatch
def _by_type(_size):
    return False


@_by_type.register
def _(_size: int):
    return True


def _tries(size) -> bool:
    try:
        return size.bit_length() > 0
    except Exception:
        return False


def _is_int(size) -> bool:
    return type(size) is int


ASKS = {
    "isinstance": lambda n: isinstance(n, int),
    "abstract": lambda n: isinstance(n, numbers.Integral),
    "class": lambda n: n.__class__ is int,
    "type": _is_int,
    "hasattr": lambda n: hasattr(n, "bit_length"),
    "no to": lambda n: getattr(n, "to", None) is None,
    "numpy": lambda n: np.isscalar(n),
    "dispatch": _by_type,
    "try": _tries,
    "repr": lambda n: repr(n).isdigit(),
    "copy": lambda n: copy.copy(n) == 16 and isinstance(copy.copy(n), int),
    "derived": lambda n: isinstance(n // 2 + 1, int),
}


@pytest.mark.parametrize("name", ASKS)
def test_a_size_is_asked_what_it_is(name: str):
    """At a launch the answer is true, and then all blocks store to the same place."""
    asks = ASKS[name]

    @pto.kernel(profile="a5")
    def all_to_one(x: F32, y: F32, each: F32):
        block = pto.block_idx() * 8
        i = 0 if asks(x.shape[0]) else block
        part = pto.load(x[block : block + 8], 8)
        pto.store(each[block : block + 8], part)
        pto.store(y[i : i + 8], part)

    answers = {a.question: a.verdict for _, a in all_to_one.prove((16,), (16,), (16,))}
    assert answers["blocks"] == "refuted"


def test_sizes_that_nobody_asks_stay_open():
    @pto.kernel(profile="a5")
    def copies(x: F32, y: F32):
        i = pto.block_idx() * 8
        assert isinstance(8, int)
        pto.store(y[i:], pto.load(x[i:], 8))

    answers = {a.question: a for _, a in copies.prove((16,), (16,))}
    assert answers["blocks"].verdict == "proved"
    assert any("x.shape[0]" in text and "16" not in text for text in answers["blocks"].assumes)
