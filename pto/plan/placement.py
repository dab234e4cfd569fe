"""What a plan is: where every buffer of every function lies, and how much that takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pto.core.errors import Diagnostic, fail
from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.ir.liveness import Lifetime, Timeline
from pto.plan.buffers import Buffer
from pto.target.facts import Profile
from pto.verify.functions import name_of


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A buffer and where it begins."""

    buffer: Buffer
    start: int

    @property
    def end(self) -> int:
        return self.start + self.buffer.nbytes


@dataclass(frozen=True, slots=True)
class Use:
    """How much of one local buffer a function takes."""

    space: Space
    high: int  # one past the highest byte
    alive: int  # bytes of what is in use where that is most
    fullest: int  # the position where that is
    capacity: int


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPlan:
    """The buffers of one function in program order, and what they come to."""

    function: Operation
    placed: tuple[Placed, ...]
    taken: tuple[Placed, ...]  # by the functions it calls, while they run
    returned: tuple[Placed, ...]  # buffers it hands to its caller
    uses: tuple[Use, ...]
    times: Timeline
    apart: bool = False  # tiles were to share no bytes: flags set by hand order the pipes

    @property
    def name(self) -> str:
        return name_of(self.function)

    def lines(self, alive: Lifetime | None) -> tuple[int, int] | None:
        """The source lines of a lifetime; None where there are none."""
        if alive is None:
            return None
        inside = range(alive.first, alive.last + 1)
        first, last = self._line(inside), self._line(reversed(inside))
        return None if first is None or last is None else (min(first, last), max(first, last))

    def line(self, position: int) -> int | None:
        """The source line of a position."""
        return self._line((position,))

    def _line(self, positions: Iterable[int]) -> int | None:
        """The line of the first of these that has one; ends that the text leaves out have none."""
        found = (self.times.order[n].loc for n in positions)
        return next((loc.line for loc in found if loc is not None), None)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where every planned allocation of a program lies."""

    profile: Profile
    functions: tuple[FunctionPlan, ...]
    warnings: tuple[Diagnostic, ...]
    addresses: Mapping[int, int] = field(repr=False)  # by id of the operation

    @classmethod
    def nothing(cls, profile: Profile) -> Placement:
        """The plan of a program without allocations."""
        return cls(profile, (), (), {})

    def address(self, op: object) -> int:
        """The byte address of an allocation, an Operation, in its buffer."""
        found = self.addresses.get(id(op))
        if found is None:
            name, loc = (op.name, op.loc) if isinstance(op, Operation) else (str(op), None)
            raise fail("PTO-M126", f"'{name}' op has no planned address", loc=loc)
        return found
