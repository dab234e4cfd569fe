"""Overlaps of a destination with a source that do no harm, against rows copied one by one."""

from itertools import product

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.core.tile import Role, TileType
from pto.ir.text.parser import parse
from pto.isa.rules.tile import row_by_row
from pto.verify import judge

ROWS, COLS = 4, 8  # of f32


def survives(offset: int, pitch: int, step: int) -> bool:
    """Whether copying row by row gives what the source held before; offsets in bytes."""
    base = 4 * ROWS * max(pitch, step)
    memory = np.arange(3 * base, dtype=np.int64)
    width = 4 * COLS
    before = [memory[base + offset + r * pitch :][:width].copy() for r in range(ROWS)]
    for r in range(ROWS):
        memory[base + r * step :][:width] = memory[base + offset + r * pitch :][:width]
    after = [memory[base + r * step :][:width] for r in range(ROWS)]
    return all(np.array_equal(a, b) for a, b in zip(after, before, strict=True))


def test_an_overlap_is_allowed_only_if_rows_in_order_survive_it():
    tile = TileType.of(Role.VEC, dtype("f32"), ROWS, COLS)
    allowed = 0
    for offset, pitch, step in product(range(-256, 257, 16), (32, 64), (32, 64)):
        if row_by_row(tile, tile, offset, (pitch, step)) and offset:
            assert survives(offset, pitch, step), (offset, pitch, step)
            allowed += 0 < offset < ROWS * step
    assert allowed > 5  # a destination that follows its source
    assert not row_by_row(tile, tile, -32, (32, 32))  # it runs ahead
    assert not row_by_row(tile, tile, 16, (32, 32))  # half a row further


PLACED = """
module attributes {{pto.target_arch = "{profile}"}} {{
  func.func @f() {{
    %at = arith.constant {src} : i64
    %to = arith.constant {dst} : i64
    %one = arith.constant 1.0 : f32
    %a = pto.alloc_tile addr = %at : !pto.tile_buf<{a}>
    %b = pto.alloc_tile addr = %to : !pto.tile_buf<{b}>
    pto.{name} ins(%a{more} : !pto.tile_buf<{a}>{types}) outs(%b : !pto.tile_buf<{b}>)
    return
  }}
}}
"""
F32, F16, PART = "vec, 16x64xf32", "vec, 16x64xf16", "vec, 16x128xf32, valid=16x64"


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("name", "a", "b", "dst", "is_legal"),
    [
        ("tadds", F32, F32, 0x1000, True),
        ("tadds", F32, F32, 0x1100, False),  # row 0 overwrites row 1
        ("tadds", F32, F32, 0x1800, False),
        ("tadds", F32, F32, 0x1020, False),  # the rest of its own row
        ("tadds", F32, F32, 0x0F00, True),  # row 1 goes where row 0 was
        ("tadds", F32, F32, 0x2000, True),
        ("texp", F32, F32, 0x1100, False),
        ("tmov", F32, F32, 0x1100, False),
        ("tmov", F32, F32, 0x0F00, True),
        ("tadds", PART, F32, 0x1000, True),  # row i goes where row i / 2 was
        ("tadds", F32, PART, 0x1000, False),  # row 1 goes where row 2 is
        ("tcvt", F32, F16, 0x1000, True),  # half as wide
        ("tcvt", F32, F16, 0x1800, False),
        ("tcvt", F16, F32, 0x1000, False),  # twice as wide
        ("tcvt", "vec, 1x64xf16", "vec, 1x64xf32", 0x1000, False),
        ("tcvt", F16, F32, 0x1800, True),
    ],
)
def test_tiles_at_addresses_are_compared_byte_by_byte(
    profile: str, name: str, a: str, b: str, dst: int, is_legal: bool
):
    more, types = (", %one", ", f32") if name == "tadds" else ("", "")
    words = {"name": name, "a": a, "b": b, "more": more, "types": types}
    text = PLACED.format(profile=profile, src=0x1000, dst=dst, **words)
    codes = [d.code for d in judge(parse(text))[1] if d.severity == "error"]
    assert codes == ([] if is_legal else ["PTO-M040"])


def test_addresses_of_different_buffers_do_not_overlap():
    moved = {"name": "tmov", "a": "mat, 32x32xf16, blayout=col_major, slayout=row_major"}
    moved |= {"b": "left, 32x32xf16, blayout=col_major, slayout=row_major", "more": "", "types": ""}
    text = PLACED.format(profile="a5", src=0x1000, dst=0x1200, **moved)
    assert judge(parse(text))[1] == []
