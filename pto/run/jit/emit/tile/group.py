"""Fusion groups: instructions that work row by row and are processed some rows at a time.

A step records its accesses and its function of an element, a row or a value a row; `strips.py`
emits the loop. Accesses are disjoint or equal; otherwise another step could see a row too early.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning import Fold
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.tile import boxes
from pto.run.jit.llvm.text import Text, Val, unsupported_if
from pto.run.jit.runtime.values import ScalarValue, TileDesc

BOX = 16  # columns
FAR = 16 << 20  # bytes of an array that is written past the cache: it would not stay there
MOST = 32  # instructions of a group: longer functions take LLVM longer than they save
Shape = Literal["matrix", "column", "row"]  # of a ref: all elements, one a row, one a column


@dataclass(frozen=True, slots=True)
class Ref:
    """The access of an operand: `step` elements from row to row (0 for a row), and `across` from
    one box of sixteen columns to the next (0: no boxes). Tiles have a buffer and a byte range,
    views only a pointer."""

    shape: Shape
    dtype: DType
    step: Val
    pointer: str
    memory: int = -1
    first: int = 0
    end: int = 0
    owner: int = 0  # of a tile that only the instructions of a stretch use: its number
    across: int = 0
    size: Val = 0  # of a view that is written: bytes of its memory, where they may be many

    def placed(self, here: Collection[int]) -> Ref:
        return self if self.owner in here else replace(self, owner=0)

    def collides(self, other: Ref) -> bool:
        """True if two accesses share bytes but are not the same elements."""
        if self.memory != other.memory or self.end <= other.first or other.end <= self.first:
            return False
        return self.place != other.place

    @property
    def place(self) -> tuple[object, ...]:
        """The identity of an access: equal for refs to the same elements."""
        where = self.first if self.memory >= 0 else self.pointer
        steps = self.step, self.across
        return self.memory, where, self.shape, steps, self.dtype.itemsize, self.owner


Source = tuple[Ref | ScalarValue, np.dtype[Any]]  # and as what it is read


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: `dst = fn(sources)`, or a fold of its source where there is a body."""

    key: str
    dst: Ref
    sources: tuple[Source, ...]
    fn: Any = None
    dtype: DType | None = None
    fold: tuple[Fold, np.dtype[Any]] | None = None

    @property
    def refs(self) -> list[Ref]:
        return [ref for ref, _ in self.sources if isinstance(ref, Ref)]

    @property
    def identity(self) -> Hashable:
        """Equal for steps with the same code: `key` stands for the function."""
        return self.key, self.dst, self.sources, self.dtype

    def reading(self, owner: int, row: Ref) -> Step:
        sources = tuple(
            (row if isinstance(ref, Ref) and ref.owner == owner else ref, kind)
            for ref, kind in self.sources
        )
        return replace(self, sources=sources)

    def placed(self, here: Collection[int]) -> Step:
        sources = tuple(
            (ref.placed(here) if isinstance(ref, Ref) else ref, kind) for ref, kind in self.sources
        )
        return replace(self, dst=self.dst.placed(here), sources=sources)


@dataclass
class Group:
    """Steps on rows x cols elements; `fine` is the run-time condition of fusing them."""

    rows: Val
    cols: Val
    steps: list[Step] = field(default_factory=list[Step])
    fine: str = "true"

    def add(self, s: OpContext, step: Step, fine: str = "true") -> None:
        """Add a step; raises UnsupportedLowering if it depends on all rows of another step."""
        unsupported_if(len(self.steps) == MOST, "enough")
        pairs = [pair for other in self.steps for pair in _pairs(step, other)]
        pairs += [(step.dst, ref) for ref in step.refs]
        unsupported_if(
            any(a.collides(b) for a, b in pairs if not (a.owner or b.owner)),
            "operands that overlap",
        )
        if step.dst.memory < 0 or any(ref.memory < 0 for ref in step.refs):
            fine = s.x.both(fine, self._views_apart(s, step))
        self.steps.append(step)
        self.fine = s.x.both(self.fine, fine)

    @property
    def size(self) -> tuple[Val, Val]:
        return self.rows, self.cols

    @property
    def refs(self) -> list[Ref]:
        return [ref for step in self.steps for ref in (step.dst, *step.refs)]

    def reading(self, x: Text, owner: int, row: Ref, fine: str) -> Group:
        """Read a row of a view instead of a private tile; no step may store there."""
        fine = x.both(self.fine, fine)
        for step in self.steps:
            if step.dst.memory < 0:
                fine = x.both(fine, self._apart(x, step.dst, row, exactly=False))
        return replace(self, steps=[step.reading(owner, row) for step in self.steps], fine=fine)

    def is_plain(self, owner: int) -> bool:
        """True if all refs of a private tile are the same access."""
        return len({ref.place for ref in self.refs if ref.owner == owner}) < 2

    def placed(self, here: Collection[int]) -> Group:
        """The group with only these tiles private."""
        return replace(self, steps=[step.placed(here) for step in self.steps])

    def overlaps(self) -> bool:
        """True if two accesses share bytes but are not the same elements."""
        pairs = [pair for two in combinations(self.steps, 2) for pair in _pairs(*two)]
        pairs += [(step.dst, ref) for step in self.steps for ref in step.refs]
        return any(a.collides(b) for a, b in pairs if not (a.owner or b.owner))

    def leaves_alone(self, tile: TileDesc) -> bool:
        """True if no step stores to a view, or accesses the bytes of a tile at a known address."""
        if any(step.dst.memory < 0 for step in self.steps):
            return False
        first = int(tile.address)
        end = first + (tile.type.nbytes if tile.pitch is None else boxes.extent(tile))
        return not any(
            ref.memory == tile.memory and ref.first < end and first < ref.end and not ref.owner
            for ref in self.refs
        )

    def _views_apart(self, s: OpContext, step: Step) -> str:
        fine = "true"
        for other in self.steps:
            for a, b in _pairs(step, other):
                if a.memory >= 0 or b.memory >= 0:
                    continue
                after = a is not step.dst  # it reads what the other has written
                fine = s.x.both(fine, self._apart(s.x, a, b, exactly=not after))
        return fine

    def _apart(self, x: Text, a: Ref, b: Ref, *, exactly: bool) -> str:
        """True if two views share no element; or all of them, if `exactly` allows it."""
        ways = ["false"]
        (p, q), steps = (x.new(f"ptrtoint ptr {v.pointer} to i64") for v in (a, b)), []
        widths: list[Val] = []
        ends: list[Val] = []
        for v, start in ((a, p), (b, q)):
            size = v.dtype.itemsize
            steps.append(x.mul(v.step, size))
            widths.append(x.mul(self.cols, size))
            ends.append(x.add(start, x.add(x.mul(x.sub(self.rows, 1), steps[-1]), widths[-1])))
        ways += [x.compare("ule", ends[0], q), x.compare("ule", ends[1], p)]
        same = x.compare("eq", *steps)
        if exactly and a.dtype.itemsize == b.dtype.itemsize:
            ways.append(x.both(same, x.compare("eq", p, q)))
        # side by side in the same rows
        far = x.new(f"select i1 {x.compare('ult', p, q)}, i64 {x.sub(q, p)}, i64 {x.sub(p, q)}")
        pitch = x.new(f"select i1 {x.compare('eq', steps[0], 0)}, i64 1, i64 {steps[0]}")
        rest = x.new(f"urem i64 {far}, {pitch}")
        width = max(a.dtype.itemsize, b.dtype.itemsize)
        wide = x.mul(self.cols, width)
        beside = x.both(x.compare("uge", rest, wide), x.compare("ule", x.add(rest, wide), steps[0]))
        ways.append(x.both(same, beside))
        found = "false"
        for way in ways:
            found = x.either(found, way)
        return found


def _pairs(step: Step, other: Step) -> list[tuple[Ref, Ref]]:
    """Pairs of a write of one step and an access of the other."""
    written = [(step.dst, ref) for ref in (other.dst, *other.refs)]
    return [*written, *((ref, other.dst) for ref in step.refs)]
