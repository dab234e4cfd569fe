"""SIMT entries: legal callers, placement of operations, and values kept between sections."""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation
from pto.ir.text.types import type_text
from pto.isa.row.attributes import integer, word
from pto.isa.row.traits import Control
from pto.isa.row.types import Function, Vector
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
from pto.verify.functions import SIMT_ENTRY

_PLACES = (INSIDE, OUTSIDE)


def check(module: Module, _: Profile) -> Iterator[Diagnostic]:
    functions = {f.symbol: f for f in module.functions()}
    for function in functions.values():
        entry = SIMT_ENTRY in function.attrs
        ours = [op for op in function.walk() if _is_ours(op)]
        for op in ours:
            yield from _placed(op, entry)
            if op.row is SIMT_LAUNCH:
                yield from _launch(op, functions)
        if entry:
            yield from _groups(function)
        yield from fragments.check(function)
        yield from _old_values(ours)


def _is_ours(op: Operation) -> bool:
    return op.row.scope in _PLACES or op.row.family is ATOMIC


def _placed(op: Operation, entry: bool) -> Iterator[Diagnostic]:
    scope = op.row.scope
    entry = entry or any(above.row is SIMT_SECTION for above in op.ancestors())
    if scope == INSIDE and not entry:
        yield op.finding("PTO-S097", f"must be in a function marked '{SIMT_ENTRY}'")
    if scope == OUTSIDE and entry:
        yield op.finding("PTO-S097", f"must be outside functions marked '{SIMT_ENTRY}'")


def _launch(op: Operation, functions: dict[str, Operation]) -> Iterator[Diagnostic]:
    name = word(op.attrs, "callee") or ""
    target = functions.get(name)
    if target is None:
        yield op.finding("PTO-S098", f"launches @{name}, which this module does not define")
        return
    if SIMT_ENTRY not in target.attrs:
        yield op.finding("PTO-S098", f"expects @{name} to be marked '{SIMT_ENTRY}'")
    wanted = target.signature
    passed = tuple(v.type for v in op.group("args"))
    if wanted.results or passed != wanted.inputs:
        types = f"it is {type_text(wanted)}, the launch is {type_text(Function(passed, ()))}"
        yield op.finding("PTO-S098", f"expects the type of @{name}: {types}")


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
                yield op.finding("PTO-S099", f"must be at the {where}")
        yield from _slots(group)


def _slots(group: list[Operation]) -> Iterator[Diagnostic]:
    used: set[int] = set()
    for op in group:
        first = integer(op.attrs, "slot") or 0
        value = (op.operands or op.results)[0]
        words = set(range(first, first + slot_words(value.type)))
        if words & used:
            yield op.finding("PTO-S099", f"uses slot {first} again")
        used |= words


def _old_values(ours: list[Operation]) -> Iterator[Diagnostic]:
    """Packed atomics update memory and return no old value, so a result must not be used."""
    for op in ours:
        is_atomic = op.row.family is ATOMIC
        for value in op.results[:1] if is_atomic else ():
            if isinstance(value.type, Vector) and value.uses:
                yield op.finding("PTO-M091", f"has no old value for {type_text(value.type)}")
