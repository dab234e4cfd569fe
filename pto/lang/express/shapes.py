"""Shapes of tiles in expressions, and allocation of result tiles.

A result with one number per row is a *column*: layout DN, one element wide, as reductions and
broadcasts need it. Arithmetic needs row-major tiles and uses a column as a row over the same bytes.
"""

from __future__ import annotations

from pto import isa
from pto.core.dtypes import DType
from pto.core.tile import Role
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.values.elements import element
from pto.lang.values.scalars import Extent, arith
from pto.lang.values.tiles import Tile, same_region, tile, tile_type

_FULL_LINES = 32  # elements: rows are whole 32-byte blocks in every element type


def is_column(t: Tile) -> bool:
    return t.cols == 1 and t.spec.layout.name == "DN"


def is_row(t: Tile) -> bool:
    return t.rows == 1


def is_single(t: Tile) -> bool:
    """True if one element of it is valid, or was requested, whatever its shape."""
    return t.asked == (1, 1) or same_region(current().region(t), (1, 1))


def whole_lines(count: int) -> int:
    """`count` rounded up to a line of whole 32-byte blocks in every element type."""
    return -(-count // _FULL_LINES) * _FULL_LINES


def like(t: Tile, dtype: object = None) -> Tile:
    """A new tile for a result of this shape, in the vector buffer."""
    kind = t.dtype if dtype is None else element(dtype)
    similar = column(t.rows, kind) if is_column(t) else tile(t.rows, t.cols, kind)
    similar.is_temporary, similar.asked = True, t.asked
    return similar


def column(rows: int, kind: DType) -> Tile:
    """A tile for one number a row."""
    tall = tile(whole_lines(rows), 1, kind, "DN")
    tall.asked = rows, 1
    return tall


def flat(t: Tile) -> Tile:
    """A column as a row over the same bytes; any other tile as it is."""
    if not is_column(t):
        return t
    session = current()
    rows, _ = session.region(t)
    to = tile_type(1, t.rows, t.dtype)
    row = t.alias
    if row is None or not session.sees(row):
        row = t.alias = session.adopt(isa.treshape(t, to=to), (1, t.rows))
        row.alias, row.asked = t, (t.asked[1], t.asked[0])
    session.set_region(row, 1, rows)
    return row


def upright(t: Tile) -> Tile:
    """A row as a column over the same bytes."""
    session = current()
    _, cols = session.region(t)
    column_view = t.alias
    if column_view is None or not session.sees(column_view):
        to = tile_type(t.cols, 1, t.dtype, "DN")
        column_view = t.alias = session.adopt(isa.treshape(t, to=to), (t.cols, 1))
        column_view.alias, column_view.asked = t, (t.asked[1], t.asked[0])
        column_view.is_filled = t.is_filled
    session.set_region(column_view, cols, 1)
    return column_view


def _column_window(t: Tile) -> Tile:
    """`t[:, 5:6]` as a column: a row of the transposed tile, moved to a tile of its own."""
    if t.window_of is None:
        return t
    from pto.lang.express.product import transpose  # built on shapes

    parent, (row, col) = t.window_of
    turned = transpose(parent if t.rows == parent.rows else parent[row : row + t.rows, :])
    line = tile(1, turned.cols, t.dtype)
    isa.tmov(line, turned[col, :])
    line.asked = 1, t.asked[0]
    return upright(line)


def apart(t: Tile, target: Tile) -> Tile:
    """`t` as it is before `target` is written: a window that may share bytes with it is copied."""
    if t is target or not _may_overlap(t, target):
        return t
    t = vector(t)
    copy = like(t)
    isa.tmov(flat(copy), flat(t))
    return copy


def _may_overlap(a: Tile, b: Tile) -> bool:
    """True unless the tiles are different, or windows on one tile that are certainly disjoint."""
    (one, first), (other, second) = owner(a), owner(b)
    if one is not other:
        return False
    for low, high, n, m in zip(first, second, a.shape, b.shape, strict=True):
        is_constant = isinstance(low, int) and isinstance(high, int)
        if is_constant and (low + n <= high or high + m <= low):
            return False
    return True


def owner(t: Tile) -> tuple[Tile, tuple[Extent, Extent]]:
    """The tile behind a window, and the start of the window in it."""
    row: Extent = 0
    col: Extent = 0
    while t.window_of is not None:
        t, (down, right) = t.window_of
        row, col = arith("+", row, down), arith("+", col, right)
    return t, (row, col)


def set_region(t: Tile, rows: object, cols: object) -> None:
    """Set the valid region of a tile, and of its alias (a column as a row)."""
    session = current()
    session.set_region(t, rows, cols)
    if t.alias is not None and session.sees(t.alias):
        session.set_region(t.alias, cols, rows)


def vector(t: Tile) -> Tile:
    """The tile in the vector buffer: an accumulator is moved (`tmov`), a window of one column is
    transposed to lie without gaps (`ttrans`)."""
    if t.spec.role is Role.VEC:
        return _column_window(t) if t.cols == 1 < t.rows and not is_column(t) else t
    if t.spec.role is not Role.ACC:
        raise mistake(
            "PTO-U084",
            f"%{t.value.name} is a tile of role {t.role}: the vector unit computes on vec tiles",
            help="load it once more for the vector unit, without role=; operands of pto.dot"
            " are in L1",
        )
    if t.is_empty:
        raise mistake(
            "PTO-U086",
            f"%{t.value.name} is an accumulator that nothing has been multiplied into",
            help=f"pto.dot(a, b, acc={t.value.name}) comes first",
        )
    moved = tile(t.rows, t.cols, t.dtype)
    moved.asked = t.asked
    isa.tmov(moved, t)
    return moved
