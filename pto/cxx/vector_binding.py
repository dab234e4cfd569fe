"""Binds calls of vector instructions in C++ to rows: operands, results and attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType, dtype
from pto.core.errors import fail
from pto.core.memory import Space
from pto.cxx.forms import enumerators
from pto.cxx.records import ALIGN, FLOAT, INTEGER, MASK, POINTER, REGISTER, Passed, RecordedCall
from pto.cxx.records import element as element_of
from pto.cxx.register_forms import (
    CLEARED,
    MERGING,
    POST_UPDATE,
    RegisterArgument,
    RegisterForm,
    attribute_of,
    by_name,
    is_mode,
    word_of,
)
from pto.ir.builder import INDEX, scalar_type
from pto.isa.row.attributes import Attribute, Enum, Str
from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import Attr, Instr
from pto.isa.row.types import Align, Mask, Ptr, Scalar, Type, VReg


@dataclass(frozen=True, slots=True)
class Number:
    """A number operand: its place among the values of a record, or what it always is."""

    passed: Passed | None
    type: Scalar
    shift: int = 0  # of a number that holds two: the bits below this one
    bits: int = 0  # and how many are this one; 0: all
    fixed: int = 0


@dataclass(frozen=True, slots=True)
class BoundVector:
    """A call bound to a row."""

    row: Instr
    attrs: Mapping[str, Attribute]
    sources: Mapping[str, Passed | None]  # registers, masks, states and pointers; None: all lanes
    numbers: Mapping[str, Number]
    results: tuple[Passed | None, ...]  # in the order of the row; None: C++ has it as a number
    cleared: tuple[Passed, ...]  # states that are empty afterwards
    merges: bool  # lanes that are masked off keep what they were


def bind(call: RecordedCall) -> BoundVector:
    """The first form of the called name that accepts these arguments."""
    why = ""
    for form in by_name()[call.name]:
        assigned = _assigned(form, [o for o in call.operands if o.word is None])
        if isinstance(assigned, str):
            why = why or assigned
            continue
        return _bound(form, call, assigned)
    raise fail("PTO-U240", f"no form of {call.name} takes these arguments: {why}")


_Assigned = list[tuple[RegisterArgument, Passed | None]]


def _assigned(form: RegisterForm, passed: list[Passed]) -> _Assigned | str:
    """Each argument of the form with what is passed for it, or why the form does not fit."""
    assigned: _Assigned = []
    rest = list(passed)
    for argument in form.arguments:
        kind = _kind(form.row, argument)
        if rest and rest[0].tag in _TAGS[kind]:
            assigned.append((argument, rest.pop(0)))
        elif argument.optional or _is_optional(form.row, argument):
            assigned.append((argument, None))
        else:
            return _shown(form)
    return assigned if not rest else _shown(form)


def _shown(form: RegisterForm) -> str:
    names = [argument.result or "+".join(argument.operands) for argument in form.arguments]
    return f"{form.name} takes {', '.join(names)}"


# Distributions of items of one width; the others take registers of any.
_ITEMS = re.compile(r"(?:NORM|1PT|US|DS|UNPK|E2B|SPLT\dCHN|MRG\dCHN)_B(\d+)")
_NUMBERS = (INTEGER, FLOAT)
_TAGS: Mapping[str, tuple[int, ...]] = {
    "vreg": (REGISTER,),
    "mask": (MASK,),
    "align": (ALIGN,),
    "pointer": (POINTER,),
    "number": _NUMBERS,
    "vreg or scalar": (REGISTER, *_NUMBERS),
}


def _kind(row: Instr, argument: RegisterArgument) -> str:
    name = argument.operands[0] if argument.operands else argument.result
    spec = next(s for s in (*row.operands, *row.results) if s.name == name)
    if spec.kind.endswith(("pointer", "buffer")):
        return "pointer"
    kind = "mask" if spec.kind == "mask or index" else spec.kind
    return kind if kind in _TAGS else "number"


def _is_optional(row: Instr, argument: RegisterArgument) -> bool:
    return any(o.optional for o in row.operands if o.name in argument.operands)


def _bound(form: RegisterForm, call: RecordedCall, assigned: _Assigned) -> BoundVector:
    row = form.row
    attrs, modes = _attributes(form, call)
    assigned = [(argument, _as_items(passed, attrs)) for argument, passed in assigned]
    named = {n: p for a, p in assigned for n in (*a.operands, a.result) if n and n != CLEARED}
    subject = next(
        (p.element for n in (row.subject, *named) if (p := named.get(n)) and p.tag == REGISTER), ""
    )
    sources: dict[str, Passed | None] = {}
    numbers: dict[str, Number] = {}
    for argument, passed in assigned:
        for n, name in enumerate(argument.operands):
            if passed is not None and passed.tag in _NUMBERS:
                high = 16 if len(argument.operands) == 2 and not n else 0
                bits = 16 if len(argument.operands) == 2 else 0
                type = _number_type(row, name, subject)
                numbers[name] = Number(passed, type, high, bits)
            elif passed is not None or _is_mask(row, name):
                sources[name] = passed
    if POST_UPDATE in modes and form.displaced:
        numbers[form.displaced] = Number(None, _number_type(row, form.displaced, subject))
    if POST_UPDATE in modes:
        numbers.pop("increment", None)
    return BoundVector(
        row,
        attrs,
        sources,
        numbers,
        tuple(named.get(r.name) for r in row.results if not r.optional),
        tuple(p for a, p in assigned if a.result == CLEARED and p is not None),
        MERGING in modes,
    )


def _as_items(passed: Passed | None, attrs: Mapping[str, Attribute]) -> Passed | None:
    """A register as the items that a distribution moves: `NORM_B32` moves words of any register."""
    dist = attrs.get("dist")
    item = _ITEMS.fullmatch(dist.value) if isinstance(dist, Str) else None
    if item is None or passed is None or passed.tag != REGISTER:
        return passed
    bits = 8 * register_type(passed.element).itemsize
    return passed if bits == int(item[1]) else replace(passed, element=f"u{item[1]}")


def _is_mask(row: Instr, name: str) -> bool:
    return any(o.kind == "mask" and not o.optional for o in row.operands if o.name == name)


def _number_type(row: Instr, name: str, subject: str) -> Scalar:
    kind = next(o.kind for o in row.operands if o.name == name)
    if kind == "index":
        return INDEX
    if kind in ("i16", "i32", "i64"):
        return scalar_type(dtype(kind))
    return scalar_type(register_type(subject))


def register_type(name: str) -> DType:
    """The element type of a register or pointer in C++; bytes where it has none."""
    return element_of(name) or dtype("i8")


def _attributes(
    form: RegisterForm, call: RecordedCall
) -> tuple[dict[str, Attribute], tuple[str, ...]]:
    """The attributes that words set, and the words that set none."""
    row, modes = form.row, list[str]()
    attrs: dict[str, Attribute] = {n: Str(v) for n, v in form.fixed.items()}
    for operand in call.operands:
        if operand.word is None:
            continue
        enum, number = operand.word
        word = word_of(enum, number, enumerators().get(enum, {}))
        attribute = None if word is None else attribute_of(row, word)
        if attribute is not None:
            attrs[attribute[0].name] = _value(*attribute)
        elif word is None or not is_mode(word):
            raise fail("PTO-U240", f"{call.name} has no place for {word or f'a {enum}'}")
        else:
            modes.append(word)
    for attr in row.attrs:  # no word: it does not move on
        if attr.required and attr.name not in attrs and f"NO_{POST_UPDATE}" in attr.values:
            attrs[attr.name] = Str(f"NO_{POST_UPDATE}")
    return attrs, tuple(modes)


def _value(attr: Attr, value: str) -> Attribute:
    return Enum(attr.kind, value) if attr.kind in ENUMS else Str(value)


def type_of(passed: Passed) -> Type:
    """The type of a register, mask, state or pointer."""
    if passed.tag == MASK:
        return Mask(None)  # in C++ masks have no granularity
    if passed.tag == ALIGN:
        return Align()
    kind = register_type(passed.element)
    if passed.tag == POINTER:
        return Ptr(scalar_type(kind), Space.UB)
    return VReg(VREG_BYTES // kind.itemsize, scalar_type(kind))
