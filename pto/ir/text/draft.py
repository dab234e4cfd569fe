"""An operation while its text is being read, and which value goes to which operand of its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from pto.ir.graph import Operation, Value
from pto.isa.row.instr import Instr, Operand
from pto.isa.row.kinds import KINDS
from pto.isa.row.types import Type

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser


@dataclass(slots=True)
class Draft:
    """An operation while it is being read: what its text has named so far."""

    row: Instr
    op: Operation
    bound: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])
    pending: list[Value] = field(default_factory=list[Value])  # waiting for their types
    result_types: list[Type] = field(default_factory=list[Type])

    def bind(self, name: str, value: Value) -> None:
        self.bound.setdefault(name, []).append(value)
        self.pending.append(value)


def distribute(
    p: Parser, row: Instr, operands: Sequence[Operand], values: Sequence[Value]
) -> list[tuple[str, list[Value]]]:
    """Give each operand its values: by count where that decides, else by type, left to right.

    Behind a list the order is right to left, so that the list takes what is left over.
    """
    required = sum(not (o.optional or o.variadic) for o in operands)
    open_ended = any(o.variadic for o in operands)
    if len(values) < required or (len(values) > len(operands) and not open_ended):
        most = len(operands) if not open_ended else "more"
        wanted = str(required) if required == most else f"{required} to {most}"
        names = ", ".join(o.name + "?" * o.optional for o in operands)
        p.fail(
            "PTO-P012", f"'{row.name}' op expects {wanted} operands ({names}), got {len(values)}"
        )
    first = next((n for n, o in enumerate(operands) if o.variadic), len(operands))
    sizes = [0] * len(operands)
    start, end, spare = 0, len(values), len(values) - required
    for n in (*range(first), *range(len(operands) - 1, first, -1)):  # behind a list, from the right
        o = operands[n]
        if o.optional:
            value = values[start if n < first else end - 1] if spare else None
            if value is None or not KINDS[o.kind].accepts(value.type):
                continue
            spare -= 1
        if not o.variadic:
            sizes[n] = 1
            start, end = start + (n < first), end - (n > first)
    if open_ended:
        sizes[first] = end - start
    elif start < end:
        words = KINDS[operands[-1].kind].words
        p.fail("PTO-P013", f"'{row.name}' op does not take %{values[start].name}: expects {words}")
    rest = iter(values)
    return [(o.name, list(islice(rest, n))) for o, n in zip(operands, sizes, strict=True)]
