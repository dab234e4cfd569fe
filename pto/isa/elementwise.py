"""Tile instructions that work element by element: tile-tile, tile-scalar, unary, fused."""

from __future__ import annotations

from pto.isa.instr import Attr, Family, instr, read, write
from pto.isa.rules import (
    all_in,
    on,
    row_major,
    same_dtype,
    same_valid,
)

_VECTOR = (all_in("vec"), on("a2a3 a5", row_major()))
_PRECISION = (Attr("precision_mode", "precision_mode", default="DEFAULT"),)

BINARY = Family(
    "elementwise binary",
    "tile",
    "dst[i,j] = f(src0[i,j], src1[i,j]) over dst's valid region",
    operands=(read("src0"), read("src1"), write("dst")),
    pipe="V",
    rules=(*_VECTOR, same_dtype("src0", "src1", "dst"), same_valid("src0", "src1", "dst")),
)

instr(
    "tadd",
    BINARY,
    "dst = src0 + src1",
    a2a3="i16 i32 f16 f32",
    a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    cite="pto-isa docs/isa/TADD.md",
)
