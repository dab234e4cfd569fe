"""Logical vectors from and to UB; loads have no mask, stores write only active lanes."""

from __future__ import annotations

from dataclasses import replace

from pto.isa.meaning.vmi import memory as meaning
from pto.isa.row.instr import Attr, Result, index, read, write
from pto.isa.rules.rule import Case, dtype_in, rule, rule_of
from pto.isa.vmi.families import (
    GROUP,
    MASK,
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

_SOURCE = (read("source", "ub buffer"), read("offset", "index"))
_TARGET = (write("destination", "ub buffer"), read("offset", "index"))
_BLOCKS = read("block_stride?", "i16")
_REPEAT = read("repeat_stride?", "i16")
_STRIDE = read("stride?", "index")
_INDICES = "i16 u16 i32 u32"
_MODES = Attr(
    "dist_mode",
    "str",
    ("continuous", "unpack", "brc", "dintlv"),
    default="continuous",
    meaning="a run; narrow elements in wide lanes; one element everywhere; even and odd ones",
)


@rule("PTO-T089", "expects at most one of group, dist_mode and block_stride")
def _one_way(case: Case) -> str | None:
    alone = ("continuous", "brc") if case.word("group") and case.op.results else ("continuous",)
    ways = {
        "group": case.word("group") is not None,
        "dist_mode": "dist_mode" in case.op.attrs and case.word("dist_mode") not in alone,
        "block_stride": case.op.operand("block_stride") is not None,
    }
    ways_present = [name for name, is_given in ways.items() if is_given]
    if len(ways_present) > 1:
        return f"{' and '.join(ways_present)} are given"
    if (case.op.operand("stride") is not None) is not ways["group"]:
        return "stride goes with group, and only with it"
    if case.op.operand("repeat_stride") is not None and not ways["block_stride"]:
        return "repeat_stride goes with block_stride"
    return None


@rule("PTO-T089", "expects no mask with group")
def _group_mask(case: Case) -> str | None:
    return "both are given" if case.word("group") and case.op.operand("mask") else None


@rule("PTO-T089", "expects two results with dintlv, one otherwise")
def _pair(case: Case) -> str | None:
    two = len(case.op.results) == 2
    return (
        None if two is (case.word("dist_mode") == "dintlv") else f"{len(case.op.results)} results"
    )


@rule("PTO-T089", "expects two values with dintlv only")
def _two_values(case: Case) -> str | None:
    two, mode = case.op.operand("second") is not None, case.word("dist_mode")
    return None if two is (mode == "dintlv") else f"{1 + two} values, dist_mode is {mode}"


@rule("PTO-T089", "expects no merge in a store")
def _no_merge(case: Case) -> str | None:
    return "pmode is merge" if case.word("pmode") == "merge" else None


# A store leaves memory alone where its mask is off; there is nothing to merge with.


@rule_of("PTO-T090", "expects {lanes} to have the elements of {place}")
def _of_memory(case: Case, lanes: str, place: str) -> str | None:
    """Elements are read and written as they are; only `unpack` widens them."""
    a, b = case.elem(lanes), case.elem(place)
    if a is None or b is None or case.word("dist_mode") == "unpack" or a == b:
        return None
    cut = case.word("group") is not None and a.is_integer and b.is_integer  # slots are wide
    if cut or set(a.names) & set(b.names):
        return None
    return f"{lanes} is {a.name}, {place} {b.name}"


LOAD = family("logical load", "lanes from UB", rules=(_of_memory("result", "source"),))
STORE = family(
    "logical store",
    "active lanes to UB",
    results=(),
    subject="value",
    rules=(_of_memory("value", "destination"),),
)

LOAD.row(
    "vmi.vload",
    "L elements from source + offset: a run, a row a group (brc: one element a group), 32-byte"
    " blocks, or by dist_mode",
    body=meaning.LOAD,
    operands=(*_SOURCE, _STRIDE, _BLOCKS, _REPEAT),
    results=(Result("result", "logical vreg"), Result("odd", "logical vreg", optional=True)),
    attrs=(_MODES, GROUP, PMODE),
    text="$source [ $offset ] <? , $stride > <? , $block_stride <? , $repeat_stride > > {}"
    " : types(source,stride?,block_stride?,repeat_stride?) -> results",
    aliases="vmi.load",
    rules=(
        _one_way,
        groups_divide,
        _pair,
        same_lanes("result", "odd"),
        same_elements("result", "odd"),
    ),
    notes=("odd is the second result of dintlv", "blocks are block_stride blocks apart"),
)
STORE.row(
    "vmi.vstore",
    "active lanes to destination + offset: a run, a row a group, or 32-byte blocks",
    body=meaning.STORE,
    operands=(
        vector("value"),
        read("second?", "logical vreg"),
        *_TARGET,
        _STRIDE,
        _BLOCKS,
        _REPEAT,
        MASK,
    ),
    attrs=(_MODES, GROUP, PMODE),
    text="$value <? , $second > , $destination [ $offset ] <? , $stride >"
    " <? , $block_stride <? , $repeat_stride > > <? , $mask > {}"
    " : types(value,second,destination,stride?,block_stride?,repeat_stride?,mask)",
    generic="value+second* destination offset stride? block_stride? repeat_stride? mask*",
    aliases="vmi.store vmi.masked_store",
    rules=(
        _two_values,
        _one_way,
        groups_divide,
        _no_merge,
        same_lanes("value", "second", "mask"),
        same_elements("value", "second"),
        mask_width("value", "mask"),
        _group_mask,
    ),
    notes="second is interleaved with value",
)
STORE.row(
    "vmi.vsstb",
    "active lanes to 32-byte blocks that are block_stride blocks apart",
    body=meaning.STORE,
    operands=(vector("value"), *_TARGET, read("block_stride", "i16"), mask("mask")),
    attrs=PMODE,
    text="$value , $destination [ $offset ] , $block_stride , $mask {}"
    " : types(value,destination,block_stride?,mask)",
    rules=(
        same_lanes("value", "mask"),
        mask_width("value", "mask"),
        _no_merge,
    ),
)
LOAD.row(
    "vmi.vgather",
    "mask[i] ? UB[source + offsets[i] elements] : 0",
    body=meaning.GATHER,
    operands=(read("source", "ub buffer"), index("offsets", "logical vreg"), mask("mask")),
    attrs=PMODE,
    rules=(same_lanes("offsets", "mask", "result"), dtype_in("offsets", _INDICES)),
)
LOAD.row(
    "vmi.vgatherb",
    "32-byte blocks from source + offsets[b] bytes, under the mask of their lanes",
    body=meaning.GATHER_BLOCKS,
    operands=(read("source", "ub buffer"), index("offsets", "logical vreg"), mask("mask")),
    attrs=PMODE,
    rules=(same_lanes("mask", "result"), dtype_in("offsets", _INDICES)),
)
STORE.row(
    "vmi.vscatter",
    "UB[destination + offsets[i] elements] = value[i] where mask[i]; the last lane wins",
    body=meaning.SCATTER,
    operands=(vector("value"), _TARGET[0], index("offsets", "logical vreg"), mask("mask")),
    attrs=PMODE,
    text="$value , $destination , $offsets , $mask {} : types",
    rules=(
        same_lanes("value", "offsets", "mask"),
        dtype_in("offsets", _INDICES),
    ),
    notes="which of several lanes with one offset wins is not defined; here it is the last",
)

# ---- operations of the compiler's older form

_OLD_LOAD, _OLD_STORE = replace(LOAD, cite=TD), replace(STORE, cite=TD)
_GROUPS = Attr("num_groups", "int", required=True)
_SLOTS = lane_a_group("slots", "result", "num_groups")
for _name, _meaning, _body, _stride in (
    ("group_load", "a row of L / num_groups elements a group", meaning.LOAD, "row_stride"),
    ("group_slot_load", "one element a group", meaning.LOAD_SLOTS, "source_group_stride"),
    (
        "group_broadcast_load",
        "one element a group, in all its lanes",
        meaning.LOAD_SLOTS,
        "source_group_stride",
    ),
):
    _OLD_LOAD.row(
        f"vmi.{_name}",
        f"{_meaning}, {_stride} elements apart",
        body=_body,
        operands=(*_SOURCE, read(_stride, "index")),
        attrs=_GROUPS,
        text=f"$source [ $offset ] , ${_stride} {{}} : types(source) -> results",
        rules=(groups_divide, *(_SLOTS,) * (_name == "group_slot_load")),
    )
_OLD_STORE.row(
    "vmi.group_store",
    "a row of L / num_groups elements a group, row_stride elements apart",
    body=meaning.STORE,
    operands=(vector("value"), *_TARGET, read("row_stride", "index")),
    attrs=_GROUPS,
    text="$value , $destination [ $offset ] , $row_stride {} : types(value,destination)",
    rules=groups_divide,
)
for _name, _meaning, _body in (
    ("masked_load", "active lanes from a run in memory", meaning.MASKED_LOAD),
    ("expand_load", "consecutive elements into the active lanes", meaning.EXPAND_LOAD),
):
    _OLD_LOAD.row(
        f"vmi.{_name}",
        f"{_meaning}, passthru elsewhere",
        body=_body,
        operands=(*_SOURCE, mask("mask"), vector("passthru")),
        text="$source [ $offset ] , $mask , $passthru {} : types(source,mask,passthru) -> results",
        rules=(same_lanes("mask", "passthru", "result"), same_elements("passthru", "result")),
    )
_OLD_LOAD.row(
    "vmi.gather",
    "mask[i] ? UB[source + indices[i] elements] : passthru[i]",
    body=meaning.GATHER,
    operands=(
        read("source", "ub buffer"),
        index("indices", "logical vreg"),
        mask("mask"),
        vector("passthru"),
    ),
    text="$source [ $indices ] , $mask , $passthru {} : types -> results",
    rules=(
        same_lanes("indices", "mask", "passthru", "result"),
        same_elements("passthru", "result"),
        dtype_in("indices", _INDICES),
    ),
)
_OLD_STORE.row(
    "vmi.scatter",
    "UB[destination + indices[i] elements] = value[i] where mask[i]",
    body=meaning.SCATTER,
    operands=(vector("value"), _TARGET[0], index("indices", "logical vreg"), mask("mask")),
    text="$value , $destination [ $indices ] , $mask {} : types",
    rules=(same_lanes("value", "indices", "mask"), dtype_in("indices", _INDICES)),
)
_OLD_STORE.row(
    "vmi.compress_store",
    "active lanes one after another from destination + offset on",
    body=meaning.COMPRESS_STORE,
    operands=(vector("value"), *_TARGET, mask("mask")),
    text="$value , $destination [ $offset ] , $mask {} : types(value,destination,mask)",
    rules=same_lanes("value", "mask"),
)
_STRIDES = (read("block_stride", "i16"), read("repeat_stride", "i16"), mask("mask"))
_STRIDE_NAMES = "block_stride,repeat_stride,mask"
_OLD_LOAD.row(
    "vmi.stride_load",
    "32-byte blocks, block_stride blocks apart, under the mask of their lanes",
    body=meaning.STRIDED_LOAD,
    operands=(*_SOURCE, *_STRIDES),
    text="$source [ $offset ] , $block_stride , $repeat_stride , $mask {}"
    f" : types(source,{_STRIDE_NAMES}) -> results",
    rules=same_lanes("mask", "result"),
    notes="the repeat stride of one access moves nothing",
)
_OLD_STORE.row(
    "vmi.stride_store",
    "active lanes to 32-byte blocks, block_stride blocks apart",
    body=meaning.STORE,
    operands=(vector("value"), *_TARGET, *_STRIDES),
    text="$value , $destination [ $offset ] , $block_stride , $repeat_stride , $mask {}"
    f" : types(value,destination,{_STRIDE_NAMES})",
    rules=same_lanes("value", "mask"),
)
_OLD_LOAD.row(
    "vmi.deinterleave_load",
    "even elements from source + offset on in low, odd ones in high",
    body=meaning.LOAD_PAIRS,
    operands=_SOURCE,
    results=(Result("low", "logical vreg"), Result("high", "logical vreg")),
    text="$source [ $offset ] {} : types(source) -> results",
    rules=(same_lanes("low", "high"), same_elements("low", "high"), _of_memory("low", "source")),
)
_OLD_STORE.row(
    "vmi.interleave_store",
    "low and high in turn from destination + offset on",
    body=meaning.STORE,
    operands=(vector("low"), vector("high"), *_TARGET),
    text="$low , $high , $destination [ $offset ] {} : types(low,high,destination)",
    subject="low",
    rules=(
        *(same_lanes("low", "high"), same_elements("low", "high")),
        _of_memory("low", "destination"),
    ),
)
