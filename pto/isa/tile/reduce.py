"""Tile instructions that fold rows or columns: sums, products, extrema and where they are."""

from __future__ import annotations

from collections.abc import Callable

from pto.core.constants import BLOCK_BYTE_SIZE, VREG_BYTES
from pto.core.tile import TileType
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Fold
from pto.isa.meaning.tile.reduce import SUM_NEIGHBOURS, search
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, read, scratch, write
from pto.isa.row.traits import RegionRule, Traits, operators
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    all_in,
    in_layout,
    row_major,
    rule,
    rule_of,
    same_dtype,
    same_valid_cols,
    same_valid_rows,
)
from pto.isa.rules.scratch import like, of_rows, when, work_tile
from pto.isa.rules.tile import (
    NPU,
    VECTOR_UNIT,
    dtype_pairs,
    library_types,
    not_empty,
    one_valid,
    out_of_place,
    results_apart,
    same_domain,
    scratch_holds,
    scratch_when,
    tile_family,
)

_PYTHON = operators("""
    trowsum sum trowprod prod trowmax amax trowmin amin trowargmax argmax trowargmin argmin
    tcolsum sum tcolprod prod tcolmax amax tcolmin amin tcolargmax argmax tcolargmin argmin
""")
_TMP_NOTE = "tmp is working space of a2a3; a5 and the CPU simulator take it and do not use it"
_INT_FLOAT = "i16 i32 f16 f32"
_FULL = "!pto.tile_buf<vec, 16x64xf32>"
_INDEX_FORMS = "{0} dst src tmp | {0} dstVal dst src tmp"  # of searches, in C++
_TO_COLUMN = (
    f"pto.{{}} ins(%src, %tmp : {_FULL}, {_FULL})"
    " outs(%dst : !pto.tile_buf<vec, 16x1x{}, blayout=col_major>)"
)
_TO_ROW = f"pto.{{}} ins(%src : {_FULL}) outs(%dst : !pto.tile_buf<vec, 1x64xf32>)"


def _ceil(count: int, unit: int) -> int:
    """`count` rounded up to whole units."""
    return -(-count // unit) * unit


@rule_of("PTO-S051", "expects a column-major {name} to have one column")
def _column_vector(case: Case, name: str) -> str | None:
    tile = case.tile(name)
    if tile is None or tile.layout.name != "DN" or tile.cols == 1:
        return None
    return f"it has {tile.cols}"


@rule_of("PTO-T050", "{sentence}")
def _index_type(case: Case, sentence: str, allowed: Callable[[Case, t.Scalar], str]) -> str | None:
    """`allowed` names the index types for a source type."""
    src, index = case.elem("src"), case.elem("dst")
    if src is None or index is None or set(index.names) & set(allowed(case, src).split()):
        return None
    values = " beside values" if case.type("dstVal") else ""
    return f"dst is {index.name}{values}, src is {src.name}"


# ---- rows

_ROWS = (
    all_in("vec").on(NPU),
    row_major("src").on(NPU),
    in_layout("dst", "ND", "DN").on(NPU),
    _column_vector("dst").on(NPU),
    one_valid("dst", "column", idle=True).compiled.on(NPU),
    same_valid_rows("src", "dst"),
    not_empty("src", unless="dst"),
    same_dtype("src", "tmp").on("a2a3"),
    out_of_place("src").on(NPU),
    out_of_place("tmp").on("a2a3"),
    out_of_place("src", dst="tmp").on("a2a3"),  # holds the first results while src is read
)

ROWS = tile_family(
    "row reduction",
    "dst[i,0] = fold over j of src[i,j], over src's valid region",
    operands=(read("src"), work_tile(of_rows("src")), write("dst")),
    subject="src",
    rules=_ROWS,
    cost="row_fold",
    traits=Traits(region=RegionRule.COLUMN),
)

_NO_TMP_NOTE = "the IR manual and older programs leave tmp out; PTOAS of April requires it"
_CPU_SUMS = {"i16": "i16 i32", "i32": "i32", "f16": "f16 f32", "bf16": "bf16 f32", "f32": "f32"}
ROWS.row(
    "trowsum",
    "dst[i,0] = sum over j of src[i,j]",
    body=Fold(lanes.add, "row", wide=True),
    traits=_PYTHON["trowsum"],
    cpu="i16 i32 f16 bf16 f32",
    a2a3=_INT_FLOAT,
    a5="i16 i32 i64 u64 f16 f32",
    rules=(same_dtype("src", "dst").on(NPU), dtype_pairs("src", "dst", {"cpu": _CPU_SUMS})),
    example=_TO_COLUMN.format("trowsum", "f32"),
    phases={"a2a3": "V[S]"},
    cxx="TROWSUM dst/src src tmp?",  # of the C++ simulator
    notes=(
        _TMP_NOTE,
        _NO_TMP_NOTE,
        "the CPU simulator and we sum f16 and bf16 in f32, one element after the other, and round"
        " once; order and width of the hardware are not stated",
    ),
)
ROWS.row(
    "trowprod",
    "dst[i,0] = product over j of src[i,j]",
    body=Fold(lanes.mul, "row"),
    traits=_PYTHON["trowprod"],
    npu=_INT_FLOAT,
    rules=same_dtype("src", "dst"),
    example=_TO_COLUMN.format("trowprod", "f32"),
    phases={"a2a3": "V[S]"},
    notes=_TMP_NOTE,
)
for _name, _word, _fn in (
    ("trowmax", "maximum", lanes.maximum),
    ("trowmin", "minimum", lanes.minimum),
):
    ROWS.row(
        _name,
        f"dst[i,0] = {_word} over j of src[i,j]",
        body=Fold(_fn, "row"),
        traits=_PYTHON[_name],
        example=_TO_COLUMN.format(_name, "f32"),
        a2a3=_INT_FLOAT,
        a5="i8 u8 i16 i32 i64 u64 f16 f32",
        rules=same_dtype("src", "dst"),
        phases={"a2a3": "V[S]"},
        notes=(
            _TMP_NOTE,
            _NO_TMP_NOTE,
            "on a5 i8, u8, i64 and u64 are in the headers, not in the IR manual",
        ),
    )


def _row_index_types(case: Case, src: t.Scalar) -> str:
    short = case.profile.name == "a5" or (case.profile.name == "a2a3" and "f16" in src.names)
    return "i16 u16 i32 u32" if short and case.type("dstVal") else "i32 u32"


def _row_stages(case: Case) -> int | None:
    """Bytes of the staged search of a2a3 (TROWARGMAX.md, About temporary tile)."""
    src = case.tile("src")
    if src is None:
        return None
    (rows, cols), size = src.valid, src.itemsize
    if rows is None or cols is None:
        return None
    lane, block = VREG_BYTES // size, BLOCK_BYTE_SIZE // size
    if cols <= lane:
        return rows * size * 2 if case.type("dstVal") else 0
    first = -(-cols // lane)
    stride = _ceil(first * 2, block) + _ceil(first, block)
    if first > lane:
        second = _ceil(first, block) + _ceil(-(-first // lane) * 2, block)
        stride = max(_ceil(first * 2, block), second) + 2
    return rows * stride * size


ROW_INDICES = tile_family(
    "row search",
    "dst[i,0] = the column j where src[i,j] is extreme, optionally with its value",
    operands=(read("src"), work_tile(like("src")), write("dstVal?"), write("dst")),
    subject="src",
    rules=(
        *_ROWS,
        results_apart("dstVal", "dst"),
        in_layout("dstVal", "ND", "DN").on(NPU),
        _column_vector("dstVal").on(NPU),
        one_valid("dst", "column").on(NPU),
        one_valid("dstVal", "column").on(NPU),
        same_valid_rows("dstVal", "dst"),
        same_dtype("src", "dstVal"),
        _index_type(
            "expects dst to hold 32-bit integers (16-bit ones beside values: any on a5, f16 on"
            " a2a3)",
            _row_index_types,
        ),
        scratch_holds("the stages of the search", _row_stages).on("a2a3"),
        row_major("tmp").on("a2a3"),
    ),
    cost="search",
    traits=Traits(region=RegionRule.COLUMN),
)
for _name, _word in {"trowargmax": "greatest", "trowargmin": "least"}.items():
    ROW_INDICES.row(
        _name,
        f"dst[i,0] = column of the {_word} src[i,j]; dstVal[i,0] = that element",
        body=search("row", greatest=_word == "greatest"),
        traits=_PYTHON[_name],
        cxx=_INDEX_FORMS.format(_name.upper()),
        example=_TO_COLUMN.format(_name, "i32"),
        a2a3=_INT_FLOAT,
        a5="i16 u16 i32 u32 f16 bf16 f32",
        cite=(
            f"pto-isa docs/isa/{_name.upper()}.md",
            "pto-isa include/pto/npu/a2a3/TRowReduceIdxOps.hpp",
        ),
        phases={"a2a3": "V[S]"},
        notes=(
            "of equal elements the CPU simulator and we take the first; the hardware's choice is"
            " not stated. NaN counts only where it is the first element",
            "dstVal is the overload of the C++ interface; PTOAS has the index alone",
            "PTOAS requires tmp to have src's valid region; we require the bytes given on the "
            "page, on a2a3 only",
        ),
    )

tile_family(
    "pair reduction",
    "dst[i,k] = fold of neighbours in a row",
    operands=(read("src"), write("dst")),
    rules=(*VECTOR_UNIT, same_dtype("src", "dst"), same_domain("src", "dst")),
    cost="rearrange",
).row(
    "tpairreducesum",
    "dst[i,k] = src[i,2k] + src[i,2k+1] for k < ceil(C/2), an odd last one + 0; else 0",
    body=SUM_NEIGHBOURS,
    npu="f16 f32",
    cite="pto-isa docs/isa/TPairReduceSum.md",
    notes="documented with this text; PTOAS has no such operation yet",
)

# ---- columns

COLUMNS = tile_family(
    "column reduction",
    "dst[0,j] = fold over i of src[i,j], over src's valid region",
    operands=(read("src"), write("dst")),
    subject="src",
    rules=(
        *VECTOR_UNIT,
        same_dtype("src", "dst"),
        same_valid_cols("src", "dst"),
        not_empty("src", unless="dst").on("a5"),  # a2a3 returns at once
    ),
    cost="column_fold",
    traits=Traits(region=RegionRule.ROW),
)
_ANY_A5 = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32"
_I64_NOTE = "i64 and u64 are in the a5 headers, not in the IR manual"


def _in_pairs(case: Case) -> bool:
    return case.word("isBinary") == "true"


@rule("PTO-S040", "expects tmp to hold half the rows of src, with all its columns")
def _tree_rows(case: Case, src: TileType, tmp: TileType) -> str | None:
    if not _in_pairs(case):
        return None
    rows, cols = src.valid
    if (rows is None or tmp.rows >= -(-rows // 2)) and (cols is None or tmp.cols >= cols):
        return None
    return f"tmp is {tmp.rows}x{tmp.cols}, the valid region of src {rows}x{cols}"


COLUMNS.row(
    "tcolsum",
    "dst[0,j] = sum over i of src[i,j]",
    traits=_PYTHON["tcolsum"],
    body=Fold(lanes.add, "column", pairs=_in_pairs),
    operands=(read("src"), scratch("tmp?", planned=when(_in_pairs, like("src"))), write("dst")),
    attrs=Attr(
        "isBinary",
        "bool",
        default=False,
        meaning="add neighbouring rows pair by pair in tmp instead of one row after another",
    ),
    text="ins( $ins{tmp} ) outs( $outs ) {}",
    a2a3=_INT_FLOAT,
    a5=_ANY_A5,
    rules=(same_dtype("src", "tmp"), scratch_when(" with isBinary", _in_pairs), _tree_rows),
    example=_TO_ROW.format("tcolsum"),
    notes=(
        _I64_NOTE,
        "PTOAS takes tmp and isBinary together only; the IR manual also shows tmp alone",
    ),
    cxx="TCOLSUM dst src | TCOLSUM dst src tmp isBinary=0",
)
COLUMNS.row(
    "tcolprod",
    "dst[0,j] = product over i of src[i,j]",
    body=Fold(lanes.mul, "column"),
    traits=_PYTHON["tcolprod"],
    a2a3=_INT_FLOAT,
    a5="i16 u16 i32 u32 f16 bf16 f32",
    example=_TO_ROW.format("tcolprod"),
)
for _name, _word, _fn in (
    ("tcolmax", "maximum", lanes.maximum),
    ("tcolmin", "minimum", lanes.minimum),
):
    COLUMNS.row(
        _name,
        f"dst[0,j] = {_word} over i of src[i,j]",
        body=Fold(_fn, "column"),
        traits=_PYTHON[_name],
        example=_TO_ROW.format(_name),
        a2a3=_INT_FLOAT,
        a5=_ANY_A5,
        notes=_I64_NOTE,
    )


def _col_index_types(case: Case, src: t.Scalar) -> str:
    if not case.type("dstVal") or src.itemsize is None:
        return "i32 u32"
    return {2: "i16 u16", 4: "i32 u32"}.get(src.itemsize, "")


@rule("PTO-S040", "expects tmp to hold the stages of the search, or src's region")
def _search_columns(src: TileType, tmp: TileType) -> str | None:
    """Columns of the staged search of a2a3, or src's own region."""
    if src.valid == tmp.valid:
        return None
    (_, cols), (_, have) = src.valid, tmp.valid
    if cols is None or have is None:
        return None
    size = src.itemsize
    turns, block = -(-cols // (VREG_BYTES // size)), BLOCK_BYTE_SIZE // size
    need = _ceil(turns * 2, block) + _ceil(turns, block)
    return None if have >= need else f"it has {have} valid columns, {need} are needed"


_EXACT_IN_HALF = 2048


@rule(LIBRARY, "expects rows of 16-bit elements to have numbers up to 2048", severity="warning")
def _countable_rows(case: Case, src: TileType) -> str | None:
    """TCOLARGMAX of a2a3 converts the number of a row to f16 on the way to 32 bits."""
    rows = src.valid[0]
    if src.itemsize != 2 or case.type("dstVal") or rows is None or rows <= _EXACT_IN_HALF + 1:
        return None
    return f"src has {rows} rows, and their numbers are rounded to f16"


COLUMN_INDICES = tile_family(
    "column search",
    "dst[0,j] = the row i where src[i,j] is extreme, optionally with its value",
    operands=ROW_INDICES.operands,
    subject="src",
    rules=(
        all_in("vec").on(NPU),
        in_layout("src", "ND", "DN").on(NPU),
        row_major("src").as_library.on(NPU),
        row_major("dstVal", "dst").on(NPU),
        results_apart("dstVal", "dst"),
        one_valid("dstVal", "row").on(NPU),
        one_valid("dst", "row").on(NPU),
        same_valid_cols("src", "dstVal", "dst"),
        not_empty("src"),
        same_dtype("src", "dstVal"),
        same_dtype("src", "tmp").on("a2a3"),
        out_of_place("src", dst="tmp").on("a2a3"),  # is cleared before src is read
        _search_columns.on("a2a3"),
        _index_type(
            "expects dst to hold 32-bit integers, beside values integers as wide as src's 16 or"
            " 32 bits",
            _col_index_types,
        ),
    ),
    cost="search",
    traits=Traits(region=RegionRule.ROW),
)
for _name, _word in {"tcolargmax": "greatest", "tcolargmin": "least"}.items():
    COLUMN_INDICES.row(
        _name,
        f"dst[0,j] = row of the {_word} src[i,j]; dstVal[0,j] = that element",
        body=search("column", greatest=_word == "greatest"),
        traits=_PYTHON[_name],
        cxx=_INDEX_FORMS.format(_name.upper()),
        example=f"pto.{_name} ins(%src, %tmp : {_FULL}, {_FULL})"
        " outs(%dst : !pto.tile_buf<vec, 1x64xi32>)",
        a2a3="u16 u32 f16 f32",
        a5="i8 u8 i16 u16 i32 u32 f16 bf16 f32",
        rules=(library_types("src", "u16 u32 f16 f32").on("a2a3"), _countable_rows.on("a2a3")),
        cite=(
            f"pto-isa docs/isa/{_name.upper()}.md",
            "pto-isa include/pto/npu/a2a3/TColReduceIdx.hpp",
        ),
        notes=(
            "of equal elements the CPU simulator and we take the first",
            "the page writes both results with this text; PTOAS has the index alone",
            "PTOAS takes every 8-, 16- and 32-bit type on both targets, the a2a3 header four types",
            "src may be column-major by the page and the header's assertion; PTOAS wants it"
            " row-major, and the header reads it so",
            "a2a3 compares u16 and u32 as floats of the same bits",
            "TColArgMax.hpp also asserts the opposite of the legal shapes; TColReduceIdx.hpp is"
            " right",
        ),
    )
