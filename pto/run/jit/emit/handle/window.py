"""Parts of tiles and views under names of their own, in compiled code; no data moves."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.compact import Compact
from pto.core.tile import TileType
from pto.isa.meaning.handle import config, subview, view
from pto.isa.meaning.tile import rearrange
from pto.isa.row import types as t
from pto.run.jit.border.values import Native, TilePlace, ViewPlace, Word
from pto.run.jit.emit.handle.view import number, part_of
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import boxes
from pto.run.jit.llvm.text import NotNative, Val


def window(
    s: Spot, parent: TilePlace, at: Sequence[Val], type: TileType, valid: Sequence[Val]
) -> TilePlace:
    """Tile.window: inside the parent, and not across its boxes."""
    stored = boxes.stored_shape(parent)
    alike = parent.type.layout == type.layout and parent.type.itemsize == type.itemsize
    if not alike or Compact.NULL not in (type.compact, parent.type.compact):
        raise NotNative("a window of another form")
    x, fine, field = s.x, "true", boxes.field(parent)
    skipped = 0
    box, axes = parent.type.box, (field.rows, field.cols)
    sizes = zip(at, type.shape, parent.type.shape, valid, box, axes, strict=True)
    for first, size, limit, extent, side, along in sizes:
        if size > limit:
            raise NotNative("a window larger than its tile")
        fine = x.both(fine, x.compare("ule", first, limit - size))
        fine = x.both(fine, x.compare("ule", extent, size))
        if side > 1:
            fine = x.both(fine, x.compare("eq", x.rest(first, side), 0))
        skipped = x.add(skipped, boxes.position(x, along, first))
    if fine == "false":
        raise NotNative("a window that is wrong")
    s.fault_unless(fine)
    address = x.add(parent.address, x.mul(skipped, type.itemsize))
    axis = type.layout.pitch_axis
    pitch = None if stored[axis] == type.shape[axis] else stored[axis]
    return TilePlace((address, *valid), type, pitch)


@emits(subview.SUBVIEW)
def _subview(s: Spot) -> Sequence[Native]:
    source, offsets = s.operand("source"), [number(v) for v in s.operands("offsets")]
    result, sizes = s.op.results[0].type, subview.sizes_of(s.case)
    if isinstance(source, ViewPlace) and not isinstance(result, t.TileBuf):
        return [part_of(s, source, offsets, sizes)]
    if not isinstance(source, TilePlace) or len(offsets) != 2 or len(sizes) != 2:
        raise NotNative("a handle")
    type = view.tile_type(result)
    region: list[Val] = []
    given = (s.operand("valid_row"), s.operand("valid_col"))
    for value, known, size, limit in zip(given, type.valid, sizes, type.shape, strict=True):
        if value is None:
            region.append(size if known is None else known)
        else:
            region.append(s.x.smaller(number(value), limit))
    return [window(s, source, offsets, type, region)]


@emits(subview.SUBSET)
def _subset(s: Spot) -> Sequence[Native]:
    source, type = s.need(TilePlace, "source"), view.tile_type(s.op.results[0].type)
    offsets = [number(v) for v in s.operands("offsets")]
    if len(offsets) != 2:
        raise NotNative("a window of other dimensions")
    shares = zip(source.valid, offsets, type.shape, strict=True)
    region = [_share(s, have, first, size) for have, first, size in shares]
    return [window(s, source, offsets, type, region)]


def _share(s: Spot, valid: Val, offset: Val, size: int) -> Val:
    """`subview.share`."""
    if isinstance(valid, int) and isinstance(offset, int):
        return subview.share(valid, offset, size)
    x, some = s.x, s.x.compare("sgt", valid, 0)
    by = x.new(f"select i1 {some}, i64 {valid}, i64 1")
    seen = x.smaller(size, x.sub(valid, x.new(f"urem i64 {offset}, {by}")))
    return x.new(f"select i1 {some}, i64 {seen}, i64 0")


@emits(rearrange.RESHAPE, cheap=True)
def _reshape(s: Spot) -> Sequence[Native]:
    """Tile.retyped: the same bytes under another type."""
    tile, type = s.need(TilePlace, "src"), view.tile_type(s.op.results[0].type)
    kept = (type.shape, type.layout, type.itemsize)
    if tile.pitch is not None and kept != (
        tile.type.shape,
        tile.type.layout,
        tile.type.itemsize,
    ):
        raise NotNative("a window with gaps becomes another tile")
    known = tile.valid if tile.type.shape == type.shape else type.shape
    region = [k if own is None else own for k, own in zip(known, type.valid, strict=True)]
    return [retyped(s, tile, type, tile.address, region, tile.pitch)]


@emits(config.ASSIGN)
def _assign(s: Spot) -> Sequence[Native]:
    tile, address = s.all()
    if not isinstance(tile, TilePlace) or not isinstance(address, Word):
        raise NotNative("a handle, or a view")
    return [retyped(s, tile, tile.type, number(address), tile.valid, tile.pitch)]


def retyped(
    s: Spot, tile: TilePlace, type: TileType, address: Val, valid: Sequence[Val], pitch: int | None
) -> TilePlace:
    """A tile of another type in the same buffer, inside it and aligned."""
    if type.space is not tile.type.space or type.compact is Compact.NORMAL:
        raise NotNative("a tile of another buffer")
    x, made = s.x, TilePlace((address, *valid), type, pitch)
    nbytes = type.nbytes if pitch is None else boxes.extent(made)
    fine = s.e.inside(made.memory, address, nbytes)
    for extent, limit in zip(valid, type.shape, strict=True):
        fine = x.both(fine, x.compare("ule", extent, limit))
    align = s.case.profile.alignment.base
    if align > 1 and pitch is None and address != tile.address:
        fine = x.both(fine, x.compare("eq", x.rest(address, align), 0))
    if fine == "false":
        raise NotNative("a tile outside its buffer")
    s.fault_unless(fine)
    return made
