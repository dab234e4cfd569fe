"""SIMT entries: legal callers, placement of operations, and values kept between sections."""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation
from pto.ir.text.types import type_text
from pto.isa.row.attributes import Int, Symbol
from pto.isa.row.traits import Control
from pto.isa.row.types import Vector
from pto.isa.rules.simt import slot_words
from pto.isa.simt.launch import (
    INSIDE,
    KEEP,
    OUTSIDE,
    RESUME,
    SIMT_LAUNCH,
    SIMT_SECTION,
    SYNCTHREADS,
)
from pto.isa.simt.memory import ATOMIC
from pto.target.facts import Profile
from pto.verify import fragments
from pto.verify.functions import SIMT_ENTRY, name_of, signature_of

_PLACES = (INSIDE, OUTSIDE)


def check(module: Module, _: Profile) -> list[Diagnostic]:
    functions = {name_of(f): f for f in module.functions()}
    found: list[Diagnostic] = []
    for function in functions.values():
        entry = SIMT_ENTRY in function.attrs
        ours = [op for op in function.walk() if _is_ours(op)]
        for op in ours:
            found += _placed(op, entry)
            if op.row is SIMT_LAUNCH:
                found += _launch(op, functions)
        if entry:
            found += _groups(function)
        found += fragments.check(function)
        found += _old_values(function, ours)
    return found


def _is_ours(op: Operation) -> bool:
    return op.row is not None and (op.row.scope in _PLACES or op.row.family is ATOMIC)


def _placed(op: Operation, entry: bool) -> Iterator[Diagnostic]:
    scope = op.row.scope if op.row else ""
    entry = entry or any(above.row is SIMT_SECTION for above in op.ancestors())
    if scope == INSIDE and not entry:
        message = f"'{op.name}' op must be in a function marked '{SIMT_ENTRY}'"
        yield Diagnostic("PTO-S097", message, op.loc)
    if scope == OUTSIDE and entry:
        message = f"'{op.name}' op must be outside functions marked '{SIMT_ENTRY}'"
        yield Diagnostic("PTO-S097", message, op.loc)


def _launch(op: Operation, functions: dict[str, Operation]) -> Iterator[Diagnostic]:
    callee = op.attrs.get("callee")
    name = callee.name if isinstance(callee, Symbol) else ""
    target = functions.get(name)
    if target is None:
        message = f"'{op.name}' op launches @{name}, which this module does not define"
        yield Diagnostic("PTO-S098", message, op.loc)
        return
    if SIMT_ENTRY not in target.attrs:
        message = f"'{op.name}' op expects @{name} to be marked '{SIMT_ENTRY}'"
        yield Diagnostic("PTO-S098", message, op.loc)
    wanted = signature_of(target)
    given = tuple(v.type for v in op.group("args"))
    if wanted.results or given != wanted.inputs:
        shown = ", ".join(map(type_text, given))
        message = (
            f"'{op.name}' op expects the type of @{name}: "
            f"it is {type_text(wanted)}, the launch is ({shown}) -> ()"
        )
        yield Diagnostic("PTO-S098", message, op.loc)


def _groups(function: Operation) -> Iterator[Diagnostic]:
    """Resumes must come first, keeps last, and each slot may be named once by either."""
    body = function.regions[0].blocks[0].ops if function.regions[0].blocks else []
    rest = [op for op in body if not op.traits.constant]
    first = next((n for n, op in enumerate(rest) if op.row is not RESUME), len(rest))
    tail = len(rest) - (bool(rest) and rest[-1].control is Control.RETURN)
    while tail and rest[tail - 1].row is SYNCTHREADS:
        tail -= 1
    start = tail
    while start and rest[start - 1].row is KEEP:
        start -= 1
    for row, group, where in (
        (RESUME, rest[:first], "start of its entry, after constants only"),
        (KEEP, rest[start:tail], f"end of its entry, before {SYNCTHREADS.name} and return only"),
    ):
        for op in function.walk():
            if op.row is row and op not in group:
                yield Diagnostic("PTO-S099", f"'{op.name}' op must be at the {where}", op.loc)
        yield from _slots(group)


def _slots(group: list[Operation]) -> Iterator[Diagnostic]:
    used: set[int] = set()
    for op in group:
        slot = op.attrs.get("slot")
        first = slot.value if isinstance(slot, Int) else 0
        value = (op.operands or op.results)[0]
        words = set(range(first, first + slot_words(value.type)))
        if words & used:
            message = f"'{op.name}' op uses slot {first} again"
            yield Diagnostic("PTO-S099", message, op.loc)
        used |= words


def _old_values(function: Operation, ours: list[Operation]) -> Iterator[Diagnostic]:
    """Packed atomics update memory and return no old value, so a result must not be used."""
    packed = {
        op.results[0]: op
        for op in ours
        if op.row is not None
        and op.row.family is ATOMIC
        and op.results
        and isinstance(op.results[0].type, Vector)
    }
    if not packed:
        return
    used = {value for op in function.walk() for value in op.operands}
    for value, op in packed.items():
        if value in used:
            message = f"'{op.name}' op has no old value for {type_text(op.results[0].type)}"
            yield Diagnostic("PTO-M091", message, op.loc)
