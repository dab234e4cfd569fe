"""Queues between the cube and the vector side of a core: slots in a ring, one ring per direction.

This file decides which agent may take, fill, empty and free a slot, and how the two ends find each
other. `queue.py` moves the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.pointer import Pointer
from pto.isa.meaning.cube.accumulator import Epilogue
from pto.isa.meaning.handle.view import handles
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.meaning.machine import Machine
from pto.isa.row.attributes import Int, Raw
from pto.isa.rules.rule import Case

TO_VECTOR, TO_CUBE = 1, 2  # bits of dir_mask
_WAYS = {TO_VECTOR: "cube to vector", TO_CUBE: "vector to cube"}
TAKEN, PUSHED, POPPED, FREED, ENTRY, REGIONS = range(0, 12, 2)  # keys of `state`
Counts = npt.NDArray[np.int64]
WHOLE = 0  # the split of a tile that goes unchanged to one consumer


@dataclass(slots=True)
class QueueRing:
    """One direction of a queue. Entries are counted per agent: by sub-block, the cube as 0."""

    name: str
    way: int
    slots: int
    slot_size: int
    local: int | None  # start of the consumer's buffer in UB or L1; None: it has none
    local_slots: int
    entry: Pointer | GlobalTensor | None  # the first slot in global memory; None: slots are local
    epilogue: Epilogue | None = None  # conversion of pushed accumulators
    number: int = 0  # the id by which instructions name the queue
    # words shared with compiled code: the four counts below, the machine address and size of the
    # first
    # slot in global memory, then the extents of the entry in each slot
    state: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.state = np.zeros(REGIONS + 2 * self.slots, np.int64)

    @property
    def taken(self) -> Counts:
        """Entries taken, by talloc or by a push."""
        return self.state[0:2]

    @property
    def pushed(self) -> Counts:
        return self.state[2:4]

    @property
    def popped(self) -> Counts:
        return self.state[4:6]

    @property
    def freed(self) -> Counts:
        return self.state[6:8]

    def region(self, number: int) -> tuple[int, int]:
        """The extents of an entry."""
        at = REGIONS + 2 * (number % self.slots)
        return int(self.state[at]), int(self.state[at + 1])

    def set_region(self, number: int, region: tuple[int, int]) -> None:
        at = REGIONS + 2 * (number % self.slots)
        self.state[at : at + 2] = region

    def agrees(self, other: QueueRing) -> bool:
        return (self.slots, self.slot_size) == (other.slots, other.slot_size)

    def producers(self, core: Machine, split: int) -> range:
        return range(1) if self.way == TO_VECTOR else vectors(core, split)

    def consumers(self, core: Machine, split: int) -> range:
        return vectors(core, split) if self.way == TO_VECTOR else range(1)

    def room(self, core: Machine, split: int) -> Blocked | None:
        """A slot for the next entry, or the reason why there is none."""
        number = int(self.taken[own(core)])
        least = min(int(self.freed[sub]) for sub in self.consumers(core, split))
        if least >= self.freed_before(number):
            return None
        return Blocked(
            lambda: (
                f"a free slot of {self.name}: {number} of its tiles were pushed, {least} freed, "
                f"it has {self.slots} slots"
            ),
            code="PTO-D207",
        )

    def freed_before(self, number: int) -> int:
        """The number of entries that consumers free before this one is pushed."""
        if number < self.slots:
            return 0
        period = period_of(self.slots)
        return number - number % period - self.slots + period

    def ready(self, core: Machine, split: int) -> Blocked | None:
        """A full slot, or the reason why there is none."""
        number = int(self.popped[own(core)])
        if own(core) not in self.consumers(core, split):
            return Blocked(f"a tile of {self.name}, which sends undivided tiles only to vector 0")
        if all(self.pushed[sub] > number for sub in self.producers(core, split)):
            return None
        late = [sub for sub in self.producers(core, split) if self.pushed[sub] <= number]
        who = "the cube" if self.way == TO_VECTOR else " and ".join(f"vector {n}" for n in late)
        has = "has" if len(late) == 1 else "have"
        return Blocked(f"tile {number} of {self.name}, which {who} {has} not pushed")

    def free(self, core: Machine) -> None:
        if self.freed[own(core)] >= self.popped[own(core)]:
            raise fail("PTO-D190", f"{core.name} frees a slot of {self.name} that it has not taken")
        self.freed[own(core)] += 1

    def slot(self, number: int) -> int:
        """The byte offset of the slot of an entry."""
        return number % self.slots * self.slot_size

    def require_room(self, nbytes: int, subject: object) -> None:
        if nbytes > self.slot_size:
            raise fail(
                "PTO-M192",
                f"{subject} has {nbytes} bytes, a slot of {self.name} only {self.slot_size}",
            )


def vectors(core: Machine, split: int) -> range:
    """The vector sub-blocks that take part: both for a split tile, else as the target defines."""
    return range(core.profile.sync.whole_tile_vectors if split == WHOLE else 2)


def own(core: Machine) -> int:
    """The index under which an agent counts its entries."""
    return core.sub if core.side == "vector" else 0


# ---- both ends of a queue


@dataclass(frozen=True, slots=True)
class Pipe:
    """One end of a queue: its ring for each direction."""

    name: str
    rings: dict[int, QueueRing]

    def ring(self, core: Machine, out: bool) -> QueueRing:
        """The ring an agent pushes to, or pops from."""
        way = TO_VECTOR if (core.side == "vector") is not out else TO_CUBE
        ring = self.rings.get(way)
        if ring is None:
            raise fail("PTO-D191", f"{self.name} has no direction from {_WAYS[way]}")
        return ring


def _numbers(case: Case, *names: str) -> list[int | None]:
    values = [case.op.attrs.get(name) for name in names]
    return [v.value if isinstance(v, Int) else None for v in values]


def _open(core: Machine, opened: QueueRing) -> QueueRing:
    """The ring that both ends share: the first end to open it creates it."""
    entry = opened.entry
    in_gm = None if entry is None else (id(entry.memory), entry.address)
    where = in_gm if opened.local is None else opened.local
    shared: QueueRing = core.cluster.queues.setdefault((opened.way, where), opened)
    if not shared.agrees(opened):
        raise fail(
            "PTO-D192",
            f"one end of {opened.name} has {opened.slots} slots of {opened.slot_size} bytes, "
            f"the other {shared.slots} of {shared.slot_size}",
        )
    return shared


_EPILOGUE = re.compile(r"layout\s*=\s*(\w+)\s*,\s*quant\s*=\s*(\w+)\s*,\s*relu\s*=\s*(\w+)")


def epilogue_of(case: Case) -> Epilogue | None:
    written = case.op.attrs.get("acc_push_epilogue")
    match = _EPILOGUE.search(written.text) if isinstance(written, Raw) else None
    return Epilogue(*match.groups()) if match else None


def period_of(slots: int) -> int:
    """The number of slots that a consumer reports free together: pto-isa TPush.hpp, SyncPeriod."""
    return slots if slots <= 2 else slots // 2


def slot_count(mask: int, number: int | None) -> int:
    """The number of slots of a direction: the attribute, or a share of the total."""
    return number or (4 if mask == TO_VECTOR | TO_CUBE else 8)


def _pipe(core: Machine, name: str, case: Case, gm: Any, buffers: dict[int, int | None]) -> Pipe:
    """A queue with its slots in global memory if `gm` is given, else in local buffers."""
    mask, size, number, local_slots = _numbers(
        case, "dir_mask", "slot_size", "slot_num", "local_slot_num"
    )
    mask, size = mask or 0, size or 0
    slots = slot_count(mask, number)
    start = _global(core, gm)
    rings: dict[int, QueueRing] = {}
    for way in (way for way in _WAYS if mask & way):
        # both directions share the memory: the second one follows the first
        behind = slots * size if way == TO_CUBE and mask & TO_VECTOR else 0
        entry = None if start is None else replace(start, address=start.address + behind)
        label = f"{name}, {_WAYS[way]}"
        ring = QueueRing(label, way, slots, size, buffers[way], local_slots or slots, entry)
        ring.epilogue, ring.number = epilogue_of(case), int(case.word("id") or 0)
        rings[way] = _open(core, ring)
    return Pipe(name, rings)


def _global(core: Machine, gm: Any) -> Pointer | GlobalTensor | None:
    return core.device.pointer(gm, None) if isinstance(gm, int) else gm


def _frontend(case: Case) -> Callable[..., None]:
    """A queue that instructions name by its id."""
    number = int(case.word("id") or 0)

    def init(core: Machine, gm: Any, view: Any, to_vector: int | None, to_cube: int | None) -> None:
        buffers = {TO_VECTOR: to_vector, TO_CUBE: to_cube}
        slots = gm if core.profile.sync.queue_slots == "gm" else None
        pipe = _pipe(core, f"queue {number}", case, slots if view is None else view, buffers)
        core.registers[register_of(number)] = pipe

    return init


def register_of(number: int) -> str:
    return f"queue {number}"


def _lowered(through_global: bool) -> Do:
    """A queue that instructions hold as a value.

    One direction has one buffer; with both, the first is to the vector side and the second back.
    """

    def make(case: Case) -> Callable[..., Pipe]:
        def init(core: Machine, *operands: Any) -> Pipe:
            gm, local, peer = operands if through_global else (None, *operands)
            (mask,) = _numbers(case, "dir_mask")
            back = local if mask == TO_CUBE else peer
            home = local if gm is None else "global memory"
            return _pipe(core, f"the queue at {home}", case, gm, {TO_VECTOR: local, TO_CUBE: back})

        return init

    return Do(make)


def by_id(case: Case) -> Callable[[Machine], Pipe]:
    """How an instruction of the frontend form finds its queue."""
    number = int(case.word("id") or 0)
    key = register_of(number)

    def find(core: Machine) -> Pipe:
        pipe = core.registers.get(key)
        if pipe is None:
            raise fail("PTO-D060", f"queue {number} is used before it is initialised")
        return pipe

    return find


INIT_FRONTEND = Do(_frontend)
INIT_GLOBAL = _lowered(through_global=True)
INIT_LOCAL = _lowered(through_global=False)
RESERVE = handles(lambda case: lambda x: x.placed(case.op))
