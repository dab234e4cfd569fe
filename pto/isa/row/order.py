"""Synchronisation effects of instructions, as data of their rows.

A row has a kind and the names of the attributes or operands that hold pipes and ids. `flag.py` and
`pipe_of.py` resolve them for one operation, `run/order/resolve.py` for one execution. Verifier,
planner, engines and sanitizer test the kind, never the name of an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Order:
    """The base of all kinds."""

    is_fence: ClassVar[bool] = False  # it only orders and has no other effect


@dataclass(frozen=True, slots=True)
class WriteBack(Order):
    """Write back and invalidate the data cache of the scalar unit: the line of an address, or all
    lines if there is no address or an attribute selects all."""

    place: str
    how: str = ""
    all: str = ""


@dataclass(frozen=True, slots=True)
class Publish(Order):
    """Make completed work visible in the memory that an attribute names; for some memories to
    other ranks too."""

    memory: str
    to_ranks: tuple[str, ...]


# ---- between the pipes of one agent


class Within(Order):
    """Orders the pipes of one agent. A program that contains one is explicitly synchronised."""

    is_fence: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class OfFlag(Within):
    """A flag from one pipe to another: attributes that name pipes, or kinds of operation.

    Its id is the operand, where there is one, else the attribute `event_id`.
    """

    src: str = "src_pipe"
    dst: str = "dst_pipe"


class SetFlag(OfFlag):
    """Sets a flag when `src` has done all earlier work."""


class WaitFlag(OfFlag):
    """Blocks `dst` until the flag is set, and clears it."""


@dataclass(frozen=True, slots=True)
class Barrier(Within):
    """A barrier of the pipe that an attribute names; of all pipes if it is absent."""

    pipe: str = "pipe"


class FullFence(Barrier):
    """A barrier of all pipes and of memory; also used in programs without flags of their own."""


@dataclass(frozen=True, slots=True)
class MemoryBarrier(Within):
    """Orders classes of accesses, named by an attribute, inside a vector scope."""

    kind: str = "kind"


@dataclass(frozen=True, slots=True)
class OfBuffer(Within):
    """A buffer id and a mode: operands where they are given, else attributes."""

    id: str = "buf_id"
    mode: str = "mode"


class Acquire(OfBuffer):
    """Blocks the pipe until every earlier release of the id is done; mode 1 does not wait."""


class Release(OfBuffer):
    """Completes with the earlier work of the pipe; mode 1: also of all pipes that hold the id."""


# ---- between agents


class Signal(Order):
    """Semaphores between the agents of a core, and barriers of all cores built on them."""

    is_fence: ClassVar[bool] = True


class SendSignal(Signal):
    """Increments the semaphore."""


class WaitSignal(Signal):
    """Waits for the semaphore, and decrements it."""


@dataclass(frozen=True, slots=True)
class OpenQueue(Order):
    """Sets up one end of a queue, as an SSA value or under an id of its function."""

    in_local: bool = False  # its slots lie in local buffers on every profile


@dataclass(frozen=True, slots=True)
class QueueSlots(Order):
    """Names the local buffer of a queue: its own, or the one of the function at the other end."""

    is_imported: bool = False


@dataclass(frozen=True, slots=True)
class OfQueue(Order):
    """An operation on a queue of tiles between cube and vector side, given by operand or id."""

    handle: str = "pipe_handle"
    id: str = "id"


class Allocate(OfQueue):
    """Takes a free slot."""


class Push(OfQueue):
    """Fills a slot and signals the consumer."""


class Pop(OfQueue):
    """Waits for a full slot."""


class Free(OfQueue):
    """Returns a slot to the producer."""


@dataclass(frozen=True, slots=True)
class CoreBarrier(Order):
    """A barrier of all cores of the kind that an attribute names."""

    kind: str = "core_type"
    is_fence: ClassVar[bool] = True


# ---- between ranks, through global memory


@dataclass(frozen=True, slots=True)
class OfSignal(Order):
    """Signal words in global memory between ranks; they carry no data."""

    signal: str = "signal"


@dataclass(frozen=True, slots=True)
class Notify(OfSignal):
    """Sets the first signal word, or adds to it if an attribute selects addition."""

    how: str = "notifyOp"
    adds: str = "atomic_add"


class WaitUntil(OfSignal):
    """Waits until the signal words satisfy the condition."""


class TestSignal(OfSignal):
    """Tests once whether the signal words satisfy the condition."""


@dataclass(frozen=True, slots=True)
class Gather(Order):
    """A collective; every rank must call it if an attribute has this word."""

    group: str = "group"
    engine: str = "engine"
    meeting: Literal["CCU"] = "CCU"
