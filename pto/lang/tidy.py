"""What a person would not have written: numbers computed twice, or again in every turn of a loop,
and valid regions that are set although they are that already.

A trace follows regions tile by tile, and sets one wherever it may have changed. Here the whole
program is known. What is said of a region is said once: where the tile is made, before a loop whose
turns all want it, or where it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.handle.window import SUBVIEW
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row.attributes import Int
from pto.isa.row.traits import Control
from pto.isa.row.types import Scalar, TileBuf

Extents = tuple[int | Value, int | Value]  # of a region; numbers where constants say them
Idle = tuple[Operation, Extents | None]  # a setting that nothing has used yet, what it was before
Known = dict[int, Extents]  # the region of tiles, by id of their values


def tidy(function: Operation) -> None:
    _hoist_numbers(function)
    _Numbers().block(function.regions[0].block, {})
    regions = _Regions(function)
    regions.straighten()
    regions.hoist()
    regions.straighten()


# ---- numbers


def _blocks(op: Operation) -> Iterator[Block]:
    return (block for region in op.regions for block in region.blocks)


def _loops(function: Operation) -> list[Operation]:
    """Counted loops, inner ones first."""
    return [op for op in function.walk() if op.control is Control.FOR][::-1]


def _is_inside(value: Value, loop: Operation) -> bool:
    owner = value.owner
    block = owner.parent if isinstance(owner, Operation) else owner
    while block is not None and block.region.owner is not loop:
        block = block.region.owner.parent
    return block is not None


def computes_number(op: Operation) -> bool:
    """It computes a number of numbers and cannot fail, so that a loop without a turn may have it
    done before."""
    safe = op.traits.pure and op.traits.operator and getattr(op.body, "needs", None) is None
    return bool(safe) and all(isinstance(v.type, Scalar) for v in (*op.operands, *op.results))


def _hoist_numbers(function: Operation) -> None:
    """What is the same in every turn of a loop is computed before it."""
    for loop in _loops(function):
        body, home = loop.regions[0].block, loop.parent
        if home is None:
            continue
        for op in list(body.ops):
            if computes_number(op) and not any(_is_inside(v, loop) for v in op.operands):
                _move(op, home, home.ops.index(loop))


def _move(op: Operation, home: Block, at: int) -> None:
    if op.parent is not None:
        op.parent.ops.remove(op)
    op.parent = home
    home.ops.insert(at, op)


class _Numbers:
    """Equal numbers are one, where the first is seen; so are equal views of a tile."""

    def __init__(self) -> None:
        self._same: dict[int, Value] = {}

    def block(self, block: Block, known: dict[object, list[Value]]) -> None:
        known = dict(known)
        for op in list(block.ops):
            op.operands[:] = [self._same.get(id(v), v) for v in op.operands]
            if computes_number(op) or op.row is SUBVIEW or _is_static_reshape(op):
                self._one(op, block, known)
            for inner in _blocks(op):
                self.block(inner, known)

    def _one(self, op: Operation, block: Block, known: dict[object, list[Value]]) -> None:
        kinds = tuple(map(str, (r.type for r in op.results)))
        given = tuple(id(v) for v in op.operands)
        key = op.name, given, kinds, op.segments, str(sorted(op.attrs.items(), key=str))
        found = known.setdefault(key, op.results)
        if found is not op.results:
            self._same.update((id(r), f) for r, f in zip(op.results, found, strict=True))
            block.ops.remove(op)


def _is_static_reshape(op: Operation) -> bool:
    """A tile seen otherwise, with a region that no operation sets."""
    if op.body is not RESHAPE:
        return False
    types = [v.type for v in op.results]
    return all(isinstance(t, TileBuf) and None not in t.tile.valid for t in types)


# ---- regions


class _Regions:
    """Of the tiles of one function that no loop, branch or call hands on."""

    def __init__(self, function: Operation) -> None:
        self._function = function
        self._entry: dict[int, Known] = {}  # regions before a loop
        self._opaque: set[int] = set()
        self._users: dict[int, list[Operation]] = {}
        for op in function.walk():
            for value in (*op.operands, *(op.results if op.regions else ())):
                if isinstance(value.type, TileBuf):
                    if op.control is not None or op.row is None:
                        self._opaque.add(id(value))
                    elif op.row is not SET_VALIDSHAPE:
                        self._users.setdefault(id(value), []).append(op)

    def _set(self, op: Operation) -> int | None:
        """The tile whose region this operation sets."""
        if op.row is not SET_VALIDSHAPE or id(op.operands[0]) in self._opaque:
            return None
        return id(op.operands[0])

    def _made(self, op: Operation) -> Known:
        """The tile that this operation makes with a region that may change."""
        for tile in op.results:
            if not isinstance(tile.type, TileBuf) or id(tile) in self._opaque:
                return {}
            if op.row is ALLOC_TILE and op.group("valid_row"):
                return {id(tile): _extents(op)}
            if op.body is RESHAPE and tile.type.tile.valid == (None, None):
                shapes = [getattr(v.type, "tile", None) for v in (op.operands[0], tile)]
                if shapes[0] is not None and shapes[0].shape != tile.type.tile.shape:
                    return {id(tile): tile.type.tile.shape}  # all there is
        return {}

    # what is known

    def _after(self, ops: Iterable[Operation], known: Known) -> Known:
        known = dict(known)
        for op in ops:
            tile = self._set(op)
            if tile is not None:
                known[tile] = _extents(op)
            elif op.regions:
                known = self._around(op, known)
            else:
                known |= self._made(op)
        return known

    def _inside(self, op: Operation, known: Known) -> Known:
        """At the start of its regions; of a loop, in every turn."""
        while op.is_loop:
            ends = [self._after(block.ops, known) for block in _blocks(op)]
            steady = {t: e for t, e in known.items() if all(_same(end.get(t), e) for end in ends)}
            if len(steady) == len(known):
                break
            known = steady
        return known

    def _around(self, op: Operation, known: Known) -> Known:
        start = self._inside(op, known)
        ends = [self._after(block.ops, start) for block in _blocks(op)]
        return {t: e for t, e in start.items() if all(_same(end.get(t), e) for end in ends)}

    # what is said again

    def straighten(self) -> None:
        self._straighten(self._function.regions[0].block, {})

    def _straighten(self, block: Block, known: Known) -> None:
        """Leave out settings of a region that is so already, or that nothing uses."""
        idle: dict[int, Idle] = {}
        kept: dict[int, Operation] = {}
        for op in block.ops:
            tile = self._set(op)
            if tile is None:
                known = self._passed(op, known, idle)
                kept[id(op)] = op
                continue
            extents = _extents(op)
            before = known.get(tile)
            if tile in idle:
                earlier, before = idle.pop(tile)
                del kept[id(earlier)]
                if earlier.row is ALLOC_TILE:
                    earlier.operands = [*earlier.group("addr"), *op.operands[1:]]
                    op, before = earlier, None
            if not _same(before, extents):
                idle[tile], kept[id(op)] = (op, before), op
            known[tile] = extents
        for op, _ in idle.values():
            maker = op.operands[0].maker if op.row is SET_VALIDSHAPE else None
            if maker is not None and maker.parent is block:  # the tile ends here too
                del kept[id(op)]
        block.ops[:] = kept.values()

    def _passed(self, op: Operation, known: Known, idle: dict[int, Idle]) -> Known:
        for each in op.walk():
            for value in each.operands:
                idle.pop(id(value), None)
        if not op.regions:
            made = self._made(op)
            idle.update((tile, (op, None)) for tile in made if op.row is ALLOC_TILE)
            return known | made
        self._entry[id(op)] = known
        for block in _blocks(op):
            self._straighten(block, dict(self._inside(op, known)))
        return self._around(op, known)

    # what every turn says

    def hoist(self) -> None:
        for loop in _loops(self._function):
            settings = map(self._set, loop.regions[0].block.ops)
            for tile in dict.fromkeys(t for t in settings if t is not None):
                self._hoist(loop, tile)

    def _hoist(self, loop: Operation, tile: int) -> None:
        """A region that all turns use a tile with is set before the loop, and the one that they
        leave behind after it."""
        body, home = loop.regions[0].block, loop.parent
        settings = [op for op in loop.walk() if self._set(op) == tile]
        wanted = self._wanted(body, tile)
        if home is None or wanted is None or any(op.parent is not body for op in settings):
            return
        last = settings[-1]
        users = self._users.get(tile, ())
        elsewhere = any(loop not in user.ancestors() for user in users if user.parent is not None)
        if any(_is_inside(v, loop) for v in (*last.operands, *wanted.operands)):
            return
        if not all(_is_sure(v, self._function) for v in wanted.operands[1:]):
            return
        if elsewhere and not _same(self._entry.get(id(loop), {}).get(tile), _extents(last)):
            return
        for op in settings:
            body.ops.remove(op)
        _move_in(wanted, home, home.ops.index(loop))
        if elsewhere and last is not wanted:
            _move_in(last, home, home.ops.index(loop) + 1)

    def _wanted(self, body: Block, tile: int) -> Operation | None:
        """What sets the one region in which the tile is used; None where there are several."""
        now: Operation | None = None
        found: list[Operation] = []
        for op in body.ops:
            if self._set(op) == tile:
                now = op
            elif any(id(v) == tile for each in op.walk() for v in each.operands):
                if now is None:
                    return None
                found.append(now)
        alike = all(_same(_extents(op), _extents(found[0])) for op in found)
        return found[0] if found and alike else None


def _extents(op: Operation) -> Extents:
    rows, cols = map(_extent, op.operands[-2:])
    return rows, cols


def _extent(value: Value) -> int | Value:
    maker = value.maker
    number = maker.attrs.get("value") if maker is not None and maker.traits.constant else None
    return number.value if isinstance(number, Int) else value


def _same(one: Extents | None, other: Extents) -> bool:
    return one is not None and all(
        a == b if isinstance(a, int) else a is b for a, b in zip(one, other, strict=True)
    )


def _move_in(op: Operation, home: Block, at: int) -> None:
    op.parent = home
    home.ops.insert(at, op)


def _is_sure(value: Value, function: Operation) -> bool:
    """An extent that is no mistake, also where a loop has no turn: a number, a size with a name, or
    one that is kept within bounds."""
    maker = value.maker
    if maker is None:
        return value.owner is function.regions[0].block
    if maker.traits.operator == "min":
        inner = [v.maker for v in maker.operands]
        return any(op is not None and op.traits.operator == "max" for op in inner)
    return maker.traits.constant
