"""Functions of both cores: values pass by queues both ways, with the bits of the whole function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError
from pto.ir.graph import Operation
from pto.isa.order.queue import FREE_AT, POP_AT
from pto.isa.order.queue_setup import RESERVE_BUFFER
from pto.isa.row.attributes import integer
from pto.isa.table import lookup
from pto.isa.tile.move import TMOV
from pto.observe.sanitize import sanitize
from pto.plan.sync import insert
from pto.run.launch.host import launch
from pto.target.profile import profile
from pto.transform.cores import CUBE, VECTOR
from pto.transform.separate import separate_all
from tests.transform.both_cores import (
    CASES,
    FLOAT,
    HALF,
    NPUS,
    attention,
    both,
    function_of,
    has_equal_bits,
    mlp_case,
)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["cpu", *NPUS])
def test_values_of_the_vector_unit_feed_the_cube(case: str, name: str):
    kernel, args, out, blocks, expected = CASES[case]()
    kernel.on(name)[blocks](*args)
    np.testing.assert_allclose(args[out], expected, rtol=4e-3, atol=4e-3 * abs(expected).max())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", NPUS)
def test_two_functions_have_the_bits_of_one(case: str, name: str):
    kernel, args, _, blocks, _ = CASES[case]()
    module, split = both(kernel, args, name)
    assert has_equal_bits(module, split, args, blocks)
    given = split.arguments([a for a in args if isinstance(a, np.ndarray)], blocks)
    assert not sanitize(split.module, args=given, blocks=blocks, entry=split.entry).findings


def order_of(function: Operation, *rows: Any) -> list[str]:
    return [op.name.removeprefix("pto.") for op in function.walk() if op.row in rows]


@pytest.mark.parametrize("name", NPUS)
def test_popped_tiles_are_read_in_their_slots(name: str):
    """No copy: products are popped from L1, and the vector core rectifies what it popped."""
    kernel, args, *_ = mlp_case(64, 192)
    _, split = both(kernel, args, name)
    cube, vector = (function_of(split, side) for side in (CUBE, VECTOR))
    moved = [op for op in vector.walk() if op.row is TMOV]
    assert len(moved) == (name == "a5"), "into boxes alone"
    assert order_of(cube, POP_AT[CUBE], FREE_AT[CUBE]) == ["tpop_from_aiv", "tfree_from_aiv"]
    (free,) = [op for op in cube.walk() if op.row is FREE_AT[CUBE]]
    last = free.home.ops[free.home.ops.index(free) - 1]
    assert last.row is TMOV, "freed behind its use"
    assert last.operands[0].maker in [op for op in cube.walk() if op.row is POP_AT[CUBE]]


def in_l1(t: pto.Tile, name: str) -> pto.Tile:
    """A tile of the vector unit, moved to L1 by hand."""
    made = pto.tile(t.rows, t.cols, t.dtype, role="mat")
    if name == "a5":
        boxes = pto.tile(t.rows, t.cols, t.dtype, layout="NZ")
        isa.tmov(boxes, t)
        t = boxes
    isa.tmov(made, t)
    return made


@pytest.mark.parametrize("name", NPUS)
def test_tiles_that_are_held_together_have_slots(name: str):
    """Both factors come from the vector unit: the second is pushed while the first is in use."""

    @pto.kernel
    def product(a: HALF, b: HALF, c: FLOAT) -> None:
        for i in pto.range(0, a.shape[0], 32):
            left, right = (t + t for t in (pto.load(a[i:, :], 32, 32), pto.load(b, 32, 32)))
            pto.store(c[i:, :], in_l1(left, name) @ in_l1(right, name))

    a = np.random.default_rng(5).integers(-9, 9, (96, 32)).astype(np.float16)
    args = [a, a[:32].copy(), np.zeros((96, 32), np.float32)]
    _, split = both(product, args, name)
    pops = ["tpop_from_aiv"] * 2 + ["tfree_from_aiv"] * 2
    assert order_of(function_of(split, CUBE), POP_AT[CUBE], FREE_AT[CUBE]) == pops
    given = split.arguments(args, 1)
    launch(split.module, args=given, entry=split.entry)
    assert (given[2] == 4 * a.astype(np.float32) @ a[:32].astype(np.float32)).all()


def test_a_tile_that_l1_would_keep_is_refused():
    @pto.kernel(profile="a5")
    def kept(a: HALF, c: FLOAT) -> None:
        t = pto.load(a[0:32, :], 32, 32)
        first = in_l1(t + t, "a5")
        for i in pto.range(0, a.shape[0], 32):
            pto.store(c[i:, :], first @ (pto.load(a[i:, :], 32, 32) * 2.0))

    args = [np.ones((64, 32), np.float16), np.zeros((64, 32), np.float32)]
    module = kept.module(*args)
    with pytest.raises(PtoError, match="L1 keeps while others follow"):
        separate_all(module, profile("a5")).required()


def test_tiles_that_fill_the_vector_buffer_of_a2a3_fit():
    """Causal attention in blocks of 128: a mask of one tile and a number, and a queue that has one
    slot in UB, since its slots lie in global memory."""
    half, out = np.zeros((256, 128), np.float16), np.zeros((256, 128), np.float32)
    sizes = {"m": 128, "n": 128, "d": 128}
    module = attention.on("a2a3").module(half, half, half, out, causal=True, **sizes)
    split = separate_all(module, profile("a2a3")).required()
    vector = function_of(split, VECTOR)
    assert order_of(vector, lookup("pto.tcmp"), lookup("pto.tcmps")) == ["tcmps"]
    sizes_of_queues = [
        integer(op.attrs, "size") for op in vector.walk() if op.row is RESERVE_BUFFER
    ]
    assert sizes_of_queues == [64 * 128 * 4]  # half of one tile of f32
    insert(split.module, profile("a2a3"))  # gives addresses
