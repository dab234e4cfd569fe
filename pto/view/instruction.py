"""The page of one instruction, for `pto isa NAME` and for editors."""

from __future__ import annotations

from pto.core.render import Piece
from pto.ir.text.example import example
from pto.isa.cost.shown import cost_texts
from pto.isa.row import describe
from pto.isa.row.instr import PROFILES, Instr


def page(row: Instr) -> list[Piece]:
    """Operands, types per profile, rules, cost, example and sources of an instruction."""
    out: list[Piece] = [("title", f"{row.name}"), ("", f"  {row.meaning}\n")]
    out += _line("family", f"{row.family.name}: {row.family.meaning}")
    if row.aliases:
        out += _line("also", " ".join(row.aliases))
    out += [("", "\n")]
    for o in row.operands:
        out += _line(o.name, describe.operand_text(o))
    for r in row.results:
        out += _line(r.name, f"{r.kind}, result")
    for a in row.attrs:
        out += _line(a.name, describe.attr_text(a))
    out += [("", "\n"), *_line("pipe", describe.pipe_text(row.pipe))]
    for name, forms in row.phases.items():
        for form in forms:
            out += _line(f"phases {name}", str(form))
    if row.scope:
        out += _line("stands", row.scope)
    for p in PROFILES:
        out += _line(
            p, f"{describe.types_text(row, p)}" + (f" (of {row.subject})" if row.types else "")
        )
    for chip, text in cost_texts(row).items():
        out += _line(f"cost {chip}", text)
    out += _rules(row)
    sample = example(row)
    if sample:
        out += [("", "\n"), ("dim", "example\n"), ("", f"  {sample}\n")]
    for note in row.notes:
        out += [("", "\n"), ("note", "note "), ("", f"{note}\n")]
    return [*out, ("", "\n"), ("dim", f"source: {'; '.join(row.cite)}\n")]


def _line(name: str, text: str) -> list[Piece]:
    return [("name", f"  {name:<12} "), ("", f"{text}\n")]


def _rules(row: Instr) -> list[Piece]:
    out: list[Piece] = [("", "\n")] if row.rules else []
    for rule in row.rules:
        where = f" ({', '.join(rule.profiles)})" if rule.profiles else ""
        out += [("value", f"  {rule.code} "), ("", f"{rule.sentence}{where}\n")]
    return out
