"""Tile instructions on the bits of integers: and, or, xor, not and shifts, by tile or by scalar."""

from __future__ import annotations

from dataclasses import replace

from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.tile import elementwise as arithmetic
from pto.isa.row.instr import read, write
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import rule, same_dtype, same_valid
from pto.isa.rules.scratch import like, work_tile
from pto.isa.rules.tile import NPU, by_lines, out_of_place, scalar_converts, static_part
from pto.isa.tile.elementwise import BINARY, UNARY, binary_with
from pto.isa.tile.elementwise_scalar import SCALAR

_INTS = "i8 u8 i16 u16 i32 u32"
_WITH_I64 = f"{_INTS} i64 u64"
_NARROWER = "PTO_IR_manual.md lists {} on a2a3; the page lists all integers of up to 32 bits."
_BY_WIDTH = (
    "A shift by the width of the element or more, or by a negative count, is not defined by the"
    " ISA; here it shifts everything out. 64-bit elements take the count modulo 64, as the header"
    " of a5 does."
)


@rule("PTO-T045", "expects the shift in scalar not to be negative")
def _shift_amount(scalar: int) -> str | None:
    return None if scalar >= 0 else f"it is {scalar}"


_SHIFT = replace(
    SCALAR,
    operands=(read("src"), read("scalar", "int"), write("dst")),
    rules=(*UNARY.rules, _shift_amount),  # the scalar may be of any width: programs write i16
)

for _name, _sign, _fn in (("tand", "&", lanes.bit_and), ("tor", "|", lanes.bit_or)):
    BINARY.row(
        _name,
        f"dst = src0 {_sign} src1",
        body=arithmetic.of_bits(_fn),
        traits=Traits(operator=_sign),
        cpu=_WITH_I64,
        npu=_INTS,
        library="f16 bf16 f32",
        notes=(_NARROWER.format("i8 and i16"), "C++ kernels may take the bits of floats."),
    )
BINARY.row(
    "txor",
    "dst = src0 ^ src1",
    body=Lane(lanes.bit_xor),
    traits=Traits(operator="^"),
    operands=binary_with(like("dst")),
    cpu=_WITH_I64,
    npu=_INTS,
    rules=(
        same_dtype("tmp", "dst").on("a2a3"),
        same_valid("tmp", "dst").on("a2a3"),
        out_of_place("src0", "src1", "tmp").on("a2a3"),
        out_of_place("src0", "src1", dst="tmp").on("a2a3"),
    ),
    notes=(_NARROWER.format("i8 and i16"), "tmp is used on a2a3 only."),
)
_RIGHT = "dst = {} >> {}, arithmetic for signed types, logical for unsigned ones"
for _name, _sign, _meaning, _fn in (
    ("tshl", "<<", "dst = src0 << src1", arithmetic.shift_left),
    ("tshr", ">>", _RIGHT.format("src0", "src1"), arithmetic.shift_right),
):
    BINARY.row(
        _name,
        _meaning,
        body=Lane(_fn),
        traits=Traits(operator=_sign),
        cpu=_WITH_I64,
        a2a3=_INTS,
        a5=_WITH_I64,
        phases={"a2a3": "V[S]"},
        notes=_BY_WIDTH,
    )
UNARY.row(
    "tnot",
    "dst = ~src",
    body=Lane(lanes.bit_not),
    traits=Traits(operator="~"),
    cpu=_WITH_I64,
    npu=_INTS,
    notes=_NARROWER.format("i16 alone"),
)

_CONVERTED = replace(
    SCALAR, rules=(*SCALAR.rules[:-1], scalar_converts("scalar", "src", "an integer"))
)
_IN_PLACE_NOTE = "PTOAS refuses src as dst on a5 too, where no header needs it"
for _name, _sign, _fn in (("tands", "&", lanes.bit_and), ("tors", "|", lanes.bit_or)):
    _CONVERTED.row(
        _name,
        f"dst = src {_sign} scalar",
        body=arithmetic.with_scalar(_fn),
        traits=Traits(operator=_sign, region_of_run="part"),
        cpu=_WITH_I64,
        npu=_INTS,
        rules=(out_of_place("src").on(NPU), static_part().on("a2a3")),
        notes=(_NARROWER.format("i8 and i16"), _IN_PLACE_NOTE),
    )
_CONVERTED.row(
    "txors",
    "dst = src ^ scalar",
    body=arithmetic.with_scalar(lanes.bit_xor),
    traits=Traits(operator="^", region_of_run="part"),
    operands=(read("src"), read("scalar", "scalar"), work_tile(like("dst")), write("dst")),
    cxx="TXORS dst src scalar tmp@dst",  # the C++ simulator has one type for both
    cpu=_WITH_I64,
    npu=_INTS,
    rules=(
        out_of_place("src", "tmp").on("a2a3"),
        out_of_place("src", dst="tmp").on("a2a3"),
        same_dtype("src", "tmp").on("a2a3"),
        out_of_place("src").on("a5"),
        static_part().on("a2a3"),
    ),
    notes=(_NARROWER.format("i8 and i16"), "tmp is used on a2a3 only.", _IN_PLACE_NOTE),
)
_LEFT = replace(_SHIFT, rules=tuple(map(by_lines, _SHIFT.rules)))
for _family, _name, _sign, _meaning, _fn in (
    (_LEFT, "tshls", "<<", "dst = src << scalar", arithmetic.shift_left_by),
    (_SHIFT, "tshrs", ">>", _RIGHT.format("src", "scalar"), arithmetic.shift_right_by),
):
    _family.row(
        _name,
        _meaning,
        body=Lane(_fn),
        traits=Traits(operator=_sign),
        cpu=_WITH_I64,
        a2a3="i16 u16 i32 u32",
        a5=_WITH_I64,
        notes=(_BY_WIDTH, "The page wants a scalar of src's type; programs write i16."),
    )
