"""The interface of the core that executes a meaning. `run/machine/core.py` implements it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, MutableSequence
from typing import Any, Protocol

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.target.facts import Profile


class GlobalMemory(Protocol):
    """Converts global addresses to numbers and back; knows this rank and its peers' memory."""

    rank: int

    @property
    def ranks(self) -> int: ...
    @property
    def meetings(self) -> MutableMapping[Any, Any]:
        """State that the ranks of one world share about their collective calls."""
        ...

    def address(self, pointer: Pointer) -> int: ...
    def pointer(self, address: int, elem: DType | None) -> Pointer: ...
    def owner(self, memory: Memory) -> int | None:
        """The rank that owns this memory."""
        ...

    def combined(self, target: GlobalTensor, values: Any) -> None:
        """Report that values were added to memory that ranks may share."""
        ...

    def twin(self, memory: Memory, rank: int) -> Memory:
        """The memory at the same offset of another rank's heap."""
        ...


class CoreState(Protocol):
    """State shared by the agents of one core."""

    cross_flags: MutableMapping[Any, int]
    arrivals: MutableMapping[Any, int]  # shared by all blocks of a launch
    queues: MutableMapping[Any, Any]

    @property
    def vectors(self) -> int:
        """The number of vector sub-blocks that run."""
        ...

    @property
    def has_cube(self) -> bool: ...
    def vector(self, sub: int) -> Machine: ...
    @property
    def cube(self) -> Machine: ...


class Machine(Protocol):
    """One agent of a core."""

    profile: Profile
    side: str  # cube, vector or both
    block: int
    blocks: int
    sub: int
    subs: int
    flags: MutableMapping[tuple[str, str, int], int]
    registers: MutableMapping[str, Any]
    printed: MutableSequence[str]

    @property
    def cluster(self) -> CoreState: ...
    @property
    def device(self) -> GlobalMemory: ...
    @property
    def name(self) -> str: ...
    def memory(self, space: Space) -> Memory: ...
    @property
    def slopes(self) -> Memory:
        """The segment of the fixpipe buffer that holds the slopes of leaky relu."""
        ...

    def place(self, op: Any) -> int:
        """The address the planner gave an allocation."""
        ...


class NumberWords:
    """Words about numbers, for meanings that run on arrays; compiled code has its own."""

    __slots__ = ()

    def choose(self, fact: bool, a: Callable[[], int], b: int) -> int:
        """The number a() if the fact holds, else b."""
        return a() if fact else b

    def require(self, fact: bool, error: Callable[[], PtoError]) -> None:
        """Raise the finding if the fact does not hold. Nothing has been written yet."""
        if not fact:
            raise error()
