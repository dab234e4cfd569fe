"""Single elements of a tile: `t[3, 5]` is a number of the program, `t[3, 5] = 0.0` writes one.

`tgetval` and `tsetval` count elements in storage order, so a window is resolved to its tile.
"""

from __future__ import annotations

from pto import isa
from pto.lang.call.place import mistake
from pto.lang.express.shapes import flat, is_column, is_single, owner, vector
from pto.lang.values.scalars import Extent, Scalar, arith
from pto.lang.values.tiles import Tile


def get(t: Tile, row: Extent, col: Extent) -> Scalar[object]:
    """The element at a row and column: one tgetval."""
    if t.role == "acc":
        t = vector(t)
    return isa.tgetval(*_stored(t, row, col))


def put(t: Tile, row: Extent, col: Extent, value: object) -> None:
    """Write the element at a row and column: one tsetval."""
    if not isinstance(value, int | float | Scalar):
        raise mistake("PTO-T209", f"an element is assigned a number, got {type(value).__name__}")
    isa.tsetval(*_stored(t, row, col), value)


def beside(t: Tile, other: Tile) -> Tile | Scalar[object]:
    """One element beside a larger tile as a number of the program; any other tile as it is."""
    if not is_single(t) or is_single(other):
        return t
    return isa.tgetval(flat(t), 0)


def _stored(t: Tile, row: Extent, col: Extent) -> tuple[Tile, Extent]:
    """The tile that owns the bytes, and the number of the element in storage order."""
    t, (down, right) = owner(t)
    row, col = arith("+", row, down), arith("+", col, right)
    if is_column(t):
        return flat(t), row
    if t.spec.layout.name != "ND" or t.role != "vec":
        raise mistake(
            "PTO-S200",
            f"one element of %{t.value.name}, a tile of role {t.role} and layout"
            f" {t.spec.layout.name}: only row-major tiles of the vector unit have an index",
            help="store the tile, and read the array: isa.load_scalar(y, i, j)",
        )
    return t, arith("+", arith("*", row, t.cols), col)
