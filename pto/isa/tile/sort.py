"""Tile instructions that sort: 32-element blocks, merges of sorted runs, byte histograms for radix.

Sorted data are 8-byte records of a value and its u32 index: [value, index] for f32, [value, 0,
index, index] (the index in two halves) for f16.
"""

from __future__ import annotations

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.tile import TileType
from pto.isa.meaning.tile import sort as meaning
from pto.isa.meaning.tile.merge import RECORD
from pto.isa.meaning.tile.sort import BLOCK, RUN_STEP, counted_byte
from pto.isa.row import types as t
from pto.isa.row.attributes import Bool, Int
from pto.isa.row.instr import INS_OUTS_INSIDE, Attr, read, scratch, write
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    agree,
    all_in,
    dims,
    dtype_in,
    row_major,
    rule,
    same_dtype,
    same_valid_rows,
)
from pto.isa.rules.scratch import like, when
from pto.isa.rules.tile import NPU, VECTOR_UNIT, scratch_holds, scratch_when, tile_family

_ROW_LIMIT = 255 * BLOCK  # elements on a2a3, bytes on a5: the longest row copied whole to tmp

# ---- tsort32


@rule("PTO-S057", "expects a row of dst to hold an 8-byte record for each element")
def _room_for_records(src: TileType, dst: TileType) -> str | None:
    cols = src.valid[1]
    if cols is None:
        return None
    capacity = dst.cols * dst.itemsize // RECORD
    return (
        None if capacity >= cols else f"a row of dst holds {capacity}, src has {cols} valid columns"
    )


@rule("PTO-S058", "expects one idx for each element of src (or one row of them for all rows)")
def _index_row(src: TileType, idx: TileType) -> str | None:
    (rows, cols), (own_rows, own_cols) = src.valid, idx.valid
    rows_fit = None in (rows, own_rows) or own_rows in (1, rows)
    if rows_fit and (None in (cols, own_cols) or cols == own_cols):
        return None
    return f"idx is {dims(*idx.valid)}, src is {dims(*src.valid)}"


def _short_blocks(case: Case) -> bool:
    src = case.tile("src")
    cols = None if src is None else src.valid[1]
    return src is not None and (cols is None or cols % BLOCK != 0)


def _tail_bytes(case: Case) -> int | None:
    """TSORT32.md, UB placement: the row in 32-byte blocks, or its last block of a long row."""
    src = case.tile("src")
    cols = None if src is None else src.valid[1]
    if src is None or cols is None:
        return None
    measured = cols if case.profile.name == "a2a3" else cols * src.itemsize
    columns = cols if measured <= _ROW_LIMIT else BLOCK
    return -(-columns * src.itemsize // BLOCK_BYTE_SIZE) * BLOCK_BYTE_SIZE


tile_family(
    "block sort",
    "sort blocks of 32 elements of a row",
    operands=(
        read("src"),
        read("idx", element="u32"),
        scratch("tmp?", planned=when(_short_blocks, like("src"))),
        write("dst"),
    ),
    rules=(*VECTOR_UNIT, same_dtype("src", "dst"), dtype_in("idx", "i32 u32")),
    cost="block_sort",
).row(
    "tsort32",
    "each 32 columns of a row, as (src, idx) records in descending order of src, to dst",
    body=meaning.SORT_BLOCKS,
    cpu="i16 i32 f16 bf16 f32",
    npu="f16 f32",
    rules=(
        _index_row,
        _room_for_records.as_warning,
        scratch_holds("the row, or the last block of a long one", _tail_bytes).on(NPU),
        scratch_when(" where blocks may be short", _short_blocks).on(NPU),
    ),
    example="pto.tsort32 ins(%src, %idx : !pto.tile_buf<vec, 1x32xf32>,"
    " !pto.tile_buf<vec, 1x32xui32>) outs(%dst : !pto.tile_buf<vec, 1x64xf32>)",
    cite=("pto-isa docs/isa/TSORT32.md", "pto-isa include/pto/npu/a2a3/TSort32.hpp"),
    notes=(
        "of equal values the earlier comes first (golden of vbitsort); page and CPU simulator say"
        " the smaller index, which is the same for indices that count up",
        "a NaN stands behind every number; only records of valid elements are written",
        "idx is permuted with the values; the IR manual reads as if it were written",
        "the CPU simulator places f16 blocks 64 elements apart, so they overlap; a2a3 and the page"
        " 128 (4 per record)",
        "the page gives tmp as the row rounded up to 32 elements and as its bytes rounded up to 32;"
        " programs have the latter",
        "a tail shorter than 32 is padded with -inf by the page, with -NaN by the a2a3 code",
    ),
    traits=Traits(partial="*"),
)

# ---- tmrgsort


def _is_merge_of_lists(case: Case) -> bool:
    return len(case.op.group("srcs")) > 1


@rule("PTO-S055", "expects one source with blockLen, or two to four with excuted")
def _merge_form(case: Case) -> str | None:
    count = len(case.op.group("srcs"))
    extra = [n for n in ("blockLen", "tmp", "excuted") if case.type(n)]
    single = count == 1 and extra == ["blockLen"]
    lists = 2 <= count <= 4 and extra[-1:] == ["excuted"] and "blockLen" not in extra
    if len(case.op.group("dsts")) == 1 and (single or lists):
        return None
    sources = f"{count} source{'s' * (count != 1)}"
    return f"{sources}, {len(case.op.group('dsts'))} dst and {', '.join(extra) or 'nothing else'}"


@rule("PTO-S051", "expects tiles of one row")
def _merge_row(case: Case) -> str | None:
    return next((f"{name} has {x.rows}" for name, x in case.tiles() if x.rows != 1), None)


@rule("PTO-T020", "expects one element type")
def _merge_type(case: Case) -> str | None:
    types = {x.dtype.name: name for name, x in case.tiles()}
    return None if len(types) < 2 else ", ".join(f"{n} is {x}" for x, n in types.items())


@rule("PTO-S056", "expects blockLen to be a positive multiple of 64")
def _run_length(blockLen: int) -> str | None:
    return None if blockLen > 0 and blockLen % RUN_STEP == 0 else f"it is {blockLen}"


@rule("PTO-S056", "expects 1 to 255 groups of 4 blockLen valid columns in src (on a2a3 no rest)")
def _run_groups(case: Case, blockLen: int, srcs: TileType) -> str | None:
    """The a2a3 header asserts whole groups; a5 merges those and leaves a rest alone."""
    cols = srcs.valid[1]
    if cols is None or blockLen <= 0:
        return None
    groups, rest = divmod(cols, 4 * blockLen)
    is_whole = rest == 0 or case.profile.name == "a5"
    return None if is_whole and 1 <= groups <= 255 else f"src has {cols}, blockLen is {blockLen}"


@rule("PTO-S057", "expects dst to be as wide as src")
def _merge_width(case: Case, srcs: TileType, dsts: TileType) -> str | None:
    fits = _is_merge_of_lists(case) or srcs.cols == dsts.cols
    return None if fits else f"src has {srcs.cols} columns, dst has {dsts.cols}"


def _merged_bytes(case: Case) -> int | None:
    dst = case.tile("dsts")
    return None if dst is None or not _is_merge_of_lists(case) else dst.cols * dst.itemsize


@rule("PTO-T051", "expects excuted to be a vector<4xi16>")
def _merge_counts(excuted: t.Type) -> str | None:
    if isinstance(excuted, t.Vector) and excuted.shape == (4,) and "u16" in excuted.elem.names:
        return None
    return f"it is a {excuted.kind}"


tile_family(
    "merge",
    "merge sorted runs of records",
    operands=(
        read("srcs*"),
        read("blockLen?", "int"),
        write("dsts*"),
        scratch("tmp?", planned=when(_is_merge_of_lists, like("dsts"))),
        write("excuted?", "number"),
    ),
    attrs=(Attr("exhausted", "bool", default=False, meaning="stop as soon as one list runs out"),),
    text=INS_OUTS_INSIDE,
    subject="srcs",
    rules=(
        *VECTOR_UNIT,
        _merge_form,
        _merge_row,
        _merge_type,
        _run_length,
        _run_groups.on(NPU),
        _merge_width,
        scratch_holds("the merged list", _merged_bytes),
        scratch_when(" for lists", _is_merge_of_lists),
        _merge_counts,
    ),
    cost="merge",
).row(
    "tmrgsort",
    "dst = each four runs of blockLen elements of src (or all of the 2 to 4 lists) merged into one"
    " descending run; excuted[k] = records taken from list k",
    body=meaning.MERGE,
    # the scalar unit then reads how many records were taken, from a special register
    phases=dict.fromkeys(("a2a3", "a5"), "exhausted=true: V V>S"),
    npu="f16 f32",
    example="pto.tmrgsort ins(%src, %blockLen : !pto.tile_buf<vec, 1x256xf32>, i32)"
    " outs(%dst : !pto.tile_buf<vec, 1x256xf32>)",
    cite=("pto-isa docs/isa/TMRGSORT.md", "pto-isa include/pto/npu/a2a3/TMrgSort.hpp"),
    notes=(
        "blockLen counts elements, not records: 64 are 32 records of f32 or 16 of f16",
        "of equal values the earlier list goes first in the CPU simulator",
        "counts are written also without exhausted, as the CPU simulator does",
        "the IR manual writes tmp among the outs; PTOAS and its programs write it last in ins",
    ),
    cxx="TMRGSORT dsts srcs blockLen | TMRGSORT<exhausted> dsts excuted tmp srcs*",
    traits=Traits(partial="*"),
)

# ---- thistogram


@rule("PTO-S055", "expects byte to exist in the elements of src")
def _counted_byte(case: Case, src: TileType) -> str | None:
    byte = counted_byte(case)
    fits = byte is None or 0 <= byte < src.itemsize
    return None if fits else f"it is {byte}, src is {src.dtype.name}"


@rule(
    "PTO-S058",
    "expects idx to be a column of u8, one for each row (u16), or a row of src's width"
    " for each higher byte (u32)",
)
def _filter_shape(case: Case, src: TileType, idx: TileType) -> str | None:
    byte = counted_byte(case)
    if byte is None:
        return None
    described = f"idx is {dims(*idx.valid)} {idx.layout.name}, src is {dims(*src.valid)}"
    if src.itemsize == 2:
        fits = idx.layout.name == "DN" and idx.cols == 1 and agree(src.valid[:1], idx.valid[:1])
        return None if fits else described
    if byte == 3:
        return None
    fits = agree(idx.valid, (3 - byte, src.valid[1])) and idx.layout.name == "ND"
    return None if fits else f"{described}, byte is {byte}"


@rule("PTO-S055", "expects byte and isMSB to agree")
def _one_byte(case: Case) -> str | None:
    byte, top = case.op.attrs.get("byte"), case.op.attrs.get("isMSB")
    src = case.elem("src")
    if not isinstance(byte, Int) or not isinstance(top, Bool) or src is None or src.dtype is None:
        return None
    wanted = src.dtype.itemsize - 1 if top.value else 0
    return None if byte.value == wanted else f"byte is {byte.value}, isMSB {top.value}"


@rule(LIBRARY, "expects byte, for which the library has no default", severity="warning")
def _byte_given(case: Case) -> str | None:
    return None if "byte" in case.op.attrs else "it has none"


@rule("PTO-S057", "expects dst to have 256 valid columns")
def _bins(dst: TileType) -> str | None:
    cols = dst.valid[1]
    return None if cols is None or cols >= 256 else f"it has {cols}"


tile_family(
    "histogram",
    "count byte values in each row",
    operands=(read("src"), read("idx"), write("dst")),
    attrs=(
        Attr(
            "isMSB",
            "bool",
            default=True,
            meaning="count the most significant byte, else the least significant",
        ),
        Attr("byte", "i32", meaning="count this byte instead, 0 the least significant"),
    ),
    subject="src",
    rules=(
        all_in("vec").on(NPU),
        row_major("src", "dst").on(NPU),
        dtype_in("idx", "u8"),
        dtype_in("dst", "u32"),
        same_valid_rows("src", "dst"),
        _counted_byte,
        _filter_shape,
        _one_byte,
        _byte_given.on("a5"),
        _bins,
    ),
    cost="rearrange",
).row(
    "thistogram",
    "dst[i,b] = how many src[i,j] have a byte <= b and higher bytes equal to idx (a running sum)",
    body=meaning.HISTOGRAM,
    profiles="cpu a5",
    types="u16 u32",
    example="pto.thistogram ins(%src, %idx : !pto.tile_buf<vec, 32x64xui16>,"
    " !pto.tile_buf<vec, 32x1xui8, blayout=col_major>)"
    " outs(%dst : !pto.tile_buf<vec, 32x256xui32>)",
    cite=("pto-isa docs/isa/THISTOGRAM.md", "pto-isa include/pto/npu/a5/THistogram.hpp"),
    notes=(
        "page and IR manual describe the count of each value; the CPU simulator and a5 (chistv2)"
        " store the running sum",
        "PTOAS takes u16 only and has isMSB; byte is HistByte of the C++ interface, for u32",
    ),
    traits=Traits(partial="*"),
)
