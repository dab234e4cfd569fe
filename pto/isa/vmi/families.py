"""Shared parts of rows of logical vectors: families, texts, rules about lanes and masks."""

from __future__ import annotations

from functools import partial

from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Operand, Result, read
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import Case, Rule, listing, rule, rule_of
from pto.isa.rules.vector import bits_of, shown, vector_family

DOC = "PTOAS docs/isa/vmi-isa (2026-08)"
TD = "PTOAS include/PTO/IR/VMIOps.td (2026-08)"
NUMBERS = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"
INTEGERS = "i8 u8 i16 u16 i32 u32"
FLOATS = "f16 bf16 f32"
PMODE = Attr("pmode", "str", ("zero", "merge"), default="zero", meaning="inactive lanes")
GROUP = Attr("group", "int", meaning="how many groups of lanes there are", older=("num_groups",))
GENERIC = Traits(generic="*")
MASK = read("mask?", "logical mask")
RESULT = (Result("result", "logical vreg"),)
MASK_RESULT = (Result("result", "logical mask"),)


def vector(name: str) -> Operand:
    return read(name, "logical vreg")


def mask(name: str) -> Operand:
    return read(name, "logical mask")


@rule_of("PTO-S084", "expects {names} to have as many lanes", id="logical-lanes")
def same_lanes(case: Case, *names: str) -> str | None:
    """Vectors and masks that go lane by lane."""
    types = [(n, case.type(n)) for n in names]
    registers = [(n, k) for n, k in types if isinstance(k, t.LogicalVReg | t.LogicalMask)]
    for name, type in registers[1:]:
        if type.lanes != registers[0][1].lanes:
            return f"{registers[0][0]} has {registers[0][1].lanes}, {name} has {type.lanes}"
    return None


@rule_of("PTO-T080", "expects {names} to have one element type", id="logical-elements")
def same_elements(case: Case, *names: str) -> str | None:
    """Element types must be equal with their signs, as on registers: `i32` is not `ui32`."""
    types = [(n, case.type(n)) for n in names]
    registers = [(n, k) for n, k in types if isinstance(k, t.LogicalVReg)]
    for name, type in registers[1:]:
        first = registers[0][1]
        if type.elem.name != first.elem.name:
            return f"{registers[0][0]} is {shown(first)}, {name} is {shown(type)}"
    return None


def written_as(names: str, *words: str) -> Rule:
    """Element types to the letter, where a sign has to be written or may not be."""

    def test(case: Case) -> str | None:
        for name in names.split():
            elem = case.elem(name)
            if elem is not None and elem.name not in words:
                return f"{name} is {elem.name}"
        return None

    sentence = f"expects {listing(names.split())} to be written {', '.join(words)}"
    return Rule("logical-written", "PTO-T098", sentence, test)


@rule_of(
    "PTO-T081",
    "expects {names} to be pred or as wide as the elements of {data}",
    id="logical-mask-width",
)
def mask_width(case: Case, data: str, *names: str) -> str | None:
    """b8, b16 and b32 name the width of the elements; pred names none."""
    bits = bits_of(case, data)
    allowed = ("", "pred", f"b{bits}")
    for name in names if bits else ():
        type = case.type(name)
        if isinstance(type, t.LogicalMask) and type.granularity not in allowed:
            return f"{name} is {type.granularity}, {data} has {bits}-bit elements"
    return None


@rule("PTO-S084", "expects groups that divide the lanes")
def groups_divide(case: Case) -> str | None:
    word = case.word("group") or case.word("num_groups")
    types = [case.type(name) for name in ("source", "result", "value")]
    lanes = [type.lanes for type in types if isinstance(type, t.LogicalVReg | t.LogicalMask)]
    if not word or not lanes:
        return None
    odd = int(word) < 1 or max(lanes) % int(word)
    return f"{word} groups of {max(lanes)} lanes" if odd else None


def lane_a_group(id: str, name: str, groups: str) -> Rule:
    """A vector with one lane for each group; one group if the attribute is not written."""

    def test(case: Case) -> str | None:
        lanes, count = getattr(case.type(name), "lanes", None), int(case.word(groups) or 1)
        return None if lanes in (None, count) else f"{name} has {lanes} lanes, groups are {count}"

    return Rule(id, "PTO-S084", "expects one lane for each group", test)


@rule("PTO-T081", "expects masks of one granularity, and no further mask")
def mask_logic(case: Case) -> str | None:
    types = [(n, case.type(n)) for n in ("source", "lhs", "rhs", "result")]
    masks = [(n, k) for n, k in types if isinstance(k, t.LogicalMask)]
    if not masks:
        return None
    for name, type in types:
        if isinstance(type, t.LogicalVReg):
            return f"{masks[0][0]} is a mask, {name} is {shown(type)}"
    if case.type("mask") is not None or "pmode" in case.op.attrs:
        return "it has a mask" if case.type("mask") else "it has a pmode"
    for name, type in masks[1:]:
        if type.granularity != masks[0][1].granularity:
            return f"{masks[0][0]} is {masks[0][1].granularity}, {name} is {type.granularity}"
        if type.layout and masks[0][1].layout and type.layout != masks[0][1].layout:
            return f"{masks[0][0]} is kept as {masks[0][1].layout}, {name} as {type.layout}"
    return None


family = partial(
    vector_family,
    scope="",
    results=RESULT,
    text="$operands {} : types -> results",
    subject="result",
    cost="lane",
    profiles="a5",
    cite=DOC,
)
