"""Shapes of tiles in expressions, and allocation of result tiles.

A result with one number per row is a *column*: layout DN, one element wide, as reductions and
broadcasts need it. Arithmetic needs row-major tiles and uses a column as a row over the same bytes.
"""

from __future__ import annotations

from pto.core.dtypes import DType
from pto.core.tile import Role
from pto.lang.call import instructions
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.values.elements import element
from pto.lang.values.tiles import Tile, same_region, tile, tile_type

_FULL_LINES = 32  # elements: rows are whole 32-byte blocks in every element type


def is_column(t: Tile) -> bool:
    return t.cols == 1 and t.spec.layout.name == "DN"


def is_row(t: Tile) -> bool:
    return t.rows == 1


def is_single(t: Tile) -> bool:
    """True if one element of it is valid, or was asked for, whatever its shape."""
    return t.asked == (1, 1) or same_region(current().region(t), (1, 1))


def whole_lines(count: int) -> int:
    """`count` rounded up to a line of whole 32-byte blocks in every element type."""
    return -(-count // _FULL_LINES) * _FULL_LINES


def like(t: Tile, dtype: object = None) -> Tile:
    """A new tile for a result of this shape, in the vector buffer."""
    kind = t.dtype if dtype is None else element(dtype)
    made = column(t.rows, kind) if is_column(t) else tile(t.rows, t.cols, kind)
    made.is_temporary, made.asked = True, t.asked
    return made


def column(rows: int, kind: DType) -> Tile:
    """A tile for one number a row."""
    made = tile(whole_lines(rows), 1, kind, "DN")
    made.asked = rows, 1
    return made


def flat(t: Tile) -> Tile:
    """A column as a row over the same bytes; any other tile as it is."""
    if not is_column(t):
        return t
    session = current()
    rows, _ = session.region(t)
    to = tile_type(1, t.rows, t.dtype)
    seen = t.alias
    if seen is None or not session.sees(seen):
        seen = t.alias = session.adopt(instructions.treshape(t, to=to), (1, t.rows))
        seen.alias, seen.asked = t, (t.asked[1], t.asked[0])
    session.set_region(seen, 1, rows)
    return seen


def upright(t: Tile) -> Tile:
    """A row as a column over the same bytes."""
    session = current()
    _, cols = session.region(t)
    seen = t.alias
    if seen is None or not session.sees(seen):
        to = tile_type(t.cols, 1, t.dtype, "DN")
        seen = t.alias = session.adopt(instructions.treshape(t, to=to), (t.cols, 1))
        seen.alias, seen.asked = t, (t.asked[1], t.asked[0])
        seen.is_filled = t.is_filled
    session.set_region(seen, cols, 1)
    return seen


def set_region(t: Tile, rows: object, cols: object) -> None:
    """Set the valid region of a tile, and of its alias (a column as a row)."""
    session = current()
    session.set_region(t, rows, cols)
    if t.alias is not None and session.sees(t.alias):
        session.set_region(t.alias, cols, rows)


def vector(t: Tile) -> Tile:
    """The tile in the vector buffer: an accumulator is moved (`tmov`)."""
    if t.spec.role is Role.VEC:
        return t
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
    instructions.tmov(moved, t)
    return moved
