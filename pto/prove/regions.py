"""Valid regions of tiles as formulas, followed in program order through `set_validshape`."""

from __future__ import annotations

from dataclasses import dataclass, field

from pto.ir.graph import Block, Operation, Value
from pto.isa.meaning.handle.view import ALLOC_TILE, SET_VALID, VALID_COLS, VALID_ROWS, VALID_SHAPE
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.prove.number import ZERO, Number, Symbol, number, of
from pto.prove.values import Values

Region = tuple[Number, Number]
_READS = {id(VALID_ROWS): (0,), id(VALID_COLS): (1,), id(VALID_SHAPE): (0, 1)}


@dataclass(slots=True)
class Regions:
    """The valid region of each tile that was not left open, at the operation that is walked."""

    _now: dict[int, Region] = field(default_factory=dict[int, Region])

    def copy(self) -> Regions:
        return Regions(dict(self._now))

    def meet(self, other: Regions) -> Regions:
        """The regions that are the same on two ways of control flow."""
        return Regions({k: v for k, v in self._now.items() if other._now.get(k) == v})

    def operation(self, op: Operation, values: Values) -> None:
        """Note the region that an operation sets; give values to the results that read one."""
        if op.body is ALLOC_TILE or op.body is SET_VALID:
            tile = op.results[0] if op.results else op.operands[0]
            self._now[id(tile)] = stated_region(op, values, self.of(tile, values))
        elif op.body is RESHAPE:
            self._now[id(op.results[0])] = self._reshaped(op, values)
        elif id(op.body) in _READS:
            region = self.of(op.operands[0], values)
            for result, axis in zip(op.results, _READS[id(op.body)], strict=True):
                values.numbers[id(result)] = region[axis]

    def of(self, tile: Value, values: Values) -> Region:
        extents = self._now.get(id(tile))
        if extents is not None:
            return extents
        extents = _extent(tile, 0, values), _extent(tile, 1, values)
        if tile.maker is not None and tile.maker.body in (ALLOC_TILE, RESHAPE):
            self._now[id(tile)] = extents  # it changes nowhere but where this walk sees it
        return extents

    def in_loop(self, later: Regions, turns: Symbol, values: Values) -> Regions:
        """The regions at the start of an iteration: these in the first one, `later` in all other
        ones. `turns`: the number of iterations before."""
        joined: dict[int, Region] = {}
        for tile, (rows, cols) in self._now.items():
            after = later._now.get(tile)
            if after is not None:
                joined[tile] = (
                    values.first_or_later(turns, rows, after[0]),
                    values.first_or_later(turns, cols, after[1]),
                )
        return Regions(joined)

    def _reshaped(self, op: Operation, values: Values) -> Region:
        """Extents that the type leaves open are those of the source where shapes agree, else all
        there is."""
        types = [v.type for v in (op.operands[0], op.results[0])]
        tiles = [type.tile for type in types if isinstance(type, t.TileBuf)]
        if len(tiles) < 2:
            return self.of(op.results[0], values)
        shape = tiles[1].rows, tiles[1].cols
        same = (tiles[0].rows, tiles[0].cols) == shape
        source_region = (
            self.of(op.operands[0], values) if same else (number(shape[0]), number(shape[1]))
        )
        axes = zip(tiles[1].valid, source_region, strict=True)
        rows, cols = (of_source if n is None else number(n) for n, of_source in axes)
        return rows, cols

    def forget(self, block: Block) -> None:
        """Regions that a block sets are not known where it may have run."""
        for op in block.region.owner.walk():
            if op.body is SET_VALID:
                self._now.pop(id(op.operands[0]), None)
            elif op.control is Control.CALL:
                self.forget_operands(op)

    def forget_operands(self, call: Operation) -> None:
        for value in call.operands:
            self._now.pop(id(value), None)


def stated_region(op: Operation, values: Values, sizes: Region) -> Region:
    """The region that an operation names; sizes where it names none."""
    rows, cols = (op.operand(name) for name in ("valid_row", "valid_col"))
    return (
        sizes[0] if rows is None else values.number(rows),
        sizes[1] if cols is None else values.number(cols),
    )


def _extent(tile: Value, axis: int, values: Values) -> Number:
    """The extent of a valid region: that of the type, else a number from 0 to the size."""
    type = tile.type
    if not isinstance(type, t.TileBuf):
        return values.unknown(tile, ZERO)
    static, most = type.tile.valid[axis], (type.tile.rows, type.tile.cols)[axis]
    if static is not None:
        return number(static)
    return of(values.launch.symbol(f"valid {tile.name}", "value", ZERO, number(most)))
