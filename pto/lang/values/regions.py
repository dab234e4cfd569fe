"""Propagation of valid regions from sources to the destination, by the trait `region` of a row.

Instructions iterate over the destination's valid region (PTO manual), so it must be set before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pto.isa.row.instr import Instr
from pto.isa.row.traits import RegionRule
from pto.lang.call.session import Session
from pto.lang.values.tiles import Extent, Extents, Tile, fill

Given = Mapping[str, Any]  # what is read, by operand name: tiles, views, numbers
Follow = Callable[[Session, Tile, Given], Extents]


def _first(names: tuple[str, ...], operands: Given) -> Tile | None:
    return next((operands[n] for n in names if isinstance(operands.get(n), Tile)), None)


def _like(session: Session, dst: Tile, operands: Given) -> Extents:
    """The region of the first source with the shape and type of the destination, else with its
    shape (as a mask may have), else the present one."""
    listed = [
        operand for v in operands.values() for operand in (v if isinstance(v, list) else (v,))
    ]
    alike = [
        operand for operand in listed if isinstance(operand, Tile) and operand.shape == dst.shape
    ]
    alike.sort(key=lambda each: each.dtype is not dst.dtype)
    return session.region(alike[0] if alike else dst)


def _product(session: Session, dst: Tile, operands: Given) -> Extents:
    lhs, rhs = _first(("lhs", "a"), operands), _first(("rhs", "b"), operands)
    if lhs is None or rhs is None:
        return dst.shape
    return session.region(lhs)[0], session.region(rhs)[1]


def _from_source(make: Callable[[Extent, Extent, Tile], Extents]) -> Follow:
    """A rule that makes the region from the rows and columns of the source."""

    def follow(session: Session, dst: Tile, operands: Given) -> Extents:
        source = _first(("src0", "src"), operands)
        return dst.shape if source is None else make(*session.region(source), dst)

    return follow


def _cut(session: Session, dst: Tile, operands: Given) -> Extents:
    """The part of the destination that a window on the source's valid region fills."""
    source = _first(("src",), operands)
    if source is None:
        return dst.shape
    starts = (operands.get("indexRow", 0), operands.get("indexCol", 0))
    extents = (
        fill(size, valid, start, extent)
        for size, valid, start, extent in zip(
            dst.shape, session.region(source), starts, source.shape, strict=True
        )
    )
    rows, cols = extents
    return rows, cols


def _by_number(session: Session, dst: Tile, operands: Given) -> Extents:
    """A row for each index, or an element for each."""
    numbers = _first(("idx",), operands)
    if numbers is None or numbers.shape == dst.shape:
        return _like(session, dst, operands)
    rows, cols = session.region(numbers)
    return (cols if numbers.rows == 1 else rows), session.region(dst)[1]


def _by_places(session: Session, dst: Tile, operands: Given) -> Extents:
    """An element for each index, if there are indices."""
    places = _first(("indices",), operands)
    return _like(session, dst, operands) if places is None else session.region(places)


def _all(session: Session, dst: Tile, operands: Given) -> Extents:
    return dst.shape


_FOLLOW: dict[RegionRule, Follow] = {
    RegionRule.LIKE: _like,
    RegionRule.VIEW: _like,  # if there is no view
    RegionRule.COLUMN: _from_source(lambda rows, cols, dst: (rows, 1)),
    RegionRule.ROW: _from_source(lambda rows, cols, dst: (1, cols)),
    RegionRule.PRODUCT: _product,
    RegionRule.BITS: _from_source(lambda rows, cols, dst: (rows, dst.cols)),
    RegionRule.SWAPPED: _from_source(lambda rows, cols, dst: (cols, rows)),
    RegionRule.WINDOW: _cut,
    RegionRule.INDEXED: _by_number,
    RegionRule.GATHERED: _by_places,
    RegionRule.WHOLE: _all,
}


def follow(session: Session, row: Instr, dst: Tile, operands: Given) -> Extents:
    """The valid region `dst` has after this instruction."""
    return _FOLLOW[row.traits.region](session, dst, operands)
