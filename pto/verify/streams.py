"""States of unaligned stores: each may be used once, by the next store of its stream."""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Block, Module, Operation, Value
from pto.isa.row import types as t
from pto.isa.rules.vector import LOAD_STATES, STORE_STATES
from pto.target.facts import Profile

_STORES = (*STORE_STATES, "pto.vstar", "pto.vstas")


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    """Report a state used twice in one block; uses in exclusive branches are not checked."""
    taken: dict[tuple[Value, Block | None], Operation] = {}
    for op in module.walk():
        for value in op.operands:
            if not isinstance(value.type, t.Align):
                continue
            if _is_load(value):
                if value.maker and value.maker.is_loop and op.name in _STORES:
                    mixed = "expects a state of stores, got a state of loads"
                    yield op.finding("PTO-M081", mixed)
                continue
            first = taken.setdefault((value, op.parent), op)
            if first is not op:
                note = Note(f"by this '{first.name}' op", first.loc)
                twice = f"uses the state %{value.name} a second time"
                yield op.finding("PTO-M081", twice, notes=(note,))


def _is_load(value: Value) -> bool:
    """True if the state comes from unaligned loads, looking through loop-carried values."""
    maker = value.maker
    while maker is not None and maker.is_loop and len(maker.operands) >= len(maker.results):
        value = maker.operands[maker.results.index(value) - len(maker.results)]
        maker = value.maker
    return maker is not None and maker.name in LOAD_STATES
