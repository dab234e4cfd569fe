"""Tile instructions on two sources of which one may cover only part of the destination."""

from __future__ import annotations

from pto.core.tile import TileType
from pto.isa.meaning import lanes
from pto.isa.meaning.tile.partial import partial, partial_search
from pto.isa.row.instr import read, reads, write
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import agree, dims, dtype_in, rule, same_dtype, same_valid
from pto.isa.rules.tile import NPU, VECTOR_UNIT, library_types, results_apart, tile_family

_CPU = "i8 u8 i16 i32 f16 bf16 f32"
_A2A3 = "i16 i32 f16 f32"
_A5 = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32"


def _shown(src0: TileType, src1: TileType, dst: TileType) -> str:
    texts = (dims(*x.valid) for x in (src0, src1, dst))
    return "src0 is {}, src1 is {}, dst is {}".format(*texts)


@rule("PTO-S053", "expects src0 and src1 to stay within the valid region of dst")
def _part_inside(src0: TileType, src1: TileType, dst: TileType) -> str | None:
    pairs = (pair for src in (src0, src1) for pair in zip(src.valid, dst.valid, strict=True))
    fits = all(mine is None or limit is None or mine <= limit for mine, limit in pairs)
    return None if fits else _shown(src0, src1, dst)


@rule("PTO-S053", "expects src0 or src1 to have the whole valid region of dst")
def _part_whole(src0: TileType, src1: TileType, dst: TileType) -> str | None:
    fits = agree(src0.valid, dst.valid) or agree(src1.valid, dst.valid)
    return None if fits else _shown(src0, src1, dst)


_LOOSE_NOTE = (
    "on a5 PTOAS lets both sources be smaller than dst, the page wants one of them to be whole;"
    " elements that neither has are 0 in the CPU simulator and undefined on NPUs. Here tpartadd and"
    " tpartmul give 0, tpartmax the lowest and tpartmin the greatest finite value (PTO-Gym)"
)
_DOMAIN_NOTE = (
    "the IR manual takes the intersection as the domain and leaves the rest to the implementation"
)

PARTIAL = tile_family(
    "partial",
    "dst[i,j] = f(src0[i,j], src1[i,j]) where both are valid, else the one that is",
    operands=(read("src0"), read("src1"), write("dst")),
    rules=(*VECTOR_UNIT, same_dtype("src0", "src1", "dst"), _part_inside, _part_whole.on("a2a3")),
    cost="add",
)
for _name, _sign, _formula, _body in (
    ("tpartadd", "part +", "src0 + src1", partial(lanes.add)),
    ("tpartmul", "part *", "src0 * src1", partial(lanes.mul)),
    ("tpartmax", "part max", "max(src0, src1)", partial(lanes.maximum, outside="lowest")),
    ("tpartmin", "part min", "min(src0, src1)", partial(lanes.minimum, outside="greatest")),
):
    PARTIAL.row(
        _name,
        f"dst = {_formula} where both are valid, else the source that is valid",
        body=_body,
        traits=Traits(operator=_sign),
        cpu=_CPU,
        a2a3=_A2A3,
        a5=_A5.replace(" i64 u64", "") if _name == "tpartmul" else _A5,
        notes=(_LOOSE_NOTE, _DOMAIN_NOTE),
    )


@rule("PTO-T050", "expects 32-bit indices for 32-bit values")
def _wide_index(dst: TileType, dstIdx: TileType) -> str | None:
    fits = dst.itemsize <= dstIdx.itemsize
    return None if fits else f"values are {dst.dtype.name}, indices {dstIdx.dtype.name}"


_VALUES, _INDICES = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x64xi32>"
PARTIAL_INDICES = tile_family(
    "partial search",
    "the better of two (value, index) pairs, as partial does it",
    operands=(*reads("src0 src1 src0Idx src1Idx"), write("dst"), write("dstIdx")),
    rules=(
        *VECTOR_UNIT,
        same_dtype("src0", "src1", "dst"),
        same_dtype("src0Idx", "src1Idx", "dstIdx"),
        dtype_in("dstIdx", "i16 u16 i32 u32"),
        _wide_index.on("a2a3"),
        same_valid("src0Idx", "src0"),
        same_valid("src1Idx", "src1"),
        same_valid("dstIdx", "dst"),
        results_apart("dst", "dstIdx"),
        _part_inside,
        _part_whole.on(NPU),
        library_types("dst", "f16 f32").on(NPU),
    ),
    cost="search",
)
for _name, _test, _fn in (
    ("tpartargmax", "src0 > src1", lanes.greater),
    ("tpartargmin", "src0 < src1", lanes.less),
):
    PARTIAL_INDICES.row(
        _name,
        f"(dst, dstIdx) = (src0, src0Idx) if {_test} else (src1, src1Idx); where one source is"
        " valid, its pair",
        body=partial_search(_fn),
        cxx=f"{_name.upper()} dst src0 src1 dstIdx src0Idx src1Idx",
        a2a3=_A2A3,
        a5="i8 u8 i16 u16 i32 u32 f16 bf16 f32",
        example=f"pto.{_name} ins(%src0, %src1, %src0Idx, %src1Idx :"
        f" {_VALUES}, {_VALUES}, {_INDICES}, {_INDICES})"
        f" outs(%dst, %dstIdx : {_VALUES}, {_INDICES})",
        cite=(
            f"pto-isa docs/isa/{_name.upper()}.md",
            "pto-isa include/pto/npu/a2a3/TPartArgOp.hpp",
        ),
        notes=(
            "of equal values the pair of src1 is taken",
            "the headers take f16 and f32 values with 16- or 32-bit indices, PTOAS integers too but"
            " 32-bit indices only; we take both",
        ),
    )
