"""Vector loads: UB to registers, contiguous, distributed, block-strided and gathered."""

from __future__ import annotations

from pto.isa.meaning.vector import load
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Result, index, read
from pto.isa.rules.rule import dtype_in, rule
from pto.isa.rules.vector import (
    HALVES_AND_WORDS,
    MOVED_BASE,
    STRIDES,
    WORDS,
    dist_width,
    mask_fits,
    mask_is,
    page,
    same_base,
    same_lanes,
    same_vreg,
    spec,
    vector_family,
    widths,
)

_ANY = (8, 16, 32, 64)
_ITEMS = (8, 16, 32)

# Distribution -> widths of the register's elements it is legal for. BRC repeats items of its own
# width whatever the register is called: goldens vlds-brc-b8-f32, vlds-brc-b16-f32.
LOAD_DISTS: dict[str, tuple[int, ...]] = {
    "NORM": _ANY,
    **dict.fromkeys(("BRC_B8", "BRC_B16", "BRC_B32"), _ITEMS),
    **dict.fromkeys(("US_B8", "DS_B8", "UNPK_B8", "SPLT2CHN_B8"), (8,)),
    **dict.fromkeys(("US_B16", "DS_B16", "UNPK_B16", "SPLT2CHN_B16", "E2B_B16"), (16,)),
    **dict.fromkeys(("UNPK_B32", "E2B_B32", "DINTLV_B32"), (32,)),
    **dict.fromkeys(("UNPK4", "SPLT4CHN", "SPLT4CHN_B8"), (8,)),
    **dict.fromkeys(("BRC_BLK", "BLK"), _ANY),
}


LOAD = vector_family(
    "vector load",
    "a register image built from UB",
    operands=(read("source", "ub buffer"), read("offset", "index")),
    results=(Result("result", "vreg"),),
    text="$source [ $offset ] {} : types(source) -> results",
    subject="result",
    cost="reg_load",
)

LOAD.row(
    "vlds",
    "result = 256-byte image built by dist from UB at source + offset elements; no mask",
    body=load.VLDS,
    results=(Result("result", "vreg"), MOVED_BASE),
    attrs=Attr(
        "dist",
        "str",
        tuple(LOAD_DISTS),
        default="NORM",
        meaning="NORM copies 256 bytes; BRC repeats one item, BRC_BLK one 32-byte block; US"
        " doubles each item, DS keeps every second; UNPK zero-extends items to twice their"
        " width, UNPK4 bytes to words; E2B fills block g with item g; SPLT keeps channel 0",
    ),
    rules=(dist_width("result", LOAD_DISTS), same_base("updated_base", "source")),
    aliases="vld vldi vlds_post",
    notes=(
        "updated_base is the post-update form of newer compilers; it is absent otherwise",
        "the manual's SPLT4CHN_B8 is SPLT4CHN, its BLK is BRC_BLK, and its single-result DINTLV_B32"
        " keeps the even words; newer text has these as SPLT4CHN, BRC_BLK and vldsx2",
        "BRC takes registers of any item width: the manual lists each token for its own width, the"
        " goldens broadcast bytes and halves into f32 registers",
        "NORM needs a 32-byte aligned address on a5; the others only the alignment of their item",
        "post-update loads at source itself, then moves it on by offset",
        "SPLT reads a window of as many registers as there are channels; no text fixes its size",
    ),
    example='%v = pto.vlds %ub[%at] {dist = "NORM"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>',
    cite=(spec(2454), "PTO manual, Data Movement: Distribution modes"),
    **widths(*_ANY),
)
LOAD.row(
    "vldsx2",
    "DINTLV_Bk: low item i = src[2i], high item i = src[2i+1] of a 512-byte window;"
    " BDINTLV: the same with 32-byte blocks",
    body=load.VLDSX2,
    cxx="vlds low high source +offset",
    results=(Result("low", "vreg"), Result("high", "vreg"), MOVED_BASE),
    attrs=Attr("dist", "str", ("DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV"), required=True),
    text="$source [ $offset ] , @dist {} : types -> results",
    subject="low",
    rules=(same_vreg("low", "high"), same_base("updated_base", "source")),
    aliases="vldx2",
    notes="items have the token's width whatever the registers are called",
    cite=spec(2566),
    **widths(*_ITEMS),
)
LOAD.row(
    "vsldb",
    "block b = mask lane b ? UB block at source + (repeat_stride + b * block_stride) * 32 B : 0,"
    " b < 8",
    body=load.VSLDB,
    cxx="vsldb result source block_stride:+repeat_stride mask",
    operands=(read("source", "ub buffer"), *STRIDES, read("mask", "mask")),
    results=(Result("result", "vreg"), MOVED_BASE),
    rules=same_base("updated_base", "source"),
    text="$source , $block_stride , $repeat_stride , $mask {} : types -> results",
    notes=(
        "lane b of the b32 view of mask gates block b; masked blocks raise no address fault",
        "repeat_stride is an initial offset in the golden: stride 4 starts at block 4",
    ),
    cite=spec(2605),
    **widths(*_ITEMS, 64),
)

GATHER = vector_family(
    "vector gather",
    "lanes or blocks fetched from UB by an index register",
    operands=(read("source", "ub pointer"), index("offsets", "vreg"), read("mask", "mask")),
    results=(Result("result", "vreg"),),
    text="$source , $offsets , $mask {} : types -> results",
    rules=(same_lanes("offsets", "result"),),
    types=widths(32),
    subject="result",
    cost="reg_gather",
)


@rule("PTO-T050", "expects the elements of source, or for bytes their 16-bit extension")
def _gather_bytes(source: t.Scalar, result: t.Scalar) -> str | None:
    if source.dtype is None or result.dtype is None:
        return None
    if source.dtype.bits != 8 or result.dtype.bits == 8:
        return None
    wanted = {"i8": "i16", "u8": "u16"}.get(source.dtype.name)
    same = wanted == result.dtype.name
    return None if same else f"source holds {source.name}, result {result.name}"


@rule("PTO-T050", "expects signless or unsigned offsets")
def _gather_sign(offsets: t.Scalar) -> str | None:
    return f"offsets are {offsets.name}" if offsets.name.startswith("si") else None


GATHER.row(
    "vgather2",
    "result[i] = mask[i] ? UB[source + offsets[i] elements] : 0",
    body=load.VGATHER2,
    operands=(*GATHER.operands[:2], read("mask", "mask or index")),
    rules=(
        dtype_in("offsets", HALVES_AND_WORDS),
        mask_fits("result", "mask"),
        _gather_bytes,
        _gather_sign,
    ),
    notes=(
        "the formula of the text leaves masked lanes unwritten; the golden has them 0",
        "older programs give the number of active lanes in place of the mask",
        "16-bit offsets are unsigned, as in the a5 headers, whatever the register is called",
    ),
    example="%v = pto.vgather2 %ub, %offsets, %mask : !pto.ptr<f32, ub>, !pto.vreg<64xi32>,"
    " !pto.mask<b32> -> !pto.vreg<64xf32>",
    cite=spec(2635),
    **widths(16, 32),
)
GATHER.row(
    "vgatherb",
    "block b = mask lane b ? 32 bytes of UB at source + offsets[b] bytes : 0, b < 8",
    body=load.VGATHERB,
    rules=(dtype_in("offsets", WORDS), mask_is(32, "mask")),
    notes=(
        "only lanes 0..7 of offsets and mask count; source and offsets are multiples of 32 bytes",
        "equal lane counts, PTOAS's rule, leave 32-bit elements though blocks have no type",
    ),
    example="%v = pto.vgatherb %ub, %offsets, %mask : !pto.ptr<f32, ub>, !pto.vreg<64xi32>,"
    " !pto.mask<b32> -> !pto.vreg<64xf32>",
    cite=spec(2658),
)
GATHER.row(
    "vgather2_bc",
    "result[i] = mask[i] ? UB[source + offsets[i] elements] : 0",
    body=load.VGATHER2,
    rules=(dtype_in("offsets", WORDS), mask_fits("result", "mask")),
    notes="masked lanes issue no request, so their offsets may point anywhere",
    example="%v = pto.vgather2_bc %ub, %offsets, %mask : !pto.ptr<f32, ub>, !pto.vreg<64xi32>,"
    " !pto.mask<b32> -> !pto.vreg<64xf32>",
    cite=spec(2689),
)
LOAD.row(
    "vsld",
    "strided load: the token picks the sub-elements read from each source block",
    body=load.VSLD,
    attrs=Attr(
        "stride",
        "str",
        ("STRIDE_S3_B16", "STRIDE_S4_B64", "STRIDE_S8_B32", "STRIDE_S2_B64"),
        required=True,
    ),
    text="$source [ $offset ] , @stride {} : types(source) -> results",
    notes=(
        "deprecated: only the manual has it; vlds with a dist or vsldb replace it",
        "the manual names the tokens only; they are read as spelled: S3_B16 is every third half",
        "one table of the manual calls vsld a store, its text and its page a load: it is one",
    ),
    cite=page("vector/ops/vector-load-store/vsld"),
    **widths(*_ITEMS),
)
