"""Every instruction of our own programs, made again by its Python function: the same operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pto.ir.builder import new_function, new_module
from pto.ir.graph import Operation, Value
from pto.ir.text.parser import parse_file
from pto.isa.row import types as t
from pto.isa.row.attributes import Array, Bool, Enum, Int, Str, Symbol
from pto.lang.call import instructions as functions
from pto.lang.call.signature import instructions, parameters, python_name
from pto.lang.trace import Trace
from pto.lang.values.registers import wrap
from pto.lang.values.tiles import Tile

PROGRAMS = sorted((Path(__file__).parent.parent / "pto" / "good").glob("*.pto"))
BY_ROW = {row.name: name for name, row in instructions().items()}


def plain(attribute: Any) -> Any:
    """An attribute as a person writes it in Python."""
    if isinstance(attribute, Array):
        return [plain(each) for each in attribute.items]
    if isinstance(attribute, Symbol):
        return attribute.name
    if isinstance(attribute, Int | Bool | Str | Enum):
        return attribute.value
    return None


def proxy(value: Value, trace: Trace) -> Any:
    if isinstance(value.type, t.TileBuf):
        return Tile(value, trace, True, value.type.tile.shape)
    if isinstance(value.type, t.View | t.MemRef | t.Vector):
        return value
    return wrap(value, trace)


def again(op: Operation) -> Operation:
    """The same operation, made by calling its function with values of the same types."""
    assert op.row is not None
    given = list({id(v): v for v in op.operands}.values())
    module = new_module({})
    function = new_function(module, "f", [(f"a{n}", v.type) for n, v in enumerate(given)])
    with Trace("f", "a5", module, function) as trace:
        stand_in = dict(zip(map(id, given), trace.builder.block.args, strict=True))
        named: dict[str, Any] = {}
        for operand in op.row.operands:
            values = [proxy(stand_in[id(v)], trace) for v in op.group(operand.name)]
            if values:
                named[operand.name] = values if operand.variadic else values[0]
        named |= {k: plain(v) for k, v in op.attrs.items()}
        if op.results and any(p.name == "to" for p in parameters(op.row)):
            named["to"] = op.results[0].type
        getattr(functions, python_name(op.row))(**named)
        return trace.builder.block.ops[-1]


def described(op: Operation) -> Any:
    """Attributes as words: of two enumerations with one word, Python takes the first."""
    attrs = {k: plain(v) for k, v in op.attrs.items()}
    return op.name, attrs, [v.type for v in op.operands]


def can_be_made(op: Operation) -> bool:
    """Results of different types need more than one `to=`; scratch that was left out is made."""
    row = op.row
    if (
        row is None
        or row.name not in BY_ROW
        or len(op.results) > sum(not r.optional for r in row.results)
    ):
        return False
    optional = {o.name for o in row.operands if o.role == "tmp" and (o.implied or not o.optional)}
    return (
        all(op.group(name) for name in optional)
        and len({r.type for r in op.results}) <= 1
        and all(plain(v) is not None for v in op.attrs.values())
        and all(row.attr(k) is not None for k in op.attrs)
    )


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_functions_make_the_operations_of_a_program(path: Path):
    ops = [op for op in parse_file(path).walk() if can_be_made(op)]
    for op in ops:
        made = again(op)
        assert described(made) == described(op), op.loc
        kept = [r.type for r in op.results]
        assert [r.type for r in made.results] == kept or not made.results, op.loc


def test_most_instructions_are_made_that_way():
    made = {op.name for p in PROGRAMS for op in parse_file(p).walk() if can_be_made(op)}
    missing = sorted(set(BY_ROW) - made)
    assert len(missing) < 0.15 * len(BY_ROW), missing
