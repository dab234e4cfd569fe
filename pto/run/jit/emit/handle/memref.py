"""Memrefs in compiled code: tiles in local buffers under other types; no data moves."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.compact import Compact
from pto.core.tile import TileType
from pto.isa.meaning.handle import memref, view
from pto.isa.row import types as t
from pto.isa.row.attributes import Str
from pto.run.jit.border.values import Native, TilePlace, ViewPlace
from pto.run.jit.emit.handle.view import number, placed
from pto.run.jit.emit.handle.window import retyped, window
from pto.run.jit.emit.table import Spot, emits
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
