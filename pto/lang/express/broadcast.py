"""How operands of one operator meet: windows of one shape, rows and columns that are broadcast."""

from __future__ import annotations

from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.shapes import is_column, is_row
from pto.lang.values.scalars import is_number
from pto.lang.values.tiles import Tile, same_region

_WORDS = {"max": "pto.max(a, b)", "min": "pto.min(a, b)", "where": "pto.where(c, a, b)"}


def broadcast(sign: str, a: Tile, b: Tile) -> tuple[Tile | None, str | None]:
    """The operand with the shape of the result (or None), and how the other one is broadcast."""
    if is_column(a) == is_column(b) and (a.shape == b.shape or is_column(a)):
        return a, None
    for wide, narrow in ((a, b), (b, a)):
        if is_column(narrow) and not is_column(wide):
            if is_row(wide) and not same_region(current().region(narrow), (1, 1)):
                return None, None
            if narrow.rows >= wide.rows and _may_agree(0, wide, narrow):
                return wide, "row"
        if is_row(narrow) and narrow.cols == wide.cols and _may_agree(1, wide, narrow):
            return wide, "column"
    raise mistake(
        "PTO-U083",
        f"`{shown(sign)}` of tiles of {size_text(a)} and {size_text(b)}: shapes must be equal, or"
        " one side must be a row of as many columns or a column of as many rows",
        help=_shape_help(a, b),
    )


def trimmed(t: Tile, other: Tile) -> Tile:
    """A tile with longer lines than `other` as a window of that width, if both have as many valid
    columns: matmul results have lines of 16, loaded tiles of 32 elements. The same for rows, of
    which a transpose makes whole lines."""
    width, valid = (current().region(operand)[1] for operand in (t, other))
    alike = is_number(width) and is_number(valid) and width == valid
    alike = alike or t.asked[1] == other.asked[1]
    rows = min(t.rows, other.rows) if t.asked[0] == other.asked[0] else t.rows
    cols = min(t.cols, other.cols) if alike else t.cols
    if is_column(t) or is_column(other) or (rows, cols) == t.shape:
        return t
    return t[0:rows, 0:cols]


def _may_agree(axis: int, wide: Tile, narrow: Tile) -> bool:
    """False if both valid extents along an axis are known and differ."""
    a, b = (current().region(operand)[axis] for operand in (wide, narrow))
    return not is_number(a) or not is_number(b) or a == b or wide.is_filled or narrow.is_filled


def size_text(t: Tile) -> str:
    """The shape in a message."""
    return f"{t.rows}x{t.cols}"


def _shape_help(a: Tile, b: Tile) -> str:
    if a.shape == b.shape[::-1]:
        return "one of them is turned: write .T"
    if is_column(a) or is_column(b):
        return "a column has a number for each row of the other: fold and load as many rows"
    return "load both with the same sizes; t[0:8, 0:64] is a window on a larger tile"


def shown(sign: str) -> str:
    """An operator as it is written."""
    words = {"neg": "-t", "abs": "abs(t)", "**": "**"}
    return _WORDS.get(sign) or words.get(sign) or sign.removeprefix("part ")
