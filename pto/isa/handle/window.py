"""Windows on tiles: part of a tile under a name of its own, in the parent's storage."""

from __future__ import annotations

from pto.core.tile import TileType
from pto.isa.handle.tile import AXES, VALID, same_config, valid_in
from pto.isa.handle.view import handle_family, same_space
from pto.isa.meaning.handle import subview as meaning
from pto.isa.row.attributes import Array, Int
from pto.isa.row.instr import Attr, Result, read
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import Case, dims, rule, same_dtype

# ---- rules


def _sizes(case: Case) -> tuple[int, ...]:
    value = case.op.attrs.get("sizes")
    items = value.items if isinstance(value, Array) else ()
    return tuple(n.value for n in items if isinstance(n, Int))


@rule("PTO-S070", "expects two offsets and two positive sizes")
def _window_of_two(case: Case) -> str | None:
    sizes, offsets = _sizes(case), case.op.group("offsets")
    if len(sizes) != 2 or len(offsets) != 2:
        return f"there are {len(offsets)} offsets and {len(sizes)} sizes"
    return None if min(sizes) > 0 else f"sizes are {dims(*sizes)}"


def _offsets(case: Case) -> tuple[int | None, ...]:
    return tuple(case.constant(v) for v in case.op.group("offsets"))


@rule("PTO-S073", "expects a window inside source")
def _tile_window_inside(case: Case, source: TileType) -> str | None:
    for offset, size, extent in zip(_offsets(case), _sizes(case), source.shape, strict=False):
        if offset is not None and offset < 0:
            return f"offset {offset} is negative"
        if (offset or 0) + size > extent:
            return f"it ends at {(offset or 0) + size}, the source at {extent}"
    return None


@rule("PTO-S072", "expects result to have the shape given by sizes")
def _shaped_as_window(case: Case, result: TileType) -> str | None:
    sizes = _sizes(case)
    fits = len(sizes) != 2 or result.shape == sizes
    return None if fits else f"result is {dims(*result.shape)}, sizes are {dims(*sizes)}"


@rule("PTO-S076", "expects valid_row and valid_col together")
def _both_valid(case: Case) -> str | None:
    row, col = (bool(case.op.group(name)) for name, _ in AXES)
    return None if row is col else f"only valid_{'row' if row else 'col'} is given"


@rule("PTO-S072", "expects result to have the valid region of the operands")
def _valid_as_written(case: Case, result: TileType) -> str | None:
    """The valid region in the type must equal the operands, or replaces absent operands."""
    sizes = _sizes(case)
    if len(sizes) != 2:
        return None
    for (name, axis), size in zip(AXES, sizes, strict=True):
        number = case.number(name)
        wanted, declared = number and min(number, size), result.valid[axis]
        if not case.op.group(name):  # only the type has it
            wrong = declared is None or declared > size
        else:
            wrong = declared not in (None, wanted)
        if wrong:
            request = f"{name} is {'?' if wanted is None else wanted}"
            request = request if case.op.group(name) else f"there is no {name}"
            return f"the type has {dims(*result.valid)}, {request}"
    return None


@rule("PTO-L070", "expects the window of a boxed tile to be made of whole boxes")
def _on_box(case: Case, source: TileType) -> str | None:
    if not source.layout.is_boxed:
        return None
    for quantity, numbers in (("size", _sizes(case)), ("offset", _offsets(case))):
        for number, box in zip(numbers, source.box, strict=False):
            if number is not None and number % box:
                return f"{quantity} {number} is not a multiple of {box}"
    return None


@rule("PTO-L071", "expects a subset of a boxed tile to keep whole lines of boxes")
def _whole_lines(case: Case, source: TileType) -> str | None:
    """Boxes of one line lie together, so a subset of a boxed tile takes whole lines of boxes."""
    if not source.layout.is_boxed or _window_of_two.test(case):
        return None
    axis = 1 if source.layout.blayout.value == "row_major" else 0
    size, offset = _sizes(case)[axis], _offsets(case)[axis]
    name = ("rows", "columns")[axis]
    if size != source.shape[axis]:
        return f"it takes {size} of {source.shape[axis]} {name}"
    return None if offset == 0 else f"its offset in {name} is not the constant 0"


# ---- rows

WINDOW = handle_family(
    "windows on tiles",
    "element (i, j) of result is source(offsets[0] + i, offsets[1] + j), in the parent's storage",
    operands=(read("source"), read("offsets*", "index")),
    attrs=(Attr("sizes", "any", required=True, meaning="rows and columns of the window"),),
    subject="result",
    rules=(
        _window_of_two,
        _tile_window_inside,
        _shaped_as_window,
        same_dtype("source", "result"),
        same_space("source", "result"),
        same_config("source", "result"),
        _on_box,
    ),
    traits=Traits(names_only=True, by_hand=True),
)

SUBVIEW = WINDOW.row(
    "subview",
    "a window of sizes; all of it is valid unless valid_row and valid_col say less",
    body=meaning.SUBVIEW,
    operands=(read("source", "tile or view"), read("offsets*", "index"), *VALID),
    results=Result("result", "tile or view", "subview"),
    text="$source <? , offsets = > [ $offsets* ] <? , > sizes <? = > @sizes"
    " <? valid [ $valid_row , $valid_col ] > {}"
    " : types(source) <? -> results >",
    rules=(_both_valid, valid_in("result"), _valid_as_written),
    notes=(
        "Newer than pto.subset: the valid region of the parent plays no part.",
        "The oldest programs write `offsets = [..], sizes = [..]` and take windows of views.",
    ),
    example="%s = pto.subview %t[%i, %j] sizes [8, 32] : !pto.tile_buf<vec, 16x64xf32>"
    " -> !pto.tile_buf<vec, 8x32xf32>",
    cite="PTOAS include/PTO/IR/PTOOps.td",
)
WINDOW.row(
    "subset",
    "a window of sizes; valid is its share of the parent's valid region",
    body=meaning.SUBSET,
    results=Result("result", "tile", "subset"),
    text="$source [ $offsets* ] sizes @sizes {} : types(source)",
    rules=_whole_lines,
    notes="Older than pto.subview; its text does not write the result type.",
    example="%s = pto.subset %t[%i, %j] sizes [8, 32] : !pto.tile_buf<vec, 16x64xf32>",
    cite="pto-isa docs/isa/tile/ops/view-and-tile-buf/subset.md",
)
