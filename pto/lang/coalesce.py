"""Copies of tiles to the buffers of variables, removed where one buffer serves both.

The front end copies a tile wherever a variable may stand for one tile or another: at the end of a
branch, before a loop and at the end of its body. Two buffers become one unless one of them is
written while the other one is still needed (interference, as in register allocation). A temporary
then has its variable's buffer, and `acc = acc + t` is `tadd acc, acc, t`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pto.core.errors import Diagnostic
from pto.ir.builder import INDEX
from pto.ir.graph import Block, Operation, Region, Value
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.meaning import Lane
from pto.isa.row.traits import Control
from pto.isa.row.types import TileBuf
from pto.isa.scalar.structure import YIELD
from pto.lang.call.place import KernelError
from pto.lang.values.tiles import Tile

Roots = frozenset[int]  # buffers, by id of the value that their allocation gives
_NONE: Roots = frozenset()


def coalesce(
    function: Operation,
    tiles: list[Tile],
    copies: Sequence[Operation],
    hints: Sequence[tuple[Value, Value]],
    joins: Sequence[Operation] = (),
) -> list[Tile]:
    """Join buffers and drop the copies between them; returns the tiles that remain. `hints` are
    pairs of buffers that may be one without a copy between them: a variable before and after.
    `joins` are the copies at the ends of branches."""
    if not copies:
        return tiles
    found = _Coalesce(function, tiles, copies, hints, joins)
    kept = found.run()
    _drop_empty(function)
    return kept


class _Coalesce:
    def __init__(
        self,
        function: Operation,
        tiles: list[Tile],
        copies: Sequence[Operation],
        hints: Sequence[tuple[Value, Value]],
        joins: Sequence[Operation],
    ) -> None:
        self._hints = hints
        self._function = function
        self._tiles = tiles
        self._copies = [op for op in copies if op.parent is not None]
        self._by_root = {id(t.value): t for t in tiles if _is_buffer(t.value)}
        self._copied = {id(op) for op in self._copies}
        self._same: dict[int, int] = {}  # a buffer, and the one it has become
        self._apart: dict[int, set[int]] = {}  # buffers that must differ
        self._pinned: set[int] = set()  # buffers that are used in ways not followed here
        self._first: dict[int, int] = {}  # a buffer, and the operation that first fills it
        self._sources: dict[int, set[int]] = {}  # of buffers after a branch: the tiles they may be
        for op in self._copies:
            around = op.parent.region.owner if op.parent is not None else None
            target, source = _root(_written(op)[0]), _root(_read(op)[0])
            if (
                any(op is each for each in joins)
                and around is not None
                and not _is_within(source, around)
            ):
                self._sources.setdefault(id(target), set()).add(id(source))
        self._order = {id(op): n for n, op in enumerate(function.walk())}

    def run(self) -> list[Tile]:
        self._survey(self._function.regions[0].block)
        self._live(self._function.regions[0].block, _NONE, note=True)
        wanted: Counter[frozenset[int]] = Counter()
        for op in self._copies:
            wanted[frozenset(id(_root(v)) for v in (_written(op)[0], _read(op)[0]))] += 1
        wanted.update({frozenset(map(id, pair)): 0 for pair in self._hints})
        for pair, _ in wanted.most_common():  # those that most copies join come first
            reps = {self._rep(each) for each in pair}
            if len(reps) == 2 and self._can_join(*reps):
                self._join(*reps)
        return self._apply()

    # ---- what each operation does to buffers

    def _survey(self, block: Block) -> None:
        """Note the operation that first fills each buffer, and buffers that cannot be followed."""
        touched: set[int] = set()
        for op in block.ops:
            if op.regions:
                for each in op.walk():
                    touched |= {id(_root(v)) for v in each.operands if _is_tile(v)}
                for inner in _blocks(op):
                    self._survey(inner)
                if op.control not in (Control.FOR, Control.WHILE, Control.IF):
                    inside = (v for each in op.walk() for v in each.operands if _is_tile(v))
                    self._pinned |= {id(_root(v)) for v in inside}
                continue
            used = {id(_root(v)) for v in op.operands if _is_tile(v)}
            if not op.traits.names_only and op.row is not SET_VALIDSHAPE:
                reads = {id(_root(v)) for v in _read(op)}
                for value in _written(op):
                    root = _root(value)
                    whole = root.maker is not None and root.maker.parent is block
                    if whole and id(root) not in touched | reads:
                        self._first[id(root)] = id(op)
                touched |= used
            takes_address = op.traits.names_only and any(not _is_tile(r) for r in op.results)
            if takes_address or op.row is None or op.control is not None:
                self._pinned |= used

    def _live(self, block: Block, after: Roots, *, note: bool) -> Roots:
        """The buffers that are needed before a block, given those needed after it."""
        for op in reversed(block.ops):
            after = self._around(op, after, note) if op.regions else self._before(op, after, note)
        return after

    def _around(self, op: Operation, after: Roots, note: bool) -> Roots:
        blocks = _blocks(op)
        if op.control is Control.IF:
            ends = [self._live(block, after, note=note) for block in blocks]
            return after.union(*ends) if len(blocks) < 2 else _NONE.union(*ends)
        if not op.is_loop:
            for block in reversed(blocks):
                after |= self._live(block, after, note=note)
            return after
        head = after
        while True:
            found = head
            for block in reversed(blocks):
                found = self._live(block, found | after, note=False)
            if found <= head:
                break
            head |= found
        if note:
            for block in blocks:
                self._live(block, head | after, note=True)
        return head | after

    def _before(self, op: Operation, after: Roots, note: bool) -> Roots:
        if op.row is SET_VALIDSHAPE or op.row is ALLOC_TILE or op.traits.names_only:
            return after - {id(r) for r in op.results}
        written = [id(_root(v)) for v in _written(op)]
        reads = {id(_root(v)) for v in op.operands if _is_tile(v)} - set(written)
        reads |= {id(_root(v)) for v in _read(op)}
        is_copy = id(op) in self._copied
        if note:
            self._note(op, written, reads, after)
            self._require_own(op, written, after)
        killed = {w for w in written if is_copy or self._first.get(w) == id(op)}
        return (after - killed) | reads | (set(written) - killed)

    def _require_own(self, op: Operation, written: Sequence[int], after: Roots) -> None:
        """A variable that may stand for one of two tiles is a copy of it: a change in place is no
        change of the tile, which would be wrong in silence where that is still read."""
        for each in written if id(op) not in self._copied else ():
            for source in self._sources.get(each, set()) & after:
                names = [self._by_root[r].value.name for r in (each, source) if r in self._by_root]
                told = " and ".join(f"`{name}`" for name in names)
                message = f"{told} may be one tile, and it is changed in place while both are used"
                help = "bind the variable instead: t = t + u; or change a copy"
                raise KernelError(Diagnostic("PTO-U217", message, op.loc, help=help))

    def _note(self, op: Operation, written: Sequence[int], reads: set[int], after: Roots) -> None:
        source = reads if id(op) in self._copied else set[int]()
        scratch = {id(_root(v)) for v in _of_role(op, "tmp")}
        in_place = isinstance(op.body, Lane) or bool(source)
        fixed = {id(_root(v)) for v in _apart(op)}
        for each in {*written, *scratch}:
            for other in (after | set(written) | scratch) - source:
                self._keep_apart(each, other)
            for other in reads - source:
                if not in_place or other in fixed or each in scratch:
                    self._keep_apart(each, other)

    def _keep_apart(self, a: int, b: int) -> None:
        if a != b:
            self._apart.setdefault(a, set()).add(b)
            self._apart.setdefault(b, set()).add(a)

    # ---- joining

    def _rep(self, value: Value | int) -> int:
        root = value if isinstance(value, int) else id(value)
        while root in self._same:
            root = self._same[root]
        return root

    def _can_join(self, a: int, b: int) -> bool:
        tiles = self._by_root.get(a), self._by_root.get(b)
        if tiles[0] is None or tiles[1] is None or {a, b} & self._pinned:
            return False
        apart = {self._rep(each) for each in self._apart.get(a, ())}
        return b not in apart and _one_type(tiles[0], tiles[1])

    def _join(self, a: int, b: int) -> None:
        kept, gone = (a, b) if self._dominates(a, b) else (b, a)
        self._same[gone] = kept
        apart = self._apart.pop(gone, set())
        for each in apart:
            self._keep_apart(kept, self._rep(each))

    def _dominates(self, a: int, b: int) -> bool:
        """True if the allocation of `a` is seen wherever that of `b` is."""
        makers = [self._by_root[each].value.maker for each in (a, b)]
        first, second = makers
        assert first is not None and second is not None
        around = {id(each.parent) for each in (second, *second.ancestors())}
        return id(first.parent) in around and self._order[id(first)] < self._order[id(second)]

    def _apply(self) -> list[Tile]:
        values = {each: self._by_root[self._rep(each)].value for each in self._same}
        gone = {id(op) for op in self._copies if self._is_idle(op)}
        for op in list(self._function.walk()):
            op.operands[:] = [values.get(id(v), v) for v in op.operands]
            for block in _blocks(op):
                block.ops[:] = [self._reset(each) for each in block.ops if id(each) not in gone]
        kept: list[Tile] = []
        for tile in self._tiles:
            into = self._by_root.get(self._rep(id(tile.value)))
            if into is None or into is tile:
                kept.append(tile)
            else:
                into.seen |= tile.seen
                into.settings += tile.settings
                into.is_temporary = False
        return kept

    def _is_idle(self, op: Operation) -> bool:
        target, source = (self._rep(_root(v)) for v in (_written(op)[0], _read(op)[0]))
        return target == source

    def _reset(self, op: Operation) -> Operation:
        """The allocation of a joined buffer sets its region again, as a new one would have it."""
        if op.row is not ALLOC_TILE or id(op.results[0]) not in self._same:
            return op
        tile = self._by_root[id(op.results[0])]
        into = self._by_root[self._rep(id(op.results[0]))]
        extents = [into.home.constant(n, INDEX) for n in tile.shape]
        made = Operation.of(SET_VALIDSHAPE, [into.value, *extents], where=op.where)
        made.parent = op.parent
        into.settings.append(made)
        return made


def _is_within(value: Value, op: Operation) -> bool:
    return value.maker is not None and op in value.maker.ancestors()


def _one_type(a: Tile, b: Tile) -> bool:
    types = [t.value.type for t in (a, b)]
    if a.fixed or b.fixed:
        return a.fixed and b.fixed and types[0] == types[1] and None not in a.spec.valid
    whole = [replace(t.spec, valid=t.shape) for t in (a, b)]
    placed = any(t.value.maker is not None and t.value.maker.group("addr") for t in (a, b))
    return whole[0] == whole[1] and not placed


def _is_buffer(value: Value) -> bool:
    return value.maker is not None and value.maker.row is ALLOC_TILE


def _is_tile(value: Value) -> bool:
    return isinstance(value.type, TileBuf)


def _root(value: Value) -> Value:
    """The allocation behind a value, which may be the same bytes seen otherwise."""
    maker = value.maker
    while maker is not None and maker.row is not ALLOC_TILE and maker.operands:
        value = maker.operands[0]
        maker = value.maker
    return value


def _of_role(op: Operation, *roles: str) -> list[Value]:
    operands = () if op.row is None else op.row.operands
    return [v for o in operands if o.role in roles for v in op.group(o.name) if _is_tile(v)]


def _written(op: Operation) -> list[Value]:
    return _of_role(op, "out", "inout")


def _read(op: Operation) -> list[Value]:
    return _of_role(op, "in", "inout")


def _apart(op: Operation) -> list[Value]:
    rules = () if op.row is None else op.row.rules
    return [v for rule in rules for name in rule.apart for v in op.group(name)]


def _blocks(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]


def _drop_empty(function: Operation) -> None:
    """Branches that only copied have nothing left to do."""
    for op in list(function.walk())[::-1]:
        if op.control is not Control.IF or op.results or op.parent is None or len(op.regions) != 2:
            continue
        empty = [all(each.row is YIELD for b in r.blocks for each in b.ops) for r in op.regions]
        if all(empty):
            op.parent.ops.remove(op)
        elif empty[1]:
            op.regions[1] = Region(op)
