"""`pto.take`: columns and rows of a tile, and elements of global memory, by their numbers."""

from __future__ import annotations

from typing import Any

from pto import isa
from pto.core.dtypes import F16, I32, DType
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.algebra import as_tile, binary
from pto.lang.express.convert import convert
from pto.lang.express.memory import arange
from pto.lang.express.product import transpose, turned
from pto.lang.express.shapes import is_column, like, set_region, upright
from pto.lang.values.scalars import Extent, Scalar, arith
from pto.lang.values.tiles import Tile, tile, tile_type
from pto.lang.values.views import Global, View


def take(t: Any, indices: Tile, axis: int | None = 1) -> Tile:
    """The elements of a window in global memory that a tile of i32 counts row by row: a `mgather`.
    Of a tile the columns (axis 1) or rows (axis 0) with the numbers of a row of i32, as
    `numpy.take(.., mode="clip")`: a `tgather` by places, which take a few instructions. Axis None:
    the elements of a tile that a tile of i32 counts row by row, a `tgather`.

    Axis 0 also has two `ttrans`. Elements of one byte become f16 and back on a2a3, elements of
    eight bytes are pairs of i32.
    """
    if isinstance(t, Global | View):
        return _from_memory(t.whole(), indices)  # pyright: ignore[reportUnknownMemberType]
    t = as_tile("take", t)
    if axis is None:
        return _elements(t, as_tile("take", indices))
    if axis not in (0, 1, -1, -2):
        raise mistake(
            "PTO-U088",
            f"pto.take: axis {axis!r} of a tile, which has rows, axis 0, and columns, axis 1",
            help="pto.take(t, columns, axis=1) picks columns",
        )
    columns = as_tile("take", indices)
    columns = transpose(columns) if is_column(columns) else columns
    if columns.dtype is not I32 or columns.rows != 1:
        raise mistake(
            "PTO-T209",
            f"pto.take: the indices are one row of i32, got {columns.rows}x{columns.cols} of"
            f" {columns.dtype}",
            help="pto.arange(n) is one; t.to(pto.i32) makes whole numbers of floats",
        )
    if axis in (0, -2):
        return turned(take(turned(t), columns))
    if t.dtype.itemsize == 1 and current().profile == "a2a3":
        return convert(take(convert(t, F16), columns), t.dtype)
    if t.window_of is not None:
        window, t = t, like(t)
        t[:] = window
    count = columns.valid[1]
    (rows, width) = t.valid
    known = columns.asked[1]
    places = _clipped(columns, arith("-", width, 1))
    made = _taken_pairs(t, places) if t.dtype.itemsize == 8 else _taken(t, places, rows)
    made.asked = t.asked[0], known
    set_region(made, rows, count)
    return made


def _from_memory(window: View, indices: Tile) -> Tile:
    """Elements of global memory, in a tile of the shape of the indices."""
    indices = as_tile("take", indices)
    if indices.dtype is not I32:
        raise mistake(
            "PTO-T209",
            f"pto.take: the indices of elements in global memory are i32, not {indices.dtype}",
            help="convert them: indices.to(pto.i32)",
        )
    made = like(indices, window.array.dtype)
    session = current()
    session.set_region(made, *session.region(indices))
    isa.mgather(made, window, indices, coalesce="elem")
    return made


def _elements(t: Tile, indices: Tile) -> Tile:
    """Elements of a tile whose lines follow each other, in a tile of the shape of the indices."""
    if t.window_of is not None or t.asked[1] != t.cols or indices.dtype is not I32:
        raise mistake(
            "PTO-T209",
            "pto.take, axis None: the indices are i32 and count the elements of a tile with whole"
            f" lines; it has lines of {t.cols}, of which {t.asked[1]} were asked for, and indices"
            f" of {indices.dtype}",
            help="pto.tile(rows, cols, dtype) has lines of any number of 32-byte blocks",
        )
    if t.dtype.itemsize == 1 and current().profile == "a2a3":
        return convert(_elements(convert(t, F16), indices), t.dtype)
    region = current().region(indices)
    places = _clipped(indices, t.rows * t.cols - 1)
    rows, cols = places.shape
    if rows > 1:  # a tgather works line by line, so all indices are one line
        places = _seen(places, (1, rows * cols), I32)
    taken = _gathered(t, places)
    if rows > 1:
        taken = _seen(taken, (rows, cols), t.dtype)
    taken.asked = indices.asked
    set_region(taken, *region)
    return taken


def _clipped(columns: Tile, last: Extent) -> Tile:
    """The indices, limited to valid columns, and zeros beside them: a tgather reads all of them."""
    whole = tile(columns.rows, columns.cols, I32, pad="zero")
    if columns.is_filled:
        set_region(columns, *columns.shape)
        whole = columns
    else:
        isa.tfillpad(whole, columns)
    places = tile(*whole.shape, I32)
    isa.tmaxs(places, whole, 0)
    isa.tmins(places, places, last.to(I32) if isinstance(last, Scalar) else last)
    return places


def _taken(t: Tile, places: Tile, rows: Extent) -> Tile:
    """One tgather; indices count the elements of the tile row by row."""
    if t.rows > 1:
        starts = upright(binary("*", arange(t.rows), t.cols))
        every = tile(t.rows, places.cols, I32)
        for each in (starts, every):
            set_region(each, rows, each.cols)
        isa.trowexpand(every, starts)
        isa.tcolexpandadd(every, every, places)
        places = every
    return _gathered(t, places)


def _gathered(t: Tile, places: Tile) -> Tile:
    made = tile(*places.shape, t.dtype)
    work = tile(*places.shape, I32) if current().profile == "a2a3" else None
    if work is not None:
        set_region(work, *current().region(places))
    isa.tgather(made, t, indices=places, tmp=work)
    return made


def _taken_pairs(t: Tile, places: Tile) -> Tile:
    """Elements of eight bytes, as pairs of i32."""
    rows, width = t.valid
    pairs = arange(2 * places.cols)
    halves = _taken(places, binary(">>", pairs, 1), 1)
    isa.tmuls(halves, halves, 2)
    isa.tadd(halves, halves, binary("&", pairs, 1))
    whole = _seen(t, (t.rows, 2 * t.cols), I32)
    set_region(whole, rows, arith("*", width, 2))
    taken = _seen(_taken(whole, halves, rows), (t.rows, places.cols), t.dtype)
    set_region(taken, rows, places.cols)
    return taken


def _seen(t: Tile, shape: tuple[int, int], kind: DType) -> Tile:
    """The bytes of a tile as a tile of another shape or type, all of which is valid."""
    seen = current().adopt(isa.treshape(t, to=tile_type(*shape, kind)), shape)
    set_region(seen, *shape)
    return seen
