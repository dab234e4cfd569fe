"""SIMT memory: one element by one work item, with cache hints, and atomic updates."""

from __future__ import annotations

from pto.isa.meaning.simt import memory as meaning
from pto.isa.row.instr import Attr, Result, read, reads, update, write
from pto.isa.rules.rule import dtype_in
from pto.isa.rules.simt import element_of, float_has_no_sign, no_wide_ub, same_type, value_in
from pto.isa.simt.launch import INSIDE, SIGNEDNESS, simt_family

ACCESS = simt_family("simt memory", "one element, by one work item", rules=(element_of,))

_VALUE = (Result("value", "number"),)
_CACHED = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 hifloat8"
_L1 = Attr("l1cache", "l1cache", default="cache", meaning="path of the access; not its value")
_LOAD_L2 = Attr("l2cache", "ld_l2cache", default="nmfv", meaning="what L2 does with the line")
_STORE_L2 = Attr("l2cache", "st_l2cache", default="nmfv", meaning="what L2 does with the line")
_CACHE = "<? l1cache ( @l1cache ) > <? l2cache ( @l2cache ) >"

ACCESS.row(
    "load",
    "value = ptr[offset], offset in elements",
    body=meaning.LOAD,
    operands=(read("ptr", "pointer or memref"), read("offset", "index")),
    results=_VALUE,
    text="$ptr [ $offset ] {} : types(ptr) -> results",
)
ACCESS.row(
    "store",
    "ptr[offset] = value, offset in elements",
    body=meaning.STORE,
    operands=(write("ptr", "pointer or memref"), read("offset", "index"), read("value", "number")),
    text="$value , $ptr [ $offset ] {} : types(ptr,value)",
)
ACCESS.row(
    "ldg",
    "value = ptr[offset] from global memory, with cache hints",
    body=meaning.LOAD,
    operands=(read("ptr", "gm pointer"), read("offset", "index")),
    results=_VALUE,
    attrs=(_L1, _LOAD_L2),
    text=f"$ptr [ $offset ] {_CACHE} {{}} : types(ptr) -> results",
    scope=INSIDE,
    a5=_CACHED,
)
ACCESS.row(
    "stg",
    "ptr[offset] = value in global memory, with cache hints",
    body=meaning.STORE,
    operands=(write("ptr", "gm pointer"), read("offset", "index"), read("value", "number")),
    attrs=(_L1, _STORE_L2),
    text=f"$value , $ptr [ $offset ] {_CACHE} {{}} : types(ptr,value)",
    scope=INSIDE,
    a5=_CACHED,
)

_CONTROLS = "<? l2cache ( @l2cache ) > <? @signedness > {} : types(ptr,value) -> results"
ATOMIC = simt_family(
    "simt atomic",
    "read, change and write in one step; the old value is given",
    results=(Result("old", "number"),),
    attrs=(_STORE_L2, SIGNEDNESS),
    rules=(
        value_in("value", "i32 i64 f16 bf16 f32 f16x2 bf16x2"),
        element_of,
        no_wide_ub,
        float_has_no_sign,
    ),
)
_PACKED = "the old value of a packed update must stay unused (CANN beta.1)"
_UPDATES = {
    "exch": "value",
    "add": "old + value",
    "sub": "old - value",
    "min": "min(old, value)",
    "max": "max(old, value)",
    "and": "old & value",
    "or": "old | value",
    "xor": "old ^ value",
}
for _name, _new in _UPDATES.items():
    _bitwise = (dtype_in("value", "i32 i64"),) if _name in ("and", "or", "xor") else ()
    ATOMIC.row(
        f"atomic_{_name}",
        f"old = *ptr; *ptr = {_new}",
        body=meaning.atomic(_name),
        operands=(update("ptr", "gm or ub pointer"), read("value", "number")),
        text=f"$ptr , $value {_CONTROLS}",
        example=f"%old = pto.atomic_{_name} %ptr, %value signed : !pto.ptr<i32, gm>, i32 -> i32",
        rules=(*_bitwise, same_type("value", "old")),
        notes=_PACKED,
    )
ATOMIC.row(
    "atomic_cas",
    "old = *ptr; if old == compare: *ptr = value",
    body=meaning.CAS,
    operands=(update("ptr", "gm or ub pointer"), *reads("compare value", "number")),
    text=f"$ptr , $compare , $value {_CONTROLS}",
    example="%old = pto.atomic_cas %ptr, %compare, %value : !pto.ptr<i32, gm>, i32 -> i32",
    rules=same_type("compare", "value", "old"),
    notes=(_PACKED, "the document leaves out f16 and bf16; PTOAS takes them"),
)
