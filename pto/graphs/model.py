"""The graph: tasks, the tensors they use, and the edges that order them.

A task launches one kernel, or a cube kernel together with vector kernels, on some blocks. An
argument names a strided region of a buffer and declares how the task uses it. An edge
carries the reason why it exists. How a graph is built or executed does not live here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Literal, Protocol

from pto.core.errors import Loc, Note

Kind = Literal["task", "dummy", "allocation"]


class Use(Enum):
    """How a task declares to use a tensor."""

    IN = "in"
    OUT = "out"  # a buffer that the task creates
    INOUT = "inout"
    OVERWRITE = "overwrite"  # an existing buffer, written without being read
    UNTRACKED = "untracked"  # the runtime derives no edge from it

    @property
    def writes(self) -> bool:
        return self in (Use.OUT, Use.INOUT, Use.OVERWRITE)


class Reason(Enum):
    """Why one task waits for another."""

    CREATES = "creates the buffer"
    WRITES = "writes the tensor"
    READS = "reads the tensor before it is overwritten"
    EXPLICIT = "is named as a dependency"


class SourcePlace(Protocol):
    """A line of the program that built the graph; it is looked up when a message needs it."""

    @property
    def loc(self) -> Loc | None: ...
    @property
    def callers(self) -> Sequence[Loc]:
        """Lines of the same program that led there, innermost first."""
        ...


@dataclass(slots=True)
class GraphBuffer:
    """Bytes of global memory."""

    number: int
    address: int
    nbytes: int
    name: str = ""  # of an argument of the graph
    creator: int | None = None  # the task that the buffer belongs to
    scope: int = 0  # where it was created
    initial: bool = True  # its bytes are defined before any task runs
    use: Use | None = None  # how the caller of the graph declares an argument

    @property
    def title(self) -> str:
        return self.name or f"buffer {self.number}"


@dataclass(frozen=True, slots=True)
class TensorBox:
    """A strided box of elements in a buffer; offsets and strides count elements."""

    buffer: int
    start: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    element: str = ""

    @property
    def is_empty(self) -> bool:
        return 0 in self.extents

    @property
    def end(self) -> int:
        """One past the last element."""
        last = sum((n - 1) * s for n, s in zip(self.extents, self.strides, strict=True))
        return self.start if self.is_empty else self.start + last + 1

    @property
    def span(self) -> tuple[int, int]:
        """The first byte, and one past the last."""
        return self.start * self.itemsize, self.end * self.itemsize

    def overlaps(self, other: TensorBox) -> bool:
        """True unless a tensor map can determine that the regions share no byte.

        Regions of one row-major box are compared axis by axis, all other regions by their spans.
        """
        if self.buffer != other.buffer or self.is_empty or other.is_empty:
            return False
        (low, high), (first, last) = self.span, other.span
        if high <= first or last <= low:
            return False
        axes = _axes(self, other)
        return axes is None or all(x < y + m and y < x + n for x, n, y, m in axes)

    def covers(self, other: TensorBox) -> bool:
        """True if every element of `other` is certainly an element of this region."""
        axes = _axes(self, other) if self.buffer == other.buffer else None
        return axes is not None and all(x <= y and y + m <= x + n for x, n, y, m in axes)


def _axes(a: TensorBox, b: TensorBox) -> list[tuple[int, int, int, int]] | None:
    """(first index, extent) of both regions along each axis of the row-major box they share.

    None if they have no such box, or one of them wraps around the end of an axis.
    """
    strides = a.strides
    if strides != b.strides or a.itemsize != b.itemsize or not strides or strides[-1] != 1:
        return None
    if any(not inner or outer % inner for outer, inner in pairwise(strides)):
        return None
    out: list[tuple[int, int, int, int]] = []
    first = a.start
    second = b.start
    span = 0
    for n, stride in enumerate(strides):
        (x, first), (y, second) = divmod(first, stride), divmod(second, stride)
        span = strides[n - 1] // stride if n else 1 << 62
        if x + a.extents[n] > span or y + b.extents[n] > span:
            return None
        out.append((x, a.extents[n], y, b.extents[n]))
    return out


@dataclass(frozen=True, slots=True)
class TaskArg:
    """One tensor of a task."""

    region: TensorBox
    use: Use
    tracked: bool = True  # False: only its creator orders it


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition read when the task is ready; the task runs only if it holds."""

    address: int
    width: int
    comparison: str  # ==, !=, >, <, >=, <=
    target: int


@dataclass(slots=True)
class Task:
    """One submission."""

    number: int
    kind: Kind
    kernels: tuple[int | None, int | None, int | None]  # cube, first vector, second vector
    name: str
    blocks: int = 1
    arguments: Sequence[TaskArg] = ()
    scalars: Sequence[int] = ()
    words: int = 0  # the address of the kernel's argument words
    where: SourcePlace | None = None
    scope: int = 0
    is_manual: bool = False  # submitted where the runtime derives no edges
    predicate: Predicate | None = None
    was_skipped: bool = False

    @property
    def title(self) -> str:
        return f"task {self.number} ({self.name})"

    @property
    def loc(self) -> Loc | None:
        return None if self.where is None else self.where.loc

    def submitted(self, text: str = "{} is submitted here") -> Note:
        """A note at the line of the submission, with the lines that called it."""
        callers = () if self.where is None else self.where.callers
        lines = ", ".join(f"line {loc.line}" for loc in callers)
        return Note(text.format(self.title) + (f", called from {lines}" * bool(lines)), self.loc)


@dataclass(frozen=True, slots=True)
class Edge:
    """`after` begins when `before` has ended."""

    before: int
    after: int
    reason: Reason


@dataclass(slots=True)
class GraphScope:
    """A block of the orchestration; buffers created inside are released at its end."""

    number: int
    parent: int | None
    is_manual: bool
    where: SourcePlace | None = None
    end: int | None = None  # the number of the next task when it ended


@dataclass(frozen=True, slots=True)
class HostUse:
    """An element that the orchestration reads or writes while it submits tasks."""

    buffer: int
    bytes: tuple[int, int]  # the first, and one past the last
    writes: bool
    submitted: int  # tasks before it
    waited: Sequence[int]  # tasks that the runtime waits for
    where: SourcePlace


@dataclass(slots=True)
class Graph:
    """Everything that was submitted, in order."""

    tasks: list[Task] = field(default_factory=list[Task])
    buffers: dict[int, GraphBuffer] = field(default_factory=dict[int, GraphBuffer])
    edges: dict[tuple[int, int], Edge] = field(default_factory=dict[tuple[int, int], Edge])
    scopes: list[GraphScope] = field(default_factory=list[GraphScope])
    accesses: list[HostUse] = field(default_factory=list[HostUse])

    def connect(self, before: int, after: int, reason: Reason) -> None:
        """Add an edge; the first reason stays."""
        if before != after:
            self.edges.setdefault((before, after), Edge(before, after, reason))

    def ancestors(self) -> list[int]:
        """For each task the set of tasks that end before it begins, as bits of an integer.

        They end before by edges, or the orchestration waited for them before it submitted the task.
        """
        incoming: list[list[int]] = [[] for _ in self.tasks]
        for before, after in self.edges:
            incoming[after].append(before)
        waited: dict[int, list[int]] = defaultdict(list)
        for use in self.accesses:
            waited[use.submitted] += use.waited
        before_each: list[int] = []
        ended = 0  # the tasks that the orchestration has waited for, and those before them
        for number, edges in enumerate(incoming):
            for before in waited.get(number, ()):
                ended |= before_each[before] | (1 << before)
            bits = ended
            for before in edges:
                bits |= before_each[before] | (1 << before)
            before_each.append(bits)
        return before_each
