"""Tile instructions that pick and place elements of tiles by index, comparison or pattern."""

from __future__ import annotations

from dataclasses import replace

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.tile import TileType
from pto.isa.meaning.tile import gather as meaning
from pto.isa.meaning.tile.gather import form, parts
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, index, read, write
from pto.isa.row.traits import Fills, RegionRule, Traits
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    Rule,
    all_in,
    attr_in,
    dims,
    dtype_in,
    row_major,
    rule,
    rule_of,
    same_dtype,
    same_valid,
    scalar_matches,
)
from pto.isa.rules.scratch import like, when, work_tile
from pto.isa.rules.tile import NPU, VECTOR_UNIT, out_of_place, results_apart, tile_family

_PLAIN = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"
_INDEX = "i32 u32"

# ---- tgather: by index, by comparison, by pattern

_GATHER_TYPES = {
    ("index", "a2a3"): "i16 u16 i32 u32 f16 bf16 f32",
    ("index", "a5"): "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f8e4m3 f8e5m2 hifloat8",
    ("compare", "a2a3"): "f16 f32",
    ("compare", "a5"): "i8 u8 i16 u16 i32 u32 f16 f32",
    ("mask", "a2a3"): "i16 u16 i32 u32 f16 bf16 f32",
    ("mask", "a5"): "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f8e4m3 f8e5m2 hifloat8",
}


@rule("PTO-S055", "expects indices with tmp, or kValue with cdst and tmp, or maskPattern")
def _gather_form(case: Case) -> str | None:
    present = parts(case)
    if form(case) and not (present == ["indices"] and case.profile.name == "a2a3"):
        return None
    return f"it has {', '.join(present) or 'none of them'}"


def _by_index(case: Case) -> bool:
    return bool(case.type("indices"))


def _only(kind: str, rule: Rule) -> Rule:
    """The rule for this form of tgather; other forms have other regions."""
    limited = rule.only_if(lambda case: form(case) == kind)
    sentence = f"{rule.sentence} in the {kind} form"
    return replace(
        limited, id=f"{kind}-{rule.id}", sentence=sentence, alike=(), apart=(), help=None
    )


@rule("PTO-T053", "expects an element type that this form supports")
def _gather_type(case: Case) -> str | None:
    elem, kind = case.elem("src"), form(case)
    words = _GATHER_TYPES.get((kind, case.profile.name))
    if elem is None or words is None or set(elem.names) & set(words.split()):
        return None
    if kind == "compare" and "i32" in elem.names and case.word("cmpMode") == "eq":
        return None
    return f"src is {elem.name}, the {kind} form takes {words}"


@rule("PTO-T050", "expects an index type")
def _type(case: Case, src: t.Scalar, indices: t.Scalar) -> str | None:
    short = case.profile.name == "a5" and (src.itemsize or 8) < 8
    words = "i16 u16 i32 u32" if short else _INDEX
    return None if set(indices.names) & set(words.split()) else f"it is {indices.name}"


@rule("PTO-T020", "expects elements of one width")
def _width(src: TileType, dst: TileType) -> str | None:
    fits = src.itemsize == dst.itemsize
    return None if fits else f"src is {src.dtype.name}, dst is {dst.dtype.name}"


@rule("PTO-S058", "expects the valid region of dst to be that of the gathered elements")
def _picked(case: Case, src: TileType, dst: TileType) -> str | None:
    pattern = case.word("maskPattern") or ""
    every = {"P1111": 1, "P0101": 2, "P1010": 2}.get(pattern, 4)
    times = (every, 1) if case.word("axis") == "col" else (1, every)
    sizes = list(zip(src.valid, dst.valid, times, strict=True))
    if all(a is None or b is None or a == b * n for a, b, n in sizes):
        return None
    wanted = dims(*(None if a is None else a // n for a, _, n in sizes))
    return f"{pattern} of {dims(*src.valid)} in src is {wanted}, dst holds {dims(*dst.valid)}"


@rule_of("PTO-S059", "expects every column of {name} to be valid")
def _dense(case: Case, name: str) -> str | None:
    tile = case.tile(name)
    if tile is None or tile.valid[1] in (None, tile.cols) or tile.valid[0] == 1:
        return None  # a single row is contiguous
    return f"{tile.valid[1]} of {tile.cols} columns are valid"


_AXIS = Attr(
    "axis", "str", ("row", "col"), default="row", meaning="of the mask form: along rows or columns"
)
GATHER = tile_family(
    "gather",
    "dst = elements of src that indices, a comparison or a pattern pick",
    operands=(
        read("src"),
        write("dst"),
        write("cdst?"),
        index("indices?"),
        work_tile(when(_by_index, like("indices")), "tmp?"),
        read("kValue?", "scalar"),
    ),
    attrs=(
        Attr("maskPattern", "mask_pattern", meaning="read right to left: P0001 is j % 4 == 0"),
        _AXIS,
        Attr("cmpMode", "cmp", default="eq", meaning="eq or gt"),
        Attr("offset", "i32", default=0, meaning="added to the indices of the compare form"),
    ),
    text="ins( $src <? , $indices > <? , $kValue > <? , $tmp >"
    " <? , { maskPattern = @maskPattern } > : types <? , @axis > ) outs( $outs ) {}",
    subject="src",
    cost="gather",
)
GATHER.row(
    "tgather",
    "index: dst[i,j] = flat(src)[indices[i,j]]; compare: dst row i = the flat indices (+ offset) of"
    " the src[i,j] cmp kValue, cdst[i] = their number; mask: dst row i = the columns the pattern"
    " picks",
    body=meaning.GATHER,
    a2a3=_GATHER_TYPES["mask", "a2a3"],
    a5=_GATHER_TYPES["mask", "a5"],
    # compare (TGather.hpp): the scalar unit fills part of tmp and waits for nothing before; the
    # counts of matches are its stores too
    phases={"a2a3": "+cdst: S(kValue->tmp) S>V V[S](src,tmp->tmp,dst) S(->cdst)"},
    rules=(
        *VECTOR_UNIT,
        _gather_form,
        _gather_type,
        _only("index", same_dtype("src", "dst")),
        _only("index", _type),
        _only("index", _dense("dst").on(NPU)),
        _only("index", out_of_place("src").on(NPU)),
        _only("index", _dense("indices").on(NPU)),
        _only("index", same_dtype("tmp", "indices").on("a2a3")),
        _only("index", same_valid("tmp", "indices").on("a2a3")),
        _only("compare", dtype_in("dst", _INDEX)),
        _only("compare", same_dtype("cdst", "dst")),
        results_apart("dst", "cdst"),
        _only("compare", scalar_matches("kValue", "src")),
        _only("compare", attr_in("cmpMode", "eq", "gt")),
        _only("mask", _width),
        _only("mask", _dense("dst").on(NPU)),
        _only("mask", _picked.on(NPU)).compiled,
    ),
    example="pto.tgather ins(%src, %indices, %tmp : !pto.tile_buf<vec, 1x64xf32>,"
    " !pto.tile_buf<vec, 1x64xi32>, !pto.tile_buf<vec, 1x64xi32>)"
    " outs(%dst : !pto.tile_buf<vec, 1x64xf32>)",
    cite=("pto-isa docs/isa/TGATHER.md", "pto-isa include/pto/npu/a2a3/TGather.hpp"),
    notes=(
        "an index is an element of the tile counted in rows of its physical width; out of range it"
        " reads 0 in the CPU simulator and is undefined on NPUs, here an error",
        "compare: both NPU headers and their test data count elements of the whole tile, as the"
        " index form does; the record reads as if columns were meant",
        "mask: where dst is not as wide as what is picked of a row, rows are packed one after the"
        " other; cdst is filled in storage order",
        "the page writes the index form without tmp, PTOAS wants it; we want it on a2a3, which"
        " works in it",
        "in C++ kValue is a tile with one threshold per row; the IR has one scalar",
        "GatherAxis (pick rows) exists in C++ only",
        "the scratch size of the compare form counts tmp itself on the page; we do not check it",
    ),
    cxx="TGATHER dst src | TGATHER dst src indices tmp"
    " | TGATHER dst src kValue:vec cdst tmp offset",
    traits=Traits(region=RegionRule.GATHERED, partial="cdst", fills=Fills.PICKED),
)

# ---- tgatherb, tscatter


def _blocks(case: Case) -> tuple[int, int] | None:
    """(whole blocks of a row of dst, bytes left over)."""
    dst = case.tile("dst")
    cols = None if dst is None else dst.valid[1]
    return None if dst is None or cols is None else divmod(cols * dst.itemsize, BLOCK_BYTE_SIZE)


@rule("PTO-S056", "expects a valid row of dst to be whole blocks of 32 bytes")
def _block_rows(case: Case) -> str | None:
    blocks = _blocks(case)
    return None if blocks is None or not blocks[1] else f"{blocks[1]} bytes are left over"


@rule("PTO-S058", "expects an offset for each block of 32 bytes")
def _block_offsets(case: Case, offsets: TileType) -> str | None:
    blocks = _blocks(case)
    cols = offsets.valid[1]
    if blocks is None or cols is None or cols >= blocks[0]:
        return None
    return f"a row of dst has {blocks[0]} blocks, offsets has {cols} valid columns"


@rule(LIBRARY, "expects a valid row of dst to have a multiple of 256 bytes", severity="warning")
def _repeat_rows(case: Case) -> str | None:
    """a2a3/TGatherB.hpp, GatherBlockTail: the rest of a row is 8 blocks, without a mask."""
    blocks = _blocks(case)
    return None if blocks is None or blocks[0] % 8 == 0 else f"it has {blocks[0] * BLOCK_BYTE_SIZE}"


tile_family(
    "block gather",
    "32-byte blocks by byte offset",
    operands=(read("src"), index("offsets"), write("dst")),
    rules=(all_in("vec").on(NPU), row_major("dst").on(NPU)),
    cost="gather",
).row(
    "tgatherb",
    "block b of dst row i = the 32 bytes of src at byte offsets[i,b]",
    body=meaning.GATHER_BLOCKS,
    npu=_PLAIN,
    rules=(dtype_in("offsets", _INDEX), _block_rows, _block_offsets, _repeat_rows.on("a2a3")),
    example="pto.tgatherb ins(%src, %offsets : !pto.tile_buf<vec, 16x64xf32>,"
    " !pto.tile_buf<vec, 16x8xui32>) outs(%dst : !pto.tile_buf<vec, 16x64xf32>)",
    cite=("pto-isa docs/isa/TGATHERB.md", "pto-isa include/pto/npu/a2a3/TGatherB.hpp"),
    notes=(
        "page and IR manual give one offset per element; the code copies 32 bytes per offset, and"
        " PTOAS's sample has one per block",
        "an offset beyond src leaves the block as it was in the CPU simulator; on NPUs it is"
        " undefined, here an error",
    ),
)


@rule("PTO-T050", "expects 16-bit indexes for 8- and 16-bit elements, 32-bit ones for wider")
def _scatter_index(src: t.Scalar, indexes: t.Scalar) -> str | None:
    fits = set(indexes.names) & set(("i16 u16" if (src.itemsize or 8) < 4 else _INDEX).split())
    return None if fits else f"indexes is {indexes.name}, src is {src.name}"


@rule("PTO-S055", "expects either indexes or maskPattern")
def _scatter_form(case: Case) -> str | None:
    ways = bool(case.op.group("indexes")), case.word("maskPattern") is not None
    if ways[0] is not ways[1]:
        axis = ways[0] and "axis" in case.op.attrs
        return "axis is given with indexes" if axis else None
    return "both are given" if ways[0] else "neither is given"


@rule("PTO-S058", "expects dst to be larger than src by the factor of the pattern")
def _scatter_size(case: Case, maskPattern: str, src: TileType, dst: TileType) -> str | None:
    times = {1: 4, 2: 2, 4: 1}[maskPattern.count("1")]
    factors = (times, 1) if case.word("axis") == "col" else (1, times)
    for have, wanted, factor in zip(dst.valid, src.valid, factors, strict=True):
        if have is not None and wanted is not None and have != wanted * factor:
            return f"src is {dims(*src.valid)}, dst {dims(*dst.valid)}, the pattern spreads {times}"
    return None


tile_family(
    "scatter",
    "elements to places that indexes name",
    operands=(read("src"), index("indexes?"), write("dst")),
    attrs=(
        Attr("maskPattern", "mask_pattern", meaning="read right to left: P0001 is j % 4 == 0"),
        _AXIS,
    ),
    text="ins( $src <? , $indexes > <? , { maskPattern = @maskPattern } > : types"
    " <? , @axis > ) outs( $outs ) {}",
    rules=VECTOR_UNIT,
    cost="gather",
).row(
    "tscatter",
    "flat(dst)[indexes[i,j]] = src[i,j] over indexes' valid region; the last writer wins; mask: the"
    " places that the pattern picks get src, those between zeros",
    body=meaning.SCATTER,
    generic="src dst indexes?",
    phases={"a2a3": "V(->dst) V>S S(src,indexes->dst) S>V"},
    a2a3=_PLAIN,
    a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    rules=(
        same_dtype("src", "dst"),
        out_of_place("src", "indexes").on(NPU),  # dst is filled with zeros first
        _scatter_form,
        _scatter_size,
        dtype_in("indexes", "i8 u8 i16 u16 i32 u32 i64 u64").on("cpu"),
        _scatter_index.on(NPU),
    ),
    example="pto.tscatter ins(%src, %indexes : !pto.tile_buf<vec, 16x64xf32>,"
    " !pto.tile_buf<vec, 16x64xi32>) outs(%dst : !pto.tile_buf<vec, 16x64xf32>)",
    cite=("pto-isa docs/isa/TSCATTER.md", "pto-isa include/pto/npu/a2a3/TScatter.hpp"),
    notes=(
        "page and IR manual use the index as a row number; CPU simulator and a2a3 as an element of"
        " the whole tile",
        "a2a3 and a5 write zeros to the whole of dst first; the CPU simulator keeps it",
        "an index outside dst is an error here; nothing checks it there",
        "on a2a3 PTOAS gives it the scalar pipe, on a5 the vector pipe",
    ),
    cxx="TSCATTER dst src indexes | TSCATTER<!maskPattern> dst src",
    traits=Traits(partial="*"),
)
