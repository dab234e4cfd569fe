"""Lanes folded to one value, to one per VLane, or in pairs. Masked lanes take no part."""

from __future__ import annotations

from pto.isa.meaning.vector import reduce
from pto.isa.row import types as t
from pto.isa.row.instr import Result, read
from pto.isa.rules.rule import rule
from pto.isa.rules.vector import (
    FLOATS,
    INTEGERS,
    mask_fits,
    same_mask,
    same_vreg,
    shown,
    spec,
    vector_family,
)

_INDEX = "result[1] = bits of its first index, the others 0"

REDUCE = vector_family(
    "vector reduction",
    "a fold of the active lanes at the front of result, the other lanes 0",
    operands=(read("input", "vreg"), read("mask", "mask")),
    results=(Result("result", "vreg"),),
    text="$input , $mask {} : types -> results",
    rules=(mask_fits("input", "mask"),),
    types=f"{INTEGERS} {FLOATS}",  # the older manual has no bytes; PTOAS lowers to them
    subject="input",
    cost="reg_fold",
)
_SAME = (same_vreg("input", "result"),)


@rule("PTO-T083", "expects result to be the type of the sum")
def _sum_type(input: t.VReg, result: t.VReg) -> str | None:
    """8- and 16-bit integers sum into the next wider integer of the same signedness."""
    wanted = shown(input)
    digits = input.elem.name.lstrip("sui")
    if input.elem.is_integer and digits in ("8", "16"):
        sign = input.elem.name.removesuffix(digits)
        wanted = f"{input.lanes // 2}x{sign}{2 * int(digits)}"
    return None if shown(result) == wanted else f"result is {shown(result)}, not {wanted}"


REDUCE.row(
    "vcadd",
    "result[0] = sum of active lanes, the other lanes 0",
    body=reduce.VCADD,
    rules=_sum_type,
    notes=(
        "8- and 16-bit integers widen: 256xsi8 sums to 128xsi16, 128xi16 to 64xi32",
        "the manual's page lists i16 to i64; the current text i8 to i32",
        "the order of summation is not specified: here neighbours, then neighbouring sums; f16 is"
        " summed in f32 and rounded once",
    ),
    cite=spec(4491),
)
for _name, (_meaning, _body, _line) in {
    "vcmax": (f"result[0] = maximum, {_INDEX}", reduce.VCMAX, 4517),
    "vcmin": (f"result[0] = minimum, {_INDEX}", reduce.VCMIN, 4549),
}.items():
    REDUCE.row(
        _name,
        _meaning,
        body=_body,
        rules=_SAME,
        notes=(
            "the index is an integer's raw bits also in a float register",
            "NaN wins; without an active lane the neutral value and index 0",
        ),
        cite=spec(_line),
    )
for _name, _what, _body in (
    ("vcbmax", "maximum", reduce.VCBMAX),
    ("vcbmin", "minimum", reduce.VCBMIN),
):
    REDUCE.row(
        _name,
        f"value[0] = {_what}, the others 0; predicate = the active lanes equal to it",
        body=_body,
        results=(Result("value", "vreg"), Result("predicate", "mask")),
        rules=(same_vreg("input", "value"), same_mask("mask", "predicate")),
        notes="zeros of both signs are equal; a NaN wins, and every NaN is then marked",
        profiles="a5",
        cite="PTOAS docs/isa/micro-isa/10-reduction-ops.md",
    )
for _name, (_what, _body, _line) in {
    "vcgadd": ("sum", reduce.VCGADD, 4591),
    "vcgmax": ("maximum", reduce.VCGMAX, 4619),
    "vcgmin": ("minimum", reduce.VCGMIN, 4646),
}.items():
    REDUCE.row(
        _name,
        f"result[g] = {_what} of the active lanes of VLane g, g < 8, the others 0",
        body=_body,
        needs="group_reduction",
        rules=_SAME,
        notes=(
            "a VLane without an active lane gives the neutral value: 0, the lowest, the highest",
            "edition current has the results in lanes 0..7 as the goldens do, edition manual at"
            " the first lane of each VLane as the PTO manual do",
        ),
        cite=(spec(_line), "PTO manual, Target Profiles: Vector Register Architecture (VLane)"),
    )
REDUCE.row(
    "vcpadd",
    "result[i] = input[2i] + input[2i+1] for i < N/2, the upper half 0; masked lanes count as 0",
    body=reduce.VCPADD,
    types=FLOATS,
    rules=_SAME,
    notes="the text calls it an inclusive prefix sum; both goldens add pairs",
    cite=spec(4675),
)
