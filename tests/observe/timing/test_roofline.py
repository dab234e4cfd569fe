"""Where a kernel stands below the matrix unit and memory: no kernel is above."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from examples.timing.gemm import gemm
from pto import isa
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space
from pto.ir.text.parser import parse
from pto.isa.cost.moves import window
from pto.observe.timing import Timing, benches, fold, time

SIZE, BLOCKS = 1536, 24


@pytest.fixture(scope="module")
def timing() -> Timing:
    shape = (SIZE, SIZE)
    return gemm.time(shape, shape, np.empty(shape, np.float32), BLOCKS, 4, blocks=BLOCKS)


def test_operations_of_all_blocks(timing: Timing):
    line = timing.roofline
    assert line is not None
    assert line.flops == 2 * SIZE**3
    assert line.flops_per_second == pytest.approx(line.flops / timing.core_us * 1e6)
    assert line.peak == pytest.approx(BLOCKS * 1850e6 * 2 * 16**3)
    assert line.bytes == timing.hbm_bytes >= 0.99 * 2 * 2 * SIZE**2  # what is read
    assert 0.3 * line.limit < line.flops_per_second < line.limit


def test_loops_that_are_left_out_count(timing: Timing, monkeypatch: pytest.MonkeyPatch):
    for name, value in (("ENOUGH", 100), ("WINDOW", 2), ("LOOKS", 2), ("MANY", 4)):
        monkeypatch.setattr(fold, name, value)
    products = many.time((16, 128), 5000)
    assert products.stream.folds
    assert products.roofline is not None
    assert products.roofline.flops == pytest.approx(5000 * 2 * 16 * 16 * 128)


@pto.kernel(profile="a2a3")
def many(x: pto.Global[pto.i8], n: int) -> None:
    """Products alone, of bytes: twice as many operations a cycle as of f16."""
    left = pto.tile(16, 128, pto.i8, role="left", address=0)
    right = pto.tile(128, 16, pto.i8, role="right", address=0)
    acc = pto.tile(16, 16, pto.i32, role="acc", address=0)
    for _ in pto.range(0, n):
        isa.tmatmul(acc, left, right)


@pytest.mark.parametrize("chip", [b.device.name for b in benches("a2a3")])
def test_the_peak_is_that_of_the_element_type(chip: str):
    line = many.time((16, 128), 50, device=chip).roofline
    assert line is not None
    mhz = next(b.mhz for b in benches("a2a3") if b.device.name == chip)
    assert line.peak == pytest.approx(mhz * 1e6 * 2 * 16 * 16 * 32)
    assert line.flops_per_second < line.peak


@pytest.mark.parametrize(("element", "sum_", "k0"), [("f16", "f32", 16), ("i8", "i32", 32)])
def test_products_of_pointers_count_every_part_of_k(element: str, sum_: str, k0: int):
    ends = f"!pto.ptr<{element}, l0a>", f"!pto.ptr<{element}, l0b>", f"!pto.ptr<{sum_}, l0c>"
    made = [f"%p{n} = pto.castptr %zero : i64 -> {end}" for n, end in enumerate(ends)]
    body = "\n    ".join([
        "%zero = arith.constant 0 : i64", "%size = arith.constant 128 : i64", *made,
        f"pto.mad %p0, %p1, %p2, %size, %size, %size : {', '.join(ends)}, i64, i64, i64",
        "return",
    ])  # fmt: skip
    arch = 'pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<cube>'
    text = f"module attributes {{{arch}}} {{\n  func.func @k() {{\n    {body}\n  }}\n}}"
    found = time(parse(text))
    assert found.roofline is not None
    assert found.roofline.flops == 2 * 128**3
    assert found.core_us * found.mhz == pytest.approx(8 * 8 * 128 // k0, rel=0.2)


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[n + 1 :])) for n in range(5))


@pytest.mark.parametrize(
    ("shape", "steps", "rows", "row_bytes", "pitch"),
    [
        ((1, 1, 16, 32, 2), (9999, 9999, 128, 2, 1), 16, 64, 128),  # scales, two by two
        ((1, 4, 2, 16, 32), strides((1, 4, 2, 16, 32)), 1, 4096, 4096),  # boxes without a gap
        ((2, 4, 8, 16, 16), (65536, 8192, 512, 16, 1), 64, 256, 512),  # lines of an image
    ],
)
def test_dimensions_side_by_side_are_one_stretch(
    shape: Any, steps: Any, rows: int, row_bytes: int, pitch: int
):
    view = GlobalTensor.of(Memory(Space.GM, 1 << 18), 0, pto.i8, shape, steps)
    total = int(np.prod(shape))
    found = window(view, total // 16, 16, writes=False)
    assert (found.rows, found.row_bytes, found.pitch) == (rows, row_bytes, pitch)
