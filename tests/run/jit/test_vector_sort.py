"""Sorting and merging in UB on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.dtypes import dtype
from tests.run.jit.bench import BothEngines, edge_values

_NUMBERS = "ui32, ub"


def _scores(elem: str, count: int) -> Any:
    """Few different numbers, both zeros, infinities and NaN."""
    found = np.random.default_rng(4).integers(-3, 3, count).astype(dtype(elem).numpy)
    found[::7], found[5::11], found[::13] = np.nan, -0.0, np.inf
    return found


@pytest.mark.parametrize("elem", ["f32", "f16"])
@pytest.mark.parametrize("repeat", [0, 1, 3])
def test_32_at_a_time(elem: str, repeat: int) -> None:
    at = BothEngines()
    at.pointer("to", f"{elem}, ub", np.zeros(1024))
    at.pointer("from", f"{elem}, ub", _scores(elem, 96))
    at.pointer("n", _NUMBERS, np.arange(100, 196))
    at.scalar("k", "index", repeat)
    at.run("pto.vbitsort %to, %from, %n, %k : {to}, {from}, {n}, {k}")


def test_onto_its_own_scores() -> None:
    at = BothEngines()
    at.pointer("from", "f32, ub", edge_values(dtype("f32"), 256, 1))
    at.pointer("n", _NUMBERS, np.arange(96))
    at.scalar("k", "index", 2)
    at.run("pto.vbitsort %from, %from, %n, %k : {from}, {from}, {n}, {k}")


def test_too_many_repetitions_are_refused() -> None:
    at = BothEngines()
    at.pointer("to", "f32, ub", np.zeros(64))
    at.pointer("n", _NUMBERS, np.arange(96))
    at.scalar("k", "index", 256)
    assert at.fails("pto.vbitsort %to, %to, %n, %k : {to}, {to}, {n}, {k}") == "PTO-S140"


def _records(elem: str, seed: int, lengths: list[int], total: int) -> Any:
    """A list of descending records in each repetition, `total` records apart."""
    rng, size = np.random.default_rng(seed), dtype(elem).itemsize
    out = np.zeros(2 * total, np.uint64)
    for k, length in enumerate(lengths):
        records = np.zeros(length, np.uint64)
        scores = -np.sort(-rng.integers(-4, 9, length)).astype(dtype(elem).numpy)
        records.view(dtype(elem).numpy)[:: 8 // size] = scores
        records.view(np.uint32)[1::2] = np.arange(length) + 1000 * seed
        out[k * total : k * total + length] = records
    return out


def _merge(elem: str, lengths: list[int], config: int, spoil: Any = None) -> BothEngines:
    at, total = BothEngines(), sum(lengths)
    at.pointer("to", f"{elem}, ub", np.zeros(8192 // dtype(elem).itemsize))
    for n, length in enumerate([*lengths, 0, 0][:4]):
        records = _records(elem, n, [length, length], max(total, 1))
        if spoil is not None and n == 1:
            records.view(dtype(elem).numpy)[8 // dtype(elem).itemsize] = spoil
        at.pointer(f"s{n}", f"{elem}, ub", records.view(dtype(elem).numpy))
    at.scalar("count", "i64", sum(length << 16 * n for n, length in enumerate(lengths)))
    at.scalar("config", "i64", config)
    return at


_BODY = """pto.vmrgsort4 %to, %s0, %s1, %s2, %s3, %count, %config
             : {to}, {s0}, {s1}, {s2}, {s3}, {count}, {config}
           %a, %b, %c, %d = pto.get_vms4_sr : i16, i16, i16, i16"""
_TAKEN = "%a : i16; %b : i16; %c : i16; %d : i16"


@pytest.mark.parametrize("elem", ["f32", "f16"])
@pytest.mark.parametrize(
    "lengths, valid", [([5, 7], 3), ([4, 4, 4], 7), ([9, 1, 3, 30], 15), ([6, 0, 2, 5], 15)]
)
@pytest.mark.parametrize("repeat", [1, 2])
def test_merges(elem: str, lengths: list[int], valid: int, repeat: int) -> None:
    at = _merge(elem, lengths, valid << 8 | repeat)
    assert at.run(_BODY, results=_TAKEN) == [*lengths, 0, 0][:4]


@pytest.mark.parametrize("spoil", [np.nan, -np.inf])
def test_what_is_no_plain_merge_is_left_to_the_reference(spoil: float) -> None:
    _merge("f32", [5, 2], 3 << 8 | 1, spoil).run(_BODY, results=_TAKEN)


@pytest.mark.parametrize("elem", ["f32", "f16"])
@pytest.mark.parametrize(
    "lengths, valid", [([5, 2], 3), ([1, 1, 1], 7), ([9, 1, 3, 30], 15), ([6, 0, 2, 5], 15)]
)
@pytest.mark.parametrize("repeat", [0, 1, 2])
def test_merges_that_stop_where_a_list_runs_out(
    elem: str, lengths: list[int], valid: int, repeat: int, python_is_silent: None
) -> None:
    at = _merge(elem, lengths, 1 << 12 | valid << 8 | repeat)
    taken = at.run(_BODY, results=_TAKEN)
    out = any(n and n == length for n, length in zip(taken, lengths, strict=False))
    assert out == (repeat > 0) and sum(taken) <= sum(lengths)


def test_a_list_that_rises_is_refused() -> None:
    assert _merge("f32", [5, 4], 3 << 8 | 1, 1e9).fails(_BODY, results=_TAKEN) == "PTO-M145"


@pytest.mark.parametrize("name, count", [("vsort32", 32), ("vtranspose", 256)])
def test_one_block(name: str, count: int) -> None:
    at = BothEngines()
    at.pointer("to", "f32, ub", np.zeros(count))
    at.pointer("from", "f32, ub", _scores("f32", count))
    at.scalar("c", "i64", 0)
    at.run(f"pto.{name} %to, %from, %c : {{to}}, {{from}}, {{c}}")
    at.run(f"pto.{name} %from, %from, %c : {{from}}, {{from}}, {{c}}")
