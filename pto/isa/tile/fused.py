"""Tile instructions that do several elementwise operations in one; what is fused is named in order.

No hidden FMA: every operation rounds to the element type, except where the row differs.
"""

from __future__ import annotations

from functools import partial

from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.tile import elementwise as arithmetic
from pto.isa.row import types as t
from pto.isa.row.instr import read, reads, update, write
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import dtype_in, rule, same_dtype, same_shape, scalar_matches
from pto.isa.rules.scratch import SUMS, like, work_tile
from pto.isa.rules.tile import (
    NPU,
    VECTOR_UNIT,
    covers_dst,
    dtype_pairs,
    not_of,
    same_domain,
    tile_family,
    undefined,
)

_TYPES = "i16 i32 f16 f32"
_FLOATS = "f16 f32"
_NO_PTOAS = "PTOAS has no such operation; the text is the page's."
_NO_CPU = "The C++ simulator has no header for it; the manual gives cpu every tile instruction."

_DECLARED = undefined("the headers only declare it")

_fused = partial(tile_family, "elementwise fused", cost="fused")
_SUM = ("src0", "src1", "src2", "dst")
SUM = _fused(
    "three tiles to one over dst's valid region; the c is for combine, there is no carry",
    operands=(*reads("src0 src1 src2"), write("dst")),
    rules=(
        *VECTOR_UNIT,
        same_dtype(*_SUM),
        same_shape(*_SUM).on(NPU),
        same_domain(*_SUM),
        _DECLARED.on(NPU),
    ),
)
for _name, _sign, _fn in (("taddc", "+", arithmetic.add_add), ("tsubc", "-", arithmetic.sub_add)):
    SUM.row(
        _name,
        f"dst = src0 {_sign} src1 + src2",
        body=Lane(_fn),
        npu=_TYPES,
        notes="The page states no element types; these are those of taddsc.",
    )

_TILES = ("src0", "src1", "dst")
SCALAR_SUM = _fused(
    "two tiles and a scalar to one over dst's valid region",
    operands=(read("src0"), read("scalar", "scalar"), read("src1"), write("dst")),
    rules=(
        *VECTOR_UNIT,
        same_dtype(*_TILES),
        scalar_matches("scalar", "src0"),
        same_shape(*_TILES).on(NPU),
        same_domain(*_TILES),
        _DECLARED.on(NPU),
    ),
)
SCALAR_SUM.row("taddsc", "dst = src0 + scalar + src1", body=Lane(arithmetic.add_add), npu=_TYPES)
SCALAR_SUM.row("tsubsc", "dst = src0 - scalar + src1", body=Lane(arithmetic.sub_add), npu=_TYPES)

_AXPY = {"f16": "f16 f32", "f32": "f32"}


@rule("PTO-T041", "expects src and dst to have one element type, or f16 and f32")
def _accumulates(src: t.Scalar, dst: t.Scalar) -> str | None:
    fits = set(src.names) & set(dst.names) or (src.name, dst.name) == ("f16", "f32")
    return None if fits else f"src is {src.name}, dst is {dst.name}"


AXPY = _fused(
    "dst is read and written over its valid region",
    operands=(read("src"), read("scalar", "scalar"), update("dst")),
    rules=(
        *VECTOR_UNIT,
        _accumulates.on("cpu"),
        dtype_pairs("src", "dst", {"a2a3": _AXPY, "a5": {**_AXPY, "bf16": "bf16"}}),
        scalar_matches("scalar", "src"),
        same_shape("src", "dst").on(NPU),
        same_domain("src", "dst"),
    ),
)
AXPY.row(
    "taxpy",
    "dst = dst + src * scalar",
    body=Lane(arithmetic.axpy),
    a2a3=_FLOATS,
    a5="f16 bf16 f32",
    rules=not_of("bf16").on("a5"),
    notes="bf16 on a5 is in PTO_IR_manual.md; the header refuses it.",
    cite=("pto-isa docs/isa/TAXPY.md", "PTOAS docs/PTO_IR_manual.md"),
)

_RULES = (*VECTOR_UNIT, same_dtype(*_TILES), same_domain(*_TILES))
_CONTIGUOUS = (
    "a5/TTernOp.hpp moves the pointer of dst twice for each 256 bytes of a tile without gaps; its"
    " own tests contradict. The export prints a dynamic region, which takes another path"
)
INTO_DST = _fused(
    "dst is an operand as well as the result, over its valid region",
    operands=(read("src0"), read("src1"), update("dst")),
    rules=_RULES,
)
for _name, _meaning, _body, _note in (
    (
        "tfusedmuladd",
        "dst = src0 * dst + src1",
        Lane(make=arithmetic.rounded_once(arithmetic.mul_add)),
        "",
    ),
    (
        "tfusedmuladdrelu",
        "dst = max(0, src0 * dst + src1)",
        Lane(arithmetic.mul_add_relu),
        "The formula of the page omits the max; the name and the headers include it.",
    ),
    ("tmuladddst", "dst = src0 * src1 + dst", Lane(arithmetic.mul_add_into), ""),
):
    INTO_DST.row(
        _name,
        _meaning,
        body=_body,
        npu=_FLOATS,
        traits=Traits(region_of_run="all"),
        notes=(*filter(None, (_note,)), _CONTIGUOUS, _NO_PTOAS),
    )

FUSED = _fused(
    "two tiles to one over dst's valid region",
    operands=(read("src0"), read("src1"), write("dst")),
    rules=_RULES,
)
FUSED.row(
    "taddrelu",
    "dst = max(0, src0 + src1)",
    body=Lane(lanes.add_relu),
    profiles="cpu a2a3",
    a2a3=f"i16 {_FLOATS}",
    notes="the headers have no such call",
    cite="PTOAS include/PTO/IR/PTOOps.td, TAddReluOp",
    cxx="- C++ has TADDRELUCONV alone",
)
FUSED.row(
    "tsubrelu",
    "dst = max(0, src0 - src1)",
    body=Lane(lanes.sub_relu),
    npu=_FLOATS,
    notes=_NO_PTOAS,
)

_NARROW = {"f32": "f16", "f16": "i8", "i16": "i8"}
NARROWING = _fused(
    "two tiles to one of a narrower type, to nearest even and saturating",
    operands=(read("src0"), read("src1"), write("dst")),
    subject="src0",
    rules=(
        *VECTOR_UNIT,
        same_dtype("src0", "src1"),
        dtype_pairs("src0", "dst", {"cpu": _NARROW, "a2a3": _NARROW, "a5": _NARROW}),
        same_domain(*_TILES),
    ),
)
_NARROWED = (
    "pto.{} ins(%src0, %src1 : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 16x64xf32>)"
    " outs(%dst : !pto.tile_buf<vec, 16x64xf16>)"
)
_OURS = "It has headers but no page and no PTOAS operation; the text is ours."
for _name, _sign, _fn, _note, _page in (
    ("add", "+", lanes.add_relu, _NO_PTOAS, "docs/isa/TADDReluConv.md"),
    ("sub", "-", lanes.sub_relu, _OURS, "include/pto/npu/a5/TSubReluConv.hpp"),
):
    NARROWING.row(
        f"t{_name}reluconv",
        f"dst = convert(max(0, src0 {_sign} src1))",
        body=Lane(make=arithmetic.narrowed(_fn)),
        types="i16 f16 f32",
        notes=(_NO_CPU, _note),
        example=_NARROWED.format(f"t{_name}reluconv"),
        cite=f"pto-isa {_page}",
    )

DEQUANTISED = _fused(
    "two tiles of i32 to one of f16 over dst's valid region",
    operands=(
        *reads("src0 src1"),
        read("deqScale", "scalar"),
        work_tile(like("dst", SUMS)),
        write("dst"),
    ),
    rules=(
        *VECTOR_UNIT,
        dtype_in("src0", "i32"),
        dtype_in("src1", "i32"),
        dtype_in("deqScale", "f32"),
        same_domain(*_TILES),
        dtype_in("tmp", "i32").on("a2a3"),
        covers_dst.on("a2a3"),
        _DECLARED.on("a5"),  # pto-inst.hpp includes no definition of it
    ),
)
DEQUANTISED.row(
    "tadddeqrelu",
    "dst = max(0, f16(deqScale * f32(src0 + src1)))",
    body=Lane(arithmetic.add_dequantised_relu),
    types="f16",
    notes=(
        "NPU headers scale by 2**-17, deqScale and 2**17 in turn; we round as the C++ simulator.",
        f"tmp is used on a2a3 only. {_NO_PTOAS}",
    ),
    example="pto.tadddeqrelu ins(%src0, %src1, %deqScale, %tmp : !pto.tile_buf<vec, 16x64xi32>,"
    " !pto.tile_buf<vec, 16x64xi32>, f32, !pto.tile_buf<vec, 16x64xi32>)"
    " outs(%dst : !pto.tile_buf<vec, 16x64xf16>)",
    cite="pto-isa docs/isa/TAddDeqRelu.md",
)
