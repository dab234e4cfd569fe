"""Lane functions on LLVM vectors: the same Python code as on arrays, run once on symbols.

A `Symbol` represents an array of one type, or one scalar; its operators, `astype`, `view` and the
primitives (`primitives.py`) each add a line of LLVM text. A definition that asks for anything else
is wrong, whatever the program: that is a TypeError. Floats are computed as NumPy does: f16
and bf16 through f32, rounded once; nothing is fused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from pto.core.dtypes import DType
from pto.core.primitives import absolute, isfinite
from pto.run.jit.ir.expr import LaneSymbol
from pto.run.jit.ir.kinds import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    SMALL,
    Kind,
    UnsupportedLowering,
    computes,
    symbol_type,
)
from pto.run.jit.llvm import native
from pto.run.jit.llvm.shuffles import Picks, bits_of, shuffle, spread
from pto.run.jit.llvm.text import Text, constant, mangled, scalar_type, vector
from pto.run.jit.llvm.value import Condition, Val, Value, facts

# How primitives and operators are written: `primitives.py` fills it. fn(lanes, arguments...)
PRIMITIVES: Final[dict[str, Callable[..., Any]]] = {}


class Shortcut(NamedTuple):
    """A faster way to the bits of a definition: write(definition, arguments...)."""

    applies: Callable[[Kind, int], bool]  # to this type and number of lanes, on this processor
    write: Callable[..., Symbol]


# By the name of the definition.
SHORTCUTS: Final[dict[str, Shortcut]] = {}


class Lanes:
    """The text that symbols extend, and the number of lanes (0: one scalar)."""

    def __init__(self, text: Text, count: int) -> None:
        self.x = text
        self.count = count
        self.declare = text.declare

    def symbol(self, dtype: Kind, name: Val) -> Symbol:
        return Symbol(self, dtype, name)

    def of(self, count: int) -> Lanes:
        """The same place with another number of lanes."""
        return Lanes(self.x, count)

    def type(self, dtype: Kind) -> str:
        item = scalar_type(dtype)
        return vector(self.count, item) if self.count else item

    def constant(self, dtype: Kind, value: Any) -> Symbol:
        """A number in every lane, or an array of one number for each."""
        item, values = scalar_type(dtype), np.asarray(value)
        if values.ndim and values.size > 1:
            listed = ", ".join(f"{item} {constant(dtype, v)}" for v in values)
            return Symbol(self, dtype, f"<{listed}>")
        one = constant(dtype, values.reshape(-1)[0])
        if self.count == 0:
            return Symbol(self, dtype, int(one) if dtype.kind in "iu" else one)
        return Symbol(self, dtype, Value(f"splat ({item} {one})", constant=one.constant))

    def spread(self, dtype: Kind, scalar: Val) -> Symbol:
        """One scalar in every lane."""
        name = spread(self.x, scalar_type(dtype), self.count, scalar)
        return Symbol(self, dtype, Value(name, uniform=scalar if dtype.kind in "iu" else None))

    def intrinsic(self, name: str, dtype: Kind, *names: Val) -> str:
        type, lanes = self.type(dtype), f"v{self.count}" if self.count else ""
        full = f"@llvm.{name}.{lanes}{mangled(scalar_type(dtype))}"
        self.declare(f"declare {type} {full}({', '.join([type] * len(names))})")
        listed = ", ".join(f"{type} {n}" for n in names)
        return self.x.new_slow(f"call {type} {full}({listed})")


class Symbol(LaneSymbol):
    """An array of a known type and unknown values."""

    __slots__ = ("dtype", "lanes", "name")

    def __init__(self, lanes: Lanes, dtype: Kind, name: Val) -> None:
        if not computes(dtype):
            raise UnsupportedLowering(f"arithmetic of {dtype}")
        self.lanes = lanes
        self.dtype = dtype
        self.name = name

    @property
    def type(self) -> str:
        return self.lanes.type(self.dtype)

    def new(self, op: str, dtype: Kind) -> Symbol:
        x = self.lanes.x
        if dtype.kind == "f":
            x.widest = max(x.widest, dtype.itemsize)
        return Symbol(self.lanes, dtype, x.new(op))

    def new_slow(self, op: str, dtype: Kind) -> Symbol:
        """As `new`, of an instruction that takes many cycles."""
        self.lanes.x.slow += 1
        return self.new(op, dtype)

    def like(self, value: Any) -> Symbol:
        """A constant of the same type."""
        return self.lanes.constant(self.dtype, value)

    @property
    def number(self) -> int | None:
        """The value of an integer constant, the same in all lanes; None if it is not known."""
        known = self.name if isinstance(self.name, int) else facts(self.name).constant
        return None if known is None else int(known)

    def primitive(self, name: str, args: tuple[Any, ...]) -> Any:
        return PRIMITIVES[name](self.lanes, *args)

    def shortcut(self, definition: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        short = SHORTCUTS.get(definition.__name__)
        if short is None or not short.applies(self.dtype, self.lanes.count):
            return definition(*args)
        return short.write(definition, *args)

    def __getitem__(self, lane: int) -> Symbol:
        """One lane, for all of them: as an array of one would spread over many."""
        return self.take([lane] * self.lanes.count)

    def lane(self, n: int) -> str:
        """One lane as a scalar."""
        return self.lanes.x.new(f"extractelement {self.type} {self.name}, i64 {n}")

    def take(self, picks: Picks) -> Symbol:
        """Lanes in another order; NONE is zero."""
        spot, item = self.lanes.of(len(picks)), scalar_type(self.dtype)
        return spot.symbol(self.dtype, shuffle(spot.x, item, self.lanes.count, self.name, picks))

    def astype(self, to: Any, copy: bool = True) -> Symbol:
        return cast(self, np.dtype(to))

    def view(self, to: Any) -> Symbol:
        dtype = np.dtype(to)
        if dtype == self.dtype:
            return self
        if dtype.itemsize != self.dtype.itemsize or BOOL in (dtype, self.dtype):
            raise TypeError(f"a definition views {self.dtype} as {dtype}")
        if scalar_type(dtype) == scalar_type(self.dtype):
            return Symbol(self.lanes, dtype, self.name)
        return self.new(f"bitcast {self.type} {self.name} to {self.lanes.type(dtype)}", dtype)

    def reinterpret(self, dtype: Kind) -> Symbol:
        """The same bits as lanes of a type, which may have another width."""
        spot = self.lanes.of(self.lanes.count * self.dtype.itemsize // dtype.itemsize)
        return spot.symbol(dtype, spot.x.bitcast(self.name, self.type, spot.type(dtype)))

    @property
    def bits(self) -> str:
        """Booleans as one integer, the first the lowest bit."""
        return bits_of(self.lanes.x, self.lanes.count, str(self.name))

    @property
    def some(self) -> Condition:
        """True if one of the booleans holds."""
        if not self.lanes.count:
            return self.lanes.x.bit(self.name)
        return self.lanes.x.compare("ne", self.bits, 0, f"i{self.lanes.count}")

    @property
    def every(self) -> Condition:
        """True if all booleans hold."""
        return self.lanes.x.compare("eq", self.bits, -1, f"i{self.lanes.count}")


def items_of(lanes: Lanes, found: Any, dtype: DType) -> Symbol:
    """The result of a lane function as elements of `dtype`."""
    if not isinstance(found, Symbol):
        found = lanes.constant(dtype.numpy, found)
    return found.view(symbol_type(dtype))


def in_lanes(lanes: Lanes, x: Any) -> Any:
    """Numbers that compiled code counts with (`index.py`), in every lane; the rest as it is."""
    known = Symbol | np.ndarray | np.generic | float | int
    return x if isinstance(x, known) else x.in_lanes(lanes)


def alike(lanes: Lanes, inputs: tuple[Any, ...]) -> list[Symbol]:
    """Operands as symbols; a Python number takes the type of the other operand."""
    inputs = tuple(in_lanes(lanes, x) for x in inputs)
    typed = [x.dtype for x in inputs if isinstance(x, Symbol | np.ndarray | np.generic)]
    like = typed[0]
    return [
        x
        if isinstance(x, Symbol)
        else lanes.constant(x.dtype if isinstance(x, np.ndarray | np.generic) else like, x)
        for x in inputs
    ]


def common(*symbols: Symbol) -> list[Symbol]:
    """Brought to one type, as NumPy promotes."""
    kinds = {s.dtype for s in symbols}
    if len(kinds) == 1:
        return list(symbols)
    kind = np.result_type(*kinds)
    return [cast(s, kind) for s in symbols]


def where(lanes: Lanes, condition: Any, a: Any, b: Any) -> Symbol:
    """The first where the condition holds."""
    condition, a, b = (in_lanes(lanes, x) for x in (condition, a, b))
    if not isinstance(condition, Symbol):
        condition = lanes.constant(BOOL, bool(condition))
    if condition.dtype != BOOL:
        condition = cast(condition, BOOL)
    if not any(isinstance(v, Symbol | np.ndarray | np.generic) for v in (a, b)):
        a, b = (lanes.constant(np.asarray(v).dtype, v) for v in (a, b))
    a, b = common(*alike(lanes, (a, b)))
    text = f"select {condition.type} {condition.name}, {a.type} {a.name}, {b.type} {b.name}"
    return a.new(text, a.dtype)


# ---- conversions


def cast(a: Symbol, to: Kind) -> Symbol:
    """As NumPy's astype: floats to nearest even, integers keep their low bits."""
    have = a.dtype
    if have == to:
        return a
    if have in SMALL and to != BOOL:
        return cast(to_f32(a), to)
    if have == BOOL and (to.kind == "f" or to in SMALL):
        return where(a.lanes, a, a.lanes.constant(to, 1), a.lanes.constant(to, 0))
    if to in SMALL:
        return _to_small(a, to)
    if have == BOOL:
        return a.new(f"zext {a.type} {a.name} to {a.lanes.type(to)}", to)
    if to == BOOL:
        return a.primitive("ne", (a, 0))
    if have.kind == "f" and to.kind == "f":
        op = "fpext" if to.itemsize > have.itemsize else "fptrunc"
    elif have.kind == "f":
        op = "fptoui" if to.kind == "u" and to.itemsize == 8 else "fptosi"
        if to.itemsize < 4:  # by way of a wider integer, as C does
            return cast(cast(a, np.dtype(np.int32)), to)
    elif to.kind == "f":
        op = "sitofp" if have.kind == "i" else "uitofp"
    elif have.itemsize == to.itemsize:
        return Symbol(a.lanes, to, a.name)
    elif have.itemsize > to.itemsize:
        op = "trunc"
    else:
        op = "sext" if have.kind == "i" else "zext"
    found = a.new(f"{op} {a.type} {a.name} to {a.lanes.type(to)}", to)
    return _with_facts(a, found) if op == "zext" else found


def _with_facts(a: Symbol, wide: Symbol) -> Symbol:
    """A widened integer, with the facts about the narrow one that hold for it."""
    known = facts(a.name)
    uniform = known.uniform
    if uniform is not None:
        one = f"{scalar_type(a.dtype)} {uniform}"
        uniform = a.lanes.x.new(f"zext {one} to {scalar_type(wide.dtype)}")
    name = Value(wide.name, uniform=uniform, numbers=known.numbers)
    return Symbol(wide.lanes, wide.dtype, name)


def to_f32(a: Symbol) -> Symbol:
    if a.dtype == F16 and not native.target().has_half:
        return _half_to_f32(a)
    if a.dtype == F16:  # the fence: LLVM would compute in half, which no vector unit does
        wide = a.new(f"fpext {a.type} {a.name} to {a.lanes.type(F32)}", F32)
        return Symbol(a.lanes, F32, a.lanes.intrinsic("arithmetic.fence", F32, wide.name))
    wide = cast(a.view(np.uint16), np.dtype(np.uint32))
    return (wide << 16).view(F32)


def _to_small(a: Symbol, to: Kind) -> Symbol:
    if a.dtype.kind in "iu" and a.dtype.itemsize < 4:
        a = cast(a, F32)  # exact: up to 16 bits
    if a.dtype == F64 or a.dtype.kind in "iu":
        a = to_odd(cast(a, F64))
    if to == F16 and not native.target().has_half:
        return _f32_to_half(a)
    if to == F16:
        return a.new(f"fptrunc {a.type} {a.name} to {a.lanes.type(F16)}", F16)
    bits = one_nan(a).view(np.uint32)
    last = (bits >> 16) & 1
    rounded = (bits + last + 0x7FFF) >> 16
    return cast(rounded, np.dtype(np.uint16)).view(BF16)


def _half_to_f32(a: Symbol) -> Symbol:
    """By the fields of the floats, for processors without an instruction."""
    bits = cast(a.view(np.uint16), np.dtype(np.uint32))
    size = bits & 0x7FFF
    normal = (size << 13) + (112 << 23)  # the exponent counts from -15, then from -127
    tiny = (cast(size.view(np.int32), F32) * 2.0**-24).view(np.uint32)
    quiet = where(a.lanes, size > 0x7C00, size.like(1 << 22), size.like(0))
    found = where(a.lanes, size >= 0x7C00, (normal + (112 << 23)) | quiet, normal)
    found = where(a.lanes, size < 0x400, tiny, found)
    return (found | ((bits & 0x8000) << 16)).view(F32)


def _f32_to_half(a: Symbol) -> Symbol:
    """By the fields of the floats, for processors without an instruction; to nearest even."""
    bits = a.view(np.uint32)
    size = bits & 0x7FFFFFFF
    cut = size >> 13
    normal = (size - (112 << 23) + 0xFFF + (cut & 1)) >> 13
    small = (size.view(F32) + 0.5).view(np.uint32) - 0x3F000000  # adding rounds to steps of 2^-24
    found = where(a.lanes, size < 0x38800000, small, normal)
    found = where(a.lanes, size >= 0x477FF000, size.like(0x7C00), found)
    found = where(a.lanes, size > 0x7F800000, (cut & 0x3FF) | 0x7E00, found)
    return cast(found | ((bits >> 16) & 0x8000), np.dtype(np.uint16)).view(F16)


def one_nan(a: Symbol) -> Symbol:
    """A NaN is the positive quiet one without payload."""
    return where(a.lanes, a != a, a.like(np.nan), a)


def to_odd(a: Symbol) -> Symbol:
    """f64 as f32 by round to odd, so that one more rounding is correct: the last bit records a
    loss."""
    single = a.new(f"fptrunc {a.type} {a.name} to {a.lanes.type(F32)}", F32)
    back = cast(single, F64)
    bits = single.view(np.int32)
    inexact = (back != a) & isfinite(single)
    away = absolute(back) > absolute(a)
    odd = where(a.lanes, inexact & away & ((bits & 1) == 0), bits - 1, bits)
    odd = where(a.lanes, inexact & ((odd & 1) == 0), odd | 1, odd)
    return odd.view(F32)


def reduced(
    x: Text, count: Val, first: Sequence[Symbol], step: Any, by: Val = 1, start: Val = 0
) -> list[Symbol]:
    """Running values in a loop, as lanes."""

    def named(names: Sequence[str]) -> list[Symbol]:
        return [v.lanes.symbol(v.dtype, n) for v, n in zip(first, names, strict=True)]

    def turn(i: str, names: list[str]) -> list[Val]:
        return [each.name for each in step(i, named(names))]

    types, begin = [v.type for v in first], [v.name for v in first]
    return named(x.fold(count, types, begin, turn, by, start))
