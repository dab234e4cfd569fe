"""Fusion: runs of instructions that work row by row become one function (`tile/group.py`). Scalars,
handles and flags may lie between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from pto.core.errors import PtoError
from pto.ir.graph import Operation, Value
from pto.isa.meaning.handle.view import SET_VALID
from pto.isa.meaning.kinds import Fold, Lane
from pto.isa.meaning.tile import move
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.matmul import PRODUCT
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.run.jit.emit.cube.forwarding import can_forward, fills_factor, forwardable, forwarded_copy
from pto.run.jit.emit.emitter import Emitter
from pto.run.jit.emit.operation import OpContext, Prepared, require_regions, touches_no_tile
from pto.run.jit.emit.tile import steps, strips
from pto.run.jit.emit.tile.tile_layouts import extent
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import UnsupportedLowering
from pto.run.jit.ir.nest import Nest
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import Condition
from pto.run.jit.runtime.values import Lowered, TileDesc

if TYPE_CHECKING:
    from pto.run.jit.compiler import NativeCompiler
    from pto.run.jit.emit.unit import Unit

_STEPS = 96  # of a kernel: more take LLVM longer than they save; then it is one by one
_LARGE = 256  # operations of a block that is not looked at

_UNLESS = "views of a fused group overlap, or are not plain"

_T = TypeVar("_T")
_Made = tuple[Prepared, Nest] | None
Row = tuple[
    Operation, Access, Condition
]  # a load of a row, its source, and the condition of reading it


@dataclass
class PendingGroup:
    """A pending group and its operations. `rows` are read at their source if their tile, known by
    its number, is private; else they are loaded before the group."""

    nest: Nest
    all: Sequence[Operation]  # of the block
    ops: list[Operation] = field(default_factory=list[Operation])
    rows: dict[int, Row] = field(default_factory=dict[int, Row])


class FusingEmitter(Emitter):
    """Collects instructions that can be fused, until one cannot."""

    # True if a tile without other uses may stay in registers; a test that inspects buffers
    # sets it to False.
    forwards = True

    def __init__(self, unit: Unit, compiler: NativeCompiler, *, waits: bool = False) -> None:
        super().__init__(unit, compiler, waits=waits)
        self.private: dict[int, int] = {}  # tiles that only some instructions use, numbered

    def operations(self, ops: Sequence[Operation]) -> None:
        if len(ops) > _LARGE:
            super().operations(ops)
            return
        pending: PendingGroup | None = None
        multiplies = any(inner.body is PRODUCT for op in ops for inner in op.walk())
        for n, op in enumerate(ops):
            if touches_no_tile(op) or self._only_names(op):
                self.operation(op)
            elif multiplies and forwardable(op) and self._forward(ops, n, quiet=bool(pending)):
                pass
            elif (
                _may(op)
                and not (multiplies and fills_factor(op))
                and (pending is not None or _goes_on(ops, n))
            ):
                pending = self._joined(pending, ops, n)
            else:
                self._write(pending)
                pending = None
                if not (multiplies and forwardable(op) and self._forward(ops, n)):
                    self._other(op)
        self._write(pending)

    def _other(self, op: Operation) -> None:
        """Emit an instruction that is not fused."""
        if op.body is not PRODUCT:
            self._fill(op)
        self.operation(op)

    def _fill(self, reader: Operation) -> None:
        """Load tiles now whose loads were left out, although an instruction that is no product
        reads them."""
        for value in reader.operands:
            if (found := self.forwarded.pop(id(value), None)) is not None:
                for op in found.fills:
                    self._alone(op)

    def _forward(self, ops: Sequence[Operation], n: int, *, quiet: bool = False) -> bool:
        """Forward a copy: products read the source, so nothing is emitted here. `quiet`: emit no
        check either, because the pending group comes first."""
        op, tile = ops[n], ops[n].operand("dst")
        self.forwarded.pop(id(tile), None)
        if tile is None or not self.forwards or not can_forward(self, ops, n):
            return False
        made = self._described(op, forwarded_copy)
        if made is None or (quiet and not made[0].needs.is_true):
            return False
        made[0].commit()
        self.forwarded[id(tile)] = made[1]
        self.unit.forwarded.append(op.name)
        if self.live_in is not None:
            self.live_in.operation(op)
        return True

    def _described(
        self, op: Operation, describe: Callable[[OpContext], _T | None]
    ) -> tuple[Prepared, _T] | None:
        """The description of an operation, which emits no effect; None if it has none."""
        try:
            s = Prepared(self, op)
            require_regions(s)
            found = describe(s)
        except (UnsupportedLowering, PtoError):
            return None
        return None if found is None else (s, found)

    def host_fallback(
        self, op: Operation, why: str, *, seldom: bool = False, again: str = ""
    ) -> list[Lowered]:
        """Fill forwarded tiles first: the reference step reads them at their address."""
        for found in [self.forwarded.get(id(value)) for value in op.operands]:
            for fill in () if found is None or op in found.fills else found.fills:
                if seldom:
                    super().host_fallback(fill, why, seldom=True)
                else:
                    self._alone(fill)
        return super().host_fallback(op, why, seldom=seldom, again=again)

    def _only_names(self, op: Operation) -> bool:
        """True if it sets the region of a tile before any use of the tile."""
        return op.body is SET_VALID and id(op.operands[0]) not in self.stack_slots

    def _joined(
        self, pending: PendingGroup | None, ops: Sequence[Operation], n: int
    ) -> PendingGroup | None:
        """The pending group with one more instruction; a new group or None if the pending one was
        emitted."""
        op = ops[n]
        self._own(ops, n)
        self.privates = {
            id(self.env.get(id(v))): self.private.get(id(_base(v)), 0) for v in op.operands
        }
        made, self.privates = self._described(op, steps.nest), {}
        if pending is not None and not self._takes(pending, made):
            if self._comes_first(pending, op, made):
                return pending
            self._write(pending)
            pending = None
            made = made if _goes_on(ops, n) else None
        if pending is None:
            pending = None if made is None else PendingGroup(Nest(*made[1].size, ()), ops)
            if pending is None or not self._takes(pending, made):
                self.operation(op)
                return None
        self._add(pending, op)
        return pending

    def _add(self, pending: PendingGroup, op: Operation) -> None:
        pending.ops.append(op)
        if self.live_in is not None:
            self.live_in.operation(op)

    def _own(self, ops: Sequence[Operation], n: int) -> None:
        """Number a tile that this instruction writes, if all its users are in this block and can be
        fused."""
        value = ops[n].operand("dst")
        base = None if value is None else _base(value)
        if not self.forwards or base is None or not self.compiler.names.is_alone(base):
            return
        if self._uses(base, ops) == self._all_uses(base, ops) and _only_writes(ops[n], base):
            self.private.setdefault(id(base), len(self.private) + 1)

    def _uses(self, base: Value, ops: Sequence[Operation]) -> int:
        """The number of uses of a tile, by any name, in instructions that can be fused."""
        return sum(_base(v) is base for op in ops if _may(op) for v in op.operands)

    def _all_uses(self, base: Value, ops: Sequence[Operation]) -> int:
        """The number of uses of a tile anywhere, by any name, without those that rename it."""
        names = [base]
        for name in names:
            names += [op.results[0] for op in name.uses if op.body is RESHAPE]
        if any(id(v) in self.stack_slots for v in names):
            return -1
        sets = sum(op.body is SET_VALID and _base(op.operands[0]) is base for op in ops)
        return sum(op.body is not RESHAPE for v in names for op in v.uses) - sets

    def _takes(self, pending: PendingGroup, made: _Made) -> bool:
        """True if the nest of an instruction joins that of a group."""
        joined = None if made is None else pending.nest.joined(self.text, made[1])
        if made is None or joined is None:
            return False
        made[0].commit()
        pending.nest = joined
        return True

    def _comes_first(self, pending: PendingGroup, op: Operation, made: _Made) -> bool:
        """True for a load that runs before the pending group, or whose row the group reads at its
        source: the group does not use its tile, shares no bytes with it, and stores nothing."""
        value = op.operand("dst") if op.body is move.LOAD else None
        tile = None if value is None else self.env.get(id(value))
        if value is None or not isinstance(tile, TileDesc) or not isinstance(tile.address, int):
            return False
        if (
            id(value) in self.stack_slots
            or _is_used(value, pending)
            or not pending.nest.leaves_alone(tile.memory, tile.address, _nbytes(tile))
        ):
            return False
        number = self.private.get(id(_base(value)))
        if made is None or number is None or not _is_row(made[1], pending.nest):
            self.operation(op)
            return True
        made[0].commit()
        (source,) = made[1].steps[0].reads
        row = source.with_layout(source.layout._replace(rows=strided.axis(0)))
        pending.rows[number] = (op, row, made[1].guard)
        self._add(pending, op)
        return True

    def _write(self, pending: PendingGroup | None) -> None:
        """Emit the pending group."""
        if pending is None:
            return
        found = self._call(pending) if len(pending.nest.steps) > 1 else None
        if found is None:
            for op in pending.ops:
                self._alone(op)
            return
        x, (call, guard, loads) = self.text, found

        def together() -> None:
            for op in loads:
                self._alone(op)
            x.do(call)

        def apart() -> None:
            for op in pending.ops:
                self.host_fallback(op, _UNLESS, seldom=True)

        x.when(guard, together, apart)

    def _call(self, pending: PendingGroup) -> tuple[str, Condition, list[Operation]] | None:
        """The call of the function of a group, its condition, and loads that run before it; None if
        there is no function."""
        x, unit = self.text, self.unit
        written = {step.dst.private for step in pending.nest.steps}
        here = self._own_here(pending) - (pending.rows.keys() & written)  # else it is the row still
        nest, loads = pending.nest.placed(here), list[Operation]()
        for number, (op, ref, guard) in pending.rows.items():
            if number in here:
                nest = nest.reading(x, number, ref, guard)
            else:
                loads.append(op)
        if nest.overlaps():
            return None
        if nest.flat:
            nest = replace(nest, rows=1, cols=x.mul(nest.rows, nest.cols))
        private = any(ref.private for ref in nest.refs)
        given = strips.StepParameters(*([("ptr", self.scratch())] if private else []))
        inner = given.nest(nest)
        unit.fused.setdefault(inner, len(inner.steps))
        if sum(unit.fused.values()) > _STEPS:
            del unit.fused[inner]
            return None

        def make(name: str) -> str:
            function = Text(unit.declare)
            strips.Strips(function, inner).write()
            return function.procedure(name, given.types)

        try:
            name = unit.shared(inner, make)
        except UnsupportedLowering:
            return None
        ops = tuple(op for op in pending.ops if op not in loads)
        unit.groups.append(tuple(op.name for op in ops))
        unit.nests.append((ops, nest))
        return f"call void {name}({given.listed})", nest.guard, loads

    def _own_here(self, pending: PendingGroup) -> set[int]:
        """The numbers of tiles that only the pending group uses; they need no memory."""
        if not isinstance(pending.nest.cols, int):
            return set()
        bases = {id(b): b for op in pending.ops for b in map(_base, op.operands)}
        return {
            self.private[n]
            for n, base in bases.items()
            if n in self.private
            and pending.nest.is_plain(self.private[n])
            and self._ends(base, pending)
        }

    def _ends(self, base: Value, pending: PendingGroup) -> bool:
        """True if the pending group fully writes a tile before it reads it, and the next user does
        so too. In a loop, the first user comes after the last."""
        uses = [op for op in pending.all if _may(op) and any(_base(v) is base for v in op.operands)]
        ids = {id(op) for op in pending.ops}
        inside = [n for n, op in enumerate(uses) if id(op) in ids]
        first, after = uses[inside[0]], uses[(inside[-1] + 1) % len(uses)]
        if len(inside) == len(uses):
            return _only_writes(first, base)
        named = all(v is base for op in uses for v in op.operands if _base(v) is base)
        fills = self.compiler.names.exposed.fills
        return named and fills(first, base) and fills(after, base)

    def _alone(self, op: Operation) -> None:
        """Emit one instruction of a pending group by itself."""
        reach, self.live_in = self.live_in, None
        self.operation(op)
        self.live_in = reach


def _base(value: Value) -> Value:
    """The tile that a value is another name of."""
    return value.origin(lambda op: op.body is RESHAPE)


def _is_row(found: Nest, group: Nest) -> bool:
    """True for a copy of one row of the columns of a group."""
    lines = all(ref.layout.cols == strided.axis(1) for ref in found.refs)
    return lines and found.size == (1, group.cols)


def _nbytes(tile: TileDesc) -> int:
    return tile.type.nbytes if tile.pitch is None else extent(tile)


def _is_used(value: Value, pending: PendingGroup) -> bool:
    """True if an instruction of the pending group uses a tile, by any name."""
    base = _base(value)
    return any(_base(v) is base for op in pending.ops for v in op.operands)


def _only_writes(op: Operation, base: Value) -> bool:
    """True if an instruction writes a tile and does not read it."""
    roles = {o.name: o.role for o in op.row.operands}
    dst, count = op.operand("dst"), sum(_base(v) is base for v in op.operands)
    return roles.get("dst") == "out" and dst is not None and _base(dst) is base and count == 1


def _may(op: Operation) -> bool:
    body = op.body
    if op.results or op.control is not None:
        return False
    return isinstance(body, Lane | Fold | Conversion) or body in (move.LOAD, move.STORE, move.MOVE)


def _goes_on(ops: Sequence[Operation], n: int) -> bool:
    """True if the next instruction can be fused."""
    for op in ops[n + 1 :]:
        if not touches_no_tile(op) and op.body is not SET_VALID:
            return _may(op)
    return False
