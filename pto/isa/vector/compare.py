"""Lanes compared into masks, and lanes chosen by masks or by index."""

from __future__ import annotations

from pto.isa.meaning.vector import compare
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Result, read
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import dtype_in, rule, scalar_matches
from pto.isa.rules.vector import (
    INTEGERS,
    WIDE_FLOATS,
    mask_fits,
    page,
    same_lanes,
    same_vreg,
    spec,
    vector_family,
    widths,
)

_MODES = ("eq", "ne", "lt", "le", "gt", "ge")

COMPARE = vector_family(
    "vector compare",
    "a mask from a comparison of lanes; a NaN is unequal to all",
    text="$operands , @cmp_mode {} : types -> results",
    results=(Result("result", "mask"),),
    attrs=(Attr("cmp_mode", "str", _MODES, required=True),),
    traits=Traits(operator="compare"),
    cost="lane",
)

COMPARE.row(
    "vcmp",
    "result[i] = mask[i] and (src0[i] cmp_mode src1[i])",
    body=compare.COMPARE,
    cxx="vcmp_{cmp_mode} result src0 src1 mask",
    operands=(read("src0", "vreg"), read("src1", "vreg"), read("mask", "mask")),
    subject="src0",
    rules=(same_vreg("src0", "src1"), mask_fits("src0", "mask", "result")),
    cite=spec(4743),
    **widths(8, 16, 32, 64),
)
COMPARE.row(
    "vcmps",
    "result[i] = mask[i] and (src[i] cmp_mode scalar)",
    body=compare.COMPARE,
    cxx="vcmps_{cmp_mode} result src scalar mask",
    operands=(read("src", "vreg"), read("scalar", "element"), read("mask", "mask")),
    types=f"{INTEGERS} {WIDE_FLOATS}",
    subject="src",
    rules=(scalar_matches("scalar", "src"), mask_fits("src", "mask", "result")),
    notes=(
        "signedness is the register's: the i8 constant 129 against ui8 lanes is 129",
        "bf16 is in the a5 headers, not in the text",
    ),
    cite=spec(4782),
)

SELECT = vector_family(
    "vector select",
    "each lane from one of several places",
    operands=(read("src0", "vreg"), read("src1", "vreg")),
    results=(Result("result", "vreg"),),
    text="$operands {} : types -> results",
    traits=Traits(mask_selects=True),
    types=widths(8, 16, 32),
    needs="pair_select",
    subject="src0",
    cost="lane",
)


@rule("PTO-T024", "expects no elements of 8-bit floats")
def _no_small_floats(src0: t.Scalar) -> str | None:
    small = src0.is_float and src0.dtype is not None and src0.dtype.bits <= 8
    return f"src0 is {src0.name}" if small else None


SELECT.row(
    "vsel",
    "result[i] = mask[i] ? src0[i] : src1[i]",
    body=compare.VSEL,
    operands=(*SELECT.operands, read("mask", "mask")),
    needs="",
    rules=(same_vreg("src0", "src1", "result"), mask_fits("src0", "mask"), _no_small_floats),
    cite=spec(4811),
    **widths(8, 16, 32, 64),
)
SELECT.row(
    "vselr",
    "result[i] = src0[src1[i]]; no mask",
    body=compare.VSELR,
    rules=(same_vreg("src0", "result"), same_lanes("src1", "src0"), dtype_in("src1", INTEGERS)),
    notes=(
        "an older page has it as a reversed vsel with an implicit mask; the current text and the"
        " goldens select lanes by index",
        "a5 only by the PTO manual (Target Profiles); newer text allows emulation elsewhere",
        "indices beyond the last lane are not defined; they count modulo N here, as in vperm",
    ),
    example="%r = pto.vselr %v, %index : !pto.vreg<64xf32>, !pto.vreg<64xi32> -> !pto.vreg<64xf32>",
    cite=spec(4837),
)
SELECT.row(
    "vselrv2",
    "result[i] = p[i] ? src1[i] : src0[i] with p implicit in the lowering",
    body=compare.VSELRV2,
    rules=(same_lanes("src1", "src0"), same_vreg("src0", "result")),
    notes=(
        "the PTO manual (Profiles) lists it for a5; the current text took it off the a5 surface",
        "no operand carries the predicate: an integer src1 selects as in vselr, the visible "
        "result on the page; any other is an error",
        "PTOAS checks src1 as an index register, the manual's page has it of src0's type: both"
        " have src0's lanes",
    ),
    cite=(spec(4855), page("vector/ops/compare-select/vselrv2")),
)
