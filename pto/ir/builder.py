"""Builds programs: appends typed operations to blocks, constants at the top of the function.

The kernel API traces with it. The operands of an operation are checked against its row; the
verifier checks the whole program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from pto.core.dtypes import DType, encode
from pto.core.errors import Loc, fail
from pto.ir.graph import Block, Module, Operation, Source, Value
from pto.ir.text.types import parse_type
from pto.isa.row.attributes import Attribute, Bool, Float, Int, OfType, Str
from pto.isa.row.instr import Instr
from pto.isa.row.types import KINDS, Function, Scalar, Type
from pto.isa.scalar.arith import CONSTANT
from pto.isa.scalar.structure import CAST, FUNCTION, MODULE

Given = Value | Sequence[Value] | None
Operands = Mapping[str, Given] | None  # by the row's names
INDEX = Scalar("index", None)

# Where a program's spelling is not the name of the element type (manual, Data Format against MLIR).
_SPELLED = {
    "u8": "ui8",
    "u16": "ui16",
    "u32": "ui32",
    "u64": "ui64",
    "f8e4m3": "f8E4M3FN",
    "f8e5m2": "f8E5M2",
    "e8m0": "!pto.f8E8M0",
    "hifloat8": "!pto.hif8",
    "float4_e1m2x2": "!pto.f4E1M2x2",
    "float4_e2m1x2": "!pto.f4E2M1x2",
    "i4x2": "i4",
}


class Parts(TypedDict, total=False):
    """The parts of a new operation besides its operands."""

    attrs: Mapping[str, Attribute] | None
    results: Sequence[Type]  # their types
    names: Sequence[str]  # of results; may be shorter
    where: Loc | None


def scalar_type(kind: DType) -> Scalar:
    """The type of one element, as programs spell it."""
    type = parse_type(_SPELLED.get(kind.name, kind.name))
    if not isinstance(type, Scalar):
        raise RuntimeError(f"{kind} has no scalar type")
    return type


def new_module(attrs: Mapping[str, Attribute], file: str = "<kernel>") -> Module:
    """An empty program."""
    top = Operation.of(MODULE, attrs=dict(attrs))
    new_block(top)
    return Module(top, Source(file, ""))


def new_block(op: Operation, args: Sequence[Value] = ()) -> Block:
    """A further region of `op` with one block."""
    region = op.new_region()
    block = Block(region)
    region.blocks.append(block)
    for arg in args:
        arg.owner = block
    block.args += args
    return block


def new_function(
    module: Module,
    name: str,
    params: Sequence[tuple[str, Type]],
    where: Loc | None = None,
    attrs: Mapping[str, Attribute] | None = None,
) -> Operation:
    """A function without results at the end of the module."""
    signature = Function(tuple(type for _, type in params), ())
    described = {"sym_name": Str(name), "function_type": OfType(signature), **(attrs or {})}
    op = Operation.of(FUNCTION, attrs=described, where=where)
    module.op.regions[0].block.append(op)
    new_block(op, [Value(type, label) for label, type in params])
    return op


class Builder:
    """Appends to the innermost open block of one function."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.blocks = [function.regions[0].block]  # open, outermost first
        self._constants: dict[tuple[Type, str], Value] = {}

    @property
    def block(self) -> Block:
        return self.blocks[-1]

    def sees(self, value: Value) -> bool:
        """Is the value defined in a block that is still open?"""
        owner = value.owner
        block = owner.parent if isinstance(owner, Operation) else owner
        return any(block is b for b in self.blocks)

    def append(self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]) -> Operation:
        """One operation at the end of the innermost block, its operands by the row's names."""
        op = self.make(row, operands, **parts)
        self.block.append(op)
        return op

    def make(self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]) -> Operation:
        """One operation that is not in any block yet."""
        op = Operation.of(row, attrs=dict(parts.get("attrs") or {}), where=parts.get("where"))
        _bind(op, row, operands or {})
        names = parts.get("names", ())
        for n, type in enumerate(parts.get("results", ())):
            default = row.results[n].name if n < len(row.results) else "v"
            hint = names[n] if n < len(names) else default.replace("result", "v")
            op.results.append(Value(type, hint, op))
        return op

    def constant(self, number: float | int | bool, type: Scalar) -> Value:
        """The number as a value; equal ones are one operation at the top of the function."""
        attr = constant_attribute(number, type)
        key = (type, repr(attr))
        cached = self._constants.get(key)
        if cached is None:
            name = f"c{number}" if isinstance(attr, Int) and attr.value >= 0 else "cst"
            if type.name[0] in "us":  # constants of MLIR have no sign
                plain = parse_type(type.name[1:])
                assert isinstance(plain, Scalar)
                bits = self.constant(_signed(int(number), type), plain)
                op = self.make(CAST, {"inputs": [bits]}, results=[type], names=[name])
            else:
                op = self.make(CONSTANT, attrs={"value": attr}, results=[type], names=[name])
            self.blocks[0].insert(len(self._constants), op)
            cached = self._constants[key] = op.results[0]
        return cached

    def is_constant(self, op: Operation) -> bool:
        """True for an operation that `constant` has put at the top of the function."""
        return any(value.owner is op for value in self._constants.values())


def _signed(number: int, type: Scalar) -> int:
    bits = int(type.name[2:])
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def constant_attribute(number: float | int | bool, type: Scalar) -> Attribute:
    """The value of an `arith.constant`."""
    if type.name == "i1":
        return Bool(bool(number))
    kind = type.dtype
    if kind is None or not kind.is_float:
        return Int(int(number), type)
    if math.isfinite(number):
        digits = repr(float(number))
        mantissa, e, exponent = digits.partition("e")
        return Float((mantissa if "." in mantissa else f"{mantissa}.0") + e + exponent, type)
    bits = int(encode(kind, [float(number)])[0])
    return Float(f"0x{bits:0{2 * kind.itemsize}X}", type)


def _bind(op: Operation, row: Instr, operands: Mapping[str, Given]) -> None:
    """Set the operands in the row's order; raise if one has a kind that the row does not accept."""
    sizes: list[int] = []
    for operand in row.operands:
        value = operands.get(operand.name)
        values = [] if value is None else [value] if isinstance(value, Value) else list(value)
        kind = KINDS[operand.kind]
        if not values and not (operand.optional or operand.variadic):
            raise fail("PTO-T200", f"'{row.name}' op needs {operand.name}, which is {kind.words}")
        for item in values:
            if not kind.accepts(item.type):
                raise fail(
                    "PTO-T200",
                    f"'{row.name}' op expects {operand.name} to be {kind.words}:"
                    f" it is a {item.type.kind}",
                )
        sizes.append(len(values))
        op.operands += values
    if row.operands and not row.fixed_operands:
        op.segments = tuple(sizes)
