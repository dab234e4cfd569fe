"""Single elements behind pointers in compiled code."""

from __future__ import annotations

from collections.abc import Sequence

from pto.isa.meaning.scalar import unit as control
from pto.isa.row import types as t
from pto.run.jit.border.values import Native, Place, Word
from pto.run.jit.emit.handle.view import near, number
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.llvm.text import NotNative


def _at(s: Spot, type: t.Type | None, *, writes: bool) -> str:
    """The machine address of an element, inside its memory."""
    if not isinstance(type, t.Scalar) or type.dtype is None or type.dtype.bits < 8:
        raise NotNative("an element without a size")
    x, place, offset = s.x, s.need(Place, "ptr"), number(s.need(Word, "offset"))
    size = type.dtype.itemsize
    address = x.add(place.address, x.mul(offset, size))
    s.fault_unless(x.both(near(x, offset), s.e.inside(place.memory, address, size)))
    s.e.touched(place.memory, address, 1, size, 0, writes=writes)
    return s.pointer(place.memory, address, noted=True)


@emits(control.LOAD_SCALAR)
def _load(s: Spot) -> Sequence[Native]:
    type = s.op.results[0].type
    pointer = _at(s, type, writes=False)
    if not isinstance(type, t.Scalar):
        raise NotNative("no scalar")
    empty = Word(("",), type)
    return [empty.renamed((s.x.load(empty.types[0], pointer),))]


@emits(control.STORE_SCALAR)
def _store(s: Spot) -> Sequence[Native]:
    value = s.need(Word, "value")
    pointer = _at(s, value.type, writes=True)
    s.x.store(value.types[0], value.name, pointer)
    return []
