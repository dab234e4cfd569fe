"""SIMT: launches, ids of work items, communication between lanes, and fences.

Memory and arithmetic of work items are in `memory.py` and `math.py`. Work items run
functions marked `pto.simt_entry`; `verify/simt.py` checks them.
"""

from __future__ import annotations

from functools import partial

from pto.isa.meaning.simt import launch as meaning
from pto.isa.row.instr import Attr, Family, Result, read
from pto.isa.rules.rule import attr_in
from pto.isa.rules.simt import (
    float_has_no_sign,
    int_needs_sign,
    launch_size,
    same_type,
    section_size,
    slot_fits,
    value_in,
)

SIGNEDNESS = Attr("signedness", "signedness", meaning="how an integer is read")
INSIDE, OUTSIDE = "simt entry", "outside simt entry"  # scopes


simt_family = partial(  # of rows that run one work item at a time
    Family,
    section="simt",
    text="$operands {} : types -> results",
    pipe="V",
    subject="value",
    cost="simt",
    profiles="a5",
    cite="PTOAS docs/isa/micro-isa/17-simt.md",
)
LAUNCH = simt_family("simt launch", "start work items", scope=OUTSIDE)
QUERY = simt_family("simt query", "a number a work item sees", text="{} : results")
LANES = simt_family("simt lanes", "values exchanged between the active lanes")
ORDER = simt_family("simt order", "order and state of work items", scope=INSIDE, text="{}")

# ---- launches

LAUNCH.row(
    "store_vfsimt_info",
    "set the launch size of following calls of simt entries: dimX * dimY * dimZ work items",
    body=meaning.STORE_SIZE,
    operands=(read("dimZ", "i32"), read("dimY", "i32"), read("dimX", "i32")),
    text="$dimZ , $dimY , $dimX {} : types",
    rules=launch_size,
    notes="the order is z, y, x; simt_launch has x, y, z",
)
SIMT_LAUNCH = LAUNCH.row(
    "simt_launch",
    "run callee(args) once for each of dimX * dimY * dimZ work items",
    body=meaning.LAUNCH,
    operands=(read("dimX", "i32"), read("dimY", "i32"), read("dimZ", "i32"), read("args*", "any")),
    attrs=Attr("callee", "symbol", required=True, meaning="a function marked pto.simt_entry"),
    text="=simt_launch",
    rules=launch_size,
    example="pto.simt_launch @body<<<%x, %y, %z>>>(%out) : (!pto.ptr<i32, ub>) -> ()",
)

SIMT_SECTION = LAUNCH.row(
    "section.simt",
    "dimX * dimY * dimZ work items run the body; it sees the values around it",
    body=meaning.SECTION,
    attrs=tuple(
        Attr(f"dim{d}", "i32", required=True, meaning=f"work items in {d.lower()}") for d in "XYZ"
    ),
    text="=simt_section",
    rules=section_size,
    example="pto.section.simt<<<32, 1, 1>>> { .. }",
    cite="PTOAS include/PTO/IR/PTOOps.td:1562",
)

# ---- queries

_QUERIES = {
    "tid": "coordinate of the work item in {}: linear = x + dimX*(y + dimY*z)",
    "block_dim": "launch size in {}",
    "grid_dim": "grid size in {}",
    "block_idx": "block index in {}, 0 where one block is launched",
}
_SINGLE = {
    "veccoreid": "number of the vector core",
    "laneid": "number of the lane",
    "clock32": "clock, 32 bits: how many instructions the launch has done",
    "lanemask_eq": "1 << laneid",
    "lanemask_lt": "bits of lanes below laneid",
    "lanemask_le": "bits of lanes up to laneid",
    "lanemask_gt": "bits of lanes above laneid",
    "lanemask_ge": "bits of lanes from laneid on",
    "clock64": "clock, 64 bits: how many instructions the launch has done",
}
_MEANINGS = {f"{n}_{d}": m.format(d) for n, m in _QUERIES.items() for d in "xyz"} | _SINGLE
for _name, _meaning in _MEANINGS.items():
    QUERY.row(
        f"get_{_name}",
        _meaning,
        body=meaning.QUERIES[_name],
        results=Result("result", "i64" if _name == "clock64" else "i32"),
    )

# ---- lanes

for _name, _kind, _meaning in (
    ("vote_all", "i1", "whether pred holds in every active lane"),
    ("vote_any", "i1", "whether pred holds in some active lane"),
    ("vote_uni", "i1", "whether pred is the same in all active lanes"),
    ("vote_ballot", "i32", "one bit for each active lane in which pred holds"),
):
    LANES.row(
        _name,
        _meaning,
        body=meaning.VOTES[_name],
        operands=read("pred", "i1"),
        results=Result("result", _kind),
    )
for _name, _control, _lane in (
    ("shuffle_idx", "index", "base + index"),
    ("shuffle_up", "offset", "lane - offset"),
    ("shuffle_down", "offset", "lane + offset"),
    ("shuffle_bfly", "mask", "base + (lane - base xor mask)"),
):
    LANES.row(
        _name,
        f"value of lane {_lane}; base is the first lane of the group of width lanes",
        body=meaning.SHUFFLES[_name],
        operands=(read("value", "number"), read(_control, "i32")),
        results=Result("result", "number"),
        attrs=Attr("width", "i32", default=32, meaning="lanes in a group: 16 or 32"),
        rules=(
            value_in("value", "i32 i64 f16 f32 f16x2"),
            same_type("value", "result"),
            attr_in("width", "16", "32"),
        ),
        notes="a lane outside the group, or not active: a lane keeps its own value",
    )
for _name, _words, _own in (
    ("redux_add", "sum", ()),
    ("redux_max", "maximum", (int_needs_sign,)),
    ("redux_min", "minimum", (int_needs_sign,)),
):
    LANES.row(
        _name,
        f"{_words} of value over the active lanes, in each of them",
        body=meaning.REDUCTIONS[_name],
        operands=read("value", "element"),
        results=Result("result", "element"),
        attrs=SIGNEDNESS,
        text="$value <? @signedness > {} : types -> results",
        example=f"%result = pto.{_name} %value signed : i32 -> i32",
        a5="i32 f16 f32",
        rules=(same_type("value", "result"), float_has_no_sign, *_own),
    )

# ---- order and state

SYNCTHREADS = ORDER.row(
    "syncthreads",
    "no work item continues before all have arrived here",
    body=meaning.SYNCTHREADS,
)
for _name, _meaning in {
    "threadfence": "earlier memory accesses of the work item come before later ones",
    "threadfence_block": "as threadfence, for the work items of one block",
}.items():
    ORDER.row(_name, _meaning, body=meaning.FENCE)
_SLOT = (Attr("slot", "int", required=True, meaning="a 32-bit word that outlives the entry"),)
_KEPT = "i8 i16 i32 i64 f16 bf16 f32 i1"
KEEP = ORDER.row(
    "keep",
    "keep payload in slot for the next entry, a value for each work item",
    body=meaning.KEEP,
    operands=read("payload", "element"),
    attrs=_SLOT,
    text="$payload {} : types",
    a5=_KEPT,
    subject="payload",
    rules=slot_fits("payload"),
)
RESUME = ORDER.row(
    "resume",
    "the value that the same work item of an earlier entry kept in slot",
    body=meaning.RESUME,
    results=Result("result", "element"),
    attrs=_SLOT,
    text="{} : results",
    a5=_KEPT,
    subject="result",
    rules=slot_fits("result"),
)
