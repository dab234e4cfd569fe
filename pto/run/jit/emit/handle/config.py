"""Tiles that become names for other bytes, in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.isa.meaning.handle import config
from pto.isa.row import types as t
from pto.run.jit.border.values import Native, TilePlace, Word
from pto.run.jit.emit.table import Emit, Spot, emits
from pto.run.jit.llvm.text import I64, NotNative, Val

Place = Callable[[Spot, TilePlace, TilePlace], Val]


def _bound(place: Place) -> Emit:
    """dst lies somewhere else from here on, with the region it has."""

    def emit(s: Spot) -> Sequence[Native]:
        source, target, value = (
            s.need(TilePlace, "src"),
            s.need(TilePlace, "dst"),
            s.op.group("dst"),
        )
        if s.e.watch is not None or not isinstance(value[0].type, t.TileBuf):
            raise NotNative("a tile whose place is watched")
        address = place(s, source, target)
        s.fault_unless(s.e.inside(target.memory, address, target.type.nbytes))
        moved = target.renamed((address, *target.valid))
        s.e.bind(value[0], moved)
        if s.e.reach is not None:
            s.e.reach.name(moved, value[0].type)
        return []

    return emit


def _part(s: Spot, source: TilePlace, target: TilePlace) -> Val:
    """`config._part`."""
    x, (rows, cols) = s.x, source.type.shape
    row, col = (_wide(s, v) for v in s.all()[1:3])
    height, width = target.valid
    fine = x.both(x.compare("sge", row, 0), x.compare("sge", col, 0))
    for first, size, most in ((row, height, rows), (col, width, cols)):
        fine = x.both(fine, x.compare("sle", first, x.sub(most, size)))
    s.fault_unless(fine)
    plain = source.type.layout.blayout.value == "row_major"
    offset = x.add(x.mul(row, cols), col) if plain else x.add(row, x.mul(col, rows))
    return x.add(source.address, x.mul(offset, source.type.itemsize))


def _wide(s: Spot, native: Native) -> Val:
    if not isinstance(native, Word):
        raise NotNative("a start that is no number")
    known = isinstance(native.name, int) or native.types[0] == I64
    return native.name if known else s.x.new(f"sext {native.types[0]} {native.name} to i64")


def _scales(s: Spot, source: TilePlace, target: TilePlace) -> Val:
    if isinstance(source.address, int):
        return source.address >> config.SCALES_SHIFT
    return s.x.new(f"ashr i64 {source.address}, {config.SCALES_SHIFT}")


def _same(s: Spot, source: TilePlace, target: TilePlace) -> Val:
    if source.memory != target.memory:
        raise NotNative("a tile of another buffer")
    return source.address


emits(config.SUBVIEW)(_bound(_part))
emits(config.ALIAS)(_bound(_same))
emits(config.SCALE_ADDRESS)(_bound(_scales))
