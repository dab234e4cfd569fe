"""Tile instructions as steps: accesses, and a function of elements or a fold. A step joins a fusion
group, or is a function by itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from pto.core.layout import Digit
from pto.core.tile import Role
from pto.ir.graph import Value
from pto.isa.meaning import Fold
from pto.isa.meaning.tile import move
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.regions import read_as
from pto.isa.row import types as t
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.registry import KINDS, emitter_of
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile import group as groups
from pto.run.jit.emit.tile.elementwise import (
    Mapped,
    as_lines,
    converted,
    mapped,
    repeated,
    scalar_kind,
)
from pto.run.jit.emit.tile.group import BOX, Group, Ref, Source, Step
from pto.run.jit.emit.tile.move import met, require_same_width, separate
from pto.run.jit.emit.tile.planes import Plane
from pto.run.jit.emit.tile.reduce import Folded, Folder, fold_columns, fold_pairs, folded
from pto.run.jit.emit.tile.strips import Strips
from pto.run.jit.llvm.lanes import symbol_type
from pto.run.jit.llvm.text import Text, UnsupportedLowering, Val, expect, unsupported_if
from pto.run.jit.runtime.values import Lowered, ScalarValue, TileDesc, ViewDesc

_SHORT = 512  # elements of a line whose length is known inside its function


def _ref(p: Plane, pointer: str) -> Ref:
    """Lines of a tile with these strides, at an address that may be known only when it runs."""
    shape = "column" if p.cols == 0 else "row" if p.rows == 0 else "matrix"
    return Ref(shape, p.dtype, p.rows, pointer)


def _placed(s: OpContext, tile: TileDesc, p: Plane) -> Ref:
    """The same at a known address, so that a group can compare it with others."""
    first = expect(tile.address, int, "a place that is known only when it runs")
    return replace(
        _ref(p, planes.machine_address(s, tile)),
        memory=tile.memory,
        first=first,
        end=first + planes.extent(tile),
        owner=s.e.owners.get(id(tile), 0),
    )


def _map_step(s: OpContext, found: Mapped, dst: Ref, given: Sequence[Ref | ScalarValue]) -> Step:
    """An elementwise instruction on these operands."""
    sources: list[Source] = [
        (value, scalar_kind(value, found.dtype))
        if isinstance(value, ScalarValue)
        else (value, symbol_type(read_as(value.dtype, found.dtype)))
        for value in given
    ]
    return Step(planes.key_of(s, found.key), dst, tuple(sources), found.fn, found.dtype)


# ---- one instruction as a function


def _call(
    s: OpContext,
    key: tuple[Hashable, ...],
    size: tuple[Val, Val],
    given: Sequence[tuple[str, Val]],
    step: Callable[[], Step],
) -> None:
    """Call the function of one step, which is made once for a key. Its parameters are rows and
    columns, then the given ones; a short line of a known length needs no loop."""
    cols = size[1] if isinstance(size[1], int) and size[1] <= _SHORT else "%p1"
    if 0 not in size:
        sizes = [("i64", n) for n in size]
        s.call((cols, *key), [*sizes, *given], lambda x: Strips(x, "%p0", cols, [step()]).write())


def emit_lane(s: OpContext) -> Sequence[Lowered]:
    """dst[i,j] = fn(sources[i,j]) over dst's valid region."""
    found = mapped(s)
    if len(found.ones) == 1:
        _emit_map(s, found, found.ones[0])
        return []
    narrow = next(v for v in found.given if isinstance(v, TileDesc))
    first = s.x.compare("slt", narrow.valid[1], found.dst.valid[1])

    def way(one: int | None) -> None:
        state = s.x.mark()
        try:
            _emit_map(s, found, one)
        except UnsupportedLowering:  # the unlikely way: the reference knows it
            s.x.back_to(state)
            s.e.host_fallback(s.op, "the other operand is the vector")

    s.x.when(first, lambda: way(found.ones[0]), lambda: way(found.ones[1]))
    return []


def _emit_conversion(s: OpContext) -> Sequence[Lowered]:
    _emit_map(s, converted(s), None)
    return []


def _emit_map(s: OpContext, found: Mapped, one: int | None) -> None:
    """dst = fn(given), element by element; the source at position `one` is spread."""
    rows, cols, target, lines = as_lines(s, found, one)
    given: list[tuple[str, Val]] = [("ptr", planes.machine_address(s, found.dst))]
    forms: list[Plane | ScalarValue] = []  # of the operands, inside the function
    room = 0
    for at, (value, p) in enumerate(zip(found.given, lines, strict=True)):
        if not isinstance(value, TileDesc) or p is None:
            word = expect(value, ScalarValue, "an operand with no native form")
            forms.append(replace(word, names=(f"%p{3 + at}",)))
            given.append((word.types[0], word.name))
        elif at == one and found.axis == "row" and repeated(s, value, found.given):
            unsupported_if(planes.plane(found.dst).cols != 1, "columns that repeat, of columns")
            pitch = found.dst.type.cols
            given.append(("ptr", _repeat_columns(s, value, p.rows, (rows, cols), pitch, room)))
            forms.append(Plane(p.dtype, pitch, 1))
            room += -(-found.dst.type.rows * pitch * p.dtype.itemsize // 64) * 64
        else:
            fine = _is_safe(s, found.dst, value, at == one)
            pointer, room = planes.kept(s, value, fine, room)
            given.append(("ptr", pointer))
            forms.append(p)

    def step() -> Step:
        operands = [
            _ref(form, f"%p{3 + n}") if isinstance(form, Plane) else form
            for n, form in enumerate(forms)
        ]
        return _map_step(s, found, _ref(target, "%p2"), operands)

    tiles = (form for form in (target, *forms) if isinstance(form, Plane))
    if isinstance(cols, int) and all(p.rows == cols and p.cols == 1 for p in tiles):
        rows, cols = 1, s.x.mul(rows, cols)  # lines that follow each other are one
    key = planes.key_of(s, found.key), found.dtype, target, *forms
    _call(s, key, (rows, cols), given, step)


def _is_safe(s: OpContext, dst: TileDesc, source: TileDesc, spread: bool) -> str:
    """True if reading and writing strip by strip gives the same as reading everything first."""
    x, a, b = s.x, planes.plane(dst), planes.plane(source)
    separate = planes.apart(s, dst, planes.extent(dst), source, planes.extent(source))
    if spread or (a != b and (a.dtype.itemsize, a.rows) != (b.dtype.itemsize, b.rows)):
        return separate
    if dst.memory != source.memory:
        return "true"
    return x.either(separate, x.compare("eq", dst.address, source.address))


def _repeat_columns(
    s: OpContext, tile: TileDesc, step: int, size: tuple[Val, Val], pitch: int, room: int
) -> str:
    """Repeat the first columns of each row in scratch memory."""
    unsupported_if(planes.plane(tile).cols != 1, "columns that repeat, one below the other")
    rows, cols = size
    width = s.x.greater(tile.valid[1], 1)
    s.fault_unless(planes.enough(s, tile, rows, width))
    to, itemsize = s.x.at(s.e.scratch(), room), tile.type.itemsize

    def write(x: Text) -> None:
        def row(i: Val) -> None:
            begin = planes.offset(x, "%p3", i, pitch, itemsize)
            line = planes.offset(x, "%p4", i, step, itemsize)

            def part(j: Val) -> None:
                many = x.mul(x.smaller(x.sub("%p2", j), "%p1"), itemsize)
                planes.copy_bytes(x, planes.offset(x, begin, j, 1, itemsize), line, many)

            x.loop("%p2", "%p1", part)

        x.loop("%p0", 1, row)

    given = [*(("i64", n) for n in (rows, width, cols)), ("ptr", to)]
    given.append(("ptr", planes.machine_address(s, tile)))
    s.call(repr(("repeated columns", itemsize, step, pitch)), given, write)
    return to


def _emit_fold(s: OpContext) -> Sequence[Lowered]:
    x, paired = s.x, s.body.pairs is not None and s.body.pairs(s.case)
    f = folded(s, paired)
    unsupported_if(
        paired and (f.by_row or not isinstance(f.rows, int)),
        "pairs along a line, or of an unknown number",
    )
    write = (lambda g: fold_pairs(g, f.rows)) if paired else fold_columns

    def call() -> None:
        to, (source, _) = planes.machine_address(s, f.dst), planes.kept(s, f.src, apart, 0)
        key = planes.key_of(s, f.a, f.b, f.by_row, f.rows if paired else 0)
        places = [("ptr", to), ("ptr", source)]
        if f.by_row:
            step = partial(_fold_step, s, f, _ref(f.b, "%p2"), _ref(f.a, "%p3"))
            _call(s, (key,), (f.rows, f.cols), places, step)
            return
        given = [("i64", f.rows), ("i64", f.cols), *places]
        s.call(key, given, lambda x: write(Folder(x, f.body, f.a, f.b, f.kind)))

    apart = planes.apart(s, f.dst, planes.extent(f.dst), f.src, planes.extent(f.src))
    x.when(x.negated(f.empty), call)
    return []


def _fold_step(s: OpContext, f: Folded, dst: Ref, src: Ref) -> Step:
    target, sources = replace(dst, shape="column"), ((src, f.a.dtype.numpy),)
    return Step(planes.key_of(s), target, sources, fold=(f.body, f.kind))


KINDS[Conversion] = _emit_conversion
KINDS[Fold] = _emit_fold

# ---- steps of a group


def as_step(s: OpContext, group: Group | None) -> tuple[Group, Step, str]:
    """An instruction as a step of a group, or of a new one, and the condition of joining it."""
    body = s.body
    if body is move.LOAD:
        return _of_load(s, group)
    if body is move.STORE:
        return _of_store(s, group)
    if body is move.MOVE:
        return *_of_move(s, group), "true"
    unsupported_if(emitter_of(s.op) is None, "no emitter")
    if isinstance(body, Fold):
        return *_of_fold(s, group), "true"
    found = converted(s) if isinstance(body, Conversion) else mapped(s)
    return *_of_map(s, found, group), "true"


def _of_map(s: OpContext, found: Mapped, group: Group | None) -> tuple[Group, Step]:
    """An elementwise instruction: on all elements, or on one value a row of the group."""
    unsupported_if(len(found.ones) != 1, "which source is spread is known only when it runs")
    one, along = found.ones[0], _values_a_row(group, *found.dst.valid)
    if one is not None:
        value = expect(found.given[one], TileDesc, "an operand with no native form")
        unsupported_if(repeated(s, value, found.given), "columns that repeat")
        along = None
    if along is not None:
        target, sources = _values(s, found, along)
    else:
        rows, cols, target, sources = as_lines(s, found, one)
        group = _fitting(group, rows, cols)
    operands = [
        _placed(s, value, p)
        if isinstance(value, TileDesc) and p is not None
        else expect(value, ScalarValue, "an operand with no native form")
        for value, p in zip(found.given, sources, strict=True)
    ]
    step = _map_step(s, found, _placed(s, found.dst, target), operands)
    return expect(group, Group, "values a row, of no rows"), step


def _values_a_row(group: Group | None, rows: Val, cols: Val) -> int | None:
    """The axis along which a tile has one value for each row of the group; None if there is
    none."""
    if group is None or group.rows == 1 or (rows, cols) == (group.rows, group.cols):
        return None
    if (rows, cols) == (group.rows, 1):
        return 0
    return 1 if (rows, cols) == (1, group.rows) else None


def _values(s: OpContext, found: Mapped, along: int) -> tuple[Plane, list[Plane | None]]:
    """Operands as one value a row, which follow each other."""
    planes_: list[Plane | None] = []
    for value in (found.dst, *found.given):
        if not isinstance(value, TileDesc):
            planes_.append(None)
            continue
        p = planes.plane(value)
        s.fault_unless(planes.enough(s, value, *found.dst.valid))
        unsupported_if((p.rows, p.cols)[along] != 1, "values a row that do not follow each other")
        planes_.append(Plane(p.dtype, 1, 0))
    target, *sources = planes_
    return expect(target, Plane, "no tile"), sources


def _fitting(group: Group | None, rows: Val, cols: Val) -> Group:
    """The group, if an instruction of this size may join it."""
    if group is None:
        return Group(rows, cols)
    unsupported_if((group.rows, group.cols) != (rows, cols), "other rows")
    return group


def _of_fold(s: OpContext, group: Group | None) -> tuple[Group, Step]:
    """A fold of each row to one value."""
    found = folded(s)
    unsupported_if(not found.by_row or found.body.axis != "row", "a fold of columns")
    rows, cols = found.rows, found.cols
    unsupported_if(not (isinstance(cols, int) and cols > 0), "rows that may be empty")
    target, source = _placed(s, found.dst, found.b), _placed(s, found.src, found.a)
    return _fitting(group, rows, cols), _fold_step(s, found, target, source)


def _of_move(s: OpContext, group: Group | None) -> tuple[Group, Step]:
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
        return _placed(s, tile, p)
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


def _of_load(s: OpContext, group: Group | None) -> tuple[Group, Step, str]:
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


def _of_store(s: OpContext, group: Group | None) -> tuple[Group, Step, str]:
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
    return len(sizes) < len(value.type.shape) or prod(sizes) * itemsize >= groups.FAR


def _moved(
    s: OpContext, tile: TileDesc, other: Ref, group: Group | None, *, load: bool
) -> tuple[Group, Step]:
    p = planes.plane(tile)
    unsupported_if(p.cols != 1 or tile.type.role is not Role.VEC, "a tile of other lines")
    own = _placed(s, tile, p)
    dst, src = (own, other) if load else (other, own)
    kind = symbol_type(tile.type.dtype)
    step = Step("copy", dst, ((src, kind),), lambda a: a, tile.type.dtype)
    return _fitting(group, *tile.valid), step
