"""A memory plan: the address of every buffer of every function, and the memory it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pto.core.errors import Diagnostic, fail
from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.ir.liveness import Lifetime, Timeline
from pto.plan.buffers import LocalBuffer
from pto.target.facts import Profile
from pto.verify.functions import name_of


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A buffer and its start."""

    buffer: LocalBuffer
    start: int

    @property
    def end(self) -> int:
        return self.start + self.buffer.nbytes


@dataclass(frozen=True, slots=True)
class BufferUse:
    """The use of one local buffer by a function."""

    space: Space
    high: int  # one past the highest byte
    alive: int  # live bytes at the fullest position
    fullest: int  # that position
    capacity: int


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPlan:
    """The placed buffers of one function in program order, and their memory use."""

    function: Operation
    placed: tuple[Placed, ...]
    taken: tuple[Placed, ...]  # by called functions, during the calls
    returned: tuple[Placed, ...]  # buffers that it returns
    uses: tuple[BufferUse, ...]
    times: Timeline

    @property
    def name(self) -> str:
        return name_of(self.function)

    def lines(self, alive: Lifetime | None) -> tuple[int, int] | None:
        """The source lines of a lifetime; None if there are none."""
        if alive is None:
            return None
        inside = range(alive.first, alive.last + 1)
        first, last = self._line(inside), self._line(reversed(inside))
        return None if first is None or last is None else (min(first, last), max(first, last))

    def line(self, position: int) -> int | None:
        """The source line of a position."""
        return self._line((position,))

    def _line(self, positions: Iterable[int]) -> int | None:
        """The line of the first position that has one; implicit terminators have none."""
        found = (self.times.order[n].loc for n in positions)
        return next((loc.line for loc in found if loc is not None), None)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The address of every planned allocation of a program."""

    profile: Profile
    functions: tuple[FunctionPlan, ...]
    warnings: tuple[Diagnostic, ...]
    addresses: Mapping[Operation, int] = field(repr=False)

    @classmethod
    def nothing(cls, profile: Profile) -> Placement:
        """The plan of a program without allocations."""
        return cls(profile, (), (), {})

    def address(self, op: Operation) -> int:
        """The byte address of an allocation in its buffer."""
        found = self.addresses.get(op)
        if found is None:
            raise fail("PTO-M126", f"'{op.name}' op has no planned address", loc=op.loc)
        return found
