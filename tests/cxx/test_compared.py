"""What an exported folder compares, how closely, and the contents that its arrays begin with."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto.cxx import st
from pto.cxx.export import folder
from pto.ir.text.parser import parse
from pto.suite import pool

HALF, FLOAT = pto.Global[pto.f16], pto.Global[pto.f32]
BLOCKS = 5


def read(path: Path, name: str, like: np.ndarray) -> np.ndarray:
    return np.fromfile(path / f"data/{name}.bin", like.dtype).reshape(like.shape)


def statuses(path: Path) -> dict[str, str]:
    cases = pool.run(st.suite(st.find([path]), "", 300.0), 1)
    return {c.group: c.outcome for c in cases}


# ---- atomic additions


@pto.kernel(profile="a5")
def sums(x: pto.Global, y: pto.Global) -> None:
    """Each block adds its rows to the same ones."""
    i = pto.block_idx() * 2
    pto.store(y, pto.load(x[i:, :], 2, 64), atomic="add")


def terms(kind: Any) -> np.ndarray:
    rng = np.random.default_rng(11)
    return rng.standard_normal((BLOCKS * 2, 64)).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_every_order_of_atomic_additions_is_within_the_tolerance(kind: Any, tmp_path: Path):
    """All orders of five blocks, added by NumPy in the type of the array."""
    x, y = terms(kind), np.ones((2, 64), kind)
    exported = sums[BLOCKS].export(x, y, out=str(tmp_path / "sums"))
    allowed = exported.arrays[1].tolerance
    assert (allowed.allowed, exported.arrays[0].tolerance) == (0.0, None)
    assert "blocks add in another order" in str(allowed)
    golden = read(exported.path, "golden_y", y).astype(np.float64)
    worst = 0.0
    for order in permutations(range(BLOCKS)):
        total = y.copy()
        for n in order:
            total = (total + x[2 * n : 2 * n + 2]).astype(kind)
        worst = max(worst, float(np.abs(total.astype(np.float64) - golden).max()))
    assert 0 < worst <= allowed.absolute < 30 * worst


@pytest.mark.parametrize("blocks", [1, BLOCKS])
def test_additions_whose_order_is_fixed_are_compared_bit_by_bit(blocks: int, tmp_path: Path):
    """Those of one block, and those of integers."""
    kind = np.float32 if blocks == 1 else np.int32
    x = (terms(np.float32) * 100).astype(kind)
    exported = sums[blocks].export(x, np.ones((2, 64), kind), out=str(tmp_path / "sums"))
    assert str(exported.arrays[1].tolerance) == "equal bits"


def test_each_block_that_adds_elsewhere_is_compared_bit_by_bit(tmp_path: Path):
    @pto.kernel(profile="a2a3")
    def apart(x: FLOAT, y: FLOAT) -> None:
        i = pto.block_idx() * 2
        pto.store(y[i:, :], pto.load(x[i:, :], 2, 64), atomic="add")

    x = terms(np.float32)
    exported = apart[BLOCKS].export(x, np.ones_like(x), out=str(tmp_path / "apart"))
    assert str(exported.arrays[1].tolerance) == "equal bits"


@pytest.mark.usefixtures("a_compiler")
def test_a_sum_may_differ_by_its_rounding_and_no_more(tmp_path: Path):
    x, y = terms(np.float32), np.ones((2, 64), np.float32)
    for name, factor in {"same": 0.0, "rounded": 0.9, "wrong": 1.5}.items():
        exported = sums[BLOCKS].export(x, y, out=str(tmp_path / name))
        golden = read(exported.path, "golden_y", y)
        place = np.argmax(np.abs(golden))
        golden.flat[place] += np.float32(factor * exported.arrays[1].tolerance.absolute)
        golden.tofile(exported.path / "data/golden_y.bin")
    assert statuses(tmp_path) == {"rounded": "near", "same": "exact", "wrong": "wrong"}


# ---- launches that leave an array as it was


@pto.kernel(profile="a2a3")
def doubled(x: FLOAT, y: FLOAT) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, 0:60], pto.load(x[i:, 0:60], 16, 60) * 2.0)


def test_a_launch_may_be_exported_after_it_ran(tmp_path: Path):
    """The bytes that it writes are others at first, so that a board has to write them."""
    x = np.arange(37 * 64, dtype=np.float32).reshape(37, 64)
    y = np.full_like(x, 7.0)
    doubled[3](x, y)
    expected = np.where(np.arange(64) < 60, 2 * x, 7.0)
    assert np.array_equal(y, expected)
    exported = doubled[3].export(x, y, out=str(tmp_path / "doubled"))
    assert np.array_equal(y, expected), "the caller's array is left alone"
    assert np.array_equal(read(exported.path, "golden_y", y), expected)
    first = read(exported.path, "y", y).view(np.uint8).reshape(37, 64, 4)
    raw = expected.astype(np.float32).view(np.uint8).reshape(37, 64, 4)
    assert np.array_equal(first[:, 60:], raw[:, 60:]), "what is not written stays"
    assert (first[:, :60] != raw[:, :60]).all()


@pytest.mark.usefixtures("a_compiler")
def test_a_board_that_writes_nothing_is_noticed(tmp_path: Path):
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    y = np.zeros_like(x)
    doubled(x, y)
    doubled.export(x, y, out=str(tmp_path / "right"))
    idle = doubled.export(x, y, out=str(tmp_path / "idle")).path / "doubled_kernel.cpp"
    text = idle.read_text()
    assert text.count("TSTORE(") == 1
    idle.write_text(text.replace("TSTORE(", "// TSTORE("))
    assert statuses(tmp_path) == {"idle": "wrong", "right": "exact"}


@pytest.mark.usefixtures("a_compiler")
def test_an_array_that_a_launch_reads_begins_as_it_is(tmp_path: Path):
    """In place, and at one address for two parameters."""

    @pto.kernel(profile="a5")
    def clipped(x: FLOAT, y: FLOAT) -> None:
        pto.store(y, pto.relu(pto.load(x, 16, 64)))

    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    exported = clipped.export(x, x, out=str(tmp_path / "clipped"))
    assert np.array_equal(read(exported.path, exported.arrays[0].file, x), x)
    assert statuses(tmp_path) == {"clipped": "exact"}


def test_additions_of_nothing_begin_as_they_are(tmp_path: Path):
    """An atomic addition reads what it writes, and no operand says so."""
    y = np.arange(128, dtype=np.float32).reshape(2, 64)
    exported = sums[2].export(np.zeros((4, 64), np.float32), y, out=str(tmp_path / "sums"))
    assert np.array_equal(read(exported.path, "y", y), y)
    assert np.array_equal(read(exported.path, "golden_y", y), y)


READS = """
module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<i32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %v = pto.load_scalar %x[%c0] : !pto.ptr<i32> -> i32
    return
  }
}
"""


def test_a_launch_that_writes_nothing_has_nothing_to_compare(tmp_path: Path):
    args = [np.zeros(8, np.int32)]
    with pytest.raises(pto.PtoError, match="the launch writes no array: a board has nothing"):
        folder.export([parse(READS)], [args], tmp_path / "out", name="reads")
    assert not (tmp_path / "out").exists()


# ---- forms that the chip's library takes


@pytest.mark.usefixtures("a_compiler")
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_turned_window_may_name_its_buffer(target: str, tmp_path: Path):
    @pto.kernel(profile=target)
    def product(q: HALF, k: HALF, o: FLOAT) -> None:
        turned = pto.load(k.T, 64, 32, role="mat")
        pto.store(o, pto.dot(pto.load(q, 32, 64), turned))

    rng = np.random.default_rng(4)
    q, k = (rng.integers(-3, 4, (32, 64)).astype(np.float16) for _ in range(2))
    o = np.zeros((32, 32), np.float32)
    product.export(q, k, o, out=str(tmp_path / "product"))
    assert not product.check()
    golden = read(tmp_path / "product", "golden_o", o)
    assert np.array_equal(golden, q.astype(np.float32) @ k.T.astype(np.float32))
    assert statuses(tmp_path) == {"product": "exact"}
