"""Histograms: of registers, half the byte values at a time, and over logical vectors."""

from __future__ import annotations

from pto.isa.meaning.vmi import shape
from pto.isa.row import types as t
from pto.isa.row.instr import Result, read, reads
from pto.isa.rules.rule import dtype_in, rule
from pto.isa.rules.vector import mask_fits, same_lane_type, same_vreg, shown, vector_family

_BINS = (128, 256)


@rule("PTO-S083", "expects acc to have 128 or 256 bins")
def _bins(acc: t.LogicalVReg) -> str | None:
    return None if acc.lanes in _BINS else f"acc is {shown(acc)}"


@rule("PTO-S083", "expects mask to have as many lanes as src")
def _mask_lanes(src: t.LogicalVReg, mask: t.LogicalMask) -> str | None:
    return None if src.lanes == mask.lanes else f"src is {shown(src)}, mask is {mask.lanes}"


HISTOGRAM = vector_family(
    "histogram",
    "counts of byte values in the active lanes of src, added to acc",
    scope="",
    operands=(*reads("acc src", "logical vreg"), read("mask", "logical mask")),
    results=(Result("result", "logical vreg"),),
    text="$acc , $src , $mask {} : types -> results",
    rules=(same_lane_type("acc", "result"), dtype_in("src", "u8"), _bins, _mask_lanes),
    subject="acc",
    cost="lane",
)

HALF_HISTOGRAM = vector_family(
    "half histogram",
    "counts of 128 byte values in the active lanes of source, added to acc",
    operands=(*reads("acc source", "vreg"), read("mask", "mask"), read("bin", "i32")),
    results=(Result("result", "vreg"),),
    text="$acc , $source , $mask , $bin {} : types -> results",
    rules=(same_vreg("acc", "result"), dtype_in("source", "u8"), mask_fits("source", "mask")),
    subject="acc",
    cost="lane",
)
for _name, _which, _body in (
    ("chistv2", "<=", shape.CUMULATIVE_HISTOGRAM),
    ("dhistv2", "==", shape.HISTOGRAM),
):
    HALF_HISTOGRAM.row(
        _name,
        f"result[b] = acc[b] + number of active source[i] {_which} b + 128 * bin",
        body=_body,
        cxx=f"{_name} acc>result source mask bin",
        types="u16",
        profiles="a5",
        notes="bin is 0 or 1 (Bin_N0, Bin_N1 of the headers); no source defines others",
        example=f"%h = pto.{_name} %acc, %src, %mask, %bin : !pto.vreg<128xui16>,"
        " !pto.vreg<256xui8>, !pto.mask<b8>, i32 -> !pto.vreg<128xui16>",
        cite="PTOAS docs/isa/micro-isa/10-reduction-ops.md",
    )

for _name, (_which, _body, _line) in {
    "vmi.vchist": ("<= b", shape.CUMULATIVE_HISTOGRAM, 2055),
    "vmi.vdhist": ("== b", shape.HISTOGRAM, 2134),
}.items():
    HISTOGRAM.row(
        _name,
        f"result[b] = acc[b] + number of active src[i] {_which}",
        body=_body,
        types="u16",
        profiles="a5",
        notes=(
            "128 bins hold the values below 128; signless integers count as unsigned",
            "stands for a sequence of instructions on 256-byte registers",
        ),
        example=f"%h = pto.{_name} %acc, %src, %mask : !pto.vmi.vreg<256xui16>,"
        " !pto.vmi.vreg<256xui8>, !pto.vmi.mask<256> -> !pto.vmi.vreg<256xui16>",
        cite=f"PTO-Gym docs/PTO-vmi-Instruction-SPEC.md:{_line}",
    )
