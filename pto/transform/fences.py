"""Insert flags and barriers beside operations."""

from __future__ import annotations

from collections.abc import Mapping

from pto.ir.builder import new_block
from pto.ir.graph import Operation
from pto.isa.order.flags import PIPE_BARRIER
from pto.isa.row.attributes import Enum
from pto.isa.scalar.scope import SECTIONS
from pto.isa.table import lookup

_Beside = dict[Operation, list[Operation]]


class Insertions:
    """Collects operations to insert before and after existing ones; `finish` inserts them all.

    Operations for one side of a core are put into sections of that side.
    """

    def __init__(self) -> None:
        self._before: _Beside = {}
        self._after: _Beside = {}
        self.side: str | None = None  # of the operations that are put next

    def before(self, anchor: Operation, op: Operation) -> None:
        self._put(self._before, anchor, op)

    def after(self, anchor: Operation, op: Operation) -> None:
        self._put(self._after, anchor, op)

    def _put(self, where: _Beside, anchor: Operation, op: Operation) -> None:
        op.where = anchor.where
        around = anchor.parent_op.side() if anchor.parent_op else None
        if self.side is not None and around != self.side:
            inner, op = op, Operation.of(SECTIONS[self.side], where=op.where)
            new_block(op).append(inner)
        where.setdefault(anchor, []).append(op)

    def finish(self) -> None:
        for block in {op.home for op in (*self._before, *self._after)}:
            block.set_ops(
                ordered
                for op in block.ops
                for ordered in (*self._before.get(op, ()), op, *self._after.get(op, ()))
            )


def barrier(pipe: str) -> Operation:
    return Operation.of(PIPE_BARRIER, attrs={"pipe": _pipe(pipe)})


def flag(name: str, source: str, target: str, number: int) -> Operation:
    """A `set_flag` or `wait_flag` from one pipe to another."""
    attrs = {
        "src_pipe": _pipe(source),
        "dst_pipe": _pipe(target),
        "event_id": Enum("event", f"EVENT_ID{number}"),
    }
    return _made(f"pto.{name}", attrs)


def _made(name: str, attrs: Mapping[str, Enum]) -> Operation:
    row = lookup(name)
    assert row is not None
    return Operation.of(row, attrs=dict(attrs))


def _pipe(name: str) -> Enum:
    return Enum("pipe", f"PIPE_{name}")
