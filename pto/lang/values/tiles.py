"""Tiles of a kernel: their type, address and valid region."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy.typing as npt

from pto.core.dtypes import I64, DType, encode
from pto.core.errors import PtoError
from pto.core.layout import FRACTAL_ACC, FRACTAL_MX, Layout
from pto.core.layout import layout as layout_named
from pto.core.memory import role as role_named
from pto.core.pad import Pad
from pto.core.pad import pad as pad_named
from pto.core.tile import Role, TileType
from pto.ir.builder import INDEX, scalar_type
from pto.ir.graph import Operation, Value
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.handle.window import SUBVIEW
from pto.isa.row.attributes import Array, Int
from pto.isa.row.types import TileBuf
from pto.lang.call.place import located, mistake
from pto.lang.call.session import Session, ValueHandle, current
from pto.lang.values.elements import element
from pto.lang.values.expressions import Expressions
from pto.lang.values.operators import COMPARED, Comparison, Comparisons
from pto.lang.values.scalars import Extent, Scalar, arith, as_value

if TYPE_CHECKING:
    from pto.lang.values.views import View

Extents = tuple[Extent, Extent]
Index = int | Scalar[object]
Window = slice | Index | tuple[slice, slice | Index] | tuple[Index, slice]

# The default layout of each role, accepted by its instructions on every target
# (pto-isa pto_tile.hpp; a2a3 has its own for left, see `_layout`).
_LAYOUTS = {
    Role.MAT: "NZ",
    Role.LEFT: "NZ",
    Role.RIGHT: "ZN",
    Role.ACC: "NZ",
    Role.SCALE_LEFT: "ZZ",
    Role.SCALE_RIGHT: "NN",
}
_FRACTALS = {
    Role.ACC: FRACTAL_ACC,
    Role.SCALE_LEFT: FRACTAL_MX,
    Role.SCALE_RIGHT: FRACTAL_MX,
}


class Tile(Comparisons[Comparison], Expressions, ValueHandle):
    """A tile. `valid` is the part that holds data; unless fixed, it is derived from the data."""

    __slots__ = (
        *("__weakref__", "alias", "fixed", "is_empty", "is_filled", "known_region", "origin"),
        "filled_if",
        *("asked", "is_temporary", "factors", "products", "seen", "settings", "window_of"),
    )

    def __init__(self, value: Value, home: Session, fixed: bool, region: Extents) -> None:
        super().__init__(value, home)
        self.fixed = fixed
        self.known_region = region
        self.seen: set[Extents | None] = set()  # its regions at uses; None: dynamic
        self.settings: list[Operation] = []
        self.alias: Tile | None = None  # a column as a row over the same bytes, or vice versa
        self.origin: View | None = None  # the window it was loaded from, if not changed since
        self.asked: tuple[int, int] = self.shape  # the requested shape, before rounding up
        self.window_of: tuple[Tile, Extents] | None = None  # the tile it is a window on, and where
        self.is_empty = False  # an accumulator before its first product
        self.factors: tuple[Tile, Tile] | None = None  # of an accumulator with one product
        self.products = 0  # the instructions of that product: one a slice along k
        self.is_temporary = False  # the result of an expression
        self.is_filled = False  # constant in all elements, valid or not
        self.filled_if: Callable[[], Any] | None = None  # the condition under which it is filled

    def compare(self, sign: str, a: object, b: object) -> Comparison:
        return Comparison(COMPARED[sign], a, b)

    eq, ne = Comparisons.__eq__, Comparisons.__ne__

    def __float__(self) -> float:
        raise mistake(
            "PTO-U081",
            "Python needs one number, and a tile has elements only when the kernel runs",
            help="write pto.exp(t) for math.exp(t); isa.tgetval(t, 0) is one element",
        )

    def __int__(self) -> int:
        return int(float(self))

    def numpy(self) -> npt.NDArray[Any]:
        """Eager mode: a copy of the valid region, as a NumPy array."""
        read = getattr(self.home, "numpy", None)
        if read is None:
            raise mistake(
                "PTO-U081",
                "a traced tile has no values yet: the kernel has not run",
                help='store it to an array, or look inside with `with pto.eager("a5"):`',
            )
        return read(self)

    def __setitem__(self, key: object, value: object) -> None:
        """`t[:] = u` copies a tile, or a number, into this one; `t[r : r + 1, :] = u` into a window
        on it. One instruction: tmov, or texpands; tsetval for an element, `t[r, c] = 0.0`."""
        from pto.lang.express import algebra, elements

        is_everything = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
        if isinstance(key, Comparison):
            raise mistake(
                "PTO-U081",
                "a comparison cannot choose elements to write: an instruction writes a window",
                help="choose by element: t = pto.where(t > 0.0, t, 0.0)",
            )
        if is_everything:
            algebra.assign(self, value)
            return
        (row, rows), (col, cols) = self._bounds(key)
        if _is_element(key):
            elements.put(self, row, col, value)
        else:
            algebra.assign(_window(self, [row, col], [rows, cols]), value)

    @property
    def spec(self) -> TileType:
        if not isinstance(self.value.type, TileBuf):
            raise RuntimeError(f"{self!r} is not a tile")
        return self.value.type.tile

    @property
    def shape(self) -> tuple[int, int]:
        return self.spec.shape

    @property
    def rows(self) -> int:
        return self.spec.rows

    @property
    def cols(self) -> int:
        return self.spec.cols

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def role(self) -> str:
        return self.spec.role.value

    @property
    def valid(self) -> Extents:
        """Valid rows and columns here: Python numbers where they are known, else Scalars."""
        self.used()
        return self.home.region(self)

    def retype(self, valid: tuple[int | None, int | None]) -> None:
        """Give the tile its final type."""
        type = self.value.type
        if isinstance(type, TileBuf):
            self.value.type = TileBuf(type.elem, replace(type.tile, valid=valid))

    @overload
    def __getitem__(self, key: tuple[Index, Index]) -> Scalar[object]: ...
    @overload
    def __getitem__(self, key: Window) -> Tile: ...
    def __getitem__(self, key: object) -> Tile | Scalar[object]:
        """A window on the tile: `t[0:8, 64:128]`; `t[r, :]` is one row. Sizes are Python numbers,
        offsets any. `t[r, c]` is one element, a number of the program (tgetval)."""
        (row, rows), (col, cols) = self._bounds(key)
        if not _is_element(key):
            return _window(self, [row, col], [rows, cols])
        from pto.lang.express import elements

        return elements.get(self, row, col)

    def _bounds(self, key: object) -> list[tuple[Extent, int]]:
        keys: tuple[Extent, ...] = key if isinstance(key, tuple) else (key, slice(None))
        pairs = [
            _one(key_part) if isinstance(key_part, int | Scalar) else key_part for key_part in keys
        ]
        if len(pairs) != 2 or not all(isinstance(key_part, slice) for key_part in pairs):
            raise mistake(
                "PTO-S200",
                "an index of a tile is two slices or numbers, as t[0:8, 64:128]",
                help="t[3, :] is one row, t[3, 5] one element",
            )
        return [_bounds(self, axis, part) for axis, part in enumerate(pairs)]

    def __iter__(self) -> NoReturn:
        raise mistake(
            "PTO-U081",
            "Python cannot iterate over a tile: it has elements only when the kernel runs",
            help="t.sum(axis=1), t.max() and the like fold it; t[r : r + 1, :] with r of"
            " pto.range(t.rows) is one row",
        )

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        show = getattr(self.home, "show", None)
        return show(self) if show else repr(self)

    def __format__(self, form: str) -> str:
        if self.home.eager:
            return format(str(self), form)
        raise mistake(
            "PTO-U081",
            "a traced tile has no text yet: the kernel has not run",
            help='an f-string of the kernel shows it: print(f"t is {t}")',
        )

    def _repr_html_(self) -> str:
        """In eager mode its values, elsewhere its type."""
        from pto.core import html  # only notebooks need it

        show = getattr(self.home, "show_html", None)
        return show(self) if show else html.block(html.styled([("", repr(self))]))


def region_text(region: Extents) -> str:
    """The extents; a question mark for one that only the run knows."""
    return " x ".join(str(n) if isinstance(n, int) else "?" for n in region)


def same_region(one: Extents, other: Extents) -> bool:
    """True if both are certainly equal: equal Python numbers, or the same value of the program."""
    return all(same_extent(a, b) for a, b in zip(one, other, strict=True))


def same_extent(a: Extent, b: Extent) -> bool:
    return a == b if isinstance(a, int) and isinstance(b, int) else a is b and a is not None


def _is_element(key: object) -> bool:
    """True for the index of one element: a row and a column."""
    return (
        isinstance(key, tuple) and len(key) == 2 and all(isinstance(n, int | Scalar) for n in key)
    )


def _one(at: Any) -> slice:
    """The slice of one row or column; -1 is the last one."""
    return slice(at, None if isinstance(at, int) and at == -1 else at + 1)


def _bounds(tile: Tile, axis: int, part: slice) -> tuple[Extent, int]:
    size = tile.shape[axis]
    low = 0 if part.start is None else _from_end(tile, axis, part.start)
    high = size if part.stop is None else _from_end(tile, axis, part.stop)
    length = (
        arith("-", high, low)
        if isinstance(low, Scalar) or isinstance(high, Scalar)
        else (min(high, size) - low)
    )
    if part.step not in (None, 1) or not isinstance(length, int) or length < 1:
        range_text = (
            f"{low}:{high} of {size} {_AXES[axis]}" if isinstance(length, int) else _AXES[axis]
        )
        raise mistake(
            "PTO-S200",
            "a window on a tile has a size that Python knows, in steps of one, inside the tile:"
            f" {range_text}",
        )
    return low, length


_AXES = ("rows", "columns")


def _from_end(tile: Tile, axis: int, bound: Extent) -> Extent:
    """A bound of a slice; below 0 it counts from the end, which must be the end of the data."""
    if not isinstance(bound, int) or bound >= 0:
        return bound
    size, valid = tile.shape[axis], tile.valid[axis]
    if not isinstance(valid, int) or valid != size:
        raise mistake(
            "PTO-S200",
            f"{bound} counts from the end of a tile of {size} {_AXES[axis]}, not all"
            " of which hold data",
            help="count from the start: t[8:16, :]",
        )
    return bound + size


def _window(tile: Tile, offsets: list[Extent], sizes: list[int]) -> Tile:
    session = current()
    operands = {
        "source": tile.used(),
        "offsets": [as_value(n, INDEX) for n in offsets],
    }
    attrs = {"sizes": Array(tuple(Int(n) for n in sizes))}
    type = tile.value.type
    if not isinstance(type, TileBuf):
        raise RuntimeError("a window on no tile")
    rows, cols = sizes
    region = [
        fill(size, valid, start, is_full)
        for size, valid, start, is_full in zip(
            sizes, session.region(tile), offsets, tile.shape, strict=True
        )
    ]
    valid = tuple(n if isinstance(n, int) else None for n in region)
    if valid != (rows, cols):
        operands["valid_row"], operands["valid_col"] = (as_value(n, INDEX) for n in region)
    part = TileBuf(type.elem, replace(type.tile, rows=rows, cols=cols, valid=(valid[0], valid[1])))
    (value,) = session.emit(SUBVIEW, operands, attrs=attrs, results=[part], names=["window"])
    window = Tile(value, session, True, (region[0], region[1]))
    window.is_filled = tile.is_filled
    window.window_of = tile, (offsets[0], offsets[1])
    is_full = [size == extent for size, extent in zip(sizes, tile.shape, strict=True)]
    window.asked = tile.asked[0] if is_full[0] else rows, tile.asked[1] if is_full[1] else cols
    return window


def fill(size: int, valid: object, start: object, extent: int) -> Extent:
    """The number of valid elements in a window of `size` at `start` of `valid` elements."""
    if isinstance(valid, int) and valid == extent and not isinstance(start, int):
        return size  # a window of a full tile: out of bounds is an error
    if size == 1 and current().is_below(start, valid):
        return 1
    return arith("min", size, arith("max", arith("-", valid, start), 0))


def known_size(quantity: str, size: Extent) -> int:
    """A size as a Python int; raises for run-time values."""
    try:
        return size if isinstance(size, int) else index(size)
    except (TypeError, PtoError):
        raise mistake(
            "PTO-U203",
            f"{quantity} of a tile is needed while the kernel is traced, got {size!r}",
            help="give the largest size, and the valid region follows the data",
        ) from None


def tile_type(
    rows: object,
    cols: object,
    dtype: object,
    layout: str | None = None,
    role: str = "vec",
    valid: Extents | None = None,
    pad: str | float | None = None,
    *,
    fractal: int | None = None,
) -> TileBuf:
    """A tile type; an argument for `to=` of some instructions. `pto.tile` makes a tile."""
    rows, cols = known_size("rows", rows), known_size("cols", cols)
    kind = element(dtype)
    try:
        role_of_tile = role_named(role)
        region = (rows, cols) if valid is None else (valid[0], valid[1])
        if not all(isinstance(n, int) for n in region):
            region = None, None
        full_type = TileType.of(
            role_of_tile,
            kind,
            rows,
            cols,
            _layout(role_of_tile, layout, fractal),
            pad=_pad(pad, kind),
            valid=region,
        )
    except PtoError as error:
        raise located(error) from None
    return TileBuf(scalar_type(kind), full_type)


def tile(
    rows: int,
    cols: int,
    dtype: object,
    layout: str | None = None,
    role: str = "vec",
    valid: Extents | None = None,
    pad: str | float | None = None,
    address: int | None = None,
    *,
    fractal: int | None = None,
) -> Tile:
    """A new tile: rows x cols elements in the buffer of its role.

    layout   ND (row-major), DN (column-major), NZ, ZN, ZZ, NN; default: that of the role
    role     vec, mat, left, right, acc, bias, scaling, scale_left, scale_right
    valid    (rows, cols) that hold data; default: derived from the data
    pad      the value of a load outside the valid region: "zero", "min", "max", or a number
    address  byte address in the buffer; default: chosen by the planner
    """
    session = current()
    type = tile_type(rows, cols, dtype, layout, role, valid, pad, fractal=fractal)
    return session.alloc(type, valid, address)


def _layout(role: Role, name: str | None, fractal: int | None) -> Layout:
    chosen = name or _LAYOUTS.get(role, "ND")
    if name is None and role is Role.LEFT and current().profile == "a2a3":
        chosen = "ZZ"  # pto-isa pto_tile.hpp: left is ZZ on a2a3, NZ on a5
    layout = layout_named(chosen)
    size = fractal or (_FRACTALS.get(role) if layout.is_boxed else None)
    return layout if size is None else replace(layout, fractal=size)


def _pad(pad: str | float | None, kind: DType) -> Pad:
    if pad is None:
        return Pad.NULL
    if isinstance(pad, str):
        return pad_named(pad)
    return Pad.custom_bits(int(encode(kind, [pad])[0]))


def assign(tile: Tile, address: object) -> None:
    """Set the byte address of a tile (manual mode). Then every tile needs an address."""
    tile.used()
    allocation = tile.value.owner
    if not isinstance(allocation, Operation) or allocation.row is not ALLOC_TILE:
        raise mistake("PTO-U204", "only a tile of its own can be placed, not a window or a cast")
    if not isinstance(address, int):
        raise mistake("PTO-U204", f"an address is a Python number, got {address!r}")
    current().place(tile, current().constant(address, scalar_type(I64)))


def set_validshape(tile: Tile, rows: object, cols: object) -> None:
    """Set the valid region of a tile to rows x cols (Python numbers or Scalars)."""
    tile.used()
    current().set_region(tile, rows, cols)
