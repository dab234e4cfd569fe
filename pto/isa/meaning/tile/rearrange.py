"""Padding, reinterpretation, transposition, concatenation and interleaving of tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.core.tile import Tile, TileType
from pto.isa.meaning.handle.view import as_tile, tile_type
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.patch import cut, paste
from pto.isa.rules.rule import Case


def _types(case: Case) -> list[Any]:
    return [case.type(name) for name in case.row.operand_names]


# ---- padding


def _fill_pad(case: Case) -> Callable[..., None]:
    """The whole of dst: src where src is valid, the pad of dst elsewhere. Nothing if dst is empty.

    The page and the CPU code pad all of Rows x Cols; a2a3 stops at the last valid row of dst, below
    which nothing is defined.
    """
    types = _types(case)
    kind = tile_type(types[1])
    pad = np.array(kind.pad.bits(kind.dtype), kind.dtype.storage).view(kind.dtype.numpy)

    def run(core: Machine, src: Any, dst: Any) -> None:
        source, target = map(as_tile, (src, dst), types)
        if 0 in target.get_valid():
            return
        rows, cols = source.get_valid()
        rows, cols = min(rows, target.type.rows), min(cols, target.type.cols)
        values = cut(source, 0, 0, rows, cols).view(kind.dtype.numpy)
        if source.memory is target.memory:
            values = values.copy()
        whole = target.view()
        if whole is None:
            whole = np.empty(target.type.shape, kind.dtype.numpy)
        whole[rows:] = whole[:rows, cols:] = pad
        whole[:rows, :cols] = values
        if target.view() is None:
            target.write(whole)

    return run


FILL_PAD = Do(_fill_pad)

# ---- reinterpretation


def _reshape(case: Case) -> Callable[..., Tile]:
    """The same bytes. An extent the result's type leaves open is src's where shapes agree, else
    all there is."""
    src_type, result = case.type("src"), tile_type(case.op.results[0].type)

    def run(core: Machine, src: Any) -> Tile:
        tile = as_tile(src, src_type)
        return tile.retyped(result, _extents(tile, result))

    return run


def _extents(tile: Tile, result: TileType) -> tuple[int, int]:
    known = tile.get_valid() if tile.type.shape == result.shape else result.shape
    rows, cols = result.valid
    return known[0] if rows is None else rows, known[1] if cols is None else cols


RESHAPE = Do(_reshape)

# ---- transposition and concatenation


def _transpose(case: Case) -> Callable[..., None]:
    """dst[j,i] = src[i,j] for every valid element of src."""
    types = _types(case)

    def run(core: Machine, src: Any, tmp: Any, dst: Any) -> None:
        source = as_tile(src, types[0])
        paste(as_tile(dst, types[2]), 0, 0, cut(source, 0, 0, *source.get_valid()).T)

    return run


def _same_rows(*tiles: Tile) -> int:
    counts = [tile.get_valid()[0] for tile in tiles]
    if len(set(counts)) > 1:
        raise fail("PTO-S041", f"the tiles have {', '.join(map(str, counts))} valid rows")
    return counts[0]


def _concat(case: Case) -> Callable[..., None]:
    types = _types(case)

    def run(core: Machine, src0: Any, src1: Any, dst: Any) -> None:
        first, second, target = map(as_tile, (src0, src1, dst), types)
        rows = _same_rows(first, second, target)
        parts = [cut(tile, 0, 0, rows, tile.get_valid()[1]) for tile in (first, second)]
        paste(target, 0, 0, np.concatenate(parts, axis=1))

    return run


def _concat_counted(case: Case) -> Callable[..., None]:
    """How many columns of a row count stands in bytes of index elements: divide by their size."""
    types = _types(case)

    def run(core: Machine, *operands: Any) -> None:
        given = [None if o is None else as_tile(o, t) for o, t in zip(operands, types, strict=True)]
        src0, src1, idx0, idx1, dst, dst_idx = given
        tiles = [tile for tile in (src0, src1, idx0, idx1, dst) if tile is not None]
        rows = _same_rows(*tiles)
        lengths = [_lengths(tile, rows) for tile in tiles[2:4]]
        counts = [n // tiles[2].type.itemsize for n in lengths]
        _require_room(tiles, counts)
        _merge(tiles[0], tiles[1], tiles[4], counts)
        if dst_idx is not None:
            total = lengths[0] + lengths[1]
            paste(dst_idx, 0, 0, total.astype(dst_idx.type.dtype.numpy)[:, None])

    return run


def _lengths(tile: Tile, rows: int) -> Lanes:
    return cut(tile, 0, 0, rows, 1)[:, 0].astype(np.int64)


def _require_room(tiles: list[Tile], counts: list[Lanes]) -> None:
    limits = (tiles[0].type.cols, tiles[1].type.cols, tiles[4].type.cols)
    for what, count, limit in zip(
        ("src0", "src1", "dst"), (*counts, counts[0] + counts[1]), limits, strict=True
    ):
        wrong = np.flatnonzero((count < 0) | (count > limit))
        if wrong.size:
            row = int(wrong[0])
            raise fail("PTO-S066", f"row {row} takes {count[row]} columns, {what} has {limit}")


def _merge(first: Tile, second: Tile, dst: Tile, counts: list[Lanes]) -> None:
    """Only the elements that are counted are read, and only their places written."""
    taken = [_counted(tile, count) for tile, count in zip((first, second), counts, strict=True)]
    starts = (np.zeros_like(counts[0]), counts[0])
    plain = dst.view()
    whole = dst.read() if plain is None else plain
    for (row, col, values), start in zip(taken, starts, strict=True):
        whole[row, start[row] + col] = values
    if plain is None:
        dst.write(whole)


def _counted(tile: Tile, count: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Rows, columns and values of the first `count` elements of each row."""
    row, col = np.nonzero(np.arange(tile.type.cols) < count[:, None])
    return row, col, np.array(cut(tile, 0, 0, count.size, tile.type.cols)[row, col])


TRANSPOSE = Do(_transpose)
CONCAT = Do(_concat)
CONCAT_COUNTED = Do(_concat_counted)

# ---- interleaving


def _alike(*tiles: Tile) -> tuple[int, int]:
    regions = [tile.get_valid() for tile in tiles]
    if len(set(regions)) > 1:
        shown = ", ".join(f"{r}x{c}" for r, c in regions)
        raise fail("PTO-S021", f"the tiles have valid regions {shown}")
    return regions[0]


def _interleave(case: Case) -> Callable[..., None]:
    types = _types(case)

    def run(core: Machine, src0: Any, src1: Any, dst0: Any, dst1: Any) -> None:
        a, b, low, high = map(as_tile, (src0, src1, dst0, dst1), types)
        rows, cols = _alike(a, b, low, high)
        pairs = [cut(tile, 0, 0, rows, cols) for tile in (a, b)]
        stream = np.stack(pairs, axis=-1).reshape(rows, 2 * cols)
        paste(low, 0, 0, stream[:, :cols])
        paste(high, 0, 0, stream[:, cols:])

    return run


def _deinterleave(case: Case) -> Callable[..., None]:
    types = _types(case)

    def run(core: Machine, src0: Any, src1: Any, dst0: Any, dst1: Any) -> None:
        sources = [
            as_tile(o, t) for o, t in zip((src0, src1), types, strict=False) if o is not None
        ]
        even, odd = as_tile(dst0, types[2]), as_tile(dst1, types[3])
        rows, cols = _alike(*sources)
        stream = np.concatenate([cut(tile, 0, 0, rows, cols) for tile in sources], axis=1)
        wanted = (rows, stream.shape[1] // 2)
        if stream.shape[1] % 2 or _alike(even, odd) != wanted:
            shown = "x".join(map(str, even.get_valid()))
            raise fail("PTO-S066", f"{rows}x{stream.shape[1]} elements split into two of {shown}")
        paste(even, 0, 0, stream[:, 0::2])
        paste(odd, 0, 0, stream[:, 1::2])

    return run


INTERLEAVE = Do(_interleave)
DEINTERLEAVE = Do(_deinterleave)
