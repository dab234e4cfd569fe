"""A program under construction: parameters, numbers, arrays, views and operations."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.ir.builder import INDEX, Builder, new_function, new_module
from pto.ir.graph import Module, Value
from pto.ir.text.types import parse_type
from pto.isa.row.attributes import OfType, Str
from pto.isa.row.instr import Instr
from pto.isa.row.types import Function, Scalar, Type
from pto.isa.table import lookup
from pto.target.profile import profile as find_profile
from pto.verify import operation

PROFILES = ("cpu", "a2a3", "a5")


def row_of(name: str) -> Instr:
    found = lookup(name)
    assert found is not None, name
    return found


@cache
def typed(text: str) -> Type:
    return parse_type(text)


def scalar_of(name: str) -> Scalar:
    found = typed(name)
    assert isinstance(found, Scalar)
    return found


@dataclass(eq=False)
class Entry:
    """A tile of the pool: its bytes are those of its root from `first` to `end`."""

    value: Value
    elem: str
    shape: tuple[int, int]
    valid: tuple[Value, Value]  # as numbers of the program
    root: Value
    first: int
    end: int
    is_open: bool = False
    out: tuple[Value, int] | None = None  # the array it is stored to, and its number

    is_placed: bool = False

    def meets(self, other: Entry) -> bool:
        if self.root is not other.root and not (self.is_placed and other.is_placed):
            return False
        return self.first < other.end and other.first < self.end


@dataclass
class Program:
    """A module and its launch."""

    module: Module
    args: list[Any]
    blocks: int
    profile: str
    features: set[str] = field(default_factory=set[str])
    rows: set[str] = field(default_factory=set[str])


class Writer:
    """Appends to one function; what its rows refuse is left out."""

    def __init__(self, rng: random.Random, profile: str) -> None:
        self.rng, self.profile, self.target = rng, profile, find_profile(profile)
        self.args: list[Any] = []
        self.features: set[str] = set()
        self.rows: set[str] = set()
        self.module = new_module({"pto.target_arch": Str(profile)})
        self.function = new_function(self.module, "f", [])
        self.b = Builder(self.function)

    def done(self, blocks: int) -> Program:
        """The program, with the parameters that it has by now."""
        self.b.append(row_of("func.return"))
        self._describe()
        return Program(self.module, self.args, blocks, self.profile, self.features, self.rows)

    def _describe(self) -> None:
        """Give the function the type of its parameters."""
        args = self.function.regions[0].block.args
        signature = Function(tuple(a.type for a in args), ())
        self.function.attrs["function_type"] = OfType(signature)

    def parameter(self, type: Type, arg: Any) -> Value:
        block = self.function.regions[0].block
        value = Value(type, f"a{len(block.args)}")
        value.owner = block
        block.args.append(value)
        self.args.append(arg)
        return value

    def number(self, n: int) -> Value:
        return self.b.constant(n, INDEX)

    def array(self, elem: str, count: int) -> Value:
        kind = dtype(elem)
        draw = np.random.default_rng(self.rng.getrandbits(32))
        if self.rng.random() < 0.2:  # any bits: NaN, infinity, the ends of a range
            found = draw.integers(0, 1 << kind.bits, count, kind.storage.type).view(kind.numpy)
        else:
            found = draw.integers(-9 if kind.is_signed else 0, 9, count).astype(kind.numpy)
        return self.parameter(typed(f"!pto.ptr<{elem}, gm>"), found)

    def _cast(self, value: Value, type: Type) -> Value:
        return self.b.append(row_of("arith.index_cast"), {"in": value}, results=[type]).results[0]

    def _sum(self, a: Value, b: Value, times: int = 1) -> Value:
        """a * times + b, an index."""
        if times != 1:
            a = self._arith("arith.muli", a, self.number(times))
        return self._arith("arith.addi", a, b)

    def _arith(self, name: str, a: Value, b: Value) -> Value:
        row = row_of(name)
        operands = dict(zip(row.operand_names, (a, b), strict=False))
        return self.b.append(row, operands, results=[INDEX]).results[0]

    def view(
        self, pointer: Value, elem: str, size: tuple[int, int], at: Any, part: tuple[Value, Value]
    ) -> Value:
        """A window of an array of so many rows and columns."""
        high, wide = (self.number(n) for n in size)
        whole = f"!pto.tensor_view<{size[0]}x{size[1]}x{elem}>"
        made = self.b.append(
            row_of("pto.make_tensor_view"),
            {"ptr": pointer, "shape": [high, wide], "strides": [wide, self.number(1)]},
            results=[typed(whole)],
        )
        sides = "x".join("?" if (n := v.number) is None else str(n) for v in part)
        cut = self.b.append(
            row_of("pto.partition_view"),
            {"source": made.results[0], "offsets": list(at), "sizes": list(part)},
            results=[typed(f"!pto.partition_tensor_view<{sides}x{elem}>")],
        )
        return cut.results[0]

    def _try(self, row: Instr, operands: Any, attrs: Any) -> bool:
        """Append an operation unless its row refuses it."""
        try:
            op = self.b.make(row, operands, attrs=attrs)
        except PtoError:
            return False
        op.parent = self.b.block
        if any(d.severity == "error" for d in operation.check(op, self.target)):
            return False
        self.b.block.append(op)
        self.rows.add(row.name)
        return True
