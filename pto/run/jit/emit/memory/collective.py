"""Communication between ranks: signals in global memory.

Data moves by the words of a mover (`views.py`). All ranks of one process share an address space.
Python handles barriers of ranks and of their hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pto.isa.meaning.memory import collective
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.handle.view import inside
from pto.run.jit.emit.registry import KINDS, emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.moves import emit_move
from pto.run.jit.llvm.text import I32, I64, UnsupportedLowering, Val, expect, unsupported_if
from pto.run.jit.runtime.context import OWNED, TELLS
from pto.run.jit.runtime.values import Lowered, ScalarValue, ViewDesc

_COMPARE: Final = {"==": "eq", "!=": "ne", ">": "sgt", ">=": "sge", "<": "slt", "<=": "sle"}


def _signal(s: OpContext) -> tuple[ViewDesc, Val]:
    """Words of 32 bits inside global memory, and the number beside them."""
    why = "a signal that is no word of 32 bits"
    view, value = s.need(ViewDesc, "signal"), expect(s.all()[1], ScalarValue, why)
    unsupported_if(view.dtype.itemsize != 4 or value.types[0] != I32, why)
    aligned = s.x.compare("eq", s.x.rest(view.address, 4), 0)
    s.fault_unless(s.x.both(aligned, inside(s, view)))
    return view, value.name


@emits(collective.NOTIFY)
def _notify(s: OpContext) -> Sequence[Lowered]:
    view, value = _signal(s)
    x = s.x
    s.fault_unless(x.both(*(x.compare("sgt", size, 0) for size in view.shape)))
    place = s.pointer(view.memory, view.address)
    if s.case.word("notifyOp") != "atomic_add":
        x.store(I32, value, place, 4)
        return []

    def add() -> None:
        x.store(I32, x.new(f"add i32 {x.load(I32, place, 4)}, {value}"), place, 4)

    plain = x.compare("eq", s.e.word(TELLS), "null", "ptr")
    planes.guarded(s, plain, add, "another rank is told of the sum")
    return []


@emits(collective.WAIT)
def _wait(s: OpContext) -> Sequence[Lowered]:
    (view, value), (sign, _) = _signal(s), collective.comparison(s.case)
    word = _COMPARE[sign]
    coroutine.until(s, lambda: _all(s, view, lambda found: s.x.compare(word, found, value, I32)))
    return []


def _all(s: OpContext, view: ViewDesc, holds: Callable[[str], str]) -> str:
    """True if something holds of all words."""
    x, first = s.x, s.pointer(view.memory, view.address)
    found = x.stack("i1")
    x.store("i1", "true", found)
    axes = [(n, step) for n, step in zip(view.shape, view.strides, strict=True) if n != 1]

    def nested(left: Sequence[tuple[Val, Val]], at: Val) -> None:
        if left:
            (size, step), *inner = left
            x.loop(size, 1, lambda i: nested(inner, x.add(at, x.mul(i, step))))
            return
        word = x.load(I32, x.at(first, x.mul(at, 4)), 4)
        x.store("i1", x.both(x.load("i1", found), holds(word)), found)

    nested(axes, 0)
    return x.load("i1", found)


def _collective(s: OpContext) -> Sequence[Lowered]:
    body: collective.Collective = s.body
    if body.moves is None:
        raise UnsupportedLowering("no collective")
    unsupported_if(collective.by_ccu(s.case), "ranks that come together")
    x, member = s.x, s.operands("group")[collective.root_of(s.case)]
    root = expect(member, ViewDesc, "a group of handles")
    place = x.at(s.e.word(OWNED), x.mul(root.memory, 8))
    s.fault_unless(x.compare("ne", x.load(I64, place, 8), 0))
    return emit_move(s, body.moves)


KINDS[collective.Collective] = _collective
