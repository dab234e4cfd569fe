"""Tile arithmetic element by element: two tiles to one, or one to one.

A family holds what its rows share; a row adds its name, its meaning and the element types each
profile takes. Parser, verifier, engines and docs read them (see `row/instr.py`).
With a scalar: `elementwise_scalar.py`. Bit by bit: `bitwise.py`. Several in one: `fused.py`.
"""

from __future__ import annotations

from dataclasses import replace

from pto.core.constants import MASK_LEN
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.tile import elementwise as arithmetic
from pto.isa.row.instr import Operand, read, reads, scratch, write
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import Rule, dtype_in, same_dtype
from pto.isa.rules.scratch import Planned, like, mask_of, rows_like, when, work_tile
from pto.isa.rules.tile import (
    NPU,
    VECTOR_UNIT,
    apart,
    bf16_is_precise,
    by_lines,
    covers_columns,
    covers_dst,
    exceeds_rows,
    has_rows,
    high_precision_of,
    no_scratch_for,
    not_of,
    of_floats,
    out_of_place,
    precision,
    row_by_row,
    same_domain,
    scratch_if_precise,
    scratch_when,
    spent,
    tile_family,
)

_A2A3 = "i16 i32 f16 f32"
_A5 = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32"
_INTS = "i8 u8 i16 u16 i32 u32"
_WIDE = "i16 u16 i32 u32 i64 u64"

BINARY = tile_family(
    "elementwise binary",
    "dst[i,j] = f(src0[i,j], src1[i,j]) over dst's valid region",
    operands=(read("src0"), read("src1"), write("dst")),
    rules=(
        *VECTOR_UNIT,
        same_dtype("src0", "src1", "dst"),
        same_domain("src0", "src1", "dst"),
        out_of_place("src0", "src1", unless=row_by_row).on(NPU),
    ),
    cost="add",
)


def binary_with(planned: Planned) -> tuple[Operand, ...]:
    """Two tiles and a scratch tile of a2a3."""
    return (*reads("src0 src1"), work_tile(planned), write("dst"))


FLOAT_TILE = work_tile(when(of_floats, like("dst")), "tmp?")  # for powers of floats
COVERS_F32 = replace(
    covers_dst.only_if(lambda case: "f32" in getattr(case.elem("dst"), "names", ())),
    sentence=f"{covers_dst.sentence} of f32",
)


def power_rules(*sources: str, a2a3: Rule | None = None) -> tuple[Rule, ...]:
    """Rules of powers; `a2a3`: one more, on that profile."""
    return (
        out_of_place(*sources).only_if(of_floats).on("a2a3"),  # read again for special values
        out_of_place(*sources, dst="tmp").only_if(of_floats).on("a2a3"),
        COVERS_F32.on("a2a3"),
        high_precision_of("f16 bf16 f32").on("a5"),
        *((a2a3.on("a2a3"),) if a2a3 else ()),
        bf16_is_precise.on("a5"),
        no_scratch_for(_INTS).on(NPU),
        scratch_when(" for floats", of_floats).on(NPU),
    )


def remainder_rules(*sources: str, rows: Rule) -> tuple[Rule, ...]:
    return (
        same_dtype("tmp", "dst").on("a2a3"),
        rows.on("a2a3"),
        covers_columns().on("a2a3"),
        out_of_place(*sources).on("a2a3"),  # dst holds the quotient before src is read again
        out_of_place(*sources, dst="tmp").on("a2a3"),
        *(spent(name).on("a2a3") for name in sources),
    )


UNARY = tile_family(
    "elementwise unary",
    "dst[i,j] = f(src[i,j]) over dst's valid region",
    operands=(read("src"), write("dst")),
    rules=(
        *VECTOR_UNIT,
        same_dtype("src", "dst"),
        same_domain("src", "dst"),
        out_of_place("src", unless=row_by_row).on(NPU),
    ),
    cost="unary",
)

for _name, _sign, _fn in (("tadd", "+", lanes.add), ("tsub", "-", lanes.sub)):
    BINARY.row(
        _name,
        f"dst = src0 {_sign} src1",
        body=Lane(_fn),
        traits=Traits(operator=_sign),
        a2a3=_A2A3,
        a5=_A5,
        cxx="TADD dst~ src0~ src1~" if _name == "tadd" else "",  # of the C++ simulator
    )
BINARY.row(
    "tmul",
    "dst = src0 * src1",
    body=Lane(lanes.mul),
    traits=Traits(operator="*"),
    a2a3=_A2A3,
    a5=f"{_WIDE} f16 bf16 f32",
)
BINARY.row(
    "tdiv",
    "dst = src0 / src1, integers toward zero",
    body=Lane(lanes.div),
    traits=Traits(operator="/"),
    attrs=precision("div"),
    a2a3="f16 f32",
    a5=f"{_WIDE} f16 f32",
    rules=high_precision_of("f16 f32").on(NPU).as_warning,
    notes="Division of an integer by zero is target-defined; here it gives 0.",
)
_NAN = (
    "NaN is not specified: here it wins, and +0 is greater than -0 (IEEE 754-2019); the C++"
    " simulator gives src0 when only src1 is NaN."
)
for _name, _fn in (("max", lanes.maximum), ("min", lanes.minimum)):
    BINARY.row(
        f"t{_name}",
        f"dst = {_name}(src0, src1)",
        body=Lane(_fn),
        traits=Traits(operator=_name),
        a2a3=_A2A3,
        a5=_A5,
        notes=_NAN,
    )
BINARY.row(
    "trem",
    "dst = src0 - floor(src0 / src1) * src1: the sign of src1",
    body=Lane(lanes.remainder),
    traits=Traits(operator="%"),
    operands=binary_with(rows_like("dst", 2, lambda cols: cols + 2 * -(-cols // MASK_LEN))),
    attrs=precision("rem"),
    a2a3="i32 f32",
    a5=f"{_WIDE} f16 f32",
    rules=remainder_rules("src0", "src1", rows=has_rows(2).as_warning),  # April's programs have one
    notes=(
        "PTO_IR_manual.md has fmod, the sign of src0; the page and every header have this.",
        "tmp matters on a2a3: the header needs RowStride + 2 * ceil(RowStride / 64) columns; "
        "PTOAS requires two rows of dst's valid columns, and so do we.",
    ),
    cite=("pto-isa docs/isa/TREM.md", "PTOAS docs/PTO_IR_manual.md"),
)
BINARY.row(
    "tfmod",
    "dst = src0 - trunc(src0 / src1) * src1: the sign of src0",
    body=Lane(lanes.fmod),
    attrs=precision("fmod"),
    a2a3="f32",
    a5="i16 u16 i32 u32 f16 f32",
    rules=out_of_place("src0", "src1").on("a2a3"),  # as trem
    notes=(
        "TFMOD.md calls it a floor operation in words; its formula and the headers truncate.",
        "PTOAS also passes i16, i32 and f16 on a2a3; the header refuses them.",
    ),
)
BINARY.row(
    "tpow",
    "dst = src0 ** src1",
    body=Lane(mathlib.power),
    traits=Traits(operator="**"),
    operands=(*reads("src0 src1"), FLOAT_TILE, write("dst")),
    phases={"a2a3": "V[S]"},
    generic="src0 src1 dst tmp?",
    attrs=precision("pow"),
    a2a3=f"{_INTS} f32",
    a5=f"{_INTS} f16 bf16 f32",
    rules=power_rules("src0", "src1", a2a3=high_precision_of("none")),
    notes=(
        "Integers wrap; to a negative power they give 0, except that 1 and -1 stay 1 and -1 or 1.",
        "tmp is used on a2a3 for f32 only. PTOAS has no such operation; the text is the page's.",
    ),
    cxx="TPOW dst src0 src1 tmp | TPOW dst src0 src1 dst",  # integers leave tmp untouched
)
BINARY.row(
    "tprelu",
    "dst = src0 if src0 > 0 else src0 * src1",
    body=Lane(arithmetic.prelu),
    operands=binary_with(mask_of("dst")),
    npu="f16 f32",
    rules=(
        dtype_in("tmp", "u8").on("a2a3"),
        exceeds_rows.on("a2a3"),
        covers_columns("1/8 of ").on("a2a3"),
        apart("src0", "src1", "tmp", "dst", same=True).on("a2a3"),
    ),
    notes="tmp holds a mask and one row more on a2a3, where PTOAS requires dst's shape instead.",
    example="pto.tprelu ins(%src0, %src1, %tmp : !pto.tile_buf<vec, 16x64xf32>,"
    " !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 17x64xui8>)"
    " outs(%dst : !pto.tile_buf<vec, 16x64xf32>)",
)

UNARY.row(
    "tabs",
    "dst = |src|",
    body=Lane(lanes.absolute),
    traits=Traits(operator="abs"),
    a2a3="f16 f32",
    a5="i8 i16 i32 f16 f32",
    notes="PTO_IR_manual.md lists no integers on a5; the header does.",
    cxx="TABS dst~ src~",
)
replace(UNARY, rules=tuple(map(by_lines, UNARY.rules))).row(  # TMULS by -1
    "tneg",
    "dst = -src",
    body=Lane(lanes.negative),
    traits=Traits(operator="neg"),
    a2a3=_A2A3,
    a5="i8 i16 u16 i32 u32 f16 bf16 f32",
    rules=not_of("i8").on("a5"),
    notes="i8 on a5 is in PTO_IR_manual.md, not in TNEG.md.",
    cite=("pto-isa docs/isa/TNEG.md", "PTOAS docs/PTO_IR_manual.md"),
)
UNARY.row(
    "trelu",
    "dst = max(src, 0)",
    body=Lane(lanes.relu),
    traits=Traits(operator="relu"),
    npu="i32 f16 f32",
)
_LOG = Lane(mathlib.log, make=arithmetic.with_integers(mathlib.log, arithmetic.integer_log))
for _name, _meaning, _body, _more in (
    ("texp", "dst = e ** src", Lane(mathlib.exp), ""),
    ("tlog", "dst = ln(src)", _LOG, " i16 i32"),
    ("tsqrt", "dst = sqrt(src)", Lane(mathlib.sqrt), ""),
):
    UNARY.row(
        _name,
        _meaning,
        body=_body,
        traits=Traits(operator=_name[1:]),
        attrs=precision(_name[1:]),
        cpu=f"f16 bf16 f32 f64{_more}",
        npu="f16 f32",
        notes="Outside the domain the result is target-defined; here IEEE's inf or NaN.",
    )
UNARY.row(
    "trecip",
    "dst = 1 / src",
    body=Lane(
        mathlib.recip, make=arithmetic.with_integers(mathlib.recip, arithmetic.integer_recip)
    ),
    traits=Traits(operator="recip"),
    attrs=precision("recip"),
    cpu="f16 bf16 f32 f64 i16 i32",
    npu="f16 f32",
    rules=out_of_place("src").on("a2a3"),
    notes="1 / 0 is target-defined; here it is inf.",
)
UNARY.row(
    "trsqrt",
    "dst = 1 / sqrt(src)",
    body=Lane(mathlib.rsqrt),
    traits=Traits(operator="rsqrt"),
    operands=(read("src"), write("dst"), scratch("tmp?", idle="cpu a5")),
    attrs=precision("rsqrt"),
    cpu="f16 bf16 f32 f64",
    npu="f16 f32",
    rules=scratch_if_precise.on(NPU),
    notes="a5 ignores tmp. 1 / sqrt(0) is target-defined; here it is inf.",
)
