"""Reports a tile with two buffers that is one object in Python, and is changed in place.

A variable that a branch or loop binds has its own buffer, into which its tile is copied. Python
has one object under two names there, and `t += u` changes it for both names. The program changes
one of the buffers, so the other must not be read any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.errors import Diagnostic
from pto.ir.graph import Block, Operation, Value
from pto.ir.liveness import Roots, aliases, live_before
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row.traits import Control
from pto.lang.call.place import KernelError
from pto.transform.reuse import allocation, tiles_of

Pairs = frozenset[Roots]  # pairs of buffers that may be one object
_NONE: Roots = frozenset()


def require_unshared(function: Operation, copies: Sequence[Operation]) -> None:
    """Raise if a buffer is changed in place while another one that may be the same object is
    live. `copies` are those of tiles to the buffers of variables."""
    sharing = _Sharing(copies, function)
    body = function.regions[0].block
    live_before(body, _NONE, sharing.live)
    sharing.shared(body, frozenset())


class _Sharing:
    def __init__(self, copies: Sequence[Operation], function: Operation) -> None:
        self._copies = {
            op: (allocation(_copied(op, "out")), allocation(_copied(op, "in"))) for op in copies
        }
        roots = list(dict.fromkeys(root for pair in self._copies.values() for root in pair))
        named = aliases(function, roots)
        self._roots = {
            value: frozenset(roots[n] for n in numbers) for value, numbers in named.items()
        }
        self._after: dict[Operation, Roots] = {}  # the buffers that are live after an operation

    def _of(self, op: Operation, *roles: str) -> Roots:
        """The buffers that operands with these roles may be."""
        return _NONE.union(*(self._roots.get(v, _NONE) for v in op.given(*roles)))

    # ---- liveness, backwards

    def live(self, op: Operation, after: Roots) -> Roots:
        """The buffers that are live before an operation."""
        self._after[op] = after
        if op in self._copies:
            target, source = self._copies[op]
            return (after - {target}) | {source} if target in after else after
        if op.row is ALLOC_TILE:
            return after - {*op.results}
        return after if _describes(op) else after | self._of(op, "in", "out", "inout", "tmp")

    # ---- sharing, forwards

    def shared(self, block: Block, pairs: Pairs) -> Pairs:
        """The pairs after a block, given those before it."""
        for op in block.ops:
            if op.regions:
                pairs = self._through(op, pairs)
            elif op in self._copies:
                pairs = self._bound(op, pairs)
            elif op.row is ALLOC_TILE:
                pairs = _without(op.results[0], pairs)
            elif not _describes(op):
                self._require(op, pairs)
        return pairs

    def _through(self, op: Operation, pairs: Pairs) -> Pairs:
        if op.control is Control.IF:
            ends = [self.shared(block, pairs) for block in op.blocks()]
            return frozenset[Roots]().union(*ends) if len(ends) == 2 else pairs.union(*ends)
        while True:
            after = pairs
            for block in op.blocks():
                after = self.shared(block, after) | (pairs if op.is_loop else frozenset())
            if after <= pairs or not op.is_loop:
                return after
            pairs |= after

    def _bound(self, op: Operation, pairs: Pairs) -> Pairs:
        """The pairs after a copy: the target is the source now, and each tile that it may be."""
        target, source = self._copies[op]
        if target is source:
            return pairs
        others = {other for pair in pairs if source in pair for other in pair}
        created = {frozenset((target, other)) for other in {source, *others} - {target}}
        after = self._after[op]
        return frozenset(pair for pair in _without(target, pairs) | created if pair <= after)

    def _require(self, op: Operation, pairs: Pairs) -> None:
        for root in sorted(self._of(op, "out", "inout", "tmp"), key=_name):
            others = {v for pair in pairs if root in pair for v in pair - {root}}
            if others & self._after[op]:
                raise _changed(op, root, min(others & self._after[op], key=_name))


def _changed(op: Operation, *tiles: Value) -> KernelError:
    names = [f"`{name}`" for name in dict.fromkeys(v.name for v in tiles) if "_pto" not in name]
    variables = " and ".join([*(names or ["a result"]), "another variable"][:2])
    message = f"{variables} may be one tile, and it is changed in place while both are used"
    help = "bind the variable instead: t = t + u; or change a copy"
    return KernelError(Diagnostic("PTO-U217", message, op.loc, help=help))


def _name(tile: Value) -> str:
    return tile.name


def _copied(op: Operation, role: str) -> Value:
    return tiles_of(op, role)[0]


def _describes(op: Operation) -> bool:
    """True if an operation describes storage, and reads and writes no byte of it."""
    return op.traits.names_only or op.row is SET_VALIDSHAPE or op.body is RESHAPE


def _without(root: Value, pairs: Pairs) -> Pairs:
    return frozenset(pair for pair in pairs if root not in pair)
