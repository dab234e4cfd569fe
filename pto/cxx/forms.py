"""How C++ calls an instruction: derived from its row, or the row's `cxx`.

A form is `NAME<template> operand operand...`, forms are joined by `|`. An operand is one of the
row, or an attribute of it:

    x        required          x?   may be missing         x=0   0 when missing
    x*       all that follow   x:acc  a tile of that role  x+y   one argument for both
    _        taken, not used   x~     tiles of one type    x@u32 elements of that type, as bits
    x/y      a column with as many rows as y

Inside `<...>`: integers in order, `x=0` fixed by this form, `Mode=Word` an enumerator that chooses
the form. Enumerators find their attribute by the name of their type, wherever they stand. What
begins with `-` is no form but the reason for there being none. What follows `= ` is no call but
how C++ is written for it: `= {lhs} + {rhs}`.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pto.isa.row.instr import Attr, Instr
from pto.isa.table import rows

# Sections whose rows C++ kernels do not call: they write intrinsics of the compiler there.
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


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a form."""

    names: tuple[str, ...]  # of operands or attributes; empty: taken and not used
    optional: bool = False
    default: int | None = None
    rest: bool = False
    role: str = ""
    alike: bool = False  # all such arguments of a call have one type
    element: str = ""  # the element type that the library takes
    rows_of: str = ""  # the operand whose number of rows a column has


@dataclass(frozen=True, slots=True)
class Form:
    """One way to call a row."""

    row: Instr
    name: str
    arguments: tuple[Argument, ...]
    literals: tuple[str, ...] = ()  # attributes that integers between < and > set
    fixed: tuple[tuple[str, str], ...] = ()  # attribute -> value, or enum type -> word it must be


def _argument(text: str) -> Argument:
    text, _, element = text.partition("@")
    text, _, rows_of = text.partition("/")
    word, _, role = text.removesuffix("~").partition(":")
    alike = text.endswith("~")
    name, _, default = word.partition("=")
    rest, optional = name.endswith("*"), name.endswith("?")
    names = tuple(n for n in name.rstrip("?*").split("+") if n != "_")
    number = int(default) if default else None
    return Argument(
        names, optional or number is not None, number, rest, role, alike, element, rows_of
    )


def _parse(row: Instr, text: str) -> Form:
    found = re.fullmatch(r"\s*([\w:]+)(?:<([^>]*)>)?\s*(.*?)\s*", text)
    if found is None:
        raise RuntimeError(f"{row.name}: `{text}` is no form")
    name, inside, operands = found.groups()
    words = (inside or "").replace(",", " ").split()
    literals = tuple(w for w in words if "=" not in w)
    fixed = tuple((a, b) for a, _, b in (w.partition("=") for w in words if "=" in w))
    return Form(row, name, tuple(_argument(w) for w in operands.split()), literals, fixed)


def cxx_name(row: Instr) -> str:
    """The name a call has when the row does not say otherwise."""
    if row.family.section == "comm":
        return "comm::" + row.mnemonic.rpartition(".")[2].upper()
    return row.mnemonic.upper().replace(".", "_")


def _derived(row: Instr) -> Form:
    """What is written comes first, then what is read, in the row's order."""
    outs = [o for o in row.operands if o.role in ("out", "inout") and not o.optional]
    ins = [o for o in row.operands if o.role in ("in", "tmp")]
    arguments = [Argument((o.name,), o.optional, rest=o.variadic) for o in (*outs, *ins)]
    return Form(row, cxx_name(row), tuple(arguments))


def expression(row: Instr) -> str:
    """How C++ is written for a row that is no call, with {operand} for its operands; or nothing."""
    return _split(row.cxx)[1]


def _split(cxx: str) -> tuple[str, str]:
    """Calls, and what is written instead of one."""
    if cxx.startswith("= "):
        return "", cxx[2:]
    calls, _, written = cxx.partition(" | = ")
    return calls, written


def reason(row: Instr) -> str | None:
    """Why C++ has no call for a row; None where it has one."""
    if row.cxx.startswith("-"):
        return row.cxx[1:].strip()
    if row.cxx.startswith("= "):
        return "no call: C++ has an expression for it"
    return None if row.cxx else WITHOUT.get(row.family.section)


def forms(row: Instr) -> tuple[Form, ...]:
    """Every way C++ calls a row; none where there is a `reason`."""
    if reason(row) is not None:
        return ()
    if not row.cxx:
        return (_derived(row),)
    return tuple(_parse(row, text) for text in _split(row.cxx)[0].split("|"))


@cache
def by_name() -> dict[str, tuple[Form, ...]]:
    """C++ name -> forms of all rows that share it, in the table's order."""
    found: dict[str, list[Form]] = {}
    for row in rows():
        for form in forms(row):
            found.setdefault(form.name, []).append(form)
    return {name: tuple(each) for name, each in found.items()}


_ENUM = re.compile(r"enum (?:class )?(\w+)[^{;]*\{([^}]*)\}")


@cache
def enumerators() -> dict[str, dict[int, str]]:
    """Enumerations of the header: name -> number -> word, the first of those that share one."""
    text = (Path(__file__).parent / "include/pto/machine/words.hpp").read_text(encoding="utf-8")
    found: dict[str, dict[int, str]] = {}
    for name, body in _ENUM.findall(text):
        words, number = found.setdefault(name, {}), 0
        for each in body.split(","):
            word, _, value = (part.strip() for part in each.partition("="))
            number = int(value.rstrip("UL"), 0) if value else number
            words.setdefault(number, word)
            number += 1
    return found


# Enumerations of the header -> the kind of attribute they are; others are found by name.
ENUM_KINDS = {
    "CmpMode": "cmp",
    "RoundMode": "round_mode",
    "SaturationMode": "saturation_mode",
    "AtomicType": "atomic_type",
    "ReluPreMode": "relu_pre_mode",
    "AccToVecMode": "acc_to_vec_mode",
    "STPhase": "st_phase",
    "AccPhase": "acc_phase",
    "MaskPattern": "mask_pattern",
    "QuantType": "quant_type",
    "QuantScaleAlg": "quant_scale_alg",
    "VecStoreMode": "vec_store_mode",
    "Coalesce": "coalesce",
    "GatherOOB": "gather_oob",
    "ScatterAtomicOp": "scatter_atomic_op",
    "ScatterOOB": "scatter_oob",
    "NotifyOp": "notify_op",
    "WaitCmp": "wait_cmp",
    "ReduceOp": "reduce_op",
    "pipe_t": "pipe",
    **{
        f"{name}Algorithm": "precision_mode"
        for name in [
            "Pow",
            "Div",
            "Sqrt",
            "Rsqrt",
            "Recip",
            "Exp",
            "Log",
            "Fmod",
            "FmodS",
            "Rem",
            "RemS",
        ]
    },
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
