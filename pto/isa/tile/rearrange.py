"""Tile instructions that pad, reinterpret and reorder what tiles hold. Windows: `extract.py`."""

from __future__ import annotations

from dataclasses import replace

from pto.core.tile import TileType
from pto.isa.meaning.tile import rearrange
from pto.isa.row.instr import Attr, PipeBy, Result, index, read, reads, write
from pto.isa.row.traits import Fills, RegionRule, Traits
from pto.isa.rules.paths import item_size, joined, same_role, same_size, same_type
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    dims,
    dtype_in,
    in_layout,
    in_role,
    row_major,
    rule,
    rule_of,
    same_dtype,
    same_shape,
    same_valid,
    same_valid_rows,
)
from pto.isa.rules.scratch import like, work_tile
from pto.isa.rules.tile import NPU, VECTOR_UNIT, out_of_place, results_apart, same_form, tile_family

_COMMON = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"

# ---- padding


@rule("PTO-T067", "expects dst to have a pad value")
def _has_pad(dst: TileType) -> str | None:
    """On cpu a null pad counts as zero (pto-isa TLoad.hpp)."""
    return None if dst.pad.name != "null" else "dst has pad null"


@rule_of("PTO-S066", "expects {dst} to be at least as large as {src}")
def _holds(case: Case, dst: str, src: str) -> str | None:
    large, small = case.tile(dst), case.tile(src)
    if large is None or small is None:
        return None
    if large.rows >= small.rows and large.cols >= small.cols:
        return None
    return f"{src} is {dims(*small.shape)}, {dst} is {dims(*large.shape)}"


_AS_LARGE = replace(  # TFILLPAD asserts equal tiles; TFILLPAD_EXPAND takes a larger dst
    same_shape("src", "dst"),
    id="as-large",
    code=LIBRARY,
    sentence="expects src and dst to have one shape: tfillpad_expand fills a larger dst",
    severity="warning",
)


FILLPAD = tile_family(
    "fill padding",
    "dst = src inside the valid region of src, the pad value of dst elsewhere",
    operands=(read("src"), write("dst")),
    pipe=PipeBy(("dst",), ((("mat",), "$l1_fill"),), "V"),
    rules=(
        same_size,
        item_size,
        joined("vec->vec mat->mat").on(NPU),
        row_major("src", "dst").into("vec").on(NPU),
        in_layout("dst", "NZ").into("mat").on(NPU),
        _has_pad.on(NPU),
    ),
    cost="rearrange",
    traits=Traits(region=RegionRule.WHOLE, fenced_row=("a2a3",)),  # TFillPad.hpp, PadRightSingleRow
)
_EXTENT = "how far the fill goes: CPU and the page the whole of dst, a2a3 rows to dst's valid ones"

FILLPAD.row(
    "tfillpad",
    "dst[i,j] = src[i,j] where src is valid, the pad of dst elsewhere",
    body=rearrange.FILL_PAD,
    attrs=Attr("padValue", "pad_value", meaning="of dst in mat: what the rest becomes"),
    rules=(
        _holds("dst", "src"),
        same_type("src", "dst").into("mat").on(NPU),
        _AS_LARGE.into("vec").on(NPU),
        out_of_place("src", unless=same_form).on(NPU),
    ),
    notes=(_EXTENT, "a dst that is larger than src is the newer spelling of tfillpad_expand"),
    phases={"a2a3": "dst@vec: V[S]"},
    cxx="TFILLPAD dst src | TFILLPAD src+dst",
)
FILLPAD.row(
    "tfillpad_expand",
    "as tfillpad, into a dst that may be larger than src",
    body=rearrange.FILL_PAD,
    rules=(_holds("dst", "src"), out_of_place("src", unless=same_form).on(NPU)),
    notes=_EXTENT,
    cxx="TFILLPAD_EXPAND dst src | TFILLPAD<TFillPadMode=Expand> dst src",
)
FILLPAD.row(
    "tfillpad_inplace",
    "as tfillpad on shared storage: the valid data of src stays, the rest is padded",
    body=rearrange.FILL_PAD_IN_PLACE,
    rules=same_shape("src", "dst"),
    notes=_EXTENT,
    cxx="TFILLPAD_INPLACE dst src | TFILLPAD<TFillPadMode=InPlace> dst src",
    traits=Traits(partial="*"),
)

# ---- reinterpretation


@rule("PTO-S067", "expects src and result to have the same number of bytes")
def _same_bytes(src: TileType, result: TileType) -> str | None:
    a, b = (x.rows * x.cols * x.itemsize for x in (src, result))
    return None if a == b else f"src has {a}, result has {b}"


@rule("PTO-L065", "expects src and result to be both boxed or both plain")
def _same_boxing(src: TileType, result: TileType) -> str | None:
    fits = src.layout.is_boxed == result.layout.is_boxed
    return None if fits else f"src is {src.layout.name}, result is {result.layout.name}"


RESHAPE = tile_family(
    "reinterpret",
    "the same bytes under another tile type",
    operands=(read("src"),),
    results=(Result("result", "tile"),),
    text="$src {} : types -> results",
    pipe="S",
    subject="src",
    rules=(same_role("src", "result"), _same_bytes, _same_boxing),
    cost="free",
)
TRESHAPE = RESHAPE.row(
    "treshape",
    "result = the bytes of src under another shape, valid region and element type",
    body=rearrange.RESHAPE,
    notes=(
        "the manual writes ins/outs; the td and programs give a result that shares src's storage",
        "pipe: event.hpp and the td say S, the IR manual V",
        "only the CPU simulator requires float with float and integer with integer",
    ),
)

# ---- transposition and concatenation


@rule("PTO-S066", "expects dst to hold the valid region of src transposed")
def _holds_transposed(src: TileType, dst: TileType) -> str | None:
    wanted = (src.valid[1], src.valid[0])
    if all(w is None or w <= d for w, d in zip(wanted, dst.shape, strict=True)):
        return None
    return f"src is {dims(*src.valid)}, dst is {dims(*dst.shape)}"


@rule("PTO-S061", "expects the lines of src and dst to be whole 32-byte blocks")
def _whole_blocks(case: Case) -> str | None:
    for name, tile in case.tiles(("src", "dst")):
        size = _line(tile) * tile.itemsize
        if size % 32:
            return f"{name} has lines of {size} bytes"
    return None


_NARROW = 0xFFFF


@rule(LIBRARY, "expects positions of elements up to 2 bytes to fit 16 bits", severity="warning")
def _reachable(src: TileType, dst: TileType) -> str | None:
    """TTRANS of a5 scatters into dst where src is wider than high, else it gathers from src."""
    name, tile = ("dst", dst) if src.rows < src.cols else ("src", src)
    last = tile.rows * tile.cols - 1
    return f"{name} is {dims(*tile.shape)}" if src.itemsize < 4 and last > _NARROW else None


def _line(tile: TileType) -> int:
    return tile.cols if tile.layout.blayout.value == "row_major" else tile.rows


TRANSPOSE = tile_family(
    "transpose",
    "rows become columns",
    operands=(read("src"), work_tile(like("src")), write("dst")),
    rules=(
        same_dtype("src", "tmp", "dst"),
        item_size,
        in_role("src", "vec").on(NPU),
        row_major("src").on("a2a3"),
        row_major("src").as_library.on("a5"),
        row_major("dst").as_library.on(NPU),
        _reachable.on("a5"),
        _whole_blocks.on("a5"),
        out_of_place("src").on(NPU),
        _holds_transposed,
    ),
    cost="transpose",
    traits=Traits(region=RegionRule.SWAPPED, fills=Fills.SWAPPED),
)
TRANSPOSE.row(
    "ttrans",
    "dst[i,j] = src[j,i] over the valid region of src",
    body=rearrange.TRANSPOSE,
    a2a3=_COMMON,
    a5=f"{_COMMON} f8e4m3 f8e5m2 e8m0 hifloat8",
    notes=(
        "a5: of one byte TTRANS.md and PTOAS have i8 and u8; the header distinguishes only "
        "widths, and its tests transpose float8 types",
        "in the IR manual a5 transposes the complete shape; TTRANS.md and the header use src's "
        "valid"
        " region",
        "C++: between convolution tiles it is `ttrans_conv`",
    ),
    phases={"a2a3": "V[S]"},
)

CONCAT = tile_family(
    "concatenate",
    "the rows of one tile followed by those of another",
    operands=(read("src0"), read("src1"), write("dst")),
    rules=(*VECTOR_UNIT, same_dtype("src0", "src1", "dst")),
    cost="rearrange",
)


@rule("PTO-S066", "expects dst to have room for the valid columns of src0 and src1")
def _columns_fit(src0: TileType, src1: TileType, dst: TileType) -> str | None:
    """a2a3 and PTOAS require that dst is wide enough; a5 and CPU that its valid columns are the
    sum."""
    a, b = src0.valid[1], src1.valid[1]
    if a is None or b is None or a + b <= dst.cols:
        return None
    return f"{a} and {b} do not fit the {dst.cols} of dst"


def _in_its_row(src: TileType, dst: TileType, offset: int, _: tuple[int, int]) -> bool:
    """A part that has dst's rows already: a copy of it moves nothing to the next row."""
    return src.cols == dst.cols and 0 <= offset < dst.cols * dst.itemsize


CONCAT.row(
    "tconcat",
    "dst[i] = src0[i] followed by src1[i], row by row",
    body=rearrange.CONCAT,
    traits=Traits(fills=Fills.BESIDE),
    npu=_COMMON,
    rules=(
        same_valid_rows("src0", "src1", "dst"),
        _columns_fit,
        out_of_place("src0", "src1", unless=_in_its_row).on(NPU),
    ),
    phases={"a2a3": "src0!32: V(src0->dst) V>S MTE2>S S(src1->dst)"},
)
CONCAT.row(
    "tconcatidx",
    "dst[i] = n0 columns of src0[i], then n1 of src1[i]; n_k = srcKIdx[i,0] / bytes of an index;"
    " dstIdx[i,0] = src0Idx[i,0] + src1Idx[i,0]",
    body=rearrange.CONCAT_COUNTED,
    operands=(
        *reads("src0 src1"),
        index("src0Idx"),
        index("src1Idx"),
        write("dst"),
        write("dstIdx?"),
    ),
    attrs=Attr("candidates", "any", meaning="for a compiler: it does not change values"),
    npu=_COMMON,
    rules=(
        same_dtype("src0Idx", "src1Idx"),
        dtype_in("src0Idx", "i8 u8 i16 u16 i32 u32"),
        same_valid_rows("src0", "src1", "src0Idx", "src1Idx", "dst"),
        results_apart("dst", "dstIdx"),
    ),
    notes=(
        "counts: the IR manual reads element counts clamped to the valid columns, all C++ code"
        " divides the stored value by the size of an index element; we do as the code does"
    ),
    phases={"a2a3": "MTE2>S S(src0Idx,src1Idx->dstIdx) S>V V[S](src0,src1->dst)"},
    cite="PTOAS docs/PTO_IR_manual.md, pto.tconcatidx",
    cxx="TCONCAT dst src0 src1 src0Idx src1Idx | TCONCAT dst src0 src1 dstIdx src0Idx src1Idx",
    traits=Traits(partial="*"),
)

# ---- interleaving


@rule_of("PTO-S064", "expects {name} to have an even number of valid columns")
def _even_columns(case: Case, name: str) -> str | None:
    tile = case.tile(name)
    cols = None if tile is None else tile.valid[1]
    return None if cols is None or cols % 2 == 0 else f"it has {cols}"


_ALIKE = same_valid("src0", "src1", "dst1", "dst0")


@rule("PTO-S066", "expects dst0 and dst1 to hold one half of the elements each")
def _halves(case: Case) -> str | None:
    """One source: each destination takes every second element. Two: all tiles are alike."""
    src, dst = case.tile("src0"), case.tile("dst0")
    if case.op.operand("src1") is not None:
        return _ALIKE.test(case)
    columns, half = (None if x is None else x.valid[1] for x in (src, dst))
    if columns is None or half is None or columns == 2 * half:
        return None
    return f"src0 has {columns} columns, dst0 {half}"


INTERLEAVE = tile_family(
    "interleave",
    "merge two streams of elements, or take them apart",
    profiles="cpu a5",
    subject="dst0",
    rules=(*VECTOR_UNIT, same_dtype(), same_valid("dst1", "dst0"), results_apart("dst0", "dst1")),
    cost="rearrange",
)
_CPP_ONLY = "PTOAS has no such operation; C++ takes (dst1, dst0, src1, src0)"

INTERLEAVE.row(
    "tinterleave",
    "each row as the stream src0[0] src1[0] src0[1] ...: dst0 its first half, dst1 its second",
    body=rearrange.INTERLEAVE,
    operands=(read("src0"), read("src1"), write("dst0"), write("dst1")),
    a5=_COMMON,
    rules=(same_valid("src0", "src1", "dst0"), _even_columns("dst0")),
    notes=_CPP_ONLY,
    cxx="TINTERLEAVE dst1 dst0 src1 src0",
)
INTERLEAVE.row(
    "tdeinterleave",
    "each row as the stream src0, then src1: dst0 its even elements, dst1 its odd ones",
    body=rearrange.DEINTERLEAVE,
    operands=(read("src0"), read("src1?"), write("dst0"), write("dst1")),
    a5=_COMMON,
    rules=(_halves, _even_columns("src0")),
    notes=(
        _CPP_ONLY,
        "one source: on the page all valid shapes are equal and dst is half; the code checks half",
    ),
    cxx="TDEINTERLEAVE dst1 dst0 src1 src0 | TDEINTERLEAVE dst1 dst0 src0",
)
