"""Folds of tiles: sums, extrema and where they are, along one axis or both."""

from __future__ import annotations

from collections.abc import Collection

from pto.core.dtypes import F32, I32
from pto.isa.row.traits import RegionRule
from pto.lang.call.invoke import invoke
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.algebra import binary, type_help
from pto.lang.express.shapes import column, flat, is_column, vector
from pto.lang.values.operators import operations
from pto.lang.values.scalars import Extent, Scalar
from pto.lang.values.tiles import Tile, tile

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
    dst = column(t.rows, kind) if is_tall else tile(1, t.cols, kind)
    dst.asked = (t.asked[0], 1) if is_tall else (1, t.asked[1])
    invoke(row, (), {"dst": dst, "src": t})
    return dst


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
