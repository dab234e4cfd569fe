"""Tile instructions that copy a window: TEXTRACT cuts one out, TINSERT pastes one in."""

from __future__ import annotations

from pto.core.tile import TileType
from pto.isa.meaning.tile import extract
from pto.isa.row.instr import Attr, PipeBy, read, reads, update, write
from pto.isa.row.traits import RegionRule, Traits
from pto.isa.rules.cube import table_at, unchanged_for_both
from pto.isa.rules.paths import (
    ACC_TO_VEC,
    CUBE_A2A3,
    CUBE_A5,
    FRACTAL_512,
    PAIRS,
    RELU,
    SCALED_A2A3,
    SCALED_A5,
    WINDOW_TYPES,
    acc_options,
    acc_to_vec,
    acc_types,
    carried,
    joined,
    mode_agrees,
    pairs_kept,
    pairs_turned,
    quant_forms,
)
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    dims,
    dtype_in,
    in_layout,
    in_role,
    rule,
    rule_of,
    same_dtype,
)
from pto.isa.rules.tile import NPU, library_types, results_apart, tile_family
from pto.isa.rules.windows import (
    starts_at_boxes,
    turned_squares,
    whole_fractals,
    window_aligned,
    window_alone,
    window_inside,
)

_AT = reads("indexRow indexCol", "index")
_MODES = ("ND2NZ", "NZ2ND", "ND", "ND2NZ2")

WINDOW = tile_family(
    "window",
    "copy a window of one tile to or from another; the types define the change of layout",
    rules=(
        same_dtype("src", "dst").out_of("mat vec").on(NPU),
        acc_options,
        acc_to_vec,
        quant_forms,
        mode_agrees,
        pairs_kept,
        pairs_turned,
        table_at("fp").on(NPU),
        unchanged_for_both.out_of("acc").on("a5"),
    ),
    cost="move",
    traits=Traits(region=RegionRule.WINDOW),
)
SCALED_WINDOW = tile_family(
    "window with scales",
    "a window of an accumulator, scaled column by column",
    attrs=(RELU, ACC_TO_VEC),
    pipe="FIX",
    subject="src",
    rules=(
        joined("acc->mat").on("a2a3"),
        joined("acc->mat acc->vec").on("a5"),
        in_role("fp", "scaling").on(NPU),
        in_layout("src", "NZ").on(NPU).current,
        in_layout("dst", "NZ").into("mat").on(NPU).current,
        FRACTAL_512.on("a2a3"),
        acc_types("", SCALED_A2A3).on("a2a3"),
        acc_types("", SCALED_A5).on("a5"),
        acc_to_vec,
        quant_forms,
        table_at("fp").on(NPU),
    ),
    cost="move",
    traits=Traits(region=RegionRule.WINDOW),
)


@rule("PTO-L064", "expects src and dst of vec->vec to have one layout")
def _one_layout(case: Case, src: TileType, dst: TileType) -> str | None:
    """Without a mode or a second window the vector unit copies without a change of layout."""
    free = "mode" in case.op.attrs or case.op.operand("dst1") is not None
    fits = free or src.layout.name == dst.layout.name
    return None if fits else f"src is {src.layout.name}, dst is {dst.layout.name}"


_WINDOWS = "i8 hifloat8 f8e4m3 f8e5m2 e8m0 f16 bf16 f32 float4_e2m1x2 float4_e1m2x2"


# TEXTRACT asserts these for windows inside UB; PTOAS does not check them.
@rule(
    LIBRARY,
    "expects dst of vec->vec to have no more rows and columns than src",
    severity="warning",
)
def _no_larger(src: TileType, dst: TileType) -> str | None:
    fits = dst.rows <= src.rows and dst.cols <= src.cols
    return None if fits else f"src is {dims(*src.shape)}, dst is {dims(*dst.shape)}"


@rule(
    LIBRARY,
    "expects src of vec->vec to have no more rows and columns than dst",
    severity="warning",
)
def _no_larger_source(src: TileType, dst: TileType) -> str | None:
    fits = src.rows <= dst.rows and src.cols <= dst.cols
    return None if fits else f"src is {dims(*src.shape)}, dst is {dims(*dst.shape)}"


@rule_of(
    LIBRARY, "expects rows of vec->vec in whole words of 2", id="words-{name}", severity="warning"
)
def _whole_words(case: Case, name: str) -> str | None:
    tile = case.tile(name)
    cols = None if tile is None else tile.valid[1]
    if tile is None or cols is None or tile.valid == (1, 1) or cols * tile.itemsize % 2 == 0:
        return None
    return f"{cols} columns of {tile.itemsize} byte are valid"


@rule("PTO-T064", "expects a second window to have indexRow1, indexCol1 and dst1")
def _two_windows(case: Case) -> str | None:
    present = [n for n in ("indexRow1", "indexCol1", "dst1") if case.op.operand(n) is not None]
    return None if len(present) in (0, 3) else f"only {' and '.join(present)} given"


_EXTRACTED_A5 = f"{CUBE_A5} e8m0"
_SCALES = "mat->scaling mat->scale_left mat->scale_right"

TEXTRACT = WINDOW.row(
    "textract",
    "dst[i,j] = src[indexRow+i, indexCol+j] over dst's valid region; dst1 the same at its indices",
    body=extract.EXTRACT,
    phases=dict.fromkeys(("a2a3", "a5"), "src@vec dst@vec: V[S]"),
    operands=(
        read("src"),
        *_AT,
        write("dst"),
        *reads("indexRow1? indexCol1?", "index"),
        write("dst1?"),
        read("preQuantScalar?", "i64"),
        read("fp?"),
    ),
    generic="src indexRow indexCol dst fp? preQuantScalar?",
    attrs=(
        Attr("mode", "str", values=_MODES, meaning="the change of layout; default: from the types"),
        RELU,
        PAIRS,
        ACC_TO_VEC,
    ),
    text="ins( $src , $indexRow , $indexCol <? , $indexRow1 , $indexCol1 > <? , $preQuantScalar >"
    " : types <? fp $fp : types > ) outs( $dst <? , $dst1 > : types ) {}",
    pipe=PipeBy(  # pto-isa event.hpp
        ("src", "dst"),
        (
            (("vec", "vec"), "V"),
            (("vec", "mat"), "FIX"),
            (("vec", "*"), "MTE1"),
            (("mat", "*"), "MTE1"),
            (("acc", "*"), "FIX"),
        ),
        "V",
    ),
    rules=(
        joined("mat->left mat->right vec->vec acc->mat", "vec->left vec->right").on("a2a3"),
        joined(
            f"mat->left mat->right {_SCALES} vec->mat vec->vec acc->mat acc->vec",
            "vec->left vec->right",
        ).on("a5"),
        window_inside("dst", "src"),
        window_inside("dst1", "src", at=("indexRow1", "indexCol1")),
        results_apart("dst", "dst1"),
        _two_windows,
        window_aligned("src").on(NPU),
        starts_at_boxes.on("a5"),
        turned_squares.on(NPU),
        whole_fractals.on(NPU),
        carried({"left": CUBE_A2A3, "right": CUBE_A2A3}).on("a2a3"),
        carried(dict.fromkeys(("left", "right", "scaling"), _EXTRACTED_A5)).on("a5"),
        *WINDOW_TYPES,
        _one_layout.into("vec").out_of("vec").on(NPU),
        _no_larger.into("vec").out_of("vec").on(NPU),
        _whole_words("dst").into("vec").out_of("vec").on("a2a3"),
        library_types("dst", _WINDOWS).out_of("mat vec").on("a5"),
        in_role("fp", "scaling").on(NPU),
        dtype_in("src", f"{_EXTRACTED_A5} u8 i32").into("vec").out_of("vec").on("a5"),
        in_layout("src", "ND", "DN").into("vec").out_of("vec").on("a5").current,
        in_layout("dst", "NZ", "ZZ").into("left").on(NPU).current,
        in_layout("src", "NZ", "ZN", "ND").into("left").out_of("mat").on("a5").current,
        in_layout("dst", "ZN").into("right").on(NPU).current,
        in_layout("src", "NZ", "ZN").into("right").out_of("mat").on("a5").current,
        in_layout("dst", "ND").into("vec").out_of("acc").on("a5").current,
        in_layout("dst", "NZ").into("mat").out_of("acc").on(NPU).current,
    ),
    notes=(
        "modes: the PTO manual has them as an argument, headers and PTOAS derive the change from "
        "the layouts; a written mode must agree with them",
        "vec->left and vec->right exist with a mode only: the manual has them, no header does",
        "a written mode packs the valid elements of the boxed side without gaps, as in the "
        "manual; without one they are placed by the tile's layout, as tmatmul reads them",
        "PTOAS takes any offset for mat->left and mat->right on a5; the header cuts it to whole"
        " boxes, so a row inside a box is a warning, and a run refuses it",
        "left: PTOAS reads ZZ and NZ as the one its target has, ZZ on a2a3 and NZ on a5",
        "pipe: the IR manual has V only; event.hpp and the td choose it by the roles",
    ),
    cite=("pto-isa docs/isa/TEXTRACT.md", "PTO manual, Layout Reference: Compact Mode in TEXTRACT"),
    cxx="TEXTRACT dst src indexRow=0 indexCol=0 | "
    "TEXTRACT dst src preQuantScalar indexRow indexCol | "
    "TEXTRACT dst dst1 src indexRow=0 indexCol=0 indexRow1=0 indexCol1=0",
)
SCALED_WINDOW.row(
    "textract_fp",
    "dst[i,j] = quant(src[indexRow+i, indexCol+j], fp[0, indexCol+j]) over dst's valid region",
    body=extract.EXTRACT_SCALED,
    operands=(read("src"), read("fp"), *_AT, write("dst")),
    types="i32 f32",
    rules=(window_inside("dst", "src"), window_aligned("src").on(NPU)),
    cxx="TEXTRACT_FP dst src fp indexRow indexCol | TEXTRACT dst src fp:scaling indexRow indexCol",
)

_INSERTED_A5 = f"{_EXTRACTED_A5} i32"

WINDOW.row(
    "tinsert",
    "dst[indexRow+i, indexCol+j] = src[i,j] over src's valid region; the rest of dst stays",
    body=extract.INSERT,
    phases={"a5": "src@vec dst@vec: V[S]"},
    operands=(read("src"), *_AT, update("dst"), read("fp?"), read("preQuantScalar?", "i64")),
    attrs=(
        Attr(
            "mode",
            "str",
            values=(*_MODES, "SPLIT2", "SPLIT4"),
            meaning="the change of layout; default: from the types; SPLITn: n bursts, same result",
        ),
        Attr("tinsertMode", "tinsert_mode", meaning="how many bursts; the result is the same"),
        RELU,
        ACC_TO_VEC,
    ),
    text="ins( $src , $indexRow , $indexCol"
    " <1 : types <? fp $fp : types > <? pre_quant $preQuantScalar : types >"
    " | , $preQuantScalar : types | : types > ) outs( $dst : types ) {}",
    pipe=PipeBy(("src", "dst"), ((("vec", "vec"), "V"), (("vec", "mat"), "MTE3")), "FIX"),
    rules=(
        joined("acc->mat vec->vec", "left->vec right->vec").on("a2a3"),
        joined("acc->mat acc->vec vec->mat vec->vec", "left->vec right->vec").on("a5"),
        window_inside("src", "dst", valid=True),
        window_aligned("dst").on(NPU),
        window_alone.on(NPU),
        *WINDOW_TYPES,
        dtype_in("src", _INSERTED_A5).out_of("vec").on("a5"),
        _one_layout.into("vec").out_of("vec").on(NPU),
        in_role("fp", "scaling").on(NPU),
        in_layout("src", "NZ").into("mat").out_of("acc").on(NPU).current,
        in_layout("dst", "NZ").into("mat").out_of("acc").on(NPU).current,
        in_layout("src", "ND", "NZ").into("mat").out_of("vec").on("a5"),
        in_layout("dst", "NZ", "ZN").into("mat").out_of("vec").on("a5"),
        _no_larger_source.into("vec").out_of("vec").on("a2a3"),
        _whole_words("src").into("vec").out_of("vec").on("a2a3"),
        FRACTAL_512.on("a2a3"),
    ),
    notes=(
        "TINSERT.md lists acc->mat only for a2a3; the header also has vec->vec of ND tiles",
        "left->vec and right->vec exist with a mode only: the manual has them, no header does",
        "acc->vec on a5 is in the header and not in PTOAS; f32 stays f32 in mat on a5 only",
    ),
    cite=("pto-isa docs/isa/TINSERT.md", "PTO manual, Layouts: Layout Conversion Patterns"),
    cxx="TINSERT dst src indexRow=0 indexCol=0 | TINSERT dst src preQuantScalar indexRow indexCol",
)
SCALED_WINDOW.row(
    "tinsert_fp",
    "dst[indexRow+i, indexCol+j] = quant(src[i,j], fp[0,j]) over src's valid region",
    body=extract.INSERT_SCALED,
    operands=(read("src"), read("fp"), *_AT, update("dst")),
    types="i32 f32",
    rules=(
        window_inside("src", "dst", valid=True),
        window_aligned("dst").on(NPU),
        window_alone.on(NPU),
    ),
    cxx="TINSERT_FP dst src fp indexRow indexCol | TINSERT dst src fp:scaling indexRow indexCol",
)
