"""Lanes moved within and between registers: interleave, squeeze, pack, slide, permute."""

from __future__ import annotations

from pto.isa.meaning.vector import rearrange
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Result, read
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import dtype_in, rule
from pto.isa.rules.vector import (
    HALVES_AND_WORDS,
    INTEGERS,
    mask_fits,
    page,
    same_lanes,
    same_vreg,
    shown,
    spec,
    vector_family,
    widths,
)

_RESULT = (Result("result", "vreg"),)
_PAIR = (read("lhs", "vreg"), read("rhs", "vreg"))
_HALF = Attr("part", "str", ("LOWER", "HIGHER"), required=True)

REARRANGE = vector_family(
    "vector rearrangement",
    "lanes in another order",
    operands=_PAIR,
    results=_RESULT,
    text="$operands {} : types -> results",
    types=widths(8, 16, 32),
    subject="lhs",
    cost="lane",
    traits=Traits(mask_selects=True),
)


@rule("PTO-T083", "expects result to hold unsigned integers of half src's width")
def _packed_type(src: t.VReg, result: t.VReg) -> str | None:
    half = result.lanes == 2 * src.lanes and result.elem.name.startswith("ui")
    return None if half else f"src is {shown(src)}, result is {shown(result)}"


@rule("PTO-T083", "expects result to hold integers of twice src's width")
def _unpacked_type(src: t.VReg, result: t.VReg) -> str | None:
    double = src.lanes == 2 * result.lanes and result.elem.is_integer
    return None if double else f"src is {shown(src)}, result is {shown(result)}"


_PAIRS = "low = l0 r0 l1 r1 .. of the first halves, high the same of the second"
_APART = "low = even, high = odd positions of the stream lhs, rhs"
for _name, (_meaning, _body, _line) in {
    "vintlv": (_PAIRS, rearrange.VINTLV, 4928),
    "vdintlv": (_APART, rearrange.VDINTLV, 4947),
}.items():
    REARRANGE.row(
        _name,
        _meaning,
        body=_body,
        results=(Result("low", "vreg"), Result("high", "vreg")),
        rules=same_vreg("lhs", "rhs", "low", "high"),
        cite=spec(_line),
    )
for _name, (_body, _line) in {
    "vintlvv2": (rearrange.VINTLVV2, 5121),
    "vdintlvv2": (rearrange.VDINTLVV2, 5130),
}.items():
    REARRANGE.row(
        _name,
        f"the part half of {_name.removesuffix('v2')}",
        body=_body,
        attrs=_HALF,
        text="$lhs , $rhs , @part {} : types -> results",
        rules=same_vreg("lhs", "rhs", "result"),
        notes="documented, but off the current a5 surface",
        cite=spec(_line),
    )
REARRANGE.row(
    "vsqz",
    "active lanes in order at the front, the rest 0; SQZN = their bytes",
    body=rearrange.VSQZ,
    operands=(read("input", "vreg"), read("mask", "mask")),
    subject="input",
    rules=(same_vreg("input", "result"), mask_fits("input", "mask")),
    notes="hidden state: SQZN, which vstur reads",
    cite=spec(4968),
)
REARRANGE.row(
    "vusqz",
    "result[i] = number of active lanes before i; src is ignored; SQZN as vsqz",
    body=rearrange.VUSQZ,
    cxx="vusqz result mask",
    operands=(read("src", "vreg"), read("mask", "mask")),
    types="i8 i16 i32",
    subject="src",
    rules=(same_vreg("src", "result"), mask_fits("src", "mask")),
    notes="a count of the mask despite its name, not the inverse of vsqz",
    cite=spec(4990),
)
REARRANGE.row(
    "vpack",
    "low halves of src's elements in the part half of result, the other half 0",
    body=rearrange.VPACK,
    operands=read("src", "vreg"),
    attrs=_HALF,
    text="$src , @part {} : types -> results",
    types=HALVES_AND_WORDS,
    subject="src",
    rules=_packed_type,
    notes="truncates, does not saturate",
    example='%h = pto.vpack %v, "LOWER" : !pto.vreg<64xi32> -> !pto.vreg<128xui16>',
    cite=spec(5035),
)
for _name, (_how, _body, _line) in {
    "vsunpack": ("sign", rearrange.VSUNPACK, 5064),
    "vzunpack": ("zero", rearrange.VZUNPACK, 5082),
}.items():
    REARRANGE.row(
        _name,
        f"result[i] = src[part * N/2 + i] {_how}-extended; part is 0 or 1",
        body=_body,
        operands=(read("src", "vreg"), read("part", "index")),
        text="$src , $part {} : types(src) <? , index > -> results",
        types="i8 u8 i16 u16",
        subject="src",
        rules=_unpacked_type,
        notes="takes a contiguous half, unlike the EVEN and ODD parts of vcvt",
        example=f"%w = pto.{_name} %v, %part : !pto.vreg<128xi16> -> !pto.vreg<64xi32>",
        cite=spec(_line),
    )

_MANUAL = "only the manual has it"
REARRANGE.row(
    "vslide",
    "result[i] = (src1, src0)[amt + i], src1 first",
    body=rearrange.VSLIDE,
    operands=(read("src0", "vreg"), read("src1", "vreg"), read("amt", "i16")),
    subject="src0",
    rules=same_vreg("src0", "src1", "result"),
    notes=_MANUAL,
    cite=page("vector/ops/data-rearrangement/vslide"),
)
REARRANGE.row(
    "vshift",
    "result[i] = i >= amt ? src[i - amt] : 0",
    body=rearrange.VSHIFT,
    operands=(read("src", "vreg"), read("amt", "i16")),
    subject="src",
    rules=same_vreg("src", "result"),
    notes=_MANUAL,
    cite=page("vector/ops/data-rearrangement/vshift"),
)
REARRANGE.row(
    "vperm",
    "result[i] = src[index[i] mod N]",
    body=rearrange.VPERM,
    operands=(read("src", "vreg"), read("index", "vreg")),
    subject="src",
    rules=(same_vreg("src", "result"), same_lanes("index", "src"), dtype_in("index", INTEGERS)),
    notes=f"{_MANUAL}; vselr is the current form",
    example="%r = pto.vperm %v, %index : !pto.vreg<64xf32>, !pto.vreg<64xi32> -> !pto.vreg<64xf32>",
    cite=page("vector/ops/data-rearrangement/vperm"),
)
