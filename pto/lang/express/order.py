"""Functions of tiles about the order of elements: running sums, flips, sorts.

The vector unit adds and moves whole rows, and sorts the elements of one row; so these functions
work row by row, in a loop of the program where there are several rows. Along the other axis the
tile is transposed before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pto import isa
from pto.core.dtypes import F32, I32, DType
from pto.lang.call.place import mistake
from pto.lang.control import repeat
from pto.lang.express.algebra import as_tile, unary
from pto.lang.express.convert import convert
from pto.lang.express.memory import arange
from pto.lang.express.product import transpose, turned
from pto.lang.express.shapes import flat, is_column, like, set_region, whole_lines
from pto.lang.values.scalars import Extent, arith
from pto.lang.values.tiles import Tile, tile

_RUN = 32  # elements that one tsort32 puts in order
_PARTS = {F32: "P0101", I32: "P1010"}  # of a record
_WAYS = 4  # runs that one tmrgsort merges


def cumsum(t: Tile, axis: int = 1) -> Tile:
    """Running sums down the columns (axis 0) or along the rows (axis 1), added one by one as NumPy
    adds them: a `tadd` for each row but the first; axis 1 also two `ttrans`."""
    return _by_rows("cumsum", t, axis, _running)


def flip(t: Tile, axis: int = 1) -> Tile:
    """The rows (axis 0) or columns (axis 1) in reverse order: a `tmov` for each row; axis 1 also
    two `ttrans`."""
    return _by_rows("flip", t, axis, _reversed)


def sort(t: Tile, axis: int = 1, *, descending: bool = False) -> Tile:
    """Each row (axis 1) or column (axis 0) in order, NaN last.

    For each row a `tsort32`, a `tmrgsort` for each time that 32 is multiplied by 4 to reach the
    width, and a `tgather`; ascending also two `tneg`; axis 0 also two `ttrans`. It is done in f32:
    narrower types are converted and back (`tcvt`).
    """
    return _by_columns("sort", t, axis, partial(_sorted, descending=descending, kinds=(F32,)))[0]


def argsort(t: Tile, axis: int = 1, *, descending: bool = False) -> Tile:
    """The indices, in i32, that put each row (axis 1) or column (axis 0) in order; equal elements
    keep theirs. The instructions are those of `sort`."""
    return _by_columns("argsort", t, axis, partial(_sorted, descending=descending, kinds=(I32,)))[0]


def topk(t: Tile, k: int, axis: int = 1, *, largest: bool = True) -> tuple[Tile, Tile]:
    """The k greatest, or least, of each row (axis 1) or column (axis 0), in order, and their
    indices, in i32. The instructions are those of `sort`."""
    values, places = _by_columns("topk", t, axis, partial(_sorted, descending=largest, k=k))
    return values, places


# ---- axes


def _is_first(word: str, axis: object) -> bool:
    """True for axis 0, that of rows."""
    if axis not in (0, 1, -1, -2):
        raise mistake(
            "PTO-U088",
            f"pto.{word}: axis {axis!r} of a tile, which has rows, axis 0, and columns, axis 1",
            help=f"pto.{word}(t, axis=1) is along the rows",
        )
    return axis in (0, -2)


def _by_rows(word: str, t: Tile, axis: int, run: Callable[[Tile, Tile, Extent], None]) -> Tile:
    """`run` from row to row, with transposes around it for the other axis."""
    t = as_tile(word, t)
    first = _is_first(word, axis)
    if is_column(t):
        return transpose(_by_rows(word, flat(t), 1, run)) if first else t
    source = t if first else turned(t)
    ordered = like(source)
    rows, cols = source.valid
    set_region(ordered, rows, cols)
    run(ordered, source, rows)
    return ordered if first else turned(ordered)


def _by_columns(
    word: str, t: Tile, axis: int, run: Callable[[str, Tile], list[Tile]]
) -> list[Tile]:
    """`run` along the rows, with transposes around it for the other axis."""
    t = as_tile(word, t)
    first = _is_first(word, axis)
    if is_column(t):
        return list(map(transpose, run(word, flat(t)))) if first else run(word, turned(flat(t)))
    return list(map(turned, run(word, turned(t)))) if first else run(word, t)


def _row(t: Tile, r: Extent) -> Tile:
    return t[r : r + 1, :]


# ---- row by row


def _running(result: Tile, source: Tile, rows: object) -> None:
    def add(r: object) -> None:
        isa.tadd(_row(result, r), _row(result, arith("-", r, 1)), _row(source, r))

    isa.tmov(_row(result, 0), _row(source, 0))
    repeat(1, rows, add)


def _reversed(result: Tile, source: Tile, rows: object) -> None:
    last = arith("-", rows, 1)
    repeat(0, rows, lambda r: isa.tmov(_row(result, r), _row(source, arith("-", last, r))))


# ---- sorts


def _sorted(
    word: str,
    t: Tile,
    *,
    descending: bool,
    k: int | None = None,
    kinds: Sequence[DType] = (F32, I32),
) -> list[Tile]:
    """The elements of each row in order (f32), and their columns (i32); the first k of them."""
    count = _count(t, k)
    source = _comparable(word, t)
    source = source if descending else unary("neg", source)
    rows, cols = source.valid
    width = _RUN
    while width < source.cols:
        width *= _WAYS
    source = _padded(source, width)
    results = [tile(source.rows, whole_lines(count), result) for result in kinds]
    columns = arange(width)
    buffers = tile(1, 2 * width, F32), tile(1, 2 * width, F32)

    def order(r: object) -> None:
        records, merged = buffers  # pairs of an element and its column
        isa.tsort32(records, _row(source, r), columns)
        run = 2 * _RUN
        while run < 2 * width:
            isa.tmrgsort(merged, records, blockLen=run)
            records, merged, run = merged, records, run * _WAYS
        for result in results:
            part = records[:, 0 : 2 * result.cols]
            isa.tgather(_row(result, r), part, maskPattern=_PARTS[result.dtype], axis="row")

    repeat(0, rows, order)
    for result in results:
        result.asked = t.asked[0], count
        set_region(result, rows, arith("min", count, cols))
    return [
        result if result.dtype is I32 else _given_back(result, t, descending) for result in results
    ]


def _given_back(values: Tile, t: Tile, descending: bool) -> Tile:
    """The elements in their own type, infinities too: a conversion that saturates limits them."""
    values = values if descending else unary("neg", values)
    return convert(values, t.dtype, saturate=False if t.dtype.is_float else None)


def _count(t: Tile, k: object) -> int:
    if k is None:
        return t.asked[1]
    if isinstance(k, int) and 1 <= k <= t.asked[1]:
        return k
    raise mistake(
        "PTO-U203",
        f"pto.topk: k is a Python number from 1 to {t.asked[1]}, the elements of a row, got {k!r}",
        help="take the largest k, and store a part of it: pto.store(y[:, 0:n], values)",
    )


def _comparable(word: str, t: Tile) -> Tile:
    """The elements in the type of the sorting instructions."""
    if t.dtype.itemsize > F32.itemsize - (not t.dtype.is_float):
        raise mistake(
            "PTO-U085",
            f"pto.{word} of {t.dtype}: the sorting instructions take f32, which does not hold it",
            help="sort keys that f32 holds: t.to(pto.f32), exact up to 2 ** 24",
        )
    return convert(t, F32)


def _padded(t: Tile, width: int) -> Tile:
    """Rows padded to whole runs with NaN, which sorts after every number."""
    cols = t.valid[1]
    if isinstance(cols, int) and cols == t.cols == width:
        return t
    padded = tile(t.rows, width, F32, pad=float("nan"))
    fill = isa.tfillpad if padded.shape == t.shape else isa.tfillpad_expand
    fill(padded, t)
    return padded
