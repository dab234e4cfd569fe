"""Rules of data movement: paths between buffers, conversions of elements, windows.

Rules for global memory are in `global_memory.py`; rules of a single row are in its file.
"""

from __future__ import annotations

from operator import attrgetter

from pto.core.layout import SLayout
from pto.core.tile import TileType
from pto.isa.row import types as t
from pto.isa.row.instr import Attr
from pto.isa.rules.rule import LIBRARY, Case, dims, odd_one, rule, rule_of
from pto.isa.rules.windows import in_source

RELU = Attr("reluPreMode", "relu_pre_mode", default="no_relu", meaning="clip at 0 on the way out")
ACC_TO_VEC = Attr("accToVecMode", "acc_to_vec_mode", meaning="which vector sub-blocks get the tile")
PAIRS = Attr(
    "turnPairs",
    "bool",
    meaning="of a packed type: two values in a byte lie along the other axis in src than in dst",
)
_QUANT = ("fp", "preQuantScalar")  # operands that scale accumulator elements

# Types of matrix operands, and types that accumulator elements become with or without a scale:
# pto-isa TMov.hpp, TStore.hpp; the fp8 results are those of PTOAS's verifier.
CUBE_A2A3 = "i8 f16 bf16 f32"
CUBE_A5 = "i8 f8e4m3 f8e5m2 hifloat8 f16 bf16 f32 float4_e1m2x2 float4_e2m1x2"
PLAIN_A2A3 = "f32:f16,bf16"
PLAIN_A5 = "f32:f16,bf16,f32 i32:i32"
SCALED_A2A3 = "f32:i8 i32:i8,u8,f16,i16"
SCALED_A5 = "f32:i8,u8,f16,bf16,f32,hifloat8,f8e4m3,f8e5m2 i32:i8,u8,f16,bf16"
STORED_A5 = SCALED_A5.replace(",f8e5m2", "")  # a store has no such mode

# PTO manual, Compact Mode in TEXTRACT: the layouts a mode goes from and to. The manual's left tile
# (RowMajor, RowMajor) is ZZ by its orders. SPLIT2 and SPLIT4: pto-isa TInsert.hpp.
_FLAT, _BOXED = ("ND",), ("NZ", "ZZ")
_MODES = {
    "ND2NZ": (_FLAT, _BOXED),
    "NZ2ND": (_BOXED, _FLAT),
    "ND": (_FLAT, _FLAT),
    "ND2NZ2": (_FLAT, _BOXED),
    "SPLIT2": (_BOXED, _BOXED),
    "SPLIT4": (_BOXED, _BOXED),
}


def unlike_widths(case: Case, *names: str) -> str | None:
    """A text that names the first operand with elements of another width than those of the last."""
    elems = [(n, e) for n in names if (e := case.elem(n)) is not None and e.itemsize]
    return odd_one(elems, attrgetter("name"), lambda a, b: a.itemsize == b.itemsize)


@rule("PTO-T060", "expects src and dst to have elements of one size")
def same_size(case: Case) -> str | None:
    """Moves copy bytes; elements change their type only on the way out of an accumulator."""
    is_acc, as_values = case.role("src") == "acc", case.profile.scaling.unlike == "values"
    return None if is_acc or as_values else unlike_widths(case, "src", "dst")


@rule_of("PTO-T065", "expects {names} to have one type")
def same_type(case: Case, *names: str) -> str | None:
    """Types that agree in everything, the valid region and the pad included."""
    types = [(name, case.type(name)) for name in names]
    present = [(name, type) for name, type in types if type is not None]
    for name, type in present[:-1]:
        if type != present[-1][1]:
            return f"{name} and {present[-1][0]} differ{_fields(type, present[-1][1])}"
    return None


def _fields(a: t.Type, b: t.Type | None) -> str:
    if not isinstance(a, t.TileBuf) or not isinstance(b, t.TileBuf):
        return ""
    pairs = {
        "shape": (dims(*a.tile.shape), dims(*b.tile.shape)),
        "valid": (dims(*a.tile.valid), dims(*b.tile.valid)),
        "dtype": (a.elem.name, b.elem.name),
        "layout": (str(a.tile.layout), str(b.tile.layout)),
        "pad": (a.tile.pad.name, b.tile.pad.name),
    }
    return "".join(f", {name} {x} and {y}" for name, (x, y) in pairs.items() if x != y)


@rule("PTO-T069", "expects src to have elements of 1, 2 or 4 bytes")
def item_size(src: t.Scalar) -> str | None:
    """The units that shuffle elements know those of 1, 2 and 4 bytes."""
    return None if src.itemsize in (None, 1, 2, 4) else f"src is {src.name}"


@rule_of("PTO-L060", "expects {a} and {b} in one buffer")
def same_role(case: Case, a: str, b: str) -> str | None:
    """Two names of the same storage must be in the same buffer."""
    here, there = case.role(a), case.role(b)
    if here is None or there is None or here == there:
        return None
    return f"{a} is in {here}, {b} in {there}"


@rule_of("PTO-L060", "expects a path that exists: {pairs:,}")
def joined(case: Case, pairs: str, with_mode: str = "") -> str | None:
    """`pairs` are the paths of the hardware, `with_mode` those that need a `mode` attribute."""
    source, target = case.role("src"), case.role("dst")
    path = f"{source}->{target}"
    opened = with_mode if "mode" in case.op.attrs else ""
    fits = None in (source, target) or path in (*pairs.split(), *opened.split())
    return None if fits else f"it is {path}"


def _becomes(text: str) -> dict[str, tuple[str, ...]]:
    """`f32:f16,bf16 i32:i32` as a table."""
    entries = (word.partition(":") for word in text.split())
    return {source: tuple(targets.split(",")) for source, _, targets in entries}


@rule_of("PTO-T061", "expects dst to have a type the accumulator converts to")
def acc_types(case: Case, plain: str, quant: str) -> str | None:
    """The result types of the fixpipe for accumulator elements, without and with a scale."""
    a, b = case.elem("src"), case.elem("dst")
    if case.role("src") != "acc" or a is None or b is None:
        return None
    scaled = any(case.op.operand(name) is not None for name in _QUANT)
    table = _becomes(quant if scaled else plain)
    reached = {word for name in a.names for word in table.get(name, ())}
    if reached & set(b.names):
        return None
    how = "with a scale" if scaled else "without a scale"
    goes = f"{how} {a.name} becomes {' '.join(sorted(reached)) or 'nothing'}"
    return f"src is {a.name}, dst is {b.name} ({goes})"


WINDOW_TYPES = (  # of windows of accumulators
    acc_types(PLAIN_A2A3, SCALED_A2A3).on("a2a3"),
    acc_types(PLAIN_A5, SCALED_A5).on("a5"),
)


@rule_of("PTO-T068", "expects elements that the path out of mat carries", id="mat-types")
def carried(case: Case, table: dict[str, str]) -> str | None:
    """The element types that reach each destination from L1; `a:b` where they change."""
    src = case.elem("src")
    dst = case.elem("dst")
    role = case.role("dst") or ""
    words = table.get(role, "").split()
    if case.role("src") != "mat" or src is None or dst is None or not words:
        return None
    pairs = [(w.partition(":")[0], w.rpartition(":")[2]) for w in words]
    if any(a in src.names and b in dst.names for a, b in pairs):
        return None
    return f"{src.name} to {dst.name} in {role} ({' '.join(words)})"


@rule("PTO-L063", "expects the fractal of a mat dst to be 512 when src is acc")
def _fractal_512(dst: TileType) -> str | None:
    """The fixpipe writes boxes of 512 bytes to L1."""
    return None if dst.layout.fractal == 512 else f"it is {dst.layout.fractal}"


FRACTAL_512 = _fractal_512.into("mat").out_of("acc")


def regroups(case: Case) -> bool:
    """True for a move of MX exponents from vec to vec, which groups them; its second tile is
    scratch."""
    return case.role("src") == "vec" and case.role("dst") == "vec"


@rule("PTO-T062", "expects fp, preQuantScalar and reluPreMode with an acc source only")
def acc_options(case: Case) -> str | None:
    """Scaling and clipping need an accumulator as src: only the fixpipe does them."""
    options = [name for name in _QUANT if case.op.operand(name) is not None]
    if case.word("reluPreMode") not in (None, "no_relu"):
        options.append("reluPreMode")
    role, anywhere = case.role("src"), case.profile.scaling.sources == "any"
    if not options or role in (None, "acc") or anywhere or (options == ["fp"] and regroups(case)):
        return None
    return f"{options[0]} is given, src is in {role}"


@rule("PTO-T062", "expects accToVecMode on the path acc->vec only")
def acc_to_vec(case: Case) -> str | None:
    path = (case.role("src"), case.role("dst"))
    if "accToVecMode" not in case.op.attrs or None in path or path == ("acc", "vec"):
        return None
    return f"it is {path[0]}->{path[1]}"


@rule("PTO-T064", "expects one of fp and preQuantScalar, and neither with a dual accToVecMode")
def quant_forms(case: Case) -> str | None:
    """At most one scale, and none if the tile is split between both vector sub-blocks."""
    options = [name for name in _QUANT if case.op.operand(name) is not None]
    if len(options) > 1:
        return "fp and preQuantScalar are both given"
    mode = case.word("accToVecMode") or ""
    return f"{options[0]} with {mode}" if options and mode.startswith("dual") else None


@rule("PTO-S020", "expects src and dst to have one shape", id="same-shape")
def one_shape(case: Case, src: TileType, dst: TileType) -> str | None:
    """src and dst must have the same shape; counted in values if their pairs lie along different
    axes."""
    fits = in_source(case, dst.shape) == src.shape
    return None if fits else f"src is {dims(*src.shape)}, dst is {dims(*dst.shape)}"


@rule(
    LIBRARY,
    "expects boxes of one order for packed pairs, which boxes of the other turn",
    severity="warning",
)
def pairs_kept(case: Case) -> str | None:
    """The chip turns the pairs on the way to boxes of the other order, and only there."""
    tiles = [tile for tile in (case.tile("src"), case.tile("dst")) if tile is not None]
    orders = {tile.layout.slayout for tile in tiles if tile.layout.is_boxed}
    if len(orders) < 2 or not tiles[0].dtype.is_packed or case.word("turnPairs") == "true":
        return None
    return f"src is {tiles[0].layout.name}, dst is {tiles[1].layout.name}"


@rule("PTO-T064", "expects turnPairs with tiles of one packed type, in boxes of different orders")
def pairs_turned(case: Case, src: TileType, dst: TileType) -> str | None:
    """Pairs change their axis from L1 to an operand of the matrix unit, in boxes of both orders."""
    if case.word("turnPairs") != "true":
        return None
    if not src.dtype.is_packed or src.dtype is not dst.dtype:
        return f"src is {src.dtype.name}, dst is {dst.dtype.name}"
    orders = {tile.layout.slayout for tile in (src, dst)}
    boxes = {SLayout.ROW_MAJOR, SLayout.COL_MAJOR}
    return None if orders == boxes else f"src is {src.layout.name}, dst is {dst.layout.name}"


@rule("PTO-L062", "expects mode to name the layouts of src and dst")
def mode_agrees(mode: str, src: TileType, dst: TileType) -> str | None:
    """A written mode must match the layouts of the tiles, which decide (decisions_isa.md)."""
    sources, targets = _MODES[mode]
    if src.layout.name in sources and dst.layout.name in targets:
        return None
    return f"mode is {mode}, src is {src.layout.name}, dst is {dst.layout.name}"


@rule(LIBRARY, "expects src and dst in UB to have one layout", severity="warning")
def keeps_layout(src: TileType, dst: TileType) -> str | None:
    """a2a3/TMov.hpp copies rows of UB without a change of layout, so the layouts must be equal."""
    outside, line = {src.role.value, dst.role.value} != {"vec"}, 1 in (*src.shape, *dst.shape)
    fits = outside or line or src.layout.name == dst.layout.name
    return None if fits else f"src is {src.layout.name}, dst {dst.layout.name}"
