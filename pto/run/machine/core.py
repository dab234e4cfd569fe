"""One AI core: agents (the cube, two vector sub-blocks), their buffers, flags and registers.

An agent runs one program; agents of a core meet only at cross-core flags, queues and GM.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.memory import Memory, Space
from pto.isa.cost.work import Code
from pto.isa.meaning.memory.registers import CORE_TYPES
from pto.isa.meaning.simt.items import Kept
from pto.plan.placement import Placement
from pto.run.machine.limit import Limit
from pto.target.facts import Profile

SIDES = ("cube", "vector", "both")
_LOCAL = tuple(s for s in Space if s.is_local)


class Arrivals(dict[Any, int]):
    """Where the cores of a launch meet: who has come how often, for all of its blocks. Agents that
    come to `syncall` count by their kind, in an array that compiled code shares."""

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
    """What the agents of one core share: cross-core flags, queues, each other's buffers."""

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
        self.end = block + 1  # up to where these may go on with blocks by themselves
        self.ahead: Callable[[int], None] | None = None  # hears which one they have come to
        self.told: list[tuple[int, tuple[str, ...]]] = []  # what blocks before this one printed
        self.say: Callable[[str], None] | None = None  # hears what is printed
        # (instruction, reason) that Python did for compiled code: how often
        self.fallbacks: Counter[tuple[str, str]] = Counter()

    def take_queues(self, other: Cluster) -> None:
        """Those of a core whose agents go on here, empty."""
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
        found = [a for a in self.agents if a.side != "cube" and a.sub == sub]
        if not found:
            raise fail("PTO-M111", f"this core has no vector sub-block {sub}")
        return found[0]

    @property
    def cube(self) -> Core:
        """The agent that owns L1 and the matrix unit."""
        found = [a for a in self.agents if a.side != "vector"]
        if not found:
            raise fail("PTO-M160", "this core runs no cube: nobody owns its L1")
        return found[0]


class Lines(deque[str]):
    """What an agent has printed, the latest of it; `say` hears every line at once."""

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
    """One agent: who it is, where it is in its program, and everything it owns."""

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
        self.printed = Lines()
        self.printed.say = cluster.say
        self.progress = 0  # grows with every wait that was met
        self.code: Code | None = None  # that ran since the last instruction, where it is counted
        self.native: Any = None  # what compiled code of this agent needs, once there is any
        self._buffers: dict[Space, Memory] = {}
        self._slopes: Memory | None = None
        self._kept: Kept | None = None
        cluster.agents.append(self)

    def memory(self, space: Space) -> Memory:
        """A local buffer of this agent, made when first touched."""
        found = self._buffers.get(space)
        if found is None:
            size: int = getattr(self.profile.buffers, space.value)
            if size == 0:
                raise fail("PTO-M112", f"profile {self.profile} has no {space.value} buffer")
            found = Memory(space, size, self.profile.alignment.base)
            if self.device.tap is not None:
                found = self.device.tap.adopt(found, self)
            self._buffers[space] = found
        return found

    @property
    def slopes(self) -> Memory:
        """The segment of the fixpipe buffer that holds slopes of relu, made when first touched."""
        if self._slopes is None:
            self._slopes = Memory(Space.FIXPIPE, self.memory(Space.FIXPIPE).size)
        return self._slopes

    @property
    def kept(self) -> Kept:
        """What work items leave to later launches, made when first used."""
        if self._kept is None:
            self._kept = Kept()
        return self._kept

    def place(self, op: object) -> int:
        """The address the planner gave an allocation, in its buffer."""
        found = self.placement.addresses.get(id(op))
        return self.placement.address(op) if found is None else found

    def turn_to(self, cluster: Cluster) -> None:
        """The same agent in another launch."""
        cluster.agents.append(self)
        self.cluster, self.device, self.blocks = cluster, cluster.device, cluster.blocks
        self.block = cluster.block
        self.printed.say = cluster.say

    @property
    def may_rest(self) -> bool:
        """Whether it can be kept for another launch: of this one it knows nothing then."""
        return not (self.is_spoilt or self.native.abroad)

    def rest(self) -> None:
        """A launch is over: nothing is kept of what the host gave."""
        self.cluster.ahead = self.cluster.say = self.printed.say = None
        self.device = self.cluster.device = None
        self.native.forget()

    @property
    def is_spoilt(self) -> bool:
        """Whether anything may be left of its block in any buffer of its core."""
        return self.native is None or self.native.spoilt

    def renew(self, cluster: Cluster, spoilt: bool) -> None:
        """The same agent for another block, as if it were a new one. Where nothing is `spoilt`,
        compiled code knows what it has left."""
        self.turn_to(cluster)
        self._forget()
        self.printed.clear()
        self.progress = 0
        for memory in self._buffers.values() if spoilt else ():
            memory.data[:] = 0
        if self.native is not None:
            if not spoilt:
                self.native.clear()
            self.native.renew(spoilt)

    def at_block(self, block: int) -> None:
        """Compiled code has gone on to this block."""
        if block != self.block and self.printed:
            self.cluster.told.append((self.block, tuple(self.printed)))
            self.printed.clear()
        self.block = self.cluster.block = block

    def clear(self) -> None:
        """Flags, registers and queues as an agent begins with them."""
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
        """What is zero when a block begins, beside its buffers."""
        found = [] if self._kept is None else [self._kept.counts]
        return found if self._slopes is None else [*found, self._slopes.data]

    @property
    def name(self) -> str:
        """As messages call it: block 0 cube, block 3 vector 1, rank 2 block 0."""
        rank = f"rank {self.device.rank} " if self.device.ranks > 1 else ""
        who = "" if self.side == "both" else f" {self.side}"
        number = f" {self.sub}" if self.side == "vector" and self.subs > 1 else ""
        return f"{rank}block {self.block}{who}{number}"
