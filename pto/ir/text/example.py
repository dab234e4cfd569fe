"""One line of text for a row, made from its own pattern: the example of `pto isa NAME`."""

from __future__ import annotations

from pto.core.dtypes import dtype
from pto.core.memory import Space
from pto.ir.builder import scalar_type
from pto.ir.graph import Operation, Value
from pto.ir.infer import INFERRED
from pto.ir.text.printer import print_operation
from pto.ir.text.types import parse_type
from pto.isa.row.attributes import Attribute, Bool, Enum, Int, Str, Symbol, Unit
from pto.isa.row.describe import attr_words
from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import Attr, Instr
from pto.isa.row.types import KINDS, Type

# A type, and the kinds of operands that it is an example of; T is an element type of the row, N its
# lanes in a register.
_KINDS = {
    "!pto.tile_buf<vec, 16x64xT>": "tile | tile or view | tile or scalar",
    "!pto.multi_tile_buf<vec, 16x64xT, count=2>": "multiple tile",
    "!pto.struct<i32, f32>": "struct",
    "!pto.tensor_view<16x64xT>": "tensor view",
    "!pto.partition_tensor_view<16x64xT>": "view | partition view",
    "memref<16x64xT>": "memref",
    "!pto.ptr<T>": "gm place",
    "!pto.ptr<T, ub>": "pointer | pointer or memref | pointer or integer"
    " | pointer, memref or integer",
    "!pto.ptr<T, gm>": "address | pointer or gm memref | gm or ub pointer",
    "!llvm.ptr": "llvm pointer",
    "!pto.vreg<NxT>": "vreg | vreg or mask | vreg or scalar",
    "!pto.mask<b32>": "mask | mask or index",
    "!pto.vmi.vreg<256xT>": "logical vreg or mask | logical vreg or scalar",
    "!pto.vmi.vreg<128xT>": "logical vreg",
    "!pto.vmi.mask<128>": "logical mask",
    "vector<2xT>": "vector",
    "T": "scalar | number | element | scalar or pointer",
    "index": "int | index | any",
    "i64": "i64",
    "i32": "i32 | integers",
    "i16": "i16",
    "i1": "i1",
    "f32": "float | floats",
    "!pto.align": "align",
    "!pto.pipe": "pipe",
    "!pto.eventid_array<4>": "event ids",
    "!pto.local_array<4xi32>": "local array",
    "!pto.async_session": "async session | session or context",
    "!pto.async_event": "async event",
    "!pto.prefetch_async_context": "prefetch context",
}
_TYPES = {kind: type for type, kinds in _KINDS.items() for kind in kinds.split(" | ")} | {
    f"{s.value} {what}": f"!pto.ptr<T, {s.value}>" for s in Space for what in ("pointer", "buffer")
}


def example(row: Instr) -> str:
    """The row's own example, or one generated from its pattern; empty for hand-written syntax."""
    if row.example or row.text.startswith("="):
        return row.example
    op = Operation(row.name, row)
    sizes: list[int] = []
    for operand in row.operands:
        count = 1 if operand.variadic or not operand.optional else 0
        op.operands += [Value(_type(operand.kind, row), operand.name)] * count
        sizes.append(count)
    if not row.fixed_operands:
        op.segments = tuple(sizes)
    op.results = [Value(_result(r.kind, r.type, row), r.name, op) for r in row.results]
    op.attrs = {a.name: _value(a) for a in row.attrs if a.required or f"@{a.name}" in row.text}
    return print_operation(op)


def _element(row: Instr) -> str:
    names = row.types.get("a5") or row.types.get("a2a3") or frozenset(("f32",))
    return next((n for n in ("f32", "i32") if n in names), sorted(names)[0])


def _type(kind: str, row: Instr) -> Type:
    elem = scalar_type(dtype(_element(row)))
    lanes = elem.dtype.lanes if elem.dtype else 0
    return parse_type(_TYPES[kind].replace("Nx", f"{lanes}x").replace("T", elem.name))


def _result(kind: str, implied: str, row: Instr) -> Type:
    if implied and implied not in INFERRED:
        return parse_type(implied)
    return _type(kind, row)


def _value(attr: Attr) -> Attribute:
    words = attr_words(attr)
    if attr.kind in ENUMS:
        return Enum(attr.kind, words[0])
    if words:
        return Str(words[0])
    values: dict[str, Attribute] = {
        "int": Int(0),
        "i32": Int(0),
        "i8": Int(0),
        "bool": Bool(True),
        "unit": Unit(),
        "symbol": Symbol("name"),
    }
    return values.get(attr.kind, Str("name"))


assert set(_TYPES) == set(KINDS)
