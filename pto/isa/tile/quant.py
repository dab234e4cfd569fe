"""Tile instructions that quantise to and from small types by scales, per row or per group."""

from __future__ import annotations

from pto.core.constants import MX_BLOCK_SIZE
from pto.core.tile import TileType
from pto.isa.meaning.tile import quant as meaning
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, read, write
from pto.isa.row.traits import Fills, Traits
from pto.isa.rules.microscaling import mx_shapes
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    all_in,
    dtype_in,
    row_major,
    rule,
    rule_of,
    same_dtype,
    same_shape,
    same_valid_rows,
)
from pto.isa.rules.tile import (
    NPU,
    apart,
    dtype_pairs,
    results_apart,
    same_domain,
    scratch_when,
    tile_family,
)

# Only src and dst must be row-major: scales are often columns.
_PLACES = (all_in("vec").on(NPU), row_major("src", "dst").on(NPU))
_KINDS = ("INT8_SYM", "INT8_ASYM")
_GROUPED_KINDS = ("MXFP8", "MXFP4_E2M1")


@rule("PTO-M107", "expects tmp if the valid region of src is dynamic: a compiler cannot add it")
def _made_scratch(case: Case, src: TileType) -> str | None:
    return "there is none" if None in src.valid and not case.type("tmp") else None


@rule("PTO-T044", "expects an offset exactly for INT8_ASYM")
def _quant_offset(case: Case) -> str | None:
    kind, offset = case.word("quant_type"), case.op.operand("offset")
    if kind == "INT8_SYM" and offset is not None:
        return "INT8_SYM has one"
    if kind == "INT8_ASYM" and offset is None:
        return "INT8_ASYM has none"
    return None


@rule_of("PTO-L022", "expects {name} to be column-major")
def _down_a_column(case: Case, name: str) -> str | None:
    tile = case.tile(name)
    if tile is None or tile.layout.blayout.value == "col_major":
        return None
    return f"it is {tile.layout.name}"


@rule_of("PTO-L022", "expects {name} to hold the values of its rows word by word")
def _word_by_row(case: Case, name: str) -> str | None:
    """TQuant.hpp of a5 reads word i of the tile for row i, whatever the layout is."""
    tile = case.tile(name)
    if tile is None or tile.rows == 1 or tile.layout.blayout.value == "col_major":
        return None
    return None if tile.cols == 1 else f"it is {tile}, where [1, 0] is word {tile.cols}"


@rule_of("PTO-S041", "expects a word of {name} for each row of dst")
def _word_each(case: Case, name: str) -> str | None:
    tile, dst = case.tile(name), case.tile("dst")
    if tile is None or dst is None or dst.valid[0] is None:
        return None
    words = tile.rows * tile.cols
    return None if dst.valid[0] <= words else f"it has {words}, dst {dst.valid[0]} rows"


_WRITTEN = {"INT8_SYM": "i8", "INT8_ASYM": "u8"}


@rule(LIBRARY, "expects dst of i8 for INT8_SYM and of u8 for INT8_ASYM", severity="warning")
def _signed_as_kind(quant_type: str, dst: TileType) -> str | None:
    name = dst.dtype.name
    fits = name not in _WRITTEN.values() or name == _WRITTEN.get(quant_type)
    return None if fits else f"dst is {dst.dtype.name} for {quant_type}"


tile_family(
    "quantise",
    "one scale, and perhaps one offset, for each row",
    operands=(read("src"), read("fp"), read("offset?"), write("dst"), write("tmp?")),
    subject="src",
    rules=(*_PLACES, same_domain("src", "dst")),
    cost="convert",
).row(
    "tquant",
    "INT8_SYM: dst = clamp(rint(src * fp[i]), -128, 127);"
    " INT8_ASYM: dst = clamp(rint(src * fp[i] + offset[i]), 0, 255)",
    body=meaning.QUANTISE,
    generic="src fp offset? tmp? dst",
    attrs=Attr("quant_type", "quant_type", values=_KINDS, required=True),
    types="f32",
    rules=(
        _quant_offset,
        dtype_in("dst", "i8 u8"),
        _signed_as_kind.on(NPU),
        dtype_in("fp", "f32"),
        dtype_in("offset", "f32"),
        _down_a_column("fp").on("a2a3").as_warning,  # April's programs have rows
        _down_a_column("offset").on("a2a3").as_warning,
        *(same_valid_rows(name, "dst").compiled.on("a2a3") for name in ("fp", "offset")),
        *(_word_by_row(name).as_warning.current.on("a5") for name in ("fp", "offset")),
        *(_word_each(name).current.on("a5") for name in ("fp", "offset")),
        same_shape("tmp", "src").on("a2a3"),
        scratch_when("", lambda _: True).on("a2a3"),
        _made_scratch.at_level(2).on("a2a3"),
    ),
    notes=(
        "The page divides by the scale and adds the offset after rounding; all code multiplies,"
        " so fp holds the reciprocal, and adds before.",
        "The page gives INT8_ASYM -128..127; the code clamps to 0..255.",
        "a5 reads word i of fp and offset for row i: give them as one column, or as one row.",
        "Headers want i8 for INT8_SYM and u8 for INT8_ASYM; PTOAS takes either for both.",
        "a2a3 scales src in place, and it is lost; here it stays. Its C++ form takes a tmp, which"
        " PTOAS does not.",
    ),
    example="pto.tquant ins(%src, %fp : !pto.tile_buf<vec, 16x64xf32>,"
    " !pto.tile_buf<vec, 16x1xf32, blayout=col_major>) outs(%dst : !pto.tile_buf<vec, 16x64xi8>)"
    " {quant_type = #pto<quant_type INT8_SYM>}",
    cite=("pto-isa docs/isa/TQUANT.md", "PTOAS docs/PTO_IR_manual.md"),
    cxx="TQUANT<QuantType=INT8_SYM> dst src fp _? | TQUANT<QuantType=INT8_ASYM> dst src fp &offset"
    " | TQUANT<QuantType=INT8_ASYM> dst src fp _ &offset",
)
tile_family(
    "quantise",
    "one scale and one offset for each row",
    operands=(read("src"), read("scale"), read("offset"), write("dst")),
    subject="src",
    rules=(*_PLACES, same_domain("src", "dst")),
    cost="convert",
).row(
    "tdequant",
    "dst = (f32(src) - offset[i]) * scale[i]",
    phases={"a2a3": "V[S]"},
    body=meaning.DEQUANTISE,
    types="i8 i16",
    rules=(
        dtype_in("dst", "f32"),
        dtype_in("scale", "f32"),
        dtype_in("offset", "f32"),
        same_valid_rows("scale", "offset", "dst").on("a5"),
    ),
    notes="scale multiplies here and in tquant, so one scale tile cannot serve both.",
    example="pto.tdequant ins(%src, %scale, %offset : !pto.tile_buf<vec, 16x64xi8>,"
    " !pto.tile_buf<vec, 16x8xf32>, !pto.tile_buf<vec, 16x8xf32>)"
    " outs(%dst : !pto.tile_buf<vec, 16x64xf32>)",
)


@rule("PTO-S044", "expects groups of 32 elements")
def _mx_groups(case: Case, src: TileType) -> str | None:
    sides = {"axis1": (1, "columns"), "axis0": (0, "rows")}
    axis, unit = sides.get(case.word("grpAxis") or "", (0, ""))
    size = src.valid[axis] if unit else None
    return f"src has {size} valid {unit}" if size is not None and size % MX_BLOCK_SIZE else None


@rule("PTO-S044", "expects interleave only with axis0 and pairs of row groups")
def _mx_interleave(case: Case, src: TileType) -> str | None:
    if case.word("interleave") != "true":
        return None
    if case.word("grpAxis") != "axis0":
        return f"grpAxis is {case.word('grpAxis')}"
    rows = src.valid[0]
    return None if rows is None or rows % (2 * MX_BLOCK_SIZE) == 0 else f"src has {rows} valid rows"


@rule("PTO-T044", "expects dst to have the element type of quant_type")
def _mx_kind(quant_type: str, dst: t.Scalar) -> str | None:
    wanted = {"MXFP8": {"f8e4m3", "i8", "u8"}, "MXFP4_E2M1": {"float4_e2m1x2"}}
    fits = set(dst.names) & wanted.get(quant_type, set(dst.names))
    return None if fits else f"{quant_type} into {dst.name}"


_FP8 = "f8e4m3 i8 u8"


@rule(LIBRARY, "expects no exp_zz, for which the headers only declare TQUANT", severity="warning")
def _no_second_order(case: Case) -> str | None:
    return "it is given" if case.op.group("exp_zz") else None


_MX_PAIRS = {"f32": _FP8, "f16": f"{_FP8} float4_e2m1x2", "bf16": f"{_FP8} float4_e2m1x2"}

tile_family(
    "quantise",
    "32 elements along a row (grpAxis axis1) or a column (axis0) share one e8m0 exponent",
    operands=(read("src"), *map(write, ("dst", "exp", "max", "scaling", "exp_zz?"))),
    subject="src",
    rules=_PLACES,  # dst may be flat, or packed by two, so its region is its own
    cost="convert",
).row(
    "tquant.mx",
    "exp = e8m0 of max|src| in the group; dst = encode(src * 2**(127 - exp))",
    body=meaning.QUANTISE_GROUPS,
    traits=Traits(fills=Fills.GROUPS),
    attrs=(
        Attr("quant_type", "quant_type", values=_GROUPED_KINDS, required=True),
        Attr("quantScaleAlg", "quant_scale_alg", default="ocp", older=("scale_alg",)),
        Attr(
            "grpAxis",
            "mx_group_axis",
            default="axis1",
            meaning="axis1: groups of columns, axis0: groups of rows",
            older=("grp_axis",),
        ),
        Attr("interleave", "bool", default=False, meaning="pairs of exponent rows, axis0"),
        Attr(
            "storeMode",
            "vec_store_mode",
            default="nd",
            meaning="nz fills exp_zz",
            older=("store_mode",),
        ),
    ),
    needs="mx",
    types="f16 bf16 f32",
    rules=(
        dtype_pairs("src", "dst", {"a5": _MX_PAIRS}),
        _mx_kind,
        dtype_in("exp", "u8 e8m0"),
        dtype_in("exp_zz", "u8").compiled,
        _mx_groups,
        _mx_interleave,
        _no_second_order.on("a5"),
        *(same_dtype("src", name).compiled for name in ("max", "scaling")),
        mx_shapes.compiled,
        apart("src", "dst", "exp", "max", "scaling", "exp_zz").compiled,
        results_apart("dst", "exp", "max", "scaling", "exp_zz").compiled,
    ),
    notes=(
        "C++ overloads TQUANT; PTOAS has no text for it, so the name and text here are ours.",
        "exp is the exponent field of the maximum less 8 (MXFP8) or 2 (MXFP4), 0 below that and"
        " 0xFF for NaN; NV takes max / 448 or max / 6 instead and rounds up. The page has 1 for "
        "MXFP4.",
        "The page has hardware round stochastically; its tests, the C++ simulator and we round to"
        " nearest even.",
        "exp, max and scaling hold a value for each group: at [i,j] where their valid region is"
        " that of the groups, else in memory order, as programs that declare them flat expect.",
        "An MXFP4 dst packs two elements to a byte. HiFloat4 (MxQuantAlg::Hif4) is of a later"
        " profile.",
    ),
    example="pto.tquant.mx ins(%src : !pto.tile_buf<vec, 16x64xf32>)"
    " outs(%dst, %exp, %max, %scaling : !pto.tile_buf<vec, 16x64xf8E4M3FN>,"
    " !pto.tile_buf<vec, 1x32xui8>, !pto.tile_buf<vec, 1x32xf32>, !pto.tile_buf<vec, 1x32xf32>)"
    " {quant_type = #pto<quant_type MXFP8>}",
    cite=("pto-isa docs/isa/TQUANT.md", "pto-isa docs/isa/TQUANT_DN.md"),
    cxx=" | ".join(
        [
            *(
                f"TQUANT<grpAxis interleave MxQuantAlg={alg} quant_type={kind} quantScaleAlg={nv}>"
                " dst src &exp &max &scaling"
                for alg, kind, nv in (
                    ("OcpMxFp8E4M3", 2, 0),
                    ("NvMxFp8E4M3", 2, 1),
                    ("OcpMxFp4E2M1", 3, 0),
                    ("NvMxFp4E2M1", 3, 1),
                )
            ),
            "TQUANT dst src &exp &max &scaling &exp_zz?",
        ]
    ),
)
