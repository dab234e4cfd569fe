"""Features a profile has or lacks: the rows of the profile comparison, in its order.

A row's title is the manual's own; which word each profile gives a row lives in the profile's file.
"""

from __future__ import annotations

from dataclasses import dataclass

ABSENT_WORDS = frozenset({"Not supported", "Not applicable"})


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of the comparison; `types` are the element types that depend on it."""

    key: str
    title: str
    cite: str
    types: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Support:
    """The support of one feature by one profile, in the PTO manual's word."""

    feature: Feature
    word: str

    @property
    def present(self) -> bool:
        return self.word not in ABSENT_WORDS


def _row(key: str, title: str, *types: str) -> Feature:
    return Feature(key, title, "PTO manual, Profiles: Target Profile Comparison", frozenset(types))


COMPARISON = (
    _row("tile_instructions", "Tile instructions (pto.t*)"),
    _row("vector_instructions", "Vector instructions (pto.v*)"),
    _row("matmul", "Matmul (TMATMUL)"),
    # Scales of MX blocks are e8m0 bytes: pto-isa pto_tile.hpp.
    _row("mx", "MX format (int8→int32 acc)", "e8m0"),
    _row("fractal_layouts", "Fractal layouts (NZ/ZN/FR/RN)"),
    _row("ub_size", "Vector tile buffer size"),
    _row("vector_width", "Vector width (f32 / f16,bf16 / i8)"),
    _row("fp8", "FP8 types (e4m3 / e5m2)", "f8e4m3", "f8e5m2"),
    _row("unaligned_store", "Vector unaligned store (vstu)"),
    _row("align_state", "Vector alignment state (vstu/vstas)"),
    _row("hif8_fp4", "hifloat8_t, float4_e* types", "hifloat8", "float4_e1m2x2", "float4_e2m1x2"),
    _row("collectives", "Block-scoped collective comm"),
    _row("atomic_store", "Atomic store variants"),
    _row("pair_select", "vselr, vselrv2 (pair select)"),
    _row("compact_modes", "TEXTRACT compact modes"),
    _row("group_reduction", "VLane group reduction"),
)

CUSTOM_PAD = Feature(
    "custom_pad", "custom pad values (PadValueCustom)", "PTO manual, Custom Pad Values (A5)"
)

FEATURES = {row.key: row for row in (*COMPARISON, CUSTOM_PAD)}

# Types no row of the comparison restricts. the manual, Standard Types; i64 and u64: PTO manual,
# elements per VLane; f64 in pointers, i1 as the result of tests, i4 pairs: pto-isa TCvt.hpp.
STANDARD_TYPES = frozenset({
    "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
    "f16", "bf16", "f32", "f64", "i1", "i4x2",
})  # fmt: skip


def comparison(**words: str) -> tuple[Support, ...]:
    """One column of the PTO manual's comparison: a word for every row, by the row's key."""
    if words.keys() != {row.key for row in COMPARISON}:
        raise KeyError(words.keys() ^ {row.key for row in COMPARISON})
    return tuple(Support(row, words[row.key]) for row in COMPARISON)


def element_types(supports: tuple[Support, ...]) -> frozenset[str]:
    """The element types a profile with these features accepts."""
    gated = (s.feature.types for s in supports if s.present)
    return STANDARD_TYPES.union(*gated)
