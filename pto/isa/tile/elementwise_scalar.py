"""Tile arithmetic with one scalar for all elements; with the bits of a scalar: `bitwise.py`."""

from __future__ import annotations

from dataclasses import replace

from pto.core.tile import TileType
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.tile import elementwise as arithmetic
from pto.isa.meaning.tile import fill
from pto.isa.row import types as t
from pto.isa.row.instr import PipeBy, read, write
from pto.isa.row.traits import Traits, operators
from pto.isa.rules.rule import (
    Case,
    in_role,
    rule,
    same_dtype,
    scalar_matches,
)
from pto.isa.rules.scratch import rows_like, work_tile
from pto.isa.rules.tile import (
    NPU,
    VECTOR_UNIT,
    by_lines,
    has_rows,
    high_precision_of,
    not_of,
    out_of_place,
    precision,
    same_domain,
    scalar_converts,
    static_part,
    tile_family,
)
from pto.isa.tile.elementwise import FLOAT_TILE, UNARY, power_rules, remainder_rules

_INTS = "i8 u8 i16 u16 i32 u32"
_WIDE = "i16 u16 i32 u32 i64 u64"
_A2A3 = "i16 i32 f16 f32"
_A5 = f"{_INTS} i64 u64 f16 bf16 f32"

_PYTHON = operators("tadds + tsubs - tmuls * tdivs / tmaxs max tmins min trems % tpows **")
_LOOPED = "i8,u8,i16,u16,i32,u32"  # integers that a2a3 and a5 divide one by one

SCALAR = tile_family(
    "elementwise scalar",
    "dst[i,j] = f(src[i,j], scalar) over dst's valid region",
    operands=(read("src"), read("scalar", "scalar"), write("dst")),
    rules=(*(by_lines(rule, text=False) for rule in UNARY.rules), scalar_matches("scalar", "src")),
    cost="unary",
)
# PTOAS and the headers convert the scalar of these, and take tiles without gaps as one row.
ARITHMETIC = replace(SCALAR, rules=(*map(by_lines, UNARY.rules), scalar_converts("scalar", "src")))

for _name, _meaning, _fn in (
    ("tadds", "dst = src + scalar", lanes.add),
    ("tsubs", "dst = src - scalar", lanes.sub),
    ("tmaxs", "dst = max(src, scalar)", lanes.maximum),
    ("tmins", "dst = min(src, scalar)", lanes.minimum),
):
    ARITHMETIC.row(
        _name,
        _meaning,
        body=arithmetic.with_scalar(_fn),
        traits=_PYTHON.get(_name),
        a2a3=_A2A3,
        a5=_A5,
    )
ARITHMETIC.row(
    "tmuls",
    "dst = src * scalar",
    body=arithmetic.with_scalar(lanes.mul),
    traits=_PYTHON["tmuls"],
    a2a3=_A2A3,
    a5=f"i8 {_WIDE} f16 bf16 f32",
    rules=not_of("i8").on("a5"),
    notes="i8 on a5 is in PTO_IR_manual.md; the header refuses it.",
    cite=("pto-isa docs/isa/TMULS.md", "PTOAS docs/PTO_IR_manual.md"),
)


@rule("PTO-T042", "expects one tile and one scalar in ins(...)")
def _tile_and_scalar(case: Case) -> str | None:
    kinds = [isinstance(case.type(name), t.Scalar) for name in ("src", "scalar")]
    if kinds[0] != kinds[1]:
        return None
    return "both are scalars" if kinds[0] else "both are tiles"


@rule("PTO-T020", "expects the tile and dst to have one element type")
def _like_dst(case: Case) -> str | None:
    names = [name for name in ("src", "scalar") if not isinstance(case.type(name), t.Scalar)]
    return same_dtype(*names, "dst").test(case)


def _divides_a_tile(case: Case) -> bool:
    return isinstance(case.type("scalar"), t.Scalar)


_DIVISION = replace(
    SCALAR,
    operands=(read("src", "tile or scalar"), read("scalar", "tile or scalar"), write("dst")),
    rules=(
        *map(by_lines, VECTOR_UNIT),
        _tile_and_scalar,
        _like_dst,
        scalar_converts("src", "dst"),
        scalar_converts("scalar", "dst"),
        same_domain("src", "scalar", "dst"),
    ),
)
_DIVISION.row(
    "tdivs",
    "dst = src / scalar in the order written: a tile by a scalar, or a scalar by a tile",
    body=arithmetic.with_scalar(lanes.div),
    traits=_PYTHON["tdivs"],
    attrs=precision("div"),
    a2a3=_A2A3,
    a5=f"{_INTS} i64 u64 f16 f32",
    rules=(
        *(not_of(byte).only_if(_divides_a_tile).on("a5") for byte in ("i8", "u8")),
        high_precision_of("f16 f32").on(NPU).as_warning,
        out_of_place("scalar").on("a2a3"),  # a tile that divides: dst holds the scalar first
    ),
    # integers in a scalar loop; on a5 (TDivS.hpp) nothing waits for the end of it
    phases={"a2a3": f"dst:{_LOOPED}: V[S]", "a5": f"dst:{_LOOPED}: V>S S(src,scalar->dst)"},
    notes=(
        "Integers truncate; their division by zero is target-defined, here it gives 0.",
        "The page has a tile divided by a scalar multiply by the reciprocal on a5; PTO-Gym and"
        " we divide.",
        "i8 and u8 on a5 are in PTO_IR_manual.md; the header divides a scalar by them only.",
    ),
    example="pto.tdivs ins(%src, %scalar : !pto.tile_buf<vec, 16x64xf32>, f32)"
    " outs(%dst : !pto.tile_buf<vec, 16x64xf32>)",
    cite=("pto-isa docs/isa/TDIVS.md", "PTOAS docs/PTO_IR_manual.md"),
)
SCALAR.row(
    "trems",
    "dst = src - floor(src / scalar) * scalar: the sign of scalar",
    body=Lane(lanes.remainder),
    traits=_PYTHON["trems"],
    operands=(*SCALAR.operands[:2], work_tile(rows_like("dst", 1)), write("dst")),
    a2a3="i32 f32",
    a5=f"{_WIDE} f16 f32",
    rules=remainder_rules("src", rows=has_rows(1)),
    notes=(
        "PTO_IR_manual.md has fmod, the sign of src; the page and every header have this.",
        "tmp is used on a2a3 only, where i32 goes through f32 and is exact up to 2**24.",
    ),
    cite=("pto-isa docs/isa/TREMS.md", "PTOAS docs/PTO_IR_manual.md"),
    cxx="TREMS dst src scalar tmp@dst",  # the C++ simulator has one type for both
)
SCALAR.row(
    "tfmods",
    "dst = src - trunc(src / scalar) * scalar: the sign of src",
    body=Lane(lanes.fmod),
    a2a3="f32",
    a5="i16 u16 i32 u32 f16 f32",
    rules=out_of_place("src").on("a2a3"),  # as trems
    notes="PTOAS also passes i16, i32 and f16 on a2a3; the header refuses them.",
)
SCALAR.row(
    "tpows",
    "dst = src ** scalar",
    body=Lane(mathlib.power),
    traits=_PYTHON["tpows"],
    operands=(*SCALAR.operands[:2], FLOAT_TILE, write("dst")),
    phases={"a2a3": "V[S]"},
    generic="src scalar dst tmp?",
    attrs=precision("pow"),
    a2a3=f"{_INTS} f32",
    a5=f"{_INTS} f16 bf16 f32",
    rules=power_rules("src"),
    notes="tmp is used on a2a3 for f32 only. PTOAS has no such operation; the text is the page's.",
    cxx="TPOWS dst src scalar tmp | TPOWS dst src scalar dst",  # integers leave tmp untouched
)


@rule("PTO-T022", "expects slope to be f32 or of src's element type")
def _slope_type(slope: t.Scalar, src: t.Scalar) -> str | None:
    return None if slope.name in ("f32", src.name) else f"slope is {slope.name}, src is {src.name}"


replace(SCALAR, rules=(*map(by_lines, UNARY.rules), _slope_type)).row(
    "tlrelu",
    "dst = src if src > 0 else src * slope",
    body=Lane(arithmetic.lrelu),
    traits=Traits(operator="leaky_relu"),
    operands=(read("src"), read("slope", "scalar"), write("dst")),
    npu="f16 f32",
    notes=(
        "PTOAS takes a slope of f32 alone, the headers one of the tile's type.",
        "PTO-Gym and we multiply f16 by a slope of f32 in f32; PTOAS's library rounds the slope"
        " first.",
    ),
)


@rule("PTO-L022", "expects a vec dst to be row-major")
def _fill_order(dst: TileType) -> str | None:
    fits = dst.role.value != "vec" or dst.layout.name == "ND"
    return None if fits else f"dst is {dst.layout.name}"


@rule("PTO-S043", "expects a mat dst of at most 32767 blocks")
def _fill_blocks(dst: TileType) -> str | None:
    fits = dst.role.value != "mat" or dst.nbytes // 32 <= 32767
    return None if fits else f"dst has {dst.nbytes // 32}"


FILL = tile_family(
    "fill",
    "dst[i,j] = scalar over dst's valid region; a mat tile is filled whole",
    operands=(read("scalar", "scalar"), write("dst")),
    pipe=PipeBy(("dst",), ((("mat",), "$l1_fill"),), "V"),
    rules=(
        in_role("dst", "vec", "mat").on(NPU),
        scalar_matches("scalar", "dst"),
        _fill_order.on("a2a3"),
        _fill_blocks.on(NPU),
    ),
    cost="unary",
)
TEXPANDS = FILL.row(
    "texpands",
    "dst = scalar",
    body=fill.FILL,
    rules=static_part().on("a2a3"),
    traits=Traits(region_of_run="part"),
    a2a3=f"{_INTS} f16 bf16 f32",
    a5=_A5,
    notes="PTO_IR_manual.md has no i8 and bf16 on a2a3; the header and programs have.",
)
