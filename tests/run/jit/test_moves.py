"""Loads and stores on the fast engine: the same bytes as on the reference, all of them compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike
from tests.run.jit.tiles import Tile, program, view

_RANDOM = np.random.default_rng(7)


def _bytes(count: int) -> Any:
    return _RANDOM.integers(0, 256, count, dtype=np.uint8)


def _around(tiles: list[Tile]) -> list[Any]:
    """Bytes that lie in the tiles before, and arrays for what lies there after."""
    return [a for t in tiles for a in (_bytes(t.nbytes), np.zeros(t.nbytes, np.uint8))]


def _items(kind: str, count: int) -> Any:
    width = {"f32": 4, "i32": 4, "f16": 2, "i8": 1}[kind]
    numpy = {"f32": np.float32, "i32": np.int32, "f16": np.float16, "i8": np.int8}[kind]
    return _bytes(count * width).view(numpy)


def _both_ways(
    tile: Tile,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *,
    more: str = "",
    check: bool = False,
    **options: Any,
) -> None:
    """Load a view into the tile; and store another tile to a view of the same kind."""
    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    made = view("v", "g", tile.kind, shape, strides, more)
    dims = "x".join("?" for _ in shape)
    seen = f"%v : !pto.tensor_view<{dims}x{tile.kind}>"
    g = _items(tile.kind, count)
    kind = [("g", tile.kind)]
    load = program(kind, [tile], f"{made}pto.tload ins({seen}) outs({tile.ref()})")
    agree(load, [g, *_around([tile])], check=check, **options)
    store = program(kind, [tile], f"{made}pto.tstore ins({tile.ref()}) outs({seen})")
    agree(store, [g, *_around([tile])], check=check, **options)


_LAYOUTS = ["ND", "DN", "NZ", "ZN", "ZZ", "NN"]
_PARTS = [
    *(("f16", valid) for valid in ((32, 64), (17, 45), (1, 1), (5, 64), (32, 3), (0, 4))),
    *(("f32", (32, 64)), ("f32", (17, 45)), ("i8", (17, 45))),
]


@pytest.mark.parametrize("layout", _LAYOUTS)
@pytest.mark.parametrize(("kind", "valid"), _PARTS)
@pytest.mark.parametrize("across", [False, True])
def test_one_matrix_in_every_layout(
    layout: str, kind: str, valid: tuple[int, int], across: bool
) -> None:
    rows, cols = (max(1, n) for n in valid)
    tile = Tile("t", 32, 64, kind, layout, valid, role="mat")
    strides = (1, rows + 3) if across else (cols + 5, 1)
    _both_ways(tile, (rows, cols), strides)


@pytest.mark.parametrize("layout", ["ND", "DN", "NZ"])
def test_a_view_without_gaps_and_one_larger_than_the_tile(layout: str) -> None:
    _both_ways(Tile("t", 32, 64, layout=layout, role="mat"), (32, 64), (64, 1))
    _both_ways(Tile("t", 32, 64, layout=layout, role="mat"), (40, 70), (70, 1))
    _both_ways(Tile("t", 32, 64, layout=layout, role="mat"), (40, 70), (140, 2))


@pytest.mark.parametrize("arch", ["a5", "cpu"])
@pytest.mark.parametrize("layout", _LAYOUTS)
@pytest.mark.parametrize("valid", [(32, 45), (17, 64), (9, 3), (0, 3)])
@pytest.mark.parametrize("pad", [0, 3])
def test_pads_beside_the_valid_region(
    arch: str, layout: str, valid: tuple[int, int], pad: int
) -> None:
    tile = Tile("t", 32, 64, "f16", layout, valid, pad=pad, role="mat", dynamic=True)
    made = view("v", "g", "f16", (32, 64), (64, 1))
    body = f"{made}pto.tload ins(%v : !pto.tensor_view<?x?xf16>) outs({tile.ref()})"
    text = program([("g", "f16")], [tile], body)
    agree(text, [_items("f16", 32 * 64), *_around([tile])], check=False, profile=arch)


@pytest.mark.parametrize("layout", ["ND", "NZ"])
def test_views_of_several_matrices(layout: str) -> None:
    tile = Tile("t", 48, 32, "f16", layout, (40, 30), role="mat")
    _both_ways(tile, (2, 2, 12, 32), (2000, 900, 40, 1))
    if layout == "NZ":  # boxes in global memory
        _both_ways(
            Tile("t", 48, 32, "f16", layout, role="mat"), (1, 2, 3, 16, 16), (1536, 768, 256, 16, 1)
        )
        _both_ways(
            Tile("t", 48, 32, "f16", layout, role="mat"),
            (1, 2, 3, 16, 16),
            (1536, 800, 260, 16, 1),
            more=" {layout = #pto.layout<nz>}",
        )


@pytest.mark.parametrize("word", ["atomic_add", "atomic_max", "atomic_min"])
@pytest.mark.parametrize("kind", ["f32", "i32", "f16"])
@pytest.mark.parametrize("layout", ["ND", "NZ", "ZN"])
def test_atomic_stores(word: str, kind: str, layout: str) -> None:
    tile = Tile("t", 32, 64, kind, layout, (30, 61))
    made = view("v", "g", kind, (32, 64), (70, 1))
    how = f"{{atomicType = #pto<atomic_type {word}>}}"
    store = f"pto.tstore ins({tile.ref()}) outs(%v : !pto.tensor_view<?x?x{kind}>) {how}"
    text = program([("g", kind)], [tile], made + store)
    agree(text, [_items(kind, 70 * 32), *_around([tile])], check=False)


def test_a_view_that_lies_on_itself_is_stored_as_the_reference_does() -> None:
    tile = Tile("t", 8, 16)
    made = view("v", "g", "f32", (8, 16), (0, 1))
    text = program(
        [("g", "f32")],
        [tile],
        f"{made}pto.tstore ins({tile.ref()}) outs(%v : !pto.tensor_view<?x?xf32>)",
    )
    agree(text, [_items("f32", 64), *_around([tile])], check=False, all_native=False)


def test_a_view_too_small_for_the_tile_is_named() -> None:
    tile = Tile("t", 8, 16, dynamic=True)
    made = view("v", "g", "f32", (7, 16), (16, 1))
    text = program(
        [("g", "f32")],
        [tile],
        f"{made}pto.tload ins(%v : !pto.tensor_view<?x?xf32>) outs({tile.ref()})",
    )
    assert fails_alike(text, [_items("f32", 256), *_around([tile])], check=False) == "PTO-S170"


def test_a_view_outside_its_memory_is_named() -> None:
    tile = Tile("t", 8, 16)
    made = view("v", "g", "f32", (8, 16), (100, 1))
    text = program(
        [("g", "f32")],
        [tile],
        f"{made}pto.tload ins(%v : !pto.tensor_view<?x?xf32>) outs({tile.ref()})",
    )
    assert fails_alike(text, [_items("f32", 256), *_around([tile])], check=False) == "PTO-M001"


FIVE = """
!whole = !pto.tensor_view<?x?x?x?x?xf16>
!part = !pto.partition_tensor_view<?x?x?x?x?xf16>
!tile = !pto.tile_buf<mat, 32x64xf16, valid=?x?, blayout=col_major, slayout=row_major>
module attributes {pto.target_arch = "a3"} {
  func.func @f(%x: !pto.ptr<f16>, %y: !pto.ptr<f16>, %a: index, %b: index, %c: index, %d: index,
      %e: index, %rows: index, %cols: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s3 = arith.muli %d, %e : index
    %s2 = arith.muli %s3, %c : index
    %s1 = arith.muli %s2, %b : index
    %v = pto.make_tensor_view %x, shape = [%a, %b, %c, %d, %e], strides = [%s1, %s2, %s3, %e, %c1]
      : !whole
    %p = pto.partition_view %v, offsets = [%c0, %c0, %c0, %c0, %c0], sizes = [%a, %b, %c, %d, %e]
      : !whole -> !part
    %w = pto.make_tensor_view %y, shape = [%a, %b, %c, %d, %e], strides = [%s1, %s2, %s3, %e, %c1]
      : !whole
    %q = pto.partition_view %w, offsets = [%c0, %c0, %c0, %c0, %c0], sizes = [%a, %b, %c, %d, %e]
      : !whole -> !part
    %t = pto.alloc_tile valid_row = %rows valid_col = %cols : !tile
    pto.tload ins(%p : !part) outs(%t : !tile)
    pto.tstore ins(%t : !tile) outs(%q : !part)
    return
  }
}
"""


@pytest.mark.usefixtures("python_is_silent")
@pytest.mark.parametrize(
    ("shape", "region"),
    [
        ((1, 8, 1, 4, 64), (32, 64)),  # rows by all dimensions but the last
        ((1, 4, 2, 16, 16), (32, 64)),  # boxes of 16x16, column by column
        ((1, 1, 1, 32, 64), (20, 50)),
        ((1, 8, 1, 4, 64), (30, 60)),  # larger than the region, in the first layout
        ((1, 4, 2, 16, 16), (30, 60)),
        ((1, 8, 1, 4, 64), (0, 64)),
    ],
)
def test_a_view_whose_layout_its_sizes_tell(
    shape: tuple[int, ...], region: tuple[int, int]
) -> None:
    x = np.arange(np.prod(shape), dtype=np.float16)
    agree(FIVE, [x, np.zeros_like(x), *shape, *region])


@pytest.mark.parametrize("outer", [192, 256])
def test_a_view_of_many_dimensions_with_sizes_known_before_it_runs(outer: int) -> None:
    """The inner dimensions follow each other without gaps, the outer ones may have gaps."""
    numbers = "\n".join(
        f"    %n{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 16, 64, outer)
    )
    text = f"""
!whole = !pto.tensor_view<1x2x3x4x16xf32>
!part = !pto.partition_tensor_view<1x2x3x4x16xf32>
!tile = !pto.tile_buf<vec, 24x16xf32>
module attributes {{pto.target_arch = "a3"}} {{
  func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{
{numbers}
    %v = pto.make_tensor_view %x, shape = [%n1, %n2, %n3, %n4, %n16],
      strides = [%n{outer}, %n{outer}, %n64, %n16, %n1] : !whole
    %p = pto.partition_view %v, offsets = [%n0, %n0, %n0, %n0, %n0],
      sizes = [%n1, %n2, %n3, %n4, %n16] : !whole -> !part
    %w = pto.make_tensor_view %y, shape = [%n1, %n2, %n3, %n4, %n16],
      strides = [%n{outer}, %n{outer}, %n64, %n16, %n1] : !whole
    %q = pto.partition_view %w, offsets = [%n0, %n0, %n0, %n0, %n0],
      sizes = [%n1, %n2, %n3, %n4, %n16] : !whole -> !part
    %t = pto.alloc_tile : !tile
    pto.tload ins(%p : !part) outs(%t : !tile)
    pto.tstore ins(%t : !tile) outs(%q : !part)
    return
  }}
}}
"""
    x = np.arange(outer + 192, dtype=np.float32)
    agree(text, [x, np.zeros_like(x)])
