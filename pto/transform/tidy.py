"""Cleans up a traced program: common subexpressions, loop-invariant code, redundant set_validshape.

A trace sets the valid region of a tile wherever it may have changed. With the whole program known,
each region is set once: at the allocation, before a loop in which it is invariant, or where it
changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.handle.window import SUBVIEW
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row.types import Scalar, TileBuf
from pto.transform.layouts import state_columns
from pto.transform.regions import state_constants
from pto.transform.strides import counted_loops, is_inside

Extents = tuple[int | Value, int | Value]  # of a region; numbers where constants say them
Idle = tuple[Operation, Extents | None]  # an unused set_validshape, the region before it
Known = dict[Value, Extents]  # the region of tiles


def tidy(function: Operation) -> None:
    _hoist_numbers(function)
    _join_equal(function.regions[0].block, {})
    regions = _Regions(function)
    regions.straighten()
    regions.hoist()
    regions.straighten()
    state_constants(function)
    state_columns(function)


def drop_unused(function: Operation) -> None:
    """Erase operations without an effect and without uses of their results."""
    for op in reversed(list(function.walk())):
        is_name = op.row is SUBVIEW or op.body is RESHAPE
        if (op.traits.pure or is_name) and not any(r.uses for r in op.results):
            op.erase()


# ---- numbers


def computes_number(op: Operation) -> bool:
    """True for pure scalar arithmetic that cannot fail, so that it may be hoisted out of a loop
    with zero iterations."""
    safe = op.traits.pure and op.traits.operator and getattr(op.body, "needs", None) is None
    return bool(safe) and all(isinstance(v.type, Scalar) for v in (*op.operands, *op.results))


def _hoist_numbers(function: Operation) -> None:
    """Hoist loop-invariant scalar arithmetic."""
    for loop in counted_loops(function):
        for op in list(loop.regions[0].block.ops):
            if computes_number(op) and not any(is_inside(v, loop) for v in op.operands):
                op.move_before(loop)


def _join_equal(block: Block, seen_values: dict[object, list[Value]]) -> None:
    """Join equal numbers and constants where the first is visible, and equal views of a tile."""
    seen_values = dict(seen_values)
    for op in list(block.ops):
        joins = op.traits.constant or computes_number(op)
        if joins or op.row is SUBVIEW or _is_static_reshape(op):
            kinds = tuple(str(r.type) for r in op.results)
            attrs = str(sorted(op.attrs.items(), key=str))
            first_results = seen_values.setdefault(
                (op.name, *op.operands, kinds, op.segments, attrs), op.results
            )
            if first_results is not op.results:
                for result, first in zip(op.results, first_results, strict=True):
                    result.replace_all_uses(first)
                op.erase()
        for inner in op.blocks():
            _join_equal(inner, seen_values)


def _is_static_reshape(op: Operation) -> bool:
    """True for a reshape of a tile with a static valid region."""
    if op.body is not RESHAPE:
        return False
    types = [v.type for v in op.results]
    return all(isinstance(t, TileBuf) and None not in t.tile.valid for t in types)


# ---- regions


class _Regions:
    """Valid regions of the tiles of one function that no loop, branch or call passes on."""

    def __init__(self, function: Operation) -> None:
        self._function = function
        self._entry: dict[Operation, Known] = {}  # regions before a loop

    def _set(self, op: Operation) -> Value | None:
        """The id of the tile if this operation sets its valid region, else None."""
        if op.row is not SET_VALIDSHAPE or _is_opaque(op.operands[0]):
            return None
        return op.operands[0]

    def _made(self, op: Operation) -> Known:
        """The tile with a changeable region that this operation makes, and its region."""
        for tile in op.results:
            if not isinstance(tile.type, TileBuf) or _is_opaque(tile):
                return {}
            if op.row is ALLOC_TILE and op.group("valid_row") and op.group("valid_col"):
                return {tile: _extents(op)}
            if op.body is RESHAPE and tile.type.tile.valid == (None, None):
                shapes = [getattr(v.type, "tile", None) for v in (op.operands[0], tile)]
                if shapes[0] is not None and shapes[0].shape != tile.type.tile.shape:
                    return {tile: tile.type.tile.shape}  # all there is
        return {}

    # known regions

    def _after(self, ops: Iterable[Operation], regions: Known) -> Known:
        regions = dict(regions)
        for op in ops:
            tile = self._set(op)
            if tile is not None:
                regions[tile] = _extents(op)
            elif op.regions:
                regions = self._around(op, regions)
            else:
                regions |= self._made(op)
        return regions

    def _inside(self, op: Operation, regions: Known) -> Known:
        """The known regions at the start of the body; for a loop, in every iteration."""
        while op.is_loop:
            ends = [self._after(block.ops, regions) for block in op.blocks()]
            steady = {t: e for t, e in regions.items() if all(_same(end.get(t), e) for end in ends)}
            if len(steady) == len(regions):
                break
            regions = steady
        return regions

    def _around(self, op: Operation, regions: Known) -> Known:
        start = self._inside(op, regions)
        ends = [self._after(block.ops, start) for block in op.blocks()]
        return {t: e for t, e in start.items() if all(_same(end.get(t), e) for end in ends)}

    # redundant settings

    def straighten(self) -> None:
        self._straighten(self._function.regions[0].block, {})

    def _straighten(self, block: Block, regions: Known) -> None:
        """Remove set_validshape operations that change nothing or are not used."""
        idle: dict[Value, Idle] = {}
        remaining: dict[Operation, None] = {}
        for op in block.ops:
            tile = self._set(op)
            if tile is None:
                regions = self._passed(op, regions, idle)
                remaining[op] = None
                continue
            extents = _extents(op)
            before = regions.get(tile)
            if tile in idle:
                earlier, before = idle.pop(tile)
                del remaining[earlier]
                if earlier.row is ALLOC_TILE:
                    for name in ("valid_row", "valid_col"):
                        earlier.set_group(name, op.group(name))
                    op, before = earlier, None
            if not _same(before, extents):
                idle[tile], remaining[op] = (op, before), None
            regions[tile] = extents
        for op, _ in idle.values():
            maker = op.operands[0].maker if op.row is SET_VALIDSHAPE else None
            if maker is not None and maker.parent is block:  # the tile ends here too
                del remaining[op]
        block.set_ops(remaining)

    def _passed(self, op: Operation, regions: Known, idle: dict[Value, Idle]) -> Known:
        for inner in op.walk():
            for value in inner.operands:
                idle.pop(value, None)
        if not op.regions:
            created = self._made(op)
            idle.update((tile, (op, None)) for tile in created if op.row is ALLOC_TILE)
            return regions | created
        self._entry[op] = regions
        for block in op.blocks():
            self._straighten(block, dict(self._inside(op, regions)))
        return self._around(op, regions)

    # loop-invariant settings

    def hoist(self) -> None:
        for loop in counted_loops(self._function):
            settings = map(self._set, loop.regions[0].block.ops)
            for tile in dict.fromkeys(t for t in settings if t is not None):
                self._hoist(loop, tile)

    def _hoist(self, loop: Operation, tile: Value) -> None:
        """If all iterations use a tile with one region, set it before the loop; set the final
        region after the loop."""
        body = loop.regions[0].block
        settings = [op for op in loop.walk() if self._set(op) == tile]
        wanted = self._wanted(body, tile)
        if wanted is None or any(op.parent is not body for op in settings):
            return
        last = settings[-1]
        users = [op for op in tile.uses if op.row is not SET_VALIDSHAPE]
        elsewhere = any(loop not in user.ancestors() for user in users)
        if any(is_inside(v, loop) for v in (*last.operands, *wanted.operands)):
            return
        if not all(_is_sure(v, self._function) for v in wanted.operands[1:]):
            return
        if elsewhere and not _same(self._entry.get(loop, {}).get(tile), _extents(last)):
            return
        for op in settings:
            if op is not wanted and op is not last:
                op.erase()
        wanted.move_before(loop)
        if last is not wanted and elsewhere:
            last.move_after(loop)
        elif last is not wanted:
            last.erase()

    def _wanted(self, body: Block, tile: Value) -> Operation | None:
        """The operation that sets the only region in which the tile is used; None if several."""
        now: Operation | None = None
        settings: list[Operation] = []
        for op in body.ops:
            if self._set(op) == tile:
                now = op
            elif any(v is tile for inner in op.walk() for v in inner.operands):
                if now is None:
                    return None
                settings.append(now)
        alike = all(_same(_extents(op), _extents(settings[0])) for op in settings)
        return settings[0] if settings and alike else None


def _is_opaque(tile: Value) -> bool:
    """True if a loop, branch or call passes it on."""
    maker = [tile.maker] if tile.maker is not None and tile.maker.regions else []
    return any(op.control is not None for op in (*maker, *tile.uses))


def _extents(op: Operation) -> Extents:
    rows, cols = (v if v.literal is None else v.literal for v in op.operands[-2:])
    return rows, cols


def _same(one: Extents | None, other: Extents) -> bool:
    return one is not None and all(
        a == b if isinstance(a, int) else a is b for a, b in zip(one, other, strict=True)
    )


def _is_sure(value: Value, function: Operation) -> bool:
    """True for an extent that is in range even if a loop has zero iterations: a constant, a named
    size, or a clamped number."""
    maker = value.maker
    if maker is None:
        return value.owner is function.regions[0].block
    if maker.traits.operator == "min":
        inner = [v.maker for v in maker.operands]
        return any(op is not None and op.traits.operator == "max" for op in inner)
    return maker.traits.constant
