"""Checks arrays of a work item that outlive a section: their users and the elements accessed.

A compiler keeps them in registers, so it must know the element of every access statically.
"""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Operation, Value
from pto.isa.meaning.simt.memory import OWN_ARRAY, OWN_ELEMENT, OWN_LOAD
from pto.isa.row.attributes import OfType
from pto.isa.row.traits import Control
from pto.isa.row.types import Scalar, Type, Vector
from pto.isa.simt.launch import SIMT_SECTION

PERSISTENT = "pto.persistent"
_CODE = "PTO-S143"
_KERNEL = ("pto.entry", "pto.aicore", "pto.kernel", "pto.kernel_kind")
_LANES = (2, 4)  # of a vector that is loaded or stored at once
_WORD = 4


def check(function: Operation) -> Iterator[Diagnostic]:
    for op in function.walk():
        if op.body is OWN_ARRAY and PERSISTENT in op.attrs:
            yield from _array(function, op)


def _array(function: Operation, op: Operation) -> Iterator[Diagnostic]:
    if not any(mark in function.attrs for mark in _KERNEL):
        yield op.finding(_CODE, "makes an array that outlives a section: only a kernel may")
    length, size = op.operands[0].number, _bytes(_element(op))
    nbytes = None if length is None else length * size
    sizes = {tuple(section.attrs.get(f"dim{d}") for d in "XYZ") for section in _sections(function)}
    uses = list(_uses(function, op.results[0], 0))
    if uses and len(sizes) > 1:
        yield uses[-1][0].finding(_CODE, "expects the sections beside an array to have one size")
    for use, _ in uses:
        yield from _placed(use)
    yield from _elements(uses, nbytes)


def _sections(function: Operation) -> list[Operation]:
    return [op for op in function.walk() if op.row is SIMT_SECTION]


def _element(op: Operation) -> Type | None:
    written = op.attrs.get("elem_type")
    return written.type if isinstance(written, OfType) else None


def _bytes(type: Type | None) -> int:
    elem = type.elem if isinstance(type, Vector) else type
    count = type.shape[0] or 1 if isinstance(type, Vector) else 1
    return count * elem.dtype.itemsize if isinstance(elem, Scalar) and elem.dtype else _WORD


def _uses(
    function: Operation, value: Value, at: int | None
) -> Iterator[tuple[Operation, int | None]]:
    """Loads and stores through a pointer or one made from it, each with its byte where known."""
    for op in function.walk():
        if not any(v is value for v in op.operands):
            continue
        if op.body is not OWN_ELEMENT:
            yield op, at
            continue
        index = op.operands[1].number
        is_known = at is not None and index is not None
        there = (at or 0) + (index or 0) * _bytes(_element(op)) if is_known else None
        yield from _uses(function, op.results[0], there)


def _placed(use: Operation) -> Iterator[Diagnostic]:
    above = list(use.ancestors())
    inside = next((n for n, op in enumerate(above) if op.row is SIMT_SECTION), None)
    if inside is None or any(op.control in (Control.IF, Control.WHILE) for op in above[:inside]):
        where = "in a section of work items" if inside is None else "where all of a section pass"
        yield use.finding(_CODE, f"must be {where}")
    type = _moved(use)
    if isinstance(type, Vector) and type.shape[0] not in _LANES:
        yield use.finding(_CODE, f"takes 1, 2 or 4 elements at once, not {type.shape[0]}")


def _moved(use: Operation) -> Type | None:
    values = use.group("value") or use.results
    return values[0].type if values else None


def _elements(uses: list[tuple[Operation, int | None]], nbytes: int | None) -> Iterator[Diagnostic]:
    """Every access must be in bounds, aligned, and stored before it is loaded."""
    stored: set[int] | None = set()  # None: a store in a loop, at an unknown byte
    for use, at in sorted(uses, key=lambda pair: pair[0].loc.line if pair[0].loc else 0):
        type = _moved(use)
        size = _bytes(type)
        unit = _bytes(type.elem) if isinstance(type, Vector) else size
        if at is None:
            if not use.loops():
                yield use.finding(_CODE, "expects an element that is known beforehand")
            stored = None
        elif at < 0 or at % unit:
            yield use.finding(_CODE, f"expects a multiple of {unit} bytes: it is {at}")
        elif nbytes is not None and at + size > nbytes:
            yield use.finding(_CODE, f"ends at byte {at + size} of an array of {nbytes}")
        elif use.body is not OWN_LOAD:
            stored = None if stored is None else stored | set(range(at, at + size))
        elif stored is not None and not set(range(at, at + size)) <= stored:
            yield use.finding(_CODE, f"loads byte {at}, which nothing has stored")
