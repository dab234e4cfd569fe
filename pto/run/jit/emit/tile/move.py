"""Loads, stores and moves of tiles in compiled code, in any layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.global_layout import C0_AXIS, RANK, GlobalLayout
from pto.core.global_layout import ND as GLOBAL_ND
from pto.core.layout import Mode
from pto.core.pad import Pad
from pto.core.tile import Role
from pto.isa.meaning.cube.accumulator import Outlet
from pto.isa.meaning.tile import move, window
from pto.isa.rules.rule import Case
from pto.run.jit.emit.cube.accumulator import with_outlet
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.handle.view import inside
from pto.run.jit.emit.operation import OpContext, emits
from pto.run.jit.emit.tile import copies, masked
from pto.run.jit.emit.tile.moves import emit_move
from pto.run.jit.emit.tile.tile_layouts import tile_access
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access, Strided
from pto.run.jit.llvm.text import Text, is_integer, width_of
from pto.run.jit.llvm.value import FALSE, TRUE, Condition, Val, all_of
from pto.run.jit.runtime.values import Lowered, TileDesc, ViewDesc

# ---- views


@dataclass(frozen=True, slots=True)
class ViewAccess:
    """The part of a view that a tile covers."""

    access: Access
    in_range: Condition  # else the reference engine reports the error
    guard: Condition  # else the host runs the instruction
    in_boxes: bool  # `move.in_boxes`


def view_accesses(
    s: OpContext, view: ViewDesc, tile: TileDesc, written: str | None, *, writes: bool = False
) -> list[ViewAccess]:
    """The elements of a view as a matrix of the tile's valid region (`window.read`), for each
    layout that the view may have."""
    note(s, view, *tile.valid, writes=writes)
    pointer, whole = s.pointer(view.memory, view.address, logged=True), inside(s, view)
    found: list[ViewAccess] = []
    for layout, known in _layouts(s, view, tile, written):
        fits = _matrix(s.x, layout, view, tile, "sle")
        for extent in tile.valid:
            fits = fits | s.x.compare("eq", extent, 0)
        down, across = (
            strided.coalesced([Mode(view.shape[a], view.strides[a]) for a in reversed(axes)])
            for axes in (layout.row_axes, layout.col_axes)
        )
        access = Access(Strided(view.dtype, down, across), pointer)
        in_boxes = "NZ" in (layout.name, view.layout.name)
        found.append(ViewAccess(access, fits, known & whole, in_boxes))
    return found


def _matrix(x: Text, layout: GlobalLayout, view: ViewDesc, tile: TileDesc, word: str) -> Condition:
    """Compare a tile's valid region with the rows and columns of a view."""
    counts = (
        reduce(x.mul, (view.shape[a] for a in axes), 1)
        for axes in (layout.row_axes, layout.col_axes)
    )
    pairs = zip(tile.valid, counts, strict=True)
    return all_of(*(x.compare(word, wanted, count) for wanted, count in pairs))


UNUSUAL = "the view has an unusual layout, leaves its memory, or its elements overlap"


def by_layout(s: OpContext, ways: Sequence[ViewAccess], body: Callable[[ViewAccess], None]) -> None:
    """Emit `body` for the layout that the view has at run time; the host handles any other."""
    found, *others = ways
    if others:
        s.x.when(found.guard, lambda: body(found), lambda: by_layout(s, others, body))
    else:
        masked.guarded(s, found.guard, lambda: body(found), UNUSUAL)


def note(s: OpContext, view: ViewDesc, rows: Val, cols: Val, *, writes: bool) -> None:
    """Log the access of a transfer: the rows of a plain matrix, else the range from first to last
    element."""
    x, size = s.x, view.dtype.itemsize
    if view.strides[-1] == 1 and all(n == 1 for n in view.shape[: RANK - 2]):
        pitch = x.mul(view.strides[-2], size)
        width = x.mul(cols, size)
        s.log_access(view.memory, view.address, rows, width, pitch, writes=writes)
        return
    nbytes = x.mul(strided.span(x, 1, view.shape, view.strides), size)
    s.log_access(view.memory, view.address, 1, nbytes, 0, writes=writes)


def _layouts(
    s: OpContext, view: ViewDesc, tile: TileDesc, written: str | None
) -> list[tuple[GlobalLayout, Condition]]:
    """The layouts that a view may have for a tile, each with its condition (`window.chosen`)."""
    x = s.x
    outer = all_of(*(x.compare("eq", size, 1) for size in view.shape[: RANK - 2]))
    single = view.layout.name in window.ONE_MATRIX
    if single and outer.is_true:
        return [(GLOBAL_ND, TRUE)]
    layouts = [view.layout]
    if view.layout is GLOBAL_ND:
        layouts = list(window.candidates(tile.type, written))
    numbers = (*view.shape, *tile.valid)
    if len(layouts) > 1 and all(isinstance(n, int) for n in numbers):
        a, b, c, d, e, rows, cols = map(int, numbers)
        chosen = window.chosen(tuple(layouts), (a, b, c, d, e), view.dtype.itemsize, rows, cols)
        layouts = [chosen or layouts[0]]  # if the tile fits none, the first one reports it
    unusual = [n for n in layouts if n.sizes or not n.is_defined or C0_AXIS in n.col_axes]
    if unusual and single and len(layouts) > 1 and not outer.is_false:
        return [(GLOBAL_ND, outer)]
    unsupported_if(unusual, "a view of an unusual layout")
    if len(layouts) == 1:
        return [(layouts[0], TRUE)]
    exact, room = ([_matrix(x, n, view, tile, word) for n in layouts] for word in ("eq", "sle"))
    left, found = TRUE, dict.fromkeys(layouts, FALSE)
    for facts in (exact, room):  # the first that is as large, else the first that is larger
        for layout, fact in zip(layouts, facts, strict=True):
            found[layout] = found[layout] | (left & fact)
            left = left & ~fact
    return list(found.items())


# ---- functions


def transfer(
    s: OpContext,
    rows: Val,
    cols: Val,
    dst: Access,
    src: Access,
    work: copies.Work | None = None,
    key: str = "",
) -> None:
    """Call the copy function of two layouts; `key` names the work."""
    # lines of a known length need no loop over strips; the length is a parameter all the same
    width = cols if isinstance(cols, int) else "%p1"
    given = Parameters(("i64", rows), ("i64", cols), ("ptr", dst.pointer), ("ptr", src.pointer))
    to, from_ = (each.layout.renamed(given.name) for each in (dst, src))

    def write(x: Text) -> None:
        some = x.compare("sgt", "%p0", 0) & x.compare("sgt", "%p1", 0)
        copier = copies.Copier(x, work)
        x.when(some, lambda: copier.copy(to, from_, "%p0", width, "%p2", "%p3"))

    s.call(repr(("copy", key, width, to, from_)), given.given, write)


def fill(
    s: OpContext, dst: Access, value: Val, rows: tuple[Val, Val], cols: tuple[Val, Val]
) -> None:
    """Call the fill function of a layout; the value is an item."""
    bounds, item = (("i64", n) for n in (*rows, *cols)), (copies.element(dst.layout.dtype), value)
    given = Parameters(*bounds, ("ptr", dst.pointer), item)
    layout = dst.layout.renamed(given.name)

    def write(x: Text) -> None:
        copies.fill(x, layout, "%p4", "%p5", ("%p0", "%p1"), ("%p2", "%p3"))

    s.call(repr(("fill", layout)), given.given, write)


def require_same_width(a: DType, b: DType) -> None:
    unsupported_if(a.itemsize != b.itemsize, "elements of other widths")


# ---- load


@emits(move.LOAD)
def _load(s: OpContext) -> Sequence[Lowered]:
    view, tile = s.need(ViewDesc, "src"), s.need(TileDesc, "dst")
    unsupported_if(move.has_margins(s.case), "columns beside the loaded ones")
    require_same_width(view.dtype, tile.type.dtype)
    rows, cols = tile.valid
    ways, target = view_accesses(s, view, tile, s.case.word("layout")), tile_access(s, tile)

    def load(found: ViewAccess) -> None:
        s.fault_unless(found.in_range)
        transfer(s, rows, cols, target, found.access)
        if not (found.in_boxes and s.case.profile.load_padding == "block"):
            beside(s, tile, target)

    by_layout(s, ways, load)
    return []


def beside(s: OpContext, tile: TileDesc, target: Access) -> None:
    """Write the padding that a load leaves beside the valid region."""
    found = move.beside(tile.type, s.case.profile)
    if found is None or tile.valid == tile.type.shape:
        return
    pad, everywhere = found
    value = pad_item(pad, tile.type.dtype)
    x = s.x
    (rows, cols) = tile.valid
    (height, width) = tile.type.shape
    some = x.compare("ne", rows, 0) & x.compare("ne", cols, 0)

    def whole() -> None:
        fill(s, target, value, (rows, height), (0, width))
        fill(s, target, value, (0, rows), (cols, width))

    def to_block() -> None:
        block = move.padded_block(tile.type)
        if move.pads_columns(tile.type):
            fill(s, target, value, (0, rows), (cols, _up(x, cols, block, width)))
        else:
            fill(s, target, value, (rows, _up(x, rows, block, height)), (0, cols))

    x.when(some, whole if everywhere else to_block)


def _up(x: Text, count: Val, block: int, limit: Val) -> Val:
    """The next multiple of a power of two, at most a limit."""
    return x.smaller(x.mul(x.up(count, block), block), limit)


def pad_item(pad: Pad, dtype: DType) -> Val:
    """The bits of a pad as a constant of an element."""
    bits, item = pad.bits(dtype), copies.element(dtype)
    return bits_item(bits, item)


def bits_item(bits: int, item: str) -> Val:
    return bits if is_integer(item) else f"bitcast (i{width_of(item)} {bits} to {item})"


# ---- store


@emits(move.STORE)
def _store(s: OpContext) -> Sequence[Lowered]:
    tile, view = s.need(TileDesc, "src"), s.need(ViewDesc, "dst")
    if s.operand("preQuantScalar") is not None or s.operand("fp") is not None:
        return _store_scaled(s)
    stored, is_acc = view.dtype, tile.type.role is Role.ACC
    if not is_acc:
        require_same_width(stored, tile.type.dtype)
    combine = move.combination(s.case, stored)
    how = s.case.word("atomicType") or ""
    rows, cols = tile.valid
    ways, source = (
        view_accesses(s, view, tile, s.case.word("layout"), writes=True),
        tile_access(s, tile),
    )

    def store(found: ViewAccess) -> None:
        def put(work: copies.Work | None, key: str) -> None:
            made = work if combine is None else combined(combine, work, stored)
            transfer(s, rows, cols, found.access, source, made, f"{key} {how}")

        s.fault_unless(found.in_range)
        if is_acc:
            with_outlet(s, tile.type.dtype, stored, put)
        else:
            put(None, "")

    apart = separate(s, view)
    by_layout(s, [replace(each, guard=each.guard & apart) for each in ways], store)
    return []


@emits(move.STORE_SCALED)
def _store_scaled(s: OpContext) -> Sequence[Lowered]:
    """An accumulator times one scale, or one a column, element by element (`Outlet.run`)."""
    tile, view = s.need(TileDesc, "src"), s.need(ViewDesc, "dst")
    (layout, known), *_ = _layouts(s, view, tile, s.case.word("layout"))
    unsupported_if(
        not known.is_true or not move.passes_outlet(s.case, tile.type),
        "a view whose layout is known only when it runs, or no accumulator",
    )
    seen = replace(view, layout=layout)

    def store() -> None:
        emit_move(s, _scaled, dst=seen)

    masked.guarded(s, separate(s, view), store, "elements of the view overlap")
    return []


def _scaled(case: Case) -> Callable[..., None]:
    names, profile = case.row.operand_names, case.profile

    def run(x: Any, *operands: Any) -> None:
        given: dict[str, Any] = dict(zip(names, operands, strict=True))
        src = given["src"]
        dst = given["dst"]
        fp = given["fp"]
        word = given.get("preQuantScalar")
        combine, relu = move.combination(case, dst.dtype), case.word("reluPreMode")
        outlet = Outlet(src.type.dtype, dst.dtype, relu, profile.scaling)
        by_rows = move.scales_rows(src.type, profile)
        (rows, cols), (height, width) = src.get_valid(), dst.matrix_shape

        def put(change: Any) -> None:
            def cell(i: Any, j: Any) -> Any:
                value = x.read(src, i, j)
                value = value if change is None else change(value, i if by_rows else j)
                value = value if combine is None else combine(x.read(dst, i, j), value)
                return (i, j), value, None

            x.place(rows, cols, cell, dst)

        def store() -> None:
            x.require((rows <= height) & (cols <= width), PtoError)
            outlet.run(x, fp, word, 0, put)

        x.when((rows > 0) & (cols > 0), store)

    return run


def combined(
    combine: Callable[[Any, Any], Any], work: copies.Work | None, stored: DType
) -> copies.Work:
    """The function of the new and the old element that a combining store writes."""

    def both(new: Any, old: Any, *where: Any) -> Any:
        return combine(old, new.view(stored.numpy) if work is None else work.fn(new, *where))

    return copies.Work(both, combines=True, by_column=work is not None and work.by_column)


def separate(s: OpContext, view: ViewDesc) -> Condition:
    """True if no two elements of a view share bytes: each dimension steps over the inner ones.

    Dimensions are ordered from the last one outwards, or with the last two exchanged.
    """
    found = FALSE
    for order in ((4, 3, 2, 1, 0), (3, 4, 2, 1, 0)):
        axes = ([numbers[a] for a in order] for numbers in (view.shape, view.strides))
        found = found | strided.distinct(s.x, 1, *axes)
    return found
