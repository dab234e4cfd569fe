"""Predicates: masks generated, combined, rearranged, loaded and stored.

A mask is 256 bits, one per byte of a register: lane i of b8, b16, b32 is bit i, 2i, 4i.
"""

from __future__ import annotations

from pto.isa.meaning.vector import predicate, unaligned
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Instr, Result, read, write
from pto.isa.row.traits import Traits, operators
from pto.isa.rules.rule import Case, rule, rule_of
from pto.isa.rules.vector import (
    MOVED_BASE,
    mask_is,
    mask_steps,
    page,
    predicate_family,
    same_base,
    same_mask,
    spec,
    state_from,
)

_LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
PATTERNS = (
    "PAT_ALL", "PAT_ALLF", *(f"PAT_VL{n}" for n in _LENGTHS), "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4",
)  # fmt: skip
_PATTERN = Attr(
    "pattern",
    "str",
    PATTERNS,
    required=True,
    meaning="ALL all lanes, ALLF none, VLn the first n, H the first half, Q the first quarter,"
    " M3 and M4 every 3rd and 4th from lane 0",
)
_RESULT = (Result("result", "mask"),)

GENERATE = predicate_family(
    "predicate generation",
    "a mask from a pattern or a count",
    results=_RESULT,
    attrs=(_PATTERN,),
    text="@pattern {} : results",
    cost="predicate",
)

PSET: dict[int, Instr] = {}  # by the bits of a lane
for _bits in (8, 16, 32):
    _lanes = 256 * 8 // _bits
    PSET[_bits] = GENERATE.row(
        f"pset_b{_bits}",
        f"result = the lanes pattern names, of {_lanes}",
        body=predicate.pattern(_bits // 8),
        traits=Traits(mask_bits=_bits),
        rules=mask_is(_bits, "result"),
        notes="the text has H and Q at the high end; the golden has them at the low end",
        example=f'%m = pto.pset_b{_bits} "PAT_ALL" : !pto.mask<b{_bits}>',
        cite=spec(3149),
    )
    GENERATE.row(
        f"pge_b{_bits}",
        f"result = the lanes pattern names, of {_lanes}; no comparison despite its name",
        body=predicate.pattern(_bits // 8),
        traits=Traits(mask_bits=_bits),
        rules=mask_is(_bits, "result"),
        example=f'%m = pto.pge_b{_bits} "PAT_VL8" : !pto.mask<b{_bits}>',
        cite=spec(3183),
    )
    GENERATE.row(
        f"plt_b{_bits}",
        f"mask[i] = i < scalar, i < {_lanes}; scalar_out = max(scalar - {_lanes}, 0)",
        body=predicate.tail(_bits // 8),
        traits=Traits(mask_bits=_bits),
        operands=read("scalar", "i32"),
        results=(Result("mask", "mask"), Result("scalar_out", "i32")),
        attrs=(),
        text="$scalar {} : types -> results",
        rules=mask_is(_bits, "mask"),
        example=f"%m, %left = pto.plt_b{_bits} %count : i32 -> !pto.mask<b{_bits}>, i32",
        cite=spec(3206),
    )
    GENERATE.row(
        f"pltm_b{_bits}",
        f"mask[i] = i + loop * {_lanes} < bound, i < {_lanes}",
        body=predicate.tail_of_turn(_bits // 8),
        traits=Traits(mask_bits=_bits),
        operands=(read("loop", "i16"), read("bound", "i32")),
        results=Result("mask", "mask"),
        attrs=(),
        text="$loop , $bound {} : types -> results",
        rules=mask_is(_bits, "mask"),
        profiles="a5",
        example=f"%m = pto.pltm_b{_bits} %loop, %bound : i16, i32 -> !pto.mask<b{_bits}>",
        cite="PTOAS docs/isa/micro-isa/05-materialization-predicate.md",
    )

_PYTHON = operators("pand & por | pxor ^ pnot ~")
LOGIC = predicate_family(
    "predicate logic",
    "masks combined bit by bit; bits outside the governing mask 0",
    operands=(read("src0", "mask"), read("src1", "mask"), read("mask", "mask")),
    results=_RESULT,
    text="$operands {} : types -> results",
    cost="predicate",
)

for _name, (_meaning, _body, _line) in {
    "pand": ("result = mask ? src0 & src1 : 0", predicate.PAND, 3299),
    "por": ("result = mask ? src0 | src1 : 0", predicate.POR, 3313),
    "pxor": ("result = mask ? src0 ^ src1 : 0", predicate.PXOR, 3327),
    "psel": ("result = mask ? src0 : src1", predicate.PSEL, 3355),
}.items():
    LOGIC.row(
        _name,
        _meaning,
        body=_body,
        traits=_PYTHON.get(_name, Traits(mask_selects=True)),
        rules=same_mask("src0", "src1", "mask", "result"),
        notes=("a manual page gives psel a fourth, governing mask",) if _name == "psel" else (),
        cite=spec(_line),
    )
LOGIC.row(
    "pnot",
    "result = mask ? ~input : 0",
    body=predicate.PNOT,
    traits=_PYTHON["pnot"],
    operands=(read("input", "mask"), read("mask", "mask")),
    rules=same_mask("input", "mask", "result"),
    cite=spec(3341),
)

REARRANGE = predicate_family(
    "predicate rearrangement",
    "lanes or bits of masks in another order",
    operands=(read("lhs", "mask"), read("rhs", "mask")),
    results=(Result("low", "mask"), Result("high", "mask")),
    text="$operands {} : types -> results",
    cost="predicate",
)
_HALF = Attr("part", "str", ("LOWER", "HIGHER"), required=True)

for _bits in (8, 16, 32):
    _all = (mask_is(_bits, "lhs", "rhs", "low", "high"),)
    _two = f"!pto.mask<b{_bits}>, !pto.mask<b{_bits}>"
    REARRANGE.row(
        f"pintlv_b{_bits}",
        "low = l0 r0 l1 r1 .. of the first halves, high the same of the second",
        body=predicate.interleaved(_bits // 8),
        traits=Traits(mask_bits=_bits),
        rules=_all,
        example=f"%low, %high = pto.pintlv_b{_bits} %l, %r : {_two} -> {_two}",
        cite=spec(3378),
    )
    REARRANGE.row(
        f"pdintlv_b{_bits}",
        "low = even, high = odd lanes of lhs, then of rhs",
        body=predicate.deinterleaved(_bits // 8),
        traits=Traits(mask_bits=_bits),
        rules=_all,
        example=f"%low, %high = pto.pdintlv_b{_bits} %l, %r : {_two} -> {_two}",
        cite=spec(3368),
    )
REARRANGE.row(
    "ppack",
    "result = bits 0, 2, 4, .. of input in its lower or upper 128 bits, the other half 0",
    body=predicate.PPACK,
    operands=read("input", "mask"),
    results=_RESULT,
    attrs=_HALF,
    text="$input , @part {} : types -> results",
    rules=mask_steps("narrow"),
    notes="works on physical bits, not on lanes: all of b32 packs to every 2nd bit",
    cite=spec(3239),
)
REARRANGE.row(
    "punpack",
    "result bit 2i = bit i of the part half of input, odd bits 0",
    body=predicate.PUNPACK,
    operands=read("input", "mask"),
    results=_RESULT,
    attrs=_HALF,
    text="$input , @part {} : types -> results",
    rules=mask_steps("widen"),
    cite=spec(3268),
)
REARRANGE.row(
    "pbitcast",
    "result = the same 256 bits under another granularity",
    body=predicate.PBITCAST,
    operands=read("input", "mask"),
    results=_RESULT,
    cite=spec(4445),
)


def _moves_on(case: Case) -> bool:
    return any(r.type.kind != "mask" for r in case.op.results)


@rule("PTO-S081", "expects offset to be a constant")
def _constant_offset(case: Case) -> str | None:
    return "it is computed" if case.number("offset") is None else None


@rule("PTO-M080", "expects offset to be a multiple of 8 bytes")
def _mask_aligned(case: Case, offset: int) -> str | None:
    """Check the offset of the access; with post-update it applies to the next access only."""
    return None if _moves_on(case) or offset % 8 == 0 else f"it is {offset}"


@rule_of("PTO-X080", "expects offset within {limit} words of 8 bytes")
def _immediate_range(case: Case, limit: int) -> str | None:
    offset = case.number("offset")
    return None if offset is None or 0 <= offset <= limit * 8 else f"it is {offset}"


_LOAD_DIST = Attr(
    "dist",
    "str",
    ("NORM", "US", "DS"),
    required=True,
    meaning="NORM 32 bytes as they are; US 16 bytes, each bit twice; DS every 2nd bit of 64 bytes",
)
_STORE_DIST = Attr(
    "dist",
    "str",
    ("NORM", "PK"),
    required=True,
    meaning="NORM all 32 bytes; PK every 2nd bit, 16 bytes",
)
_IMMEDIATE = (
    _constant_offset,
    _immediate_range(255).on("a2a3"),
    _immediate_range(1023).on("a5"),
)
_UNITS = (
    "offset counts what dist reads or writes, 32 bytes (DS too) or 16; in the edition of April"
    " bytes, on the manual's page words of 8 bytes",
)
_BYTES = "offset counts bytes whatever the pointer's type is"

LOAD = predicate_family(
    "predicate load",
    "a mask image from UB",
    operands=(read("source", "ub buffer"), read("offset", "index")),
    results=(*_RESULT, MOVED_BASE),
    rules=(same_base("updated_base", "source"),),
    attrs=(_LOAD_DIST,),
    text="$source [ $offset ] , @dist {} : types -> results",
    cost="reg_load",
)
STORE = predicate_family(
    "predicate store",
    "a mask image to UB",
    operands=(read("value", "mask"), write("destination", "ub buffer"), read("offset", "index")),
    results=(MOVED_BASE,),
    rules=(same_base("updated_base", "destination"),),
    attrs=(_STORE_DIST,),
    text="$value , $destination [ $offset ] , @dist {} : types <? -> results >",
    cost="reg_store",
)
STREAM = predicate_family(
    "predicate stream",
    "masks appended to an unaligned stream",
    text="$operands {} : types -> results",
    cost="reg_store",
)

LOAD.row(
    "plds",
    "result = the image at source + offset bytes, distributed",
    body=predicate.LOAD_IMAGE,
    rules=_mask_aligned,
    notes=(_BYTES, "DS reads 64 bytes, past a 32-byte image"),
    cite=(spec(2965), page("scalar/ops/predicate-load-store/plds")),
)
LOAD.row(
    "pldi",
    "result = the image offset images on from source, distributed; offset is an immediate",
    body=predicate.LOAD_IMAGE_AT,
    rules=_IMMEDIATE,
    notes=_UNITS,
    cite=(spec(2991), page("scalar/ops/predicate-load-store/pldi")),
)
STORE.row(
    "psts",
    "the image at destination + offset bytes = value, distributed",
    body=predicate.STORE_IMAGE,
    rules=_mask_aligned,
    notes=_BYTES,
    cite=(spec(3010), page("scalar/ops/predicate-load-store/psts")),
)
STORE.row(
    "psti",
    "the image offset images on from destination = value; offset is an immediate",
    body=predicate.STORE_IMAGE_AT,
    rules=_IMMEDIATE,
    notes=_UNITS,
    cite=(spec(3033), page("scalar/ops/predicate-load-store/psti")),
)
LOAD.row(
    "pld",
    "result = the image at source + 8 * areg bytes, distributed",
    body=predicate.LOAD_IMAGE_WORDS,
    operands=(read("source", "ub pointer"), read("areg", "i32")),
    results=_RESULT,
    text="$source , $areg , @dist {} : types -> results",
    notes="only the manual has it; plds and pldi replace it",
    cite=page("scalar/ops/predicate-load-store/pld"),
)
STORE.row(
    "pst",
    "the image at destination + 8 * areg bytes = value, distributed",
    body=predicate.STORE_IMAGE_WORDS,
    operands=(read("value", "mask"), write("destination", "ub pointer"), read("areg", "i32")),
    results=(),
    text="$value , $destination , $areg , @dist {} : types",
    notes="only the manual has it; psts and psti replace it",
    cite=page("scalar/ops/predicate-load-store/pst"),
)


@rule("PTO-T081", "expects a b16 mask with ui16 at base or a b32 mask with ui32")
def _stream_type(value: t.Mask, base: t.Scalar) -> str | None:
    if value.granularity is None:
        return None
    fits = f"u{value.granularity}" in base.names and value.granularity != 8
    return None if fits else f"value is b{value.granularity}, base points to {base.name}"


STREAM.row(
    "pstu",
    "append the lanes of value as bits to an unaligned stream: 16 bytes of b16, 8 of b32",
    body=unaligned.PSTU,
    cxx="pstu align_in>align_out value base",
    operands=(read("align_in", "align"), read("value", "mask"), write("base", "ub pointer")),
    results=(Result("align_out", "align"), Result("base_out", "ub pointer", optional=True)),
    needs="align_state",
    rules=(_stream_type, same_base("base_out", "base"), state_from("align_in", "store")),
    notes=(
        "compact bits, unlike the images of psts; ends with vstas of align_out at base_out, 0",
        "the manual has alignment state on a5 only; the manual's page lists pstu for a2a3 too",
    ),
    example="%state, %next = pto.pstu %align, %m, %ub : !pto.align, !pto.mask<b32>,"
    " !pto.ptr<ui32, ub> -> !pto.align, !pto.ptr<ui32, ub>",
    cite=spec(3050),
)
