"""Vector stores: registers to UB, contiguous, distributed, block-strided and scattered."""

from __future__ import annotations

from pto.isa.meaning.vector import store
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, index, read, reads, write
from pto.isa.rules.rule import Case, dtype_in, rule, same_dtype
from pto.isa.rules.vector import (
    HALVES_AND_WORDS,
    MOVED_BASE,
    STRIDES,
    WIDEST_MASK,
    bits_of,
    dist_width,
    mask_fits,
    page,
    same_base,
    same_vreg,
    spec,
    vector_family,
    widths,
)

_ITEMS = (8, 16, 32)

# Distribution -> widths of the register's elements it is legal for. PK takes the low part of items
# of its own width whatever the register is called: goldens vcvt-f32-to-f16-pk-b32, vsts-pk-b64-f32.
STORE_DISTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("NORM_B8", "1PT_B8", "MRG4CHN_B8", "MRG2CHN_B8"), (8,)),
    **dict.fromkeys(("NORM_B16", "1PT_B16", "MRG2CHN_B16"), (16,)),
    "NORM_B32": (32, 64),
    "1PT_B32": (32,),
    **dict.fromkeys(("PK_B16", "PK_B32", "PK_B64", "PK4_B32"), (8, 16, 32, 64)),
}
# Distribution -> granularity its mask is read with, where that is not the element's.
_MASKS = {
    **dict.fromkeys(("MRG2CHN_B8", "PK_B16"), 16),
    **dict.fromkeys(("MRG4CHN_B8", "MRG2CHN_B16", "PK_B32", "PK_B64", "PK4_B32"), 32),
}
_MASK_IGNORED = ("1PT_B8", "1PT_B16", "1PT_B32")


@rule("PTO-T081", "expects mask to have the granularity the store reads")
def _store_mask(case: Case, mask: t.Mask) -> str | None:
    dist, bits = case.word("dist") or "", bits_of(case, "value")
    if bits is None or dist in _MASK_IGNORED:
        return None
    wanted = _MASKS.get(dist, min(bits, WIDEST_MASK))
    if mask.granularity in (None, wanted):
        return None
    why = f"dist {dist} needs" if dist in _MASKS else f"{bits}-bit elements need"
    return f"mask is b{mask.granularity}, {why} b{wanted}"


_TARGET = (write("destination", "ub buffer"), read("offset", "index"))
STORE = vector_family(
    "vector store",
    "active lanes of a register written to UB",
    text="$operands {} : types <? -> results >",
    operands=(read("value", "vreg"), *_TARGET, read("mask", "mask")),
    types=widths(*_ITEMS),
    subject="value",
    cost="reg_store",
)

STORE.row(
    "vsts",
    "UB at destination + offset elements = active lanes of value, placed by dist",
    body=store.VSTS,
    results=MOVED_BASE,
    attrs=Attr(
        "dist",
        "str",
        tuple(STORE_DISTS),
        renamed=tuple((f"ONEPT_B{n}", f"1PT_B{n}") for n in _ITEMS),
        meaning="unwritten: NORM of value's width, UB[i] = value[i]; 1PT writes item 0 and"
        " ignores the mask; PK keeps the low half of each item, PK4 the low quarter, packed;"
        " MRG merges channel planes within 32-byte blocks",
    ),
    text="$value , $destination [ $offset ] , $mask {} : types(value,destination,mask)"
    " <? -> results >",
    rules=(dist_width("value", STORE_DISTS), _store_mask, same_base("updated_base", "destination")),
    aliases="vst vsti vsts_post",
    notes=(
        "updated_base is the post-update form of newer compilers, absent otherwise: it stores at"
        " destination itself, then moves it on by offset",
        "offset counts elements of the pointer's type, which may differ from the register's",
        "PK takes registers of any width: the manual lists each token for its own width, the"
        " goldens pack f16 by PK_B32 and f32 by PK_B64",
        "MRG4CHN and MRG2CHN are reported unsupported on current a5 hardware",
        "NORM needs a 32-byte aligned address on a5",
    ),
    example="pto.vsts %v, %ub[%at], %mask : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>",
    cite=spec(2709),
    **widths(8, 16, 32, 64),
)
STORE.row(
    "vstsx2",
    "item 2i = low[i], item 2i+1 = high[i], items of dist's width; 512 bytes, mask ignored",
    body=store.VSTSX2,
    cxx="vsts low high destination +offset mask",
    operands=(*reads("low high", "vreg"), *_TARGET, read("mask", "mask")),
    attrs=Attr("dist", "str", ("INTLV_B8", "INTLV_B16", "INTLV_B32"), required=True),
    text="$low , $high , $destination [ $offset ] , @dist , $mask {} : types",
    subject="low",
    rules=same_vreg("low", "high"),
    aliases="vstx2",
    notes="on an older page the mask gates the store; in the current text it is ignored",
    cite=spec(2749),
)
STORE.row(
    "vsstb",
    "UB block at destination + (repeat_stride + b * block_stride) * 32 B = block b of value"
    " where mask lane b, b < 8",
    body=store.VSSTB,
    cxx="vsstb value destination block_stride:+repeat_stride mask",
    operands=(read("value", "vreg"), _TARGET[0], *STRIDES, read("mask", "mask")),
    results=MOVED_BASE,
    rules=same_base("updated_base", "destination"),
    notes=(
        "lane b of the b32 view of mask gates block b",
        "post-update starts at destination itself, then moves it on by repeat_stride blocks",
    ),
    example="pto.vsstb %v, %ub, %block, %repeat, %mask : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, i16,"
    " i16, !pto.mask<b32>",
    cite=spec(2781),
)


@rule("PTO-S080", "expects offsets of the elements' width, or 16 bits for bytes")
def _requests(case: Case) -> str | None:
    value, offsets = bits_of(case, "value"), bits_of(case, "offsets")
    if value is None or offsets is None or offsets == max(value, 16):
        return None
    return f"offsets have {offsets} bits, value has {value}"


STORE.row(
    "vscatter",
    "UB[destination + offsets[i] elements] = value[i] where mask[i]; of bytes value[2i]",
    body=store.VSCATTER,
    operands=(
        read("value", "vreg"),
        write("destination", "ub pointer"),
        index("offsets", "vreg"),
        read("mask", "mask"),
    ),
    text="$value , $destination , $offsets , $mask {} : types",
    rules=(
        dtype_in("offsets", HALVES_AND_WORDS),
        _requests,
        mask_fits("offsets", "mask"),
        same_dtype("value", "destination"),
    ),
    notes=(
        "where two lanes hit one address one write wins, and which is not defined: here the higher",
        "PTOAS takes 32-bit offsets only, the text also 16-bit values with 16-bit offsets",
    ),
    example="pto.vscatter %v, %ub, %offsets, %mask : !pto.vreg<64xf32>, !pto.ptr<f32, ub>,"
    " !pto.vreg<64xi32>, !pto.mask<b32>",
    cite=(spec(2808), "PTOAS docs/isa/micro-isa/03-vector-load-store.md"),
)
STORE.row(
    "vsst",
    "strided store: the token picks the sub-elements written in each destination block",
    body=store.VSST,
    operands=(read("value", "vreg"), *_TARGET),
    attrs=Attr(
        "stride",
        "str",
        ("STRIDE_S3_B16", "STRIDE_S4_B64", "STRIDE_S8_B32", "STRIDE_S2_B64"),
        required=True,
    ),
    text="$value , $destination [ $offset ] , @stride {} : types(value,destination)",
    notes=(
        "deprecated: only the manual has it; vsts with a dist or vsstb replace it",
        "the manual names the tokens only; they are read as in vsld",
    ),
    cite=page("vector/ops/vector-load-store/vsst"),
)
