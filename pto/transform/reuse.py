"""Buffer reuse: places a temporary result in a source tile that is not used any more.

`e = pto.exp(t - m)` makes two tiles, although both could be written into `t`. If an elementwise
instruction is the last use of a tile with the type and valid region of its result, the result uses
that tile.
"""

from __future__ import annotations

from collections.abc import Iterable

from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.meaning.kinds import Lane
from pto.isa.row.types import TileBuf


class Reuse:
    """Processes the blocks of one function in program order."""

    def __init__(self, function: Operation, temporaries: Iterable[Value]) -> None:
        self._function = function
        self._temporary = set(temporaries)
        self.became: dict[Value, Value] = {}  # value -> its replacement
        self._settings: dict[Value, list[Operation]] = {}  # of valid regions, in program order
        for op in function.walk():
            if op.row is SET_VALIDSHAPE:
                self._settings.setdefault(op.operands[0], []).append(op)

    def run(self) -> None:
        for op in list(self._function.walk()):
            for block in op.blocks():
                self._block(block)

    def found(self, value: Value) -> Value:
        """The replacement of a value, or the value itself."""
        while value in self.became:
            value = self.became[value]
        return value

    def _block(self, block: Block) -> None:
        last: dict[Value, int] = {}
        for at, op in enumerate(block.ops):
            for inner in op.walk():
                for value in inner.operands:
                    if isinstance(value.type, TileBuf):
                        last[allocation(value)] = at
        written: set[Value] = set()
        for at, op in enumerate(list(block.ops)):
            for target in tiles_of(op, "out"):
                buffer = allocation(target)
                fresh = buffer not in written and buffer in self._temporary
                written.add(buffer)
                if fresh and isinstance(op.body, Lane) and _is_made_in(block, buffer):
                    self._merge(block, op, at, (buffer, target), last)

    def _merge(
        self,
        block: Block,
        op: Operation,
        at: int,
        result: tuple[Value, Value],
        last: dict[Value, int],
    ) -> None:
        buffer, target = result
        for source in _overwritable(op):
            old = allocation(source)
            dead = last.get(old) == at and _is_made_in(block, old)
            if not dead or old is buffer or _way(target) != _way(source) or _escapes(old, buffer):
                continue
            if not (self._one_region(block, buffer, old) and _is_seen(old, buffer)):
                continue
            if target is not buffer and not self._one_region(block, target, source):
                continue
            self._replace(buffer, old)
            if target is not buffer:
                self._replace(target, source)
            last[old] = last.get(buffer, at)
            return

    def _one_region(self, block: Block, new: Value, old: Value) -> bool:
        """True if both tiles certainly have the same valid region, set once for the new one."""
        mine, theirs = (self._settings.get(v, []) for v in (new, old))
        if not mine or not theirs:
            return not mine and not theirs
        here = mine[0].parent is block and theirs[-1].parent is block
        pairs = zip(mine[0].operands[1:], theirs[-1].operands[1:], strict=True)
        return len(mine) == 1 and here and all(a is b for a, b in pairs)

    def _replace(self, value: Value, by: Value) -> None:
        self.became[value] = by
        for op in (*self._settings.get(value, ()), *filter(None, [value.maker])):
            op.erase()
        value.replace_all_uses(by)


def _is_made_in(block: Block, value: Value) -> bool:
    maker = value.maker
    return maker is not None and maker.row is ALLOC_TILE and maker.parent is block


def _way(value: Value) -> list[object]:
    """How a tile comes from its allocation: types, extents and offsets."""
    parts: list[object] = [value.type]
    while value.maker is not None and value.maker.operands:
        maker = value.maker
        rest = 0 if maker.row is ALLOC_TILE else 1
        parts += [maker.name, maker.attrs, *maker.operands[rest:]]
        if rest == 0:
            break
        value = maker.operands[0]
        parts.append(value.type)
    return parts


def _escapes(*tiles: Value) -> bool:
    """True if control flow passes one of the tiles on, or a pointer to it is made."""
    for op in (op for tile in tiles for op in tile.uses):
        named = op.results if op.traits.names_only else [r for r in op.results if _is_tile(r)]
        if op.control is not None or not all(map(_is_tile, named)):
            return True
        if _escapes(*named):
            return True
    return False


def _is_seen(old: Value, buffer: Value) -> bool:
    """True if no use of `buffer`, which is in the block of `old`, comes before `old`."""
    first = old.maker
    assert first is not None
    ops = first.home.ops
    for use in buffer.uses:
        op = next(op for op in (use, *use.ancestors()) if op.parent is first.parent)
        if use.row is not SET_VALIDSHAPE and ops.index(op) < ops.index(first):
            return False
    return True


def _is_tile(value: Value) -> bool:
    return isinstance(value.type, TileBuf)


def _overwritable(op: Operation) -> list[Value]:
    """Sources that may share their buffer with the destination: no rule keeps their bytes apart,
    and no other operand is another view of them, as the row in `t - t[3:4, :]` is."""
    apart, sources = kept_apart(op), tiles_of(op, "in")
    return [
        v
        for v in sources
        if v not in apart and all(u is v or allocation(u) is not allocation(v) for u in sources)
    ]


def allocation(value: Value) -> Value:
    """The result of the allocation behind a tile, which may be a view of its bytes."""
    return value.origin(lambda op: op.row is not ALLOC_TILE)


def tiles_of(op: Operation, *roles: str) -> list[Value]:
    """The tiles among the operands with these roles."""
    return [v for v in op.given(*roles) if isinstance(v.type, TileBuf)]


def kept_apart(op: Operation) -> list[Value]:
    """Operands that a rule forbids to share bytes with the destination."""
    rules = op.row.rules
    return [v for rule in rules for name in rule.apart for v in op.group(name)]
