"""Tile instructions that compare elements into packed masks, and select by such masks.

A mask row starts at its row of the mask tile; column j is bit j of it, lowest bit first, whatever
the mask's element type.
"""

from __future__ import annotations

from pto.core.tile import TileType
from pto.isa.meaning.tile import compare as meaning
from pto.isa.row.instr import INS_OUTS_INSIDE, PROFILES, Attr, read, reads, write
from pto.isa.row.traits import RegionRule, Traits
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    dtype_in,
    rule,
    rule_of,
    same_dtype,
    same_valid_rows,
)
from pto.isa.rules.scratch import one_block, rows_like, work_tile
from pto.isa.rules.tile import (
    NPU,
    VECTOR_UNIT,
    holds_bytes,
    library_types,
    out_of_place,
    same_domain,
    scalar_converts,
    tile_family,
)

_MODE = Attr("cmpMode", "cmp", default="eq", meaning="the comparison: src0 cmpMode src1")
_MASKS = dtype_in("dst", "i8 u8 i32 u32")
_MASK_TYPES = (dtype_in("dst", "i8 u8").on("a2a3"), _MASKS.on("cpu"))


@rule_of("PTO-S042", "expects a row of {mask} to have a bit for each valid column of {data}")
def _mask_bits(case: Case, mask: str, data: str) -> str | None:
    """Each mask row has a bit for every valid column."""
    bits, tile = case.tile(mask), case.tile(data)
    if bits is None or tile is None or tile.valid[1] is None:
        return None
    have, need = bits.cols * bits.itemsize * 8, tile.valid[1]
    return None if have >= need else f"{mask} has {have}, {data} has {need} valid columns"


# Element types that tcmp compares for equality only, by profile.
EQUALITY_ONLY = {"a2a3": ("i32",)}


@rule_of(
    "PTO-X040",
    "expects cmpMode {allowed:or} for i32, the only one computed right",
    id="compare-mode",
)
def _only_modes(case: Case, subject: str, allowed: str) -> str | None:
    """a2a3 compares i32 by vcmpv_eq whatever the mode; tcmp inverts that for ne."""
    elem, mode = case.elem(subject), case.word("cmpMode")
    if (
        elem is None
        or not {*EQUALITY_ONLY["a2a3"]} & {*elem.names}
        or mode is None
        or mode in allowed.split()
    ):
        return None
    return f"cmpMode is {mode}"


@rule(
    LIBRARY,
    "expects src0 and src1 to have rows of one length where elements have 4 bytes",
    severity="warning",
)
def _equal_rows(src0: TileType, src1: TileType) -> str | None:
    """a5/TCmp.hpp, TCmp_32B: each source is read by the row stride of the other one."""
    fits = src0.itemsize != 4 or src0.cols == src1.cols or src0.valid[0] == 1
    return None if fits else f"src0 has {src0.cols} columns, src1 has {src1.cols}"


_PACKING = (
    "PTO_IR_manual.md writes 1 or 0 into each element of dst; pages and headers pack bits.",
    "Bits past the valid columns are undefined: a2a3 writes whole 256-byte repeats. Here they are"
    " 0 up to the end of the last element of dst that has bits.",
)

COMPARE = tile_family(
    "compare",
    "bit j of row i of dst is the comparison of element [i,j]",
    attrs=(_MODE,),
    text=INS_OUTS_INSIDE,
    rules=(*VECTOR_UNIT, *_MASK_TYPES),
    traits=Traits(region=RegionRule.BITS),
    cost="compare",
)
COMPARE.row(
    "tcmp",
    "bit (i,j) of dst = src0 cmpMode src1",
    traits=Traits(by_rows=PROFILES),
    body=meaning.COMPARE,
    operands=(read("src0"), read("src1"), write("dst")),
    subject="src0",
    a2a3="i32 f16 f32",
    a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    rules=(
        _MASKS.on("a5"),
        same_dtype("src0", "src1"),
        same_domain("src0", "src1"),
        same_valid_rows("src0", "dst").on(NPU),
        _mask_bits("dst", "src0"),
        _only_modes("src0", "eq ne").on("a2a3"),
        _equal_rows.on("a5"),
    ),
    notes=(
        *_PACKING,
        "a2a3 computes ne as not eq, so NaN ne x is true.",
        "PTOAS wants dst of i8 and, on a5, of src0's shape; a5's page has u32.",
    ),
    example="pto.tcmp ins(%src0, %src1 {cmpMode = #pto<cmp lt>} : !pto.tile_buf<vec, 16x64xf32>,"
    " !pto.tile_buf<vec, 16x64xf32>) outs(%dst : !pto.tile_buf<vec, 16x64xui8>)",
    cite=("pto-isa docs/isa/TCMP.md", "PTOAS docs/PTO_IR_manual.md"),
    cxx="TCMP dst src0 src1 cmpMode?",
)
COMPARE.row(
    "tcmps",
    "bit (i,j) of dst = src cmpMode scalar",
    body=meaning.COMPARE_SCALAR,
    operands=(read("src"), read("scalar", "tile or scalar"), write("dst")),
    subject="src",
    traits=Traits(partial="*", by_rows=("cpu", "a2a3")),  # a5 packs the bits of several rows
    phases={"a2a3": "scalar@vec: V>S MTE1>S MTE2>S S(scalar) V(src->dst)"},
    a2a3="i16 u16 i32 f16 f32",
    a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    rules=(
        scalar_converts("scalar", "src"),
        same_valid_rows("src", "dst").on(NPU),
        _mask_bits("dst", "src"),
        _only_modes("src", "eq").on("a2a3"),
        library_types("src", "i32 f16 f32").on("a2a3"),  # others are compared as f16
        library_types("dst", "u8").on("a2a3"),
    ),
    notes=(
        *_PACKING,
        "On a5 dst is of any type: the header and PTOAS take it as bytes.",
        "A tile for scalar stands for its element [0,0]; the C++ simulator compares element by"
        " element, and eq with a tolerance of 1e-9.",
        "On a5 PTO-Gym and PTOAS's library pack densely, without the row pitch of dst: 32-bit"
        " elements as one stream of bits in pieces of 16 bytes, narrower ones a new piece of 16"
        " (8-bit: 32) bytes for each row. The headers of pto-isa keep the rows of dst, as tsel"
        " reads them; so do we on the other profiles and for 64-bit elements.",
    ),
    example="pto.tcmps ins(%src, %scalar {cmpMode = #pto<cmp lt>} : !pto.tile_buf<vec, 16x64xf32>,"
    " f32) outs(%dst : !pto.tile_buf<vec, 16x64xui8>)",
    cite=("pto-isa docs/isa/TCMPS.md", "PTOAS docs/PTO_IR_manual.md"),
    cxx="TCMPS dst src scalar cmpMode?",
)

SELECT = tile_family(
    "select",
    "choose by bit [i,j] of mask over dst's valid region",
    rules=VECTOR_UNIT,
    cost="compare",
    traits=Traits(by_rows=PROFILES),
)
SELECT.row(
    "tsel",
    "dst = src0 where mask else src1",
    body=meaning.SELECT,
    operands=(*reads("mask src0 src1"), work_tile(one_block("dst")), write("dst")),
    a2a3="i16 u16 i32 u32 f16 bf16 f32",
    a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    rules=(
        same_dtype("src0", "src1", "dst"),
        same_domain("src0", "src1", "dst"),
        _mask_bits("mask", "dst"),
        holds_bytes({2: 16, 4: 8}).on("a2a3"),
        out_of_place("mask", "src0", "src1", dst="tmp").on("a2a3"),  # gets an address first
    ),
    notes=(
        "tmp is used on a2a3 only: 16 bytes for 16-bit data, 8 for 32-bit data. On the page it "
        "has type u32; programs use any type.",
        "The C++ simulator reads the mask as one stream of bits, which differs from the NPUs"
        " where the valid columns of dst are not 8 times those of mask.",
    ),
    cxx="TSEL dst~ mask#dst src0~ src1~ tmp?",  # the C++ simulator reads valid bytes alone
)
SELECT.row(
    "tsels",
    "dst = src where mask else scalar",
    traits=Traits(operator="where"),
    body=meaning.SELECT_SCALAR,
    operands=(
        *reads("mask src"),
        work_tile(rows_like("src", 1)),
        read("scalar", "scalar"),
        write("dst"),
    ),
    # the scalar unit puts the scalar into tmp and waits for nothing before (TSels.hpp)
    phases={"a2a3": "S(scalar->tmp) S>V V(mask,src,tmp->dst)"},
    a2a3="i16 u16 i32 u32 f16 bf16 f32",
    a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 f32",
    rules=(
        same_dtype("src", "dst"),
        scalar_converts("scalar", "src"),
        same_domain("src", "dst"),
        _mask_bits("mask", "dst"),
        same_dtype("tmp", "src").on("a2a3"),
        out_of_place("mask", "src", dst="tmp").on("a2a3"),
    ),
    notes="tmp is used on a2a3 only, to hold the scalar; PTOAS requires a row of src.",
)
