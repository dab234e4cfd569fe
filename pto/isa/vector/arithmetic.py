"""Lane-wise arithmetic: one, two or three registers, or a register and a scalar, under a mask.

Masked lanes of the result are 0 (zeroing): the goldens; older pages leave them unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.vector import arithmetic
from pto.isa.row.instr import Family, Result, read, reads
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import scalar_matches
from pto.isa.rules.vector import (
    FLOATS,
    HALVES_AND_WORDS,
    INTEGERS,
    WIDE_FLOATS,
    WORDS,
    mask_fits,
    page,
    same_lanes,
    same_vreg,
    spec,
    vector_family,
    widths,
)

_NUMBERS = f"{INTEGERS} {FLOATS}"
_BITS = f"{INTEGERS} f8e4m3 f8e5m2 hifloat8"
_SUMS = f"{INTEGERS} {WIDE_FLOATS}"
_LONG_SUMS = f"{INTEGERS} i64 u64 {WIDE_FLOATS}"
_PRODUCTS = f"{HALVES_AND_WORDS} {WIDE_FLOATS}"
_MANUAL = "only the manual has it; its page keeps masked lanes unchanged, we zero them"
_RESULT = (Result("result", "vreg"),)
# meaning, function, element types, operator or function of Python, line of the specification: 0 for
# an instruction that only the manual has
_Row = tuple[str, Callable[..., Any], str, str, int]


def _add(family: Family, rows: dict[str, _Row], folder: str = "", notes: str = "") -> None:
    """Add rows of lane functions; the manual has their pages in `folder`."""
    for name, (meaning, fn, types, operator, line) in rows.items():
        family.row(
            name,
            meaning,
            body=Lane(fn),
            types=types,
            traits=Traits(operator=operator),
            notes=notes or (() if line else _MANUAL),
            cite=spec(line) if line else page(f"vector/ops/{folder}/{name}"),
        )


UNARY = vector_family(
    "vector unary",
    "result[i] = mask[i] ? f(input[i]) : 0",
    operands=(read("input", "vreg"), read("mask", "mask")),
    results=_RESULT,
    text="$input , $mask {} : <? ( > types <? ) > -> results",
    rules=(same_vreg("input", "result"), mask_fits("input", "mask")),
    subject="input",
    cost="lane",
)
_SIGNS = "number of leading bits equal to the highest bit of x, that one included"
_add(
    UNARY,
    {
        "vabs": ("|x|; the lowest integer stays itself", lanes.absolute, _NUMBERS, "abs", 3444),
        "vneg": ("-x; integers wrap", lanes.negative, _NUMBERS, "-x", 3463),
        "vexp": ("e to the power x", mathlib.exp, FLOATS, "", 3481),
        "vln": ("natural logarithm of x", mathlib.log, FLOATS, "", 3497),
        "vsqrt": ("square root of x", mathlib.sqrt, FLOATS, "", 3515),
        "vrelu": ("max(x, 0)", lanes.relu, f"i32 {FLOATS}", "", 3534),
        "vnot": ("bitwise complement of x", lanes.bit_not, INTEGERS, "~", 3554),
        "vrec": ("1 / x", mathlib.recip, FLOATS, "", 0),
        "vrsqrt": ("1 / sqrt(x)", mathlib.rsqrt, FLOATS, "", 0),
        "vbcnt": ("number of set bits of x", lanes.count_ones, INTEGERS, "", 0),
        "vcls": (_SIGNS, lanes.count_signs, INTEGERS, "", 0),
    },
    "unary-vector-ops",
)
UNARY.row(
    "vmov",
    "x",
    body=Lane(arithmetic.same, moves=True),
    cxx="vmov result input mask?",
    notes=_MANUAL,
    cite=page("vector/ops/unary-vector-ops/vmov"),
    **widths(8, 16, 32, 64),
)

BINARY = vector_family(
    "vector binary",
    "result[i] = mask[i] ? f(lhs[i], rhs[i]) : 0",
    operands=(*reads("lhs rhs", "vreg"), read("mask", "mask")),
    results=_RESULT,
    text="$lhs , $rhs , $mask {} : <? ( > types <? ) > -> results",
    rules=(same_vreg("lhs", "rhs", "result"), mask_fits("lhs", "mask")),
    subject="lhs",
    cost="lane",
)
_add(
    BINARY,
    {
        "vadd": ("lhs + rhs; integers wrap", lanes.add, _LONG_SUMS, "+", 3616),
        "vsub": ("lhs - rhs; integers wrap", lanes.sub, _LONG_SUMS, "-", 3633),
        "vmul": ("lhs * rhs; integers wrap", lanes.mul, _PRODUCTS, "*", 3650),
        "vmax": ("max(lhs, rhs); NaN wins", lanes.maximum, _SUMS, "", 3687),
        "vmin": ("min(lhs, rhs); NaN wins", lanes.minimum, _SUMS, "", 3703),
        "vand": ("lhs & rhs", arithmetic.and_bits, _BITS, "&", 3721),
        "vxor": ("lhs ^ rhs", arithmetic.xor_bits, _BITS, "^", 3753),
    },
)
BINARY.row(
    "vdiv",
    "lhs / rhs; x/0 is infinite, 0/0 NaN; integers truncate, and x/0 is 0",
    body=Lane(lanes.div),
    traits=Traits(operator="/"),
    types=f"{HALVES_AND_WORDS} {FLOATS}",
    notes="the text lists f16 and f32 only; the a5 headers divide 16- and 32-bit integers too",
    cite=spec(3668),
)
BINARY.row(
    "vor",
    "lhs | rhs, on raw bits",
    body=Lane(arithmetic.or_bits),
    traits=Traits(operator="|"),
    types=f"{_BITS} {WIDE_FLOATS}",
    notes="the text lists integers; the golden merges the two parts of an f16 vcvt with it",
    cite=spec(3737),
)
SHIFT = replace(
    BINARY,  # counts are signed in newer text, whatever is shifted
    rules=(same_vreg("lhs", "result"), same_lanes("rhs", "lhs"), mask_fits("lhs", "mask")),
)
_ARITHMETIC = "arithmetic for signed elements, logical for unsigned"
_add(
    SHIFT,
    {
        "vshl": ("lhs << rhs", arithmetic.shift_left, INTEGERS, "<<", 3771),
        "vshr": (f"lhs >> rhs, {_ARITHMETIC}", arithmetic.shift_right, INTEGERS, ">>", 3790),
    },
    notes="counts beyond the width are not defined; the goldens take them modulo the width",
)

CARRY = vector_family(
    "vector carry",
    "32-bit unsigned sums and differences with a carry mask; masked lanes 0",
    operands=BINARY.operands,
    results=(Result("result", "vreg"), Result("carry", "mask")),
    text="$operands {} : <? ( > types <? ) > -> results",
    rules=(same_vreg("lhs", "rhs", "result"), mask_fits("lhs", "mask", "carry")),
    types=WORDS,
    subject="lhs",
    cost="lane",
)

_NO_BORROW = "carry = 1 where there is no borrow"
for _name, (_meaning, _fn, _line) in {
    "vaddc": ("result = lhs + rhs, carry = the sum's bit 32", arithmetic.add_carry, 3810),
    "vsubc": (f"result = lhs - rhs, {_NO_BORROW} (lhs >= rhs)", arithmetic.subtract_carry, 3836),
}.items():
    _form = f"{_name} carry result lhs rhs mask"
    CARRY.row(_name, _meaning, body=Lane(_fn), cxx=_form, cite=spec(_line))
_SUM_OF_THREE = "result = lhs + rhs + carry_in, carry = the sum's bit 32"
_DIFFERENCE_OF_THREE = f"result = lhs - rhs - (1 - carry_in), {_NO_BORROW}"
for _name, (_meaning, _fn, _line) in {
    "vaddcs": (_SUM_OF_THREE, arithmetic.add_carry, 4048),
    "vsubcs": (_DIFFERENCE_OF_THREE, arithmetic.subtract_with_carry, 4074),
}.items():
    CARRY.row(
        _name,
        _meaning,
        body=Lane(_fn),
        operands=(*CARRY.operands[:2], read("carry_in", "mask"), CARRY.operands[2]),
        rules=mask_fits("lhs", "carry_in"),
        cxx=f"{_name} carry result lhs rhs carry_in mask",
        cite=spec(_line),
    )

SHIFT_BY = vector_family(
    "vector scalar",
    "result[i] = mask[i] ? f(input[i], scalar) : 0",
    operands=(read("input", "vreg"), read("scalar", "i16"), read("mask", "mask")),
    results=_RESULT,
    text="$input , $scalar , $mask {} : types -> results",
    rules=(same_vreg("input", "result"), mask_fits("input", "mask")),
    subject="input",
    cost="lane",
)
VECTOR_SCALAR = replace(
    SHIFT_BY,
    operands=(read("input", "vreg"), read("scalar", "element"), read("mask", "mask")),
    rules=(*SHIFT_BY.rules, scalar_matches("scalar", "input")),
)
_LEAKY = "input >= 0 ? input : scalar * input"
_add(
    VECTOR_SCALAR,
    {
        "vadds": ("input + scalar; integers wrap", lanes.add, _SUMS, "+", 3920),
        "vmaxs": ("max(input, scalar)", lanes.maximum, _SUMS, "", 3960),
        "vmins": ("min(input, scalar)", lanes.minimum, _SUMS, "", 3977),
        "vlrelu": (_LEAKY, arithmetic.leaky_relu, FLOATS, "", 4029),
    },
)
VECTOR_SCALAR.row(
    "vmuls",
    "input * scalar; integers wrap",
    body=Lane(lanes.mul),
    traits=Traits(operator="*"),
    types=_PRODUCTS,
    notes="bf16 is in the a5 headers, the text names no types",
    cite=spec(3941),
)
_add(
    SHIFT_BY,
    {
        "vshls": ("input << scalar", arithmetic.shift_left, INTEGERS, "<<", 3996),
        "vshrs": (f"input >> scalar, {_ARITHMETIC}", arithmetic.shift_right, INTEGERS, ">>", 4013),
    },
)
_add(
    VECTOR_SCALAR,
    {
        "vsubs": ("input - scalar; integers wrap", lanes.sub, _SUMS, "-", 0),
        "vands": ("input & scalar", lanes.bit_and, INTEGERS, "&", 0),
        "vors": ("input | scalar", lanes.bit_or, INTEGERS, "|", 0),
        "vxors": ("input ^ scalar", lanes.bit_xor, INTEGERS, "^", 0),
    },
    "vec-scalar-ops",
)
