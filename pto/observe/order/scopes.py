"""Order inside a vector scope: four classes of accesses, and the barriers between them.

No addresses are tracked there. A store comes after the loads, and the stores of its stream, that
its values depend on; scalar accesses keep their own order. For the rest `mem_bar` names a class of
earlier accesses that are done before later ones of another begin. The classes are in its name:
`VST_VLD` vector stores before vector loads, `VS_ALL` all of vectors before all of scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from itertools import product

from pto.ir.graph import Block, Operation, Value
from pto.ir.liveness import handed_on
from pto.observe.memory.granules import Conflict
from pto.observe.order.clocks import Thread

Class = str  # VLD, VST, LD, ST
_ALL = {"V": ("VLD", "VST"), "S": ("LD", "ST")}
# Pairs that need no barrier: decisions_isa.md, order inside a vector scope.
_KEPT = frozenset(product(_ALL["S"], _ALL["S"]))


def class_of(is_scalar: bool, writes: bool) -> Class:
    return _ALL["S" if is_scalar else "V"][writes]


def pairs_of(kind: str) -> list[tuple[Class, Class]]:
    """The pairs (earlier, later) that a `mem_bar` of this kind orders."""
    first, second = kind.split("_")
    if second != "ALL":
        return [(first, second)]
    return list(product(_ALL[first[0]], _ALL[first[1]]))


class ScopeOrder:
    """One running scope: up to when accesses of one class precede those of another."""

    __slots__ = ("_begin", "_fences", "_last", "_scalar", "_since", "_through", "clock", "thread")

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.clock = thread.clock.copy()  # of everything before the scope
        if thread.ordered:
            self.clock[thread.index] = thread.now
        self._begin = thread.now
        self._fences: dict[tuple[Class, Class], int] = {}
        self._last: dict[Class, dict[int, Operation]] = {}  # since the scope began, by operation
        self._since: dict[Class, int] = {}  # the time of the last access
        self._scalar: set[int] = set()  # operations of the scalar unit, by id
        # by class: operations with values that went through a barrier to it, up to when
        self._through: dict[Class, dict[int, int]] = {}

    def __contains__(self, time: int) -> bool:
        return time > self._begin

    def barrier(self, kind: str, now: int) -> bool:
        """Apply a barrier; True if it orders anything new."""
        pairs = pairs_of(kind)
        orders = any(self._since.get(p[0], 0) > self._fences.get(p, 0) for p in pairs)
        for first, second in pairs:
            self._fences[first, second] = now
            through = self._through.setdefault(second, {})
            through.update(self._through.get(first, {}))
            for op in self._last.get(first, {}).values():
                through.update(dict.fromkeys(sources_of(op), now))
        return orders

    def touch(self, time: int, op: Operation, is_scalar: bool, writes: bool) -> None:
        """Record an access of an operation."""
        if is_scalar:
            self._scalar.add(id(op))
        kind = class_of(is_scalar, writes)
        self._since[kind] = time
        self._last.setdefault(kind, {})[id(op)] = op

    def missing(self, conflict: Conflict, now: Operation, is_scalar: bool, writes: bool) -> str:
        """The barrier that would order two accesses; empty if they are ordered."""
        earlier = conflict.time
        before = self.thread.moments[earlier - 1].op
        was_scalar = id(before) in self._scalar
        pair = class_of(was_scalar, conflict.other_writes), class_of(is_scalar, writes)
        if pair in _KEPT or earlier <= self._fences.get(pair, 0):
            return ""
        sources = sources_of(now)
        if id(before) in sources or self._is_through(before, earlier, sources):
            return ""
        return "_".join(pair)

    def _is_through(self, before: Operation, time: int, sources: Set[int]) -> bool:
        """True if values of an operation were stored and, after a barrier, loaded for this one."""
        return any(
            self._through.get(kind, {}).get(id(before), 0) >= time
            for kind, ops in self._last.items()
            if not sources.isdisjoint(ops)
        )


_known: dict[int, tuple[Operation, frozenset[int]]] = {}
_MOST = 10_000


# Of operations that run as records: on which others their operands have depended so far.
_recorded: dict[int, tuple[Operation, set[int]]] = {}


def note_sources(op: Operation, sources: Iterable[int]) -> None:
    """Add operations, by id, on which the operands of an operation depend in this execution."""
    if len(_recorded) >= _MOST:
        _recorded.clear()
    known = _recorded.get(id(op))
    if known is None or known[0] is not op:
        known = _recorded[id(op)] = op, set()
    known[1].update(sources)


def sources_of(op: Operation) -> Set[int]:
    """All operations on which the operands depend, by id; also around loops."""
    recorded = _recorded.get(id(op))
    if recorded is not None and recorded[0] is op:
        return recorded[1]
    known = _known.get(id(op))
    if known is not None and known[0] is op:
        return known[1]
    if len(_known) >= _MOST:
        _known.clear()
    sources = _sources(op)
    _known[id(op)] = op, sources
    return sources


def _sources(op: Operation) -> frozenset[int]:
    return frozenset(id(v.maker) for v in values_behind(op) if v.maker is not None)


def values_behind(op: Operation) -> set[Value]:
    """All values on which the operands depend, including themselves."""
    visited: set[Value] = set()
    todo = list(op.operands)
    while todo:
        value = todo.pop()
        owner = value.owner
        maker = owner.region.owner if isinstance(owner, Block) else owner
        if value not in visited and maker is not None:
            todo += maker.operands
            todo += [v for region in maker.regions for v in handed_on(region)]
        visited.add(value)
    return visited
