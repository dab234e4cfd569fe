"""Which operation a write to global memory combines by with what is there, in one step."""

from __future__ import annotations

from typing import Any

from pto.ir.graph import Operation
from pto.isa.meaning.memory import registers
from pto.isa.row.attributes import Enum

_KINDS = frozenset({"atomic_type", "acc_store_atomic_op", "scatter_atomic_op"})  # of attributes


def combination(op: Operation, core: Any) -> str:
    """add, max, ...: from an attribute, else the mode register; or it is the operation itself."""
    row = op.row
    for attr in row.attrs if row is not None else ():
        value = op.attrs.get(attr.name) if attr.kind in _KINDS else None
        word = value.value.removeprefix("atomic_") if isinstance(value, Enum) else "none"
        if word != "none":
            return word
    selected = None if core is None else registers.selected_atomic(core)
    return op.name if selected is None else selected[1]
