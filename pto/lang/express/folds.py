"""Folds of tiles: sums, extrema and where they are, along one axis or both."""

from __future__ import annotations

from collections.abc import Collection

from pto import isa
from pto.core.dtypes import F32, I32
from pto.isa.row.traits import RegionRule
from pto.lang.call.invoke import invoke
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.algebra import binary, type_help
from pto.lang.express.shapes import column, flat, is_column, vector
from pto.lang.values.operators import operations
from pto.lang.values.scalars import Extent, Scalar
from pto.lang.values.tiles import Tile, tile, tile_type

_AXES = {0: RegionRule.ROW, 1: RegionRule.COLUMN, -1: RegionRule.COLUMN, -2: RegionRule.ROW}


def fold(word: str, t: Tile, axis: int | None) -> Tile:
    """One instruction: over columns (axis 1) to a column, over rows (axis 0) to a row."""
    if axis is None:
        return fold(word, flat(fold(word, t, 1)), 1)
    if axis not in _AXES:
        raise mistake(
            "PTO-U088",
            f"axis {axis!r} of a tile: it has rows, axis 0, and columns, axis 1",
            help="t.sum(axis=1) is a number for each row, t.sum(axis=0) one for each column",
        )
    t, to = vector(t), _AXES[axis]
    if is_column(t):
        if to is RegionRule.COLUMN:
            return t
        t, to = flat(t), RegionRule.COLUMN
    row = next(r for r in operations(word, t.type) if r.traits.region is to)
    kind = I32 if word.startswith("arg") else t.dtype
    _require_type(word, row.types.get(current().profile), t)
    is_tall = to is RegionRule.COLUMN
    if is_tall and _is_long(word, t):
        return fold(word, flat(fold(word, _in_lines(word, t), 1)), 1)
    dst = column(t.rows, kind) if is_tall else tile(1, t.cols, kind)
    dst.asked = (t.asked[0], 1) if is_tall else (1, t.asked[1])
    invoke(row, (), {"dst": dst, "src": t})
    return dst


_PADS = {"sum": "zero", "amax": "min", "amin": "max"}  # values that change no fold
_LINE, _LONG = 256, 2048  # bytes that one instruction reads, and of a row that is folded in lines


def _is_long(word: str, t: Tile) -> bool:
    """True for one long row on a2a3: its header folds the row by an instruction for each 256 bytes,
    each of which waits for the one before; lines of 256 bytes take one instruction."""
    is_row = t.rows == 1 and t.window_of is None and t.cols * t.dtype.itemsize >= _LONG
    return current().profile == "a2a3" and is_row and word in _PADS


def _in_lines(word: str, t: Tile) -> Tile:
    """One row as lines of 256 bytes, filled up where not all of it is valid."""
    width = _LINE // t.dtype.itemsize
    cols = -(-t.cols // (8 * width)) * 8 * width
    valid = t.valid[1]
    if not isinstance(valid, int) or valid != cols:
        filled = tile(1, cols, t.dtype, pad=_PADS[word])
        fill = isa.tfillpad if cols == t.cols else isa.tfillpad_expand
        fill(filled, t)
        t = filled
    shape = t.cols // width, width
    lines = current().adopt(isa.treshape(t, to=tile_type(*shape, t.dtype)), shape)
    current().set_region(lines, *shape)
    lines.asked = shape
    return lines


def require_dimensions(keepdims: bool) -> None:
    if not keepdims:
        raise mistake(
            "PTO-U088",
            "a reduction of a tile has two dimensions: keepdims=False is not supported",
            help="leave it out: t.sum(axis=1) is a column; pto.store writes one to y[i:] too",
        )


def _require_type(word: str, types: Collection[str] | None, t: Tile) -> None:
    if types is not None and t.dtype.name not in types:
        raise mistake(
            "PTO-U085",
            f"`.{word.removeprefix('a') if word in ('amax', 'amin') else word}()` of {t.dtype}:"
            f" {current().profile} has it for {' '.join(sorted(types))}",
            help=type_help(t.dtype, types),
        )


def mean(t: Tile, axis: int | None) -> Tile:
    """The sum divided by how many elements there are: two instructions (trowsum, tdivs)."""
    rows, cols = t.valid
    total = fold("sum", t, axis)
    parts = {None: (rows, cols), 0: (rows,), -2: (rows,)}.get(axis, (cols,))
    count: Extent = 1
    for part in parts:
        count = count * part
    number = count.to(F32) if isinstance(count, Scalar) else float(count)
    return binary("/", total, number)
