"""Fused and special functions of registers, and the instructions that sort and transpose in UB."""

from __future__ import annotations

from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.vector import arithmetic, sort, special
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Result, read, reads, write
from pto.isa.rules.rule import dtype_in, rule, same_dtype, scalar_matches
from pto.isa.rules.vector import (
    FLOATS,
    HALVES_AND_WORDS,
    WIDE_FLOATS,
    WORDS,
    mask_fits,
    page,
    same_vreg,
    spec,
    vector_family,
    widths,
)

_RESULT = (Result("result", "vreg"),)
_MASK = read("mask", "mask")

FUSED = vector_family(
    "vector fused",
    "several lane-wise steps in one; masked lanes 0",
    operands=(read("lhs", "vreg"), read("rhs", "vreg"), _MASK),
    results=_RESULT,
    text="$operands {} : <? ( > types <? ) > -> results",
    subject="lhs",
    cost="lane_mul",
)
_THREE = (same_vreg("lhs", "rhs", "result"), mask_fits("lhs", "mask"))

FUSED.row(
    "vprelu",
    "result[i] = lhs[i] >= 0 ? lhs[i] : rhs[i] * lhs[i]",
    body=Lane(arithmetic.leaky_relu),
    types=FLOATS,
    rules=_THREE,
    cite=spec(5181),
)


@rule("PTO-T083", "expects result to be f32")
def _exp_type(result: t.Scalar) -> str | None:
    return None if result.name == "f32" else f"it is {result.name}"


FUSED.row(
    "vexpdif",
    "result = e to the power (input - max) in f32; f16 lanes 0,2,.. (EVEN) or 1,3,.. (ODD)",
    body=special.VEXPDIF,
    operands=(read("input", "vreg"), read("max", "vreg"), _MASK),
    attrs=Attr("part", "str", ("EVEN", "ODD"), required=True, meaning="no effect on f32 input"),
    text="$input , $max , $mask , @part {} : types -> results",
    types=FLOATS,
    subject="input",
    rules=(same_vreg("input", "max"), mask_fits("input", "mask"), _exp_type),
    aliases="vexpdiff",
    cite=spec(5200),
)
FUSED.row(
    "vaxpy",
    "result[i] = alpha * src0[i] + src1[i]",
    body=Lane(arithmetic.axpy),
    cxx="vaxpy src1>result src0 alpha mask",
    operands=(*reads("src0 src1", "vreg"), read("alpha", "element"), _MASK),
    types=FLOATS,
    subject="src0",
    rules=(
        same_vreg("src0", "src1", "result"),
        scalar_matches("alpha", "src0"),
        mask_fits("src0", "mask"),
    ),
    cite=spec(5226),
)
FUSED.row(
    "vmula",
    "result[i] = acc[i] + lhs[i] * rhs[i], rounded once",
    body=Lane(lanes.multiply_add),
    cxx="vmula acc>result lhs rhs mask",
    operands=(*reads("acc lhs rhs", "vreg"), _MASK),
    types=f"{HALVES_AND_WORDS} {WIDE_FLOATS}",
    subject="acc",
    rules=(same_vreg("acc", "lhs", "rhs", "result"), mask_fits("acc", "mask")),
    notes="the text writes active lanes only; its golden cannot distinguish zeroing from merging",
    cite=spec(5270),
)
FUSED.row(
    "vmadd",
    "result[i] = acc[i] * lhs[i] + rhs[i], rounded once",
    body=Lane(arithmetic.multiply_into),
    cxx="vmadd acc>result lhs rhs mask",
    operands=(*reads("acc lhs rhs", "vreg"), _MASK),
    text="$acc , $lhs , $rhs , $mask {} : types -> results",
    types=WIDE_FLOATS,
    subject="acc",
    rules=(same_vreg("acc", "lhs", "rhs", "result"), mask_fits("acc", "mask")),
    profiles="a5",
    cite="PTOAS docs/isa/micro-isa/07-binary-vector-ops.md",
)
FUSED.row(
    "vmulscvt",
    "result = input * scalar in f32, then converted to f16: into lanes 0,2,.. (EVEN) or 1,3,..",
    body=special.VMULSCVT,
    cxx="vmulscvt<rnd=A> result input scalar mask",
    operands=(read("input", "vreg"), read("scalar", "element"), _MASK),
    attrs=(
        Attr("rnd", "str", ("A",), required=True, meaning="A nearest, ties away"),
        Attr("part", "str", ("EVEN", "ODD"), required=True, meaning="which lanes are filled"),
    ),
    text="$input , $scalar , $mask , @rnd , @part {} : types -> results",
    types="f32",
    subject="input",
    rules=(
        scalar_matches("scalar", "input"),
        mask_fits("input", "mask"),
        dtype_in("result", "f16"),
    ),
    notes=(
        "beyond the range of f16 it saturates, as vcvt of its header does; no text states it",
        "the text rounds by A alone; no source defines if the product is rounded to f32 before",
    ),
    profiles="a5",
    example='%h = pto.vmulscvt %v, %scale, %mask, "A", "EVEN" : !pto.vreg<64xf32>, f32,'
    " !pto.mask<b32> -> !pto.vreg<128xf16>",
    cite="PTOAS docs/isa/micro-isa/13-dsa-sfu-ops.md",
)
FUSED.row(
    "vmull",
    "low and high word of the 64-bit product lhs[i] * rhs[i]; signed for signed elements",
    body=Lane(arithmetic.long_product),
    results=(Result("low", "vreg"), Result("high", "vreg")),
    types=WORDS,
    rules=(same_vreg("lhs", "rhs", "low", "high"), mask_fits("lhs", "mask")),
    cite=spec(5248),
)
for _name, (_meaning, _fn) in {
    "vaddrelu": ("result[i] = max(lhs[i] + rhs[i], 0)", lanes.add_relu),
    "vsubrelu": ("result[i] = max(lhs[i] - rhs[i], 0)", lanes.sub_relu),
}.items():
    FUSED.row(
        _name,
        _meaning,
        body=Lane(_fn),
        types=FLOATS,
        rules=_THREE,
        notes="only the manual has it",
        cite=page(f"vector/ops/sfu-and-dsa-ops/{_name}"),
    )
_PAGE_RELU = "; the page also takes max with 0"
for _name, (_meaning, _body, _note) in {
    "vaddreluconv": ("max(lhs + rhs, 0)", special.VADDRELUCONV, ""),
    "vmulconv": ("lhs * rhs", special.VMULCONV, _PAGE_RELU),
}.items():
    FUSED.row(
        _name,
        f"result[i] = {_meaning} of lane i, converted to its type",
        body=_body,
        operands=(read("lhs", "vreg"), read("rhs", "vreg"), read("mask?", "mask")),
        text="$lhs , $rhs <? , $mask > {} : <? ( > types <? ) > -> results",
        rules=(same_vreg("lhs", "rhs"), mask_fits("lhs", "mask")),
        notes=(
            f"the manual's page has a mask, PTOAS has none{_note}",
            "no kernel uses it, and which pairs of types convert, and how, is not documented: any"
            " does here, to nearest even and saturating, lane i to lane i",
        ),
        cite=page(f"vector/ops/sfu-and-dsa-ops/{_name}"),
        **widths(8, 16, 32),
    )

_TO = write("destination", "ub pointer")
UB_TO_UB = vector_family(
    "UB to UB",
    "sorts, merges and transposes in UB, from outside a vector scope",
    text="$operands {} : types",
    scope="outside vecscope",
    subject="source",
    cost="block_sort",
)


@rule("PTO-S082", "expects repeat_times within 0 to 255")
def _repeat_times(repeat_times: int) -> str | None:
    return None if 0 <= repeat_times <= 255 else f"it is {repeat_times}"


UB_TO_UB.row(
    "vbitsort",
    "each repeat sorts 32 scores with their indices, descending and stable, into 8-byte records"
    " (score, index)",
    body=sort.VBITSORT,
    operands=(_TO, *reads("source indices", "ub pointer"), read("repeat_times", "index")),
    types=FLOATS,
    rules=(dtype_in("indices", "u32"), _repeat_times),
    notes=(
        "an f16 score fills the low 2 bytes of its field, the next 2 are reserved and 0 here",
        "where NaN sorts is not defined: here behind every number",
    ),
    example="pto.vbitsort %out, %scores, %indices, %repeats : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>,"
    " !pto.ptr<ui32, ub>, index",
    cite=spec(5317),
)
_LISTS = "source0 source1 source2 source3"
UB_TO_UB.row(
    "vmrgsort4",
    "merge up to 4 lists of 8-byte (score, index) records, each descending, into destination",
    body=sort.VMRGSORT4,
    operands=(_TO, *reads(_LISTS, "ub pointer"), *reads("count config", "i64")),
    types=FLOATS,
    subject="destination",
    rules=same_dtype(*_LISTS.split(), "destination"),
    aliases="vmrgsort",
    notes=(
        "count holds four 16-bit list lengths in records, list 0 lowest",
        "config: bits 7..0 repeats, 11..8 valid lists, 12 stop when one list is exhausted",
        "hidden state: VMS4_SR, the records taken of each list",
        "a list that is not descending, which the text leaves undefined, is an error; a list of"
        " length 0 takes no part",
    ),
    cite=spec(5339),
)
for _name, (_meaning, _body, _plain) in {
    "vsort32": ("sort 32 elements of source", sort.VSORT32, "descending"),
    "vtranspose": ("transpose blocks of source", sort.VTRANSPOSE, "one block of 16x16 elements"),
}.items():
    UB_TO_UB.row(
        _name,
        f"{_meaning} under a configuration word",
        body=_body,
        operands=(_TO, read("source", "ub pointer"), read("config", "i64")),
        rules=same_dtype("source", "destination"),
        notes=(
            f"only the manual has it, and the fields of config are not documented: 0 is {_plain},"
            " anything else is an error"
        ),
        cite=page(f"vector/ops/sfu-and-dsa-ops/{_name}"),
    )
