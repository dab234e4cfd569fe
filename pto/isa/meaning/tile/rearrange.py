"""Padding, reinterpretation, transposition, concatenation and interleaving of tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pto.core.errors import PtoError, fail
from pto.core.tile import Role, Tile, TileType
from pto.isa.meaning.handle.view import Handles, TileForm, handles, tile_type
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, select
from pto.isa.meaning.tile.move import padded_block
from pto.isa.meaning.tile.mover import Change, Mover
from pto.isa.meaning.tile.regions import outside
from pto.isa.rules.rule import Case

# ---- padding


def _fill_pad(case: Case, in_place: bool = False) -> Callable[..., None]:
    """Fill the whole of dst: src where src is valid, the pad value elsewhere.

    An empty dst stays empty.

    The page and the CPU code pad all of Rows x Cols; a2a3 stops at the last valid row of dst and
    leaves the rows below undefined.
    """
    kind = tile_type(case.type("dst"))
    pad = np.array(kind.pad.bits(kind.dtype), kind.dtype.storage)
    block = _padded_block(case, kind, in_place)

    def run(x: Mover, src: Tile, dst: Tile) -> None:
        (rows, cols), (height, width) = src.get_valid(), dst.type.shape
        rows, cols = x.least(rows, height), x.least(cols, width)
        first = x.least((cols + block - 1) // block * block, width)

        def fill() -> None:
            if not x.shares(src, dst):
                x.copy(src, (0, 0), dst, (0, 0), (rows, cols), _same_bits(src, dst))
            x.fill(dst, pad, (rows, height), (0, width))
            x.fill(dst, pad, (0, rows), (first, width))

        some = dst.get_valid()
        x.when((some[0] > 0) & (some[1] > 0), fill)

    return run


def _padded_block(case: Case, dst: TileType, in_place: bool) -> int:
    """The elements of a block that a load has already padded: the fill starts after it.

    On NPUs in L1, and on a2a3 in place if both tiles have the same pad value: decisions_isa.md.
    """
    src = tile_type(case.type("src"))
    in_l1 = dst.role is Role.MAT and case.profile.load_padding == "block"
    loaded = in_place and case.profile.fill_begins == "block" and src.pad == dst.pad
    return padded_block(dst) if in_l1 or loaded else 1


def _same_bits(src: Tile, dst: Tile) -> Change | None:
    if src.type.dtype is dst.type.dtype:
        return None
    stored = dst.type.dtype.storage
    return lambda values, j: values.view(stored)


FILL_PAD = Move(_fill_pad)
FILL_PAD_IN_PLACE = Move(lambda case: _fill_pad(case, in_place=True))

# ---- reinterpretation


def _reshape(case: Case) -> Callable[..., Tile]:
    """The same bytes with another type.

    A dynamic extent of the result is that of src if the shapes agree, else the full extent.
    """
    form = TileForm(tile_type(case.op.results[0].type))
    type = form.type

    def run(x: Handles, tile: Tile) -> Tile:
        region = tile.get_valid() if tile.type.shape == type.shape else type.shape
        rows, cols = (
            n if declared is None else declared
            for n, declared in zip(region, type.valid, strict=True)
        )
        return x.renamed(form, tile, (rows, cols))

    return run


RESHAPE = handles(_reshape)

# ---- transposition and concatenation


def _transpose(x: Mover, src: Tile, tmp: Tile, dst: Tile) -> None:
    """dst[j,i] = src[i,j] for every valid element of src."""
    rows, cols = src.get_valid()
    change = _same_bits(src, dst)
    x.copy(src, (0, 0), dst, (0, 0), (cols, rows), change, turned=True)


def _concat(x: Mover, src0: Tile, src1: Tile, dst: Tile) -> None:
    (rows, left), (_, right) = src0.get_valid(), src1.get_valid()
    counts = [tile.get_valid()[0] for tile in (src0, src1, dst)]
    fine = (rows == counts[1]) & (rows == counts[2])
    x.require(fine, lambda: _other_rows(counts))
    x.holds(dst, (0, 0), (rows, left + right))
    x.copy(src0, (0, 0), dst, (0, 0), (rows, left), _same_bits(src0, dst))
    x.copy(src1, (0, 0), dst, (0, left), (rows, right), _same_bits(src1, dst))


def _concat_counted(
    x: Mover, src0: Tile, src1: Tile, idx0: Tile, idx1: Tile, dst: Tile, dst_idx: Tile | None
) -> None:
    """Concatenate a run-time number of columns per row.

    The counts are in bytes of index elements: divide by their size. Only the counted elements are
    read, and only their positions change.
    """
    rows, _ = src0.get_valid()
    counts = [tile.get_valid()[0] for tile in (src0, src1, idx0, idx1, dst)]
    fine = (rows == counts[1]) & (rows == counts[2])
    fine = fine & (rows == counts[3]) & (rows == counts[4])
    x.require(fine, lambda: _other_rows(counts))

    def length(tile: Tile, i: Lanes) -> Lanes:
        return x.count(tile, i, 0)

    def taken(i: Lanes) -> tuple[Lanes, Lanes]:
        size = idx0.type.itemsize
        return length(idx0, i) // size, length(idx1, i) // size

    def fits(i: Lanes, j: Lanes) -> Lanes:
        a, b = taken(i)
        inside = (a >= 0) & (a <= src0.type.cols) & (b >= 0) & (b <= src1.type.cols)
        return inside & (a + b <= dst.type.cols)

    def cell(i: Lanes, j: Lanes) -> Lanes:
        a, b = taken(i)
        left, right = j < a, (j >= a) & (j < a + b)
        value = select(right, x.read(src1, i, j - a, right), x.read(dst, i, j))
        return select(left, x.read(src0, i, j, left), value)

    def total(i: Lanes, j: Lanes) -> Lanes:
        return (length(idx0, i) + length(idx1, i)).astype(dst_idx.type.dtype.numpy)  # type: ignore[union-attr]

    fits_all = x.all(rows, 1, fits)
    limits = src0.type.cols, src1.type.cols, dst.type.cols
    x.require(fits_all, lambda: _no_room(taken(np.arange(rows)[:, None]), limits))
    if dst_idx is not None:  # before dst is written, so that an error leaves both unchanged
        short = dst_idx
        x.require(rows <= short.type.rows, lambda: outside(short, rows, 1, "written"))
    x.each(rows, dst.type.cols, cell, dst)
    if dst_idx is not None:
        x.each(rows, 1, total, dst_idx)


def _other_rows(counts: list[int]) -> PtoError:
    return fail("PTO-S041", f"the tiles differ in valid rows: {', '.join(map(str, counts))}")


def _no_room(taken: tuple[Lanes, Lanes], limits: tuple[int, int, int]) -> PtoError:
    counts = (*taken, taken[0] + taken[1])
    for tile_name, count, limit in zip(("src0", "src1", "dst"), counts, limits, strict=True):
        wrong = np.flatnonzero((count < 0) | (count > limit))
        if wrong.size:
            row = int(wrong[0])
            return fail(
                "PTO-S066", f"row {row} takes {count[row, 0]} columns, {tile_name} has {limit}"
            )
    raise RuntimeError("every row has room")


TRANSPOSE = Move(lambda case: _transpose)
CONCAT = Move(lambda case: _concat)
CONCAT_COUNTED = Move(lambda case: _concat_counted)

# ---- interleaving


def _alike(x: Mover, *tiles: Tile) -> tuple[int, int]:
    rows, cols = tiles[0].get_valid()
    for tile in tiles[1:]:
        height, width = tile.get_valid()
        x.require((rows == height) & (cols == width), lambda: _other_regions(tiles))
    return rows, cols


def _other_regions(tiles: Sequence[Tile]) -> PtoError:
    regions = ", ".join(f"{r}x{c}" for r, c in (tile.get_valid() for tile in tiles))
    return fail("PTO-S021", f"the tiles have different valid regions: {regions}")


def _interleave(x: Mover, src0: Tile, src1: Tile, dst0: Tile, dst1: Tile) -> None:
    rows, cols = _alike(x, src0, src1, dst0, dst1)

    def at(i: Lanes, k: Lanes) -> Lanes:
        """Element k of the two sources interleaved."""
        return select(k % 2 == 0, x.read(src0, i, k // 2), x.read(src1, i, k // 2))

    x.each(rows, cols, lambda i, j: (at(i, j), at(i, j + cols)), dst0, dst1)


def _deinterleave(x: Mover, src0: Tile, src1: Tile | None, dst0: Tile, dst1: Tile) -> None:
    rows, cols = _alike(x, src0) if src1 is None else _alike(x, src0, src1)
    total = cols if src1 is None else cols * 2
    height, width = _alike(x, dst0, dst1)
    x.require(
        (rows == height) & (width * 2 == total),
        lambda: fail("PTO-S066", f"{rows}x{total} elements are not two tiles of {height}x{width}"),
    )

    def at(i: Lanes, k: Lanes) -> Lanes:
        if src1 is None:
            return x.read(src0, i, k)
        first = k < cols
        behind = x.read(src1, i, k - cols, k >= cols)
        return select(first, x.read(src0, i, k, first), behind)

    x.each(rows, width, lambda i, j: (at(i, j * 2), at(i, j * 2 + 1)), dst0, dst1)


INTERLEAVE = Move(lambda case: _interleave)
DEINTERLEAVE = Move(lambda case: _deinterleave)
