"""Statements and fusion groups: instructions that work row by row and are processed some rows at a
time.

A statement is data: accesses, the function of an element or a fold, the size, and conditions. A
group takes a statement by the rules of `Group.joined`; `strips.py` emits the loop. Accesses are
disjoint or equal; otherwise another step could see a row too early.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from pto.core.dtypes import DType
from pto.core.layout import Mode
from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Fold
from pto.run.jit.emit.emitter import Emitter
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import strided
from pto.run.jit.emit.tile.strided import Access, Strided
from pto.run.jit.llvm.condition import TRUE, Condition, all_of
from pto.run.jit.llvm.text import Text, Val
from pto.run.jit.runtime.values import ScalarValue, TileDesc

BOX = 16  # columns
FAR = 16 << 20  # bytes of an array that is written past the cache: it would not stay there
MOST = 32  # instructions of a group: longer functions take LLVM longer than they save

Source = tuple[Access | ScalarValue, np.dtype[Any]]  # and as what it is read


class Step(NamedTuple):
    """`dst = fn(sources)`, or a fold of its source where there is a body."""

    key: str
    dst: Access
    sources: tuple[Source, ...]
    fn: Any = None
    dtype: DType | None = None
    fold: tuple[Fold, np.dtype[Any]] | None = None

    @property
    def reads(self) -> list[Access]:
        return [ref for ref, _ in self.sources if isinstance(ref, Access)]

    @property
    def accesses(self) -> list[Access]:
        return [self.dst, *self.reads]

    @property
    def identity(self) -> Hashable:
        """Equal for steps with the same code: `key` stands for the function."""
        return self.key, self.dst, self.sources, self.dtype

    def mapped(self, change: Callable[[Access], Access]) -> Step:
        """The step with other accesses."""
        sources = [
            (change(ref) if isinstance(ref, Access) else ref, kind) for ref, kind in self.sources
        ]
        return Step(self.key, change(self.dst), tuple(sources), *self[3:])


class Statement(NamedTuple):
    """A step on rows x cols elements. `guard`: the run-time condition of executing it in one
    loop with others. `unfusible`: why it never is in one."""

    step: Step
    rows: Val
    cols: Val
    guard: Condition = TRUE
    unfusible: str = ""

    @property
    def size(self) -> tuple[Val, Val]:
        return self.rows, self.cols

    @property
    def swapped(self) -> Statement:
        """The same with rows and columns exchanged."""
        step = self.step.mapped(lambda a: a.with_layout(a.layout.swapped))
        return self._replace(step=step, rows=self.cols, cols=self.rows)

    def as_values(self, rows: Val) -> Statement | None:
        """One value for each of so many rows, which follow each other; None if it is not that."""
        if rows == 1 or self.step.fold is not None or self.size not in ((rows, 1), (1, rows)):
            return None
        found = self if self.size == (rows, 1) else self.swapped
        if any(ref.layout.rows != strided.axis(1) for ref in found.step.accesses):
            return None
        step = found.step.mapped(
            lambda a: a.with_layout(Strided(a.dtype, strided.axis(1), strided.axis(0)))
        )
        return found._replace(step=step)

    @property
    def is_by_rows(self) -> bool:
        """True if every access has rows of contiguous elements, or of boxes, at a known place."""
        return not self.unfusible and all(map(_has_rows, self.step.accesses))


def _has_rows(ref: Access) -> bool:
    down, (inner, *more) = ref.layout.rows, ref.layout.cols
    in_boxes = inner == Mode(BOX, 1) and len(more) == 1 and more[0].stride != 0
    whole = inner.stride == 1 or (inner.stride == 0 and ref.memory >= 0)
    plain = len(down) == 1 and whole and (not more or in_boxes)
    return plain and not ref.dtype.is_packed and isinstance(ref.address, int)


class Prepared(OpContext):
    """The context of an operation that is described as a statement, and perhaps emitted later:
    conditions and accesses are collected. LLVM removes arithmetic without a use."""

    def __init__(self, emitter: Emitter, op: Operation) -> None:
        super().__init__(emitter, op)
        self.needs = TRUE
        self._accesses: list[Callable[[], None]] = []

    def fault_unless(self, condition: Condition) -> None:
        self.needs = self.needs & condition

    def log_access(self, *given: Val, writes: bool) -> None:
        self._accesses.append(lambda: self.e.log_access(*given, writes=writes))

    def commit(self) -> None:
        """Emit what was collected."""
        for log in self._accesses:
            log()
        self.e.fault(self.op, self.needs)


@dataclass(frozen=True, slots=True)
class Group:
    """Steps on rows x cols elements; `guard` is the run-time condition of fusing them."""

    rows: Val
    cols: Val
    steps: list[Step] = field(default_factory=list[Step])
    guard: Condition = TRUE

    def joined(self, x: Text, found: Statement) -> Group | None:
        """The group with one more step; None if the step does not fit, or depends on all rows of
        another one."""
        if found.size != self.size:
            values = found.as_values(self.rows)
            if values is None:
                return None
            found = values
        step = found.step
        between = [pair for other in self.steps for pair in _pairs(step, other)]
        pairs = (*between, *((step.dst, ref) for ref in step.reads))
        many = len(self.steps) == MOST
        if many or not found.is_by_rows or any(a.collides(b) for a, b in pairs):
            return None
        apart = (  # a step may write exactly the elements that another one has accessed
            self._apart(x, a, b, exactly=a is step.dst)
            for a, b in between
            if a.memory < 0 and b.memory < 0
        )
        return replace(
            self, steps=[*self.steps, step], guard=all_of(self.guard, found.guard, *apart)
        )

    @property
    def size(self) -> tuple[Val, Val]:
        return self.rows, self.cols

    @property
    def refs(self) -> list[Access]:
        return [ref for step in self.steps for ref in step.accesses]

    def reading(self, x: Text, owner: int, row: Access, guard: Condition) -> Group:
        """Read a row of a view instead of a private tile; no step may store there."""
        stored = [step.dst for step in self.steps if step.dst.memory < 0]
        apart = [self._apart(x, dst, row, exactly=False) for dst in stored]
        read = (step.mapped(lambda a: row if a.private == owner else a) for step in self.steps)
        steps = [new._replace(dst=old.dst) for new, old in zip(read, self.steps, strict=True)]
        return replace(self, steps=steps, guard=all_of(self.guard, guard, *apart))

    def is_plain(self, owner: int) -> bool:
        """True if all refs of a private tile are the same access."""
        return len({ref.identity for ref in self.refs if ref.private == owner}) < 2

    def placed(self, here: Collection[int]) -> Group:
        """The group with only these tiles private."""
        return replace(
            self, steps=[step.mapped(lambda a: a.private_in(here)) for step in self.steps]
        )

    def overlaps(self) -> bool:
        """True if two accesses share bytes but are not the same elements."""
        pairs = [pair for two in combinations(self.steps, 2) for pair in _pairs(*two)]
        pairs += [(step.dst, ref) for step in self.steps for ref in step.reads]
        return any(a.collides(b) for a, b in pairs)

    def leaves_alone(self, tile: TileDesc) -> bool:
        """True if no step stores to a view, or accesses the bytes of a tile at a known address."""
        if any(step.dst.memory < 0 for step in self.steps):
            return False
        first = int(tile.address)
        end = first + (tile.type.nbytes if tile.pitch is None else strided.extent(tile))
        return not any(ref.overlaps(tile.memory, first, end) for ref in self.refs)

    def _apart(self, x: Text, a: Access, b: Access, *, exactly: bool) -> Condition:
        """True if two views share no element; or all of them, if `exactly` allows it."""
        starts = [x.new(f"ptrtoint ptr {v.pointer} to i64") for v in (a, b)]
        steps = [x.mul(v.row_stride, v.dtype.itemsize) for v in (a, b)]
        widths = [x.mul(self.cols, v.dtype.itemsize) for v in (a, b)]
        ends = [
            x.add(start, x.add(x.mul(x.sub(self.rows, 1), step), width))
            for start, step, width in zip(starts, steps, widths, strict=True)
        ]
        p, q = starts
        found = x.compare("ule", ends[0], q) | x.compare("ule", ends[1], p)
        same = x.compare("eq", steps[0], steps[1])
        if exactly and a.dtype.itemsize == b.dtype.itemsize:
            found = found | (same & x.compare("eq", p, q))
        # side by side in the same rows
        far = x.new(f"select i1 {x.compare('ult', p, q)}, i64 {x.sub(q, p)}, i64 {x.sub(p, q)}")
        pitch = x.new(f"select i1 {x.compare('eq', steps[0], 0)}, i64 1, i64 {steps[0]}")
        rest = x.new(f"urem i64 {far}, {pitch}")
        wide = x.mul(self.cols, max(a.dtype.itemsize, b.dtype.itemsize))
        beside = x.compare("uge", rest, wide) & x.compare("ule", x.add(rest, wide), steps[0])
        return found | (same & beside)


def _pairs(step: Step, other: Step) -> list[tuple[Access, Access]]:
    """Pairs of a write of one step and an access of the other."""
    written = [(step.dst, ref) for ref in (other.dst, *other.reads)]
    return [*written, *((ref, other.dst) for ref in step.reads)]
