"""Functions that load, store and create tiles: loads, stores, constants, ramps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto import isa
from pto.core.dtypes import F32, I8, I32, DType
from pto.core.errors import Diagnostic
from pto.lang.call.place import here, mistake
from pto.lang.call.session import Session, current
from pto.lang.express.shapes import column, flat, is_column, set_region, vector, whole_lines
from pto.lang.values.elements import element
from pto.lang.values.scalars import Extent, Scalar, arith, is_number
from pto.lang.values.tiles import Extents, Tile, known_size, tile
from pto.lang.values.views import Global, View

Source = Any  # an array of a kernel, a window on one; in eager mode a NumPy array


def load(
    source: Source,
    rows: int | None = None,
    cols: int | None = None,
    *,
    role: str | None = None,
    pad: str | float | None = None,
) -> Tile:
    """A tile of at most rows x cols elements of a window: `pto.load(x[i:, :], 16, 128)`, one tload.

    At the end of the array its valid region is smaller. Sizes that the window fixes may be left
    out. One column, `x[i:, 3:4]`, gives a column tile, as a reduction does. An operand of `pto.dot`
    gets the role `mat` automatically; `role=` sets it explicitly. `pad` is the value outside the
    valid region.
    """
    window = _window(source)
    rows, cols = _sizes(window, rows, cols)
    kind = window.array.dtype
    if cols == 1 and rows > 1 and role is None:  # a number for each row
        loaded = column(rows, kind)
    else:
        space = role or "vec"
        layout = layout_in_l1(window) if space == "mat" else None
        loaded = tile(*room_for(rows, cols, kind, space), kind, layout, space, pad=pad)
        loaded.asked = rows, cols
    limited = window.within(rows, cols)
    isa.tload(loaded, limited)
    loaded.origin = limited if role is None and pad is None else None
    return loaded


def room_for(rows: int, cols: int, kind: DType, role: str) -> tuple[int, int]:
    """The shape of a tile for rows x cols elements, rounded up to whole 32-byte rows or boxes."""
    if role == "vec":
        return rows, whole_lines(cols)
    unit = max(16, 32 // kind.itemsize)
    return -(-rows // unit) * unit, -(-cols // unit) * unit


def layout_in_l1(window: View) -> str:
    """The layout of a tile of L1 for a load: the library loads columns into boxes of columns."""
    return "ZN" if window.array.by_columns else "NZ"


def _window(source: Source) -> View:
    if isinstance(source, np.ndarray):
        source = current().array(source)
    if isinstance(source, Global | View):
        return source.whole()  # pyright: ignore[reportUnknownMemberType]
    raise mistake(
        "PTO-T209",
        f"pto.load and pto.store move tiles from and to global memory, got {type(source).__name__}",
        help="pass the array first: pto.load(x[i:, :], 16, 128), pto.store(y[i:, :], t)",
    )


def _sizes(window: View, rows: int | None, cols: int | None) -> tuple[int, int]:
    row, col = window.axes()
    if row is None and cols is None:  # one dimension: the only size is that of columns
        rows, cols = 1, rows
    sizes = (
        rows if rows is not None else 1 if row is None else window.rows_known(),
        cols if cols is not None else window.spans[col].extent,
    )
    for unit, size in zip(("rows", "columns"), sizes, strict=True):
        if not isinstance(size, int):
            raise mistake(
                "PTO-U203",
                f"pto.load: the number of {unit} of the tile must be known during tracing",
                help="give the largest sizes: pto.load(x[i:, :], 16, 128); a tile at the end of the"
                " array is smaller",
            )
        if size < 1:
            raise mistake("PTO-S200", f"pto.load: a tile of {size} {unit}")
    return sizes[0] or 1, sizes[1]


def store(target: Source, t: object, *, atomic: str | None = None) -> None:
    """Write the valid region of a tile to a window, cut at its end: one tstore.

    An accumulator is converted to the array's type. `atomic="add"` adds to memory.
    """
    if not isinstance(t, Tile):
        raise mistake(
            "PTO-T209",
            f"pto.store writes a tile, got {type(t).__name__}",
            help="the array comes first: pto.store(y[i:, :], t)"
            if isinstance(target, Tile)
            else "a number everywhere: pto.store(y[i:, :], pto.full(16, 128, 1.0, pto.f32))",
        )
    window = _window(target)
    if t.is_empty or t.role == "vec":
        t = vector(t)
    if is_column(t) and window.axes()[0] is None:
        t = flat(t)
    _require_type(window, t)
    session = current()
    before, clipped = session.region(t), _clipped(session, t, window)
    session.set_region(t, *clipped)
    target = View(window.array, window.spans, window.most, is_cut=not t.fixed)
    isa.tstore(target, t, atomicType=atomic and f"atomic_{atomic}")
    session.set_region(t, *before)


def _require_type(window: View, t: Tile) -> None:
    kind, name = window.array.dtype, window.array.pointer.name
    if t.role == "acc" or kind is t.dtype or kind.itemsize == t.dtype.itemsize:
        return
    raise mistake(
        "PTO-U082",
        f"pto.store: {name} holds {kind}, the tile {t.dtype}: there is no implicit conversion",
        help=f"pto.store({name}[...], t.to(pto.{kind}))",
    )


def _clipped(session: Session, t: Tile, window: View) -> Extents:
    """The valid region of a tile, cut at the end of the array and at the stops of slices."""
    region = session.region(t)
    if t.fixed:
        return region
    clipped = list(window.cut(region, t.shape))
    for n, (axis, unit) in enumerate(zip(window.axes(), ("rows", "columns"), strict=True)):
        span, size = None if axis is None else window.spans[axis], region[n]
        inner = window.inner_rows if n == 0 else 1
        if span is None or not is_number(size) or size % inner:
            continue
        is_cut = t.is_filled and not is_number(span.extent)  # as long as the window
        if not (span.is_open or is_cut):
            continue
        clipped[n] = arith("*", span.size_for(size // inner), inner)
        if span.is_whole and is_number(clipped[n]) and clipped[n] < size and not t.is_filled:
            session.notice(_cut(window, unit, size, clipped[n]))
    return clipped[0], clipped[1]


def _cut(window: View, unit: str, size: int, extent: int) -> Diagnostic:
    """The warning for a store to a dimension that is not sliced and smaller than the tile."""
    name = window.array.pointer.name
    return Diagnostic(
        "PTO-U313",
        f"the tile has {size} {unit}, and {name} has {extent}: {size - extent} {unit} of the result"
        " are not stored",
        here(),
        "warning",
        help=f"pass a larger {name}, or slice it where its end may cut the tile: {name}[i:, :]",
    )


Shape = int | Sequence[int]  # rows, or rows and columns: `zeros((16, 128), f32)`, as in NumPy


def zeros(rows: Shape, cols: object = None, dtype: object = None, *, role: str = "vec") -> Tile:
    """A tile of zeros: one texpands. With role="acc" an accumulator for `pto.dot(a, b, acc=)`: the
    first product sets it, further products are added. The shape may be a tuple."""
    height, width, kind = _shaped("zeros", 3, rows, cols, dtype)
    if role != "acc":
        return full(height, width, 0, kind)
    factor = I8 if element(kind) is I32 else element(kind)  # boxes of bytes have sides of 32
    filled = tile(*room_for(height, width, factor, role), kind, role=role)
    filled.is_empty, filled.asked = True, (height, width)
    return filled


def _shaped(name: str, count: int, *arguments: object) -> tuple[Any, ...]:
    """Rows, columns and what follows them, of a call that may begin with a tuple."""
    first = arguments[0]
    if isinstance(first, list | tuple):
        sizes = list(first) if len(first) > 1 else [1, *first]  # one size is that of a row
        arguments = *sizes, *(value for value in arguments[1:] if value is not None)
    is_shape = len(arguments) == count and all(isinstance(n, int) for n in arguments[:2])
    if is_shape and arguments[-1] is not None:
        return arguments
    raise mistake(
        "PTO-U203",
        f"pto.{name} takes rows, columns and an element type; sizes are Python numbers",
        help="write pto.zeros(16, 128, pto.f32), pto.full(16, 128, 1.0, pto.f32)",
    )


def full(rows: Shape, cols: object = None, number: Extent = None, dtype: object = None) -> Tile:
    """A tile with the same number in all elements: one texpands. `cols=1` gives a column.

    In an expression its valid region is that of the other operand. The shape may be a tuple:
    `full((16, 128), 1.0, f32)`.
    """
    height, width, value, kind = _shaped("full", 4, rows, cols, number, dtype)
    filled = column(height, element(kind)) if width == 1 else tile(height, whole_lines(width), kind)
    isa.texpands(flat(filled), value)
    return _filled(filled, height, width)


def _filled(tile_: Tile, rows: int, cols: int) -> Tile:
    """Mark a tile as constant in all elements, also where its lines were rounded up."""
    tile_.is_filled, tile_.asked = True, (rows, cols)
    set_region(tile_, rows, cols)
    return tile_


def arange(start: Extent, stop: Extent = None, dtype: object = I32) -> Tile:
    """A row start, start + 1, ... below stop, or 0, 1, ... below the only number: one tci, and for
    floats a tcvt. `.T` is the same as a column."""
    start, stop = (0, start) if stop is None else (start, stop)
    count, kind = known_size("cols", arith("-", stop, start)), element(dtype)
    ramp = tile(1, whole_lines(count), I32 if kind.is_float else kind)
    # without a work tile the header of a5 counts with the scalar unit (a2a3: the plan adds one)
    work = tile(1, whole_lines(1), ramp.dtype) if current().profile == "a5" else None
    isa.tci(ramp, start.to(ramp.dtype) if isinstance(start, Scalar) else start, tmp=work)
    ramp = _filled(ramp, 1, count)
    return ramp if ramp.dtype is kind else ramp.to(kind)


def tri(rows: int, cols: int, diagonal: Extent = 0, *, dtype: object = F32) -> Tile:
    """Ones on and below a diagonal, zeros above it: one ttri. Row i has i + diagonal + 1 ones."""
    triangle = tile(rows, whole_lines(cols), dtype)
    isa.ttri(triangle, diagonal.to(I32) if isinstance(diagonal, Scalar) else diagonal)
    return _filled(triangle, rows, cols)
