"""The footprint of an operation, and the kind of its atomic updates of global memory."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.meaning.memory import registers
from pto.isa.row.attributes import Enum
from pto.observe.memory.granules import Cells
from pto.run.watch.memory import Access

_KINDS = frozenset({"atomic_type", "acc_store_atomic_op", "scatter_atomic_op"})  # of attributes


def combination(op: Operation, core: Any) -> str:
    """add, max, ...: from an attribute, else the mode register, else the operation itself."""
    row = op.row
    for attr in row.attrs:
        value = op.attrs.get(attr.name) if attr.kind in _KINDS else None
        word = value.value.removeprefix("atomic_") if isinstance(value, Enum) else "none"
        if word != "none":
            return word
    selected = None if core is None else registers.selected_atomic(core)
    return op.name if selected is None else selected[1]


_writes = attrgetter("writes")


def footprints(accesses: list[Access]) -> list[tuple[Cells, Access, bool]]:
    """The bytes of each access once. A transfer that combines with global memory is atomic."""
    if len(accesses) == 1:
        (only,) = accesses
        return [(only.memory.shadow.cells(only), only, False)]
    if len(accesses) == 2:
        a, b = accesses
        if a.memory is not b.memory:
            return [(a.memory.shadow.cells(a), a, False), (b.memory.shadow.cells(b), b, False)]
    if not any(a.memory.space is Space.GM for a in accesses):
        ordered = sorted(accesses, key=_writes)
        return [(a.memory.shadow.cells(a), a, False) for a in ordered]
    by_layout: dict[tuple[bool, int, Any], tuple[Cells, Access]] = {}
    for access in accesses:
        cells: Cells = access.memory.shadow.cells(access)
        shape = (cells.start, cells.counts, cells.strides, cells.width)
        layout = cells.places.tobytes() if cells.places is not None else shape
        by_layout.setdefault((access.writes, id(access.memory), layout), (cells, access))
    out: list[tuple[Cells, Access, bool]] = []
    for (writes, memory, layout), (cells, access) in sorted(
        by_layout.items(), key=lambda x: x[0][0]
    ):
        twin = (not writes, memory, layout) in by_layout and access.memory.space is Space.GM
        if twin and not writes:
            continue  # the read of an atomic update
        out.append((cells, access, twin))
    return out
