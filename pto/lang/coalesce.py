"""Copy coalescing of tile buffers: removes copies by assigning both tiles to one buffer.

The front end copies a tile wherever a variable may be one of several tiles: at the end of a
branch, before a loop and at the end of its body. Two buffers are merged unless one of them is
written while the other one is live (interference, as in register allocation). A temporary then
uses its variable's buffer, and `acc = acc + t` is `tadd acc, acc, t`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pto.ir.builder import INDEX
from pto.ir.graph import Block, Operation, Region, Value
from pto.ir.liveness import Roots, live_before
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.meaning.kinds import Lane
from pto.isa.row.traits import Control
from pto.isa.row.types import TileBuf
from pto.isa.scalar.structure import YIELD
from pto.lang.values.tiles import Tile
from pto.transform.reuse import allocation, kept_apart, tiles_of


class Coalesce:
    """The buffers of one function. `hints` are pairs of buffers to merge without a copy between
    them: a variable before and after."""

    def __init__(
        self,
        function: Operation,
        tiles: list[Tile],
        copies: Sequence[Operation],
        hints: Sequence[tuple[Value, Value]],
    ) -> None:
        self._hints = hints
        self._function = function
        self._tiles = tiles
        self._copies = [op for op in copies if op.parent is not None]
        self._by_root = {t.value: t for t in tiles if _is_buffer(t.value)}
        self._copied = set(self._copies)
        self._same: dict[Value, Value] = {}  # buffer -> the buffer it was merged into
        self._apart: dict[Value, set[Value]] = {}  # interfering buffers
        self._pinned: set[Value] = set()  # buffers with uses that are not analysed
        self._first: dict[Value, Operation] = {}  # buffer -> the first operation that writes it
        self._order = {op: n for n, op in enumerate(function.walk())}

    def run(self) -> list[Tile]:
        """Merge buffers and remove the copies between them; returns the remaining tiles."""
        self._survey(self._function.regions[0].block)
        live_before(self._function.regions[0].block, frozenset(), self._before)
        wanted: Counter[frozenset[Value]] = Counter()
        for op in self._copies:
            wanted[frozenset(allocation(v) for v in (_written(op)[0], _read(op)[0]))] += 1
        wanted.update({frozenset(pair): 0 for pair in self._hints})
        for pair, _ in wanted.most_common():  # those that most copies join come first
            reps = {self._rep(value) for value in pair}
            if len(reps) == 2 and self._can_join(*reps):
                self._join(*reps)
        return self._apply()

    # ---- what each operation does to buffers

    def _survey(self, block: Block) -> None:
        """Record the first write of each buffer, and buffers that cannot be analysed."""
        touched: set[Value] = set()
        for op in block.ops:
            used = {allocation(v) for operand in op.walk() for v in operand.operands if _is_tile(v)}
            if op.regions:
                touched |= used
                for inner in op.blocks():
                    self._survey(inner)
                if op.control not in (Control.FOR, Control.WHILE, Control.IF):
                    self._pinned |= used
                continue
            if not op.traits.names_only and op.row is not SET_VALIDSHAPE:
                reads = {allocation(v) for v in _read(op)}
                for value in _written(op):
                    root = allocation(value)
                    is_whole = root.maker is not None and root.maker.parent is block
                    if is_whole and root not in touched | reads:
                        self._first[root] = op
                touched |= used
            takes_address = op.traits.names_only and any(not _is_tile(r) for r in op.results)
            if takes_address or op.control is not None:
                self._pinned |= used

    def _before(self, op: Operation, after: Roots) -> Roots:
        """The buffers that are live before an operation; records those that interfere there."""
        if op.row is SET_VALIDSHAPE or op.row is ALLOC_TILE or op.traits.names_only:
            return after - set(op.results)
        written = [allocation(v) for v in _written(op)]
        reads = {allocation(v) for v in op.operands if _is_tile(v)} - set(written)
        reads |= {allocation(v) for v in _read(op)}
        is_copy = op in self._copied
        self._note(op, written, reads, after)
        killed = {w for w in written if is_copy or self._first.get(w) is op}
        return (after - killed) | reads | (set(written) - killed)

    def _note(
        self, op: Operation, written: Sequence[Value], reads: set[Value], after: Roots
    ) -> None:
        source = reads if op in self._copied else set[Value]()
        scratch = {allocation(v) for v in tiles_of(op, "tmp")}
        in_place = isinstance(op.body, Lane) or bool(source)
        fixed = {allocation(v) for v in kept_apart(op)}
        for buffer in {*written, *scratch}:
            for other in (after | set(written) | scratch) - source:
                self._keep_apart(buffer, other)
            for other in reads - source:
                if not in_place or other in fixed or buffer in scratch:
                    self._keep_apart(buffer, other)

    def _keep_apart(self, a: Value, b: Value) -> None:
        if a != b:
            self._apart.setdefault(a, set()).add(b)
            self._apart.setdefault(b, set()).add(a)

    # ---- joining

    def _rep(self, root: Value) -> Value:
        while root in self._same:
            root = self._same[root]
        return root

    def _can_join(self, a: Value, b: Value) -> bool:
        tiles = self._by_root.get(a), self._by_root.get(b)
        if tiles[0] is None or tiles[1] is None or {a, b} & self._pinned:
            return False
        apart = {self._rep(neighbour) for neighbour in self._apart.get(a, ())}
        return b not in apart and _one_type(tiles[0], tiles[1])

    def _join(self, a: Value, b: Value) -> None:
        first, gone = (a, b) if self._dominates(a, b) else (b, a)
        self._same[gone] = first
        apart = self._apart.pop(gone, set())
        for neighbour in apart:
            self._keep_apart(first, self._rep(neighbour))

    def _dominates(self, a: Value, b: Value) -> bool:
        """True if the allocation of `a` dominates that of `b`."""
        first, second = a.maker, b.maker
        assert first is not None and second is not None
        around = {ancestor.parent for ancestor in (second, *second.ancestors())}
        return first.parent in around and self._order[first] < self._order[second]

    def _apply(self) -> list[Tile]:
        for op in [op for op in self._copies if self._is_idle(op)]:
            op.erase()
        for gone in self._same:
            self._reset(gone)
            gone.replace_all_uses(self._by_root[self._rep(gone)].value)
        tiles: list[Tile] = []
        for tile in self._tiles:
            into = self._by_root.get(self._rep(tile.value))
            if into is None or into is tile:
                tiles.append(tile)
            else:
                into.seen |= tile.seen
                into.settings += tile.settings
                into.is_temporary = False
        _drop_empty(self._function)
        return tiles

    def _is_idle(self, op: Operation) -> bool:
        target, source = (self._rep(allocation(v)) for v in (_written(op)[0], _read(op)[0]))
        return target == source

    def _reset(self, gone: Value) -> None:
        """Replace the allocation of a merged buffer: its first use resets the region, not earlier,
        because the other tile may be read until then."""
        op = gone.maker
        tile = self._by_root[gone]
        into = self._by_root[self._rep(gone)]
        assert op is not None
        uses = _users(gone, op.home)
        if len(uses) > 1 and uses[0].row is SET_VALIDSHAPE:
            uses[0].move_before(uses[1])
        elif uses:
            extents = [into.home.constant(n, INDEX) for n in tile.shape]
            setting = Operation.of(SET_VALIDSHAPE, [into.value, *extents], where=op.where)
            op.home.insert(op.home.ops.index(uses[0]), setting)
            into.settings.append(setting)
        op.erase()


def _users(value: Value, block: Block) -> list[Operation]:
    """The operations of a block that use a value, themselves or inside, in order."""
    inside = {user for op in value.uses for user in (op, *op.ancestors())}
    return [op for op in block.ops if op in inside]


def _one_type(a: Tile, b: Tile) -> bool:
    types = [t.value.type for t in (a, b)]
    if a.fixed or b.fixed:
        return a.fixed and b.fixed and types[0] == types[1] and None not in a.spec.valid
    specs = [replace(t.spec, valid=t.shape) for t in (a, b)]
    placed = any(t.value.maker is not None and t.value.maker.group("addr") for t in (a, b))
    return specs[0] == specs[1] and not placed


def _is_buffer(value: Value) -> bool:
    return value.maker is not None and value.maker.row is ALLOC_TILE


def _is_tile(value: Value) -> bool:
    return isinstance(value.type, TileBuf)


def _written(op: Operation) -> list[Value]:
    return tiles_of(op, "out", "inout")


def _read(op: Operation) -> list[Value]:
    return tiles_of(op, "in", "inout")


def _drop_empty(function: Operation) -> None:
    """Remove branches that are empty after their copies were removed."""
    for op in list(function.walk())[::-1]:
        if op.control is not Control.IF or op.results or op.parent is None or len(op.regions) != 2:
            continue
        empty = [
            all(op_inside.row is YIELD for b in r.blocks for op_inside in b.ops) for r in op.regions
        ]
        if all(empty):
            op.erase()
        elif empty[1]:
            op.regions[1] = Region(op)
