"""Logical vectors, lane by lane; each row also has the names of the compiler's older operations."""

from __future__ import annotations

from dataclasses import replace

from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.vector import arithmetic
from pto.isa.meaning.vmi import lanewise as meaning
from pto.isa.meaning.vmi.lanewise import lanewise
from pto.isa.row import types as t
from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import Attr, Result, read
from pto.isa.rules.rule import dtype_in, rule, scalar_matches
from pto.isa.rules.vector import same_vreg
from pto.isa.vmi.families import (
    FLOATS,
    GENERIC,
    INTEGERS,
    MASK,
    MASK_RESULT,
    NUMBERS,
    PMODE,
    TD,
    family,
    mask,
    mask_logic,
    mask_width,
    same_elements,
    same_lanes,
    vector,
    written_as,
)


def _older(names: str) -> str:
    return " ".join(f"vmi.{name}" for name in names.split())


_EITHER = "logical vreg or mask"
UNARY = family(
    "logical unary",
    "result[i] = mask[i] ? f(source[i]) : 0",
    operands=(vector("source"), MASK),
    attrs=(PMODE,),
    text="$source <? , $mask > {} : types -> results",
    rules=(
        same_lanes("source", "mask", "result"),
        same_elements("source", "result"),
        mask_width("source", "mask"),
    ),
)
_SIGNED = {"vabs": ("si8", "si16", "si32", *FLOATS.split()), "vrelu": ("si32", "f16", "f32")}
for _name, _meaning, _body, _types, _aliases in (
    ("vabs", "|x|", lanewise(lanes.absolute), NUMBERS, "absf absi"),
    ("vneg", "-x; integers wrap", lanewise(lanes.negative), f"{INTEGERS} f16 f32", "negf negi"),
    ("vrelu", "max(x, 0)", lanewise(lanes.relu), "i32 f16 f32", "relu"),
    ("vexp", "e to the power x", lanewise(mathlib.exp), "f16 f32", "exp"),
    ("vln", "natural logarithm of x", lanewise(mathlib.log), "f16 f32", "ln"),
    ("vsqrt", "square root of x", lanewise(mathlib.sqrt), "f16 f32", "sqrt"),
):
    UNARY.row(
        f"vmi.{_name}",
        _meaning,
        body=_body,
        a5=_types,
        rules=(written_as("source", *_SIGNED[_name]),) if _name in _SIGNED else (),
        aliases=_older(_aliases),
    )
UNARY.row(
    "vmi.vnot",
    "bitwise complement of integers, or of a mask",
    body=lanewise(lanes.bit_not),
    operands=(read("source", _EITHER), MASK),
    results=Result("result", _EITHER),
    a5=INTEGERS,
    rules=mask_logic,
    aliases=_older("not mask_not"),
)

BINARY = family(
    "logical binary",
    "result[i] = mask[i] ? f(lhs[i], rhs[i]) : 0",
    operands=(vector("lhs"), vector("rhs"), MASK),
    attrs=(PMODE,),
    text="$lhs , $rhs <? , $mask > {} : types -> results",
    rules=(
        same_lanes("lhs", "rhs", "mask", "result"),
        same_elements("lhs", "rhs", "result"),
        mask_width("lhs", "mask"),
    ),
)
_ORDERED = "signless integers count as unsigned"
for _name, _meaning, _body, _types, _aliases in (
    ("vadd", "lhs + rhs; integers wrap", lanewise(lanes.add), NUMBERS, "addf addi"),
    ("vsub", "lhs - rhs; integers wrap", lanewise(lanes.sub), NUMBERS, "subf subi"),
    ("vmul", "lhs * rhs", lanewise(lanes.mul), f"i16 u16 i32 u32 {FLOATS}", "mulf muli"),
    ("vdiv", "lhs / rhs", lanewise(lanes.div), "f16 f32", "divf"),
    ("vmax", "the larger", lanewise(lanes.maximum, ordered=True), NUMBERS, "maxf maxi"),
    ("vmin", "the smaller", lanewise(lanes.minimum, ordered=True), NUMBERS, "minf mini"),
    ("vshl", "lhs << rhs", lanewise(arithmetic.shift_left), INTEGERS, "shli"),
    ("vshr", "lhs >> rhs", lanewise(arithmetic.shift_right, ordered=True), INTEGERS, ""),
):
    BINARY.row(
        f"vmi.{_name}",
        _meaning,
        body=_body,
        a5=_types,
        aliases=_older(_aliases),
        notes=(_ORDERED,) if _name in ("vmax", "vmin", "vshr") else (),
    )
for _name, _fn, _aliases in (
    ("vand", lanes.bit_and, "andi mask_and"),
    ("vor", lanes.bit_or, "ori mask_or"),
    ("vxor", lanes.bit_xor, "xori mask_xor"),
):
    BINARY.row(
        f"vmi.{_name}",
        f"bitwise {_name[1:]} of integers, or of two masks",
        body=lanewise(_fn),
        operands=(read("lhs", _EITHER), read("rhs", _EITHER), MASK),
        results=Result("result", _EITHER),
        a5=INTEGERS,
        rules=mask_logic,
        aliases=_older(_aliases),
    )
for _name, _sign, _body in (
    ("shrsi", "the sign fills", meaning.SHIFT_SIGNED),
    ("shrui", "zeros fill", meaning.SHIFT_UNSIGNED),
):
    BINARY.row(
        f"vmi.{_name}",
        f"lhs >> rhs, {_sign}",
        body=_body,
        operands=(vector("lhs"), vector("rhs")),
        attrs=(),
        text="$lhs , $rhs {} : types -> results",
        a5=INTEGERS,
        cite=TD,
    )

SCALAR = family(
    "logical scalar",
    "result[i] = mask[i] ? f(src[i], scalar) : 0",
    operands=(vector("src"), read("scalar", "element"), mask("mask")),
    attrs=(PMODE,),
    text="$src , $scalar , $mask {} : types -> results",
    rules=(
        same_lanes("src", "mask", "result"),
        same_elements("src", "result"),
        mask_width("src", "mask"),
    ),
)
for _name, _meaning, _body, _types in (
    ("vadds", "src + scalar", lanewise(lanes.add), NUMBERS),
    ("vmuls", "src * scalar", lanewise(lanes.mul), "i16 u16 i32 u32 f16 f32"),
    ("vmaxs", "max(src, scalar)", lanewise(lanes.maximum, ordered=True), NUMBERS),
    ("vmins", "min(src, scalar)", lanewise(lanes.minimum, ordered=True), NUMBERS),
    ("vshls", "src << scalar", lanewise(arithmetic.shift_left), INTEGERS),
    ("vshrs", "src >> scalar", lanewise(arithmetic.shift_right, ordered=True), INTEGERS),
):
    _shift = _name.startswith("vsh")
    SCALAR.row(
        f"vmi.{_name}",
        _meaning,
        body=_body,
        operands=(vector("src"), read("scalar", "i16"), mask("mask")) if _shift else None,
        a5=_types,
        rules=() if _shift else (scalar_matches("scalar", "src"),),
    )
FUSED = family("logical fused", "several sources, lane by lane")
for _name, _meaning, _fn, _names, _types in (
    ("vmula", "acc + lhs * rhs, rounded once", lanes.multiply_add, "acc lhs rhs", NUMBERS),
    ("vprelu", "x >= 0 ? x : alpha * x", arithmetic.leaky_relu, "x alpha", "f16 f32"),
):
    FUSED.row(
        f"vmi.{_name}",
        _meaning,
        body=lanewise(_fn),
        operands=(*map(vector, _names.split()), MASK),
        attrs=PMODE,
        text=f"{' , '.join('$' + n for n in _names.split())} <? , $mask > {{}} : types -> results",
        a5=_types,
        rules=(
            same_lanes(*_names.split(), "mask", "result"),
            same_elements(*_names.split(), "result"),
        ),
    )
FUSED.row(
    "vmi.fma",
    "lhs * rhs + acc, rounded once",
    body=lanewise(lanes.fma),
    operands=(vector("lhs"), vector("rhs"), vector("acc")),
    a5=FLOATS,
    rules=(
        same_lanes("lhs", "rhs", "acc", "result"),
        same_elements("lhs", "rhs", "acc", "result"),
    ),
    cite=TD,
)
for _name, _meaning, _body, _names in (
    ("vaxpy", "alpha * x + acc", lanewise(arithmetic.axpy), ("x", "acc", "alpha")),
    ("vlrelu", "x >= 0 ? x : slope * x", lanewise(arithmetic.leaky_relu), ("x", "slope")),
):
    *_vectors, _factor = _names
    FUSED.row(
        f"vmi.{_name}",
        _meaning,
        body=_body,
        operands=(*map(vector, _vectors), read(_factor, "float"), mask("mask")),
        attrs=PMODE,
        traits=GENERIC,
        a5="f16 f32",
        rules=(
            same_lanes(*_vectors, "mask", "result"),
            same_elements(*_vectors, "result"),
            scalar_matches(_factor, "x"),
        ),
    )
FUSED.row(
    "vmi.vexpdif",
    "e to the power x - max, in f32",
    body=meaning.EXPDIF,
    subject="x",
    operands=(vector("x"), vector("max"), mask("mask")),
    attrs=PMODE,
    a5="f16 f32",
    rules=(
        same_lanes("x", "max", "mask", "result"),
        same_elements("x", "max"),
        dtype_in("result", "f32"),
    ),
)


@rule("PTO-S084", "expects 64, 128 or 256 lanes")
def _wide_lanes(a: t.LogicalVReg) -> str | None:
    return None if a.lanes in (64, 128, 256) else f"there are {a.lanes}"


WIDE = family("logical wide", "more bits than a lane has", subject="lhs")
WIDE.row(
    "vmi.vmull",
    "low and high words of the 64-bit product",
    body=meaning.MULL,
    subject="a",
    operands=(vector("a"), vector("b"), mask("mask")),
    results=(Result("low", "logical vreg"), Result("high", "logical vreg")),
    attrs=replace(PMODE, values=("zero",)),
    a5="i32 u32",
    rules=(
        same_lanes("a", "b", "mask", "low", "high"),
        same_vreg("a", "b", "low", "high"),
        written_as("a", "i32", "ui32"),
        _wide_lanes,
    ),
)
for _name, _carries in (("vaddc", ()), ("vaddcs", ("carry_in",))):
    WIDE.row(
        f"vmi.{_name}",
        f"lhs + rhs{' + carry_in' * len(_carries)} of 32 bits, and a mask of what is carried",
        body=meaning.ADD_WITH_CARRY,
        operands=(vector("lhs"), vector("rhs"), *map(mask, _carries), mask("mask")),
        results=(Result("result", "logical vreg"), Result("carry", "logical mask")),
        a5="i32 u32",
        rules=(
            same_lanes("lhs", "rhs", *_carries, "mask", "result", "carry"),
            same_elements("lhs", "rhs", "result"),
        ),
        cite=TD,
    )

COMPARE = family(
    "logical compare",
    "a mask of the lanes for which it holds",
    results=MASK_RESULT,
)
_PLAIN = ("eq", "ne", "lt", "le", "gt", "ge")
_CMP = Attr(
    "cmp",
    "str",
    (*_PLAIN, *(f"o{c}" for c in _PLAIN)),
    required=True,
    meaning="o: ordered, as floats are; integers by the sign of their type",
)
for _name, _first, _second in (
    ("vcmp", "lhs", vector("rhs")),
    ("vcmps", "src", read("scalar", "element")),
):
    COMPARE.row(
        f"vmi.{_name}",
        f"seed and ({_first} cmp {_second.name})",
        body=meaning.COMPARE,
        operands=(vector(_first), _second, mask("seed")),
        attrs=(_CMP, PMODE),
        a5=NUMBERS,
        subject=_first,
        rules=(
            same_lanes(_first, "rhs", "seed", "result"),
            same_elements(_first, "rhs"),
            mask_width(_first, "seed", "result"),
            scalar_matches("scalar", _first),
        ),
        notes=_ORDERED,
    )
for _name, _kind, _types in (
    ("cmpf", "cmpf_predicate", FLOATS),
    ("cmpi", "cmpi_predicate", INTEGERS),
):
    COMPARE.row(
        f"vmi.{_name}",
        "lhs predicate rhs",
        body=meaning.COMPARE_BY_PREDICATE,
        operands=(vector("lhs"), vector("rhs")),
        attrs=Attr(
            "predicate", "str", tuple(dict.fromkeys((*ENUMS[_kind].words, *_PLAIN))), required=True
        ),
        text="@predicate , $lhs , $rhs {} : types -> results",
        a5=_types,
        subject="lhs",
        rules=(same_lanes("lhs", "rhs", "result"), same_elements("lhs", "rhs")),
        cite=TD,
    )
family("logical select", "lanes of one of two vectors").row(
    "vmi.vsel",
    "mask[i] ? true_value[i] : false_value[i]",
    body=meaning.SELECT,
    operands=(mask("mask"), vector("true_value"), vector("false_value")),
    attrs=PMODE,
    aliases="vmi.select",
    rules=(
        same_lanes("mask", "true_value", "false_value", "result"),
        same_elements("true_value", "false_value", "result"),
        mask_width("result", "mask"),
    ),
)
