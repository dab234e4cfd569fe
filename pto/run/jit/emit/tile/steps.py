"""Tile instructions as nests (`ir/nest.py`). A nest joins that of other instructions, or is a
function by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from pto.core.dtypes import F32, DType
from pto.core.floats import Round, round_integral
from pto.core.layout import REST, Mode
from pto.core.tile import Role
from pto.ir.graph import Value
from pto.isa.meaning.kinds import Axis, Fold, Lane
from pto.isa.meaning.lanes import convert
from pto.isa.meaning.tile import move
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.regions import element as element_of
from pto.isa.meaning.tile.regions import read_as, require_arithmetic, scalar_as
from pto.isa.row import types as t
from pto.run.jit.emit.operation import KINDS, OpContext, Prepared, emitter_of
from pto.run.jit.emit.tile import masked, tile_layouts
from pto.run.jit.emit.tile.move import separate, transfer, view_accesses
from pto.run.jit.emit.tile.reduce import Folded, Folder, fold_columns, fold_pairs, folded
from pto.run.jit.emit.tile.strips import StepParameters, Strips
from pto.run.jit.emit.tile.tile_layouts import tile_access
from pto.run.jit.ir import strided
from pto.run.jit.ir.expr import read, trace
from pto.run.jit.ir.kinds import UnsupportedLowering, certain, computes, symbol_type, unsupported_if
from pto.run.jit.ir.nest import FAR, Nest, Source, Step
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import TRUE, Condition, Val
from pto.run.jit.runtime.values import Lowered, ScalarValue, TileDesc, ViewDesc
from pto.run.reference.tiles import repeats

_SHORT = 512  # elements of a line whose length is known inside its function


def nest(s: OpContext) -> Nest | None:
    """An instruction as a nest; None if it is none."""
    body = s.body
    if body is move.LOAD:
        return _of_load(s)
    if body is move.STORE:
        return _of_store(s)
    if body is move.MOVE:
        return _of_move(s)
    if emitter_of(s.op) is None:
        return None
    if isinstance(body, Fold):
        in_pairs = body.pairs is not None and body.pairs(s.case)
        return None if in_pairs else _of_fold(s, folded(s))
    found = converted(s) if isinstance(body, Conversion) else mapped(s)
    one, *others = found.ones
    unknown = "which source is spread is known only when it runs" if others else ""
    return replace(_of_map(s, found, one), unfusible=unknown)


# ---- elementwise instructions and folds


class Mapped(NamedTuple):
    """dst = fn(given), element by element, in items of `dtype`. `ones` are the positions in `given`
    of the source that is spread along `axis` (see `_spread`); a position, because one tile may be
    both sources. `converts`: integers keep the sign of their source, whatever the destination's
    is."""

    fn: Callable[..., Any]
    dst: TileDesc
    dtype: DType
    given: list[Lowered | None]
    ones: tuple[int | None, ...] = (None,)
    axis: Axis | None = None
    converts: bool = False


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


def _require_computed(*dtypes: DType) -> None:
    """Refuse types that symbols hold as bits, which would be added as integers."""
    unsupported_if(
        not all(computes(dtype.numpy) for dtype in dtypes),
        "arithmetic on elements without machine instructions",
    )


def converted(s: OpContext) -> Mapped:
    """The conversion of an element."""
    body: Conversion = s.body
    pairs = body.choose(s.case)
    source, target = s.need(TileDesc, "src"), s.need(TileDesc, "dst")

    return Mapped(_change(tuple(pairs)), target, pairs[-1][1], [source], converts=True)


@lru_cache(maxsize=256)
def _change(pairs: tuple[tuple[DType, DType, Round, bool], ...]) -> Callable[..., Any]:
    """The lane function of conversions, one after the other."""

    def change(a: Any) -> Any:
        for src, dst, mode, saturate in pairs:
            if src is F32 and dst is F32:
                return round_integral(a, mode)
            a = convert(a, src, dst, mode, saturate)
        return a

    return change


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


def _of_map(s: OpContext, found: Mapped, one: int | None) -> Nest:
    """dst = fn(given), element by element, as lines of the destination; those of column-major tiles
    are columns. The source at position `one` is spread along the axis: its stride there is 0."""
    (rows, cols), sources = found.dst.valid, list[Source]()
    for at, value in enumerate(found.given):
        if not isinstance(value, TileDesc):
            word = certain(value, ScalarValue)
            sources.append((word, scalar_as(word.type, found.dtype).numpy))
            continue
        tile_layouts.require_unboxed(value.type)
        ref = tile_access(s, value)
        height = rows
        width = cols
        if at == one and found.axis == "column":
            ref, height = ref.with_layout(ref.layout._replace(rows=strided.axis(0))), 1
        elif at == one and repeated(s, value, found.given):
            width = s.x.greater(value.valid[1], 1)
            repeats = Mode(width, ref.layout.cols[0].stride), Mode(REST, 0)
            ref = ref.with_layout(ref.layout._replace(cols=repeats))
        elif at == one:
            ref, width = ref.with_layout(ref.layout._replace(cols=strided.axis(0))), 1
        fits = masked.covers(s, value, height, width)
        if not fits.is_true:  # an empty region needs no element of a source
            s.fault_unless(fits | masked.is_empty(s, rows, cols))
        kind = ref.dtype if found.converts else read_as(ref.dtype, found.dtype)
        sources.append((ref, symbol_type(kind)))
    tile_layouts.require_unboxed(found.dst.type)
    dst = tile_access(s, found.dst)
    expr = trace(found.fn, [kind for _, kind in sources], found.dtype)
    step = Step(dst, tuple(sources), expr)
    made = Nest(rows, cols, (step,))
    return made if dst.layout.cols == strided.axis(1) else made.swapped


def _of_fold(s: OpContext, f: Folded) -> Nest:
    """A fold of each row to one value."""
    to, sources = f.dst.layout._replace(cols=strided.axis(0)), ((f.src, f.src.dtype.numpy),)
    step = Step(f.dst.with_layout(to), sources, fold=(f.body, f.kind))
    in_rows = f.by_row and f.body.axis == "row" and isinstance(f.cols, int) and f.cols > 0
    return Nest(f.rows, f.cols, (step,), unfusible="" if in_rows else "a fold of columns")


# ---- copies


def _of_copy(dst: Access, src: Access, size: tuple[Val, Val], guard: Condition = TRUE) -> Nest:
    kind = symbol_type(dst.dtype)
    step = Step(dst, ((src, kind),), read(0, kind))
    return Nest(*size, (step,), guard)


def _of_move(s: OpContext) -> Nest | None:
    src, dst = s.need(TileDesc, "src"), s.need(TileDesc, "dst")
    asked = (s.operand("fp"), s.operand("preQuantScalar"), s.case.word("accToVecMode"))
    plain = s.case.word("reluPreMode") in (None, "no_relu") and not any(asked)
    elsewhere = s.e.compiler.side != "both" and src.type.role is not dst.type.role
    same = src.type.dtype is dst.type.dtype and src.valid == dst.valid
    if elsewhere or not (plain and same):
        return None
    return _of_copy(tile_access(s, dst), tile_access(s, src), dst.valid)


def _of_load(s: OpContext) -> Nest | None:
    view, tile = s.need(ViewDesc, "src"), s.need(TileDesc, "dst")
    found = None if move.has_margins(s.case) else _view_access(s, view, tile, writes=False)
    if found is None:
        return None
    made = _of_copy(tile_access(s, tile), found[0], tile.valid, found[1])
    pads = move.beside(tile.type, s.case.profile) is not None and tile.valid != tile.type.shape
    return replace(made, unfusible="what lies beside the valid region" if pads else "")


def _of_store(s: OpContext) -> Nest | None:
    tile, view = s.need(TileDesc, "src"), s.need(ViewDesc, "dst")
    given = s.operand("preQuantScalar") is not None or s.operand("fp") is not None
    plain = not given and move.combination(s.case, view.dtype) is None
    found = _view_access(s, view, tile, writes=True) if plain else None
    if found is None:
        return None
    guard = found[1] & separate(s, view)
    return _of_copy(found[0], tile_access(s, tile), tile.valid, guard)


def _view_access(
    s: OpContext, view: ViewDesc, tile: TileDesc, *, writes: bool
) -> tuple[Access, Condition] | None:
    """The elements of a view that a tile of vectors covers, and the condition for that; None if the
    view may have several layouts, or elements of another width."""
    if tile.type.role is not Role.VEC or view.dtype.itemsize != tile.type.itemsize:
        return None
    found, *others = view_accesses(s, view, tile, s.case.word("layout"), writes=writes)
    if others:
        return None
    s.fault_unless(found.in_range)
    large = writes and _may_be_large(s.op.operand("dst"), view.dtype.itemsize)
    return found.access._replace(array_size=s.e.size(view.memory) if large else 0), found.guard


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


# ---- one instruction as a function


def emit_lane(s: OpContext) -> Sequence[Lowered]:
    """dst[i,j] = fn(sources[i,j]) over dst's valid region."""
    found = mapped(s)
    if len(found.ones) == 1:
        _run(s, _of_map(s, found, found.ones[0]))
        return []
    narrow = next(v for v in found.given if isinstance(v, TileDesc))
    first = s.x.compare("slt", narrow.valid[1], found.dst.valid[1])

    def way(one: int | None) -> None:
        built = Prepared(s.e, s.op)
        try:
            made = _of_map(built, found, one)
        except UnsupportedLowering:  # the unlikely way: the reference knows it
            s.e.host_fallback(s.op, "the other operand is the vector")
        else:
            built.commit()
            _run(s, made)

    s.x.when(first, lambda: way(found.ones[0]), lambda: way(found.ones[1]))
    return []


def _emit_conversion(s: OpContext) -> Sequence[Lowered]:
    _run(s, _of_map(s, converted(s), None))
    return []


def _run(s: OpContext, made: Nest) -> None:
    """Call the function of a nest of one step. A source is copied first if it shares bytes with the
    destination, unless reading and writing strip by strip gives the same; if its columns
    repeat; and if its lines run across those of the destination."""
    x = s.x
    rows, cols = made.size
    room = 0
    dst = made.steps[0].dst

    def source(ref: Access) -> Access:
        nonlocal room
        if ref is dst:
            return ref
        plain = len(ref.layout.rows) == len(ref.layout.cols) == 1
        if plain and ref.layout.cols[0].stride in (0, 1):
            ref, room = masked.copied_unless(s, ref, _is_safe(s, dst, ref), room)
            return ref
        pitch, place = certain(dst.row_stride, int), s.e.scratch()
        copy = Access(strided.row_major(ref.dtype, pitch), x.at(place, room))
        transfer(s, rows, cols, copy, ref)
        room += -(-dst.nbytes // dst.dtype.itemsize * ref.dtype.itemsize // 64) * 64
        return copy

    nest = made.mapped(source)
    if isinstance(cols, int) and nest.flat:
        rows, cols = 1, x.mul(rows, cols)  # lines that follow each other are one
    given = StepParameters(("i64", rows), ("i64", cols), alone=True)
    known = isinstance(cols, int) and cols <= _SHORT
    width = cols if known else "%p1"  # a short line of a known length needs no loop
    inner = Nest("%p0", width, tuple(map(given.step, nest.steps)))
    s.e.unit.nests.append(((s.op,), replace(nest, rows=rows, cols=cols)))
    s.call(inner, given.given, lambda x: Strips(x, inner).write())


def _is_safe(s: OpContext, dst: Access, source: Access) -> Condition:
    """True if reading and writing strip by strip gives the same as reading everything first."""
    x = s.x
    if dst.memory != source.memory:
        return TRUE
    separate = x.disjoint(dst.address, dst.nbytes, source.address, source.nbytes)
    same = dst.layout.of(source.dtype) == source.layout
    if not same or dst.dtype.itemsize != source.dtype.itemsize:
        return separate
    return separate | x.compare("eq", dst.address, source.address)


def _in_lines(s: OpContext, f: Folded) -> Folded:
    """A fold whose source has rows of contiguous elements; they are copied if it has none."""
    if "cols" in f.src.layout.contiguous_axes:
        return f
    pitch = s.need(TileDesc, "src").type.cols
    copy = Access(strided.row_major(f.src.dtype, pitch), s.e.scratch())
    transfer(s, f.rows, f.cols, copy, f.src)
    return f._replace(src=copy)


def _emit_fold(s: OpContext) -> Sequence[Lowered]:
    x, paired = s.x, s.body.pairs is not None and s.body.pairs(s.case)
    f = _in_lines(s, folded(s))
    unsupported_if(
        paired and (f.by_row or not isinstance(f.rows, int)),
        "pairs along a line, or of an unknown number",
    )
    unsupported_if(
        not f.by_row and "cols" not in f.dst.layout.contiguous_axes,
        "a result whose elements do not follow each other",
    )

    def call() -> None:
        if f.by_row:
            _run(s, _of_fold(s, f))
            return
        source, _ = masked.copied_unless(s, f.src, _is_safe(s, f.dst, f.src), 0)
        given = [("i64", f.rows), ("i64", f.cols), ("ptr", f.dst.pointer), ("ptr", source.pointer)]
        layouts = f.src.layout, f.dst.layout
        key = masked.key_of(s, *layouts, f.rows if paired else 0)

        def write(x: Text) -> None:
            folder = Folder(x, f.body, *layouts, f.kind)
            fold_pairs(folder, f.rows) if paired else fold_columns(folder)

        s.call(key, given, write)

    x.when(~f.empty, call)
    return []


KINDS[Conversion] = _emit_conversion
KINDS[Fold] = _emit_fold
