"""From the order of a row to the effect of one execution: the one place that reads names and
values.

Kinds of operations become pipes, flags get the key of their profile, and queues and signals get
their slots and words.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import mul
from typing import Any

from pto.ir.graph import Operation
from pto.isa.meaning.handle import config
from pto.isa.meaning.handle.view import as_view
from pto.isa.meaning.memory import collective
from pto.isa.meaning.order.ring import WHOLE, QueueRing, by_id, own
from pto.isa.meaning.order.words import AgentSignals
from pto.isa.row import order as kinds
from pto.isa.row.attributes import Enum, integer
from pto.isa.row.enums import ENUMS
from pto.isa.row.flag import event_of, flag_of, key_of
from pto.isa.row.pipe_of import pipe_of
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core
from pto.run.order import effects as fx

Values = list[Any]
MakeEffect = Callable[[Core, Values], fx.Effect | None]


def effect_of(case: Case) -> MakeEffect | None:
    """The function that makes the effect of an operation on order; None if it only handles data."""
    make = _MAKE.get(type(case.row.order))
    return None if make is None else make(case, case.row.order)


def is_ordering(op: Operation) -> bool:
    """True if an operation only synchronises: without it the same data is moved and computed."""
    return op.order is not None and op.order.is_fence


def issuing_pipe(case: Case) -> Callable[[Values], str]:
    """The pipe to which an operation is issued. If semaphores stall the core, a wait is issued to
    S.

    An operand `pipe_dyn` holds the number of the pipe.
    """
    name, order = pipe_of(case), case.row.order
    if not isinstance(order, kinds.Signal):
        return lambda values: name
    if case.profile.sync.cross_core == "modes" and isinstance(order, kinds.WaitSignal):
        return lambda values: "S"
    if case.op.operand("pipe_dyn") is not None:
        at = case.row.operand_names.index("pipe_dyn")
        return lambda values: (ENUMS["pipe"].word(values[at]) or "S").removeprefix("PIPE_")
    return lambda values: name


def arrival_of(case: Case) -> MakeEffect | None:
    """The effect of an operation on order when it begins to wait."""
    order = case.row.order
    if isinstance(order, kinds.Gather):
        groups = _groups(case, order)
        return lambda core, values: fx.Rendezvous((), groups(core, values))
    if not isinstance(order, kinds.CoreBarrier):
        return None
    where = _round(case, order)

    def of(core: Core, values: Values) -> fx.Effect | None:
        came = any(new > old for _, old, new in _tallies(core)[1].take())
        return fx.Rendezvous((), where(core)) if came else None

    return of


# Kinds of attributes that are unit flags: the state waited for, and the state set, for each word.
_UNIT_FLAGS: dict[str, tuple[fx.UnitFlag, fx.UnitFlag]] = {
    **dict.fromkeys(
        ("mad_unit_flag_mode", "acc_phase"), (fx.UnitFlag("free", ""), fx.UnitFlag("free", "full"))
    ),
    **dict.fromkeys(
        ("unit_flag_ctrl", "st_phase"), (fx.UnitFlag("full", ""), fx.UnitFlag("full", "free"))
    ),
}
_CHECKS, _CHANGES = ("check_only", "partial"), ("check_and_set", "check_and_clear", "final")


def mark_of(op: Operation) -> fx.UnitFlag | None:
    """The unit flag of a matmul, or of a transfer out of the accumulator."""
    for attr in op.row.attrs if op.attrs else ():
        marks, value = _UNIT_FLAGS.get(attr.kind), op.attrs.get(attr.name)
        if marks is not None and isinstance(value, Enum):
            mode = value.value
            return marks[0] if mode in _CHECKS else marks[1] if mode in _CHANGES else None
    return None


# ---- flags, barriers and buffers inside an agent


def _flag(case: Case, order: kinds.OfFlag) -> MakeEffect:
    """The effect of a flag, cached by id."""
    kind = fx.FlagSet if isinstance(order, kinds.SetFlag) else fx.FlagWait
    written, identity = event_of(case), case.profile.sync.flag_identity
    cached: dict[int, fx.Effect] = {}

    def of(core: Core, values: Values) -> fx.Effect:
        number = int(values[0]) if values else written
        cached_effect = cached.get(number)
        if cached_effect is None:
            flag = flag_of(case, number)
            cached_effect = cached[number] = kind(flag, key_of(flag, identity))
        return cached_effect

    return of


def _barrier(case: Case, order: kinds.Barrier) -> MakeEffect:
    barrier = fx.PipeBarrier(pipe_of(case))
    return lambda core, values: barrier


def _memory_barrier(case: Case, order: kinds.MemoryBarrier) -> MakeEffect:
    barrier = fx.ScopeBarrier(case.word(order.kind) or "VV_ALL")
    return lambda core, values: barrier


def _buffer(case: Case, order: kinds.OfBuffer) -> MakeEffect:
    """The effect of a buffer id. Mode 0 waits for releases, and releases for one pipe."""
    number, mode = (integer(case.op.attrs, name) for name in (order.id, order.mode))
    kind = fx.BufferRelease if isinstance(order, kinds.Release) else fx.BufferAcquire

    def of(core: Core, values: Values) -> fx.Effect:
        chosen = values[0] if values and values[0] is not None else number
        how = bool(values[1] if len(values) > 1 and values[1] is not None else mode)
        return kind(int(chosen or 0), how if kind is fx.BufferRelease else not how)

    return of


# ---- between agents


def _tallies(core: Core) -> tuple[fx.ChangeLog, fx.ChangeLog]:
    flags, arrivals = core.cluster.cross_flags, core.cluster.arrivals
    if not isinstance(flags, fx.ChangeLog) or not isinstance(arrivals, fx.ChangeLog):
        raise RuntimeError("this core is not observed")
    return flags, arrivals


def _send(case: Case, order: kinds.SendSignal) -> MakeEffect:
    def of(core: Core, values: Values) -> fx.Effect:
        flags, arrivals = _tallies(core)
        sent = tuple((core.block, key) for key, old, new in flags.take() if new > old)
        return fx.SignalSend(sent, tuple((key, new) for key, _, new in arrivals.take()))

    return of


def _signal_wait(case: Case, order: kinds.WaitSignal) -> MakeEffect:
    def of(core: Core, values: Values) -> fx.Effect:
        flags, arrivals = _tallies(core)
        taken = tuple((core.block, key) for key, old, new in flags.take() if new < old)
        passed = tuple((key[0], new) for key, _, new in arrivals.take())
        return fx.SignalWait(taken, passed)

    return of


def _round(case: Case, order: kinds.CoreBarrier) -> Callable[[Any], tuple[Any, ...]]:
    """The key of the current barrier; each round has its own."""
    kind = case.word(order.kind) or "mix"
    return lambda core: ((fx.ALL_CORES, kind, config.round_of(core, kind)),)


def _meet(case: Case, order: kinds.CoreBarrier) -> MakeEffect:
    """A barrier of all cores of a kind: all work before an arrival precedes all work after the
    barrier.

    An arrival is published at once, even if the core then has to wait.
    """
    where, kind = _round(case, order), case.word(order.kind) or "mix"

    def of(core: Any, values: Values) -> fx.Effect | None:
        everyone = config.all_cores(AgentSignals(core), kind, values[1])
        if not everyone:
            return None
        came = any(new > old for _, old, new in _tallies(core)[1].take())
        return fx.Rendezvous(where(core), where(core) if came else (), everyone)

    return of


def _ring(
    case: Case, order: kinds.OfQueue, out: bool
) -> Callable[[Any, Values], tuple[QueueRing, int]]:
    """The ring of a queue that an operation pushes to or pops from, and the agent's number."""
    names = case.row.operand_names
    if order.handle in names:
        at = names.index(order.handle)
        return lambda core, values: (values[at].ring(core, out), own(core))
    find = by_id(case)
    return lambda core, values: (find(core).ring(core, out), own(core))


def _slot(core: Core, ring: QueueRing, kind: str, number: int) -> tuple[Any, ...]:
    """The key of a full or free queue slot. Keys repeat after twice the number of slots."""
    return core.block, id(ring), kind, number % (2 * ring.slots)


def _free_slot(core: Core, ring: QueueRing, number: int) -> tuple[Any, ...]:
    """The key that lets a slot be filled: the last of the slots that were freed together."""
    freed = ring.freed_before(number)
    return (_slot(core, ring, "free", freed - 1),) if freed else ()


def _push(core: Core, ring: QueueRing, me: int, is_whole: bool) -> fx.Effect:
    """If both sub-blocks push one whole tile, their writes are ordered."""
    number = int(ring.pushed[me]) - 1
    full = (_slot(core, ring, "full", number),)
    joins = _free_slot(core, ring, number)
    return fx.Rendezvous((*joins, *full) if is_whole else joins, full)


def _allocate(core: Core, ring: QueueRing, me: int, is_whole: bool) -> fx.Effect:
    return fx.Rendezvous(_free_slot(core, ring, int(ring.taken[me]) - 1), ())


def _pop(core: Core, ring: QueueRing, me: int, is_whole: bool) -> fx.Effect:
    """A copy out of global memory frees its slot at once."""
    number = int(ring.popped[me]) - 1
    is_back = ring.freed[me] == number + 1
    back = (_slot(core, ring, "free", number),) if is_back else ()
    return fx.Rendezvous((_slot(core, ring, "full", number),), back)


def _free(core: Core, ring: QueueRing, me: int, is_whole: bool) -> fx.Effect:
    return fx.Rendezvous((), (_slot(core, ring, "free", int(ring.freed[me]) - 1),))


_OF_QUEUE: dict[type, Callable[[Core, QueueRing, int, bool], fx.Effect]] = {
    kinds.Push: _push,
    kinds.Allocate: _allocate,
    kinds.Pop: _pop,
    kinds.Free: _free,
}


def _queue(case: Case, order: kinds.OfQueue) -> MakeEffect:
    """The effect of an operation on a slot of a queue."""
    ring_of = _ring(case, order, out=isinstance(order, kinds.Push | kinds.Allocate))
    is_whole, make = int(case.word("split") or WHOLE) == WHOLE, _OF_QUEUE[type(order)]
    return lambda core, values: make(core, *ring_of(core, values), is_whole)


# ---- between ranks, through global memory


def _signals(case: Case, order: kinds.OfSignal, value: Any) -> tuple[Any, ...]:
    """The keys of the words of a signal, by address: the same for every view of a word."""
    view = as_view(value, case.type(order.signal))
    steps = [step * view.dtype.itemsize for step in view.strides]
    places = (sum(map(mul, at, steps)) for at in product(*map(range, view.shape)))
    start = view.memory.data.ctypes.data + view.address  # arrays of the host may overlap
    return tuple(("signal", start + index) for index in places)


def _notify(case: Case, order: kinds.Notify) -> MakeEffect:
    adds = case.word(order.how) == order.adds

    def of(core: Core, values: Values) -> fx.Effect:
        word = _signals(case, order, values[0])[0]
        now = int(as_view(values[0], case.type(order.signal)).as_array().flat[0])
        return fx.WordWrite(word, now, int(values[1]) if adds else None)

    return of


def _await(case: Case, order: kinds.WaitUntil) -> MakeEffect:
    _, compare = collective.comparison(case)

    def of(core: Core, values: Values) -> fx.Effect:
        wanted = int(values[1])
        return fx.WordWait(_signals(case, order, values[0]), lambda now: bool(compare(now, wanted)))

    return of


def is_used(op: Operation) -> bool:
    """True if an operation uses a result of this one."""
    return any(value.uses for value in op.results)


def _poll(case: Case, order: kinds.TestSignal) -> MakeEffect:
    """The effect of a test: if it holds, it orders its result; an unused result orders nothing."""
    if isinstance(case.op, Operation) and not is_used(case.op):
        return lambda core, values: None
    is_there, awaited = case.row.body.make(case), _await(case, kinds.WaitUntil(order.signal))
    return lambda core, values: awaited(core, values) if is_there(core, *values) else None


def _groups(case: Case, order: kinds.Gather) -> Callable[[Any, Values], tuple[Any, ...]]:
    """The keys of a barrier of ranks: the group, by its memory, and the round."""
    at, type = case.row.operand_names.index(order.group), case.type(order.group)
    if case.word(order.engine) != order.meeting:
        return lambda core, values: ()

    def of(core: Any, values: Values) -> tuple[Any, ...]:
        turn_key = collective.turn_of(core, as_view(values[at], type))
        return () if turn_key is None else ((fx.RANKS, *turn_key),)

    return of


def _gather(case: Case, order: kinds.Gather) -> MakeEffect:
    """A barrier of ranks: no rank continues before the root has done its work."""
    groups = _groups(case, order)

    def of(core: Core, values: Values) -> fx.Effect:
        keys = groups(core, values)
        return fx.Rendezvous(keys, keys)

    return of


def _flush(case: Case, order: kinds.WriteBack) -> MakeEffect:
    at = case.row.operand_names.index(order.place)
    all_lines = bool(order.how) and case.word(order.how) == order.all

    def of(core: Core, values: Values) -> fx.Effect:
        pointer = values[at]
        if all_lines or pointer is None:
            return fx.CacheFlush(None)
        return fx.CacheFlush(pointer.memory.data.ctypes.data + pointer.address)

    return of


def _publish(case: Case, order: kinds.Publish) -> MakeEffect:
    publish = fx.RankPublish() if case.word(order.memory) in order.to_ranks else None
    return lambda core, values: publish


_MAKE: dict[type, Callable[[Case, Any], MakeEffect]] = {
    kinds.SetFlag: _flag,
    kinds.WaitFlag: _flag,
    kinds.Barrier: _barrier,
    kinds.FullFence: _barrier,
    kinds.MemoryBarrier: _memory_barrier,
    kinds.Acquire: _buffer,
    kinds.Release: _buffer,
    kinds.SendSignal: _send,
    kinds.WaitSignal: _signal_wait,
    kinds.CoreBarrier: _meet,
    **dict.fromkeys(_OF_QUEUE, _queue),
    kinds.Notify: _notify,
    kinds.WaitUntil: _await,
    kinds.TestSignal: _poll,
    kinds.Gather: _gather,
    kinds.WriteBack: _flush,
    kinds.Publish: _publish,
}
