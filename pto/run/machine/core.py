"""One AI core: agents (the cube, two vector sub-blocks), their buffers, flags and registers.

An agent runs one program. Agents of a core communicate only by cross-core flags, queues and GM.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.memory import Memory, Space
from pto.ir.graph import Operation
from pto.isa.cost.work import CodeWork
from pto.isa.meaning.memory.registers import CORE_TYPES
from pto.isa.meaning.simt.items import PersistentSlots
from pto.plan.buffers import Placement
from pto.run.machine.limit import Limit
from pto.target.facts import Profile


class Arrivals(dict[Any, int]):
    """Arrival counts of the barriers of a launch, for all of its blocks. Arrivals at `syncall` are
    counted by core type, in an array that compiled code shares."""

    def __init__(self) -> None:
        super().__init__()
        self.come = np.zeros(len(CORE_TYPES), np.int64)

    def __getitem__(self, key: Any) -> int:
        return int(self.come[CORE_TYPES.index(key)]) if key in CORE_TYPES else self.get(key, 0)

    def __setitem__(self, key: Any, value: int) -> None:
        if key in CORE_TYPES:
            self.come[CORE_TYPES.index(key)] = value
        else:
            super().__setitem__(key, value)


class Cluster:
    """State that the agents of one core share: cross-core flags, queues, each other's buffers."""

    def __init__(
        self, device: Any, block: int, blocks: int, arrivals: Arrivals | None = None
    ) -> None:
        self.device: Any = device
        self.block = block
        self.blocks = blocks
        self.agents: list[Core] = []
        self.cross_flags: MutableMapping[Any, int] = defaultdict(int)
        self.arrivals: MutableMapping[Any, int] = Arrivals() if arrivals is None else arrivals
        self.queues: dict[Any, Any] = {}
        self.limit: Limit | None = None  # of the launch
        self.native: Any = None  # the coroutines of compiled agents
        self.end = block + 1  # compiled agents may run the blocks before this one without returning
        self.ahead: Callable[[int], None] | None = None  # called with the block they have reached
        self.printed_before: list[
            tuple[int, tuple[str, ...]]
        ] = []  # printed lines of earlier blocks
        self.say: Callable[[str], None] | None = None  # called with each printed line
        # (instruction, reason) of each host fallback of compiled code, and how often it ran
        self.fallbacks: Counter[tuple[str, str]] = Counter()

    def take_queues(self, other: Cluster) -> None:
        """Take over the queues of a finished core, emptied."""
        self.queues = other.queues
        for ring in self.queues.values():
            ring.state[:] = 0

    @property
    def vectors(self) -> int:
        """How many vector sub-blocks run."""
        return sum(a.side == "vector" for a in self.agents)

    @property
    def has_cube(self) -> bool:
        """False in a launch of vector code alone."""
        return any(a.side != "vector" for a in self.agents)

    def vector(self, sub: int) -> Core:
        """The vector sub-block of this number."""
        matching = [a for a in self.agents if a.side != "cube" and a.sub == sub]
        if not matching:
            raise fail("PTO-M111", f"this core has no vector sub-block {sub}")
        return matching[0]

    @property
    def cube(self) -> Core:
        """The agent that owns L1 and the matrix unit."""
        matching = [a for a in self.agents if a.side != "vector"]
        if not matching:
            raise fail("PTO-M160", "this core runs no cube, so it has no L1")
        return matching[0]


class PrintedLines(deque[str]):
    """The latest lines that an agent has printed; `say` is called with every line at once."""

    def __init__(self, lines: Iterable[str] = (), maxlen: int | None = 10_000) -> None:
        super().__init__(lines, maxlen)
        self.say: Callable[[str], None] | None = None

    def append(self, line: str) -> None:
        super().append(line)
        if self.say is not None:
            self.say(line)

    def extend(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.append(line)


class Core:
    """One agent: its identity, its position in its program, and everything it owns."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        side: str,
        sub: int,
        subs: int,
        placement: Placement | None = None,
    ) -> None:
        self.cluster = cluster
        self.profile = profile
        self.placement = placement or Placement.nothing(profile)
        self.side = side
        self.sub = sub
        self.subs = subs
        self.block = cluster.block
        self.blocks = cluster.blocks
        self.device: Any = cluster.device
        self.flags: MutableMapping[tuple[str, str, int], int] = defaultdict(int)
        self.registers: MutableMapping[str, Any] = {}
        self.printed = PrintedLines()
        self.printed.say = cluster.say
        self.progress = 0  # counts the waits that have ended
        # code that ran since the last instruction, where it is counted
        self.code: CodeWork | None = None
        self.native: Any = None  # state of compiled code of this agent, made on first use
        self._buffers: dict[Space, Memory] = {}
        self._slopes: Memory | None = None
        self._kept: PersistentSlots | None = None
        cluster.agents.append(self)

    def memory(self, space: Space) -> Memory:
        """A local buffer of this agent, allocated on first use."""
        memory = self._buffers.get(space)
        if memory is None:
            size: int = getattr(self.profile.buffers, space.value)
            if size == 0:
                raise fail("PTO-M112", f"profile {self.profile} has no {space.value} buffer")
            memory = Memory(space, size, self.profile.alignment.base)
            if self.device.tap is not None:
                memory = self.device.tap.adopt(memory, self)
            self._buffers[space] = memory
        return memory

    @property
    def slopes(self) -> Memory:
        """The segment of the fixpipe buffer for the slopes of relu, allocated on first use."""
        if self._slopes is None:
            self._slopes = Memory(Space.FIXPIPE, self.memory(Space.FIXPIPE).size)
        return self._slopes

    @property
    def kept(self) -> PersistentSlots:
        """Values that work items keep for later launches, allocated on first use."""
        if self._kept is None:
            self._kept = PersistentSlots()
        return self._kept

    def place(self, op: Operation) -> int:
        """The address the planner gave an allocation, in its buffer."""
        address = self.placement.addresses.get(op)
        return self.placement.address(op) if address is None else address

    def reuse_for(self, cluster: Cluster) -> None:
        """Use this agent for another launch."""
        cluster.agents.append(self)
        self.cluster = cluster
        self.device = cluster.device
        self.blocks = cluster.blocks
        self.block = cluster.block
        self.printed.say = cluster.say

    @property
    def may_rest(self) -> bool:
        """True if this agent holds nothing of its launch, so that another launch can use it."""
        return not (self.is_dirty or self.native.global_rings)

    def rest(self) -> None:
        """Drop all references to arguments of the launch that has ended."""
        self.cluster.ahead = self.cluster.say = self.printed.say = None
        self.device = self.cluster.device = None
        self.native.release_arrays()

    @property
    def is_dirty(self) -> bool:
        """True if a buffer of the core may hold data of the last block."""
        return self.native is None or self.native.dirty

    def renew(self, cluster: Cluster, dirty: bool) -> None:
        """Reset for another block. If not `dirty`, compiled code clears only what it wrote."""
        self.reuse_for(cluster)
        self._forget()
        self.printed.clear()
        self.progress = 0
        for memory in self._buffers.values() if dirty else ():
            memory.data[:] = 0
        if self.native is not None:
            if not dirty:
                self.native.clear()
            self.native.renew(dirty)

    def at_block(self, block: int) -> None:
        """Record that compiled code has reached this block."""
        if block != self.block and self.printed:
            self.cluster.printed_before.append((self.block, tuple(self.printed)))
            self.printed.clear()
        self.block = self.cluster.block = block

    def clear(self) -> None:
        """Reset flags, registers and queues to their initial state."""
        self._forget()
        self.cluster.cross_flags.clear()
        self.cluster.queues.clear()

    def _forget(self) -> None:
        self.flags.clear()
        self.registers.clear()
        for array in self.counts_and_slopes:
            array[:] = 0

    @property
    def counts_and_slopes(self) -> list[npt.NDArray[Any]]:
        """Arrays other than buffers that are zero at the start of a block."""
        arrays = [] if self._kept is None else [self._kept.counts]
        return arrays if self._slopes is None else [*arrays, self._slopes.data]

    @property
    def name(self) -> str:
        """As messages call it: block 0 cube, block 3 vector 1, rank 2 block 0."""
        rank = f"rank {self.device.rank} " if self.device.ranks > 1 else ""
        who = "" if self.side == "both" else f" {self.side}"
        number = f" {self.sub}" if self.side == "vector" and self.subs > 1 else ""
        return f"{rank}block {self.block}{who}{number}"
