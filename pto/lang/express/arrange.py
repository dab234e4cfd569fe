"""Tiles put together, and tiles in another shape."""

from __future__ import annotations

from collections.abc import Sequence

from pto import isa
from pto.core.constants import BLOCK_BYTE_SIZE
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.algebra import as_tile, assign, require_one_type
from pto.lang.express.broadcast import size_text
from pto.lang.express.memory import room_for
from pto.lang.express.product import transpose, turned
from pto.lang.express.shapes import flat, is_column, is_row, like, set_region, upright
from pto.lang.values.scalars import Extent, arith, is_number
from pto.lang.values.tiles import Tile, tile, tile_type


def concatenate(tiles: Sequence[Tile], axis: int = 0) -> Tile:
    """The tiles one below another (axis 0) or side by side (axis 1): a `tmov` for each. Side by
    side at places that are not whole 32-byte blocks they are also transposed (`ttrans`)."""
    parts = _parts(tiles)
    below = _is_below(axis)
    if all(map(is_column, parts)):
        return transpose(concatenate([flat(part) for part in parts], int(below)))
    parts = [turned(flat(part)) if is_column(part) else part for part in parts]
    across = int(below)  # the axis along which all have one size
    for part in parts[1:]:
        require_one_type("pto.concatenate", parts[0], part)
        if part.asked[across] != parts[0].asked[across]:
            raise mistake(
                "PTO-U083",
                f"pto.concatenate along axis {axis}: tiles of {size_text(parts[0])} and"
                f" {size_text(part)}",
                help=f"all have one number of {('rows', 'columns')[across]}",
            )
    if not below and not _in_blocks(parts):
        return turned(concatenate([turned(part) for part in parts], 0))
    return _side_by_side(parts, 0 if below else 1)


def _parts(tiles: object) -> list[Tile]:
    """The tiles of a list or tuple, in the vector buffer."""
    if isinstance(tiles, list | tuple) and tiles:
        return [as_tile("concatenate", item) for item in tiles]  # pyright: ignore[reportUnknownVariableType]
    raise mistake(
        "PTO-T209",
        f"pto.concatenate takes a list of tiles, got {type(tiles).__name__}",
        help="pto.concatenate([a, b], axis=0)",
    )


def _is_below(axis: object) -> bool:
    if axis in (0, 1, -1, -2):
        return axis in (0, -2)
    raise mistake(
        "PTO-U088",
        f"pto.concatenate: axis {axis!r} of tiles, which have rows, axis 0, and columns, axis 1",
        help="pto.concatenate([a, b], axis=1) puts them side by side",
    )


def _in_blocks(parts: Sequence[Tile]) -> bool:
    """True if every tile but the last ends at a whole 32-byte block."""
    widths = [part.valid[1] for part in parts[:-1]]
    size = parts[0].dtype.itemsize
    return all(isinstance(n, int) and n * size % BLOCK_BYTE_SIZE == 0 for n in widths)


def _side_by_side(parts: Sequence[Tile], axis: int) -> Tile:
    """Copy the tiles into windows of a new one, each where the valid part of the last one ends."""
    sizes = [
        sum(part.asked[n] for part in parts) if n == axis else parts[0].asked[n] for n in (0, 1)
    ]
    joined = tile(*room_for(sizes[0], sizes[1], parts[0].dtype, "vec"), parts[0].dtype)
    joined.asked = sizes[0], sizes[1]
    region: list[Extent] = list(parts[0].valid)
    region[axis] = 0
    for part in parts:
        start, size = region[axis], part.asked[axis]
        window = slice(start, arith("+", start, size))
        assign(joined[window, :] if axis == 0 else joined[:, window], part)
        region[axis] = arith("+", start, part.valid[axis])
    set_region(joined, *region)
    return joined


def reshape(t: Tile, rows: int, cols: int) -> Tile:
    """The elements of a tile, row by row, in another shape: a `treshape` and a `tmov`; of one row
    or column a `treshape` alone. One size may be -1, which follows from the other.

    The rows of a tile lie in whole lines of 32 elements, and a reshape keeps every element in its
    place: the columns before and after are a multiple of 32.
    """
    t = as_tile("reshape", t)
    rows, cols = _sizes(t, rows, cols)
    if (rows, cols) == t.asked:
        return t
    if is_column(t):
        return reshape(flat(t), rows, cols)
    if cols == 1:
        return upright(reshape(t, 1, rows))
    region = _region(t, rows, cols)
    is_dense = t.asked == t.shape and t.cols * t.dtype.itemsize % BLOCK_BYTE_SIZE == 0
    if not is_dense or room_for(rows, cols, t.dtype, "vec") != (rows, cols) or region is None:
        raise mistake(
            "PTO-U083",
            f"reshape of a tile of {size_text(t)} to {rows}x{cols}: elements would move between"
            " lines, which are whole blocks of 32 elements",
            help="load the array in that shape: pto.load(x.reshape(-1, 32), 16, 32); or store the"
            " tile and load it again",
        )
    if t.window_of is not None:  # its rows lie apart
        window, t = t, like(t)
        assign(t, window)
    reshaped = current().adopt(isa.treshape(t, to=tile_type(rows, cols, t.dtype)), (rows, cols))
    reshaped.asked = rows, cols
    set_region(reshaped, *region)
    if is_row(t):
        return reshaped
    copy = tile(rows, cols, t.dtype)
    copy.is_filled = t.is_filled
    isa.tmov(copy, reshaped)
    set_region(copy, *region)
    return copy


def _sizes(t: Tile, rows: object, cols: object) -> tuple[int, int]:
    """The requested shape, with -1 replaced."""
    count = t.asked[0] * t.asked[1]
    if isinstance(rows, int) and isinstance(cols, int):
        if rows == -1 and cols > 0 and count % cols == 0:
            return count // cols, cols
        if cols == -1 and rows > 0 and count % rows == 0:
            return rows, count // rows
        if rows > 0 and rows * cols == count:
            return rows, cols
    raise mistake(
        "PTO-U083",
        f"reshape of a tile of {size_text(t)}, {count} elements, to {rows}x{cols}",
        help="the sizes are Python numbers with the same product; one of them may be -1",
    )


def _region(t: Tile, rows: int, cols: int) -> tuple[Extent, Extent] | None:
    """The valid region in the new shape; None if it is no rectangle there."""
    high, wide = t.valid
    if wide != t.cols:
        return None if t.rows > 1 or rows > 1 else (1, wide)
    if t.cols % cols == 0:
        return arith("*", high, t.cols // cols), cols
    if rows == 1:
        return 1, arith("*", high, t.cols)
    return (rows, cols) if is_number(high) and high == t.rows else None
