"""A sample of random programs; `tests/random_programs.py` runs as many as wanted."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.ir.text.parser import parse
from pto.run.jit.emit.fusion import FusingEmitter
from pto.run.jit.emit.tile.strips import StepParameters
from tests.random_draft import ROWS, Draft
from tests.random_programs import attempt, drawn, outcome, quickly, run

# Of 150 programs, how many show a feature at least; the generator draws about twice as many.
FEATURES = {
    "in place": 45,
    "one tile twice": 35,
    "whole and expanded": 35,
    "overlapping operands": 10,
    "windows": 20,
    "run-time window": 5,
    "run-time scalar": 20,
    "renamed": 15,
    "unwritten tile": 40,
    "odd valid region": 40,
    "run-time bounds": 15,
    "set valid": 1,
    "empty region": 1,
    "loop": 35,
    "branch": 25,
    "several blocks": 20,
    "several results": 1,
    "placed": 7,
    "matrix unit": 10,
    "image": 2,
    "queue": 1,
    "registers": 15,
    "masks": 15,
    "logical vectors": 15,
    "integers": 12,
    "floats": 6,
    "buffers": 7,
    "dma by pointer": 7,
    "cube by pointer": 6,
    "call": 5,
    "work items": 7,
    "launch": 4,
}


@pytest.fixture(autouse=True)
def forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles may stay in registers, as for users: tests that compare buffers turn that off."""
    monkeypatch.setattr(FusingEmitter, "forwards", True)


def test_there_are_rows_to_try():
    assert len(ROWS) > 120


def test_programs_show_every_feature():
    """Tiles are drawn from a few, whatever becomes of the generator."""
    programs = [drawn(seed) for seed in range(150)]
    counts = Counter(feature for program in programs for feature in program.features)
    assert set(counts) == set(FEATURES)
    few = {name: counts[name] for name, least in FEATURES.items() if counts[name] < least}
    assert few == {}
    assert {program.profile for program in programs} == {"cpu", "a2a3", "a5"}
    assert len({row for program in programs for row in program.rows}) > 250


def test_a_number_is_one_program():
    first, second = (Draft(random.Random(5)).build() for _ in range(2))
    assert first.features == second.features
    assert [op.name for op in first.module.walk()] == [op.name for op in second.module.walk()]
    pairs = zip(first.args, second.args, strict=True)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@pytest.mark.filterwarnings("ignore")
def test_programs_are_the_same_on_both_engines():
    found = list(run(range(21)))
    assert [(seed, why) for seed, _, why, _ in found if why] == []
    assert sum(what == "agree" for _, what, _, _ in found) > 12


@pytest.mark.filterwarnings("ignore")
def test_lanes_cached_under_an_address_are_found(monkeypatch: pytest.MonkeyPatch):
    """Two accesses at one address under one name: a row of a tile is taken for the tile."""

    def by_address(self: StepParameters, ref: Any) -> Any:
        if not ref.private:
            self._places.setdefault(ref.identity, str(self.name(ref.pointer, "ptr")))
        return plain(self, ref)

    plain = StepParameters.ref
    monkeypatch.setattr(StepParameters, "ref", by_address)
    with quickly():
        assert attempt(SHARED, "tiles")[0] == "disagree"
    monkeypatch.undo()
    with quickly():
        assert attempt(SHARED, "tiles")[0] == "agree"


SHARED = 309  # a number whose program reads one address by two accesses in one group


def test_a_group_whose_tiles_all_stay_in_registers():
    with quickly():
        what, why, features = attempt(7013597, "tiles")  # compiling it divided by zero
    assert what == "agree", why
    assert "whole and expanded" in features


@pytest.mark.parametrize("types", [("i64", "ui64", "i64"), ("ui64", "i64", "ui64")])
@pytest.mark.parametrize("name", ["tshl", "tshr"])
def test_integers_of_one_width_count_as_the_destination_does(name: str, types: tuple[str, ...]):
    tile, view = "!pto.tile_buf<vec, 1x64x{}>", "!pto.tensor_view<1x64x{}>"
    lines = ["%c1 = arith.constant 1 : index", "%c64 = arith.constant 64 : index"]
    for n, t in enumerate(types):
        lines += [
            f"%v{n} = pto.make_tensor_view %p{n}, shape = [%c1, %c64], strides = [%c64, %c1] :"
            f" {view.format(t)}",
            f"%t{n} = pto.alloc_tile : {tile.format(t)}",
            f"pto.tload ins(%v{n} : {view.format(t)}) outs(%t{n} : {tile.format(t)})",
        ]
    kinds = [tile.format(t) for t in types]
    lines += [
        f'"pto.{name}"(%t0, %t1, %t2) : ({", ".join(kinds)}) -> ()',
        f"pto.tstore ins(%t2 : {kinds[2]}) outs(%v2 : {view.format(types[2])})",
    ]
    params = ", ".join(f"%p{n}: !pto.ptr<{t}, gm>" for n, t in enumerate(types))
    body = "\n".join(lines)
    text = f"func.func @f({params}) {{\n{body}\nreturn\n}}"
    arrays = [np.arange(64, dtype=dtype(t).numpy) for t in types]
    arrays[1] %= 64
    first, second = (outcome(parse(text), arrays, e) for e in ("reference", "jit"))
    assert first[0] == "bytes"
    assert first == second
    kind = dtype(types[2]).numpy
    values, counts = arrays[0].astype(kind), arrays[1].astype(kind)
    wanted = values << counts if name == "tshl" else values >> counts
    assert first[1][2] == wanted.tobytes()


def test_an_index_that_no_signed_number_holds_is_outside():
    """It was read as a negative one, which passed for small: compiled code wrote there."""
    tile, view = "!pto.tile_buf<vec, 1x64xi64>", "!pto.tensor_view<1x64xi64>"
    lines = ["%c1 = arith.constant 1 : index", "%c64 = arith.constant 64 : index"]
    for n in range(3):
        lines += [
            f"%v{n} = pto.make_tensor_view %p{n}, shape = [%c1, %c64], strides = [%c64, %c1]"
            f" : {view}",
            f"%t{n} = pto.alloc_tile : {tile}",
            f"pto.tload ins(%v{n} : {view}) outs(%t{n} : {tile})",
        ]
    lines += [f"pto.tscatter ins(%t0, %t1 : {tile}, {tile}) outs(%t2 : {tile})"]
    params = ", ".join(f"%p{n}: !pto.ptr<i64, gm>" for n in range(3))
    body = "\n".join(lines)
    module = parse(
        f'module attributes {{pto.target_arch = "cpu"}} {{ func.func @f({params}) {{\n{body}\n'
        "return\n} }"
    )
    arrays = [np.arange(64), np.arange(64), np.zeros(64, np.int64)]
    arrays[1][7] = -3
    for engine in ("reference", "jit"):
        assert outcome(module, arrays, engine) == ("finding", "PTO-M180")


@pytest.mark.parametrize(
    ("name", "types", "wanted"),
    [
        ("tpairreducesum", ("i64", "ui64"), [1, 5, 9, 13]),
        ("tpartmin", ("ui64", "i64", "i64"), [-1, 0, 1, 2, 3, 4, 5, 6]),
        ("tpartmax", ("i64", "ui64", "ui64"), [2**64 - 1, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_sources_of_either_sign_count_as_the_destination_does(
    name: str, types: tuple[str, ...], wanted: list[int]
):
    """One engine refused them; NumPy compares signed with unsigned words as floats."""
    tile, view = "!pto.tile_buf<vec, 1x8x{}>", "!pto.tensor_view<1x8x{}>"
    lines = ["%c1 = arith.constant 1 : index", "%c8 = arith.constant 8 : index"]
    for n, t in enumerate(types):
        lines += [
            f"%v{n} = pto.make_tensor_view %p{n}, shape = [%c1, %c8], strides = [%c8, %c1]"
            f" : {view.format(t)}",
            f"%t{n} = pto.alloc_tile : {tile.format(t)}",
            f"pto.tload ins(%v{n} : {view.format(t)}) outs(%t{n} : {tile.format(t)})",
        ]
    kinds, last = [tile.format(t) for t in types], len(types) - 1
    named = ", ".join(f"%t{n}" for n in range(len(types)))
    lines += [
        f'"pto.{name}"({named}) : ({", ".join(kinds)}) -> ()',
        f"pto.tstore ins(%t{last} : {kinds[last]}) outs(%v{last} : {view.format(types[last])})",
    ]
    params = ", ".join(f"%p{n}: !pto.ptr<{t}, gm>" for n, t in enumerate(types))
    body = "\n".join(lines)
    text = f'module attributes {{pto.target_arch = "cpu"}} {{\nfunc.func @f({params}) {{\n{body}\n'
    arrays = [np.arange(8).astype(dtype(t).numpy) for t in types]
    if last == 2:
        arrays[1] = (np.arange(8) - 1).astype(dtype(types[1]).numpy)
    first, second = (outcome(parse(text + "return\n}\n}"), arrays, e) for e in ("reference", "jit"))
    assert first[0] == "bytes"
    assert first == second
    found = np.frombuffer(first[1][last], dtype(types[last]).numpy)
    assert found[: len(wanted)].tolist() == wanted


@pytest.mark.parametrize("rows", [1, 8, 20])
@pytest.mark.parametrize("kind", ["i64", "ui64", "i32", "i16"])
@pytest.mark.parametrize("name", ["trowmax", "trowmin"])
def test_extremes_of_rows_of_any_width(name: str, kind: str, rows: int):
    """Rows are folded side by side, of wide elements fewer than of narrow ones."""
    tile, view = f"!pto.tile_buf<vec, {rows}x64x{kind}>", f"!pto.tensor_view<{rows}x64x{kind}>"
    text = f"""
module attributes {{pto.target_arch = "cpu"}} {{
  func.func @f(%p: !pto.ptr<{kind}>, %q: !pto.ptr<{kind}>) {{
    %one = arith.constant 1 : index
    %rows = arith.constant {rows} : index
    %wide = arith.constant 64 : index
    %v = pto.make_tensor_view %p, shape = [%rows, %wide], strides = [%wide, %one] : {view}
    %w = pto.make_tensor_view %q, shape = [%rows, %wide], strides = [%wide, %one] : {view}
    %t = pto.alloc_tile : {tile}
    %u = pto.alloc_tile : {tile}
    pto.tload ins(%v : {view}) outs(%t : {tile})
    pto.tload ins(%w : {view}) outs(%u : {tile})
    "pto.{name}"(%t, %u) : ({tile}, {tile}) -> ()
    pto.tstore ins(%u : {tile}) outs(%w : {view})
    return
  }}
}}"""
    x = np.random.default_rng(0).integers(0, 30000, (rows, 64)).astype(dtype(kind).numpy)
    first, second = (outcome(parse(text), [x, np.zeros_like(x)], e) for e in ("reference", "jit"))
    assert first == second
    found = np.frombuffer(second[1][1], x.dtype).reshape(rows, 64)[:, 0]
    assert (found == (x.max(axis=1) if name == "trowmax" else x.min(axis=1))).all()
