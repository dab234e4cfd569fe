"""Instructions of a stretch that work row by row, gathered to be done some rows at a time.

What is gathered is where each operand lies, and what is done to an element, a row or a value a row.
`strips.py` writes the function. Operands lie apart or on each other exactly; otherwise rows done
early would be seen by others too soon.
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
from pto.run.jit.border.values import TilePlace, ViewPlace, Word
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile.elementwise import Mapped, repeated, scalar_kind, seen
from pto.run.jit.emit.tile.move import met, require_same_width, separate
from pto.run.jit.emit.tile.planes import Plane
from pto.run.jit.emit.tile.reduce import folded
from pto.run.jit.llvm.text import NotNative, Text, Val

BOX = 16  # columns
FAR = 16 << 20  # bytes of an array that is written past the cache: it would not stay there
MOST = 32  # instructions of a group: longer functions take LLVM longer than they save
Shape = Literal["matrix", "column", "row"]  # of a ref: all elements, one a row, one a column


@dataclass(frozen=True, slots=True)
class Ref:
    """Elements of an operand: `step` elements from row to row (of a row: none), and `across` from
    one box of sixteen columns to the next (0: there are none). Where they lie is a buffer and a
    range of bytes in it; views have a pointer alone."""

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
        """Whether they share bytes otherwise than element by element."""
        if self.memory != other.memory or self.end <= other.first or other.end <= self.first:
            return False
        return self.place != other.place

    @property
    def place(self) -> tuple[object, ...]:
        """What refs to the same elements have in common."""
        where = self.first if self.memory >= 0 else self.pointer
        steps = self.step, self.across
        return self.memory, where, self.shape, steps, self.dtype.itemsize, self.owner


Source = tuple[Ref | Word, np.dtype[Any]]  # and as what it is read


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
    """Instructions on rows x cols elements; `fine`: when they may be done together."""

    rows: Val
    cols: Val
    steps: list[Step] = field(default_factory=list[Step])
    fine: str = "true"

    def add(self, s: Spot, step: Step, fine: str = "true") -> None:
        """One more; NotNative where it has to wait for all rows of the others."""
        if len(self.steps) == MOST:
            raise NotNative("enough")
        pairs = [pair for other in self.steps for pair in _pairs(step, other)]
        pairs += [(step.dst, ref) for ref in step.refs]
        if any(a.collides(b) for a, b in pairs if not (a.owner or b.owner)):
            raise NotNative("operands that overlap")
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
        """With a row of a view for what an owner had of it: nobody stores there meanwhile."""
        fine = x.both(self.fine, fine)
        for step in self.steps:
            if step.dst.memory < 0:
                fine = x.both(fine, self._apart(x, step.dst, row, exactly=False))
        return replace(self, steps=[step.reading(owner, row) for step in self.steps], fine=fine)

    def is_plain(self, owner: int) -> bool:
        """Whether all refs of an owner are to the same elements."""
        return len({ref.place for ref in self.refs if ref.owner == owner}) < 2

    def placed(self, here: Collection[int]) -> Group:
        """All but what these own is where it was placed."""
        return replace(self, steps=[step.placed(here) for step in self.steps])

    def overlaps(self) -> bool:
        """Whether what lies in memory shares bytes otherwise than element by element."""
        pairs = [pair for two in combinations(self.steps, 2) for pair in _pairs(*two)]
        pairs += [(step.dst, ref) for step in self.steps for ref in step.refs]
        return any(a.collides(b) for a, b in pairs if not (a.owner or b.owner))

    def leaves_alone(self, tile: TilePlace) -> bool:
        """Whether nothing here stores to a view, or uses bytes of a tile at a known place."""
        if any(step.dst.memory < 0 for step in self.steps):
            return False
        first = int(tile.address)
        end = first + (tile.type.nbytes if tile.pitch is None else boxes.extent(tile))
        return not any(
            ref.memory == tile.memory and ref.first < end and first < ref.end and not ref.owner
            for ref in self.refs
        )

    def _views_apart(self, s: Spot, step: Step) -> str:
        fine = "true"
        for other in self.steps:
            for a, b in _pairs(step, other):
                if a.memory >= 0 or b.memory >= 0:
                    continue
                after = a is not step.dst  # it reads what the other has written
                fine = s.x.both(fine, self._apart(s.x, a, b, exactly=not after))
        return fine

    def _apart(self, x: Text, a: Ref, b: Ref, *, exactly: bool) -> str:
        """Whether two views share no element; or all of them, where that will do."""
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
    """What one of them writes, and what the other reads or writes."""
    written = [(step.dst, ref) for ref in (other.dst, *other.refs)]
    return [*written, *((ref, other.dst) for ref in step.refs)]


# ---- instructions as steps


def tile_ref(s: Spot, tile: TilePlace, shape: Shape, step: int, dtype: DType) -> Ref:
    if not isinstance(tile.address, int):
        raise NotNative("a place that is known only when it runs")
    pointer, end = planes.machine_address(s, tile), tile.address + planes.extent(tile)
    owner = s.e.owners.get(id(tile), 0)
    return Ref(shape, dtype, step, pointer, tile.memory, tile.address, end, owner)


def of_map(s: Spot, found: Mapped, group: Group | None) -> tuple[Group, Step]:
    """An elementwise instruction: on all elements, or on one value a row of the group."""
    if len(found.ones) != 1:
        raise NotNative("which source is spread is known only when it runs")
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
        if target.cols != 1:
            raise NotNative("lines with gaps")
        ref = tile_ref(s, dst, "matrix", target.rows, target.dtype)
        group = _fitting(group, rows, cols)
    if group is None:
        raise NotNative("values a row, of no rows")
    key = planes.key_of(s, found.key)
    return group, Step(key, ref, tuple(sources), found.fn, found.dtype)


def _values_a_row(group: Group | None, rows: Val, cols: Val) -> int | None:
    """Along which axis a tile has one value for each row of the group; None: it is none such."""
    if group is None or group.rows == 1 or (rows, cols) == (group.rows, group.cols):
        return None
    if (rows, cols) == (group.rows, 1):
        return 0
    return 1 if (rows, cols) == (1, group.rows) else None


def _source(s: Spot, found: Mapped, at: int, turned: bool, along: int | None) -> Source:
    value = found.given[at]
    if isinstance(value, Word):
        return value, scalar_kind(value, found.dtype)
    if not isinstance(value, TilePlace):
        raise NotNative("an operand with no native form")
    rows, cols = found.dst.valid
    p, kind = planes.plane(value), seen(read_as(value.type.dtype, found.dtype))
    if at == found.ones[0]:
        return _spread(s, found, value, p, turned), kind
    s.fault_unless(planes.enough(s, value, rows, cols))
    if along is not None:
        return _one_a_row(s, value, p, along), kind
    p = p.swapped if turned else p
    if p.cols != 1:
        raise NotNative("lines that run across each other")
    return tile_ref(s, value, "matrix", p.rows, p.dtype), kind


def _one_a_row(s: Spot, tile: TilePlace, p: Plane, along: int) -> Ref:
    if (p.rows, p.cols)[along] != 1:
        raise NotNative("values a row that do not follow each other")
    return tile_ref(s, tile, "column", 1, p.dtype)


def _spread(s: Spot, found: Mapped, value: TilePlace, p: Plane, turned: bool) -> Ref:
    rows, cols = found.dst.valid
    if turned or repeated(s, value, found.given):
        raise NotNative("a source that is spread otherwise")
    if found.axis == "row":
        s.fault_unless(planes.enough(s, value, rows, 1))
        return tile_ref(s, value, "column", p.rows, p.dtype)
    if p.cols != 1:
        raise NotNative("a row whose elements do not follow each other")
    s.fault_unless(planes.enough(s, value, 1, cols))
    return tile_ref(s, value, "row", 0, p.dtype)


def _fitting(group: Group | None, rows: Val, cols: Val) -> Group:
    """The group, where an instruction on so many elements may join it."""
    if group is None:
        return Group(rows, cols)
    if (group.rows, group.cols) != (rows, cols):
        raise NotNative("other rows")
    return group


def of_fold(s: Spot, group: Group | None) -> tuple[Group, Step]:
    """A fold of each row to one value."""
    found = folded(s)
    if not found.by_row or found.body.axis != "row":
        raise NotNative("a fold of columns")
    rows, cols = found.rows, found.cols
    if not (isinstance(cols, int) and cols > 0):
        raise NotNative("rows that may be empty")
    source = tile_ref(s, found.src, "matrix", found.a.rows, found.a.dtype)
    target = tile_ref(s, found.dst, "column", found.b.rows, found.b.dtype)
    step = Step(
        planes.key_of(s), target, ((source, found.a.dtype.numpy),), fold=(found.body, found.kind)
    )
    return _fitting(group, rows, cols), step


def of_move(s: Spot, group: Group | None) -> tuple[Group, Step]:
    """Tile to tile, bits as they are, in rows or in boxes."""
    src, dst = s.need(TilePlace, "src"), s.need(TilePlace, "dst")
    asked = (s.operand("fp"), s.operand("preQuantScalar"), s.case.word("accToVecMode"))
    plain = s.case.word("reluPreMode") in (None, "no_relu") and not any(asked)
    if not plain or src.type.dtype is not dst.type.dtype or src.valid != dst.valid:
        raise NotNative("more than a copy")
    if s.e.compiler.side != "both" and src.type.role is not dst.type.role:
        raise NotNative("a tile of another core")
    own, other = _lines(s, src), _lines(s, dst)
    step = Step("copy", other, ((own, seen(src.type.dtype)),), lambda a: a, dst.type.dtype)
    return _fitting(group, *dst.valid), step


def _lines(s: Spot, tile: TilePlace) -> Ref:
    """Rows of a tile, or of boxes of it."""
    if not tile.type.layout.is_boxed:
        p = planes.plane(tile)
        if p.cols != 1:
            raise NotNative("lines with gaps")
        return tile_ref(s, tile, "matrix", p.rows, p.dtype)
    found, dtype = boxes.field(tile), tile.type.dtype
    (down, *more), (box, *boxes_) = found.rows, found.cols
    if more or box != Digit(BOX, 1) or len(boxes_) != 1 or dtype.is_packed:
        raise NotNative("other boxes")
    steps = down.step, boxes_[0].step
    if not (isinstance(tile.address, int) and all(isinstance(step, int) for step in steps)):
        raise NotNative("a place that is known only when it runs")
    pointer, end = planes.machine_address(s, tile), tile.address + boxes.extent(tile)
    owner = s.e.owners.get(id(tile), 0)
    place = tile.memory, tile.address, end, owner
    return Ref("matrix", dtype, steps[0], pointer, *place, int(steps[1]))


def of_load(s: Spot, group: Group | None) -> tuple[Group, Step, str]:
    """Rows of a view to rows of a tile; and when."""
    view, tile = s.need(ViewPlace, "src"), s.need(TilePlace, "dst")
    if move.has_margins(s.case):
        raise NotNative("columns beside the loaded ones")
    beside = move.beside(tile.type, s.case.profile)
    if beside is not None and tile.valid != tile.type.shape:
        raise NotNative("what lies beside the valid region")
    source, fine = _view_ref(s, view, tile, writes=False)
    return *_moved(s, tile, source, group, load=True), fine


def row_of_view(s: Spot, group: Group) -> tuple[Ref, str]:
    """What a load of one row brings, where it is; and when it may be read there."""
    view, tile = s.need(ViewPlace, "src"), s.need(TilePlace, "dst")
    if move.has_margins(s.case) or tile.valid != (1, group.cols) or planes.plane(tile).cols != 1:
        raise NotNative("no row")
    found, fine = _view_ref(s, view, tile, writes=False)
    return replace(found, shape="row", step=0), fine


def of_store(s: Spot, group: Group | None) -> tuple[Group, Step, str]:
    """Rows of a tile to rows of a view; and when."""
    tile, view = s.need(TilePlace, "src"), s.need(ViewPlace, "dst")
    given = s.operand("preQuantScalar") is not None or s.operand("fp") is not None
    if given or move.combination(s.case, view.dtype) is not None:
        raise NotNative("more than a copy")
    target, fine = _view_ref(s, view, tile, writes=True)
    return *_moved(s, tile, target, group, load=False), s.x.both(fine, separate(s, view))


def _view_ref(s: Spot, view: ViewPlace, tile: TilePlace, *, writes: bool) -> tuple[Ref, str]:
    require_same_width(view.dtype, tile.type.dtype)
    found, *others = met(s, view, tile, s.case.word("layout"), writes=writes)
    field, names = found.side.field, found.side.arguments
    if others or field.cols != boxes.line(1) or len(field.rows) != 1:
        raise NotNative("a view of other lines")
    step = field.rows[0].step
    if not isinstance(step, int):
        step = names[int(str(step).removeprefix("%p")) - 4]
    s.fault_unless(found.fits)
    large = writes and _may_be_large(s.op.operand("dst"), view.dtype.itemsize)
    size = s.e.size(view.memory) if large else 0
    return Ref("matrix", view.dtype, step, found.side.pointer, size=size), found.known


def _may_be_large(value: Value | None, itemsize: int) -> bool:
    """Whether the type of what this is a window of leaves room for `FAR` bytes."""
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
    s: Spot, tile: TilePlace, other: Ref, group: Group | None, *, load: bool
) -> tuple[Group, Step]:
    p = planes.plane(tile)
    if p.cols != 1 or tile.type.role is not Role.VEC:
        raise NotNative("a tile of other lines")
    own = tile_ref(s, tile, "matrix", p.rows, p.dtype)
    dst, src = (own, other) if load else (other, own)
    kind = seen(tile.type.dtype)
    step = Step("copy", dst, ((src, kind),), lambda a: a, tile.type.dtype)
    return _fitting(group, *tile.valid), step
