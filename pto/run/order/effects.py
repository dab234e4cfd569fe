"""What synchronising instructions do to the order of things, as data for observers.

The engine runs in program order and needs little of it; here each such meaning has an `Effect`.
Which counters between cores change is seen from the meaning itself, through a `Tally`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from itertools import product
from operator import mul
from typing import Any, NamedTuple

from pto.ir.graph import Operation
from pto.isa.meaning.handle import config
from pto.isa.meaning.handle.view import as_view
from pto.isa.meaning.memory import collective
from pto.isa.meaning.order import flags as sync
from pto.isa.meaning.order import queue as fifo
from pto.isa.meaning.order.ring import WHOLE, Ring, by_id, own
from pto.isa.order.flags import named_pipe
from pto.isa.row.attributes import Int
from pto.isa.row.enums import ENUMS
from pto.isa.row.pipe_of import pipe_of
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core

Values = list[Any]


class Flag(NamedTuple):
    """A flag between two pipes of an agent: set once, taken once."""

    src: str
    dst: str
    id: int

    def __str__(self) -> str:
        return f"[{self.src}, {self.dst}, {self.id}]"


@dataclass(frozen=True, slots=True)
class SetFlag:
    flag: Flag


@dataclass(frozen=True, slots=True)
class WaitFlag:
    flag: Flag


@dataclass(frozen=True, slots=True)
class Barrier:
    """Of one pipe, or of ALL."""

    pipe: str


@dataclass(frozen=True, slots=True)
class MemoryBarrier:
    """Inside a vector scope: earlier accesses of one class before later ones of another."""

    kind: str


@dataclass(frozen=True, slots=True)
class GetBuffer:
    id: int
    waits: bool


@dataclass(frozen=True, slots=True)
class ReleaseBuffer:
    id: int
    of_all: bool


@dataclass(frozen=True, slots=True)
class Send:
    """Signals to agents of this core, and arrivals where all cores meet: (who, which round)."""

    signals: tuple[Any, ...]
    arrivals: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Hear:
    """Signals that are taken, and meetings that are passed: (meeting, which round)."""

    signals: tuple[Any, ...]
    meetings: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Meet:
    """A queue between the cube and the vector side, a point where all cores or ranks meet, or a
    signal in global memory."""

    joins: tuple[Any, ...]
    publishes: tuple[Any, ...]


Effect = (
    SetFlag | WaitFlag | Barrier | MemoryBarrier | GetBuffer | ReleaseBuffer | Send | Hear | Meet
)
MakeEffect = Callable[[Core, Values], Effect | None]


class Tally(MutableMapping[Any, int]):
    """Counters that remember what changed."""

    def __init__(self, inner: MutableMapping[Any, int]) -> None:
        self.inner = inner
        self.changes: list[tuple[Any, int, int]] = []

    def __getitem__(self, key: Any) -> int:
        return self.inner[key]

    def __setitem__(self, key: Any, value: int) -> None:
        self.changes.append((key, self.inner[key], value))
        self.inner[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.inner[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def take(self) -> list[tuple[Any, int, int]]:
        found, self.changes = self.changes, []
        return found


class AlwaysSet(dict[Any, int]):
    """Flags for a run in which an observer keeps them: no wait fails in program order."""

    def __missing__(self, key: Any) -> int:
        return 1

    def __setitem__(self, key: Any, value: int) -> None:
        return


# ---- flags, barriers and buffers inside an agent


def _flags(effect: Callable[[Flag], Effect], src: str, dst: str) -> Callable[[Case], MakeEffect]:
    def make(case: Case) -> MakeEffect:
        pipes = named_pipe(case, src) or "", named_pipe(case, dst) or ""
        written = sync.event_of(case)
        known: dict[int, Effect] = {}  # the same few flags again and again

        def of(core: Core, values: Values) -> Effect:
            number = int(values[0]) if values else written
            found = known.get(number)
            if found is None:
                found = known[number] = effect(Flag(*pipes, number))
            return found

        return of

    return make


def _barrier(case: Case) -> MakeEffect:
    found = Barrier(pipe_of(case))
    return lambda core, values: found


def _drain(case: Case) -> MakeEffect:
    found = Barrier(named_pipe(case, "op") or "ALL")
    return lambda core, values: found


def _memory_barrier(case: Case) -> MakeEffect:
    found = MemoryBarrier(case.word("kind") or "VV_ALL")
    return lambda core, values: found


def _buffer(effect: Callable[[int, bool], Effect], mode_set: bool) -> Callable[[Case], MakeEffect]:
    def make(case: Case) -> MakeEffect:
        number, mode = (_int(case, name) for name in ("buf_id", "mode"))

        def of(core: Core, values: Values) -> Effect:
            chosen = values[0] if values and values[0] is not None else number
            how = values[1] if len(values) > 1 and values[1] is not None else mode
            return effect(int(chosen or 0), bool(how) is mode_set)

        return of

    return make


def _int(case: Case, name: str) -> int | None:
    value = case.op.attrs.get(name)
    return value.value if isinstance(value, Int) else None


# ---- between agents


def _tallies(core: Core) -> tuple[Tally, Tally]:
    flags, arrivals = core.cluster.cross_flags, core.cluster.arrivals
    if not isinstance(flags, Tally) or not isinstance(arrivals, Tally):
        raise RuntimeError("this core is not observed")
    return flags, arrivals


def _send(case: Case) -> MakeEffect:
    def of(core: Core, values: Values) -> Effect:
        flags, arrivals = _tallies(core)
        sent = tuple((core.block, key) for key, old, new in flags.take() if new > old)
        return Send(sent, tuple((key, new) for key, _, new in arrivals.take()))

    return of


def _hear(case: Case) -> MakeEffect:
    def of(core: Core, values: Values) -> Effect:
        flags, arrivals = _tallies(core)
        taken = tuple((core.block, key) for key, old, new in flags.take() if new < old)
        passed = tuple((key[0], new) for key, _, new in arrivals.take())
        return Hear(taken, passed)

    return of


def _meet(case: Case) -> MakeEffect:
    """All cores of a kind: what each has done before it comes is done when the last goes on.

    The one that comes tells so at once, also when it then has to wait.
    """
    where = ("syncall", case.word("core_type"))
    return lambda core, values: Meet((where,), (where,))


def _signals(case: Case, value: Any) -> tuple[Any, ...]:
    """The words of a signal: what is told there is told to whoever looks at them."""
    view = as_view(value, case.type("signal"))
    steps = [step * view.dtype.itemsize for step in view.strides]
    places = (sum(map(mul, at, steps)) for at in product(*map(range, view.shape)))
    return tuple(("signal", id(view.memory), view.address + place) for place in places)


def _notify(case: Case) -> MakeEffect:
    return lambda core, values: Meet((), _signals(case, values[0])[:1])


def _await(case: Case) -> MakeEffect:
    return lambda core, values: Meet(_signals(case, values[0]), ())


def _test(case: Case) -> MakeEffect:
    """Only who sees what it looks for comes after those who told."""
    is_there = collective.TEST.make(case)

    def of(core: Core, values: Values) -> Effect:
        return Meet(_signals(case, values[0]) if is_there(core, *values) else (), ())

    return of


def _group(case: Case) -> tuple[Any, ...] | None:
    """Ranks may run different programs: a collective is known by its name."""
    return ("collective", case.row.name) if case.word("engine") == "CCU" else None


def _gathering(case: Case) -> MakeEffect:
    """Where all ranks come together nobody goes on before the root has done its work."""
    where = _group(case)
    keys = () if where is None else (where,)
    return lambda core, values: Meet(keys, keys)


def arrival_of(case: Case) -> MakeEffect | None:
    """What an operation does to the order of things when it begins to wait."""
    where = _group(case) if id(case.row.body) in _COLLECTIVES else None
    if where is not None:
        return lambda core, values: Meet((), (where,))
    if case.row.body is not config.SYNC_ALL:
        return None
    where = ("syncall", case.word("core_type"))

    def of(core: Core, values: Values) -> Effect | None:
        came = any(new > old for _, old, new in _tallies(core)[1].take())
        return Meet((), (where,)) if came else None

    return of


def _ring(case: Case, out: bool) -> Callable[[Any, Values], tuple[Ring, int]]:
    """The direction of a queue that an operation pushes to or pops from, and who it counts as."""
    names = case.row.operand_names
    if "pipe_handle" in names:
        at = names.index("pipe_handle")
        return lambda core, values: (values[at].ring(core, out), own(core))
    find = by_id(case)
    return lambda core, values: (find(core).ring(core, out), own(core))


def _slot(core: Core, ring: Ring, what: str, number: int) -> tuple[Any, ...]:
    """An entry of a queue is full, or given back. Names come again when nobody needs them."""
    return core.block, id(ring), what, number % (2 * ring.slots)


def _free_slot(core: Core, ring: Ring, number: int) -> tuple[Any, ...]:
    """What lets an entry be filled: the last of the slots that were given back together."""
    if number < ring.slots:
        return ()
    period = ring.slots if ring.slots <= 2 else ring.slots // 2
    return (_slot(core, ring, "free", number - number % period - ring.slots + period - 1),)


def _push(case: Case) -> MakeEffect:
    """A whole tile that both sub-blocks push is the same tile: their writes take turns."""
    ring_of = _ring(case, out=True)
    is_whole = int(case.word("split") or WHOLE) == WHOLE

    def of(core: Core, values: Values) -> Effect:
        ring, me = ring_of(core, values)
        number = ring.pushed[me] - 1
        full = (_slot(core, ring, "full", number),)
        joins = _free_slot(core, ring, number)
        return Meet((*joins, *full) if is_whole else joins, full)

    return of


def _allocate(case: Case) -> MakeEffect:
    ring_of = _ring(case, out=True)

    def of(core: Core, values: Values) -> Effect:
        ring, me = ring_of(core, values)
        return Meet(_free_slot(core, ring, ring.taken[me] - 1), ())

    return of


def _pop(case: Case) -> MakeEffect:
    """A copy out of global memory gives its slot back at once."""
    ring_of = _ring(case, out=False)

    def of(core: Core, values: Values) -> Effect:
        ring, me = ring_of(core, values)
        number = ring.popped[me] - 1
        is_back = ring.freed[me] == number + 1
        back = (_slot(core, ring, "free", number),) if is_back else ()
        return Meet((_slot(core, ring, "full", number),), back)

    return of


def _free(case: Case) -> MakeEffect:
    ring_of = _ring(case, out=False)

    def of(core: Core, values: Values) -> Effect:
        ring, me = ring_of(core, values)
        return Meet((), (_slot(core, ring, "free", ring.freed[me] - 1),))

    return of


# Between the pipes of one agent: what they do to flags and buffer ids needs nothing but the core.
WITHIN: dict[int, Callable[[Case], MakeEffect]] = {
    id(sync.SET_FLAG): _flags(SetFlag, "src_pipe", "dst_pipe"),
    id(sync.WAIT_FLAG): _flags(WaitFlag, "src_pipe", "dst_pipe"),
    id(sync.RECORD_EVENT): _flags(SetFlag, "src_op", "dst_op"),
    id(sync.WAIT_EVENT): _flags(WaitFlag, "src_op", "dst_op"),
    id(sync.BARRIER): _barrier,
    id(sync.DRAIN): _drain,
    id(sync.MEMORY_BARRIER): _memory_barrier,
    id(sync.GET_BUFFER): _buffer(GetBuffer, False),
    id(sync.RELEASE_BUFFER): _buffer(ReleaseBuffer, True),
}
BETWEEN: dict[int, Callable[[Case], MakeEffect]] = {
    id(sync.SEND): _send,
    id(sync.HEAR): _hear,
    id(config.SYNC_ALL): _meet,
    **dict.fromkeys(map(id, (fifo.PUSH_TO, fifo.PUSH)), _push),
    **dict.fromkeys(map(id, (fifo.POP_FROM, fifo.POP)), _pop),
    **dict.fromkeys(map(id, (fifo.ALLOCATE_TO, fifo.ALLOCATE)), _allocate),
    **dict.fromkeys(map(id, (fifo.FREE_FROM, fifo.FREE)), _free),
}
_COLLECTIVES = frozenset(
    id(body)
    for body in (collective.BROADCAST, collective.GATHER, collective.SCATTER, collective.REDUCE)
)
# Between ranks, through global memory.
BEYOND: dict[int, Callable[[Case], MakeEffect]] = {
    id(collective.NOTIFY): _notify,
    id(collective.WAIT): _await,
    id(collective.TEST): _test,
    **dict.fromkeys(_COLLECTIVES, _gathering),
}
SIGNALS = frozenset({id(collective.NOTIFY), id(collective.WAIT), id(collective.TEST)})
EVERYWHERE = frozenset({"signal", "collective"})  # what a key begins with that all launches share
EFFECTS = {**WITHIN, **BETWEEN, **BEYOND}
FLAGS = frozenset(
    id(body) for body in (sync.SET_FLAG, sync.WAIT_FLAG, sync.RECORD_EVENT, sync.WAIT_EVENT)
)
CROSS_CORE = frozenset({id(sync.SEND), id(sync.HEAR)})


def effect_of(case: Case) -> MakeEffect | None:
    """How an operation changes the order of things; None for one that only works on data."""
    make = EFFECTS.get(id(case.row.body))
    return None if make is None else make(case)


def is_ordering(op: Operation) -> bool:
    """It synchronises: without it the same data would be moved and computed."""
    body = op.row.body if op.row is not None else None
    return id(body) in WITHIN or id(body) in CROSS_CORE or body is config.SYNC_ALL


def issuing_pipe(case: Case) -> Callable[[Values], str]:
    """The pipe an operation is issued to. Where semaphores stall the core, a wait is S's.

    The forms whose pipe is an operand name it by its number.
    """
    name = pipe_of(case)
    if case.row.body is sync.DRAIN:  # a barrier of the pipe that its operation runs on, or of all
        name = named_pipe(case, "op") or "ALL"
    if id(case.row.body) not in CROSS_CORE:
        return lambda values: name
    if case.profile.sync.cross_core == "modes" and case.row.body is sync.HEAR:
        return lambda values: "S"
    if "pipe" in case.row.operand_names:
        at = case.row.operand_names.index("pipe")
        return lambda values: (ENUMS["pipe"].word(values[at]) or "S").removeprefix("PIPE_")
    return lambda values: name
