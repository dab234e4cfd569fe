"""Nests: loops over rows and columns as data.

A nest has a size, and steps in order. A step writes one access: an expression of the elements of
its sources, or a fold of a source. An instruction is a nest of one step; a group of instructions
that is executed some rows at a time is the nest that `Nest.joined` makes of theirs. Its accesses
are disjoint or equal; otherwise another step could see a row too early. `emit/tile/strips.py`
writes the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from pto.core.layout import REST, Mode
from pto.core.memory import Space
from pto.isa.meaning.kinds import Fold
from pto.run.jit.ir import expr, strided
from pto.run.jit.ir.expr import Expr
from pto.run.jit.ir.kinds import Kind, certain
from pto.run.jit.ir.strided import Access, Strided
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import TRUE, Condition, Val, all_of
from pto.run.jit.runtime.values import ScalarValue

BOX = 16  # columns
FAR = 16 << 20  # bytes of an array that is written past the cache: it would not stay there
MOST = 32  # instructions of a group: longer functions take LLVM longer than they save

Source = tuple[Access | ScalarValue, Kind]  # and as what it is read


class Step(NamedTuple):
    """`dst = expr` of the elements of the sources, or a fold of its source."""

    dst: Access
    sources: tuple[Source, ...]
    expr: Expr | None = None
    fold: tuple[Fold, Kind] | None = None  # and the type of the accumulator

    @property
    def reads(self) -> list[Access]:
        return [ref for ref, _ in self.sources if isinstance(ref, Access)]

    @property
    def accesses(self) -> list[Access]:
        return [self.dst, *self.reads]

    def mapped(self, change: Callable[[Access], Access]) -> Step:
        """The step with other accesses."""
        sources = [
            (change(ref) if isinstance(ref, Access) else ref, kind) for ref, kind in self.sources
        ]
        return Step(change(self.dst), tuple(sources), *self[2:])


@dataclass(frozen=True, slots=True)
class Nest:
    """Steps on rows x cols elements, in order. `guard`: the run-time condition of executing them in
    one loop. `unfusible`: why a step never is in a loop with others."""

    rows: Val
    cols: Val
    steps: tuple[Step, ...]
    guard: Condition = TRUE
    unfusible: str = ""

    @property
    def size(self) -> tuple[Val, Val]:
        return self.rows, self.cols

    def mapped(self, change: Callable[[Access], Access]) -> Nest:
        """The nest with other accesses."""
        return replace(self, steps=tuple(step.mapped(change) for step in self.steps))

    @property
    def swapped(self) -> Nest:
        """The same with rows and columns exchanged."""
        found = self.mapped(lambda a: a.with_layout(a.layout.swapped))
        return replace(found, rows=self.cols, cols=self.rows)

    def as_values(self, rows: Val) -> Nest | None:
        """One value for each of so many rows, which follow each other; None if it is not that."""
        folds = any(step.fold is not None for step in self.steps)
        if rows == 1 or folds or self.size not in ((rows, 1), (1, rows)):
            return None
        found = self if self.size == (rows, 1) else self.swapped
        if any(ref.layout.rows != strided.axis(1) for ref in found.refs):
            return None
        column = strided.axis(1), strided.axis(0)
        return found.mapped(lambda a: a.with_layout(Strided(a.dtype, *column)))

    @property
    def is_by_rows(self) -> bool:
        """True if every access has rows of contiguous elements, or of boxes, at a known place."""
        return not self.unfusible and all(map(_has_rows, self.refs))

    @property
    def flat(self) -> bool:
        """True if all rows are contiguous, and there is only elementwise work: it is one row."""
        refs, cols = self.refs, self.cols
        return all(ref.layout == strided.row_major(ref.dtype, cols) for ref in refs) and cols != 0

    def joined(self, x: Text, other: Nest) -> Nest | None:
        """This nest and the steps of another one; None if they do not fit, or if a step depends on
        all rows of another."""
        if other.size != self.size:
            values = other.as_values(self.rows)
            if values is None:
                return None
            other = values
        found, guard = self, other.guard
        for step in other.steps:
            pairs = [pair for earlier in found.steps for pair in _pairs(step, earlier)]
            own = ((step.dst, ref) for ref in step.reads)
            many = len(found.steps) == MOST
            if many or not other.is_by_rows or any(a.collides(b) for a, b in (*pairs, *own)):
                return None
            apart = (  # a step may write exactly the elements that another one has accessed
                self._apart(x, a, b, exactly=a is step.dst)
                for a, b in pairs
                if a.memory < 0 and b.memory < 0
            )
            guard, joined = TRUE, all_of(found.guard, guard, *apart)
            found = replace(found, steps=(*found.steps, step), guard=joined)
        return found

    @property
    def refs(self) -> list[Access]:
        return [ref for step in self.steps for ref in step.accesses]

    def reading(self, x: Text, owner: int, row: Access, guard: Condition) -> Nest:
        """Read a row of a view instead of a private tile; no step may store there."""
        stored = [step.dst for step in self.steps if step.dst.memory < 0]
        apart = [self._apart(x, dst, row, exactly=False) for dst in stored]
        read = (step.mapped(lambda a: row if a.private == owner else a) for step in self.steps)
        steps = (new._replace(dst=old.dst) for new, old in zip(read, self.steps, strict=True))
        return replace(self, steps=tuple(steps), guard=all_of(self.guard, guard, *apart))

    def is_plain(self, owner: int) -> bool:
        """True if all refs of a private tile are the same access."""
        return len({ref.identity for ref in self.refs if ref.private == owner}) < 2

    def placed(self, here: Collection[int]) -> Nest:
        """The nest with only these tiles private."""
        return self.mapped(lambda a: a.private_in(here))

    def overlaps(self) -> bool:
        """True if two accesses share bytes but are not the same elements."""
        pairs = [pair for two in combinations(self.steps, 2) for pair in _pairs(*two)]
        pairs += [(step.dst, ref) for step in self.steps for ref in step.reads]
        return any(a.collides(b) for a, b in pairs)

    def leaves_alone(self, memory: int, first: int, nbytes: int) -> bool:
        """True if no step stores to a view, or accesses these bytes of a buffer."""
        if any(step.dst.memory < 0 for step in self.steps):
            return False
        return not any(ref.overlaps(memory, first, first + nbytes) for ref in self.refs)

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


def _has_rows(ref: Access) -> bool:
    down, (inner, *more) = ref.layout.rows, ref.layout.cols
    in_boxes = inner == Mode(BOX, 1) and len(more) == 1 and more[0].stride != 0
    whole = inner.stride == 1 or (inner.stride == 0 and ref.memory >= 0)
    plain = len(down) == 1 and whole and (not more or in_boxes)
    return plain and not ref.dtype.is_packed and isinstance(ref.address, int)


# ---- as text


def written(nest: Nest) -> list[str]:
    """A nest as text: a line for each step, with `i` and `j` for rows and columns."""
    known = "" if nest.guard.is_known else f" if {nest.guard}"
    return [
        f"for i < {nest.rows}, j < {nest.cols}{known}:",
        *(f"  {line}" for step in nest.steps for line in _step(step)),
    ]


def _step(step: Step) -> list[str]:
    reads = [_source(source, kind) for source, kind in step.sources]
    if step.fold is not None:
        body, kind = step.fold
        fn = getattr(body.fn, "__name__", "fn")
        return [f"{_access(step.dst)} = fold of {fn} over j in {kind}: {reads[0]}"]
    *shared, result = expr.written(certain(step.expr, Expr), reads)
    return [*shared, f"{_access(step.dst)} = {result}"]


def _source(source: Access | ScalarValue, kind: Kind) -> str:
    if isinstance(source, ScalarValue):
        return f"{source.name}"
    return _access(source) + ("" if source.dtype.numpy == kind else f".{kind}")


def _access(access: Access) -> str:
    """`ub+0x4000[128 i + j]`, `gm%v7[..]`, `own1[..]` of a tile that needs no memory."""
    layout = access.layout
    terms = [*_terms("i", layout.rows), *_terms("j", layout.cols)]
    if access.private:
        place = f"own{access.private}"
    elif access.memory < 0:
        place = f"gm{access.pointer}"
    else:
        where = f"{access.address:#x}" if isinstance(access.address, int) else access.address
        place = f"{list(Space)[access.memory].value}+{where}"
    return f"{place}[{' + '.join(terms) or '0'}]"


def _terms(index: str, modes: Sequence[Mode]) -> list[str]:
    """What an index adds to the number of an element, mode by mode."""
    found: list[str] = []
    past = 1
    for mode in modes:
        number = index if past == 1 else f"{index} / {past}"
        number = number if mode.extent == REST else f"{number} % {mode.extent}"
        number = f"({number})" if " " in number else number
        if mode.stride != 0:
            found.append(number if mode.stride == 1 else f"{mode.stride} {number}")
        past = past * mode.extent if isinstance(mode.extent, int) else past
    return found
