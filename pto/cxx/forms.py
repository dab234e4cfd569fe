"""The C++ call syntax of an instruction: derived from its row, or given by the row's `cxx`.

A form is `NAME<template> operand operand...`, forms are joined by `|`. An operand is one of the
row, or an attribute of it:

    x        required          x?   may be missing         x=0   0 when missing
    x*       all that follow   x:acc  a tile of that role  x+y   one argument for both
    _        taken, not used   x~     tiles of one type
    x/y      a column with as many rows as y       x@y   a tile of the type of y
    x#y      bits, of which a row has one for each column of y     &x    the address of a tile

Inside `<...>`: integers in order (`!x`: before the types), `x=0` fixed by this form, `Mode=Word` an
enumerator that selects the form. An enumerator at any position sets the attribute that matches the
name of its type. A text after `-` is the reason why there is no form. A text after `= ` is a C++
expression in place of a call, `= {lhs} + {rhs}`; several results are separated by `; `. After
`= [x]` there is one for each word of attribute x: `= [predicate] eq: {lhs} == {rhs} | ..`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pto.core.errors import fail
from pto.isa.row.attributes import Attribute
from pto.isa.row.instr import Attr, Instr
from pto.isa.table import rows

# Sections without C++ calls: kernels use intrinsics of the compiler instead.
WITHOUT = {
    "vector": "register level: C++ kernels write vector intrinsics",
    "predicate": "register level: C++ kernels write vector intrinsics",
    "dma": "pointer level: C++ kernels call the copy intrinsics, which are not taken",
    "cube": "pointer level: C++ kernels call cube intrinsics, which are not taken",
    "scalar": "C++ has scalars and control flow of its own",
    "simt": "work items: C++ kernels write intrinsics of the compiler there",
    "shared": "C++ has scalars and control flow of its own",
    "support": "C++ has tiles, tensors and pointers of its own",
}


_REGISTERS = ("vector", "predicate")
_NONE: Mapping[str, Attribute] = {}


@dataclass(frozen=True, slots=True)
class FormArgument:
    """One parameter of a form."""

    names: tuple[str, ...]  # of operands or attributes; empty: accepted and ignored
    optional: bool = False
    default: int | None = None
    rest: bool = False
    role: str = ""
    alike: bool = False  # all such arguments of a call have the same type
    rows_of: str = ""  # a column with as many rows as this operand
    type_of: str = ""  # a tile of the type of this operand
    bits_of: str = ""  # a row has one bit for each column of this operand
    pointer: bool = False  # the address of a tile


@dataclass(frozen=True, slots=True)
class CallForm:
    """One way to call a row."""

    row: Instr
    name: str
    arguments: tuple[FormArgument, ...]
    literals: tuple[str, ...] = ()  # attributes that integers between < and > set
    fixed: tuple[tuple[str, str], ...] = ()  # attribute -> value, or enum type -> word it must be
    leads: bool = False  # whether template literals precede the types of operands


_OTHERS = {"/": "rows_of", "@": "type_of", "#": "bits_of"}


def _argument(text: str) -> FormArgument:
    pointer, text = text.startswith("&"), text.removeprefix("&")
    text, *other = re.split("([/@#])", text)
    of = {_OTHERS[other[0]]: other[1]} if other else {}
    word, _, role = text.removesuffix("~").partition(":")
    alike = text.endswith("~")
    name, _, default = word.partition("=")
    rest, optional = name.endswith("*"), name.endswith("?")
    names = tuple(n for n in name.rstrip("?*").split("+") if n != "_")
    number = int(default) if default else None
    optional = optional or number is not None
    return FormArgument(names, optional, number, rest, role, alike, **of, pointer=pointer)


def _parse(row: Instr, text: str) -> CallForm:
    match = re.fullmatch(r"\s*([\w:]+)(?:<([^>]*)>)?\s*(.*?)\s*", text)
    if match is None:
        raise RuntimeError(f"{row.name}: `{text}` is no form")
    name, inside, operands = match.groups()
    words = (inside or "").replace(",", " ").split()
    literals = tuple(w.removeprefix("!") for w in words if "=" not in w)
    fixed = tuple((a, b) for a, _, b in (w.partition("=") for w in words if "=" in w))
    arguments = tuple(_argument(w) for w in operands.split())
    return CallForm(row, name, arguments, literals, fixed, leads="!" in (inside or ""))


def cxx_name(row: Instr) -> str:
    """The default C++ name of a row."""
    if row.family.section == "comm":
        return "comm::" + row.mnemonic.rpartition(".")[2].upper()
    return row.mnemonic.upper().replace(".", "_")


def _derived(row: Instr) -> CallForm:
    """The default form: written operands first, then read operands, in the row's order."""
    outs = [o for o in row.operands if o.role in ("out", "inout") and not o.optional]
    ins = [o for o in row.operands if o.role in ("in", "tmp")]
    arguments = [FormArgument((o.name,), o.optional, rest=o.variadic) for o in (*outs, *ins)]
    return CallForm(row, cxx_name(row), tuple(arguments))


def expression(row: Instr, attrs: Mapping[str, Attribute] = _NONE) -> str:
    """The C++ expression for an operation without a call, with {operand} placeholders; else empty.

    `attrs` are those of the operation; their words may select the expression.
    """
    text = _split(row.cxx)[1]
    if not text.startswith("["):
        return text
    name, _, cases = text[1:].partition("] ")
    word = getattr(attrs.get(name), "value", None)
    selected = dict(case.split(": ", 1) for case in cases.split(" | ")).get(str(word))
    if selected is None:
        raise fail("PTO-U249", f"C++ has no operator for the {name} {word}")
    return selected


def _split(cxx: str) -> tuple[str, str]:
    """The call forms, and the expression used instead of a call."""
    if cxx.startswith("= "):
        return "", cxx[2:]
    calls, _, written = cxx.partition(" | = ")
    return calls, written


def reason(row: Instr) -> str | None:
    """The reason why C++ has no call for a row; None if it has one."""
    if row.family.section in _REGISTERS:  # their calls: `register_forms.py`
        return WITHOUT[row.family.section]
    if row.cxx.startswith("-"):
        return row.cxx[1:].strip()
    if row.cxx.startswith("= "):
        return "no call: C++ has an expression for it"
    return None if row.cxx else WITHOUT.get(row.family.section)


def forms(row: Instr) -> tuple[CallForm, ...]:
    """Every C++ form of a row; empty if there is a `reason`."""
    if reason(row) is not None:
        return ()
    if not row.cxx:
        return (_derived(row),)
    return tuple(_parse(row, text) for text in _split(row.cxx)[0].split("|"))


@cache
def by_name() -> dict[str, tuple[CallForm, ...]]:
    """C++ name -> forms of all rows that share it, in the table's order."""
    by_form_name: dict[str, list[CallForm]] = {}
    for row in rows():
        for form in forms(row):
            by_form_name.setdefault(form.name, []).append(form)
    return {name: tuple(listed) for name, listed in by_form_name.items()}


_ENUM = re.compile(r"enum (?:class )?(\w+)[^{;]*\{([^}]*)\}")


_MACHINE = Path(__file__).parent / "include/pto/machine"


def _declared(header: str) -> list[tuple[str, str]]:
    """The enumerations of a header: name and body."""
    return _ENUM.findall((_MACHINE / header).read_text(encoding="utf-8"))


@cache
def enumerators() -> dict[str, dict[int, str]]:
    """Enumerations of the header: name -> number -> word, the first of those that share one."""
    by_enum: dict[str, dict[int, str]] = {}
    for name, body in _declared("words.hpp") + _declared("ranks.hpp") + _declared("registers.hpp"):
        words, number = by_enum.setdefault(name, {}), 0
        for member in body.split(","):
            word, _, value = (part.strip() for part in member.partition("="))
            number = int(value.rstrip("UL"), 0) if value else number
            words.setdefault(number, word)
            number += 1
    return by_enum


@cache
def element_types() -> dict[str, str]:
    """C++ types of the header by the name of the element type."""
    text = (_MACHINE / "record.hpp").read_text(encoding="utf-8")
    return {name: type for type, name in re.findall(r"X\((\w+), (\w+)\)", text)}


def qualified(enum: str) -> str:
    """An enumeration of the header with its namespace inside `pto`."""
    return f"comm::{enum}" if enum in dict(_declared("ranks.hpp")) else enum


_NAMED_LIKE_KINDS = """RoundMode SaturationMode AtomicType ReluPreMode AccToVecMode STPhase AccPhase
 MaskPattern QuantType QuantScaleAlg VecStoreMode Coalesce GatherOOB ScatterAtomicOp ScatterOOB
 NotifyOp WaitCmp ReduceOp"""
_PRECISE = "Pow Div Sqrt Rsqrt Recip Exp Log Fmod FmodS Rem RemS"
_NEW_WORD = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Enumerations of the header -> their kind of attribute.
ENUM_KINDS = {
    "CmpMode": "cmp",
    "pipe_t": "pipe",
    **{name: _NEW_WORD.sub("_", name).lower() for name in _NAMED_LIKE_KINDS.split()},
    **{f"{name}Algorithm": "precision_mode" for name in _PRECISE.split()},
}
# Enumerations that set an attribute of this name.
ENUM_NAMES = {
    "TileSplitAxis": "split",
    "HistByte": "byte",
    "TInsertMode": "mode",
    "SyncCoreType": "core_type",
    "SyncAllMode": "mode",
    "SetFmatrixMode": "fmatrix",
}


def attribute_of(row: Instr, enum: str, taken: Container[str] = ()) -> Attr | None:
    """The next attribute of a row that an enumeration of the header sets."""
    kind, name = ENUM_KINDS.get(enum), ENUM_NAMES.get(enum)
    for attr in row.attrs:
        if attr.name in taken:
            continue
        if attr.name == name or (kind is not None and kind in attr.kind.split("|")):
            return attr
    return None
