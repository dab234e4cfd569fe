"""Lane functions on tiles: one function for each instruction, type and step between lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pto.core.dtypes import I64, DType
from pto.isa.meaning import Lane
from pto.isa.meaning.kinds import Axis
from pto.isa.meaning.tile.regions import element as element_of
from pto.isa.meaning.tile.regions import read_as, require_arithmetic
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.planes import VECTOR_BYTES, Plane
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.lanes import items_of, symbol_type
from pto.run.jit.llvm.text import (
    Text,
    UnsupportedLowering,
    Val,
    expect,
    scalar_type,
    unsupported_if,
)
from pto.run.jit.runtime.values import Lowered, ScalarValue, TileDesc
from pto.run.reference.tiles import repeats

_SHORT = 512  # elements of a line
_LONG = 60  # lines of a lane function beyond which fewer lanes at a time keep it in registers


class _Source(NamedTuple):
    """A tile, at its steps; or a scalar of a type."""

    plane: Plane | None
    kind: np.dtype[Any]
    llvm: str


class Mapped(NamedTuple):
    """dst = fn(given), element by element, in items of `dtype`. `ones` are the positions in `given`
    of the source that is spread along `axis` (see `_spread`); a position, because one tile may be
    both sources. `key` is what `fn` depends on beside the attributes of the operation."""

    fn: Callable[..., Any]
    dst: TileDesc
    dtype: DType
    given: list[Lowered | None]
    ones: tuple[int | None, ...] = (None,)
    axis: Axis | None = None
    key: object = None


def mapped(s: OpContext) -> Mapped:
    """The lane function of an instruction and its operands."""
    body: Lane = s.body
    if not body.moves:
        require_arithmetic(s.case)
    operands = s.case.row.operands
    roles = [o.role for o in operands]
    at = roles.index("inout") if "inout" in roles else roles.index("out")
    dst = s.need(TileDesc, operands[at].name)
    dtype = element_of(s.case, operands[at].name)
    given = [s.operand(o.name) for o in operands if o.role in ("in", "inout")]
    if not body.moves:
        _require_computed(dtype, *(v.type.dtype for v in given if isinstance(v, TileDesc)))
    ones = _spread(body, given, dst.valid[1])
    return Mapped(body.function(s.case), dst, dtype, given, ones, body.spread)


def _require_computed(*kinds: DType) -> None:
    """Refuse types that symbols hold as bits, which would be added as integers."""
    unsupported_if(
        not all(lanes.computes(kind.numpy) for kind in kinds),
        "arithmetic on elements without machine instructions",
    )


def emit_lane(s: OpContext) -> Sequence[Lowered]:
    """dst[i,j] = fn(sources[i,j]) over dst's valid region."""
    fn, dst, dtype, given, ways, axis, _ = mapped(s)
    if len(ways) == 1:
        emit_map(s, fn, dst, dtype, given, ways[0], axis)
        return []
    narrow = next(v for v in given if isinstance(v, TileDesc))
    first = s.x.compare("slt", narrow.valid[1], dst.valid[1])
    yes, no, done = (s.x.fresh(word) for word in ("first", "second", "done"))
    s.x.branch(first, yes, no)
    for label, one in zip((yes, no), ways, strict=True):
        s.x.label(label)
        state = s.x.mark()
        try:
            emit_map(s, fn, dst, dtype, given, one, axis)
        except UnsupportedLowering:  # the unlikely way: the reference knows it
            s.x.back_to(state)
            s.e.host_fallback(s.op, "the other operand is the vector")
        s.x.jump(done)
    s.x.label(done)
    return []


def emit_map(
    s: OpContext,
    fn: Callable[..., Any],
    dst: TileDesc,
    dtype: DType,
    given: Sequence[Lowered | None],
    one: int | None = None,
    axis: Axis | None = None,
    key: object = None,
) -> None:
    """dst = fn(given), element by element. `one` is the position of the source that is spread along
    an axis; `key` is what `fn` depends on beside the attributes of the operation."""
    rows, cols = dst.valid
    sources: list[_Source] = []
    names: list[tuple[str, Val]] = []
    room = 0
    for at, value in enumerate(given):
        if isinstance(value, TileDesc):
            p, (height, width) = planes.plane(value), (rows, cols)
            if at == one and axis == "row" and repeated(s, value, given):
                width = _at_least_one(s, value.valid[1])
                s.fault_unless(planes.enough(s, value, rows, width))
                pointer = _repeated(s, value, p, (rows, width, cols), dst.type.cols, room)
                p = Plane(p.dtype, dst.type.cols, 1)
                room += -(-dst.type.rows * dst.type.cols * p.dtype.itemsize // 64) * 64
            else:
                if at == one:
                    p, height, width = _one(axis, p, rows, cols)
                s.fault_unless(planes.enough(s, value, height, width))
                pointer, room = planes.kept(s, value, safe(s, dst, value, at == one), room)
            sources.append(_Source(p, symbol_type(read_as(value.type.dtype, dtype)), "ptr"))
            names.append(("ptr", pointer))
        else:
            word = expect(value, ScalarValue, "an operand with no native form")
            sources.append(_Source(None, scalar_kind(word, dtype), word.types[0]))
            names.append((word.types[0], word.name))
    target = planes.plane(dst)
    if target.cols != 1 and target.rows == 1:  # column by column
        target, rows, cols = target.swapped, cols, rows
        sources = [_Source(x.plane and x.plane.swapped, x.kind, x.llvm) for x in sources]
    unsupported_if(
        any(x.plane is not None and x.plane.cols not in (0, 1) for x in sources),
        "tiles whose lines run across each other",
    )
    rows, cols = _flat(s, target, sources, rows, cols)
    # short lines of a known length need no loop; the length stays a parameter
    width = cols if isinstance(cols, int) and cols <= _SHORT else "%p1"
    known = planes.key_of(s, key), width, target, *sources
    name = s.e.unit.shared(known, lambda n: _function(s, n, fn, target, sources, width))
    listed = ", ".join(f"{ty} {v}" for ty, v in [("ptr", planes.machine_address(s, dst)), *names])
    s.x.do(f"call void {name}(i64 {rows}, i64 {cols}, {listed})")


def _spread(body: Lane, given: Sequence[Lowered | None], cols: Val) -> tuple[int | None, ...]:
    """The position of the source with one value for a row or column of the domain; two candidates
    if the extents that decide it are not constant."""
    if body.spread is None:
        return (None,)
    tiles = [(n, value) for n, value in enumerate(given) if isinstance(value, TileDesc)]
    (at, first), last = tiles[0], tiles[-1][0]
    if body.spread == "column":
        return (last,)
    if len(tiles) == 1 or first.type.cols == 1:
        return (at,)  # of a single column it does not matter which
    width = first.valid[1]
    if isinstance(width, int) and isinstance(cols, int):
        return (at if width < cols else last,)
    return at, last


def repeated(s: OpContext, one: TileDesc, given: Sequence[Lowered | None]) -> bool:
    """True if a source may have several columns for each row."""
    tiles = [value for value in given if isinstance(value, TileDesc)]
    return repeats(s.case) and len(tiles) > 1 and one.type.cols != 1 and one.valid[1] != 1


def _at_least_one(s: OpContext, count: Val) -> Val:
    if isinstance(count, int):
        return max(count, 1)
    return s.x.new(f"select i1 {s.x.compare('slt', count, 1)}, i64 1, i64 {count}")


def _repeated(
    s: OpContext, tile: TileDesc, p: Plane, size: tuple[Val, Val, Val], pitch: int, room: int
) -> str:
    """Repeat the first columns of each row in scratch memory: (rows, width, cols)."""
    unsupported_if(p.cols != 1, "columns that repeat, one below the other")
    to, source = s.x.at(s.e.scratch(), room), planes.machine_address(s, tile)
    itemsize = p.dtype.itemsize

    def write(x: Text) -> None:
        def row(i: Val) -> None:
            begin = planes.offset(x, "%p3", i, pitch, itemsize)
            line = planes.offset(x, "%p4", i, p.rows, itemsize)

            def part(j: Val) -> None:
                many = x.mul(x.smaller(x.sub("%p2", j), "%p1"), itemsize)
                at = planes.offset(x, begin, j, 1, itemsize)
                planes.copy_bytes(x, at, line, many)

            x.loop("%p2", "%p1", part)

        x.loop("%p0", 1, row)

    given = [*(("i64", n) for n in size), ("ptr", to), ("ptr", source)]
    s.call(repr(("repeated columns", p, pitch)), given, write)
    return to


def _one(axis: Axis | None, p: Plane, rows: Val, cols: Val) -> tuple[Plane, Val, Val]:
    if axis == "column":
        return Plane(p.dtype, 0, p.cols), 1, cols
    return Plane(p.dtype, p.rows, 0), rows, 1


def safe(s: OpContext, dst: TileDesc, source: TileDesc, spread: bool = False) -> str:
    """True if reading and writing strip by strip gives the same as reading everything first."""
    x, a, b = s.x, planes.plane(dst), planes.plane(source)
    separate = planes.apart(s, dst, planes.extent(dst), source, planes.extent(source))
    if spread or (a != b and (a.dtype.itemsize, a.rows) != (b.dtype.itemsize, b.rows)):
        return separate
    if dst.memory != source.memory:
        return "true"
    return x.either(separate, x.compare("eq", dst.address, source.address))


def scalar_kind(word: ScalarValue, like: DType) -> np.dtype[Any]:
    """The element type that a scalar counts as: integers of one width are the same bits."""
    own = word.type.dtype or I64
    if own.is_float:
        return own.numpy
    return (like if like.is_integer and like.bits == own.bits else own).numpy


def _flat(
    s: OpContext, target: Plane, sources: Sequence[_Source], rows: Val, cols: Val
) -> tuple[Val, Val]:
    """Merge contiguous lines into one."""
    tiles = [x.plane for x in sources if x.plane is not None]
    same = isinstance(cols, int) and all(p.rows == cols and p.cols == 1 for p in (target, *tiles))
    return (1, s.x.mul(rows, cols)) if same else (rows, cols)


def _function(
    s: OpContext,
    name: str,
    fn: Callable[..., Any],
    target: Plane,
    sources: Sequence[_Source],
    width: Val,
) -> str:
    """void f(rows, cols, dst, sources...)"""
    widest = max([target.dtype.itemsize, *(x.kind.itemsize for x in sources if x.plane)])
    count = VECTOR_BYTES // widest
    while True:
        x = Text(s.e.unit.declare)
        loop = _Loop(x, fn, target, sources, count)
        loop.write(width)
        fits = VECTOR_BYTES // max(x.widest, 1)
        if count <= 16 or (loop.longest <= _LONG and count <= fits):
            break
        count = 16 if loop.longest > _LONG else fits
    return x.procedure(name, ["i64", "i64", "ptr", *(source.llvm for source in sources)])


class _Loop:
    """The body of a function: lines, in strips of `count` lanes.

    Two lines at a time are read before either is written: a store slows down loads of the same
    place in another page.
    """

    def __init__(
        self, x: Text, fn: Callable[..., Any], target: Plane, sources: Sequence[_Source], count: int
    ) -> None:
        self.x, self.fn, self.target, self.sources = x, fn, target, sources
        self.spot = lanes.Lanes(x, count)
        self.longest = 0  # lines of text of one application of fn
        self._scalars = {
            n: self.spot.spread(src.kind, f"%p{3 + n}")
            for n, src in enumerate(sources)
            if src.plane is None
        }

    def write(self, width: Val) -> None:
        x = self.x
        pairs = x.new("and i64 %p0, -2")
        x.loop(pairs, 2, lambda i: self._lines([i, x.add(i, 1)], width))
        x.loop("%p0", 1, lambda i: self._lines([i], width), start=pairs)

    def _lines(self, rows: Sequence[Val], width: Val) -> None:
        starts = [self._starts(i) for i in rows]
        ones = [self._ones(start) for start in starts]

        def strip(j: Val, mask: str | None) -> None:
            given = [self._read(a, b, j, mask) for a, b in zip(starts, ones, strict=True)]
            found = [self._apply(each) for each in given]
            for i, items in zip(rows, found, strict=True):
                to = planes.offset(self.x, "%p2", i, self.target.rows, self.target.dtype.itemsize)
                at = planes.offset(self.x, to, j, 1, self.target.dtype.itemsize)
                count, dtype = self.spot.count, self.target.dtype
                planes.store_lanes(self.x, dtype, count, items, at, mask)

        planes.strips(self.x, self.spot.count, width, strip)

    def _starts(self, i: Val) -> dict[int, str]:
        """The address of line i of each tile."""
        return {
            n: planes.offset(self.x, f"%p{3 + n}", i, src.plane.rows, src.kind.itemsize)
            for n, src in enumerate(self.sources)
            if src.plane is not None
        }

    def _ones(self, starts: Mapping[int, str]) -> dict[int, lanes.Symbol]:
        """Sources with one value for the line."""
        return {
            n: self.spot.spread(src.kind, self.x.load(scalar_type(src.kind), starts[n]))
            for n, src in enumerate(self.sources)
            if src.plane is not None and src.plane.cols == 0
        }

    def _read(
        self, starts: Mapping[int, str], ones: Mapping[int, lanes.Symbol], j: Val, mask: str | None
    ) -> list[lanes.Symbol]:
        given: list[lanes.Symbol] = []
        for n, src in enumerate(self.sources):
            ready = self._scalars.get(n, ones.get(n))
            if ready is None and src.plane is not None:
                at = planes.offset(self.x, starts[n], j, 1, src.kind.itemsize)
                count, dtype = self.spot.count, src.plane.dtype
                item = planes.load_lanes(self.x, dtype, count, at, mask)
                ready = self.spot.symbol(src.kind, item)
            if ready is not None:
                given.append(ready)
        return given

    def _apply(self, given: Sequence[lanes.Symbol]) -> Val:
        start = len(self.x.lines)
        found = items_of(self.spot, self.fn(*given), self.target.dtype).name
        self.longest = max(self.longest, len(self.x.lines) - start)
        return found
