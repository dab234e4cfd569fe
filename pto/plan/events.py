"""The event ids and buffer ids that a function uses, and the lines between which each is in use.

A flag is up from its set to its wait. A wait before its set in a loop takes the set of the previous
iteration, so the flag is up from the set to the end of the loop, and from the start of the loop to
the wait. Flags inside instructions use ids, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pto.ir.graph import Operation
from pto.isa.row.attributes import integer
from pto.isa.row.flag import flag_of
from pto.isa.row.order import Acquire, OfBuffer, OfFlag, SetFlag
from pto.isa.row.pipe_of import inner_flags, pipe_of
from pto.isa.rules.rule import Case
from pto.target.facts import Profile

BUFFER = "buffer id"
Span = tuple[int, int]  # of operations in the order of the text, both included
_Key = tuple[str, int | None]


@dataclass(slots=True)
class Used:
    """One id of a pair of pipes, or one buffer id; `id` is None if it is known only at run time."""

    what: str  # "MTE2 -> V", or BUFFER
    id: int | None
    spans: list[Span] = field(default_factory=list[Span])
    by: dict[str, None] = field(default_factory=dict[str, None])  # instructions that use it
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The ids of one function."""

    used: list[Used]
    available: int  # event ids of a pair of pipes
    buffers: int  # buffer ids
    ops: list[Operation]

    def of(self, resource: str) -> list[Used]:
        return [use for use in self.used if use.what == resource]

    def most(self, resource: str) -> tuple[int, int | None]:
        """The largest number of known ids in use at once, and a line where that happens."""
        numbered = (use for use in self.of(resource) if use.id is not None)
        spans = [span for use in numbered for span in _merged(use.spans)]
        counts = [(sum(a <= at <= b for a, b in spans), -at) for at, _ in spans]
        many, at = max(counts, default=(0, 0))
        return many, self._line(-at)

    def lines(self, used: Used) -> list[tuple[int, int]]:
        """The lines between which an id may be in use."""
        spans = [(self._line(a), self._line(b)) for a, b in _merged(used.spans)]
        return [(a, max(a, b)) for a, b in spans if a is not None and b is not None]

    def _line(self, at: int) -> int | None:
        """The line of an operation, or of the last one before it that has a line."""
        locs = (op.loc for op in reversed(self.ops[: at + 1]))
        return next((loc.line for loc in locs if loc is not None), None)


def occupancy(function: Operation, profile: Profile) -> Occupancy:
    """The event ids and buffer ids that a function uses itself, without its callees."""
    ops = list(function.walk())
    numbers = {op: n for n, op in enumerate(ops)}
    used: dict[_Key, Used] = {}
    for at, op in enumerate(ops):
        case = Case(op, profile)
        order = op.row.order
        if isinstance(order, OfFlag):
            flag = flag_of(case)
            use = _use(used, f"{flag.src} -> {flag.dst}", None if op.operands else flag.id)
            _step(use, at, isinstance(order, SetFlag), op, numbers)
        elif isinstance(order, OfBuffer):
            use = _use(used, BUFFER, integer(op.attrs, order.id))
            use.by.setdefault(pipe_of(case))
            _step(use, at, isinstance(order, Acquire), op, numbers)
        for source, target, number in inner_flags(case):
            use = _use(used, f"{source} -> {target}", number)
            use.by.setdefault(op.name.removeprefix("pto."))
            use.spans.append((at, at))
    ordered = sorted(used.values(), key=lambda each: (each.what, each.id is None, each.id or 0))
    return Occupancy(ordered, profile.sync.event_ids, profile.sync.buffer_ids, ops)


def _use(used: dict[_Key, Used], resource: str, number: int | None) -> Used:
    return used.setdefault((resource, number), Used(resource, number))


def _step(used: Used, at: int, begins: bool, op: Operation, numbers: dict[Operation, int]) -> None:
    """A set or an acquire begins a span, a wait or a release ends it."""
    loop = next((ancestor for ancestor in op.ancestors() if ancestor.is_loop), None)
    end = at if loop is None else numbers[loop] + sum(1 for _ in loop.walk()) - 1
    if begins:
        used.spans.append((at, end))
        used.is_open = True
        return
    if used.is_open:
        first, _ = used.spans[-1]
        used.spans[-1] = first, at
        used.is_open = False
    else:  # the set of the previous iteration, or of another function
        used.spans.append((at if loop is None else numbers[loop], at))


def _merged(spans: Iterable[Span]) -> list[Span]:
    out: list[Span] = []
    for first, last in sorted(spans):
        if out and first <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], last)
        else:
            out.append((first, last))
    return out
