"""SIMT arithmetic: what a work item computes with one number, or two packed ones."""

from __future__ import annotations

from pto.isa.meaning.simt import math as meaning
from pto.isa.row.instr import Attr, Result, read, reads
from pto.isa.rules.simt import CONVERT, same_type, value_in
from pto.isa.simt.launch import INSIDE, SIGNEDNESS, simt_family

MATH = simt_family(
    "simt math", "arithmetic of one work item", results=(Result("result", "number"),)
)
_SIGN = (Attr("signedness", "signedness", required=True, meaning="how the factors are read"),)
_PAIR = reads("lhs rhs", "number")

MATH.row(
    "prmt",
    "byte n is the one of rhs, lhs (0 to 3, 4 to 7) that nibble n of selector names modulo 8",
    body=meaning.PRMT,
    operands=reads("lhs rhs selector", "i32"),
    results=Result("result", "i32"),
)
MATH.row(
    "mulhi",
    "high half of lhs * rhs",
    body=meaning.HIGH_HALF,
    operands=_PAIR,
    attrs=_SIGN,
    text="$lhs , $rhs @signedness {} : types -> results",
    a5="i32 i64",
    subject="lhs",
    rules=same_type("lhs", "rhs", "result"),
)
MATH.row(
    "mul_i32toi64",
    "all 64 bits of lhs * rhs",
    body=meaning.WIDE_PRODUCT,
    operands=reads("lhs rhs", "i32"),
    results=Result("result", "i64"),
    attrs=_SIGN,
    text="$lhs , $rhs @signedness {} : types -> results",
)

_F16_F32 = "f16 f32 f16x2"
_SCALARS = "f16 bf16 f32"
for _name, _meaning, _types in (
    ("absf", "magnitude of value", "f16 f32 f16x2 bf16x2"),
    ("sqrt", "square root of value", _F16_F32),
    ("exp", "e to the power of value", _F16_F32),
    ("log", "natural logarithm of value", _F16_F32),
    ("ceil", "smallest integer not less than value", _SCALARS),
    ("floor", "largest integer not greater than value", _SCALARS),
    ("rint", "nearest integer, ties to even", _SCALARS),
    ("round", "nearest integer, ties away from zero", _SCALARS),
):
    MATH.row(
        _name,
        _meaning,
        body=meaning.UNARY[_name],
        operands=read("value", "number"),
        rules=(value_in("value", _types), same_type("value", "result")),
        notes=("the document leaves the tie rule to the target",)
        if _name in ("rint", "round")
        else (),
    )
for _name in ("sin", "cos"):
    MATH.row(
        _name,
        f"{'sine' if _name == 'sin' else 'cosine'} of value, in radians",
        body=meaning.ANGLES[_name],
        operands=read("value", "number"),
        scope=INSIDE,
        rules=(value_in("value", "f32"), same_type("value", "result")),
        notes="the compiler takes it from a software library; no document defines its bits",
    )
for _name, _meaning, _types in (
    ("fmin", "smaller of lhs and rhs", "f16 f32 bf16 f16x2 bf16x2"),
    ("fmax", "larger of lhs and rhs", "f16 f32 bf16 f16x2 bf16x2"),
    ("pow", "lhs to the power of rhs", _F16_F32),
):
    MATH.row(
        _name,
        _meaning,
        body=meaning.BINARY[_name],
        operands=_PAIR,
        subject="lhs",
        rules=(value_in("lhs", _types), same_type("lhs", "rhs", "result")),
    )
MATH.row(
    "fma",
    "lhs * rhs + acc, rounded once",
    body=meaning.FMA,
    operands=(*_PAIR, read("acc", "number")),
    subject="lhs",
    rules=(value_in("lhs", "f16 bf16 f32 f16x2 bf16x2"), same_type("lhs", "rhs", "acc", "result")),
)
MATH.row(
    "convert",
    "dst = src as another type",
    body=meaning.CONVERT,
    operands=read("src", "number"),
    results=Result("dst", "number"),
    attrs=(
        Attr("rounding", "rounding", required=True, meaning="even, away, floor, ceil, zero, odd"),
        Attr("saturation", "saturation", required=True, meaning="clamp what does not fit"),
        SIGNEDNESS,
    ),
    text="$src round ( @rounding ) @saturation <? @signedness > {} : types -> results",
    example="%dst = pto.convert %src round(z) sat signed : f32 -> i32",
    subject="src",
    rules=CONVERT,
    notes="round(h) is a mode of HiFloat8 conversions that the document does not define",
)
