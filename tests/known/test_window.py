"""Windows on tiles and views, by NumPy slices of the whole."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.machine import Bench

NZ = "blayout=col_major, slayout=row_major"


def numbered(rows: int, cols: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(rows * cols).reshape(rows, cols).astype(dtype)


def subview(bench: Bench, at: tuple[int, int], body: str, part: str, extra: str = "") -> None:
    """Run `body` with %w, a window on tile `t`."""
    sizes = part.split(",")[1].split("x")[:2]
    bench.scalar("i", "index", at[0])
    bench.scalar("j", "index", at[1])
    bench.run(
        f"%w = pto.subview %t[%i, %j] sizes [{', '.join(sizes)}] {extra} :"
        f" {{t}} -> !pto.tile_buf<{part}>\n" + body.replace("{w}", f"!pto.tile_buf<{part}>")
    )


def test_every_instruction_sees_the_elements_of_the_window():
    bench = Bench("a5")
    whole = numbered(16, 32)
    bench.tile("t", "vec, 16x32xf32", whole)
    bench.tile("d", "vec, 4x8xf32")
    subview(bench, (5, 8), "pto.tadd ins(%w, %w : {w}, {w}) outs(%d : {d})", "vec, 4x8xf32")
    assert np.array_equal(bench["d"], whole[5:9, 8:16] * 2)


@pytest.mark.parametrize("layout", ["", ", blayout=col_major", f", {NZ}"])
def test_what_is_written_to_a_window_reaches_the_parent_and_nothing_else(layout: str):
    bench = Bench("cpu")
    whole = numbered(64, 64, "float16")
    bench.tile("t", f"vec, 64x64xf16{layout}", whole)
    bench.tile("s", f"vec, 16x32xf16{layout}", np.full((16, 32), -1))
    body = "pto.tadd ins(%s, %s : {s}, {s}) outs(%w : {w})"
    subview(bench, (32, 16), body, f"vec, 16x32xf16{layout}")
    whole[32:48, 16:48] = -2
    assert np.array_equal(bench["t"], whole)


def test_the_valid_region_of_a_window_is_its_own():
    bench = Bench("a5")
    whole = numbered(16, 32)
    bench.tile("t", "vec, 16x32xf32", whole, valid=(2, 2))
    bench.scalar("r", "index", 3)
    bench.scalar("c", "index", 99)
    body = "pto.tadd ins(%w, %w : {w}, {w}) outs(%w : {w})"
    part = "vec, 8x16xf32, valid=?x?"
    subview(bench, (4, 16), body, part, "valid [%r, %c]")
    whole[4:7, 16:32] *= 2  # 3 rows as asked, columns clipped to the window
    assert np.array_equal(bench["t"], whole)


@pytest.mark.parametrize(
    ("valid", "at", "share"),
    [((32, 64), (8, 16), (16, 32)), ((20, 40), (8, 16), (12, 24)), ((32, 32), (0, 32), (16, 32))],
)
def test_a_subset_shares_the_valid_region_of_its_parent(
    valid: tuple[int, int], at: tuple[int, int], share: tuple[int, int]
):
    """The third: the region repeats along the tile, as PTOAS infers it."""
    bench = Bench("a5")
    bench.tile("t", "vec, 32x64xf32, valid=?x?", valid=valid)
    bench.scalar("i", "index", at[0])
    bench.scalar("j", "index", at[1])
    part = "!pto.tile_buf<vec, 16x32xf32, valid=?x?>"
    found = bench.run(
        "%w = pto.subset %t[%i, %j] sizes [16, 32] : {t}",
        results=f"%w : {part}",
    )
    assert found[0].get_valid() == share


def test_a_window_of_global_memory_is_a_partition():
    bench = Bench("a2a3")
    memory = bench.pointer("p", "f32, gm", numbered(16, 32).reshape(-1))
    bench.tile("d", "vec, 4x8xf32")
    for name, value in (("c0", 0), ("c1", 1), ("c5", 5), ("c8", 8), ("c16", 16), ("c32", 32)):
        bench.scalar(name, "index", value)
    bench.run(
        "%v = pto.make_tensor_view %p, shape = [%c16, %c32], strides = [%c32, %c1]"
        " : !pto.tensor_view<16x32xf32>\n"
        "%w = pto.subview %v, offsets = [%c5, %c8], sizes = [4, 8] : !pto.tensor_view<16x32xf32>"
        " -> !pto.partition_tensor_view<4x8xf32>\n"
        "pto.tload ins(%w : !pto.partition_tensor_view<4x8xf32>) outs(%d : {d})"
    )
    assert np.array_equal(bench["d"], memory.reshape(16, 32)[5:9, 8:16])


@pytest.mark.parametrize(
    ("at", "tile", "part", "code"),
    [
        ((9, 0), "vec, 16x32xf32", "vec, 8x32xf32", "PTO-S073"),
        ((-1, 0), "vec, 16x32xf32", "vec, 8x32xf32", "PTO-S073"),
        ((8, 0), f"mat, 32x32xf16, {NZ}", f"mat, 16x32xf16, {NZ}", "PTO-L070"),
    ],
)
def test_a_window_that_cannot_be_is_refused(at: tuple[int, int], tile: str, part: str, code: str):
    bench = Bench("a5")
    bench.tile("t", tile)
    with pytest.raises(PtoError) as caught:
        subview(bench, at, "", part)
    assert caught.value.code == code
