"""a5: one pipe waits for a tile of a queue and gives its slot back, V of a vector core and MTE1 of
a cube; other pipes need flags. Facts of pto-isa: include/pto/npu/a5/TPush.hpp, `Consumer::wait` and
`Consumer::free`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.ir.text.parser import parse
from pto.isa.row.pipe_of import pipe_of
from pto.isa.rules.rule import Case
from pto.target.profile import profile as profile_named

M = 32
SLOT = M * 64 * 4
ROWS = M // 2
ROUNDS = 12  # more than the queue has slots
F16, F32 = pto.Global[pto.f16], pto.Global[pto.f32]


def _order(first: str, then: str) -> None:
    isa.set_flag(first, then, 0)
    isa.wait_flag(first, then, 0)


def _pair(use: Callable[[Any, Any, Any], None]) -> Any:
    """Products pass a queue; `use(o, j, popped tile)` is what the vector core does."""

    def cube(q: F16, k: F16, o: F32) -> None:
        buffer = isa.import_reserved_buffer("c2v", "vector")
        isa.aic_initialize_pipe(1, SLOT, c2v_consumer_buf=buffer)
        a = pto.tile(M, 64, pto.f16, role="mat", address=0)
        b = pto.tile(64, 64, pto.f16, role="mat", address=8192)
        left = pto.tile(M, 64, pto.f16, role="left", address=0)
        right = pto.tile(64, 64, pto.f16, role="right", address=0)
        acc = pto.tile(M, 64, pto.f32, role="acc", address=0)
        isa.tload(a, q)
        isa.tload(b, k)
        _order("MTE2", "MTE1")
        isa.tmov(left, a)
        isa.tmov(right, b)
        _order("MTE1", "M")
        for _ in pto.range(ROUNDS):
            isa.tmatmul(acc, left, right)
            _order("M", "FIX")
            isa.tpush_to_aiv(acc, 1)
            _order("FIX", "M")

    def vector(q: F16, k: F16, o: F32) -> None:
        buffer = isa.reserve_buffer("c2v", 8 * SLOT, "vec", False, base=0)
        isa.aiv_initialize_pipe(1, SLOT, c2v_consumer_buf=buffer)
        for j in pto.range(ROUNDS):
            row = j * M + pto.subblock_idx() * ROWS
            use(o, row, isa.tpop_from_aic(1, to=pto.tile_type(ROWS, 64, pto.f32)))
            isa.tfree_from_aic(1)

    return pto.pair(cube, vector, profile="a5", name="pair")


def _store(o: Any, row: Any, tile: Any) -> None:
    isa.tstore(o[row : row + ROWS, :], tile)


def _at_once(o: Any, row: Any, tile: Any) -> None:
    _store(o, row, tile)
    _order("MTE3", "V")


def _behind_scalar(o: Any, row: Any, tile: Any) -> None:
    """The scalar unit does not wait for the tile, so its flag orders nothing."""
    _order("S", "MTE3")
    _store(o, row, tile)
    _order("MTE3", "V")


def _freed_early(o: Any, row: Any, tile: Any) -> None:
    _order("V", "MTE3")
    _store(o, row, tile)


def _ordered(o: Any, row: Any, tile: Any) -> None:
    _order("V", "MTE3")
    _store(o, row, tile)
    _order("MTE3", "V")


def _ordered_through_scalar(o: Any, row: Any, tile: Any) -> None:
    """PTOAS waits for the uses of a slot on S, which issues the free then."""
    _order("V", "MTE3")
    _store(o, row, tile)
    _order("MTE3", "S")


def _on_v_alone(o: Any, row: Any, tile: Any) -> None:
    copy = pto.tile(ROWS, 64, pto.f32, address=8 * SLOT)
    isa.tadds(copy, tile, 0.0)
    _order("V", "MTE3")
    _store(o, row, copy)
    _order("MTE3", "V")


WAYS = {
    _at_once: False,
    _behind_scalar: False,
    _freed_early: False,
    _ordered: True,
    _ordered_through_scalar: True,
    _on_v_alone: True,
}


def _arrays() -> list[Any]:
    a, b = np.ones((M, 64), np.float16) / 8, np.ones((64, 64), np.float16) / 8
    return [a, b, np.zeros((ROUNDS * M, 64), np.float32)]


@pytest.mark.parametrize("use", WAYS, ids=lambda use: use.__name__.strip("_"))
def test_uses_of_a_popped_tile_on_another_pipe_need_flags(use: Callable[..., None]) -> None:
    """The proof and the sanitizer agree with the header."""
    kernel, arrays = _pair(use), _arrays()
    answers = [a for _, a in kernel.prove(*arrays) if a.question == "order"]
    assert all(a.verdict == "proved" for a in answers) is WAYS[use]
    found = {d.code for d in kernel.sanitize(*arrays) if d.severity == "error"}
    assert bool(found) is not WAYS[use]
    assert found <= {"PTO-R010", "PTO-R011", "PTO-R012"}


def test_flags_that_are_inserted_order_the_store_of_a_popped_tile() -> None:
    """A kernel without flags runs with those that the planner inserts."""

    def cube(q: F16, k: F16, o: F32) -> None:
        buffer = isa.import_reserved_buffer("c2v", "vector")
        isa.aic_initialize_pipe(1, SLOT, c2v_consumer_buf=buffer)
        a, b = pto.load(q, M, 64), pto.load(k, 64, 64)
        for _ in pto.range(ROUNDS):
            isa.tpush_to_aiv(pto.dot(a, b), 1)

    def vector(q: F16, k: F16, o: F32) -> None:
        buffer = isa.reserve_buffer("c2v", 8 * SLOT, "vec", True)
        isa.aiv_initialize_pipe(1, SLOT, c2v_consumer_buf=buffer)
        for j in pto.range(ROUNDS):
            row = j * M + pto.subblock_idx() * ROWS
            tile = isa.tpop_from_aic(1, to=pto.tile_type(ROWS, 64, pto.f32))
            pto.store(o[row : row + ROWS, :], tile)
            isa.tfree_from_aic(1)

    kernel, arrays = pto.pair(cube, vector, profile="a5", name="pair"), _arrays()
    assert {a.verdict for _, a in kernel.prove(*arrays) if a.question == "order"} == {"proved"}
    assert not [d for d in kernel.sanitize(*arrays) if d.severity == "error"]


@pytest.mark.parametrize(
    ("profile", "side", "popped", "freed"),
    [("a5", "vector", "V", "V"), ("a5", "cube", "MTE1", "MTE1"), ("a2a3", "vector", "MTE2", "S")],
)
def test_one_pipe_waits_for_a_tile_and_gives_it_back(
    profile: str, side: str, popped: str, freed: str
) -> None:
    peer, role = ("aic", "vec") if side == "vector" else ("aiv", "mat")
    tile = f"!pto.tile_buf<{role}, 16x64xf32>"
    text = f"""func.func @k() attributes {{pto.kernel_kind = #pto.kernel_kind<{side}>}} {{
    %t = pto.tpop_from_{peer} {{split = 0}} -> {tile}
    pto.tfree_from_{peer} {{split = 0}}
    return
    }}"""
    ops = {op.name: op for op in parse(text).walk()}
    target = profile_named(profile)
    assert pipe_of(Case(ops[f"pto.tpop_from_{peer}"], target)) == popped
    assert pipe_of(Case(ops[f"pto.tfree_from_{peer}"], target)) == freed


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("use", [use for use, is_right in WAYS.items() if is_right])
def test_what_is_ordered_gives_the_products(use: Callable[..., None], engine: str) -> None:
    kernel, arrays = _pair(use), _arrays()
    kernel(*arrays, engine=engine)
    assert np.array_equal(arrays[2], np.ones((ROUNDS * M, 64), np.float32))  # 64 / 8 / 8
