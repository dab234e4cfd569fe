"""Pointers, views and tile handles in compiled code: values that name places; no data moves."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.compact import Compact
from pto.core.dtypes import DType
from pto.core.global_layout import RANK, GlobalLayout, global_layout
from pto.core.memory import Space
from pto.core.pointer import FAR, FARTHEST
from pto.isa.meaning.handle import view
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.border.values import SPACE_NUMBERS, Native, Place, TilePlace, ViewPlace, Word
from pto.run.jit.emit.table import Emit, Spot, emits
from pto.run.jit.emit.tile.grids import kept_shape
from pto.run.jit.llvm.text import I64, NotNative, Text, Val


def number(native: Native) -> Val:
    """An index or i64."""
    if not isinstance(native, Word) or native.types[0] != "i64":
        raise NotNative("a number of another width")
    return native.name


# ---- pointers


_FAR = "the pointer leaves its array for one of another rank"


@emits(view.ADD_POINTER, cheap=True)
def _add(s: Spot) -> Sequence[Native]:
    pointer, offset = s.all()
    if not isinstance(pointer, Place) or pointer.elem is None:
        raise NotNative("a pointer without elements")
    x, count, maker = s.x, number(offset), s.op.operands[1].maker
    address = x.add(pointer.address, x.mul(count, pointer.elem.itemsize))
    s.fault_unless(x.both(near(x, count), near(x, address, FARTHEST)))
    moved = pointer.renamed((pointer.memory, address))
    if maker is None or maker.control is not Control.CALL or isinstance(pointer.memory, int):
        return [moved]
    # a distance that may lead to another rank: which array that is, Python knows
    own, far, done = x.fresh("own"), x.fresh("far"), x.fresh("done")
    x.branch(x.compare("ule", address, s.e.size(pointer.memory)), own, far)
    x.label(far)
    (other,), there = s.e.run_outside(s.op, _FAR, seldom=True), x.here
    x.jump(done)
    x.label(own)
    x.jump(done)
    x.label(done)
    ways = zip(moved.names, other.names, strict=True)
    return [moved.renamed([x.phi(I64, [(a, own), (b, there)]) for a, b in ways])]


def near(x: Text, count: Val, far: int = FAR) -> str:
    """Whether a number is small enough that arithmetic with it cannot go around."""
    return x.compare("ult", x.add(count, far), 2 * far)


@emits(view.CAST_POINTER, cheap=True)
def _cast(s: Spot) -> Sequence[Native]:
    (source,), result = s.all(), s.op.results[0].type
    if not isinstance(result, t.Ptr):
        raise NotNative("the address of a pointer")
    elem = view.element(result)
    if isinstance(source, Place):
        return [Place(source.names, elem)]
    if result.space is Space.GM:
        raise NotNative("a number that is an address in global memory")
    return [Place((SPACE_NUMBERS[result.space], number(source)), elem)]


@emits(view.TILE_ADDRESS, cheap=True)
def _tile_address(s: Spot) -> Sequence[Native]:
    (tile,) = s.all()
    if not isinstance(tile, TilePlace):
        raise NotNative("a handle")
    return [Place((tile.memory, tile.address), view.element(s.op.results[0].type))]


@emits(view.VIEW_ADDRESS, cheap=True)
def _view_address(s: Spot) -> Sequence[Native]:
    (source,) = s.all()
    if not isinstance(source, ViewPlace):
        raise NotNative("a handle")
    return [Place((source.memory, source.address), source.dtype)]


# ---- views of global memory


@emits(view.TENSOR_VIEW, cheap=True)
def _tensor(s: Spot) -> Sequence[Native]:
    """A descriptor: bounds are checked where its elements are used."""
    ptr = s.need(Place, "ptr")
    shape = [number(v) for v in s.operands("shape")]
    strides = [number(v) for v in s.operands("strides")]
    kind = view.element(s.op.results[0].type) or ptr.elem
    layout = global_layout(s.case.word("layout") or "nd")
    if kind is None:
        raise NotNative("a view that is told in part")
    return [described(s, (ptr.memory, ptr.address), kind, shape, strides, layout)]


def described(
    s: Spot,
    at: tuple[Val, Val],
    kind: DType,
    shape: Sequence[Val],
    strides: Sequence[Val],
    layout: GlobalLayout,
) -> ViewPlace:
    """GlobalTensor.of: from a memory and an address on."""
    if len(shape) != len(strides) or not 0 < len(shape) <= RANK:
        raise NotNative("a view that is told in part")
    if layout.sizes or RANK in layout.col_axes:
        raise NotNative("a layout with fixed sizes")
    x, missing = s.x, RANK - len(shape)
    whole = 1
    if missing:
        reach = [x.mul(n, step) for n, step in zip(shape, strides, strict=True)]
        whole = reach[0]
        for each in reach[1:]:
            s.e.unit.declare("declare i64 @llvm.smax.i64(i64, i64)")
            whole = x.new(f"call i64 @llvm.smax.i64(i64 {whole}, i64 {each})")
    five, steps = (*[1] * missing, *shape), (*[whole] * missing, *strides)
    made = ViewPlace((*at, *five, *steps), kind, layout)
    fine = "true"
    for each in (*made.shape, *made.strides):
        fine = x.both(fine, x.compare("sge", each, 0))
    s.fault_unless(fine)
    return made


def inside(s: Spot, view: ViewPlace) -> str:
    """Whether all elements of a view lie inside its memory, which is asked where they are used."""
    x, empty = s.x, "false"
    nbytes, whole = view.dtype.itemsize, "true"
    for size, step in zip(view.shape, view.strides, strict=True):
        empty = x.either(empty, x.compare("eq", size, 0))
        for op, factor in (("mul", x.sub(size, 1)), ("mul", view.dtype.itemsize)):
            step, kept = _exact(s, op, step, factor)
            whole = x.both(whole, kept)
        nbytes, kept = _exact(s, "add", nbytes, step)
        whole = x.both(whole, kept)
    whole = x.both(whole, x.compare("sge", nbytes, 0))
    return x.either(empty, x.both(whole, s.e.inside(view.memory, view.address, nbytes)))


def _exact(s: Spot, op: str, a: Val, b: Val) -> tuple[Val, str]:
    """A sum or product, and whether it fits 64 bits."""
    if isinstance(a, int) and isinstance(b, int):
        found = a * b if op == "mul" else a + b
        return found, "true" if abs(found) < 1 << 63 else "false"
    if (op, b) in (("mul", 1), ("add", 0)):
        return a, "true"
    if op == "mul" and 0 in (a, b):
        return 0, "true"
    s.e.unit.declare(f"declare {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64, i64)")
    pair = s.x.new(f"call {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64 {a}, i64 {b})")
    over = s.x.new(f"extractvalue {{i64, i1}} {pair}, 1")
    return s.x.new(f"extractvalue {{i64, i1}} {pair}, 0"), s.x.new(f"xor i1 {over}, true")


@emits(view.PARTITION, cheap=True)
def _partition(s: Spot) -> Sequence[Native]:
    source = s.operands("source")[0] if s.op.group("source") else s.all()[0]
    if not isinstance(source, ViewPlace):
        raise NotNative("a handle")
    offsets = [number(v) for v in s.operands("offsets")]
    return [part_of(s, source, offsets, [number(v) for v in s.operands("sizes")])]


def part_of(s: Spot, source: ViewPlace, offsets: Sequence[Val], sizes: Sequence[Val]) -> ViewPlace:
    """GlobalTensor.partition."""
    if len(offsets) != len(sizes) or len(sizes) > RANK:
        raise NotNative("a window that is told in part")
    x, fine, address = s.x, "true", source.address
    skip = RANK - len(sizes)
    for n, (first, count) in enumerate(zip(offsets, sizes, strict=True)):
        limit = source.shape[skip + n]
        fine = x.both(fine, x.compare("ule", first, limit))
        fine = x.both(fine, x.compare("ule", count, x.sub(limit, first)))
        step = x.mul(source.strides[skip + n], source.dtype.itemsize)
        address = x.add(address, x.mul(first, step))
    s.fault_unless(fine)
    shape = (*source.shape[:skip], *sizes)
    names = (source.memory, address, *shape, *source.strides)
    return ViewPlace(names, source.dtype, source.layout)


def _dimension(stride: bool) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        source, index = s.all()
        type = s.op.operands[0].type
        rank = len(type.shape) if isinstance(type, t.View) else 0
        name = number(index)
        if not isinstance(source, ViewPlace) or not isinstance(name, int) or int(name) >= rank:
            raise NotNative("a dimension that is not a number")
        chosen = (source.strides if stride else source.shape)[RANK - rank + name]
        return [Word((chosen,), t.Scalar("index", None))]

    return emit


emits(view.DIMENSION)(_dimension(False))
emits(view.STRIDE)(_dimension(True))

# ---- tiles


@emits(view.ALLOC_TILE, cheap=True)
def _alloc(s: Spot) -> Sequence[Native]:
    type = view.tile_type(s.op.results[0].type)
    address, *given = (s.operand(n) for n in s.case.row.operand_names)
    start = placed(s) if address is None else number(address)
    fixed = list(type.valid)
    fine, region = "true", list[Val]()
    for limit, known, value in zip(type.shape, fixed, given, strict=True):
        name = known if value is None else number(value)
        if name is None:
            raise NotNative("a valid region that is set later")
        fine = s.x.both(fine, s.x.compare("ule", name, limit))
        region.append(name)
    made = TilePlace((start, *region), type)
    if type.compact is Compact.NORMAL:
        kept_shape(type, ["", ""] if id(s.op.results[0]) in s.e.cells else region)
    fine = s.x.both(fine, s.e.inside(made.memory, start, type.nbytes))
    align = s.case.profile.alignment.base
    fine = s.x.both(fine, s.x.compare("eq", s.x.rest(start, align), 0))
    if fine == "false":
        raise NotNative("a tile outside its buffer")
    s.fault_unless(fine)
    return [made]


def placed(s: Spot) -> Val:
    """The address the planner gave, known when the kernel is prepared."""
    return s.e.compiler.placement.address(s.op)


@emits(view.MULTI_GET, cheap=True)
def _multi_get(s: Spot) -> Sequence[Native]:
    first, slot, source = s.need(TilePlace, "source"), s.need(Word, "slot"), s.case.type("source")
    s.fault_unless(s.x.compare("ult", slot.name, source.count))  # type: ignore[union-attr]
    start = s.x.add(first.address, s.x.mul(slot.name, first.type.nbytes))
    fine = s.e.inside(first.memory, start, first.type.nbytes)
    s.fault_unless(fine)
    return [first.renamed((start, *first.valid))]


@emits(view.SET_VALID)
def _set_valid(s: Spot) -> Sequence[Native]:
    tile, rows, cols = s.all()
    if not isinstance(tile, TilePlace):
        raise NotNative("a handle")
    names = number(rows), number(cols)
    fine = "true"
    for name, limit in zip(names, tile.type.shape, strict=True):
        fine = s.x.both(fine, s.x.compare("ule", name, limit))
    s.fault_unless(fine)
    s.e.bind(s.op.operands[0], tile.renamed((tile.address, *names)))
    return []


@emits(view.VALID_ROWS, cheap=True)
def _valid_rows(s: Spot) -> Sequence[Native]:
    return [Word((_tile(s).valid[0],), t.Scalar("index", None))]


@emits(view.VALID_COLS, cheap=True)
def _valid_cols(s: Spot) -> Sequence[Native]:
    return [Word((_tile(s).valid[1],), t.Scalar("index", None))]


@emits(view.VALID_SHAPE, cheap=True)
def _valid_shape(s: Spot) -> Sequence[Native]:
    return [Word((n,), t.Scalar("index", None)) for n in _tile(s).valid]


def _tile(s: Spot) -> TilePlace:
    (tile,) = s.all()
    if not isinstance(tile, TilePlace):
        raise NotNative("a handle")
    return tile


@emits(view.RETYPED, cheap=True)
def _retyped(s: Spot) -> Sequence[Native]:
    tile, type = _tile(s), view.tile_type(s.op.results[0].type)
    if tile.pitch is not None or type.compact is not Compact.NULL:
        raise NotNative("a window")
    if type.space is not tile.type.space:
        raise NotNative("a tile of another buffer")
    known = [v for v in type.valid if v is not None]
    region = tile.valid if len(known) < len(type.valid) else known
    fine = s.e.inside(tile.memory, tile.address, type.nbytes)
    for name, limit in zip(region, type.shape, strict=True):
        fine = s.x.both(fine, s.x.compare("ule", name, limit))
    if fine == "false":
        raise NotNative("a tile outside its buffer")
    s.fault_unless(fine)
    return [TilePlace((tile.address, *region), type)]
