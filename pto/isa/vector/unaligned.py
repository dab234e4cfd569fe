"""Unaligned streams: loads and stores that thread an alignment state, their begin and end.

The store address register AR and the squeeze count SQZN are hidden state, named in the notes.
"""

from __future__ import annotations

from pto.isa.meaning.vector import unaligned
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Result, read, write
from pto.isa.rules.rule import Case, dtype_in, rule
from pto.isa.rules.vector import (
    MOVED_BASE,
    page,
    same_base,
    spec,
    state_from,
    vector_family,
    widths,
)

_ALIGN = Result("result", "align")
_STATE = Result("align_out", "align")
_MODE = Attr(
    "mode",
    "str",
    ("POST_UPDATE", "NO_POST_UPDATE"),
    required=True,
    meaning="whether the store moves its address register on",
)
_A5_ONLY = "a5 only by the manual (alignment state); newer text allows emulation elsewhere"


@rule("PTO-T082", "expects a source memref to hold the elements of result")
def _memref_elements(source: t.MemRef, result: t.Scalar) -> str | None:
    fits = source.elem == result
    return None if fits else f"source is of {source.elem.name}, result of {result.name}"


@rule("PTO-S081", "expects offset to be a constant of 8 bits")
def _constant_byte(case: Case) -> str | None:
    offset = case.number("offset")
    if offset is None:
        return "it is computed"
    return None if -128 <= offset < 128 else f"it is {offset}"


LOAD = vector_family(
    "unaligned load",
    "loads from any element address",
    needs="align_state",
    subject="result",
    cost="reg_load",
)

LOAD.row(
    "vldas",
    "result = load state primed with the 32-byte block that holds source",
    body=unaligned.VLDAS,
    operands=(read("source", "ub pointer"), read("offset?", "index")),
    results=_ALIGN,
    text="$source <? [ $offset ] > {} : types(source) -> results",
    notes=(
        _A5_ONLY,
        "leads every stream of vldus; source itself may be unaligned",
        "offset, in elements, is of older programs",
    ),
    cite=spec(2504),
)
LOAD.row(
    "vldus",
    "result[i] = UB[source + i elements]; updated_align is the state for a later vldus",
    body=unaligned.VLDUS,
    cxx="vldus result align>updated_align source increment?",
    operands=(read("source", "ub pointer"), read("align", "align"), read("increment?", "index")),
    results=(
        Result("result", "vreg"),
        Result("updated_align", "align"),
        Result("updated_base", "ub pointer", optional=True),
    ),
    text="$source <1 , $align <? , $increment > {} : types"
    " | [ $increment ] , $align {} : types(source,align) > -> results",
    rules=(state_from("align", "load"), same_base("updated_base", "source")),
    notes=(
        _A5_ONLY,
        "the program moves source on itself, or takes updated_base, increment elements on",
        "a state that does not hold the block of source is an error",
    ),
    cite=spec(2521),
    **widths(8, 16, 32, 64),
)
LOAD.row(
    "uvld",
    "result[i] = UB[source + offset + i elements]: vldas and vldus in one",
    body=unaligned.UVLD,
    operands=(read("source", "ub buffer"), read("offset", "index")),
    results=Result("result", "vreg"),
    text="$source [ $offset ] {} : types(source) -> results",
    rules=_memref_elements,
    notes=_A5_ONLY,
    cite="PTOAS include/PTO/IR/VPTOOps.td: pto.uvld",
    **widths(8, 16, 32, 64),
)

STATE = vector_family(
    "store state", "begin and end of unaligned store streams", needs="align_state", cost="lane"
)

STATE.row(
    "init_align",
    "result = an empty store state",
    body=unaligned.INIT_ALIGN,
    results=_ALIGN,
    text="{} : results",
    notes="store side only; may stand before the loop that carries it",
    cite=spec(2550),
)
for _name, _unit in (("sprsti", "words of 4 bytes, a constant"), ("sprsts", "bytes")):
    STATE.row(
        _name,
        f"UB at destination + offset = special register AR, 4 bytes; offset counts {_unit}",
        body=unaligned.SPRSTI if _name == "sprsti" else unaligned.SPRSTS,
        operands=(write("destination", "ub pointer"), read("offset", "i32")),
        results=MOVED_BASE,
        attrs=Attr("spr", "str", ("AR",), required=True),
        text="@spr , $destination [ $offset ] {} : types <? -> results >",
        rules=(
            dtype_in("destination", "i32 u32"),
            *(_constant_byte,) * (_name == "sprsti"),
            same_base("updated_base", "destination"),
        ),
        notes="with updated_base the store is at destination itself, which then moves on",
        cite="PTOAS docs/isa/micro-isa/03-vector-load-store.md (2026-08)",
    )
STATE.row(
    "sprclr",
    "clear special register AR, the store offset of vstur and vstar",
    body=unaligned.SPRCLR,
    attrs=Attr("spr", "str", ("AR",), required=True),
    text="@spr {}",
    notes="hidden state: AR",
    cite="PTOAS include/PTO/IR/VPTOOps.td: pto.sprclr",
)

FLUSH = vector_family(
    "unaligned flush",
    "write the bytes a store state still holds",
    needs="align_state",
    text="$value , $destination {} : types",
    rules=(state_from("value", "store"),),
    cost="reg_store",
)

FLUSH.row(
    "vstas",
    "UB before destination + offset elements = the pending bytes of a vstus or pstu stream",
    body=unaligned.VSTAS,
    cxx="vstas value>! destination offset",
    operands=(read("value", "align"), write("destination", "ub buffer"), read("offset", "i32")),
    results=MOVED_BASE,
    text="$value , $destination , $offset {} : types <? -> results >",
    rules=same_base("updated_base", "destination"),
    notes=(
        "updated_base is destination moved on by offset elements",
        "destination and offset name the end of the stream: those of the last vstus; after a pstu"
        " its base_out and 0; any other place is an error",
    ),
    cite=spec(2835),
)
FLUSH.row(
    "vstar",
    "UB before destination + AR bytes = the pending bytes of a vstur stream",
    body=unaligned.VSTAR,
    cxx="vstar value>! destination",
    operands=(read("value", "align"), write("destination", "ub buffer")),
    notes="hidden state: AR",
    cite=spec(2855),
)
FLUSH.row(
    "vsta",
    "UB before destination + offset elements = the pending bytes of the stream",
    body=unaligned.VSTAS,
    operands=(read("value", "align"), write("destination", "ub buffer"), read("offset", "index")),
    text="$value , $destination [ $offset ] {} : types",
    notes="deprecated: only the manual has it; vstas and vstar replace it",
    cite=page("vector/ops/vector-load-store/vsta"),
)

STORE = vector_family(
    "unaligned store",
    "append lanes to a stream; whole blocks reach UB, the rest stays in the state",
    text="$operands , @mode {} : types -> results",
    needs="unaligned_store",
    results=(_STATE,),
    rules=(state_from("align_in", "store"),),
    types=widths(8, 16, 32),
    subject="value",
    cost="reg_store",
)

STORE.row(
    "vstus",
    "append value[0 .. offset) to the stream that starts at base",
    body=unaligned.VSTUS,
    cxx="vstus align_in>align_out offset value base",
    operands=(
        read("align_in", "align"),
        read("offset", "i32"),
        read("value", "vreg"),
        write("base", "ub pointer"),
    ),
    results=(_STATE, Result("base_out", "ub pointer", optional=True)),
    text="$align_in , $offset , $value , $base {} : types -> results",
    notes="offset is a count of elements, not an address: the golden stores value[0..2] for 3",
    cite=spec(2893),
)
STORE.row(
    "vstur",
    "append the first SQZN bytes of value at base + AR; POST_UPDATE adds SQZN to AR",
    body=unaligned.VSTUR,
    cxx="vstur align_in>align_out value base",
    operands=(read("align_in", "align"), read("value", "vreg"), write("base", "ub pointer")),
    attrs=_MODE,
    notes="hidden state: AR (sprclr clears it) and SQZN (left by vsqz or vusqz)",
    cite=spec(2917),
)
STORE.row(
    "vstu",
    "append value at base + offset_in; align_out and offset_out are the stream's new state",
    body=unaligned.VSTU,
    operands=(
        read("align_in", "align"),
        read("offset_in", "index"),
        read("value", "vreg"),
        write("base", "ub pointer"),
    ),
    results=(_STATE, Result("offset_out", "index")),
    attrs=_MODE,
    notes=(
        "deprecated: only the manual has it; vstus and vstur replace it",
        "the page leaves open whether offsets are bytes or elements: elements here",
    ),
    cite=page("vector/ops/vector-load-store/vstu"),
)
