"""The few syntaxes a pattern cannot describe: functions, modules, constants.

Readers fill a Draft, writers fill a Line; both are named by the row's text (`=scf.for`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pto.core.dtypes import I32
from pto.ir.canonical import canonical
from pto.ir.graph import Operation, Region, Value
from pto.ir.text import lexer as lx
from pto.ir.text import memref_text as memref
from pto.ir.text import scf_text as scf
from pto.ir.text.buffer_ids import read_buffer_id, write_buffer_id
from pto.ir.text.cursor import Draft
from pto.ir.text.scf_text import Named
from pto.ir.text.types import parse_type, type_text
from pto.isa.row.attributes import (
    Array,
    Attribute,
    Bool,
    Dict,
    Float,
    Int,
    Ints,
    OfType,
    Raw,
    Str,
    Symbol,
    integer,
    word,
)
from pto.isa.row.types import Function, Scalar, Type
from pto.isa.scalar.arith import CONSTANT
from pto.isa.scalar.structure import YIELD
from pto.isa.table import rows

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser
    from pto.ir.text.printer import PrintedLine

# Names MLIR allows without their dialect, and the end of a loop that is read as `scf.for`.
SHORT_NAMES = {row.name.partition(".")[2]: row.name for row in rows() if row.traits.short}
SHORT_NAMES["affine.yield"] = YIELD.name


def _arguments(p: Parser) -> tuple[list[Named], list[Type], list[Attribute]]:
    """`(%a: T {attr}, %b: T)`, or types alone in a declaration."""
    named: list[Named] = []
    types: list[Type] = []
    attrs: list[Attribute] = []
    for _ in p.items("(", ")"):
        at = p.i
        if p.kind == lx.VALUE:
            name = p.take()[1:]
            p.expect(":")
            value = Value(p.type(), name)
            named.append((name, at, value))
            types.append(value.type)
        else:
            types.append(p.type())
        attrs.append(Dict(tuple(p.attr_items("{", "}")) if p.text == "{" else ()))
    return named, types, attrs


# ---- builtin.module and func


def _read_module(p: Parser, draft: Draft) -> None:
    if p.kind == lx.SYMBOL:
        draft.op.attrs["sym_name"] = Str(p.take()[1:].strip('"'))
    if p.accept("attributes"):
        p.attr_dict(draft)
    p.region(draft.op.new_region())


def _write_module(line: PrintedLine, op: Operation) -> None:
    name = word(op.attrs, "sym_name")
    if name is not None:
        line.put(f"@{name}")
    line.attributes(op, "sym_name")
    line.region(op.regions[0])


def _symbol(p: Parser) -> str:
    if p.kind != lx.SYMBOL:
        p.fail("PTO-P027", f"expected a function name like `@kernel`, got {p.shown()}")
    return p.take()[1:]


def _read_func(p: Parser, draft: Draft) -> None:
    op = draft.op
    if p.kind == lx.WORD and p.text in ("private", "public", "nested"):
        op.attrs["sym_visibility"] = Str(p.take())
    op.attrs["sym_name"] = Str(_symbol(p).strip('"'))
    named, types, arg_attrs = _arguments(p)
    results: list[Type] = []
    if p.accept("->"):
        results = p.types()
    op.attrs["function_type"] = OfType(Function(tuple(types), tuple(results)))
    if any(isinstance(a, Dict) and a.items for a in arg_attrs):
        op.attrs["arg_attrs"] = Array(tuple(arg_attrs))
    if p.accept("attributes"):
        p.attr_dict(draft)
    region = op.new_region()
    if p.text == "{":
        _read_closed(p, region, named)


def _read_closed(p: Parser, region: Region, named: list[Named] | None = None) -> None:
    """A region that sees nothing from outside."""
    outer, p.scopes = p.scopes, [{}]
    try:
        p.region(region, named or ())
    finally:
        p.scopes = outer


_FUNC_WORDS = ("sym_name", "sym_visibility", "function_type", "arg_attrs")


def _write_func(line: PrintedLine, op: Operation) -> None:
    visibility, kind = word(op.attrs, "sym_visibility"), op.attrs["function_type"]
    if visibility is not None:
        line.put(visibility)
    signature = kind.type if isinstance(kind, OfType) else None
    inputs = signature.inputs if isinstance(signature, Function) else ()
    results = signature.results if isinstance(signature, Function) else ()
    args = op.regions[0].blocks[0].args if op.regions[0].blocks else []
    texts = [f"{line.define(a)}: {type_text(a.type)}" for a in args] or [
        type_text(x) for x in inputs
    ]
    extra = op.attrs.get("arg_attrs")
    if isinstance(extra, Array):
        for n, item in enumerate(extra.items):
            texts[n] += f" {line.attr_text(item)}" if isinstance(item, Dict) and item.items else ""
    line.put(f"@{word(op.attrs, 'sym_name')}({', '.join(texts)})")
    if results:
        listed = ", ".join(type_text(r) for r in results)
        line.put(f"-> {listed if len(results) == 1 else f'({listed})'}")
    line.attributes(op, *_FUNC_WORDS)
    if op.regions[0].blocks:
        line.region(op.regions[0])


def _read_call(p: Parser, draft: Draft) -> None:
    draft.op.attrs["callee"] = Symbol(_symbol(p))
    _read_operands(p, draft)
    _read_tail(p, draft)


def _read_operands(p: Parser, draft: Draft) -> None:
    """`(%a, %b)`: the last operand of the row."""
    name = draft.row.operands[-1].name
    draft.bound[name] = []
    for _ in p.items("(", ")"):
        draft.bind(name, p.use())


def _read_tail(p: Parser, draft: Draft) -> None:
    """`{attrs} : (T, T) -> T`."""
    p.optional_dict(draft)
    p.expect(":")
    p.signature(draft)


def _write_call(line: PrintedLine, op: Operation, dims: str = "") -> None:
    values = op.group(op.row.operands[-1].name)
    line.put(f"@{word(op.attrs, 'callee')}{dims}(")
    line.operands(values)
    line.put(")")
    line.rest(op, "callee")
    line.signature(op, values)


def _read_angles(p: Parser, read: Callable[[str], None]) -> None:
    """`<<<x, y, z>>>`, each of the three sizes read by its name."""
    for _ in range(3):
        p.expect("<")
    for n, name in enumerate(_SIZES):
        if n:
            p.expect(",")
        read(name)
    for _ in range(3):
        p.expect(">")


def _read_simt_launch(p: Parser, draft: Draft) -> None:
    """`@kernel<<<%x, %y, %z>>>(%a) : (T) -> ()`."""

    def read(name: str) -> None:
        draft.bound[name] = [p.use()]

    draft.op.attrs["callee"] = Symbol(_symbol(p))
    _read_angles(p, read)
    _read_operands(p, draft)
    _read_tail(p, draft)


def _write_simt_launch(line: PrintedLine, op: Operation) -> None:
    _write_call(line, op, f"<<<{', '.join(map(line.name, op.operands[:3]))}>>>")


def _read_simt_section(p: Parser, draft: Draft) -> None:
    """`<<<32, 1, 1>>> { .. }`."""

    def read(name: str) -> None:
        spec = draft.row.attr(name)
        draft.op.attrs[name] = canonical(p, spec, p.attribute()) if spec else p.attribute()

    _read_angles(p, read)
    p.region(draft.op.new_region())
    p.optional_dict(draft)


def _write_simt_section(line: PrintedLine, op: Operation) -> None:
    sizes = ", ".join(str(integer(op.attrs, name)) for name in _SIZES)
    line.put(f"<<<{sizes}>>> ")
    line.region(op.regions[0])
    line.rest(op, *_SIZES)


_SIZES = ("dimX", "dimY", "dimZ")


def _read_gep(p: Parser, draft: Draft) -> None:
    """`%base[%index] : (T, i64) -> T, f32`; of `%base[2] : (T) -> T, f32` the number is made."""
    draft.bind("base", p.use())
    p.expect("[")
    if p.text.isdecimal():
        type, number = Scalar("i32", I32), int(p.take())
        constant = Operation.of(CONSTANT, attrs={"value": Int(number, type)}, where=p.span(p.i - 1))
        p.steps, draft.bound["index"] = [constant], [constant.new_result(type, f"c{number}")]
    else:
        draft.bind("index", p.use())
    p.expect("]")
    _read_tail(p, draft)
    p.expect(",")
    draft.op.attrs["elem_type"] = OfType(p.type())
    draft.op.attrs[_INDICES] = Ints("i32", (-(2**31),))  # MLIR's word for "an operand"


_INDICES = "rawConstantIndices"


def _write_gep(line: PrintedLine, op: Operation) -> None:
    base, index = op.operands
    line.put(f"{line.name(base)}[{line.name(index)}] ")
    line.rest(op, "elem_type", _INDICES)
    line.signature(op, op.operands)
    line.put(f", {line.attr_text(op.attrs['elem_type'])}")


# ---- arith.constant


def _read_constant(p: Parser, draft: Draft) -> None:
    p.optional_dict(draft)
    value = p.attribute()
    type: Type | None = None
    if isinstance(value, Bool):
        type = p.type() if p.accept(":") else parse_type("i1")
    elif isinstance(value, Int | Float):
        type = value.type
    elif isinstance(value, Raw):
        type = parse_type(value.text.rpartition(" : ")[2])
    if type is None:
        p.fail(
            "PTO-P016",
            f"a constant needs a type, as in `arith.constant 0 : index`; got {p.shown()}",
        )
    draft.op.attrs["value"] = value
    draft.result_types.append(type)


def _write_constant(line: PrintedLine, op: Operation) -> None:
    line.rest(op, "value")
    line.put(line.attr_text(op.attrs["value"]))


def _read_select(p: Parser, draft: Draft) -> None:
    """`%c, %a, %b : T`; a condition of another type than i1 is written first."""
    for n, name in enumerate(("condition", "true_value", "false_value")):
        if n:
            p.expect(",")
        draft.bound[name] = [p.use()]
    p.optional_dict(draft)
    p.expect(":")
    type = p.type()
    draft.result_types.append(p.type() if p.accept(",") else type)


def _write_select(line: PrintedLine, op: Operation) -> None:
    line.operands(op.operands)
    line.dictionary(op.attrs)
    line.put(f": {type_text(op.results[0].type)}")


# ---- pto.strict_vecscope: a scope that captures what it uses


def _read_captures(p: Parser, draft: Draft) -> None:
    _read_operands(p, draft)
    _read_closed(p, draft.op.new_region())
    _read_tail(p, draft)


def _write_captures(line: PrintedLine, op: Operation) -> None:
    line.put("(")
    line.operands(op.operands)
    line.put(")")
    line.region(op.regions[0], label=True)
    line.dictionary(op.attrs)
    line.signature(op, op.operands)


Reader = Callable[["Parser", Draft], None]
Writer = Callable[["PrintedLine", Operation], None]
SYNTAX: dict[str, tuple[Reader, Writer]] = {
    "=module": (_read_module, _write_module),
    "=func": (_read_func, _write_func),
    "=call": (_read_call, _write_call),
    "=simt_launch": (_read_simt_launch, _write_simt_launch),
    "=simt_section": (_read_simt_section, _write_simt_section),
    "=gep": (_read_gep, _write_gep),
    "=constant": (_read_constant, _write_constant),
    "=select": (_read_select, _write_select),
    "=scf.for": (scf.read_for, scf.write_for),
    "=scf.if": (scf.read_if, scf.write_if),
    "=scf.index_switch": (scf.read_switch, scf.write_switch),
    "=scf.while": (scf.read_while, scf.write_while),
    "=region": (scf.read_region, scf.write_region),
    "=strict_vecscope": (_read_captures, _write_captures),
    "=memref.reinterpret_cast": (memref.read_reinterpret_cast, memref.write_reinterpret_cast),
    "=memref.subview": (memref.read_subview, memref.write_subview),
    "=buffer_id": (read_buffer_id, write_buffer_id),
}
