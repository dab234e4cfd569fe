"""Comparisons of tiles into packed bits, and selection by such bits: 64 columns are 8 bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.core.dtypes import DType
from pto.isa.meaning import lanes as meaning
from pto.isa.meaning.tile import compare
from pto.isa.meaning.tile.regions import require_arithmetic
from pto.run.jit.border.values import Native, TilePlace, Word
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.elementwise import safe, scalar_kind
from pto.run.jit.emit.tile.planes import Plane
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import NotNative, Text, Val

_LANES = 64
_BITS = f"<{_LANES} x i1>"
Sources = list[tuple[Plane | None, Any, str, Val]]  # steps, type, LLVM type, value


@emits(compare.COMPARE)
def _compare(s: Spot) -> Sequence[Native]:
    return _comparison(s, "src0", "src1")


@emits(compare.COMPARE_SCALAR)
def _compare_scalar(s: Spot) -> Sequence[Native]:
    size = s.need(TilePlace, "src").type.itemsize
    if s.case.profile.vector.scalar_compare_mask == "dense" and size < 8:
        raise NotNative("a mask without row pitch")
    if not isinstance(s.operand("scalar"), Word):
        raise NotNative("a scalar in a tile")
    return _comparison(s, "src", "scalar")


def _comparison(s: Spot, first: str, second: str) -> Sequence[Native]:
    """dst's row i holds the bits of row i, in whole elements; the rest of dst stays."""
    require_arithmetic(s.case)
    src, dst = s.need(TilePlace, first), s.need(TilePlace, "dst")
    rows, cols = src.valid
    x, (height, width), size = s.x, dst.type.shape, dst.type.itemsize
    fits = x.both(x.compare("sle", rows, height), x.compare("sle", cols, width * size * 8))
    empty = x.either(x.compare("eq", rows, 0), x.compare("eq", cols, 0))
    s.fault_unless(x.either(empty, fits))
    sources, _ = _sources(s, dst, rows, cols, src.type.dtype, [first, second])
    into = _lines(dst)
    test = meaning.MODES[s.case.word("cmpMode") or "eq"]
    key = planes.key_of(s, into, size, *((p, k, t) for p, k, t, _ in sources))
    name = s.e.unit.shared(
        key,
        lambda n: _function(
            s, n, lambda x, w: _write_bits(s, x, test, into, size, sources, w), sources
        ),
    )
    _call(s, name, rows, cols, dst, sources)
    return []


@emits(compare.SELECT)
def _select(s: Spot) -> Sequence[Native]:
    return _selection(s, ["src0", "src1"])


@emits(compare.SELECT_SCALAR)
def _select_scalar(s: Spot) -> Sequence[Native]:
    return _selection(s, ["src", "scalar"])


def _selection(s: Spot, names: list[str]) -> Sequence[Native]:
    """The first where the bit is 1, over dst's valid region."""
    dst, mask = s.need(TilePlace, "dst"), s.need(TilePlace, "mask")
    rows, cols = dst.valid
    x, size = s.x, mask.type.itemsize
    needed = x.compare("sle", cols, mask.type.cols * 8 * size)
    s.fault_unless(x.both(x.compare("sle", rows, mask.type.rows), needed))
    sources, room = _sources(s, dst, rows, cols, dst.type.dtype, names, safe)
    into, bits = _lines(dst), _lines(mask)
    pointer, _ = planes.kept(s, mask, planes.apart(s, dst, mask), room)
    sources.append((bits, None, "ptr", pointer))
    key = planes.key_of(s, into, size, *((p, str(k), t) for p, k, t, _ in sources))
    name = s.e.unit.shared(
        key,
        lambda n: _function(
            s, n, lambda x, w: _write_chosen(s, x, into, bits, size, sources, w), sources
        ),
    )
    _call(s, name, rows, cols, dst, sources)
    return []


def _lines(tile: TilePlace) -> Plane:
    found = planes.plane(tile)
    if found.cols != 1:
        raise NotNative("a tile whose rows are no lines")
    return found


def _sources(
    s: Spot,
    dst: TilePlace,
    rows: Val,
    cols: Val,
    like: DType,
    names: list[str],
    separate: Callable[[Spot, TilePlace, TilePlace], str] = planes.apart,
) -> tuple[Sources, int]:
    """Tiles and scalars that are read over rows x cols; scratch memory that copies of them take."""
    found: Sources = []
    room = 0
    for name in names:
        value = s.operand(name)
        if isinstance(value, TilePlace):
            s.fault_unless(planes.enough(s, value, rows, cols))
            p, (pointer, room) = _lines(value), planes.kept(s, value, separate(s, dst, value), room)
            found.append((p, p.dtype.numpy, "ptr", pointer))
        elif isinstance(value, Word):
            found.append((None, scalar_kind(value, like), value.types[0], value.name))
        else:
            raise NotNative("an operand with no native form")
    return found, room


def _call(s: Spot, name: str, rows: Val, cols: Val, dst: TilePlace, sources: Sources) -> None:
    listed = ", ".join(f"{type} {value}" for _, _, type, value in sources)
    to = planes.machine_address(s, dst)
    s.x.do(f"call void {name}(i64 {rows}, i64 {cols}, ptr {to}, {listed})")


def _function(
    s: Spot, name: str, write: Callable[[Text, lanes.Lanes], None], sources: Sources
) -> str:
    """void f(rows, cols, dst, sources...)"""
    x = Text()
    write(x, lanes.Lanes(x, _LANES, s.e.unit.declare))
    x.do("ret void")
    listed, _ = planes.parameters(["i64", "i64", "ptr", *(type for _, _, type, _ in sources)])
    return x.function(f"define internal void {name}({listed}) noinline nounwind")


def _reader(
    s: Spot, x: Text, spot: lanes.Lanes, sources: Sources
) -> Callable[[Val, Val, str | None], list[Any]]:
    """fn(i, j, mask) -> what stands in row i from column j on."""
    ready = {
        n: spot.spread(kind, f"%p{3 + n}") for n, (p, kind, _, _) in enumerate(sources) if p is None
    }

    def read(i: Val, j: Val, mask: str | None) -> list[Any]:
        out: list[Any] = []
        for n, (p, kind, _, _) in enumerate(sources):
            if p is None:
                out.append(ready[n])
                continue
            if kind is None:
                continue
            row = planes.offset(x, f"%p{3 + n}", i, p.rows, p.dtype.itemsize)
            at = planes.offset(x, row, j, 1, p.dtype.itemsize)
            item = planes.load_lanes(x, s.e.unit.declare, p.dtype, _LANES, at, mask)
            out.append(spot.symbol(kind, item))
        return out

    return read


def _write_bits(
    s: Spot,
    x: Text,
    test: Callable[[Any, Any], Any],
    into: Plane,
    size: int,
    sources: Sources,
    spot: lanes.Lanes,
) -> None:
    read = _reader(s, x, spot, sources)

    def row(i: Val) -> None:
        to = planes.offset(x, "%p2", i, into.rows, size)

        def strip(j: Val, mask: str | None) -> None:
            found = test(*read(i, j, mask)).name
            if mask is not None:
                found = x.new(f"and {_BITS} {found}, {mask}")
            word = x.new(f"bitcast {_BITS} {found} to i64")
            at = x.at(to, x.new(f"lshr i64 {j}, 3"))
            if mask is None:
                x.store("i64", word, at)
                return
            # whole elements of the mask
            items = x.new(f"udiv i64 {x.add('%p1', 8 * size - 1)}, {8 * size}")
            left = x.sub(x.mul(items, size), x.new(f"lshr i64 {j}, 3"))
            room = x.stack("i64")
            x.store("i64", word, room, 8)
            planes.copy_bytes(x, s.e.unit.declare, at, room, left)

        planes.strips(x, _LANES, "%p1", strip)

    planes.loop(x, "%p0", 1, row)


def _write_chosen(
    s: Spot, x: Text, into: Plane, bits: Plane, size: int, sources: Sources, spot: lanes.Lanes
) -> None:
    read, last = _reader(s, x, spot, sources), 2 + len(sources)

    def row(i: Val) -> None:
        to = planes.offset(x, "%p2", i, into.rows, into.dtype.itemsize)
        mask_row = planes.offset(x, f"%p{last}", i, bits.rows, size)

        def strip(j: Val, mask: str | None) -> None:
            at = x.at(mask_row, x.new(f"lshr i64 {j}, 3"))
            if mask is None:
                word = x.load("i64", at)
            else:
                room = x.stack("i64")
                x.store("i64", 0, room, 8)
                left = x.new(f"lshr i64 {x.add(x.sub('%p1', j), '7')}, 3")
                planes.copy_bytes(x, s.e.unit.declare, room, at, left)
                word = x.load("i64", room, 8)
            condition: Any = spot.symbol(lanes.BOOL, x.new(f"bitcast i64 {word} to {_BITS}"))
            a, b = read(i, j, mask)
            found: Any = meaning.select(condition, a, b)
            if found.dtype != into.dtype.numpy:
                raise NotNative("a result of another type")
            place = planes.offset(x, to, j, 1, into.dtype.itemsize)
            planes.store_lanes(x, s.e.unit.declare, into.dtype, _LANES, found.name, place, mask)

        planes.strips(x, _LANES, "%p1", strip)

    planes.loop(x, "%p0", 1, row)
