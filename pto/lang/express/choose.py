"""Selecting between tiles element by element on every profile: `pto.where(t < 0.0, a, b)`.

A comparison of tiles, `==` and `!=` too, is made element by element. It emits nothing until
`pto.where` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from pto import isa
from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import F32, U8, DType
from pto.isa.tile.compare import EQUALITY_ONLY
from pto.lang.call.invoke import invoke
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.algebra import (
    adapted,
    binary,
    crossed,
    require_one_type,
    spread_like,
)
from pto.lang.express.broadcast import broadcast, trimmed
from pto.lang.express.shapes import flat, is_column, is_row, is_single, like, vector
from pto.lang.values.operators import COMPARED, Comparison, operations, plain
from pto.lang.values.scalars import Extent, Scalar, is_number
from pto.lang.values.tiles import Tile, same_region, tile

_ORDERED = {"lt": ("max", "ne"), "gt": ("min", "ne"), "le": ("min", "eq"), "ge": ("max", "eq")}
# A tcmps of a5 packs bits more densely than a tsel reads them; 16-bit integers of a2a3 are compared
# as f16, and those of 32 bits only by eq.
_WITH_A_NUMBER = {"a2a3": ("f16", "f32")}
_SIGNS = {word: sign for sign, word in COMPARED.items()}


def where(cond: Any, a: object, b: object, *, dst: Tile | None = None) -> Tile:
    """`a` where the comparison holds, else `b`: tiles or numbers. In a new tile, or in `dst`.

    Emits a tcmp (a tcmps for a number, where the profile packs its bits alike), then a tsels if `b`
    is a number, else a tsel; a texpands for other numbers. Rows, columns and single elements are
    broadcast as in NumPy. Comparisons
    combine with &, | and ~; ~ exchanges `a` and `b`, or is a tnot inside a combination.
    """
    if not isinstance(cond, Comparison):
        raise mistake(
            "PTO-T209",
            f"pto.where selects by a comparison of tiles, got {type(cond).__name__}",
            help="write it there: pto.where(t < 0.0, a, b), or with t == x",
        )
    while cond.mode == "~":
        cond, a, b = cond.left, b, a
    a, b = plain(a), plain(b)
    for operand in (a, b):
        if not isinstance(operand, Tile | Scalar) and not is_number(operand):
            raise mistake("PTO-T209", f"pto.where selects from tiles or numbers, got {operand!r}")
    cond, sources = _one_shape(*_crossed(*_in_vec(cond, [a, b])))
    tiles = [operand for operand in (*sources, *cond.tiles()) if isinstance(operand, Tile)]
    wide = max(tiles, key=_extent)
    chosen = [operand for operand in sources if isinstance(operand, Tile)]
    if len(chosen) == 2:
        require_one_type("pto.where(.., a, b)", *chosen)
    into = like(wide, _kind(chosen, sources, wide)) if dst is None else dst
    with ExitStack() as narrowed:
        for operand in dict.fromkeys(t for t in tiles if t is not wide):
            if is_single(operand) and not is_single(wide):
                continue
            narrowed.enter_context(adapted(wide, operand, broadcast("where", wide, operand)[1]))
        _select(cond, sources, into, wide)
    regions = [(operand, current().region(operand)) for operand in tiles]
    into.is_filled |= all(t.is_filled and same_region(r, t.shape) for t, r in regions)
    return into


def _select(cond: Comparison, sources: Sequence[Extent], into: Tile, wide: Tile) -> None:
    """Emit one tsel, or a tsels for a number without a tile."""
    first, second = sources
    types = operations("where", into.type)[0].types.get(current().profile)
    mask = _mask(cond, wide)
    if is_column(into):
        current().set_region(into, *current().region(wide))
    if isinstance(second, Tile) or (types is not None and into.dtype.name not in types):
        left, right = (flat(_like(source, wide, into.dtype)) for source in sources)
        isa.tsel(flat(into), mask, left, right)
        return
    if not isinstance(first, Tile):  # `into` holds the other number until then
        current().set_region(into, *current().region(wide))
        isa.texpands(flat(into), first)
        first = into
    isa.tsels(flat(into), mask, flat(_like(first, wide, into.dtype)), second)


def _extent(t: Tile) -> tuple[bool, ...]:
    """A sort key: tiles that are not broadcast come first."""
    single = is_single(t)
    return not (is_column(t) or is_row(t) or single), not single, not t.is_filled


def _in_vec(cond: Comparison, sources: list[Extent]) -> tuple[Comparison, list[Extent]]:
    """Every tile in the vector buffer; an accumulator is moved once."""
    for operand in dict.fromkeys(t for t in (*sources, *cond.tiles()) if isinstance(t, Tile)):
        moved = vector(operand)
        if moved is not operand:
            cond = cond.replaced(operand, moved)
            sources = [moved if source is operand else source for source in sources]
    return cond, sources


def _crossed(cond: Comparison, sources: list[Extent]) -> tuple[Comparison, list[Extent]]:
    """If there are only rows and columns, broadcast one column to the width of a row, which gives
    the shape of the result."""
    tiles = [operand for operand in (*sources, *cond.tiles()) if isinstance(operand, Tile)]
    wider = [operand for operand in tiles if not is_single(operand)]
    tall = [operand for operand in wider if is_column(operand)]
    wide = [operand for operand in wider if is_row(operand)]
    if not tall or not wide or len(tall) + len(wide) < len(wider):
        return cond, sources
    spread = crossed(tall[0], wide[0])
    return cond.replaced(tall[0], spread), [
        spread if operand is tall[0] else operand for operand in sources
    ]


def _one_shape(cond: Comparison, sources: list[Extent]) -> tuple[Comparison, list[Extent]]:
    """Tiles of as many valid elements that were rounded up differently, as windows of one shape."""
    tiles = [operand for operand in (*sources, *cond.tiles()) if isinstance(operand, Tile)]
    full_tiles = [
        operand
        for operand in tiles
        if not (is_column(operand) or is_row(operand) or is_single(operand))
    ]
    for operand in dict.fromkeys(full_tiles):
        least = operand
        for other in full_tiles:
            least = trimmed(least, other)
        if least is not operand:
            cond = cond.replaced(operand, least)
            sources = [least if source is operand else source for source in sources]
    return cond, sources


def _kind(chosen: list[Tile], sources: list[Extent], wide: Tile) -> DType:
    """The element type of the result: that of a selected tile, else of the compared tile, f32 for
    float numbers."""
    floats = any(isinstance(source, float) for source in sources) and not wide.dtype.is_float
    return chosen[0].dtype if chosen else F32 if floats else wide.dtype


def full_like(t: Tile, number: Extent, dtype: object = None) -> Tile:
    """A tile like `t`, in shape, layout and valid region, that holds one number everywhere."""
    if not isinstance(t, Tile):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise mistake("PTO-T200", f"full_like and zeros_like make a tile like a tile, got {t!r}")
    filled = like(vector(t), dtype)
    current().set_region(filled, *current().region(t))
    isa.texpands(flat(filled), number)
    filled.is_filled = True
    return filled


def zeros_like(t: Tile, dtype: object = None) -> Tile:
    """A tile like `t` that holds zeros: `pto.full_like(t, 0)`."""
    return full_like(t, 0, dtype)


def _like(value: object, wide: Tile, dtype: object) -> Tile:
    """A number, a row or a column as a tile of the shape of `wide`."""
    if not isinstance(value, Tile):
        return full_like(wide, value, dtype)
    if is_single(value) and not is_single(wide):
        return full_like(wide, isa.tgetval(flat(value), 0), value.dtype)
    return value if value.shape == wide.shape else spread_like(value, wide)


def _mask(cond: Comparison, wide: Tile) -> Tile:
    """The mask of a comparison: one bit per element, in rows of whole 32-byte blocks.

    PTOAS requires the shape of the operands on a5.
    """
    height, width = flat(wide).shape
    needed = -(-width // (8 * BLOCK_BYTE_SIZE)) * BLOCK_BYTE_SIZE
    alike = current().profile == "a5" and width % BLOCK_BYTE_SIZE == 0
    mask = tile(height, width if alike else needed, U8)
    if cond.mode == "~":
        invoke(operations("~", mask.type)[0], [mask, _mask(cond.left, wide)], {})
        return mask
    if isinstance(cond.left, Comparison):  # two, joined
        parts = [_mask(part, wide) for part in (cond.left, cond.right)]
        invoke(operations(cond.mode, mask.type, mask.type)[0], [mask, *parts], {})
        return mask
    if isinstance(cond.right, Tile):
        require_one_type(_SIGNS[cond.mode], cond.left, cond.right)
    mode = cond.mode
    if not isinstance(cond.right, Tile) and cond.left.dtype.name in _WITH_A_NUMBER.get(
        current().profile, ()
    ):
        isa.tcmps(mask, flat(_like(cond.left, wide, cond.left.dtype)), cond.right, cmpMode=mode)
        return mask
    left, right = (_like(part, wide, cond.left.dtype) for part in (cond.left, cond.right))
    if cond.left.dtype.name in EQUALITY_ONLY.get(current().profile, ()) and mode in _ORDERED:
        word, mode = _ORDERED[mode]  # a < b where the greater of both is not a
        right = binary(word, left, right)
    isa.tcmp(mask, flat(left), flat(right), cmpMode=mode)
    return mask
