"""Lanes converted to another type, rounded in place, or read as other types."""

from __future__ import annotations

from pto.isa.meaning.vector import convert
from pto.isa.meaning.vector.convert import OLDER_WORDS, plain_word
from pto.isa.row.instr import Attr, Result, read
from pto.isa.rules.rule import Case, rule
from pto.isa.rules.vector import (
    WIDE_FLOATS,
    bits_of,
    mask_fits,
    same_vreg,
    spec,
    vector_family,
    widths,
)

_FP8, _FP4 = ("f8e4m3", "f8e5m2", "hifloat8"), ("float4_e1m2x2", "float4_e2m1x2")
# Source and destination type -> the attributes the conversion takes, no more and no fewer.
# A signless integer counts as signed. micro-instruction manual, vcvt
PAIRS: dict[str, str] = {
    **dict.fromkeys(("f32 f16", "f32 bf16", "f32 i16", "f32 i64"), "rnd sat part"),
    **dict.fromkeys(("f16 i8", "f16 u8", "bf16 i32"), "rnd sat part"),
    **dict.fromkeys(("f32 i32", "f16 i16", "bf16 f16"), "rnd sat"),
    **dict.fromkeys(("f16 i32", "i64 f32"), "rnd part"),
    **dict.fromkeys(("i16 f16", "i32 f32"), "rnd"),
    **dict.fromkeys(("u16 u8", "i16 u8", "u32 u8", "u32 u16", "u32 i16"), "sat part"),
    **dict.fromkeys(("i32 u8", "i32 u16", "i32 i16", "i64 i32"), "sat part"),
    **dict.fromkeys(("f16 f32", "bf16 f32", "u8 f16", "u8 u16", "u8 u32"), "part"),
    **dict.fromkeys(("i8 f16", "i8 i16", "i8 i32", "u16 u32"), "part"),
    **{f"{wide} {name}": "rnd sat part" for wide in ("f32", "f16") for name in _FP8},
    **dict.fromkeys(("bf16 f8e4m3", "bf16 f8e5m2"), "rnd sat part"),
    **{f"{name} f32": "part" for name in _FP8},
    **{f"bf16 {name}": "rnd part" for name in _FP4},
    **{f"{name} bf16": "part" for name in _FP4},
    **dict.fromkeys(("i16 f32", "i16 u32", "i16 i32", "i32 i64"), "part"),
}
# The roundings of pairs that do not have all: PTOAS VPTO.cpp, lookupVcvtContract. It also has H,
# hybrid rounding, which no public source defines.
_SOME_ROUNDINGS = {
    **dict.fromkeys(("f32 f8e4m3", "f32 f8e5m2"), "R A Z"),
    **{f"{wide} {name}": "R A F Z C" for wide in ("f16", "bf16") for name in _FP8[:2]},
    **dict.fromkeys(("f32 hifloat8", "f16 hifloat8"), "A"),
    **{f"bf16 {name}": "R A F Z C" for name in _FP4},
}
_PARTS = {2: ("EVEN", "ODD"), 4: ("P0", "P1", "P2", "P3")}  # by how much the width changes
_SOURCES = sorted({pair.split()[0] for pair in PAIRS})


def _words(*short: str) -> tuple[str, ...]:
    return (*short, *(older for older, word in OLDER_WORDS.items() if word in short))


_ROUNDINGS = _words("R", "A", "F", "C", "Z", "O")


def _pair(case: Case) -> str | None:
    source, result = case.elem("input"), case.elem("result")
    if source is None or result is None or source.dtype is None or result.dtype is None:
        return None
    return f"{source.dtype.name} {result.dtype.name}"


@rule("PTO-T084", "expects a conversion that exists")
def _vcvt_pair(case: Case) -> str | None:
    pair = _pair(case)
    if pair is None or pair in PAIRS:
        return None
    source, result = pair.split()
    targets = [p.split()[1] for p in PAIRS if p.split()[0] == source]
    targets_text = f"; {source} converts to {', '.join(targets)}" if targets else ""
    return f"{source} to {result}{targets_text}"


@rule("PTO-T085", "expects the attributes of this conversion")
def _vcvt_attrs(case: Case) -> str | None:
    wanted = PAIRS.get(_pair(case) or "")
    if wanted is None:
        return None
    written = ["rnd" if a == "round_mode" else a for a in case.op.attrs]
    actual = [a for a in ("rnd", "sat", "part") if a in written]
    if " ".join(actual) == wanted and len(set(written)) == len(written):
        return None
    return f"{_pair(case)} takes {wanted}, given are {' '.join(written) or 'none'}"


@rule("PTO-T085", "expects a rounding of this conversion")
def _vcvt_rounding(case: Case) -> str | None:
    pair, rnd = _pair(case) or "", plain_word(case, "rnd") or plain_word(case, "round_mode")
    allowed = _SOME_ROUNDINGS.get(pair)
    if rnd is None or allowed is None or rnd in allowed.split():
        return None
    return f"{pair.replace(' ', ' to ')} takes {allowed}, rnd is {rnd}"


@rule("PTO-T085", "expects part EVEN or ODD between widths 2:1, P0 to P3 between widths 4:1")
def _vcvt_part(case: Case) -> str | None:
    part = plain_word(case, "part")
    a = bits_of(case, "input")
    b = bits_of(case, "result")
    if part is None or a is None or b is None:
        return None
    steps = 4 if set((_pair(case) or "").split()) & set(_FP4) else max(a, b) // min(a, b)
    allowed = _PARTS.get(steps, ())
    return None if not allowed or part in allowed else f"part is {part} from {a} to {b} bits"


_ROUND = "R nearest even, A nearest with ties away, F down, C up, Z toward zero, O to odd"

CONVERT = vector_family(
    "vector conversion",
    "lanes under another type",
    text="$operands {} : types -> results",
    operands=(read("input", "vreg"), read("mask", "mask")),
    results=(Result("result", "vreg"),),
    subject="input",
    cost="lane",
)

CONVERT.row(
    "vcvt",
    "result = input converted; narrowing fills every 2nd or 4th lane from part on, the rest 0;"
    " widening reads those lanes; masked source lanes give 0",
    body=convert.VCVT,
    attrs=(
        Attr("rnd", "str", _ROUNDINGS, meaning=_ROUND),
        Attr("sat", "str", _words("SAT", "NOSAT"), meaning="clamp to the range, or wrap"),
        Attr("part", "str", _words(*_PARTS[2], *_PARTS[4]), meaning="which lanes of the wider"),
        Attr("round_mode", "str", _ROUNDINGS, meaning="older name of rnd"),
    ),
    types=" ".join(_SOURCES),
    rules=(mask_fits("input", "mask"), _vcvt_pair, _vcvt_attrs, _vcvt_rounding, _vcvt_part),
    notes=(
        "the mask has the granularity of the source; a 64-bit source goes by b32",
        "the text calls A away from zero; headers and a TF32 golden take the nearest, ties away",
        "the type matrix of the text lacks i64 sources, its golden converts si64 to f32",
        "the text calls all three attributes optional; PTOAS wants exactly those of the pair",
    ),
    example='%h = pto.vcvt %v, %mask {rnd = "R", sat = "SAT", part = "EVEN"} : !pto.vreg<64xf32>,'
    " !pto.mask<b32> -> !pto.vreg<128xf16>",
    cite=spec(4169),
)
CONVERT.row(
    "vtrc",
    "result[i] = mask[i] ? input[i] rounded to an integral value : 0",
    body=convert.VTRC,
    attrs=Attr(
        "round_mode",
        "str",
        _words("R", "A", "F", "C", "Z"),
        required=True,
        meaning=_ROUND.removesuffix(", O to odd"),
    ),
    text="$input , $mask , @round_mode {} : types -> results",
    types=WIDE_FLOATS,
    rules=(same_vreg("input", "result"), mask_fits("input", "mask")),
    cite=spec(4341),
)
CONVERT.row(
    "vbitcast",
    "result = the same 256 bytes under another element type",
    body=convert.VBITCAST,
    operands=read("input", "vreg"),
    cite=spec(4393),
    **widths(8, 16, 32, 64),
)
