"""Logical vectors and masks made, folded, converted and permuted; layouts are the compiler's."""

from __future__ import annotations

from pto.isa.meaning.vmi import shape as meaning
from pto.isa.row.instr import Attr, Result, instr, read
from pto.isa.rules.rule import Case, Rule, scalar_matches
from pto.isa.vmi.families import (
    DOC,
    GROUP,
    GROUPS_DIVIDE,
    MASK_RESULT,
    NUMBERS,
    PMODE,
    TD,
    family,
    mask,
    mask_width,
    same_elements,
    same_lanes,
    vector,
)

_ONE = "$source {} : types -> results"
_ORDER = Attr("order", "str", ("ASC", "DESC"), default="ASC")
MAKE = family("logical make", "lanes from scalars, slots and constants")

instr(
    "vmi.vbrc",
    MAKE,
    "a scalar or single lane everywhere, or slot g in every lane of group g",
    body=meaning.BROADCAST,
    operands=(read("value", "logical vreg or scalar"),),
    attrs=(GROUP,),
    text="$value {} : types -> results",
    profiles="a5",
    rules=(GROUPS_DIVIDE, scalar_matches("value", "result"), same_elements("value", "result")),
    aliases="vmi.broadcast vmi.group_broadcast",
    cite=DOC,
)
instr(
    "vmi.vci",
    MAKE,
    "base + i or base - i; with groups, counted anew in each",
    body=meaning.RAMP,
    operands=(read("base", "element"),),
    attrs=(_ORDER, GROUP),
    text="$base {} : types -> results",
    a5="i8 u8 i16 u16 i32 u32 f16 f32",
    profiles="a5",
    rules=(GROUPS_DIVIDE, scalar_matches("base", "result")),
    aliases="vmi.iota vmi.group_iota",
    cite=DOC,
)
instr(
    "vmi.constant",
    MAKE,
    "one value for all lanes, or one for each",
    body=meaning.CONSTANT,
    attrs=(Attr("value", "any", required=True),),
    text="{} : results",
    profiles="a5",
    cite=TD,
)

MASKS = family("logical masks", "which lanes are on")
instr(
    "vmi.create_mask",
    MASKS,
    "the first active_lanes lanes",
    body=meaning.CREATE_MASK,
    operands=(read("active_lanes", "index"),),
    results=MASK_RESULT,
    text="$active_lanes {} : types -> results",
    profiles="a5",
    cite=DOC,
)
instr(
    "vmi.create_group_mask",
    MASKS,
    "the first active_elems_per_group lanes of every group",
    body=meaning.CREATE_MASK,
    operands=(read("active_elems_per_group", "index"),),
    results=MASK_RESULT,
    attrs=(Attr("num_groups", "int", required=True), Attr("group_size", "int", required=True)),
    text="$active_elems_per_group {} : types -> results",
    profiles="a5",
    cite=DOC,
)
for _name in ("pset", "pge"):
    instr(
        f"vmi.{_name}",
        MASKS,
        "the lanes a pattern names, in every group",
        body=meaning.MASK_PATTERN,
        results=MASK_RESULT,
        attrs=(Attr("pattern", "str", required=True), GROUP),
        text="@pattern {} : results",
        profiles="a5",
        rules=(GROUPS_DIVIDE,),
        cite=TD,
    )
instr(
    "vmi.plt",
    MASKS,
    "the first scalar lanes, and how many are left for the next vector",
    body=meaning.MASK_REMAINING,
    operands=(read("scalar", "i32"),),
    results=(Result("mask", "logical mask"), Result("scalar_out", "i32")),
    text="$scalar {} : types -> results",
    profiles="a5",
    cite=TD,
)
instr(
    "vmi.constant_mask",
    MASKS,
    "one bit for all lanes, or one for each",
    body=meaning.CONSTANT,
    results=MASK_RESULT,
    attrs=(Attr("value", "any", required=True),),
    text="{} : results",
    profiles="a5",
    cite=TD,
)

# ---- folds

_REASSOC = Attr("reassoc", "unit", meaning="a sum of floats may be formed in any order")


def _slots(case: Case) -> str | None:
    result, word = case.type("result"), case.word("group") or "1"
    lanes = getattr(result, "lanes", None)
    return None if lanes in (None, int(word)) else f"result has {lanes} lanes, groups are {word}"


def _reassociates(case: Case) -> str | None:
    elem = case.elem("source")
    is_float = elem is not None and elem.is_float
    return (
        f"source is {elem.name}" if elem and is_float and "reassoc" not in case.op.attrs else None
    )


_REASSOCIATES = Rule("reassoc", "PTO-T108", "expects reassoc for a sum of floats", _reassociates)


def _channels(case: Case) -> str | None:
    """As many lanes on both sides, in channels of one type."""
    sides = [[v.type for v in vs] for vs in (case.op.operands, case.op.results)]
    for side in sides:
        if len(set(side)) > 1:
            return "its channels differ"
    counts = [sum(getattr(type, "lanes", 0) for type in side) for side in sides]
    return None if counts[0] == counts[1] else f"{counts[0]} and {counts[1]} lanes"


_CHANNELS = Rule(
    "channels", "PTO-S084", "expects channels of one type with as many lanes as all", _channels
)

REDUCE = family("logical reduction", "active lanes of a group become one", subject="source")
for _name, _meaning, _body, _attrs, _aliases in (
    ("vcadd", "sum", meaning.SUM, (GROUP, PMODE, _REASSOC), "addf addi"),
    ("vcmax", "maximum", meaning.LARGEST, (GROUP, PMODE), "maxf maxi"),
    ("vcmin", "minimum", meaning.SMALLEST, (GROUP, PMODE), "minf mini"),
):
    _olds = [f"vmi.{way}_{a}" for way in ("reduce", "group_reduce") for a in _aliases.split()]
    instr(
        f"vmi.{_name}",
        REDUCE,
        f"result[g] = the {_meaning} of the active lanes of group g",
        body=_body,
        operands=(vector("source"), mask("mask")),
        attrs=_attrs,
        text="$source , $mask {} : types -> results",
        a5=NUMBERS,
        profiles="a5",
        rules=(
            same_lanes("source", "mask"),
            same_elements("source", "result"),
            mask_width("source", "mask"),
            GROUPS_DIVIDE,
            *(_REASSOCIATES,) * (_name == "vcadd"),
            Rule("group-slots", "PTO-S084", "expects one lane for each group", _slots),
        ),
        aliases=" ".join(_olds),
        notes=("sums go by neighbours, those of floats in f32, and are rounded once",),
        cite=DOC,
    )

# ---- types

CONVERT = family("logical conversion", "lanes under another type", subject="source")
_ROUNDING = Attr("rounding", "str", ("R", "A", "H", "Z", "F", "C", "O"))
_SATURATE = Attr("saturate", "str", ("SAT", "NOSAT"))
for _name, _meaning, _body, _aliases in (
    ("vcvt", "source converted", meaning.CONVERT, "vmi.extf vmi.truncf vmi.trunci"),
    ("extsi", "source with its sign extended", meaning.CONVERT_SIGNED, "vmi.sitofp vmi.fptosi"),
    ("extui", "source with zeros in front", meaning.CONVERT_UNSIGNED, "vmi.fptoui"),
):
    instr(
        f"vmi.{_name}",
        CONVERT,
        _meaning,
        body=_body,
        operands=(vector("source"),),
        attrs=(_ROUNDING, _SATURATE, PMODE),
        text=_ONE,
        profiles="a5",
        rules=(same_lanes("source", "result"),),
        aliases=_aliases,
        notes=("signless integers count as unsigned beside integers, as signed beside floats",),
        cite=DOC if _name == "vcvt" else TD,
    )


def _same_bits(case: Case) -> str | None:
    sizes = [
        getattr(case.type(n), "lanes", 0)
        * (e.dtype.itemsize if (e := case.elem(n)) and e.dtype else 0)
        for n in ("source", "result")
    ]
    return None if sizes[0] == sizes[1] else f"{sizes[0]} and {sizes[1]} bytes"


instr(
    "vmi.vinterpret_cast",
    CONVERT,
    "the same bits as lanes of another type",
    body=meaning.REINTERPRET,
    operands=(vector("source"),),
    text=_ONE,
    profiles="a5",
    rules=(Rule("same-bits", "PTO-S084", "expects source and result of one size", _same_bits),),
    aliases="vmi.bitcast",
    cite=DOC,
)
for _name, _kind in (
    ("ensure_layout", "logical vreg"),
    ("ensure_mask_layout", "logical mask"),
    ("ensure_mask_granularity", "logical mask"),
):
    instr(
        f"vmi.{_name}",
        family("logical layout", "where a compiler keeps lanes; their values stay"),
        "source, kept in another way",
        body=meaning.SAME,
        operands=(read("source", _kind),),
        results=(Result("result", _kind),),
        text=_ONE,
        profiles="a5",
        rules=(same_lanes("source", "result"),),
        cite=TD,
    )
_LAID_OUT = "!pto.vmi.vreg<64xf32, #pto.vmi.layout<contiguous>>"
for _name, _ins, _outs, _example in (
    (
        "pack",
        (read("parts*", "any"),),
        (Result("result", "logical vreg or mask"),),
        f"%result = pto.vmi.pack %part : !pto.vreg<64xf32> -> {_LAID_OUT}",
    ),
    (
        "unpack",
        (read("source", "logical vreg or mask"),),
        (),
        f"%part = pto.vmi.unpack %source : {_LAID_OUT} -> !pto.vreg<64xf32>",
    ),
):
    instr(
        f"vmi.{_name}",
        family("logical layout", "where a compiler keeps lanes; their values stay"),
        "between a logical value and its registers, by the layout of its type",
        operands=_ins,
        results=_outs,
        text=f"{'$parts*' if _name == 'pack' else '$source'} {{}} : types -> results",
        profiles="a5",
        notes=("a step inside the compiler: which lanes a register holds is its matter",),
        example=_example,
        cite=TD,
    )

# ---- order of lanes

REARRANGE = family("logical rearrangement", "lanes in another order")
for _name, _meaning, _body in (
    ("vintlv", "lanes of lhs and rhs in turn: the first half, the second half", meaning.INTERLEAVE),
    ("vdintlv", "even and odd lanes of lhs followed by rhs", meaning.DEINTERLEAVE),
):
    instr(
        f"vmi.{_name}",
        REARRANGE,
        _meaning,
        body=_body,
        operands=(vector("lhs"), vector("rhs"), mask("mask")),
        results=(Result("low", "logical vreg"), Result("high", "logical vreg")),
        attrs=(PMODE,),
        text="$lhs , $rhs , $mask {} : types -> results",
        profiles="a5",
        rules=(
            same_lanes("lhs", "rhs", "mask", "low", "high"),
            same_elements("lhs", "rhs", "low", "high"),
        ),
        cite=DOC,
    )
instr(
    "vmi.vselr",
    REARRANGE,
    "source[index[i]]",
    body=meaning.BY_INDEX,
    operands=(vector("source"), vector("index")),
    text="$source , $index {} : types -> results",
    profiles="a5",
    rules=(same_lanes("index", "result"), same_elements("source", "result")),
    cite=DOC,
)
instr(
    "vmi.shuffle",
    REARRANGE,
    "source[indices[i]], the indices written in the program",
    body=meaning.SHUFFLE,
    operands=(vector("source"),),
    attrs=(Attr("indices", "any", required=True),),
    text=_ONE,
    profiles="a5",
    rules=(same_elements("source", "result"),),
    cite=TD,
)
instr(
    "vmi.channel_split",
    REARRANGE,
    "result c holds the lanes c, c + N, c + 2 N, ... of source",
    body=meaning.SPLIT,
    operands=(vector("source"),),
    results=(),
    rules=(_CHANNELS,),
    text=_ONE,
    example="%even, %odd = pto.vmi.channel_split %source : !pto.vmi.vreg<128xf32>"
    " -> !pto.vmi.vreg<64xf32>, !pto.vmi.vreg<64xf32>",
    profiles="a5",
    cite=TD,
)
instr(
    "vmi.channel_merge",
    REARRANGE,
    "the lanes of the inputs in turn",
    body=meaning.MERGE,
    operands=(read("inputs*", "logical vreg"),),
    rules=(_CHANNELS,),
    text="$inputs* {} : types -> results",
    profiles="a5",
    cite=TD,
)
instr(
    "vmi.compress",
    REARRANGE,
    "the active lanes of source moved to the front, 0 behind them",
    body=meaning.COMPRESS,
    operands=(vector("source"), mask("mask")),
    text="$source , $mask {} : types -> results",
    profiles="a5",
    rules=(same_lanes("source", "mask", "result"), same_elements("source", "result")),
    cite=TD,
)
instr(
    "vmi.active_prefix_index",
    REARRANGE,
    "how many lanes before i are active",
    body=meaning.PREFIX,
    operands=(mask("mask"),),
    text="$mask {} : types -> results",
    a5="i8 u8 i16 u16 i32 u32",
    profiles="a5",
    rules=(same_lanes("mask", "result"),),
    cite=TD,
)
