"""The scalar unit: queries, single elements of memory, local arrays, control registers, prints."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from pto.isa.handle.view import one_per_dimension
from pto.isa.meaning.scalar import arrays
from pto.isa.meaning.scalar import unit as meaning
from pto.isa.meaning.scalar.unit import field_at, path_of
from pto.isa.meaning.vector.sort import GET_VMS4_SR
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Family, Result, read, rows, update
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import Case, rule, scalar_matches

_TD = "PTOAS include/PTO/IR/PTOOps.td"
_VTD = "PTOAS include/PTO/IR/VPTOOps.td"
_MANUAL = "PTOAS docs/PTO_IR_manual.md"
_GYM = "PTO-Gym docs/PTO-micro-Instruction-SPEC.md"


_family = partial(Family, section="scalar", pipe="S", text="{}", cost="register")
_WHERE = (_MANUAL, _TD)
QUERY = _family("queries", "where this code runs")
MEMORY = _family(
    "scalar memory",
    "one element at a time",
    cost="element",
    rules=(scalar_matches("value", "ptr"),),
)
LOCAL_ARRAY = _family("local arrays", "small arrays of the scalar unit", cite=_WHERE)
REGISTER = _family("control registers", "modes of later instructions", cite=_VTD)
DEBUG = _family("debugging", "metadata of a program", cost="free", cite=_WHERE)

# ---- queries

GET_BLOCK_IDX, GET_SUBBLOCK_IDX, GET_BLOCK_NUM, GET_SUBBLOCK_NUM = (
    QUERY.row(
        name,
        f"result = {words}",
        body=body,
        traits=Traits(pure=True),
        results=Result("result", "i64", "i64"),
        cite=(f"{_GYM}:{line}", _TD),
        cxx=f"= {cxx or name}()",
    )
    for name, words, line, body, cxx in (
        ("get_block_idx", "the number of this block, from 0", 621, meaning.BLOCK_INDEX, ""),
        (
            "get_subblock_idx",
            "the number of this vector sub-block, 0 or 1",
            631,
            meaning.SUB_BLOCK_INDEX,
            "get_subblockid",
        ),
        ("get_block_num", "how many blocks were launched", 641, meaning.BLOCK_COUNT, ""),
        (
            "get_subblock_num",
            "how many vector sub-blocks a block has",
            651,
            meaning.SUB_BLOCK_COUNT,
            "get_subblockdim",
        ),
    )
)
QUERY.row(
    "get_vms4_sr",
    "listN = how many records of list N the last vmrgsort4 has merged",
    body=GET_VMS4_SR,
    results=tuple(Result(f"list{n}", "i16") for n in range(4)),
    text="{} : results",
    notes="It reads what the vector pipe wrote: wait for PIPE_V on PIPE_S first.",
    cite=(f"{_GYM}:672", _VTD),
)

# ---- memory

_ELEMENT = (read("ptr", "pointer or gm memref"), read("offset", "index"))

MEMORY.row(
    "load_scalar",
    "value = ptr[offset], in elements",
    body=meaning.LOAD_SCALAR,
    operands=_ELEMENT,
    results=Result("value", "element"),
    text="$ptr [ $offset ] {} : types(ptr) -> results",
    cite=(f"{_GYM}:782", _MANUAL),
    cxx="= {ptr}[{offset}]",
)
MEMORY.row(
    "store_scalar",
    "ptr[offset] = value, in elements",
    body=meaning.STORE_SCALAR,
    operands=(
        update("ptr", "pointer or gm memref"),
        read("offset", "index"),
        read("value", "element"),
    ),
    text="$value , $ptr [ $offset ] {} : types(ptr,value)",
    cite=(f"{_GYM}:801", _MANUAL),
    cxx="= {ptr}[{offset}] = {value}",
)


for _name, _like in (("ld_dev", "load_scalar"), ("st_dev", "store_scalar")):
    _row = next(r for r in rows() if r.name == f"pto.{_like}")
    MEMORY.row(
        _name,
        f"{_row.meaning}; past the data cache",
        body=_row.body,
        operands=(replace(_row.operands[0], kind="gm pointer"), *_row.operands[1:]),
        results=_row.results,
        attrs=(*_row.attrs, Attr("volatile", "any", meaning="never left out, which holds anyway")),
        text=_row.text,
        generic="value ptr offset" if _name == "st_dev" else "",
        profiles="a5",
        scope="outside simt entry",
        traits=Traits(uncached=True),
        cite="PTOAS include/PTO/IR/VPTOOps.td (2026-08)",
    )


@rule("PTO-S074", "expects indices inside array")
def _indices_exist(case: Case, array: t.LocalArray) -> str | None:
    for value, size in zip(case.op.group("indices"), array.shape, strict=False):
        index = case.constant(value)
        if index is not None and not 0 <= index < size:
            return f"index {index} of {size}"
    return None


_INDICES = (one_per_dimension("array", "indices"), _indices_exist)
LOCAL_ARRAY.row(
    "declare_local_array",
    "array = an array of the scalar unit, not yet set",
    body=arrays.DECLARE,
    results=Result("array", "local array"),
    text="{} -> results",
    pipe="none",
)
LOCAL_ARRAY.row(
    "local_array_get",
    "result = array[indices]",
    body=arrays.GET,
    operands=(read("array", "local array"), read("indices*", "index")),
    results=Result("result", "element"),
    text="$array [ $indices* ] {} : types(array) -> results",
    rules=(*_INDICES, scalar_matches("result", "array")),
    example="%x = pto.local_array_get %a[%i] : !pto.local_array<4xi32> -> i32",
)
LOCAL_ARRAY.row(
    "local_array_set",
    "array[indices] = value",
    body=arrays.SET,
    operands=(update("array", "local array"), read("indices*", "index"), read("value", "element")),
    text="$array [ $indices* ] , $value {} : types(array,value)",
    rules=(*_INDICES, scalar_matches("value", "array")),
    example="pto.local_array_set %a[%i], %x : !pto.local_array<4xi32>, i32",
    cite=_TD,
)

# ---- control registers


@rule("PTO-T076", "expects the number of a bit, 0 to 63")
def _bit_exists(second: int) -> str | None:
    return None if 0 <= second < 64 else f"it is {second}"


REGISTER.row(
    "get_ctrl",
    "result = CTRL",
    body=meaning.GET_CTRL,
    results=Result("result", "i64"),
    text="{} : results",
)
REGISTER.row(
    "set_ctrl",
    "CTRL = value",
    body=meaning.SET_CTRL,
    operands=read("value", "i64"),
    text="$value {} : types",
    notes=(
        "Bits: 8:6 and 10:9 type and kind of atomic stores, 45 hif8, 46 tf32, 47 tf32 rounds away,"
        " 48 keeps inf and NaN, 50 saturates but keeps NaN, 51 n first."
    ),
    cxx="set_ctrl value",
)
for _bit, _verb in {0: "cleared", 1: "set"}.items():
    REGISTER.row(
        f"sbitset{_bit}",
        f"result = first with bit number second {_verb}",
        body=meaning.bit(_bit),
        operands=(read("first", "i64"), read("second", "i64")),
        results=Result("result", "i64"),
        text="$first , $second {} : types -> results",
        rules=_bit_exists,
    )

# ---- debugging

PRINT = DEBUG.row(
    "print",
    "write scalar in a C format",
    body=meaning.PRINT,
    traits=Traits(by_hand=True),
    operands=read("scalar", "element"),
    attrs=Attr("format", "str", required=True, meaning="a printf format for one number"),
    text="ins( @format , $scalar : types ) {}",
    example='pto.print ins("%+08.3f", %x : f32)',
    cxx="= cce::printf({format}, {scalar})",
)
DEBUG.row(
    "trap",
    "stop with an error",
    body=meaning.TRAP,
    cxx="= trap()",
    simulated="inline void trap() { __builtin_trap(); }",
)


# ---- records

_RECORD = _family(
    "records",
    "numbers kept together by the scalar unit",
    text="$operands @path {} : types -> results",
    subject="",
    cite="PTOAS docs/PTO_IR_manual.md:10646",
)
_PATH = (Attr("path", "numbers", required=True, meaning="the field, from the outside in"),)


@rule("PTO-T110", "expects struct fields of 8 to 64 bits")
def _fields(case: Case) -> str | None:
    """Numbers of 8 to 64 bits, or records of such."""
    waiting = [case.op.results[0].type]
    while waiting:
        type = waiting.pop()
        if isinstance(type, t.Struct):
            waiting += type.fields
            if not type.fields:
                return "a record is empty"
        elif not isinstance(type, t.Scalar) or type.dtype is None or type.dtype.bits < 8:
            return f"a field is {type.kind}"
    return None


@rule("PTO-T110", "expects a struct to stay in the function that declares it")
def _stays(case: Case) -> str | None:
    here: Any = case.op
    case.asked_makers = True  # it is not its types alone that count
    record = here.results[0]
    for op in here.parent_op.walk() if here.parent else ():
        uses = any(v is record for v in op.operands)
        if uses and op.row.family is not _RECORD:
            return f"'{op.name}' op takes it"
    return None


@rule("PTO-T110", "expects the type of the field that path names")
def _field(case: Case) -> str | None:
    field = field_at(case.type("s"), path_of(case))
    value = case.type("value")
    if field is None or isinstance(field, t.Struct):
        return "the path leads to no number"
    return None if field == value else "value is of another type"


_RECORD.row(
    "declare_struct",
    "s = a record of zeros",
    body=meaning.STRUCT,
    results=Result("s", "struct"),
    text="{} -> results",
    rules=(_fields, _stays),
)
_RECORD.row(
    "struct_get",
    "value = the field at path",
    body=meaning.STRUCT_GET,
    operands=read("s", "struct"),
    results=Result("value", "element"),
    attrs=_PATH,
    rules=_field,
)
_RECORD.row(
    "struct_set",
    "the field at path becomes value",
    body=meaning.STRUCT_SET,
    operands=(update("s", "struct"), read("value", "element")),
    attrs=_PATH,
    text="$s @path , $value {} : types",
    rules=_field,
)
