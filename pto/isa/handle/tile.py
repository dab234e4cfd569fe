"""Tile handles: allocation, valid regions, reinterpretation, and their lowered forms as memrefs.

None of these moves data. Windows on tiles are in `window.py`, views of global memory in `view.py`.
"""

from __future__ import annotations

from pto.core.compact import Compact
from pto.core.tile import TileType
from pto.isa.handle.view import handle_family, memref_of_rank, same_space
from pto.isa.meaning.handle import memref
from pto.isa.meaning.handle import view as meaning
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Family, Result, read, reads, update
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import (
    Case,
    dims,
    odd_one,
    rule,
    rule_of,
    same_dtype,
    same_shape,
    same_valid,
)

_TD = "PTOAS include/PTO/IR/PTOOps.td"
_MANUAL = "PTOAS docs/PTO_IR_manual.md"
_VIEWS = "pto-isa docs/isa/tile/ops/view-and-tile-buf"
VALID = reads("valid_row? valid_col?", "index")
AXES = (("valid_row", 0), ("valid_col", 1))

# ---- rules


@rule("PTO-S076", "expects valid_row and valid_col if, and only if, the type has `?`")
def _open_valid(case: Case, result: TileType) -> str | None:
    for name, axis in AXES:
        is_set, extent = bool(case.op.group(name)), result.valid[axis]
        if is_set is not (extent is None):
            size = "?" if extent is None else extent
            return f"{name} is {'given' if is_set else 'missing'}, the type has {size}"
    return None


@rule_of(
    "PTO-S075",
    "expects constant valid extents from 0 to the shape of {holder}",
    id="valid-in-shape",
)
def valid_in(case: Case, holder: str) -> str | None:
    """Constant valid extents lie within the tile; values known at run time are checked there."""
    type = case.type(holder)
    shape = type.tile.shape if isinstance(type, t.TileBuf) else getattr(type, "shape", ())
    for name, axis in AXES:
        number = case.number(name)
        size = shape[axis] if len(shape) == 2 else None
        if number is not None and (number < 0 or (size is not None and number > size)):
            return f"{name} is {number} of {size}"
    return None


def _config(tile: TileType) -> str:
    layout = tile.layout
    return f"{layout.name} {layout.fractal}, pad {tile.pad.code}, compact {tile.compact.value}"


@rule_of("PTO-L072", "expects {b} to keep the layout, pad and compact mode of {a}")
def same_config(case: Case, a: str, b: str) -> str | None:
    return odd_one([(n, _config(tile)) for n, tile in case.tiles((a, b))], str)


@rule("PTO-T073", "expects src and result to have different element types")
def _other_dtype(src: t.Scalar, result: t.Scalar) -> str | None:
    return f"both are {src.name}" if src == result else None


@rule("PTO-T074", "expects result to fit the bytes of src")
def _no_wider(src: TileType, result: TileType) -> str | None:
    fits = result.dtype.itemsize <= src.dtype.itemsize
    return None if fits else f"{src.dtype.name} becomes {result.dtype.name}"


@rule("PTO-S077", "expects source to be a tile_buf with valid=?x?")
def _runtime_valid(case: Case) -> str | None:
    type = case.type("source")
    if isinstance(type, t.TileBuf):
        return None if type.tile.valid == (None, None) else f"it is {dims(*type.tile.valid)}"
    lowered = "__pto.lowered_set_validshape" in case.op.attrs
    return None if lowered else "it is a memref"


# Handles with a valid region that this function may change; a caller's tile is passed by value.
_MOST_SLOTS = 16
_LOCAL = ("alloc_tile", "declare_tile", "bind_tile", "pointer_cast", "materialize_tile")
_RENAMES = ("pto.bitcast", "pto.treshape")


@rule("PTO-S078", "expects source to be a tile of this function")
def _local_handle(case: Case) -> str | None:
    if not isinstance(case.type("source"), t.TileBuf):
        return None
    maker = case.maker("source", *_RENAMES)
    if maker is None:
        return "it is an argument"
    return None if maker.name.removeprefix("pto.") in _LOCAL else f"it comes from {maker.name}"


@rule("PTO-S072", "expects result to have the shape of source")
def _memref_shape(case: Case, source: t.MemRef, result: TileType) -> str | None:
    is_parent = case.word("pto.view_semantics") == "subview"
    if is_parent or source.shape == result.shape:
        return None
    return f"source is {'x'.join(map(str, source.shape))}, result is {dims(*result.shape)}"


@rule("PTO-S072", "expects dst to have the valid extents of src")
def _memref_covers(src: TileType, dst: t.MemRef) -> str | None:
    """The memref shows the valid region: its extents where they are static, else `?` or all."""
    if len(dst.shape) != 2:
        return None
    for axis, actual in enumerate(dst.shape):
        wanted = src.valid[axis]
        fits = actual == wanted or (wanted is None and actual == src.shape[axis])
        if not fits:
            return f"dimension {axis} is {actual}, the valid region is {dims(*src.valid)}"
    return None


# ---- handles

HANDLE = handle_family(
    "tile handles",
    "tiles as values",
    cite=_TD,
    text="$operands {} : types -> results",
    subject="result",
)
_AUGUST = "PTOAS include/PTO/IR/PTOOps.td (2026-08)"

ALLOC_TILE = HANDLE.row(
    "alloc_tile",
    "result = a tile of its own, at byte addr of its buffer or where the planner puts it",
    body=meaning.ALLOC_TILE,
    traits=Traits(allocates="addr", by_hand=True),
    operands=(read("addr?", "i64"), *VALID),
    results=Result("result", "tile"),
    text="<| addr = $addr | valid_row = $valid_row | valid_col = $valid_col > {} : results",
    rules=(_open_valid, valid_in("result")),
    notes=(
        "The Gym manual shows `valid=?x?` without operands before set_validshape; PTOAS rejects it,"
        " and so do we.",
        "addr is for programs that place all of their tiles (level 3).",
    ),
    example="%t = pto.alloc_tile valid_row = %r valid_col = %c"
    " : !pto.tile_buf<vec, 16x64xf32, valid=?x?>",
    cite=(_MANUAL, f"{_VIEWS}/alloc-tile.md"),
)
MULTI = Family(
    "multiple tiles",
    "equal tiles of one buffer, one behind the other",
    "support",
    cite="PTOAS docs/PTO_IR_manual.md:867",
    subject="",
    cost="free",
)


@rule("PTO-S142", f"expects 2 to {_MOST_SLOTS} tiles without gaps between them")
def _slots(result: t.MultiTile) -> str | None:
    if not 2 <= result.count <= _MOST_SLOTS:
        return f"it has {result.count}"
    compact = result.slot.tile.compact
    return f"its tiles are {compact.name.lower()}" if compact is Compact.ROW_PLUS_ONE else None


@rule("PTO-S142", "expects a tile of source as result")
def _slot_fits(case: Case, source: t.MultiTile) -> str | None:
    slot = case.number("slot")
    if case.type("result") != source.slot:
        return "it is of another type"
    return None if slot is None or 0 <= slot < source.count else f"slot is {slot} of {source.count}"


_PLANNED = "pto.multi_buffer_addrs"


@rule("PTO-T027", f"expects no {_PLANNED}, which a planner writes")
def _planned(case: Case) -> str | None:
    return "it is there" if _PLANNED in case.op.attrs else None


ALLOC_MULTI_TILE = MULTI.row(
    "alloc_multi_tile",
    "result = count separate tiles, at byte addr of their buffer or where the planner puts them",
    body=meaning.ALLOC_TILE,
    traits=Traits(allocates="addr"),
    operands=(read("addr?", "i64"), *VALID),
    results=Result("result", "multiple tile"),
    text="<| addr = $addr | valid_row = $valid_row | valid_col = $valid_col > {} : results",
    rules=(_slots, _planned),
    example="%t = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 16x16xf16, count=2>",
)
MULTI.row(
    "multi_tile_get",
    "result = tile number slot of source",
    body=meaning.MULTI_GET,
    traits=Traits(names_only=True),
    operands=(read("source", "multiple tile"), read("slot", "index")),
    results=Result("result", "tile"),
    text="$source [ $slot ] {} : types(source) -> results",
    rules=_slot_fits,
)
HANDLE.row(
    "declare_tile",
    "tile = a tile; a queue or tassign sets its address later",
    body=memref.DECLARE,
    traits=Traits(allocates="addr"),
    results=Result("tile", "tile"),
    text="{} -> results",
)
SET_VALIDSHAPE = HANDLE.row(
    "set_validshape",
    "from here on valid_row x valid_col elements of source are valid",
    body=meaning.SET_VALID,
    traits=Traits(by_hand=True),
    operands=(update("source"), read("valid_row", "index"), read("valid_col", "index")),
    text="$source , $valid_row , $valid_col {} : types(source)",
    cxx="= {source}.SetValidShape({valid_row}, {valid_col})",
    rules=(_runtime_valid, _local_handle, valid_in("source")),
    example="pto.set_validshape %t, %r, %c : !pto.tile_buf<vec, 16x64xf32, valid=?x?>",
    cite=(_MANUAL, f"{_VIEWS}/set-validshape.md"),
)
for _name, _what, _body, _cxx in (
    ("tile_valid_rows", "rows", meaning.VALID_ROWS, "GetValidRow"),
    ("tile_valid_cols", "columns", meaning.VALID_COLS, "GetValidCol"),
):
    HANDLE.row(
        _name,
        f"result = the valid {_what} of src now",
        body=_body,
        traits=Traits(pure=True),
        operands=read("src"),
        results=Result("result", "index"),
        cxx=f"= {{src}}.{_cxx}()",
    )
GET_VALIDSHAPE = HANDLE.row(
    "get_validshape",
    "the valid rows and columns of source now, after set_validshape too",
    body=meaning.VALID_SHAPE,
    traits=Traits(pure=True),
    operands=read("source"),
    results=(Result("valid_row", "index", "index"), Result("valid_col", "index", "index")),
    text="$source {} : types",
    cite=_AUGUST,
    cxx="= {source}.GetValidRow(); {source}.GetValidCol()",
)
BITCAST = HANDLE.row(
    "bitcast",
    "result = the storage of src read as elements of another type",
    body=meaning.RETYPED,
    operands=read("src"),
    results=Result("result", "tile"),
    rules=(
        same_space("src", "result"),
        _other_dtype,
        same_shape("src", "result"),
        same_valid("src", "result"),
        same_config("src", "result"),
        _no_wider,
    ),
    example="%i = pto.bitcast %t : !pto.tile_buf<vec, 16x64xf32> -> !pto.tile_buf<vec, 16x64xi32>",
    cxx="TRESHAPE src",
)
TILE_BUF_ADDR = HANDLE.row(
    "tile_buf_addr",
    "dst = the address of element (0, 0) of src",
    body=meaning.TILE_ADDRESS,
    traits=Traits(pure=True),
    operands=read("src"),
    results=Result("dst", "pointer or memref"),
    rules=(same_dtype("src", "dst"), same_space("src", "dst"), memref_of_rank),
    notes=(
        "The manuals allow it inside a vector scope only; PTOAS does not check, and public kernels"
        " take addresses before the scope. We follow the kernels."
    ),
    cite=("PTOAS include/PTO/IR/VPTOOps.td", f"{_VIEWS}/tile-buf-addr.md"),
)

# ---- the same as memrefs, between the passes of a compiler

LOWERED = handle_family(
    "lowered tiles",
    "tiles as memrefs with their description beside them",
    results=(Result("result", "memref"),),
    text="$operands {} : types to results",
    cite=_TD,
)
_CONFIG = (Attr("config", "any", meaning="layout, pad and compact mode of the tile"),)
_BOUND = "$source <? , $valid_row , $valid_col > {} : types(source) -> results"

LOWERED.row(
    "bind_tile",
    "result = source, described as a tile",
    body=memref.BIND,
    operands=(read("source", "memref"), *VALID),
    attrs=_CONFIG,
    text=_BOUND,
    rules=(same_dtype("source", "result"), same_space("source", "result")),
)
LOWERED.row(
    "materialize_tile",
    "result = the tile that source describes",
    body=memref.MATERIALIZE,
    operands=(read("source", "memref"), *VALID),
    results=Result("result", "tile"),
    attrs=_CONFIG,
    text=_BOUND,
    rules=(same_dtype("source", "result"), same_space("source", "result"), _memref_shape),
    example="%t = pto.materialize_tile %m : memref<16x64xf32, #pto.address_space<vec>>"
    " -> !pto.tile_buf<vec, 16x64xf32>",
)
LOWERED.row(
    "pointer_cast",
    "result = a buffer at byte addrs[0] (addrs[n] in turn n of a multiple buffer)",
    body=memref.POINTER_CAST,
    traits=Traits(allocates="addrs"),
    operands=(read("addrs*", "i64"), *VALID),
    attrs=_CONFIG,
    text="( $addrs* ) <? $valid_row , $valid_col > {} : results",
)
LOWERED.row(
    "declare_tile_memref",
    "result = a buffer; a queue sets its address later",
    body=memref.DECLARE,
    traits=Traits(allocates="addr"),
    text="{} -> results",
)
LOWERED.row(
    "simd.tile_to_memref",
    "dst = the valid region of src, for code that indexes memory itself",
    body=memref.TILE_TO_MEMREF,
    operands=read("src"),
    results=Result("dst", "memref"),
    rules=(
        same_dtype("src", "dst"),
        same_space("src", "dst"),
        memref_of_rank,
        _memref_covers,
    ),
    notes="PTOAS also derives the strides of dst from the layout; we carry them as written.",
    example="%m = pto.simd.tile_to_memref %t : !pto.tile_buf<vec, 16x64xf32>"
    " to memref<16x64xf32, #pto.address_space<vec>>",
)
