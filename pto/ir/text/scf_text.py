"""The syntax of control flow: loops and conditions with their regions and carried values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pto.ir.graph import Operation, Region, Value
from pto.ir.text import lexer as lx
from pto.ir.text.cursor import Draft
from pto.ir.text.types import type_text
from pto.isa.row.attributes import Int, Ints, integers
from pto.isa.row.traits import Control
from pto.isa.scalar.structure import YIELD

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser
    from pto.ir.text.printer import PrintedLine

Named = tuple[str, int, Value]  # name, token, value


def _read_body(p: Parser, region: Region, args: Sequence[Named] = ()) -> None:
    """A region of scf, which ends with a yield; text may leave an empty one out."""
    p.region(region, args)
    block = region.block
    if block.ops and block.ops[-1].control in (Control.YIELD, Control.CONDITION):
        return
    end = Operation.of(YIELD, where=region.owner.where)
    end.segments = (0,)
    block.append(end)


def read_for(p: Parser, draft: Draft) -> None:
    at, name = p.i, p.take()[1:]
    if p.kinds[at] != lx.VALUE:
        p.fail("PTO-P020", "expected the loop variable", at=at)
    for word, operand in (("=", "lower"), ("to", "upper"), ("step", "step")):
        p.expect(word)
        draft.bound[operand] = [p.use()]
    read_turns(p, draft, name, at)


def read_turns(p: Parser, draft: Draft, name: str, at: int) -> None:
    """Read a counted loop after its bounds: the carried values and the body."""
    inits: list[Named] = []
    if p.accept("iter_args"):
        inits = _initial_values(p, draft)
        p.expect("->")
        draft.result_types = p.types()
    index = draft.bound["lower"][0].type
    if p.accept(":"):
        index = p.type()
    _read_body(p, draft.op.new_region(), [(name, at, Value(index, name)), *inits])
    p.optional_dict(draft)


def _initial_values(p: Parser, draft: Draft) -> list[Named]:
    """`(%a = %init, ...)`."""
    named: list[Named] = []
    draft.bound["inits"] = []
    for _ in p.items("(", ")"):
        at, name = p.i, p.take()[1:]
        p.expect("=")
        init = p.use()
        draft.bound["inits"].append(init)
        named.append((name, at, Value(init.type, name)))
    return named


def _write_inits(line: PrintedLine, names: list[Value], inits: list[Value]) -> str:
    pairs = zip(names, inits, strict=True)
    return "(" + ", ".join(f"{line.define(a)} = {line.name(i)}" for a, i in pairs) + ")"


def write_for(line: PrintedLine, op: Operation) -> None:
    block = op.regions[0].block
    lower, upper, step, *inits = op.operands
    line.put(f"{line.define(block.args[0])} = {line.name(lower)} to {line.name(upper)}")
    line.put(f"step {line.name(step)}")
    if inits:
        line.put("iter_args" + _write_inits(line, block.args[1:], inits))
        line.put("-> (" + ", ".join(type_text(r.type) for r in op.results) + ")")
    if type_text(lower.type) != "index":
        line.put(": " + type_text(lower.type))
    line.region(op.regions[0])
    line.dictionary(op.attrs)


def read_if(p: Parser, draft: Draft) -> None:
    if p.kind != lx.VALUE:
        p.fail("PTO-P020", f"expected the condition, got {p.shown()}")
    draft.bound["condition"] = [p.use()]
    if p.accept("->"):
        draft.result_types = p.types()
    then, other = draft.op.new_region(), draft.op.new_region()
    _read_body(p, then)
    if p.accept("else"):
        _read_body(p, other)
    p.optional_dict(draft)


def write_if(line: PrintedLine, op: Operation) -> None:
    line.put(line.name(op.operands[0]))
    if op.results:
        line.put("-> (" + ", ".join(type_text(r.type) for r in op.results) + ")")
    line.region(op.regions[0])
    if op.regions[1].blocks:
        line.put("else")
        line.region(op.regions[1])
    line.dictionary(op.attrs)


def read_switch(p: Parser, draft: Draft) -> None:
    """`%n {attrs} -> T, T case 0 { .. } case 1 { .. } default { .. }`; the default is region 0."""
    if p.kind != lx.VALUE:
        p.fail("PTO-P020", f"expected the operand of the switch, got {p.shown()}")
    draft.bound["arg"] = [p.use()]
    p.optional_dict(draft)
    if p.accept("->"):
        p.result_types(draft)
    default, cases = draft.op.new_region(), list[int]()
    while p.accept("case"):
        at, number = p.i, p.attribute()
        if not isinstance(number, Int):
            p.fail("PTO-P020", "expected the number of a case", at=at)
        cases.append(number.value)
        _read_body(p, draft.op.new_region())
    p.expect("default")
    _read_body(p, default)
    draft.op.attrs["cases"] = Ints("i64", tuple(cases))


def write_switch(line: PrintedLine, op: Operation) -> None:
    line.put(line.name(op.operands[0]))
    line.rest(op, "cases")
    if op.results:
        line.put("-> " + ", ".join(type_text(r.type) for r in op.results))
    default, *regions = op.regions
    for number, region in zip(integers(op.attrs, "cases"), regions, strict=True):
        line.put(f"case {number}")
        line.region(region)
    line.put("default")
    line.region(default)


def read_region(p: Parser, draft: Draft) -> None:
    """`-> T { .. }` of scf, `{ .. } : T` of pto."""
    if p.accept("->"):
        draft.result_types = p.types()
    _read_body(p, draft.op.new_region())
    p.optional_dict(draft)
    if p.accept(":"):
        p.result_types(draft)


def write_region(line: PrintedLine, op: Operation) -> None:
    types = ", ".join(type_text(r.type) for r in op.results)
    before = op.row.family.dialect == "scf."
    if types and before:
        line.put(f"-> ({types})")
    line.region(op.regions[0], label=bool(op.regions[0].block.args))
    line.dictionary(op.attrs)
    if types and not before:
        line.put(f": {types}")


def read_while(p: Parser, draft: Draft) -> None:
    inits = _initial_values(p, draft) if p.text == "(" else []
    p.expect(":")
    signature = p.function_type()
    draft.result_types = list(signature.results)
    before, after = draft.op.new_region(), draft.op.new_region()
    p.region(before, inits)
    p.expect("do")
    _read_body(p, after)
    if p.accept("attributes"):
        p.attr_dict(draft)


def write_while(line: PrintedLine, op: Operation) -> None:
    before, after = op.regions
    if op.operands:
        line.put(_write_inits(line, before.block.args, op.operands))
    line.signature(op, op.operands)
    line.region(before)
    line.put("do")
    line.region(after, label=True)
    line.attributes(op)
