"""Binds C++ calls to instructions: finds the row of a call and the operand of each argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pto.core.dtypes import dtype
from pto.core.errors import fail
from pto.cxx.convolution import shaped
from pto.cxx.forms import CallForm, FormArgument, attribute_of, by_name, enumerators
from pto.cxx.records import (
    FLOAT,
    INTEGER,
    LITERAL,
    NUMBERS,
    POINTER,
    QUEUE,
    TENSOR,
    TILE,
    Passed,
    RecordedCall,
)
from pto.cxx.sizes import BoundCall, Late, counted
from pto.ir.builder import scalar_type
from pto.isa.row.attributes import Attribute, Bool, Enum, Int, Str
from pto.isa.row.enums import ENUMS, kinds_of
from pto.isa.row.instr import Attr, Instr, Operand
from pto.isa.row.types import TileBuf


def bind(call: RecordedCall, profile: str) -> BoundCall:
    """The first form of the called name that accepts these arguments."""
    forms = by_name().get(call.name)
    if forms is None:
        raise fail(
            "PTO-U240", f"{call.name} is declared in the header but not in the instruction table"
        )
    why = ""
    for form in forms:
        bound = _matched(form, call, profile)
        if not isinstance(bound, str):
            return bound
        why = why or bound
    raise fail("PTO-U240", f"no form of {call.name} takes these arguments: {why}")


def _matched(form: CallForm, call: RecordedCall, profile: str) -> BoundCall | str:
    """The call bound to this form, or the reason why it does not match."""
    attrs: dict[str, Attribute] = {}
    problem = _take_enumerators(form, call, attrs)
    if problem:
        return problem
    _take_literals(form, call, attrs)
    rest = [o for o in call.operands if o.word is None]
    wanted = [a for a in form.arguments if not a.names or a.names[0] not in attrs]
    assigned = _assign(form.row, wanted, rest)
    if assigned is None:
        return f"{form.name} takes {' '.join('/'.join(a.names) or '_' for a in form.arguments)}"
    operands: dict[str, list[Passed]] = {}
    for argument, passed in assigned:
        for name in argument.names:
            attr = form.row.attr(name)
            if attr is not None and name not in form.row.operand_names:
                attrs[name] = _dynamic(attr, passed[0] if passed else None, argument)
            elif passed or argument.default is not None:
                operands[name] = passed or [Passed(INTEGER, number=argument.default)]
    ordered = {n: operands[n] for n in form.row.operand_names if n in operands}
    return counted(shaped(BoundCall(form.row, ordered, attrs), profile), profile)


def _take_enumerators(form: CallForm, call: RecordedCall, attrs: dict[str, Attribute]) -> str:
    """Check enumerators that select a form, and set attributes; returns why this form is not
    selected, or nothing."""
    chosen = {name: word for name, word in form.fixed if form.row.attr(name) is None}
    for operand in (*call.operands, *call.literals):
        if operand.word is None:
            continue
        enum, number = operand.word
        if enum in chosen:
            if enumerators()[enum].get(number) != chosen.pop(enum):
                return f"{enum} is another"
            if attribute_of(form.row, enum) is None:
                continue
        problem = _set(form.row, attrs, enum, number)
        if problem:
            return problem
    return f"{next(iter(chosen))} is missing" if chosen else ""


def _take_literals(form: CallForm, call: RecordedCall, attrs: dict[str, Attribute]) -> None:
    """Set attributes that the form fixes, unless given, and those from template literals."""
    literals = [o.number or 0 for o in call.literals if o.tag == LITERAL]
    fixed = [(name, word) for name, word in form.fixed if name not in attrs]
    for name, word in (*fixed, *zip(form.literals, literals, strict=False)):
        attr = form.row.attr(name)
        if attr is not None:
            attrs[name] = _number(attr, int(word))


def _dynamic(attr: Attr, passed: Passed | None, argument: FormArgument) -> Any:
    if passed is None:
        return _number(attr, argument.default or 0)
    return Late(attr, passed.at) if passed.number is None else _number(attr, passed.number)


def settled(attrs: dict[str, Attribute], values: Sequence[int]) -> dict[str, Attribute]:
    """Attributes with `Late` numbers replaced by the values of a record."""
    return {
        name: _number(a.attr, values[a.at]) if isinstance(a, Late) else a
        for name, a in attrs.items()
    }


_SPELLED = {("RoundMode", 1): "RINT"}  # words with other numbers in the header than in the table


# Enumerators without an effect on results.
_IDLE = ("PrintFormat", "PadValue", "ScatterConflict", "TCopyMode", "STPhase", "AccPhase")


def _set(row: Instr, attrs: dict[str, Attribute], enum: str, number: int) -> str:
    """Set the attribute of an enumerator; returns the reason if there is none."""
    attr = attribute_of(row, enum, attrs)
    if attr is None:
        if enum in _IDLE or enum.endswith("Algorithm") or number == 0:
            return ""
        return f"no place for a {enum}"
    kinds = kinds_of(attr.kind)
    if not kinds:
        word = enumerators()[enum][number] if "str" in attr.kind else None
        attrs[attr.name] = _number(attr, number) if word is None else Str(word)
        return ""
    word = _SPELLED.get((enum, number)) or kinds[0].word(number)
    if kinds[0].name == "quant_type":
        word = enumerators()[enum].get(number)
    if word is None:
        return f"{enum} has no number {number}"
    attrs[attr.name] = Enum(kinds[0].name, word)
    return ""


def _number(attr: Attr, number: int) -> Attribute:
    kind = attr.kind.split("|")[0]
    if kind == "bool":
        return Bool(bool(number))
    if kind in ENUMS:
        word = ENUMS[kind].word(number)
        if word is None:
            raise fail("PTO-U240", f"{attr.name} has no number {number}")
        return Enum(kind, word)
    if kind == "str":
        return Str(str(number))
    return Int(number, scalar_type(dtype("i64" if kind == "int" else kind)))


Assigned = list[tuple[FormArgument, list[Passed]]]


def _assign(row: Instr, wanted: list[FormArgument], passed: list[Passed]) -> Assigned | None:
    """Arguments to parameters in order; optional parameters may be left out."""
    if not wanted:
        return [] if not passed else None
    first, others = wanted[0], wanted[1:]
    if first.rest:
        return [(first, passed)] if all(_fits(row, first, g) for g in passed) else None
    if passed and _fits(row, first, passed[0]):
        rest_assigned = _assign(row, others, passed[1:])
        if rest_assigned is not None:
            return [(first, [passed[0]]), *rest_assigned]
    if passed and first.optional and passed[0].tag == POINTER and not passed[0].element:
        return _assign(row, others, passed[1:])  # nullptr: not there
    if first.optional:
        rest_assigned = _assign(row, others, passed)
        if rest_assigned is not None:
            return [(first, []), *rest_assigned]
    return None


def _fits(row: Instr, argument: FormArgument, passed: Passed) -> bool:
    if not argument.names:
        return passed.tag in (TILE, NUMBERS)
    operand = next((o for o in row.operands if o.name == argument.names[0]), None)
    if operand is None:  # an attribute, or a result
        return passed.tag in (INTEGER, QUEUE, LITERAL)
    if argument.role and not (
        isinstance(passed.type, TileBuf) and passed.type.tile.role.value == argument.role
    ):
        return False
    return _takes(operand, passed)


def _takes(operand: Operand, passed: Passed) -> bool:
    kind = operand.kind
    if passed.tag == TILE:
        return "tile" in kind or kind == "any"
    if passed.tag == TENSOR:
        return "view" in kind or kind == "any"
    if passed.tag == QUEUE:
        return kind == "pipe"
    if passed.tag == NUMBERS:
        return kind == "number"
    if passed.tag == POINTER:
        return kind == "any" or kind.endswith(("pointer", "buffer"))
    numeric = ("scalar", "int", "index", "i64", "i32", "float", "number", "tile or scalar", "any")
    return passed.tag in (INTEGER, FLOAT) and kind in numeric
