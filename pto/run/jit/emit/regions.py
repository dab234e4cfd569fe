"""Valid regions that types leave open: compared where a rule of the row says that they agree, and
known where they are set once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING

from pto.core.compact import Compact
from pto.ir.graph import Operation
from pto.isa.meaning.handle.view import ALLOC_TILE, SET_VALID
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.isa.rules.rule import open_regions
from pto.run.jit.runtime.values import TileDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import OpContext


def require_regions(s: OpContext) -> None:
    """Where they differ the reference step says so."""
    x, fine = s.x, "true"
    for rule, names in open_regions(s.case):
        tiles: list[TileDesc] = [s.need(TileDesc, name) for name in names]
        for (tile, last), axis in product(pairwise(tiles), rule.axes):
            first, second = (
                x.mul(each.valid[axis], each.type.dtype.values_per_item if axis else 1)
                for each in (tile, last)
            )
            fine = x.both(fine, x.compare("eq", first, second))
    s.fault_unless(fine)


def set_once(ops: Sequence[Operation]) -> set[int]:
    """The ids of operations that set the region of a tile once, before its first use: the tile
    counts as made with that region. `ops` are in the order of the text."""
    found, again, fresh = dict[int, int](), set[int](), set[int]()
    for op in ops:
        if op.body is SET_VALID:
            tile = id(op.operands[0])
            again |= set() if tile in fresh else {tile}
            found[tile] = id(op)
        fresh -= {id(v) for v in op.operands}
        if op.regions or "callee" in op.attrs:  # their operations may not run
            fresh.clear()
        if op.body in (ALLOC_TILE, RESHAPE):
            fresh |= {id(v) for v in op.results if _has_one_form(v.type)}
    return {op for tile, op in found.items() if tile not in again}


def _has_one_form(type: t.Type) -> bool:
    """True if the layout of a tile does not depend on its valid region."""
    return isinstance(type, t.TileBuf) and type.tile.compact is Compact.NULL
