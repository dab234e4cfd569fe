"""Tile instructions of the matrix unit: products of two tiles, or of one row and a tile."""

from __future__ import annotations

from itertools import product

from pto.core.constants import MX_BLOCK_SIZE
from pto.core.tile import TileType
from pto.isa.meaning.tile.matmul import PRODUCT
from pto.isa.row.instr import Attr, Operand, read, write
from pto.isa.row.traits import RegionRule, Traits, operators
from pto.isa.rules.cube import (
    added_in_place,
    boxes_adjoin,
    row_without_boxes,
    rows_in_boxes,
    scales_found,
    whole_pairs_of_groups,
)
from pto.isa.rules.rule import (
    Case,
    Rule,
    agree,
    dims,
    in_layout,
    in_role,
    rule,
    rule_of,
    same_dtype,
    same_valid,
)
from pto.isa.rules.tile import NPU, library_types, tile_family

_LARGEST = 4095  # m, k and n are counted in 12 bits: pto-isa TMatmul.hpp
_PHASE = (Attr("accPhase", "acc_phase", default="unspecified", meaning="unit flag with tstore"),)

_TRIPLES = (
    ("i8", "i8", "i32"),
    ("f16", "f16", "f32"),
    ("bf16", "bf16", "f32"),
    ("f32", "f32", "f32"),
)
_FP8, _FP4 = ("f8e4m3", "f8e5m2"), ("float4_e1m2x2", "float4_e2m1x2")
_A5_TRIPLES = (
    *_TRIPLES,
    *((a, b, "f32") for a, b in product(_FP8, _FP8)),
    ("hifloat8", "hifloat8", "f32"),
)
# the PTO manual (Target Profiles) knows MX as int8 -> int32; the headers as fp8 and fp4 -> f32.
_MX_TRIPLES = (
    ("i8", "i8", "i32"),
    *((a, b, "f32") for kinds in (_FP8, _FP4) for a, b in product(kinds, kinds)),
)


def _types(lhs: str, rhs: str, triples: tuple[tuple[str, str, str], ...]) -> Rule:
    def test(case: Case) -> str | None:
        a, b, d = (case.elem(name) for name in (lhs, rhs, "dst"))
        if a is None or b is None or d is None:
            return None
        if any(x in a.names and y in b.names and z in d.names for x, y, z in triples):
            return None
        return f"{a.name} x {b.name} -> {d.name}"

    listed = ", ".join(dict.fromkeys(f"{x} x {y} -> {z}" for x, y, z in triples))
    return Rule("product-types", "PTO-T063", f"expects one of {listed}", test)


@rule_of("PTO-S063", "expects {lhs} m x k, {rhs} k x n and dst m x n")
def _product_shapes(case: Case, lhs: str, rhs: str) -> str | None:
    """The valid regions multiply: m x k times k x n is m x n."""
    a, b, d = (case.tile(name) for name in (lhs, rhs, "dst"))
    if a is None or b is None or d is None:
        return None
    (m, k), n = a.valid, b.valid[1]
    if agree((m, k, n), (d.valid[0], b.valid[0], d.valid[1])):
        return None
    sizes = f"{lhs} is {dims(*a.valid)}, {rhs} {dims(*b.valid)}"
    return f"{sizes}, dst {dims(*d.valid)}"


@rule_of("PTO-S064", f"expects m, k and n from 0 to {_LARGEST}", id="product-range")
def _range(case: Case, lhs: str, rhs: str) -> str | None:
    for name, tile in case.tiles((lhs, rhs)):
        wrong = [n for n in tile.valid if n is not None and not 0 <= n <= _LARGEST]
        if wrong:
            return f"{name} is {dims(*tile.valid)}"
    return None


@rule_of("PTO-S065", "expects {lhs} and dst to have one valid row")
def _one_row(case: Case, lhs: str) -> str | None:
    for name, tile in case.tiles((lhs, "dst")):
        if tile.valid[0] not in (None, 1):
            return f"{name} has {tile.valid[0]}"
    return None


@rule("PTO-S065", "expects bias to be one row at least as wide as what is valid in dst")
def _bias_row(bias: TileType, dst: TileType) -> str | None:
    wanted = dst.cols if dst.valid[1] is None else dst.valid[1]
    fits = bias.rows == 1 and bias.cols >= wanted
    return None if fits else f"bias is {dims(*bias.shape)}, dst is {dims(dst.rows, wanted)}"


@rule_of(
    "PTO-S063",
    f"expects {{scale}} to be as large as {{operand}}, or 1/{MX_BLOCK_SIZE} of it along k",
)
def _scale_shape(case: Case, scale: str, operand: str, axis: int) -> str | None:
    """One scale for 32 elements along k; PTOAS gives scale tiles the shape of their operand."""
    scales, tile = case.tile(scale), case.tile(operand)
    if scales is None or tile is None:
        return None
    allowed = [tile.shape]
    for extent in (tile.shape[axis], tile.valid[axis] or tile.shape[axis]):
        for values in (1, 2) if tile.dtype.name in _FP4 else (1,):  # an item of fp4 holds two
            grouped = list(tile.shape)
            grouped[axis] = -(-extent * values // MX_BLOCK_SIZE)
            allowed.append((grouped[0], grouped[1]))
    if scales.shape in allowed:
        return None
    return f"{scale} is {dims(*scales.shape)}, {operand} is {dims(*tile.shape)}"


def _places(lhs: str, rhs: str) -> tuple[Rule, ...]:
    """Roles and layouts. The manual edition leaves layouts to the profile's own table."""
    return (
        in_role(lhs, "left").on(NPU),
        in_role(rhs, "right").on(NPU),
        in_role("dst", "acc").on(NPU),
        in_layout(lhs, "NZ", "ZZ").on(NPU).current,
        in_layout(rhs, "ZN").on(NPU).current,
        in_layout("dst", "NZ").on(NPU).current,
        _product_shapes(lhs, rhs),
        _range(lhs, rhs).on(NPU),
        boxes_adjoin(lhs, rhs, "dst").on(NPU),
    )


def _plain(lhs: str, rhs: str) -> tuple[Rule, ...]:
    return (
        *_places(lhs, rhs),
        _types(lhs, rhs, _TRIPLES).on("cpu a2a3"),
        _types(lhs, rhs, _A5_TRIPLES).on("a5"),
    )


def _adds(name: str) -> tuple[Rule, ...]:
    """The accumulator that is added to."""
    return (
        in_role(name, "acc").on(NPU),
        same_dtype(name, "dst"),
        same_valid(name, "dst"),
        added_in_place(name).on(NPU),
    )


_BIAS = (
    in_role("bias", "bias").on(NPU),
    in_layout("bias", "ND").on(NPU),
    same_dtype("bias", "dst"),
    _bias_row,
)
_MX = (
    *_places("a", "b"),
    _types("a", "b", _MX_TRIPLES),
    library_types("a", " ".join((*_FP8, *_FP4))).on("a5"),
    in_role("a_scale", "scaling", "scale_left"),
    in_role("b_scale", "scaling", "scale_right"),
    _scale_shape("a_scale", "a", 1),
    _scale_shape("b_scale", "b", 0),
    scales_found("a_scale", "a").on("a5"),
    scales_found("b_scale", "b").on("a5"),
    whole_pairs_of_groups.on("a5"),
)

_PYTHON = operators("tmatmul @")
_PRODUCT = Traits(region=RegionRule.PRODUCT)
MATMUL = tile_family(
    "matmul", "dst = lhs x rhs", attrs=_PHASE, pipe="M", cost="product", traits=_PRODUCT
)
GEMV = tile_family(
    "gemv", "dst = one row of lhs x rhs", attrs=_PHASE, pipe="M", cost="product", traits=_PRODUCT
)

_LAYOUT_NOTES = (
    "left tiles: ZZ on a2a3, NZ on a5 and cpu; PTOAS reads either as the one its target has, and"
    " the PTO manual (Layout Reference) calls RowMajor, RowMajor `NZ`",
    "layout.md has acc without boxes and right as ND or NN; `--manual` judges by that table",
)
_MX_NOTES = (
    "the IR manual leaves the scales out of the formula; the CPU header multiplies both",
    "scale tiles: the ISA has e8m0 of 1/32 size, PTOAS programs write f16 of the operand's shape",
    "the manual has MX as int8 -> int32, the headers as fp8 and fp4 -> f32: both are accepted",
)
_CXX = {  # where C++ has other calls than the operands in order
    ".acc": "{0}_ACC dst acc_in lhs rhs | {0}_ACC dst+acc_in lhs rhs",
    ".mx.acc": "{0}_MX dst c_in:acc a a_scale b b_scale",
    ".mx.bias": "{0}_MX dst a a_scale b b_scale bias:bias",
}
_PLAIN_FORMS = (  # suffix, operands, the factors, what is added, its rules
    ("", "lhs rhs", "lhs", "rhs", "", ()),
    (".acc", "acc_in lhs rhs", "lhs", "rhs", "acc_in[i,j] + ", _adds("acc_in")),
    (".bias", "a b bias", "a", "b", "bias[0,j] + ", _BIAS),
)
_MX_FORMS = (
    (".mx", "a a_scale b b_scale", "", ()),
    (".mx.acc", "c_in a a_scale b b_scale", "c_in[i,j] + ", _adds("c_in")),
    (".mx.bias", "a a_scale b b_scale bias", "bias[0,j] + ", _BIAS),
)


def _rows(lhs: str, gemv: bool) -> tuple[Rule, ...]:
    """The rows of the left tile: one for a vector, boxes of them for a matrix."""
    if gemv:
        return _one_row(lhs), row_without_boxes(lhs).on(NPU)
    return (rows_in_boxes(lhs).on(NPU),)


def _tiles(names: str) -> tuple[Operand, ...]:
    return (*(read(name) for name in names.split()), write("dst"))


for _family, _name in ((MATMUL, "tmatmul"), (GEMV, "tgemv")):
    _gemv = _family is GEMV
    for _suffix, _names, _lhs, _rhs, _plus, _extra in _PLAIN_FORMS:
        _family.row(
            _name + _suffix,
            f"dst[i,j] = {_plus}sum over k of {_lhs}[i,k] * {_rhs}[k,j]{', i = 0' * _gemv}",
            body=PRODUCT,
            traits=_PYTHON.get(_name + _suffix),
            cxx=_CXX.get(_suffix, "").format(_name.upper()),
            operands=_tiles(_names),
            a2a3="i8 f16 bf16 f32",
            a5="i8 f8e4m3 f8e5m2 hifloat8 f16 bf16 f32",
            subject=_lhs,
            rules=(*_plain(_lhs, _rhs), *_extra, *_rows(_lhs, _gemv)),
            notes=_LAYOUT_NOTES,
            cite=f"pto-isa docs/isa/{_name.upper()}{_suffix.upper().replace('.', '_')}.md",
        )
    for _suffix, _names, _plus, _extra in _MX_FORMS:
        _family.row(
            _name + _suffix,
            f"dst[i,j] = {_plus}sum over k of a[i,k] * b[k,j] * 2^(a_scale[i,k/32]-127)"
            f" * 2^(b_scale[k/32,j]-127){', i = 0' * _gemv}",
            body=PRODUCT,
            cxx=_CXX.get(_suffix, "").format(_name.upper()),
            operands=_tiles(_names),
            types="i8 f8e4m3 f8e5m2 float4_e1m2x2 float4_e2m1x2",
            subject="a",
            needs="mx",
            rules=(*_MX, *_extra, *_rows("a", _gemv)),
            notes=_MX_NOTES,
            cite=f"pto-isa docs/isa/{_name.upper()}_MX.md",
        )
