"""Valid regions that types leave open: compared where a rule of the row says that they agree."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

from pto.isa.rules.rule import open_regions
from pto.run.jit.border.values import TilePlace

if TYPE_CHECKING:
    from pto.run.jit.emit.table import Spot


def require_regions(s: Spot) -> None:
    """Where they differ the reference step says so."""
    x, fine = s.x, "true"
    for rule, names in open_regions(s.case):
        tiles: list[TilePlace] = [s.need(TilePlace, name) for name in names]
        for (tile, last), axis in product(pairwise(tiles), rule.axes):
            first, second = (
                x.mul(each.valid[axis], each.type.dtype.values_per_item if axis else 1)
                for each in (tile, last)
            )
            fine = x.both(fine, x.compare("eq", first, second))
    s.fault_unless(fine)
