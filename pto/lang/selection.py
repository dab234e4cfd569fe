"""Choosing between tiles element by element, right on every profile: `pto.where(t < 0.0, a, b)`.

A comparison of tiles is no value of the program until something is chosen by it; `==` of tiles is
Python's own (the same tile), so equality is asked with `t.eq(x)` and `t.ne(x)`.
"""

from __future__ import annotations

from typing import Any

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.lang.call import instructions
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.values.operators import Comparison
from pto.lang.values.scalars import Scalar, is_number
from pto.lang.values.tiles import Tile, tile


def where(cond: Any, a: Any, b: Any, *, dst: Tile | None = None) -> Tile:
    """`a` where the comparison holds, else `b`: tiles or numbers. In a new tile, or in `dst`."""
    if not isinstance(cond, Comparison):
        raise mistake(
            "PTO-T209",
            f"pto.where chooses by a comparison of tiles, got {type(cond).__name__}",
            help="write it there: pto.where(t < 0.0, a, b), or with t.eq(x) and t.ne(x)",
        )
    kinds = [each.dtype for each in (a, b) if isinstance(each, Tile)]
    into = _like(cond.left, kinds[0] if kinds else cond.left.dtype) if dst is None else dst
    first, second = (_as_tile(each, cond.left, into.dtype) for each in (a, b))
    instructions.tsel(into, _mask(cond), first, second)
    return into


def full_like(t: Tile, number: Any, dtype: Any = None) -> Tile:
    """A tile like `t`, in shape, layout and valid region, that holds one number everywhere."""
    made = _like(t, dtype or t.dtype)
    rows, cols = t.valid
    current().set_region(made, rows, cols)
    instructions.texpands(made, number)
    return made


def zeros_like(t: Tile, dtype: Any = None) -> Tile:
    """A tile like `t` that holds zeros: `pto.full_like(t, 0)`."""
    return full_like(t, 0, dtype)


def _like(t: Tile, dtype: Any) -> Tile:
    return tile(*t.shape, dtype, t.spec.layout.name, t.role)


def _as_tile(value: Any, like: Tile, dtype: Any) -> Tile:
    if isinstance(value, Tile):
        return value
    if not is_number(value) and not isinstance(value, Scalar):
        raise mistake("PTO-T209", f"pto.where chooses tiles or numbers, got {value!r}")
    return full_like(like, value, dtype)


def _mask(cond: Comparison) -> Tile:
    """A bit an element; rows of whole blocks."""
    left = cond.left
    right = cond.right if isinstance(cond.right, Tile) else full_like(left, cond.right)
    width = -(-left.cols // (8 * BLOCK_BYTE_SIZE)) * BLOCK_BYTE_SIZE
    mask = tile(left.rows, width, "u8")
    instructions.tcmp(mask, left, right, cmpMode=cond.mode)
    return mask
