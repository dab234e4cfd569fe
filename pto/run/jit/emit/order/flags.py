"""Flags between pipes, order that already holds, and who an agent is, in compiled code."""

from __future__ import annotations

from collections.abc import Sequence

from pto.isa.meaning.order import flags as sync
from pto.isa.meaning.scalar import unit as control
from pto.isa.meaning.tile import move
from pto.isa.row import types as t
from pto.isa.row.flag import event_of, flag_of, key_of
from pto.run.jit.border import context
from pto.run.jit.border.state import EVENT_IDS, flag_offset
from pto.run.jit.border.values import Native, Word, word_type
from pto.run.jit.emit.table import Emit, Spot, emits
from pto.run.jit.llvm.text import NotNative, Val


def _flag(*, waits: bool) -> Emit:
    """A flag counts; who waits takes one, and there must be one: nothing else runs meanwhile."""

    def emit(s: Spot) -> Sequence[Native]:
        x, given = s.x, s.all()
        rules = s.case.profile.sync
        key, most = key_of(flag_of(s.case), rules.flag_identity), rules.event_ids
        start = flag_offset(key.src, key.dst)
        if start is None or most > EVENT_IDS:
            raise NotNative("a flag without a place")
        event = _event(s, given)
        s.fault_unless(x.compare("ult", event, most))
        s.e.unit.needs.flags.add(start)
        place = x.at(s.e.word(context.FLAGS), x.add(start, x.mul(event, 4)))
        count = x.load("i32", place, 4)
        if waits:
            s.fault_unless(x.new(f"icmp sgt i32 {count}, 0"))
        x.store("i32", x.new(f"add i32 {count}, {-1 if waits else 1}"), place, 4)
        return []

    return emit


def _event(s: Spot, given: Sequence[Native]) -> Val:
    """The id an operand gives, else the attribute."""
    if not given:
        return event_of(s.case)
    value = given[0]
    if not isinstance(value, Word):
        raise NotNative("an event id that is no number")
    kind = value.types[0]
    return value.name if kind == "i64" else s.x.new(f"sext {kind} {value.name} to i64")


emits(sync.SET_FLAG, cheap=True)(_flag(waits=False))
emits(sync.WAIT_FLAG, cheap=True)(_flag(waits=True))


@emits(sync.IN_ORDER, move.PREFETCH, cheap=True)
def _nothing(s: Spot) -> Sequence[Native]:
    """Effects are in program order, and a cache changes no value."""
    if s.op.results:
        raise NotNative("an order with a result")
    return []


def _word(index: int) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        type = s.op.results[0].type
        if not isinstance(type, t.Scalar) or type.is_float:
            raise NotNative("a result that is no number")
        found = s.x.load("i64", s.x.at("%ctx", 8 * index), 8, ", !invariant.load !0")
        kind = word_type(type)
        return [Word((found if kind == "i64" else s.x.new(f"trunc i64 {found} to {kind}"),), type)]

    return emit


emits(control.BLOCK_INDEX, cheap=True)(_word(context.BLOCK))
emits(control.BLOCK_COUNT, cheap=True)(_word(context.BLOCKS))
emits(control.SUB_BLOCK_INDEX, cheap=True)(_word(context.SUB))
emits(control.SUB_BLOCK_COUNT, cheap=True)(_word(context.SUBS))
