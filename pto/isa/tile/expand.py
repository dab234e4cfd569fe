"""Tile instructions that spread one column or one row over a tile, alone or in arithmetic."""

from __future__ import annotations

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.tile import TileType
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.tile import elementwise as arithmetic
from pto.isa.row.instr import Attr, read, reads, scratch, write
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    agree,
    all_in,
    dims,
    in_layout,
    row_major,
    rule,
    same_dtype,
    same_shape,
    same_valid,
    same_valid_cols,
    same_valid_rows,
)
from pto.isa.rules.tile import (
    NPU,
    VECTOR_UNIT,
    high_precision_of,
    not_empty,
    out_of_place,
    precision,
    row_by_row,
    same_form,
    scratch_holds,
    scratch_if_precise,
    tile_family,
)

_COMMON = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"
_COMPUTED = {"a2a3": "i16 i32 f16 f32", "a5": _COMMON}
_FULL = "!pto.tile_buf<vec, 16x64xf32>"
_ROW = "!pto.tile_buf<vec, 1x64xf32>"
_COLUMN = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
_WITH_COLUMN = f"pto.{{}} ins(%src0, %src1 : {_FULL}, {_COLUMN}) outs(%dst : {_FULL})"
_WITH_ROW = f"pto.{{}} ins(%src0, %src1 : {_FULL}, {_ROW}) outs(%dst : {_FULL})"
SPREAD = tile_family(
    "spread",
    "one column or row of src fills dst's valid region",
    operands=(read("src"), write("dst")),
    rules=(all_in("vec").on(NPU), row_major("dst").on(NPU), same_dtype("src", "dst")),
    types={"a2a3": _COMMON, "a5": f"{_COMMON} i64 u64"},
    cost="spread",
    traits=Traits(operator="spread"),
)


@rule(LIBRARY, "expects one valid column in src", severity="warning")
def _one_column(src: TileType) -> str | None:
    """pto-isa npu/a5/TRowExpand.hpp asserts one, or a number that only the run knows."""
    return None if src.valid[1] in (None, 1) else f"src has {src.valid[1]}"


SPREAD.row(
    "trowexpand",
    "dst[i,j] = src[i,0]",
    body=Lane(arithmetic.same, spread="row", moves=True),
    rules=(
        in_layout("src", "ND", "DN").on(NPU),
        same_valid_rows("src", "dst"),
        not_empty("src", "dst", unless="dst").on(NPU),
        out_of_place("src").on(NPU),
        _one_column.on("a5"),
    ),
    example=f"pto.trowexpand ins(%src : {_COLUMN}) outs(%dst : {_FULL})",
    phases={"a2a3": "V[S]"},
    notes=(
        "i64 and u64 are in the a5 headers, not in the IR manual",
        "the page wants src row-major, the a5 header and PTOAS also take column-major",
        "the a5 header wants one valid column in src; PTOAS takes more and column 0 counts",
    ),
)
SPREAD.row(
    "tcolexpand",
    "dst[i,j] = src[0,j]",
    body=Lane(arithmetic.same, spread="column", moves=True),
    rules=(row_major("src").on(NPU), same_valid_cols("src", "dst").current),
    example=f"pto.tcolexpand ins(%src : {_ROW}) outs(%dst : {_FULL})",
    notes="i64 and u64 are in the a5 headers, not in the IR manual",
)

# ---- arithmetic with one value per row


def _covers(tile: TileType, dst: TileType) -> bool:
    """True for a row-major tile with dst's valid region, as far as both are known."""
    return agree(tile.valid, dst.valid) and tile.layout.blayout.value == "row_major"


def _carries(tile: TileType, dst: TileType) -> bool:
    """True for one value per row: a column in any layout, or a 32-byte block that repeats it."""
    if not agree(tile.valid[:1], dst.valid[:1]):
        return False
    block = BLOCK_BYTE_SIZE // tile.itemsize
    repeats = tile.valid[1] == block and tile.layout.blayout.value == "row_major"
    return repeats or tile.valid[1] in (None, 1)


@rule(
    "PTO-S054",
    "expects one source like dst and the other one value per row (a column, or row-major 32 bytes)",
)
def _row_operands(case: Case, src0: TileType, src1: TileType, dst: TileType) -> str | None:
    if 0 in dst.valid:
        return None
    if any(_covers(a, dst) and _carries(b, dst) for a, b in ((src0, src1), (src1, src0))):
        return None
    described = [
        f"{n} is {dims(*x.valid)} {x.layout.name}" for n, x in case.tiles(("src0", "src1"))
    ]
    return f"{described[0]}, {described[1]}, dst is {dims(*dst.valid)}"


@rule(
    LIBRARY,
    "expects a row-major source with one value per row to repeat it in a block of 32 bytes",
    severity="warning",
)
def _repeated(case: Case, src0: TileType, src1: TileType, dst: TileType) -> str | None:
    """TRowExpandBinOp.hpp: column j takes element j of the block, whatever is valid in it."""
    name, carrier = ("src1", src1) if _covers(src0, dst) else ("src0", src0)
    fits = carrier.layout.blayout.value != "row_major" or carrier.valid[1] != 1
    return None if fits or dst.valid[1] == 1 else f"{name} has one valid column"


@rule("PTO-L050", "expects the source with one value per row to be column-major when tmp is given")
def _broadcast_layout(case: Case, src0: TileType, src1: TileType, dst: TileType) -> str | None:
    """With tmp, a2a3 spreads the values by vbrcb, which reads a plain column."""
    if not case.type("tmp"):
        return None
    name, carrier = ("src1", src1) if _covers(src0, dst) else ("src0", src0)
    return None if carrier.layout.name == "DN" else f"{name} is {carrier.layout.name}"


def _broadcast_bytes(case: Case) -> int | None:
    """TROWEXPANDADD.md, Temporary tile: 8 rows to a repeat of 256 bytes, 30 repeats at a time."""
    dst = case.tile("dst")
    rows = None if dst is None else dst.valid[0]
    if rows is None:
        return None
    return -(-rows // 8) * 256 if rows < 256 else 30 * 256


_TMP_NOTE = "tmp is working space of a2a3; a5 ignores it, and PTOAS refuses it there for {}"
_BF16_NOTE = "on a5 bf16 is in the headers, not in the IR manual"
# arguments of the C++ templates that tile libraries expand these into
_TEMPLATE = tuple(
    Attr(name, "any", meaning="a hint of a code template: it does not change values")
    for name in ("src1Col", "src0eqdst", "highPrecision")
)
BY_ROW = tile_family(
    "row broadcast",
    "dst[i,j] = f(src0[i,j], src1[i,0]); either source may be the one with one value per row",
    operands=(*reads("src0 src1"), scratch("tmp?", idle="cpu a5"), write("dst")),
    attrs=_TEMPLATE,
    rules=(
        all_in("vec").on(NPU),
        row_major("dst").on(NPU),
        same_dtype("src0", "src1", "dst"),
        out_of_place("src0", "src1", unless=row_by_row).on(NPU),
        _row_operands,
        same_dtype("tmp", "dst").on("a2a3"),
        _repeated.on("a2a3"),
        _broadcast_layout.on("a2a3"),
        out_of_place("src0", "src1", dst="tmp").on("a2a3"),  # the values of rows are spread in it
        scratch_holds("32 bytes for each row", _broadcast_bytes).on("a2a3"),
    ),
    types=_COMPUTED,
    cost="add",
)
for _name, _formula, _fn, _operator, _notes in (
    ("add", "src0[i,j] + src1[i,0]", lanes.add, "+", ()),
    ("sub", "src0[i,j] - src1[i,0]", lanes.sub, "-", ()),
    ("mul", "src0[i,j] * src1[i,0]", lanes.mul, "*", ("the IR manual lists f16 and f32 only",)),
    ("max", "max(src0[i,j], src1[i,0])", lanes.maximum, "max", (_TMP_NOTE.format("max"),)),
    ("min", "min(src0[i,j], src1[i,0])", lanes.minimum, "min", (_TMP_NOTE.format("min"),)),
):
    BY_ROW.row(
        f"trowexpand{_name}",
        f"dst[i,j] = {_formula}",
        body=Lane(_fn, spread="row"),
        traits=Traits(operator=_operator),
        rules=same_valid("src0", "dst").on(NPU).compiled if _name == "add" else (),
        example=_WITH_COLUMN.format(f"trowexpand{_name}"),
        notes=(_BF16_NOTE, *_notes),
    )
BY_ROW.row(
    "trowexpanddiv",
    "dst[i,j] = src0[i,j] / src1[i,0]",
    body=Lane(lanes.div, spread="row"),
    traits=Traits(operator="/"),
    attrs=(precision("div"), *_TEMPLATE),
    a2a3="f16 f32",
    a5=_COMMON,
    rules=(high_precision_of("f16 f32").as_warning, scratch_if_precise.on(NPU)),
    example=_WITH_COLUMN.format("trowexpanddiv"),
    notes="the IR manual lists f16 and f32 only; the a5 header and PTOAS take integers",
)
BY_ROW.row(
    "trowexpandexpdif",
    "dst[i,j] = exp(src0[i,j] - src1[i,0])",
    body=Lane(arithmetic.exp_difference, spread="row"),
    cpu="f16 bf16 f32 f64",
    npu="f16 f32",
    example=_WITH_COLUMN.format("trowexpandexpdif"),
    notes=_TMP_NOTE.format("expdif"),
)

# ---- arithmetic with one row

BY_COLUMN = tile_family(
    "column broadcast",
    "dst[i,j] = f(src0[i,j], src1[0,j])",
    operands=(read("src0"), read("src1"), write("dst")),
    rules=(
        *VECTOR_UNIT,
        same_dtype("src0", "src1", "dst"),
        out_of_place("src0", unless=row_by_row).on(NPU),
        out_of_place("src1", unless=same_form).on(NPU),
        same_shape("src0", "dst").on(NPU),
        same_valid("src0", "dst"),
        same_valid_cols("src1", "dst"),
    ),
    types=_COMPUTED,
    cost="add",
)
for _name, _formula, _fn, _operator in (
    ("add", "src0[i,j] + src1[0,j]", lanes.add, "+"),
    ("sub", "src0[i,j] - src1[0,j]", lanes.sub, "-"),
    ("mul", "src0[i,j] * src1[0,j]", lanes.mul, "*"),
    ("max", "max(src0[i,j], src1[0,j])", lanes.maximum, "max"),
    ("min", "min(src0[i,j], src1[0,j])", lanes.minimum, "min"),
):
    BY_COLUMN.row(
        f"tcolexpand{_name}",
        f"dst[i,j] = {_formula}",
        body=Lane(_fn, spread="column"),
        traits=Traits(operator=_operator),
        example=_WITH_ROW.format(f"tcolexpand{_name}"),
        notes=_BF16_NOTE,
    )
BY_COLUMN.row(
    "tcolexpanddiv",
    "dst[i,j] = src0[i,j] / src1[0,j]",
    body=Lane(lanes.div, spread="column"),
    traits=Traits(operator="/"),
    attrs=precision("div"),
    a2a3="f16 f32",
    a5=_COMMON,
    rules=high_precision_of("f16 f32"),
    example=_WITH_ROW.format("tcolexpanddiv"),
)
BY_COLUMN.row(
    "tcolexpandexpdif",
    "dst[i,j] = exp(src0[i,j] - src1[0,j])",
    body=Lane(arithmetic.exp_difference, spread="column"),
    cpu="f16 bf16 f32 f64",
    npu="f16 f32",
    example=_WITH_ROW.format("tcolexpandexpdif"),
)
