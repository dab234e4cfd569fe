"""The scalar unit except arithmetic: queries, single elements, control registers, print."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from pto.core.dtypes import I64
from pto.core.errors import Diagnostic, Note, PtoError, fail
from pto.isa.meaning.handle.elements import ElementHandles
from pto.isa.meaning.handle.view import handle
from pto.isa.meaning.kinds import Do, Move
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.scalar.arith import bits_of
from pto.isa.meaning.tile.mover import Mover
from pto.isa.row import types as t
from pto.isa.row.attributes import Array, Int, Str
from pto.isa.rules.rule import Case

BLOCK_INDEX = handle(lambda x: x.core.block)
BLOCK_COUNT = handle(lambda x: x.core.blocks)
SUB_BLOCK_INDEX = handle(lambda x: x.core.sub)
SUB_BLOCK_COUNT = handle(lambda x: x.core.subs)


def _scalar(type: t.Type | None) -> t.Scalar:
    if not isinstance(type, t.Scalar) or type.dtype is None:
        raise fail("PTO-T193", "a scalar access needs an element type")
    return type


def _load(case: Case) -> Callable[..., Any]:
    """Load one element. Memory holds bits; the result type interprets them."""
    type = _scalar(case.op.results[0].type)
    return lambda x, ptr, offset: x.load_at(ptr, offset, type)


def _store(case: Case) -> Callable[..., None]:
    type = _scalar(case.type("value"))
    return lambda x, ptr, offset, value: x.store_at(ptr, offset, type, value)


LOAD_SCALAR = Do(_load, words=ElementHandles)
STORE_SCALAR = Do(_store, words=ElementHandles)

# ---- records of the scalar unit


def words_of(type: t.Type | None) -> int:
    """The number of words of a record: one for each field that is not a record."""
    return sum(map(words_of, type.fields)) if isinstance(type, t.Struct) else 1


def path_of(case: Case) -> list[int]:
    attr = case.op.attrs.get("path")
    items = attr.items if isinstance(attr, Array) else ()
    return [item.value for item in items if isinstance(item, Int)]


def field_at(type: t.Type | None, path: list[int]) -> t.Type | None:
    """The type of the field at a path; None if there is none."""
    for step in path:
        if not isinstance(type, t.Struct) or not 0 <= step < len(type.fields):
            return None
        type = type.fields[step]
    return type


def _field(case: Case) -> tuple[int, t.Scalar]:
    """The index of the word at a path of a record, and the type of the field."""
    type, word = case.type("s"), 0
    for step in path_of(case):
        fields = type.fields if isinstance(type, t.Struct) else ()
        word, type = word + sum(map(words_of, fields[:step])), fields[step]
    if not isinstance(type, t.Scalar):
        raise fail("PTO-T193", f"a field of a record must be a scalar, not {type}")
    return word, type


def _struct_get(case: Case) -> Callable[..., Any]:
    word, type = _field(case)
    return lambda x, record: x.scalar(x.slot(record, x.number(word)), type)


def _struct_set(case: Case) -> Callable[..., None]:
    word, type = _field(case)
    return lambda x, record, value: x.set_slot(record, x.number(word), x.bits(value, type))


STRUCT = Move(lambda case: lambda x: x.array(words_of(case.op.results[0].type)))
STRUCT_GET = Move(_struct_get)
STRUCT_SET = Move(_struct_set)

# ---- control registers


WORD = t.Scalar("i64", I64)


GET_CTRL = Move(lambda case: lambda x: x.scalar(x.get(registers.CTRL), WORD))
SET_CTRL = Move(lambda case: lambda x, value: x.put(registers.CTRL, x.number(value)))


def bit(value: int) -> Move:
    """The first operand with the bit of the second set to `value`."""

    def run(x: Mover, number: Any, index: Any) -> Any:
        at = x.number(index)
        x.require(
            (at >= 0) & (at < 64),
            lambda: fail("PTO-S134", f"bit {at} does not exist: a register has bits 0 to 63"),
        )
        word, mask = x.number(number), 1 << at
        return x.scalar(word | mask if value else word & ~mask, WORD)

    return Move(lambda case: run)


# ---- debugging

_FORMAT = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|ll|[hlzt])?[diufFeEgGxXc]")


def _print(case: Case) -> Callable[..., None]:
    """printf of one scalar; the format is data, and only one conversion in it is filled in."""
    value, type = case.op.attrs.get("format"), case.op.operands[0].type
    text = value.value if isinstance(value, Str) else "%d"
    bits = bits_of(type)

    def run(core: Machine, scalar: Any) -> None:
        left = [scalar]

        def put(match: re.Match[str]) -> str:
            if match[0] == "%%":
                return "%"
            return _formatted(match[0], left.pop(), bits) if left else match[0]

        core.printed.append(_FORMAT.sub(put, text))

    return run


def _formatted(spec: str, scalar: Any, bits: int) -> str:
    kind = spec[-1]
    flags = re.sub(r"hh|ll|[hlzt]", "", spec[1:-1])
    width = re.fullmatch(r"([-+ #0]*)(\d{0,3})\d*((?:\.\d{1,3})?)\d*", flags)
    width_text = "".join(width.groups()) if width else ""
    if kind in "fFeEgG" or not isfinite(scalar):
        return f"%{width_text}{kind if kind in 'fFeEgG' else 'f'}" % float(scalar)
    number = int(scalar) & _UNSIGNED[kind](bits) if kind in _UNSIGNED else int(scalar)
    return f"%{width_text}{'d' if kind in 'iu' else kind}" % number


# The bits that unsigned conversions show, for a scalar of this width.
_UNSIGNED: dict[str, Callable[[int], int]] = {
    **dict.fromkeys("uxX", lambda bits: (1 << bits) - 1),
    "c": lambda bits: 0xFF,
}


# the first words of the lines that an assertion of a kernel prints
ASSERTION = "assertion failed: "


def _trap(x: Mover) -> None:
    x.require(False, lambda: _trapped(x.core.name, list(x.core.printed)))


def _trapped(name: str, printed: list[str]) -> PtoError:
    """The text of a trap, with the lines that an assertion printed just before."""
    starts = [n for n, line in enumerate(printed) if line.startswith(ASSERTION)]
    if not starts:
        return fail("PTO-S135", f"{name} reached pto.trap")
    first, *values = printed[starts[-1] :]
    notes = tuple(Note(line) for line in values)
    return PtoError(Diagnostic("PTO-S135", f"{name}: {first}", notes=notes))


PRINT = Do(_print, host_only="prints")
TRAP = Move(lambda case: _trap)
