"""Tile instructions that move whole tiles: from and to global memory, tile to tile, prefetch."""

from __future__ import annotations

from dataclasses import replace

from pto.core.tile import TileType
from pto.isa.meaning.tile import move
from pto.isa.row.instr import INS_OUTS, Attr, PipeBy, Result, read, write
from pto.isa.row.traits import Fills, RegionRule, Traits
from pto.isa.rules.cube import pairs_of_groups, table_at, table_row, unchanged_for_both
from pto.isa.rules.global_memory import (
    added_types,
    atomic_store,
    boxes_of_two_axes,
    enough,
    flat,
    gm_layout,
    part_of_view,
    runs_follow,
    same_count,
    same_count_scaled,
)
from pto.isa.rules.microscaling import regrouped
from pto.isa.rules.paths import (
    ACC_TO_VEC,
    CUBE_A2A3,
    CUBE_A5,
    FRACTAL_512,
    PAIRS,
    PLAIN_A2A3,
    PLAIN_A5,
    RELU,
    SCALED_A2A3,
    STORED_A5,
    acc_options,
    acc_to_vec,
    acc_types,
    carried,
    joined,
    keeps_layout,
    one_shape,
    pairs_kept,
    pairs_turned,
    quant_forms,
    regroups,
    same_size,
)
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    dims,
    dtype_in,
    in_layout,
    in_role,
    rule,
    same_shape,
)
from pto.isa.rules.tile import (
    NPU,
    apart,
    library_types,
    out_of_place,
    row_by_row,
    tile_family,
)
from pto.isa.rules.transfers import (
    boxes_in_memory,
    bursts,
    no_wide_boxes,
    rows_apart,
    whole_blocks,
    whole_view,
)

_STANDARD = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32"
_ATOMIC = Attr(
    "atomicType", "atomic_type", default="atomic_none", meaning="combine with what is in memory"
)
_GM_LAYOUT = Attr("layout", "layout", meaning="layout of the global side, if no view defines it")


LOAD = tile_family(
    "load",
    "dst = global memory, over the valid region of dst",
    operands=(read("src", "view"), write("dst")),
    pipe="MTE2",
    rules=(in_role("dst", "vec", "mat").on(NPU), same_size, part_of_view("src")),
    cost="move",
    traits=Traits(region=RegionRule.VIEW, sized_by_tile=True),
)
STORE = tile_family(
    "store",
    "global memory = src, over the valid region of src",
    pipe=PipeBy(("src",), ((("acc",), "FIX"),), "MTE3"),
    subject="src",
    cost="move",
    traits=Traits(sized_by_tile=True),
)
MOVE = tile_family(
    "move",
    "dst[i,j] = src[i,j]; the two tile types define the change of layout",
    # pto-isa event.hpp
    pipe=PipeBy(
        ("src", "dst"),
        (
            (("vec", "vec"), "V"),
            (("vec", "mat"), "FIX"),
            (("mat", "scaling"), "FIX"),
            (("mat", "*"), "MTE1"),
            (("acc", "*"), "FIX"),
        ),
        "V",
    ),
    cost="move",
)


@rule("PTO-T066", "expects the pad of a dst with 64-bit elements to be null or zero")
def _pad_64(dst: TileType) -> str | None:
    fits = dst.itemsize != 8 or dst.pad.name in ("null", "zero")
    return None if fits else f"it is {dst.pad.name} for {dst.dtype.name}"


TLOAD = LOAD.row(
    "tload",
    "dst[r,c] = src element (r,c) over dst's valid region",
    body=move.LOAD,
    operands=(
        *LOAD.operands,
        read("pad_value?", "scalar"),
        read("left_padding_num?", "index"),
        read("right_padding_num?", "int"),
        read("init_condition?", "int"),
    ),
    attrs=(
        Attr("pad_mode", "padmode", meaning="what stands beside the loaded columns"),
        Attr("init_out_buffer", "bool", default=False, meaning="fill dst before the load"),
        _GM_LAYOUT,
    ),
    text="ins( $src : types ) outs( $dst : types ) {} <? pad_mode = @pad_mode >"
    " <? pad_value = $pad_value : types > <? left_padding_num = $left_padding_num : types >"
    " <? init_out_buffer = @init_out_buffer >"
    " <? right_padding_num = $right_padding_num : types >"
    " <? init_condition = $init_condition : types >",
    a2a3=_STANDARD,
    rules=(
        in_layout("dst", "ND", "DN", "NZ").into("vec").on(NPU),
        gm_layout("dst", "src"),
        runs_follow("dst", "src").on(NPU),
        boxes_of_two_axes("dst", "src").on(NPU),
        pairs_of_groups.into("mat").on("a5"),
        whole_view("dst", "src").on(NPU),
        bursts("dst", "src").on("a2a3"),
        rows_apart("dst", "src").on("a2a3"),
        whole_blocks("dst").on("a2a3"),
        boxes_in_memory("dst", "src").on(NPU),
        no_wide_boxes("dst", "vec mat").on("a2a3"),
        no_wide_boxes("dst", "mat").on("a5"),
        enough("dst", "src"),
        _pad_64.on("a5"),
    ),
    notes=(
        "TLOAD.md lists acc as a destination; headers and the manual have vec and mat only, and on"
        " a5 TLOAD into any other tile does nothing",
        "the padding operands have no C++ counterpart, which pads by the tile's own pad value",
        "outside the valid region: CPU fills the whole tile with the pad, NPUs pad each row to the"
        " next 32 bytes",
    ),
    cite=("pto-isa docs/isa/TLOAD.md", "PTO manual, Data Movement: TLOAD"),
    cxx="TLOAD dst src",
)

_PART = replace(part_of_view("src"), severity="error")  # newer than programs with whole views
LOAD.row(
    "tprefetch",
    "bring src near, a hint: no value changes",
    body=move.PREFETCH,
    rules=(gm_layout("dst", "src"), dtype_in("src", _STANDARD).on("a2a3"), _PART),
    attrs=_GM_LAYOUT,
    notes="dst is room for the transfer; targets leave pieces of src in it, or nothing",
)
PREFETCH = tile_family(
    "prefetch contexts",
    "what asynchronous prefetches share",
    text="$operands {} : types -> results",
    pipe="none",
    cost="free",
    subject="",
    cite="PTOAS include/PTO/IR/PTOOps.td:728",
)
LOAD.row(
    "tprefetch_async",
    "start bringing src into the L2 cache; no tile is written",
    body=move.PREFETCH_ASYNC,
    operands=(read("src", "view"), read("session", "session or context")),
    results=Result("event", "async event"),
    text="( $src , $session : types ) {} -> results",
    subject="src",
    pipe="none",
    rules=(flat("src"), _PART),
    notes="session is one of C++, or the context of make_prefetch_async_context",
    cxx="- sessions of asynchronous prefetches are not modelled for C++",
)
PREFETCH.row(
    "make_prefetch_async_context",
    "ctx = what asynchronous prefetches share, over a workspace in global memory",
    body=move.PREFETCH_CONTEXT,
    operands=read("workspace", "gm pointer"),
    results=Result("ctx", "prefetch context"),
    text="( $workspace : types ) {} -> results",
    rules=dtype_in("workspace", "i8 u8"),
)
PREFETCH.row(
    "get_prefetch_async_session",
    "session = the one that events of this context are waited for with",
    body=move.PREFETCH_SESSION,
    operands=read("ctx", "prefetch context"),
    results=Result("session", "async session"),
)

_STORE_RULES = (
    same_size,
    gm_layout("src", "dst"),
    runs_follow("src", "dst").on(NPU),
    acc_options,
    atomic_store,
    added_types.on(NPU),
    table_at("fp").on(NPU),
)


@rule("PTO-S064", "expects an acc src to have 1 to 4095 columns")
def _acc_columns(src: TileType) -> str | None:
    """The fixpipe counts columns in 12 bits: pto-isa TStore.hpp."""
    wide = [n for n in (src.cols, src.valid[1]) if n is not None and not 1 <= n <= 4095]
    return f"src has {wide[0]}" if wide else None


@rule(LIBRARY, "expects a scale where i32 is stored as floats or floats as i32", severity="warning")
def _as_values(case: Case, src: TileType) -> str | None:
    """TSTORE passes NoQuant for these pairs: the words of the accumulator are stored as they are,
    four bytes each."""
    stored, scaled = case.elem("dst"), case.op.group("fp") or case.op.group("preQuantScalar")
    if stored is None or scaled or (src.dtype.name, stored.names[0]) not in _UNCONVERTED:
        return None
    return f"src is {src.dtype.name}, dst is {stored.name}"


_UNCONVERTED = {("i32", "f32"), ("i32", "f16"), ("i32", "bf16"), ("f32", "i32")}


_STORED_A2A3 = "f32:i8,u8 i32:i8,u8,f16"
_ACC_STORE = "f32:f32,f16,bf16,i32 i32:i32,f32,f16,bf16"

TSTORE = STORE.row(
    "tstore",
    "dst element (r,c) = src[r,c] over src's valid region; combined with memory by atomicType",
    body=move.STORE,
    operands=(read("src"), write("dst", "view"), read("fp?"), read("preQuantScalar?", "i64")),
    attrs=(
        Attr("stPhase", "st_phase", default="unspecified", meaning="unit flag with the cube"),
        _ATOMIC,
        RELU,
        _GM_LAYOUT,
    ),
    text="ins( $src : types <? fp $fp : types > <? , $preQuantScalar : types > )"
    " outs( $dst : types ) {}",
    a2a3=_STANDARD,
    rules=(
        in_role("src", "vec", "mat", "acc").on("a2a3"),
        in_role("src", "vec", "acc").on("a5"),
        *_STORE_RULES,
        part_of_view("dst"),
        same_count("src", "dst"),
        whole_view("src", "dst").on(NPU),
        bursts("src", "dst").on("a2a3"),
        whole_blocks("src").on("a2a3"),
        boxes_in_memory("src", "dst").on(NPU),
        no_wide_boxes("src", "vec mat").on("a2a3"),
        same_count_scaled("src", "dst"),
        in_role("fp", "scaling").on(NPU),
        acc_types(_ACC_STORE, _STORED_A2A3).on("a2a3"),
        acc_types(_ACC_STORE, STORED_A5).on("a5"),
        _as_values.out_of("acc").on(NPU),
        _acc_columns.out_of("acc").on(NPU),
    ),
    notes=(
        "i32 to a float and f32 to i32 without a scale: PTOAS allows both, the code table neither",
        "atomic_max and atomic_min are in the manual; headers and PTOAS have atomic_add only",
        "a scale is a word of 64 bits: f32 in bits 0-31, offset in 37-45, sign in 46",
    ),
    cite=("pto-isa docs/isa/TSTORE.md", "PTO manual, Data Movement: TSTORE"),
    aliases="store_dps",
    cxx="TSTORE dst src | TSTORE_FP dst src fp | TSTORE dst src fp:scaling"
    " | TSTORE dst src preQuantScalar",
)
STORE.row(
    "tstore_fp",
    "dst element (r,c) = quant(src[r,c], fp[0,c]) over src's valid region",
    body=move.STORE_SCALED,
    operands=(read("src"), read("fp"), write("dst", "view")),
    attrs=(_ATOMIC, RELU, _GM_LAYOUT),
    types="i32 f32",
    pipe="FIX",
    rules=(
        in_role("src", "acc").on(NPU),
        in_role("fp", "scaling").on(NPU),
        *_STORE_RULES,
        acc_types("", _STORED_A2A3).on("a2a3"),
        acc_types("", STORED_A5).on("a5"),
        _acc_columns.out_of("acc").on(NPU),
    ),
    notes=(
        "pipe: event.hpp has FIX, the IR manual MTE3, the td leaves it unset",
        "the CPU simulator scales by row for column-major tiles; hardware scales by column",
    ),
    example="pto.tstore_fp ins(%src, %fp : !pto.tile_buf<acc, 32x32xi32, blayout=col_major,"
    " slayout=row_major, fractal=1024>, !pto.tile_buf<scaling, 1x32xui64>)"
    " outs(%dst : !pto.partition_tensor_view<32x32xf16>)",
)


@rule("PTO-S065", "expects a bias dst to be one row of a multiple of 64 bytes")
def _bias_row(dst: TileType) -> str | None:
    """The bias table holds one row of whole 64-byte units: pto-isa TMov.hpp."""
    fits = dst.rows == 1 and dst.cols * dst.itemsize % 64 == 0
    return None if fits else f"it is {dims(*dst.shape)} of {dst.dtype.name}"


_FROM_MAT = "mat->left mat->right mat->bias mat->scaling"
_TABLES = {"bias": "i32 f32 f16:f32", "scaling": "u64 i64"}
_TABLES_A5 = {"bias": "i32 f32 f16:f32 bf16:f32"}


@rule("PTO-T064", "expects grpAxis for a move of MX exponents to ZZ")
def _grouped(case: Case) -> str | None:
    third = case.role("fp")
    if "grpAxis" not in case.op.attrs or third == "vec":
        return None
    return f"the third tile is in {third}" if third else "there is no third tile"


def _fp_is_tile(case: Case) -> bool:
    return case.role("fp") == "vec"  # working space of a move that regroups MX exponents


def _has_no_fp(case: Case) -> bool:
    return case.op.operand("fp") is None  # scales and exponents have rules of their own


@rule("PTO-T064", "expects dst to be ZZ with grpAxis")
def _into_boxes(case: Case, dst: TileType) -> str | None:
    fits = "grpAxis" not in case.op.attrs or dst.layout.name == "ZZ"
    return None if fits else f"it is {dst.layout.name}"


def _is_table(case: Case) -> bool:
    """True for a table of scales, which no boxes group, as they do scales of MX products."""
    dst = case.tile("dst")
    return dst is not None and not dst.layout.is_boxed


TMOV = MOVE.row(
    "tmov",
    "dst[i,j] = convert(src[i,j]), between the buffers and layouts of the two tile types",
    body=move.MOVE,
    operands=(read("src"), write("dst"), read("fp?"), read("preQuantScalar?", "i64")),
    attrs=(
        ACC_TO_VEC,
        RELU,
        PAIRS,
        Attr("grpAxis", "mx_group_axis", meaning="of MX exponents: the axis of a group of 32"),
    ),
    text="ins( $src : types <? , $fp : types > <? , $preQuantScalar : types > )"
    " outs( $dst : types ) {}",
    traits=Traits(generic="preQuantScalar", fills=Fills.COMMON),
    rules=(
        joined(f"{_FROM_MAT} vec->vec vec->mat acc->mat acc->vec").on("a2a3"),
        joined(
            f"{_FROM_MAT} mat->scale_left mat->scale_right vec->vec vec->mat acc->mat acc->vec",
        ).on("a5"),
        same_shape("src", "dst").on("a2a3"),
        out_of_place("src", unless=row_by_row).only_if(_has_no_fp).on(NPU),
        one_shape.out_of("mat").on("a5"),
        pairs_kept,
        pairs_turned,
        same_size.out_of("vec").on(NPU),
        carried({"left": CUBE_A2A3, "right": CUBE_A2A3, **_TABLES}).on("a2a3"),
        carried({"left": CUBE_A5, "right": CUBE_A5, **_TABLES_A5}).on("a5"),
        acc_types(PLAIN_A2A3, SCALED_A2A3).into("mat").on("a2a3"),
        acc_types(PLAIN_A5, SCALED_A2A3).into("vec").on("a2a3"),
        acc_types(PLAIN_A5, STORED_A5).on("a5"),
        acc_options,
        acc_to_vec,
        quant_forms,
        in_role("fp", "scaling").only_if(lambda case: not regroups(case)).on(NPU),
        _grouped,
        _into_boxes,
        regrouped.on("cpu a5"),
        apart("src", "fp", "dst", same=True).only_if(_fp_is_tile).on("a5"),
        _bias_row.into("bias").on(NPU),
        table_row.into("scaling").out_of("mat").on(NPU),
        table_at("fp").on(NPU),
        library_types("dst", "u64 i64").into("scaling").only_if(_is_table).on("a5"),
        unchanged_for_both.out_of("acc").on("a5"),
        FRACTAL_512.on("a2a3"),
        keeps_layout.on("a2a3"),
    ),
    notes=(
        "acc->vec on a2a3: PTOAS and its programs use it, the header asserts against it",
        "vec->mat on a2a3: a queue where cube and vector are two functions, as acc->vec is",
        "with a vec tile in place of fp, working space, exponents of MX groups go into boxes",
        "TMOV.md proposes tmov.m2l, m2r, m2b, m2s, a2v, v2v; PTOAS reads tmov and tmov.fp only",
    ),
    cxx="TMOV dst src | TMOV_FP dst src fp:scaling | TMOV dst src fp:scaling | TMOV dst src _"
    " | TMOV dst src preQuantScalar",
)
MOVE.row(
    "tmov.fp",
    "dst[i,j] = quant(src[i,j], fp[0,j]); older spelling of tmov with fp",
    body=move.MOVE_SCALED,
    operands=(read("src"), read("fp"), write("dst")),
    attrs=RELU,
    text=INS_OUTS,
    pipe="FIX",
    subject="src",
    types="i32 f32",
    traits=Traits(fills=Fills.COMMON),
    rules=(
        joined("acc->mat").on("a2a3"),
        joined("acc->mat acc->vec").on("a5"),
        in_role("fp", "scaling").on(NPU),
        in_layout("src", "NZ").on(NPU).current,
        acc_types("", SCALED_A2A3).on("a2a3"),
        acc_types("", STORED_A5).on("a5"),
        FRACTAL_512.on("a2a3"),
        table_at("fp").on(NPU),
    ),
    notes="pipe: event.hpp has FIX, the td MTE1, the IR manual V",
    cite="pto-isa docs/isa/TMOV_FP.md",
)
