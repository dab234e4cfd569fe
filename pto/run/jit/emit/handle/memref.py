"""Memrefs in compiled code: buffers under other types; no data moves but single elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from pto.core.compact import Compact
from pto.core.global_layout import RANK
from pto.core.tile import TileType
from pto.isa.meaning.handle import memref, view
from pto.isa.row import types as t
from pto.isa.row.attributes import Ints, Str
from pto.run.jit.border.values import Native, TilePlace, ViewPlace, Word
from pto.run.jit.emit.handle.view import described, inside, near, number, placed
from pto.run.jit.emit.handle.window import retyped, window
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.llvm.text import NotNative, Val


@emits(memref.ALLOC)
def _alloc(s: Spot) -> Sequence[Native]:
    type = s.op.results[0].type
    if not isinstance(type, t.MemRef) or not type.space.is_local or not all(type.shape):
        raise NotNative("a buffer whose size is known only when it runs")
    tile = view.tile_type(type)
    return [_at(s, tile, placed(s), tile.shape)]


def _at(s: Spot, type: TileType, address: Val, valid: Sequence[Val]) -> TilePlace:
    if type.compact is not Compact.NULL:
        raise NotNative("a compact tile")
    return retyped(s, TilePlace(("", "", ""), type), type, address, valid, None)


@emits(memref.DEALLOC)
def _dealloc(s: Spot) -> Sequence[Native]:
    return []


@emits(memref.SAME, memref.TILE_TO_MEMREF)
def _same(s: Spot) -> Sequence[Native]:
    (source,) = s.all()
    if not isinstance(source, TilePlace | ViewPlace):
        raise NotNative("a handle")
    return [source]


def _region(s: Spot, type: TileType) -> list[Val | None]:
    """`view.valid_region`: the type's extents, the dynamic ones from operands; None: nobody's."""
    found: list[Val | None] = []
    for name, known in zip(("valid_row", "valid_col"), type.valid, strict=True):
        value = s.operand(name)
        found.append(known if value is None else number(value))
    return found


def _known(region: Sequence[Val | None]) -> list[Val]:
    names = [n for n in region if n is not None]
    if len(names) != len(region):
        raise NotNative("a valid region that is set later")
    return names


@emits(memref.BIND)
def _bind(s: Spot) -> Sequence[Native]:
    source, type = s.need(TilePlace, "source"), memref.configured(s.case, s.op.results[0].type)
    return [_retyped(s, source, type, _known(_region(s, type)))]


@emits(memref.MATERIALIZE)
def _materialize(s: Spot) -> Sequence[Native]:
    source, type = s.need(TilePlace, "source"), view.tile_type(s.op.results[0].type)
    semantics = s.op.attrs.get("pto.view_semantics")
    region = _region(s, type)
    whole = source.valid if None in region else tuple(map(str, type.shape))
    names = [
        s.x.smaller(now, limit) if given is None else given
        for given, now, limit in zip(region, whole, type.shape, strict=True)
    ]
    if isinstance(semantics, Str) and semantics.value == "subview":
        return [window(s, source, (0, 0), type, names)]
    return [_retyped(s, source, type, names)]


def _retyped(s: Spot, tile: TilePlace, type: TileType, valid: Sequence[Val]) -> TilePlace:
    kept = (type.shape, type.layout, type.itemsize)
    if tile.pitch is not None and kept != (tile.type.shape, tile.type.layout, tile.type.itemsize):
        raise NotNative("a window with gaps becomes another tile")
    return retyped(s, tile, type, tile.address, valid, tile.pitch)


@emits(memref.POINTER_CAST)
def _pointer_cast(s: Spot) -> Sequence[Native]:
    """With one address it is the same one each time."""
    type = memref.configured(s.case, s.op.results[0].type)
    addresses = s.operands(s.case.row.operand_names[0])
    if len(addresses) != 1:
        raise NotNative("a buffer for every turn")
    return [_at(s, type, number(addresses[0]), _known(_region(s, type)))]


# ---- windows


def _numbers(s: Spot, name: str) -> list[Val]:
    """`memref._mixed`: a list of numbers, of which values fill the open places."""
    static = s.op.attrs.get(f"static_{name}")
    given = [number(v) for v in s.operands(name)]
    if not isinstance(static, Ints) or not static.values:
        return given
    open_places = iter(given)
    return [next(open_places) if n == memref.DYNAMIC else n for n in static.values]


def _fixed(numbers: Sequence[Val]) -> list[int]:
    known = [n for n in numbers if isinstance(n, int)]
    if len(known) != len(numbers):
        raise NotNative("a shape that is known only when it runs")
    return known


@emits(memref.REINTERPRET)
def _reinterpret(s: Spot) -> Sequence[Native]:
    base, result, x = s.operand("source"), s.op.results[0].type, s.x
    offsets, sizes, strides = (_numbers(s, n) for n in ("offsets", "sizes", "strides"))
    if isinstance(base, ViewPlace):
        address = x.add(base.address, x.mul(offsets[0], base.dtype.itemsize))
        return [described(s, (base.memory, address), base.dtype, sizes, strides, base.layout)]
    if not isinstance(base, TilePlace) or not isinstance(result, t.MemRef) or strides[-1] != 1:
        raise NotNative("a handle, or a tile with gaps")
    type = view.tile_type(replace(result, shape=tuple(_fixed(sizes))))
    pitch = _fixed(strides[-2:-1])[0] if len(sizes) > 1 else None
    address = x.add(base.address, x.mul(offsets[0], base.type.itemsize))
    return [retyped(s, base, type, address, type.shape, pitch)]


@emits(memref.SUBVIEW)
def _subview(s: Spot) -> Sequence[Native]:
    base, source, result = s.operand("source"), s.op.operands[0].type, s.op.results[0].type
    offsets, sizes, steps = (_numbers(s, n) for n in ("offsets", "sizes", "strides"))
    kept = result.shape if isinstance(result, t.MemRef) else ()
    if isinstance(base, ViewPlace):
        return [_part(s, base, offsets, sizes, steps, kept)]
    shape = [n or 1 for n in source.shape] if isinstance(source, t.MemRef) else []
    if not isinstance(base, TilePlace) or any(step != 1 for step in steps) or not shape:
        raise NotNative("a handle, or a tile with gaps")
    extents = _fixed(sizes)
    if any(n not in (1, whole) for n, whole in zip(extents[:-2], shape[:-2], strict=True)):
        raise NotNative("a window with gaps")
    type = TileType.of(
        base.type.role, base.type.dtype, prod(extents[:-1]), extents[-1], base.type.layout
    )
    return [window(s, base, (_row(s, shape, offsets), offsets[-1]), type, type.shape)]


def _row(s: Spot, shape: Sequence[int], indices: Sequence[Val]) -> Val:
    """Rows of all leading dimensions follow each other."""
    row: Val = 0
    for first, whole in zip(indices[:-1], shape[:-1], strict=True):
        row = s.x.add(s.x.mul(row, whole), first)
    return row


def _part(
    s: Spot,
    base: ViewPlace,
    offsets: Sequence[Val],
    sizes: Sequence[Val],
    steps: Sequence[Val],
    kept: Sequence[int | None],
) -> ViewPlace:
    x, fine, address, skip = s.x, "true", base.address, RANK - len(sizes)
    limits, strides = base.shape[skip:], base.strides[skip:]
    for first, size, step, limit, stride in zip(
        offsets, sizes, steps, limits, strides, strict=True
    ):
        for each in (first, size, step):
            fine = x.both(fine, x.both(x.compare("sge", each, 0), near(x, each)))
        last = x.add(first, x.mul(x.sub(size, 1), step))
        fine = x.both(fine, x.either(x.compare("eq", size, 0), x.less(last, limit)))
        address = x.add(address, x.mul(x.mul(first, stride), base.dtype.itemsize))
    s.fault_unless(fine)
    whole = len(kept) == len(sizes)
    axes = range(len(sizes)) if whole else memref.kept_axes(_fixed(sizes), kept)
    step_of = [x.mul(steps[n], strides[n]) for n in axes]
    size_of = [sizes[n] for n in axes]
    return described(s, (base.memory, address), base.dtype, size_of, step_of, base.layout)


# ---- single elements


def _element(s: Spot, *, writes: bool) -> str:
    """The machine address of an element, inside its buffer."""
    place, x, indices = s.operand("memref"), s.x, [number(v) for v in s.operands("indices")]
    type, fine = s.case.type("memref"), "true"
    if isinstance(place, ViewPlace):
        limits, steps = (each[RANK - len(indices) :] for each in (place.shape, place.strides))
        kind, offset = place.dtype, 0
        for index, step in zip(indices, steps, strict=True):
            offset = x.add(offset, x.mul(index, step))
    elif isinstance(place, TilePlace) and isinstance(type, t.MemRef):
        limits, p = [n or 1 for n in type.shape], planes.plane(place)
        kind, column = p.dtype, indices[-1] if indices else 0
        offset = x.add(x.mul(_row(s, limits, indices), p.rows), x.mul(column, p.cols))
    else:
        raise NotNative("a handle")
    for index, limit in zip(indices, limits, strict=True):
        fine = x.both(fine, x.compare("ult", index, limit))
    address = x.add(place.address, x.mul(offset, kind.itemsize))
    if isinstance(place, ViewPlace):
        fine = x.both(fine, inside(s, place))
        s.e.touched(place.memory, address, 1, kind.itemsize, 0, writes=writes)
    s.fault_unless(fine)
    return s.pointer(place.memory, address, noted=True)


@emits(memref.LOAD)
def _load(s: Spot) -> Sequence[Native]:
    type = s.op.results[0].type
    if not isinstance(type, t.Scalar) or type.dtype is None or type.dtype.bits < 8:
        raise NotNative("an element without a size")
    form = Word(("",), type)
    return [form.renamed((s.x.load(form.types[0], _element(s, writes=False)),))]


@emits(memref.STORE)
def _store(s: Spot) -> Sequence[Native]:
    value = s.need(Word, "value")
    if value.type.dtype is None or value.type.dtype.bits < 8:
        raise NotNative("an element without a size")
    s.x.store(value.types[0], value.name, _element(s, writes=True))
    return []
