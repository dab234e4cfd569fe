"""The emitters of rows: by body, by the kind of a body, and by the words of a meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pto.ir.graph import Operation
from pto.isa.meaning.handle.view import Handles
from pto.isa.meaning.kinds import Do, Known, Lane
from pto.isa.meaning.order.flags import IN_ORDER, SET_FLAG, WAIT_FLAG
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.runtime.values import Lowered

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter
    from pto.run.jit.emit.operation import OpContext

Emit = Callable[["OpContext"], Sequence[Lowered]]

# The body of a row -> its emitter. Rows that share a body share the emitter.
EMITTERS: dict[int, Emit] = {}
CHEAP: set[int] = set()
# The kinds that need no entry of their own, meanings in words, and control flow.
KINDS: dict[type, Emit] = {}
WORDS: dict[Any, Emit] = {}
STRUCTURES: dict[Control, Callable[[Emitter, Operation], None]] = {}


def emits(*bodies: object, cheap: bool = False) -> Callable[[Emit], Emit]:
    """Register the emitter of all rows with these bodies; a region of cheap operations only is not
    compiled."""

    def register(emit: Emit) -> Emit:
        for body in bodies:
            EMITTERS[id(body)] = emit
            if cheap:
                CHEAP.add(id(body))
        return emit

    return register


def emitter_of(op: Operation) -> Emit | None:
    """The emitter of an operation; None if there is none."""
    body = op.body
    words = WORDS.get(body.words) if isinstance(body, Do) else None
    return words or EMITTERS.get(id(body)) or KINDS.get(type(body))


def is_cheap(op: Operation) -> bool:
    """True if it is not worth a compiled region alone: scalars, handles, flags."""
    numbers = bool(op.results) and all(isinstance(r.type, t.Scalar) for r in op.results)
    names = isinstance(op.body, Do) and op.body.words is Handles
    return names or id(op.body) in CHEAP or (numbers and isinstance(op.body, Lane | Known))


def touches_no_tile(op: Operation) -> bool:
    """True for scalars, handles and flags."""
    if op.control is not None or not is_cheap(op):
        return False
    return bool(op.results) or op.body in (SET_FLAG, WAIT_FLAG, IN_ORDER)
