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

# A type for each kind of operand; T is an element type of the row, N its lanes in a register.
_TYPES = {
    "tile": "!pto.tile_buf<vec, 16x64xT>",
    "multiple tile": "!pto.multi_tile_buf<vec, 16x64xT, count=2>",
    "struct": "!pto.struct<i32, f32>",
    "tile or view": "!pto.tile_buf<vec, 16x64xT>",
    "tile or scalar": "!pto.tile_buf<vec, 16x64xT>",
    "mask or index": "!pto.mask<b32>",
    "gm place": "!pto.ptr<T>",
    "logical vreg or mask": "!pto.vmi.vreg<256xT>",
    "logical vreg or scalar": "!pto.vmi.vreg<256xT>",
    "view": "!pto.partition_tensor_view<16x64xT>",
    "pointer": "!pto.ptr<T, ub>",
    "address": "!pto.ptr<T, gm>",
    "vreg": "!pto.vreg<NxT>",
    "vreg or mask": "!pto.vreg<NxT>",
    "vreg or scalar": "!pto.vreg<NxT>",
    "mask": "!pto.mask<b32>",
    "scalar": "T",
    "number": "T",
    "integers": "i32",
    "floats": "f32",
    "int": "index",
    "float": "f32",
    "index": "index",
    "i64": "i64",
    "i1": "i1",
    "align": "!pto.align",
    "pipe": "!pto.pipe",
    "event ids": "!pto.eventid_array<4>",
    "local array": "!pto.local_array<4xi32>",
    "async session": "!pto.async_session",
    "session or context": "!pto.async_session",
    "async event": "!pto.async_event",
    "prefetch context": "!pto.prefetch_async_context",
    "any": "index",
    "tensor view": "!pto.tensor_view<16x64xT>",
    "partition view": "!pto.partition_tensor_view<16x64xT>",
    "memref": "memref<16x64xT>",
    "pointer or memref": "!pto.ptr<T, ub>",
    "pointer or gm memref": "!pto.ptr<T, gm>",
    "pointer or integer": "!pto.ptr<T, ub>",
    "pointer, memref or integer": "!pto.ptr<T, ub>",
    "element": "T",
    "i32": "i32",
    "i16": "i16",
    "vector": "vector<2xT>",
    "llvm pointer": "!llvm.ptr",
    "logical vreg": "!pto.vmi.vreg<128xT>",
    "logical mask": "!pto.vmi.mask<128>",
    "scalar or pointer": "T",
    "gm or ub pointer": "!pto.ptr<T, gm>",
    **{
        f"{s.value} {what}": f"!pto.ptr<T, {s.value}>"
        for s in Space
        for what in ("pointer", "buffer")
    },
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
