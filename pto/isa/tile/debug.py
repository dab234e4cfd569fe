"""Tile instructions of the scalar unit: print, read one element, write one element."""

from __future__ import annotations

from pto.isa.meaning.tile import debug as meaning
from pto.isa.row.instr import Attr, Result, read, scratch, write
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import Case, in_role, rule, rule_of, same_dtype, scalar_matches
from pto.isa.rules.tile import NPU, tile_family


@rule("PTO-S040", "expects tmp only with a tile")
def _for_tiles(case: Case) -> str | None:
    return "src is a view" if case.type("tmp") and case.tile("src") is None else None


tile_family("print", "look at data while a program runs", subject="src", cost="free").row(
    "tprint",
    "print the valid region of a tile, or a view of global memory",
    body=meaning.PRINT_TILE,
    operands=(read("src", "tile or view"), scratch("tmp?", "view")),
    attrs=Attr("printFormat", "any", meaning="width and digits; not followed here"),
    text="ins( $ins ) {}",
    npu="i8 u8 i16 u16 i32 u32 f16 f32",
    rules=(in_role("src", "vec").on(NPU), _for_tiles),
    cite=("pto-isa docs/isa/TPRINT.md", "pto-isa include/pto/npu/a2a3/TPrint.hpp"),
    notes=(
        "waits for every pipe first; PTOAS gives it the vector pipe",
        "the C++ interface also prints mat and acc tiles, through a buffer in global memory, and"
        " has other number formats",
        "numbers are %6.2f and %6d in the IR manual, %8.4f and %8d in the headers; we print four "
        "decimals, or an exponent where these would be zeros, and the ends of rows beyond 128",
    ),
    cxx="TPRINT src _?",
)


@rule_of("PTO-M050", "expects offset to be inside {tile}")
def _inside(case: Case, tile: str) -> str | None:
    type, at = case.tile(tile), case.number("offset")
    if type is None or at is None or 0 <= at < type.rows * type.cols:
        return None
    return f"it is {at}, {tile} has {type.rows * type.cols} elements"


ELEMENT = tile_family(
    "element", "one element of a tile, by its place in storage", pipe="S", cost="element"
)
GET_ELEMENT = ELEMENT.row(
    "tgetval",
    "dst = the element of src at this offset in storage order (not row and column)",
    body=meaning.GET_ELEMENT,
    operands=(read("src"), read("offset", "index")),
    results=Result("dst", "scalar"),
    text="ins( $ins ) outs : results {}",
    subject="src",
    rules=(in_role("src", "vec").on(NPU), same_dtype("src", "dst"), _inside("src")),
    cite=("PTOAS docs/PTO_IR_manual.md", "PTOAS include/PTO/IR/PTOOps.td"),
    cxx="= {src}.GetValue({offset})",
)
ELEMENT.row(
    "tsetval",
    "the element of dst at this offset in storage order = val; the others stay",
    body=meaning.SET_ELEMENT,
    operands=(write("dst"), read("offset", "index"), read("val", "scalar")),
    rules=(in_role("dst", "vec").on(NPU), scalar_matches("val", "dst"), _inside("dst")),
    cite=("PTOAS docs/PTO_IR_manual.md", "PTOAS include/PTO/IR/PTOOps.td"),
    cxx="TSETVAL dst offset val | = {dst}.SetValue({offset}, {val})",
    traits=Traits(partial="*"),
)
