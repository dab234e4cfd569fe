"""What an instruction does to the order of things, as data of its row.

A row says which kind it is and which attributes or operands name pipes and ids; nothing is read
here. `flag.py` and `pipe_of.py` resolve the names of one operation, `run/order/resolve.py` what one
execution does. Verifier, planner, engines and sanitizer ask for the kind, never for a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Order:
    """The base of all kinds."""

    is_fence: ClassVar[bool] = False  # it orders and does nothing else


@dataclass(frozen=True, slots=True)
class Flush(Order):
    """Lines of the data cache of the scalar unit are written back and dropped: the one at a place,
    or all, as where there is no place or an attribute says so."""

    place: str
    how: str = ""
    all: str = ""


@dataclass(frozen=True, slots=True)
class Publish(Order):
    """What the scalar unit has waited for is visible in the memory that an attribute names, to
    other ranks too, where it is one of these."""

    memory: str
    to_ranks: tuple[str, ...]


# ---- between the pipes of one agent


@dataclass(frozen=True, slots=True)
class Within(Order):
    """Orders pipes of one agent: a program with such an operation orders its own pipes."""

    is_fence: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class OfFlag(Within):
    """A flag from one pipe to another: attributes that name pipes, or kinds of operation.

    Its id is the operand, where there is one, else the attribute `event_id`.
    """

    src: str = "src_pipe"
    dst: str = "dst_pipe"


@dataclass(frozen=True, slots=True)
class SetFlag(OfFlag):
    """Raised once `src` has done all earlier work."""


@dataclass(frozen=True, slots=True)
class WaitFlag(OfFlag):
    """Holds `dst` until the flag is raised, and takes it down."""


@dataclass(frozen=True, slots=True)
class Barrier(Within):
    """Of the pipe that an attribute names; of all where it is absent."""

    pipe: str = "pipe"


@dataclass(frozen=True, slots=True)
class Fence(Barrier):
    """Of all pipes and of memory: also programs that leave order to a compiler have it."""


@dataclass(frozen=True, slots=True)
class MemoryBarrier(Within):
    """Inside a vector scope, between classes of accesses, which an attribute names."""

    kind: str = "kind"


@dataclass(frozen=True, slots=True)
class OfBuffer(Within):
    """A buffer id and a mode: operands where they are given, else attributes."""

    id: str = "buf_id"
    mode: str = "mode"


@dataclass(frozen=True, slots=True)
class Acquire(OfBuffer):
    """Holds the pipe until every earlier release of the id is done; mode 1 does not wait."""


@dataclass(frozen=True, slots=True)
class Release(OfBuffer):
    """Done when the earlier work of the pipe is; mode 1: also that of pipes that hold the id."""


# ---- between agents


@dataclass(frozen=True, slots=True)
class Signal(Order):
    """Semaphores of a core's agents, and meetings of all cores through them."""

    is_fence: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Send(Signal):
    """Counts up."""


@dataclass(frozen=True, slots=True)
class Hear(Signal):
    """Waits for a count, and counts down."""


@dataclass(frozen=True, slots=True)
class Open(Order):
    """Sets up one end of a queue: as a value, else under an id of its function."""

    in_local: bool = False  # its slots lie in local buffers on every profile


@dataclass(frozen=True, slots=True)
class Slots(Order):
    """Names the local buffer of a queue: its own, or that of the function at the other end."""

    is_imported: bool = False


@dataclass(frozen=True, slots=True)
class OfQueue(Order):
    """A queue of tiles between cube and vector side: by an operand, else by its id."""

    handle: str = "pipe_handle"
    id: str = "id"


@dataclass(frozen=True, slots=True)
class Allocate(OfQueue):
    """Takes a free slot."""


@dataclass(frozen=True, slots=True)
class Push(OfQueue):
    """Fills a slot and tells the consumer."""


@dataclass(frozen=True, slots=True)
class Pop(OfQueue):
    """Waits for a full slot."""


@dataclass(frozen=True, slots=True)
class Free(OfQueue):
    """Gives a slot back to the producer."""


@dataclass(frozen=True, slots=True)
class Meet(Order):
    """Nobody goes on before all cores of the kind an attribute names are here."""

    kind: str = "core_type"
    is_fence: ClassVar[bool] = True


# ---- between ranks, through global memory


@dataclass(frozen=True, slots=True)
class OfSignal(Order):
    """Words in global memory that ranks tell each other something by: no data."""

    signal: str = "signal"


@dataclass(frozen=True, slots=True)
class Notify(OfSignal):
    """Changes the first of the words: sets it, or adds to it where an attribute says so."""

    how: str = "notifyOp"
    adds: str = "atomic_add"


@dataclass(frozen=True, slots=True)
class Await(OfSignal):
    """Holds until the words are as asked."""


@dataclass(frozen=True, slots=True)
class Poll(OfSignal):
    """Asks once whether they are."""


@dataclass(frozen=True, slots=True)
class Gather(Order):
    """A collective that every rank calls where an attribute has this word."""

    group: str = "group"
    engine: str = "engine"
    meeting: Literal["CCU"] = "CCU"
