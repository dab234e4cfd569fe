"""MLIR's generic form: `"pto.tadd"(%a, %b, %c) {..} : (T, T, T) -> ()`, the same for every row."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pto.ir.canonical import ARITH_FLAGS
from pto.ir.graph import Operation, Value
from pto.ir.text.cursor import Draft, distribute
from pto.isa.row.attributes import Ints, Raw
from pto.isa.row.instr import Instr
from pto.isa.row.traits import Control
from pto.isa.simt.launch import SIMT_SECTION
from pto.isa.table import lookup, suggest

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser

SIZES = "operandSegmentSizes"


def read_generic(p: Parser, start: int) -> Operation:
    at = p.i
    name = p.take()[1:-1]
    row = lookup(name)
    if row is None:
        p.fail("PTO-P021", f"unknown operation `{name}`", help=suggest(name), at=at)
    op = Operation(row.name, row)
    draft = Draft(row, op)
    operands = read_operands(p)
    if p.accept("<"):
        _attrs(p, draft)
        p.expect(">")
    _regions(p, op)
    if p.text == "{":
        _attrs(p, draft)
    p.expect(":")
    draft.pending = list(operands)
    p.signature(draft)
    _segments(p, draft, operands, at)
    for type in draft.result_types:
        op.new_result(type)
    op.where = p.span(start, at)
    _check_parts(p, op, row, at)
    return op


_REGIONS = {c: 0 if c.is_terminator else 1 for c in Control} | {
    Control.CALL: 0,
    Control.IF: 2,
    Control.WHILE: 2,
}


def _check_parts(p: Parser, op: Operation, row: Instr, at: int) -> None:
    """Report missing regions, and missing attributes that the custom form writes as words."""
    cases = op.attrs.get("cases")
    wanted = 1 if row is SIMT_SECTION else 0 if row.control is None else _REGIONS[row.control]
    wanted = 1 + len(cases.values) if isinstance(cases, Ints) else wanted
    if len(op.regions) != wanted:
        message = f"'{row.name}' op has {wanted} regions, got {len(op.regions)}"
        p.fail("PTO-P028", message, at=at)
    named = ("sym_name", "function_type") if row.control is Control.FUNCTION else ()
    needed = (*named, *(a.name for a in row.attrs if a.required and row.text.startswith("=")))
    missing = next((name for name in needed if name not in op.attrs), None)
    if missing is not None:
        p.fail("PTO-T026", f"'{row.name}' op needs attribute {missing}", at=at)


def read_operands(p: Parser) -> list[Value]:
    return [p.use() for _ in p.items("(", ")")]


_MAY_LACK = (Control.FUNCTION, Control.IF)  # declarations have no body, conditions no else


def _regions(p: Parser, op: Operation) -> None:
    if not (p.text == "(" and p.texts[p.i + 1] == "{"):
        return
    p.i += 1
    while True:
        region = op.new_region()
        if p.at("{") and p.texts[p.i + 1] == "}" and op.control in _MAY_LACK:
            p.i += 2
        else:
            p.region(region)
        if not p.accept(","):
            break
    p.expect(")")


_NO_FLAGS = [Raw(f"#{kind}<none>") for kind in ARITH_FLAGS]  # the custom form leaves them out


def _attrs(p: Parser, draft: Draft) -> None:
    items = p.attr_items("{", "}")
    written = [(k, v) for k, v in items if draft.row.attr(k) is None or v not in _NO_FLAGS]
    p.set_attributes(draft, written)


def _segments(p: Parser, draft: Draft, operands: list[Value], at: int) -> None:
    row, op = draft.row, draft.op
    op.operands = operands
    segments = op.attrs.pop(SIZES, None)
    sizes = segments.values if isinstance(segments, Ints) else None
    groups = _divided(_parts(row, row.generic), sizes, operands) if row.generic else None
    if groups is not None:
        op.operands = [v for name in row.operand_names for v in groups.get(name, ())]
        sizes = tuple(len(groups.get(name, ())) for name in row.operand_names)
    if row.fixed_operands:
        if len(operands) != len(row.operands):
            wanted = len(row.operands)
            message = f"'{row.name}' op expects {wanted} operands, got {len(operands)}"
            p.fail("PTO-P012", message, at=at)
    elif sizes is not None:
        op.segments = _checked(p, row, sizes, len(operands), at)
    else:
        chunks = distribute(p, row, row.operands, operands)
        op.segments = tuple(len(values) for _, values in chunks)


class _OperandPart(NamedTuple):
    """Operands of a row that are one in the generic form, and whether there may be less of it."""

    names: tuple[str, ...]
    is_open: bool


@cache
def _parts(row: Instr, layout: str = "") -> tuple[_OperandPart, ...]:
    if not layout:
        return tuple(_OperandPart((o.name,), o.optional or o.variadic) for o in row.operands)
    words = layout.split()
    return tuple(_OperandPart(tuple(w.rstrip("?*").split("+")), w[-1] in "?*") for w in words)


def arranged(op: Operation) -> tuple[list[Value], Ints | None]:
    """Operands in the order of the generic form, and the segment sizes if they are needed."""
    parts = _parts(op.row, op.row.generic)
    groups = [[v for name in part.names for v in op.group(name)] for part in parts]
    if sum(map(len, groups)) != len(op.operands):  # PTOAS has no such form
        parts = _parts(op.row)
        groups = [op.group(name) for name in op.row.operand_names]
    count = sum(part.is_open for part in parts)  # one is found by counting, as MLIR does
    sizes = Ints("i32", tuple(map(len, groups))) if count > 1 else None
    return [v for group in groups for v in group], sizes


def _divided(
    parts: tuple[_OperandPart, ...], sizes: tuple[int, ...] | None, operands: list[Value]
) -> dict[str, list[Value]] | None:
    """Which operand has which values; None where they are written as the row orders them."""
    if sizes is None:
        spare = len(operands) - sum(not part.is_open for part in parts)
        sizes = tuple(spare if part.is_open else 1 for part in parts)
    if len(sizes) != len(parts) or sum(sizes) != len(operands) or min(sizes) < 0:
        return None
    left, groups = iter(operands), dict[str, list[Value]]()
    for part, size in zip(parts, sizes, strict=True):
        if size > len(part.names) or (size != 1 and not part.is_open):
            return None
        groups |= {name: [next(left)] for name in part.names[:size]}
    return groups


def _checked(p: Parser, row: Instr, sizes: tuple[int, ...], total: int, at: int) -> tuple[int, ...]:
    """Segment sizes as a tool wrote them; rejected unless they fit the row and the operands.

    An older program has no size for an operand that came later.
    """
    if len(sizes) == len(row.operands) - 1:
        newer = [n for n, operand in enumerate(row.operands) if operand.optional]
        sizes = (*sizes[: newer[-1]], 0, *sizes[newer[-1] :]) if newer else sizes
    fits = len(sizes) == len(row.operands) and sum(sizes) == total
    for operand, size in zip(row.operands, sizes, strict=False):
        least = 0 if operand.optional or operand.variadic else 1
        most = total if operand.variadic else 1
        fits = fits and least <= size <= most
    if not fits:
        listed = ", ".join(map(str, sizes))
        p.fail("PTO-P012", f"'{row.name}' op cannot divide {total} operands as [{listed}]", at=at)
    return sizes
