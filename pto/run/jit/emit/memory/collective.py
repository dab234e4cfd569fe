"""Communication between ranks in compiled code: signals in global memory, and who may call.

Data moves by the words of a mover (`views.py`). All ranks of one process reach each other's
memory; where a meeting of ranks or their hosts decide, Python does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pto.isa.meaning.memory import collective
from pto.run.jit.border.context import OWNED, TELLS
from pto.run.jit.border.values import Native, ViewPlace, Word
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.handle.view import inside
from pto.run.jit.emit.table import KINDS, Spot, emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.moves import emit_move
from pto.run.jit.llvm.text import I32, I64, NotNative, Val

_COMPARE: Final = {"==": "eq", "!=": "ne", ">": "sgt", ">=": "sge", "<": "slt", "<=": "sle"}


def _signal(s: Spot) -> tuple[ViewPlace, Val]:
    """Words of 32 bits inside global memory, and the number beside them."""
    view, value = s.need(ViewPlace, "signal"), s.all()[1]
    if view.dtype.itemsize != 4 or not isinstance(value, Word) or value.types[0] != I32:
        raise NotNative("a signal that is no word of 32 bits")
    aligned = s.x.compare("eq", s.x.rest(view.address, 4), 0)
    s.fault_unless(s.x.both(aligned, inside(s, view)))
    return view, value.name


@emits(collective.NOTIFY)
def _notify(s: Spot) -> Sequence[Native]:
    view, value = _signal(s)
    x, some = s.x, "true"
    for size in view.shape:
        some = x.both(some, x.compare("sgt", size, 0))
    s.fault_unless(some)
    place = s.pointer(view.memory, view.address)
    if s.case.word("notifyOp") != "atomic_add":
        x.store(I32, value, place, 4)
        return []

    def add() -> None:
        x.store(I32, x.new(f"add i32 {x.load(I32, place, 4)}, {value}"), place, 4)

    plain = x.compare("eq", s.e.word(TELLS), "null", "ptr")
    planes.either_way(s, plain, add, "another rank is told of the sum")
    return []


@emits(collective.WAIT)
def _wait(s: Spot) -> Sequence[Native]:
    (view, value), (sign, _) = _signal(s), collective.comparison(s.case)
    word = _COMPARE[sign]
    coroutine.until(s, lambda: _all(s, view, lambda found: s.x.compare(word, found, value, I32)))
    return []


def _all(s: Spot, view: ViewPlace, holds: Callable[[str], str]) -> str:
    """Whether something holds of all words."""
    x, first = s.x, s.pointer(view.memory, view.address)
    found = x.stack("i1")
    x.store("i1", "true", found)
    axes = [(n, step) for n, step in zip(view.shape, view.strides, strict=True) if n != 1]

    def nested(left: Sequence[tuple[Val, Val]], at: Val) -> None:
        if left:
            (size, step), *inner = left
            planes.loop(x, size, 1, lambda i: nested(inner, x.add(at, x.mul(i, step))))
            return
        word = x.load(I32, x.at(first, x.mul(at, 4)), 4)
        x.store("i1", x.both(x.load("i1", found), holds(word)), found)

    nested(axes, 0)
    return x.load("i1", found)


def _collective(s: Spot) -> Sequence[Native]:
    body = s.body
    if not isinstance(body, collective.Collective) or body.moves is None:
        raise NotNative("no collective")
    if collective.by_ccu(s.case):
        raise NotNative("ranks that come together")
    root, x = s.operands("group")[collective.root_of(s.case)], s.x
    if not isinstance(root, ViewPlace):
        raise NotNative("a group of handles")
    place = x.at(s.e.word(OWNED), x.mul(root.memory, 8))
    s.fault_unless(x.compare("ne", x.load(I64, place, 8), 0))
    return emit_move(s, body.moves)


KINDS[collective.Collective] = _collective
