"""Tile instructions that change the element type: conversion and packing. Scales: `quant.py`."""

from __future__ import annotations

from math import ceil

from pto.core.tile import TileType
from pto.isa.meaning.tile.convert import PACK, tile_conversion
from pto.isa.row.instr import INS_OUTS_INSIDE, Attr, read, write
from pto.isa.rules.rounding import header_has_mode, mode_exists, rounding, saturates
from pto.isa.rules.rule import Case, rule, unlike
from pto.isa.rules.scratch import SUMS, of_bytes, work_tile
from pto.isa.rules.tile import (
    NPU,
    VECTOR_UNIT,
    Pairs,
    dtype_pairs,
    out_of_place,
    row_by_row,
    same_domain,
    scratch_holds,
    scratch_when,
    tile_family,
    undefined,
)

CONVERSIONS: Pairs = {  # a profile absent here converts whatever it has
    "a2a3": {
        "f32": "f16 bf16 f32 i16 i32 i64",  # f32 to f32 rounds to an integral value
        "f16": "f32 i4x2 i8 u8 i16 i32",
        "bf16": "f32 i32",
        "i64": "f32 i32",
        "i32": "f16 f32 i16 i64",  # to f16 by the dequantisation scale
        "i16": "f16 f32",
        "i8": "f16",
        "u8": "f16",
        "i4x2": "f16",
    },
    "a5": {
        "f32": "f16 bf16 f32 i16 i32 i64 f8e4m3 f8e5m2 hifloat8",
        "f16": "f32 i8 u8 i16 i32 hifloat8",
        "bf16": "f16 f32 i32 float4_e1m2x2 float4_e2m1x2",
        "i64": "f32 i32",
        "i32": "f32 u8 i16 u16 i64",
        "u32": "u8 i16 u16",
        "i16": "f16 f32 u8 i32 u32",
        "i8": "f16 i16 i32",
        "u8": "f16 u16",
        "f8e4m3": "f32",
        "f8e5m2": "f32",
        "hifloat8": "f32",
        "float4_e1m2x2": "bf16",
        "float4_e2m1x2": "bf16",
    },
}

_LOW_BITS = {"f32": "i16", "f16": "i8 u8 i16", "i64": "i32", "i32": "i16"}
_INTO_HIF8 = {"f32": "i16 hifloat8", "f16": "i8 u8 i16 hifloat8"}  # TCvt.hpp of a5: RS_DISABLE
# Pairs that are cut to low bits, or overflow, by default; cpu: all.
CUTS: Pairs = {"a2a3": _LOW_BITS, "a5": {**_LOW_BITS, **_INTO_HIF8}}


def _float_to_i16(rows: int, cols: int, stride: int) -> int:
    head = 4 * 64 * min(cols // 64, 255)
    tail = 32 * ((min(rows, 255) - 1) * stride // 8 + ceil(cols % 64 / 8))
    return max(head, tail if cols % 64 else 0)


def _half_to_i16(cols: int) -> int:
    return 32 * ceil(min(cols, 64) / 8)


def _half_to_i8(cols: int) -> int:
    return max(_half_to_i16(cols), 128 + 32 * ceil(min(cols, 64) / 16))


_TO_LOW_BITS = {("f32", "i16"), ("f16", "i16"), ("f16", "i8")}  # these work in tmp


def _bytes_for(case: Case, rows: int | None, cols: int | None) -> int | None:
    """Scratch bytes of conversions that keep low bits: TCVT.md, Temporary tile."""
    src, dst = case.tile("src"), case.tile("dst")
    if src is None or dst is None or case.word("satmode") not in (None, "OFF"):
        return None
    pair = (src.dtype.name, dst.dtype.name)
    if pair not in _TO_LOW_BITS or rows is None or cols is None:
        return None
    if pair == ("f32", "i16"):
        return _float_to_i16(rows, cols, src.cols)
    return _half_to_i8(cols) if pair[1] == "i8" else _half_to_i16(cols)


def _scratch_bytes(case: Case) -> int | None:
    """The bytes that the valid region needs, where it is known."""
    dst = case.tile("dst")
    return None if dst is None else _bytes_for(case, *dst.valid)


def _most_bytes(case: Case) -> int | None:
    """The bytes that suffice for every valid region: a partial group of 64 columns may need most.

    None on a profile that leaves tmp alone.
    """
    dst = case.tile("dst")
    if dst is None or case.profile.name in _TMP.idle:
        return None
    rows, cols = (size or extent for size, extent in zip(dst.valid, dst.shape, strict=True))
    is_static = dst.valid[1] is not None
    return max(_bytes_for(case, rows, n) or 0 for n in (cols, cols if is_static else min(cols, 63)))


_TMP = work_tile(of_bytes(SUMS, _most_bytes), "tmp?")


@rule("PTO-S020", "expects src and dst to have one shape")
def _same_shape(case: Case) -> str | None:
    """Extents in values: columns of packed types count items of two."""
    return unlike([(name, tile, tile.shape) for name, tile in case.tiles(("src", "dst"))], (0, 1))


CONVERT = tile_family(
    "convert",
    "dst[i,j] = src[i,j] as another type over dst's valid region",
    operands=(read("src"), write("dst"), _TMP),
    text=INS_OUTS_INSIDE,
    rules=(
        *VECTOR_UNIT,
        same_domain("src", "dst"),
        out_of_place("src", unless=row_by_row).on(NPU),
    ),
    cost="convert",
)
CONVERT.row(
    "tcvt",
    "dst = src rounded by rmode and, by satmode, clamped to dst's range or cut to its low bits",
    body=tile_conversion(CUTS, forced="a2a3", rounds=rounding),
    attrs=(
        Attr("rmode", "round_mode", default="CAST_RINT", meaning="CAST_RINT is RINT"),
        Attr(
            "satmode",
            "saturation_mode",
            meaning="unwritten: what the pair of types implies",
            older=("sat_mode",),
            generic="sat_mode",
        ),
    ),
    generic="src tmp? dst",
    cxx="TCVT dst src tmp? rmode?",
    simulated="template <class D, class S, class M>"
    " void TCVT_IMPL(D& dst, S& src, M&, RoundMode mode, bool set)"
    " { TCVT_IMPL(dst, src, mode, set); }\n"
    "template <class D, class S, class M>"
    " void TCVT_IMPL(D& dst, S& src, M&, RoundMode mode, SaturationMode saturate, bool set)"
    " { TCVT_IMPL(dst, src, mode, saturate, set); }",
    rules=(
        dtype_pairs("src", "dst", CONVERSIONS, signed=True),
        _same_shape.compiled.on(NPU),  # headers take dst's valid region, whatever the tiles' shapes
        scratch_holds("the uncut values", _scratch_bytes).on("a2a3"),
        scratch_when(" to cut values", lambda case: bool(_most_bytes(case))).on("a2a3"),
        mode_exists.on(NPU),
        header_has_mode.on("a5"),
        saturates.on("a5"),
    ),
    example="pto.tcvt ins(%src {rmode = #pto<round_mode RINT>} : !pto.tile_buf<vec, 16x64xf32>)"
    " outs(%dst : !pto.tile_buf<vec, 16x64xf16>)",
    notes=(
        *(
            f"{profile}: " + "; ".join(f"{src} to {dst}" for src, dst in table.items())
            for profile, table in CONVERSIONS.items()
        ),
        "Without sat_mode NPUs cut f16 to i8, u8 and i16, f32 to i16, i64 to i32 and i32 to i16,"
        " and clamp the rest; the C++ simulator cuts always.",
        "Without tmp a2a3 ignores sat_mode and clamps the pairs that it does not cut by default.",
        "Packed types count their columns in items of two values (PTO_IR_manual.md): src of 16x64"
        " goes with dst of 16x32. The C++ tiles count values.",
        "f32 to f32 rounds to integral values. Into hifloat8 ties go away from zero and nothing"
        " saturates, whatever rmode and satmode say, as a5 does it.",
        "A rounding mode that a target lacks for a pair is its default there, with a warning; f32"
        " to i16 in the tmp of a2a3 keeps the low bits of a saturated i32.",
        "type-system.md has f32 to integers truncate and f16 to bf16 keep bits; the code does not.",
    ),
    cite=("pto-isa docs/isa/TCVT.md", "PTOAS docs/PTO_IR_manual.md"),
)

_WIDTHS = {(4, 2), (4, 1), (2, 1)}


@rule("PTO-T041", "expects 4 -> 2, 4 -> 1 or 2 -> 1 bytes")
def _pack_width(src: TileType, dst: TileType) -> str | None:
    fits = (src.itemsize, dst.itemsize) in _WIDTHS
    return None if fits else f"src has {src.itemsize}, dst has {dst.itemsize}"


tile_family(
    "convert",
    "dst[i,j] = the narrower src[i,j] over dst's valid region",
    operands=(read("src"), write("dst")),
    rules=(
        *VECTOR_UNIT,
        same_domain("src", "dst"),
        out_of_place("src", unless=row_by_row).on(NPU),
    ),
    cost="convert",
).row(
    "tpack",
    "dst = src packed into narrower elements: its low bits",
    body=PACK,
    profiles="cpu a5",
    rules=(_pack_width, undefined("no header has it").on("a5")),
    notes=(
        "PTO_IR_manual.md names the widths alone and no header implements it; a test of an older"
        " simulator converts integers as C does, so low bits stay. Floats are not executed.",
        "PTOAS has it for a5 alone; the PTO manual (Profiles) gives cpu every tile instruction.",
    ),
    example="pto.tpack ins(%src : !pto.tile_buf<vec, 16x64xi32>)"
    " outs(%dst : !pto.tile_buf<vec, 16x64xi16>)",
    cite="PTOAS docs/PTO_IR_manual.md",
)
