"""MLIR's generic form: `"pto.tadd"(%a, %b, %c) {..} : (T, T, T) -> ()`, the same for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pto.ir.canonical import ARITH_FLAGS, canonical
from pto.ir.graph import Operation, Region, Value
from pto.ir.text import lexer as lx
from pto.ir.text.draft import Draft, distribute
from pto.isa.row.attributes import Attribute, Ints, Raw
from pto.isa.row.instr import Instr
from pto.isa.table import lookup, suggest

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser


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
        _attrs(p, draft, p.attr_items("{", "}"))
        p.expect(">")
    _regions(p, op)
    if p.text == "{":
        _attrs(p, draft, p.attr_items("{", "}"))
    p.expect(":")
    draft.pending = list(operands)
    p.signature(draft)
    _segments(p, draft, operands, at)
    op.results = [Value(t, "", op) for t in draft.result_types]
    op.where = p.span(start, at)
    return op


def read_operands(p: Parser) -> list[Value]:
    p.expect("(")
    operands: list[Value] = []
    while not p.accept(")"):
        if p.kind != lx.VALUE:
            p.fail("PTO-P020", f"expected an operand, got {p.shown()}")
        operands.append(p.use())
        if p.text != ")":
            p.expect(",")
    return operands


def _regions(p: Parser, op: Operation) -> None:
    if not (p.text == "(" and p.texts[p.i + 1] == "{"):
        return
    p.i += 1
    while True:
        region = Region(op)
        op.regions.append(region)
        if p.at("{") and p.texts[p.i + 1] == "}":
            p.i += 2  # a declaration has no body
        else:
            p.region(region)
        if not p.accept(","):
            break
    p.expect(")")


def _attrs(p: Parser, draft: Draft, items: list[tuple[str, Attribute]]) -> None:
    for key, value in items:
        spec = draft.row.attr(key)
        if spec is None:
            draft.op.attrs[key] = value
        elif spec.kind not in ARITH_FLAGS or value != Raw(f"#{spec.kind}<none>"):
            draft.op.attrs[spec.name] = canonical(p, spec, value)


def _segments(p: Parser, draft: Draft, operands: list[Value], at: int) -> None:
    row, op = draft.row, draft.op
    op.operands = operands
    sizes = op.attrs.pop("operandSegmentSizes", None)
    if row.fixed_operands:
        if len(operands) != len(row.operands):
            wanted = len(row.operands)
            message = f"'{row.name}' op expects {wanted} operands, got {len(operands)}"
            p.fail("PTO-P012", message, at=at)
    elif isinstance(sizes, Ints):
        op.segments = _checked(p, row, sizes.values, len(operands), at)
    else:
        chunks = distribute(p, row, row.operands, operands)
        op.segments = tuple(len(values) for _, values in chunks)


def _checked(p: Parser, row: Instr, sizes: tuple[int, ...], total: int, at: int) -> tuple[int, ...]:
    """Segment sizes as a tool wrote them: believed only where they fit the row and the operands.

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
        shown = ", ".join(map(str, sizes))
        p.fail("PTO-P012", f"'{row.name}' op cannot divide {total} operands as [{shown}]", at=at)
    return sizes
