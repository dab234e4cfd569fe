"""Memory access by work items: loads, stores, and atomic updates in the order of the items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pto.core.memory import Memory, Space
from pto.core.primitives import every, select
from pto.isa.meaning import lanes as numbers
from pto.isa.meaning.kinds import Cooperative, Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.simt.items import Element, Pointers, Values, held
from pto.isa.row import types as t
from pto.isa.row.attributes import OfType
from pto.isa.rules.rule import Case
from pto.isa.rules.simt import MAX_ITEMS


def _at(ptr: Pointers, offset: Values, nbytes: int) -> Pointers:
    return replace(ptr, addresses=ptr.addresses + offset.astype(np.int64) * np.int64(nbytes))


def moved(case: Case) -> Callable[..., Pointers]:
    """Pointers, each advanced by its own number of elements."""
    elem = held(getattr(case.op.operands[0].type, "elem", None))
    return lambda items, ptr, offset: _at(ptr, offset, elem.nbytes)


def _stored(case: Case) -> t.Type:
    value = case.op.operand("value")
    return value.type if value is not None else case.op.results[0].type


def _load(case: Case) -> Callable[..., Values]:
    type = _stored(case)
    elem = held(type)
    return lambda items, ptr, offset: items.load(_at(ptr, offset, elem.nbytes), type)


def _store(case: Case) -> Callable[..., None]:
    type = _stored(case)
    elem = held(type)
    return lambda items, ptr, offset, value: items.store(_at(ptr, offset, elem.nbytes), value, type)


LOAD = Cooperative(_load)
STORE = Cooperative(_store)

# ---- atomic updates

_NEW: dict[str, Callable[[Values, Values], Values]] = {
    "exch": lambda old, value: value,
    **numbers.COMBINE,
    "sub": numbers.sub,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
}


def _serial(case: Case, new: Callable[..., Values]) -> Callable[..., Values]:
    elem = held(_stored(case))
    if case.word("signedness") == "unsigned":
        elem = Element(np.dtype(f"u{elem.kind.itemsize}"), elem.count)
    return lambda items, ptr, *given: items.update(ptr, new, given, elem)


def atomic(name: str) -> Cooperative:
    return Cooperative(lambda case: _serial(case, _NEW[name]))


def _exchanged(old: Values, compare: Values, value: Values) -> Values:
    """All elements of a packed value are exchanged, or none."""
    return select(every(old == compare), value, old)


CAS = Cooperative(lambda case: _serial(case, _exchanged))


# ---- arrays of one work item


@dataclass(frozen=True, slots=True)
class Own:
    """An array per work item, made outside of a launch; the arrays are `nbytes` apart."""

    memory: Memory
    address: int
    nbytes: int


def _named_type(case: Case) -> int:
    """The size in bytes of the type that an operation names."""
    attr = case.op.attrs.get("elem_type")
    return held(attr.type if isinstance(attr, OfType) else None).nbytes


def _array(case: Case) -> Callable[..., Any]:
    size = _named_type(case)

    def make(core: Machine, length: int) -> Own:
        nbytes = size * length
        return Own(Memory(Space.UB, MAX_ITEMS * nbytes), 0, nbytes)

    return make


def _element(case: Case) -> Callable[..., Pointers]:
    size = _named_type(case)
    return lambda items, base, index: _at(base, index, size)


def _own_load(case: Case) -> Callable[..., Values]:
    return lambda items, ptr: items.load(ptr, _stored(case))


def _own_store(case: Case) -> Callable[..., None]:
    return lambda items, ptr, value: items.store(ptr, value, _stored(case))


OWN_ARRAY = Do(_array, host_only="takes memory, once for a launch")
OWN_ELEMENT = Cooperative(_element)
OWN_LOAD = Cooperative(_own_load)
OWN_STORE = Cooperative(_own_store)
