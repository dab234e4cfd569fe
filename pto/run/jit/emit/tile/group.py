"""Fusion groups: instructions that work row by row and are processed some rows at a time.

A step records its accesses and its function of an element, a row or a value a row; `strips.py`
emits the loop. Accesses are disjoint or equal; otherwise another step could see a row too early.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod
from typing import Any, Literal

import numpy as np

from pto.core.dtypes import DType
from pto.core.layout import Digit
from pto.core.tile import Role
from pto.ir.graph import Value
from pto.isa.meaning import Fold
from pto.isa.meaning.tile import move
from pto.isa.meaning.tile.regions import read_as
from pto.isa.row import types as t
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile.elementwise import Mapped, repeated, scalar_kind
from pto.run.jit.emit.tile.move import met, require_same_width, separate
from pto.run.jit.emit.tile.planes import Plane
from pto.run.jit.emit.tile.reduce import folded
from pto.run.jit.llvm.lanes import symbol_type
from pto.run.jit.llvm.text import Text, Val, expect, unsupported_if
from pto.run.jit.runtime.values import ScalarValue, TileDesc, ViewDesc

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


# ---- instructions as steps


def tile_ref(s: OpContext, tile: TileDesc, shape: Shape, step: int, dtype: DType) -> Ref:
    first = expect(tile.address, int, "a place that is known only when it runs")
    pointer, end = planes.machine_address(s, tile), first + planes.extent(tile)
    owner = s.e.owners.get(id(tile), 0)
    return Ref(shape, dtype, step, pointer, tile.memory, first, end, owner)


def of_map(s: OpContext, found: Mapped, group: Group | None) -> tuple[Group, Step]:
    """An elementwise instruction: on all elements, or on one value a row of the group."""
    unsupported_if(len(found.ones) != 1, "which source is spread is known only when it runs")
    dst, one = found.dst, found.ones[0]
    rows, cols = dst.valid
    target = planes.plane(dst)
    turned = target.cols != 1 and target.rows == 1
    along = _values_a_row(group, rows, cols) if one is None else None
    if along is None:
        rows, cols = (cols, rows) if turned else (rows, cols)
    sources: list[Source] = []
    for at in range(len(found.given)):
        sources.append(_source(s, found, at, turned, along))
    if along is not None:
        ref = _one_a_row(s, dst, target, along)
    else:
        if turned:
            target = target.swapped
        unsupported_if(target.cols != 1, "lines with gaps")
        ref = tile_ref(s, dst, "matrix", target.rows, target.dtype)
        group = _fitting(group, rows, cols)
    key, joined = planes.key_of(s, found.key), expect(group, Group, "values a row, of no rows")
    return joined, Step(key, ref, tuple(sources), found.fn, found.dtype)


def _values_a_row(group: Group | None, rows: Val, cols: Val) -> int | None:
    """The axis along which a tile has one value for each row of the group; None if there is
    none."""
    if group is None or group.rows == 1 or (rows, cols) == (group.rows, group.cols):
        return None
    if (rows, cols) == (group.rows, 1):
        return 0
    return 1 if (rows, cols) == (1, group.rows) else None


def _source(s: OpContext, found: Mapped, at: int, turned: bool, along: int | None) -> Source:
    given = found.given[at]
    if isinstance(given, ScalarValue):
        return given, scalar_kind(given, found.dtype)
    value = expect(given, TileDesc, "an operand with no native form")
    rows, cols = found.dst.valid
    p, kind = planes.plane(value), symbol_type(read_as(value.type.dtype, found.dtype))
    if at == found.ones[0]:
        return _spread(s, found, value, p, turned), kind
    s.fault_unless(planes.enough(s, value, rows, cols))
    if along is not None:
        return _one_a_row(s, value, p, along), kind
    p = p.swapped if turned else p
    unsupported_if(p.cols != 1, "lines that run across each other")
    return tile_ref(s, value, "matrix", p.rows, p.dtype), kind


def _one_a_row(s: OpContext, tile: TileDesc, p: Plane, along: int) -> Ref:
    unsupported_if((p.rows, p.cols)[along] != 1, "values a row that do not follow each other")
    return tile_ref(s, tile, "column", 1, p.dtype)


def _spread(s: OpContext, found: Mapped, value: TileDesc, p: Plane, turned: bool) -> Ref:
    rows, cols = found.dst.valid
    unsupported_if(turned or repeated(s, value, found.given), "a source that is spread otherwise")
    if found.axis == "row":
        s.fault_unless(planes.enough(s, value, rows, 1))
        return tile_ref(s, value, "column", p.rows, p.dtype)
    unsupported_if(p.cols != 1, "a row whose elements do not follow each other")
    s.fault_unless(planes.enough(s, value, 1, cols))
    return tile_ref(s, value, "row", 0, p.dtype)


def _fitting(group: Group | None, rows: Val, cols: Val) -> Group:
    """The group, if an instruction of this size may join it."""
    if group is None:
        return Group(rows, cols)
    unsupported_if((group.rows, group.cols) != (rows, cols), "other rows")
    return group


def of_fold(s: OpContext, group: Group | None) -> tuple[Group, Step]:
    """A fold of each row to one value."""
    found = folded(s)
    unsupported_if(not found.by_row or found.body.axis != "row", "a fold of columns")
    rows, cols = found.rows, found.cols
    unsupported_if(not (isinstance(cols, int) and cols > 0), "rows that may be empty")
    source = tile_ref(s, found.src, "matrix", found.a.rows, found.a.dtype)
    target = tile_ref(s, found.dst, "column", found.b.rows, found.b.dtype)
    step = Step(
        planes.key_of(s), target, ((source, found.a.dtype.numpy),), fold=(found.body, found.kind)
    )
    return _fitting(group, rows, cols), step


def of_move(s: OpContext, group: Group | None) -> tuple[Group, Step]:
    """A move as a step that copies bits."""
    src, dst = s.need(TileDesc, "src"), s.need(TileDesc, "dst")
    asked = (s.operand("fp"), s.operand("preQuantScalar"), s.case.word("accToVecMode"))
    plain = s.case.word("reluPreMode") in (None, "no_relu") and not any(asked)
    unsupported_if(
        not plain or src.type.dtype is not dst.type.dtype or src.valid != dst.valid,
        "more than a copy",
    )
    unsupported_if(
        s.e.compiler.side != "both" and src.type.role is not dst.type.role, "a tile of another core"
    )
    own, other = _lines(s, src), _lines(s, dst)
    step = Step("copy", other, ((own, symbol_type(src.type.dtype)),), lambda a: a, dst.type.dtype)
    return _fitting(group, *dst.valid), step


def _lines(s: OpContext, tile: TileDesc) -> Ref:
    """Rows of a tile, or of boxes of it."""
    if not tile.type.layout.is_boxed:
        p = planes.plane(tile)
        unsupported_if(p.cols != 1, "lines with gaps")
        return tile_ref(s, tile, "matrix", p.rows, p.dtype)
    found, dtype = boxes.field(tile), tile.type.dtype
    (down, *more), (box, *boxes_) = found.rows, found.cols
    unsupported_if(
        more or box != Digit(BOX, 1) or len(boxes_) != 1 or dtype.is_packed, "other boxes"
    )
    numbers = tile.address, down.step, boxes_[0].step
    first, step, across = (
        expect(n, int, "a place that is known only when it runs") for n in numbers
    )
    pointer, end = planes.machine_address(s, tile), first + boxes.extent(tile)
    place = tile.memory, first, end, s.e.owners.get(id(tile), 0)
    return Ref("matrix", dtype, step, pointer, *place, across)


def of_load(s: OpContext, group: Group | None) -> tuple[Group, Step, str]:
    """A load as a step, and its condition."""
    view, tile = s.need(ViewDesc, "src"), s.need(TileDesc, "dst")
    unsupported_if(move.has_margins(s.case), "columns beside the loaded ones")
    beside = move.beside(tile.type, s.case.profile)
    unsupported_if(
        beside is not None and tile.valid != tile.type.shape, "what lies beside the valid region"
    )
    source, fine = _view_ref(s, view, tile, writes=False)
    return *_moved(s, tile, source, group, load=True), fine


def row_of_view(s: OpContext, group: Group) -> tuple[Ref, str]:
    """The row of a view that a load would copy, and the condition under which it may be read
    directly."""
    view, tile = s.need(ViewDesc, "src"), s.need(TileDesc, "dst")
    unsupported_if(
        move.has_margins(s.case) or tile.valid != (1, group.cols) or planes.plane(tile).cols != 1,
        "no row",
    )
    found, fine = _view_ref(s, view, tile, writes=False)
    return replace(found, shape="row", step=0), fine


def of_store(s: OpContext, group: Group | None) -> tuple[Group, Step, str]:
    """A store as a step, and its condition."""
    tile, view = s.need(TileDesc, "src"), s.need(ViewDesc, "dst")
    given = s.operand("preQuantScalar") is not None or s.operand("fp") is not None
    unsupported_if(given or move.combination(s.case, view.dtype) is not None, "more than a copy")
    target, fine = _view_ref(s, view, tile, writes=True)
    return *_moved(s, tile, target, group, load=False), s.x.both(fine, separate(s, view))


def _view_ref(s: OpContext, view: ViewDesc, tile: TileDesc, *, writes: bool) -> tuple[Ref, str]:
    require_same_width(view.dtype, tile.type.dtype)
    found, *others = met(s, view, tile, s.case.word("layout"), writes=writes)
    field = found.side.field
    unsupported_if(
        others or field.cols != boxes.line(1) or len(field.rows) != 1, "a view of other lines"
    )
    s.fault_unless(found.fits)
    large = writes and _may_be_large(s.op.operand("dst"), view.dtype.itemsize)
    size = s.e.size(view.memory) if large else 0
    step, pointer = field.rows[0].step, found.side.pointer
    return Ref("matrix", view.dtype, step, pointer, size=size), found.known


def _may_be_large(value: Value | None, itemsize: int) -> bool:
    """True if the view that this is a window of may have `FAR` bytes or more."""
    while value is not None and value.maker is not None and value.maker.operands:
        outer = value.maker.operands[0]
        if not isinstance(outer.type, t.View):
            break
        value = outer
    if value is None or not isinstance(value.type, t.View):
        return True
    sizes = [size for size in value.type.shape if isinstance(size, int)]
    return len(sizes) < len(value.type.shape) or prod(sizes) * itemsize >= FAR


def _moved(
    s: OpContext, tile: TileDesc, other: Ref, group: Group | None, *, load: bool
) -> tuple[Group, Step]:
    p = planes.plane(tile)
    unsupported_if(p.cols != 1 or tile.type.role is not Role.VEC, "a tile of other lines")
    own = tile_ref(s, tile, "matrix", p.rows, p.dtype)
    dst, src = (own, other) if load else (other, own)
    kind = symbol_type(tile.type.dtype)
    step = Step("copy", dst, ((src, kind),), lambda a: a, tile.type.dtype)
    return _fitting(group, *tile.valid), step
