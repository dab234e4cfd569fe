"""Logical vectors and masks made, folded, converted and permuted; layouts are the compiler's."""

from __future__ import annotations

import re

from pto.core.constants import VREG_BYTES
from pto.isa.meaning.vmi import shape as meaning
from pto.isa.row import types as t
from pto.isa.row.attributes import Ints, Raw
from pto.isa.row.instr import Attr, Result, read
from pto.isa.rules.buffer import same_width
from pto.isa.rules.rule import Case, dtype_in, rule, scalar_matches
from pto.isa.vmi.families import (
    DOC,
    GENERIC,
    GROUP,
    INTEGERS,
    MASK_RESULT,
    NUMBERS,
    PMODE,
    TD,
    family,
    groups_divide,
    lane_a_group,
    mask,
    mask_width,
    same_elements,
    same_lanes,
    vector,
)

_ORDER = Attr("order", "str", ("ASC", "DESC"), default="ASC")
MAKE = family("logical make", "lanes from scalars, slots and constants")


MAKE.row(
    "vmi.vbrc",
    "a scalar or single lane everywhere, or slot g in every lane of group g",
    body=meaning.BROADCAST,
    operands=read("value", "logical vreg or scalar"),
    attrs=GROUP,
    rules=(
        groups_divide,
        scalar_matches("value", "result"),
        same_elements("value", "result"),
        lane_a_group("one-a-group", "value", "group"),
    ),
    aliases="vmi.broadcast vmi.group_broadcast",
)
MAKE.row(
    "vmi.vci",
    "base + i or base - i; with groups, counted anew in each",
    body=meaning.RAMP,
    operands=read("base", "element"),
    attrs=(_ORDER, GROUP),
    a5="i8 u8 i16 u16 i32 u32 f16 f32",
    rules=(groups_divide, scalar_matches("base", "result")),
    aliases="vmi.iota vmi.group_iota",
)
_DENSE_TEXT = re.compile(r"dense<(.*)>\s*:\s*(?:tensor|vector)<(\d+)x(\w+)>", re.DOTALL)
_LITERAL = re.compile(r"true|false|[-+]?(0[xX][\da-fA-F]+|\d+(\.\d*)?([eE][-+]?\d+)?)")


@rule("PTO-S084", "expects one value for each lane of result")
def _dense(case: Case) -> str | None:
    value, type = case.op.attrs.get("value"), case.type("result")
    match = _DENSE_TEXT.fullmatch(value.text) if isinstance(value, Raw) else None
    if match is None:
        return "it is not a list"
    lanes, elem = int(match[2]), match[3]
    words = [word.strip() for word in match[1].strip("[] \n").split(",")]
    if wrong := [word for word in words if not _LITERAL.fullmatch(word)]:
        return f"`{wrong[0]}` is not a number"
    if len(words) not in (1, lanes):
        return f"it lists {len(words)} of {lanes}"
    if isinstance(type, t.LogicalVReg) and (lanes, elem) != (type.lanes, type.elem.name):
        return f"it is {lanes}x{elem}, result is {type.lanes}x{type.elem.name}"
    if isinstance(type, t.LogicalMask) and (lanes, elem) != (type.lanes, "i1"):
        return f"it is {lanes}x{elem}, a mask of {type.lanes} lanes holds i1"
    return None


MAKE.row(
    "vmi.constant",
    "one value for all lanes, or one for each",
    body=meaning.CONSTANT,
    cite=TD,
    attrs=Attr("value", "any", required=True),
    traits=GENERIC,
    text="{} : results",
    rules=_dense,
)

MASKS = family("logical masks", "which lanes are on", results=MASK_RESULT, cite=TD)
MASKS.row(
    "vmi.create_mask",
    "the first active_lanes lanes",
    body=meaning.CREATE_MASK,
    operands=read("active_lanes", "index"),
    cite=DOC,
)


@rule("PTO-S084", "expects num_groups x group_size lanes")
def _group_lanes(case: Case) -> str | None:
    lanes = getattr(case.type("result"), "lanes", None)
    groups, size = (int(case.word(n) or 0) for n in ("num_groups", "group_size"))
    return None if lanes in (None, groups * size) else f"{groups} x {size} are not {lanes}"


MASKS.row(
    "vmi.create_group_mask",
    "the first active_elems_per_group lanes of every group",
    body=meaning.CREATE_MASK,
    operands=read("active_elems_per_group", "index"),
    attrs=(Attr("num_groups", "int", required=True), Attr("group_size", "int", required=True)),
    rules=_group_lanes,
    cite=DOC,
)
for _name in ("pset", "pge"):
    MASKS.row(
        f"vmi.{_name}",
        "the lanes a pattern names, in every group",
        body=meaning.MASK_PATTERN,
        attrs=(Attr("pattern", "str", ("PAT_ALL",) * (_name == "pset"), required=True), GROUP),
        text="@pattern {} : results",
        rules=groups_divide,
    )
MASKS.row(
    "vmi.plt",
    "the first scalar lanes, and how many are left for the next vector",
    body=meaning.MASK_REMAINING,
    operands=read("scalar", "i32"),
    results=(Result("mask", "logical mask"), Result("scalar_out", "i32")),
)
MASKS.row(
    "vmi.constant_mask",
    "one bit for all lanes, or one for each",
    body=meaning.CONSTANT,
    attrs=Attr("value", "any", required=True),
    traits=GENERIC,
    text="{} : results",
    rules=_dense,
)

# ---- folds

_REASSOC = Attr("reassoc", "unit", meaning="a sum of floats may be formed in any order")


@rule("PTO-T108", "expects reassoc for a sum of floats")
def _reassoc(case: Case, source: t.Scalar) -> str | None:
    wrong = source.is_float and "reassoc" not in case.op.attrs
    return f"source is {source.name}" if wrong else None


@rule("PTO-S084", "expects channels of one type, with as many lanes in total as the vector")
def _channels(case: Case) -> str | None:
    """As many lanes on both sides, in channels of one type."""
    sides = [[v.type for v in vs] for vs in (case.op.operands, case.op.results)]
    for side in sides:
        if len(set(side)) > 1:
            return "its channels differ"
    if max(map(len, sides)) < 2:
        return "there is one channel"
    counts = [sum(getattr(type, "lanes", 0) for type in side) for side in sides]
    return None if counts[0] == counts[1] else f"{counts[0]} and {counts[1]} lanes"


@rule("PTO-S084", "expects a source with one part for each result")
def _channel_layout(case: Case) -> str | None:
    """A source that a compiler keeps apart is kept in as many parts as there are results."""
    layout = getattr(case.type("source"), "layout", "")
    parts = re.search(r"deinterleaved = (\d)", layout)
    same = parts is None or int(parts[1]) == len(case.op.results)
    return None if same else f"{len(case.op.results)} results of {layout}"


_KEPT = re.compile(r"#pto\.vmi\.layout<(?:contiguous|deinterleaved = (\d))>")


@rule("PTO-S084", "expects a register for each 256 bytes")
def _parts(case: Case) -> str | None:
    """Each part of a vector that is kept apart begins with a register of its own."""
    vector = case.type("result") or case.type("source")
    if not isinstance(vector, t.LogicalVReg) or vector.elem.dtype is None:
        return None
    match = _KEPT.fullmatch(vector.layout)
    if match is None:
        return None
    apart = int(match[1] or 1)
    part_bytes = -(-vector.lanes // apart) * vector.elem.dtype.itemsize
    wanted = apart * -(-part_bytes // VREG_BYTES)
    count = len(case.op.results if case.type("source") else case.op.operands)
    return None if count == wanted else f"{count} registers, it takes {wanted}"


REDUCE = family(
    "logical reduction",
    "active lanes of a group become one",
    operands=(vector("source"), mask("mask")),
    rules=(
        same_lanes("source", "mask"),
        same_elements("source", "result"),
        mask_width("source", "mask"),
        groups_divide,
    ),
    types={"a5": NUMBERS},
    subject="source",
)
for _name, _meaning, _body, _attrs, _aliases in (
    ("vcadd", "sum", meaning.SUM, (GROUP, PMODE, _REASSOC), "addf addi"),
    ("vcmax", "maximum", meaning.LARGEST, (GROUP, PMODE), "maxf maxi"),
    ("vcmin", "minimum", meaning.SMALLEST, (GROUP, PMODE), "minf mini"),
):
    _olds = [f"vmi.{way}_{a}" for way in ("reduce", "group_reduce") for a in _aliases.split()]
    REDUCE.row(
        f"vmi.{_name}",
        f"result[g] = the {_meaning} of the active lanes of group g",
        body=_body,
        attrs=_attrs,
        rules=(
            *(_reassoc,) * (_name == "vcadd"),
            lane_a_group("group-slots", "result", "group"),
        ),
        aliases=" ".join(_olds),
        notes="sums go by neighbours, those of floats in f32, and are rounded once",
    )

# ---- where a compiler keeps lanes


@rule("PTO-T081", "expects types with a layout or granularity")
def _laid_out(case: Case) -> str | None:
    """Layouts of vectors and granularities of masks, which a compiler adds when it assigns them."""
    by_width = case.row.name.endswith("granularity")
    types = [(name, case.type(name)) for name in ("source", "result")]
    registers = [(n, k) for n, k in types if isinstance(k, t.LogicalVReg | t.LogicalMask)]
    for name, type in registers:
        if by_width and getattr(type, "granularity", "") in ("", "pred"):
            return f"{name} has no granularity"
        if not by_width and not type.layout:
            return f"{name} has no layout"
    if len({bool(type.layout) for _, type in registers}) > 1:
        return "one of source and result has a layout"
    return None


LAYOUT = family("logical layout", "where a compiler keeps lanes; their values stay", cite=TD)
for _name, _kind in (
    ("ensure_layout", "logical vreg"),
    ("ensure_mask_layout", "logical mask"),
    ("ensure_mask_granularity", "logical mask"),
):
    LAYOUT.row(
        f"vmi.{_name}",
        "source, kept in another way",
        body=meaning.SAME,
        operands=read("source", _kind),
        results=Result("result", _kind),
        rules=(same_lanes("source", "result"), same_elements("source", "result"), _laid_out),
    )
_LAID_OUT = "!pto.vmi.vreg<64xf32, #pto.vmi.layout<contiguous>>"
_INSIDE = "a step inside the compiler: which lanes a register holds is its matter"
_BETWEEN = "between a logical value and its registers, by the layout of its type"
LAYOUT.row(
    "vmi.pack",
    _BETWEEN,
    operands=read("parts*", "any"),
    results=Result("result", "logical vreg or mask"),
    traits=GENERIC,
    rules=_parts,
    notes=_INSIDE,
    example=f"%result = pto.vmi.pack %part : !pto.vreg<64xf32> -> {_LAID_OUT}",
)
LAYOUT.row(
    "vmi.unpack",
    _BETWEEN,
    operands=read("source", "logical vreg or mask"),
    results=(),
    traits=GENERIC,
    rules=_parts,
    notes=_INSIDE,
    example=f"%part = pto.vmi.unpack %source : {_LAID_OUT} -> !pto.vreg<64xf32>",
)

# ---- order of lanes

REARRANGE = family("logical rearrangement", "lanes in another order", cite=TD)
for _name, _meaning, _body in (
    ("vintlv", "lanes of lhs and rhs in turn: the first half, the second half", meaning.INTERLEAVE),
    ("vdintlv", "even and odd lanes of lhs followed by rhs", meaning.DEINTERLEAVE),
):
    REARRANGE.row(
        f"vmi.{_name}",
        _meaning,
        body=_body,
        operands=(vector("lhs"), vector("rhs"), mask("mask")),
        results=(Result("low", "logical vreg"), Result("high", "logical vreg")),
        attrs=PMODE,
        rules=(
            same_lanes("lhs", "rhs", "mask", "low", "high"),
            same_elements("lhs", "rhs", "low", "high"),
        ),
        cite=DOC,
    )
REARRANGE.row(
    "vmi.vselr",
    "source[index[i]]",
    body=meaning.BY_INDEX,
    operands=(vector("source"), vector("index")),
    rules=(
        same_lanes("index", "result"),
        same_elements("source", "result"),
        same_width("index", "source"),
        dtype_in("index", INTEGERS),
    ),
    cite=DOC,
)


@rule("PTO-S084", "expects each index to be a lane of source")
def _shuffle_indices(case: Case) -> str | None:
    listed, source = case.op.attrs.get("indices"), getattr(case.type("source"), "lanes", 0)
    lanes = getattr(case.type("result"), "lanes", None)
    if not isinstance(listed, Ints) or lanes is None:
        return None
    places = listed.values
    if len(places) != lanes:
        return f"there are {len(places)} indices for {lanes} lanes"
    wild = [n for n in places if not 0 <= n < source]
    return f"index {wild[0]} of {source} lanes" if wild else None


REARRANGE.row(
    "vmi.shuffle",
    "source[indices[i]], the indices written in the program",
    body=meaning.SHUFFLE,
    operands=vector("source"),
    attrs=Attr("indices", "any", required=True),
    traits=GENERIC,
    rules=(same_elements("source", "result"), _shuffle_indices),
)
REARRANGE.row(
    "vmi.channel_split",
    "result c holds the lanes c, c + N, c + 2 N, ... of source",
    body=meaning.SPLIT,
    operands=vector("source"),
    results=(),
    rules=(_channels, _channel_layout),
    traits=GENERIC,
    example="%even, %odd = pto.vmi.channel_split %source : !pto.vmi.vreg<128xf32>"
    " -> !pto.vmi.vreg<64xf32>, !pto.vmi.vreg<64xf32>",
)
REARRANGE.row(
    "vmi.channel_merge",
    "the lanes of the inputs in turn",
    body=meaning.MERGE,
    operands=read("inputs*", "logical vreg"),
    rules=_channels,
    traits=GENERIC,
)
REARRANGE.row(
    "vmi.compress",
    "the active lanes of source moved to the front, 0 behind them",
    body=meaning.COMPRESS,
    operands=(vector("source"), mask("mask")),
    rules=(same_lanes("source", "mask", "result"), same_elements("source", "result")),
)
REARRANGE.row(
    "vmi.active_prefix_index",
    "how many lanes before i are active",
    body=meaning.PREFIX,
    operands=mask("mask"),
    a5="i8 u8 i16 u16 i32 u32",
    rules=same_lanes("mask", "result"),
)
