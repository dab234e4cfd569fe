"""Each pass of a schedule: what it did by counting operations, equal bits, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from pto import isa
from pto.cli.main import main
from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.isa.row.types import TileBuf
from pto.isa.tile.move import TLOAD
from pto.observe.proofs import prove
from pto.observe.timing import time
from pto.plan.calls import entry_functions
from pto.transform.schedule import step
from tests.transform.launches import (
    count,
    gemm,
    has_equal_bits,
    loops,
    matrices,
    results,
    rows,
    scheduled_by,
    tiles,
)


def verdicts(module: Module, blocks: int) -> dict[str, str]:
    functions = entry_functions(module, None)
    return {a.question: a.verdict for _, a in prove(module, functions, blocks=blocks)}


# 5 slices of k: two rounds of two, and one that is left over; 1 has no second iteration
@pytest.mark.parametrize(
    ("k", "number", "loads", "done"), [(80, 2, 6, True), (80, 5, 10, True), (16, 2, 2, False)]
)
def test_slots(k: int, number: int, loads: int, done: bool):
    args = matrices(64, k, 96)
    before = gemm.module(*args)
    after, (change,) = scheduled_by(before, 4, f"slots={number}")
    assert change.is_done is done
    assert count(before, "tload") == 2
    assert count(after.module, "tload") == loads
    assert count(after.module, "alloc_tile") == 1 + 2 * loads  # the accumulator, L1 and L0
    assert has_equal_bits(before, after, args, 4)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40, 41, 100])
@pytest.mark.parametrize("blocks", [1, 3])
def test_slots_of_a_loop_with_a_trip_count_of_the_run(n: int, blocks: int):
    random = np.random.default_rng(n)
    args = [*(random.standard_normal((104, 64)).astype(np.float32) for _ in range(2)), n]
    before = rows.module(*args)
    after, (change,) = scheduled_by(before, blocks, "slots=3")
    assert change.is_done
    assert count(after.module, "tload") == 4
    assert has_equal_bits(before, after, args, blocks)
    assert {verdicts(after.module, blocks)[each] for each in ("order", "deadlock")} == {"proved"}


def test_slots_overlap_loads_and_work():
    shapes = ((128, 1024), (1024, 256), (128, 256))
    specialised, args = gemm.called((*shapes, 128, 256, 64), {}, 1)
    module = specialised.module
    after, _ = scheduled_by(module, 1, "slots=2")
    us = [time(each, args=args, device="910b1").us for each in (module, after.module)]
    assert us[1] < us[0]


def left_shapes(module: Module) -> list[str]:
    """The shapes of the tiles that loads of the left operand fill."""
    types = [op.operands[1].type for op in module.walk() if op.row is TLOAD]
    return ["x".join(map(str, t.tile.shape)) for t in types[::2] if isinstance(t, TileBuf)]


# 5 slices: one load for 4 of them and one for the fifth, of each operand
@pytest.mark.parametrize(("number", "shapes"), [(4, ["32x64", "32x16"]), (9, ["32x80"])])
def test_longer(number: int, shapes: list[str]):
    args = matrices(64, 80, 96)
    before = gemm.module(*args)
    after, (change,) = scheduled_by(before, 4, f"longer={number}")
    assert change.is_done
    assert left_shapes(after.module) == shapes
    assert count(after.module, "textract") == 2 * min(number, 5)
    assert count(after.module, "tmatmul") == 5
    assert has_equal_bits(before, after, args, 4)


def test_longer_leaves_ragged_loads():
    """72 is no multiple of 16: the size of the last window is a number of the run."""
    args = matrices(32, 72, 48)
    before = gemm.module(*args)
    after, changes = scheduled_by(before, 1, "longer=4")
    assert changes == []
    assert has_equal_bits(before, after, args, 1)


def test_longer_leaves_loops_that_write_memory():
    @pto.kernel(profile="a2a3")
    def products(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]) -> None:
        for at in pto.range(0, 64, 16):
            pto.store(c[:, at:], pto.load(a[:16, at:], 16, 16) @ pto.load(b[at:, :], 16, 16))

    args = [*matrices(16, 64, 16)[:2], np.zeros((16, 64), np.float32)]
    _, changes = scheduled_by(products.module(*args), 1, "longer=2")
    assert changes == []


def test_persistent():
    """7 blocks on 3 cores: the first core runs 3 of them, the others 2."""
    args = [np.random.default_rng(1).standard_normal((56, 64)).astype(np.float32) for _ in "xy"]
    before = tiles.module(*args)
    after, (change,) = scheduled_by(before, 7, "persistent=3")
    assert change.is_done
    assert after.blocks == 3
    (loop,) = loops(after.module)
    assert [v.number for v in loop.operands[1:3]] == [7, 3]
    assert has_equal_bits(before, after, args, 7)
    kept, (change,) = scheduled_by(before, 7, "persistent=7")
    assert not change.is_done
    assert kept.blocks == 7


def test_persistent_with_the_number_of_blocks():
    random = np.random.default_rng(2)
    args = [*(random.standard_normal((104, 64)).astype(np.float32) for _ in range(2)), 100]
    before = rows.module(*args)
    after, (change,) = scheduled_by(before, 5, "persistent=2")
    assert change.is_done
    assert count(after.module, "get_block_num") == 0
    assert has_equal_bits(before, after, args, 5)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("pto.barrier <PIPE_ALL>", "wait"),
        ("pto.set_ctrl %c : i64", "mode"),
    ],
)
def test_persistent_leaves_what_may_touch_another_block(line: str, reason: str):
    text = f"func.func @k() {{\n%c = arith.constant 1 : i64\n{line}\nreturn\n}}"
    _, (change,) = scheduled_by(parse(text), 8, "persistent=2")
    assert not change.is_done
    assert reason in change.words


# 12 blocks of a 4 x 3 grid. By hand: groups of 3 rows, column by column, then the last row
ORDER = [0, 3, 6, 1, 4, 7, 2, 5, 8, 9, 10, 11]


def test_order():
    @pto.kernel(profile="a2a3")
    def mark(y: pto.Global[pto.i32]) -> None:
        i, j = pto.block_idx() // 3, pto.block_idx() % 3
        isa.store_scalar(y, i * 3 + j, 1)

    y = np.zeros((4, 3), np.int32)
    module = mark.module(y)
    after, (change,) = scheduled_by(module, 12, "order=3")
    assert change.is_done
    seen: list[int] = []
    for block in range(12):
        (marks,) = results(after.module, [y], block + 1, "reference")
        marked = np.flatnonzero(np.frombuffer(marks, np.int32))
        seen += [n for n in marked.tolist() if n not in seen]
    assert seen == ORDER


def test_order_shares_the_cache():
    """Matrices of 4,096: with 16 rows a group the cores ask for less than half of the lines."""
    shapes = ((4096, 1024), (1024, 4096), (4096, 4096))
    specialised, args = gemm.called((*shapes, 128, 256, 64), {}, 512)
    module = specialised.module
    after, _ = scheduled_by(module, 512, "order=4")
    times = [time(each, args=args, blocks=512, device="910b1") for each in (module, after.module)]
    assert times[1].us < times[0].us


def test_order_needs_a_grid():
    args = [np.zeros((56, 64), np.float32) for _ in "xy"]
    _, (change,) = scheduled_by(tiles.module(*args), 7, "order=2")
    assert not change.is_done


def test_steps_are_told_apart(capsys: pytest.CaptureFixture[str]):
    assert str(step("slots=2")) == "slots=2"
    for text in ("slots", "slots=0", "slots=x", "slotz=2"):
        with pytest.raises(PtoError, match="U273"):
            step(text)
    assert main(["opt", "--pass", "slotz", "examples/add.pto"]) == 2
    assert "PTO-U273" in capsys.readouterr().err
