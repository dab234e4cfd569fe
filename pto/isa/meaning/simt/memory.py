"""One element by one work item: loads, stores, atomic updates in the order of the items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.core.memory import Memory, Space
from pto.isa.meaning import lanes as numbers
from pto.isa.meaning.kinds import Do, Together
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.simt.items import Items, Pointers, Values
from pto.isa.row import types as t
from pto.isa.row.attributes import OfType
from pto.isa.rules.rule import Case
from pto.isa.rules.simt import MAX_ITEMS


def held(type: t.Type | None) -> tuple[np.dtype[Any], int]:
    """The items a value is made of, and how many."""
    if isinstance(type, t.Vector):
        kind, count = held(type.elem)
        return kind, count * int(np.prod(type.shape))
    if not isinstance(type, t.Scalar) or type.dtype is None:
        raise fail("PTO-T193", "a work item loads and stores elements")
    return (np.dtype(np.uint8) if type.dtype.bits == 1 else type.dtype.numpy), 1


def _at(ptr: Pointers, offset: Values, nbytes: int) -> Pointers:
    return Pointers(ptr.memory, ptr.addresses + offset.astype(np.int64) * nbytes, ptr.dtype)


def moved(case: Case) -> Callable[..., Pointers]:
    """Pointers, each moved by a number of elements of its own."""
    elem = getattr(case.op.operands[0].type, "elem", None)
    kind, count = held(elem)
    return lambda items, ptr, offset: _at(ptr, offset, kind.itemsize * count)


def _places(items: Items, at: Pointers, nbytes: int) -> Any:
    """Indices of the bytes that the items touch; all lie inside."""
    first, size = at.addresses, at.memory.size
    bad = np.flatnonzero((first < 0) | (first + nbytes > size))
    if bad.size:
        item = int(items.active[bad[0]])
        raise fail(
            "PTO-M001",
            f"work item {item}: {at.memory.space.value} address {int(first[bad[0]]):#x} with"
            f" {nbytes} bytes is outside the buffer of {size} bytes",
        )
    crooked = np.flatnonzero(first % nbytes)
    if crooked.size:
        item, address = int(items.active[crooked[0]]), int(first[crooked[0]])
        raise fail(
            "PTO-M002",
            f"work item {item}: {at.memory.space.value} address {address:#x} is not a multiple"
            f" of {nbytes} bytes",
        )
    return first[:, None] + np.arange(nbytes)


def _shaped(raw: Values, kind: np.dtype[Any], type: t.Type | None) -> Values:
    found = np.ascontiguousarray(raw).view(kind)
    return found if isinstance(type, t.Vector) else found[:, 0]


def _load(case: Case) -> Callable[..., Values]:
    type = case.op.results[0].type
    kind, count = held(type)
    nbytes = kind.itemsize * count

    def load(items: Items, ptr: Pointers, offset: Values) -> Values:
        at = _at(ptr, offset, nbytes)
        places = _places(items, at, nbytes)
        items.touches(at, nbytes, writes=False)
        return _shaped(at.memory.data[places], kind, type)

    return load


def _store(case: Case) -> Callable[..., None]:
    value = case.op.operand("value")
    kind, count = held(value.type if value else None)
    nbytes = kind.itemsize * count

    def store(items: Items, ptr: Pointers, offset: Values, value: Values) -> None:
        at = _at(ptr, offset, nbytes)
        places = _places(items, at, nbytes)
        items.touches(at, nbytes, writes=True)
        at.memory.data[places] = _bytes(value, kind, nbytes)

    return store


def _bytes(value: Values, kind: np.dtype[Any], nbytes: int) -> Values:
    raw = np.ascontiguousarray(value.astype(kind, copy=False))
    return raw.view(np.uint8).reshape(len(value), nbytes)


LOAD = Together(_load)
STORE = Together(_store)

# ---- atomic updates

_NEW: dict[str, Callable[[Values, Values], Values]] = {
    "exch": lambda old, value: value,
    "add": numbers.add,
    "sub": numbers.sub,
    "min": numbers.minimum,
    "max": numbers.maximum,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
}


def _serial(case: Case, new: Callable[..., Values]) -> Callable[..., Values]:
    """Items of different addresses at once; those of one address in the order of their numbers."""
    type = case.op.operand("value").type  # type: ignore[union-attr]
    kind, count = held(type)
    nbytes = kind.itemsize * count
    see = np.dtype(f"u{kind.itemsize}") if case.word("signedness") == "unsigned" else kind

    def run(items: Items, ptr: Pointers, *given: Values) -> Values:
        places = _places(items, ptr, nbytes)
        items.touches(ptr, nbytes, writes=True, atomic=True)
        old = np.zeros((len(places), count), see)
        for turn in _turns(ptr.addresses):
            before = np.ascontiguousarray(ptr.memory.data[places[turn]]).view(see)
            now = [g[turn].reshape(len(turn), count).view(see) for g in given]
            after = np.ascontiguousarray(new(before, *now).astype(see, copy=False))
            ptr.memory.data[places[turn]] = after.view(np.uint8)
            old[turn] = before
        return old.view(kind) if isinstance(type, t.Vector) else old.view(kind)[:, 0]

    return run


def _turns(addresses: Values) -> list[Values]:
    """Positions of one item for each address, again and again until all had their turn."""
    order = np.argsort(addresses, kind="stable")
    same = addresses[order]
    first = np.flatnonzero(np.r_[True, same[1:] != same[:-1]])
    nth = np.arange(order.size) - np.repeat(first, np.diff(np.r_[first, order.size]))
    return [order[nth == n] for n in range(int(nth.max()) + 1)]


def atomic(name: str) -> Together:
    return Together(lambda case: _serial(case, _NEW[name]))


def _exchanged(old: Values, compare: Values, value: Values) -> Values:
    fits = (old == compare).all(1, keepdims=True)
    return np.where(fits, value, old)


CAS = Together(lambda case: _serial(case, _exchanged))


# ---- arrays of one work item


@dataclass(frozen=True, slots=True)
class Own:
    """An array that every work item has one of, made outside of a launch: they lie one behind the
    other, `nbytes` apart."""

    memory: Memory
    address: int
    nbytes: int


def _named_type(case: Case) -> int:
    """Bytes of the type an operation names."""
    attr = case.op.attrs.get("elem_type")
    kind, count = held(attr.type if isinstance(attr, OfType) else None)
    return kind.itemsize * count


def _array(case: Case) -> Callable[..., Any]:
    size = _named_type(case)

    def make(core: Machine, length: int) -> Own:
        nbytes = size * length
        return Own(Memory(Space.UB, MAX_ITEMS * nbytes), 0, nbytes)

    return make


def _element(case: Case) -> Callable[..., Pointers]:
    size = _named_type(case)
    return lambda items, base, index: _at(base, index, size)


def _first(make: Callable[[Case], Callable[..., Any]]) -> Together:
    """Without an offset."""

    def at_start(case: Case) -> Callable[..., Any]:
        run = make(case)
        none = np.zeros(1, np.int64)
        return lambda items, ptr, *value: run(items, ptr, none, *value)

    return Together(at_start)


OWN_ARRAY = Do(_array)
OWN_ELEMENT = Together(_element)
OWN_LOAD = _first(_load)
OWN_STORE = _first(_store)
