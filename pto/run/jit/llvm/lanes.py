"""Lane functions on LLVM vectors: the same Python code as on arrays, run once on symbols.

A `Symbol` stands for an array of one type and is written as NumPy code writes arrays: operators,
`np.where`, `astype`, `view`, ufuncs. Each adds a line of LLVM text. What a function asks about
values (`any`) is answered "it may be", so the general way is taken. Floats are computed as NumPy
does: f16 and bf16 through f32, rounded once; nothing is fused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pto.core.dtypes import DType
from pto.core.rounding import Round
from pto.run.jit.llvm.text import NotNative, Text, Val, constant, mangled, scalar_type, vector

F32: Final = np.dtype(np.float32)
F64: Final = np.dtype(np.float64)
F16: Final = np.dtype(np.float16)
BF16: Final = np.dtype(ml_dtypes.bfloat16)
BOOL: Final = np.dtype(np.bool_)
SMALL: Final = (F16, BF16)
_FLOATS: Final = (F16, BF16, F32, F64)

# What NumPy's functions are on symbols: `ufuncs.py` says it.
UFUNCS: Final[dict[Any, Callable[..., Symbol]]] = {}
FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {}


def computes(dtype: np.dtype[Any]) -> bool:
    """Whether symbols have this type; others are held as their bits."""
    return dtype.kind in "iub" or dtype in _FLOATS


class Lanes:
    """Where symbols write: the text, how many lanes, and the unit that declares intrinsics."""

    def __init__(self, text: Text, count: int, declare: Callable[[str], None]) -> None:
        self.x = text
        self.count = count
        self.declare = declare

    def symbol(self, dtype: np.dtype[Any], name: str) -> Symbol:
        return Symbol(self, dtype, name)

    def type(self, dtype: np.dtype[Any]) -> str:
        return vector(self.count, scalar_type(dtype))

    def constant(self, dtype: np.dtype[Any], value: Any) -> Symbol:
        item = scalar_type(dtype)
        return Symbol(self, dtype, f"splat ({item} {constant(dtype, value)})")

    def spread(self, dtype: np.dtype[Any], scalar: Val) -> Symbol:
        """One scalar in every lane."""
        item, type = scalar_type(dtype), self.type(dtype)
        one = self.x.new(f"insertelement {type} poison, {item} {scalar}, i64 0")
        zeros = f"<{self.count} x i32> zeroinitializer"
        return Symbol(
            self, dtype, self.x.new(f"shufflevector {type} {one}, {type} poison, {zeros}")
        )

    def intrinsic(self, name: str, dtype: np.dtype[Any], *names: str) -> str:
        type = self.type(dtype)
        full = f"@llvm.{name}.v{self.count}{mangled(scalar_type(dtype))}"
        self.declare(f"declare {type} {full}({', '.join([type] * len(names))})")
        listed = ", ".join(f"{type} {n}" for n in names)
        return self.x.new(f"call {type} {full}({listed})")


class Symbol(NDArrayOperatorsMixin):
    """An array of which only the type is known."""

    __slots__ = ("dtype", "lanes", "name")

    def __init__(self, lanes: Lanes, dtype: np.dtype[Any], name: str) -> None:
        if not computes(dtype):
            raise NotNative(f"arithmetic of {dtype}")
        self.lanes = lanes
        self.dtype = dtype
        self.name = name

    @property
    def type(self) -> str:
        return self.lanes.type(self.dtype)

    def new(self, op: str, dtype: np.dtype[Any]) -> Symbol:
        return Symbol(self.lanes, dtype, self.lanes.x.new(op))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotNative("an array of values that nobody knows yet")

    def __bool__(self) -> bool:
        raise NotNative("a question about values that nobody knows yet")

    def __getitem__(self, key: Any) -> Any:
        raise NotNative("one lane of many")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # NumPy asks for what an object can do
        raise NotNative(f"{name} of lanes")

    def any(self) -> bool:
        return True  # of values nobody knows yet

    def astype(self, to: Any, copy: bool = True) -> Symbol:
        return cast(self, np.dtype(to))

    def view(self, to: Any) -> Symbol:
        dtype = np.dtype(to)
        if dtype.itemsize != self.dtype.itemsize or self.dtype == BOOL:
            raise NotNative("a view of another width")
        if scalar_type(dtype) == scalar_type(self.dtype):
            return Symbol(self.lanes, dtype, self.name)
        return self.new(f"bitcast {self.type} {self.name} to {self.lanes.type(dtype)}", dtype)

    def converted(
        self, src: DType, dst: DType, mode: Round, saturate: bool, keep_nan: bool
    ) -> Symbol:
        """What `core.convert.convert` asks of values that are not arrays."""
        from pto.run.jit.llvm.conversions import convert

        return convert(self, src, dst, mode, saturate, keep_nan)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        known = UFUNCS.get(ufunc)
        if known is None or method != "__call__" or options:
            raise NotNative(f"{ufunc.__name__} has no form in compiled code")
        return known(*alike(self.lanes, inputs))

    def __array_function__(self, fn: Any, types: Any, args: Any, options: Any) -> Any:
        known = FUNCTIONS.get(fn)
        if known is None or options:
            raise NotNative(f"{fn.__name__} has no form in compiled code")
        return known(self.lanes, *args)


def in_lanes(lanes: Lanes, x: Any) -> Any:
    """Numbers that compiled code counts with (`index.py`), in every lane; the rest as it is."""
    known = Symbol | np.ndarray | np.generic | float | int
    return x if isinstance(x, known) else x.in_lanes(lanes)


def alike(lanes: Lanes, inputs: tuple[Any, ...]) -> list[Symbol]:
    """Operands as symbols; a bare Python number takes the type of what it stands beside."""
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


def cast(a: Symbol, to: np.dtype[Any]) -> Symbol:
    """As NumPy's astype: floats to nearest even, integers keep their low bits."""
    have = a.dtype
    if have == to:
        return a
    if have in SMALL and to != BOOL:
        return cast(to_f32(a), to)
    if to in SMALL:
        return _to_small(a, to)
    if have == BOOL:
        return _from_bool(a, to)
    if to == BOOL:
        return a != a.lanes.constant(have, 0)
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
    return a.new(f"{op} {a.type} {a.name} to {a.lanes.type(to)}", to)


def _from_bool(a: Symbol, to: np.dtype[Any]) -> Symbol:
    op = "uitofp" if to.kind == "f" else "zext"
    return a.new(f"{op} {a.type} {a.name} to {a.lanes.type(to)}", to)


def to_f32(a: Symbol) -> Symbol:
    if a.dtype == F16:
        return a.new(f"fpext {a.type} {a.name} to {a.lanes.type(F32)}", F32)
    wide = cast(a.view(np.uint16), np.dtype(np.uint32))
    return (wide << 16).view(F32)


def _to_small(a: Symbol, to: np.dtype[Any]) -> Symbol:
    if a.dtype == BOOL or (a.dtype.kind in "iu" and a.dtype.itemsize < 4):
        a = cast(a, F32)  # exact: up to 16 bits
    if a.dtype == F64 or a.dtype.kind in "iu":
        a = to_odd(cast(a, F64))
    if to == F16:
        return a.new(f"fptrunc {a.type} {a.name} to {a.lanes.type(F16)}", F16)
    bits = a.view(np.uint32)
    last = (bits >> 16) & 1
    rounded = (bits + last + 0x7FFF) >> 16
    quiet = (bits >> 16) & 0x8000 | 0x7FC0
    chosen = np.where(a != a, quiet, rounded)
    return cast(chosen, np.dtype(np.uint16)).view(BF16)


def to_odd(a: Symbol) -> Symbol:
    """f64 as f32 so that one more rounding is right: the last bit tells that something was lost."""
    single = a.new(f"fptrunc {a.type} {a.name} to {a.lanes.type(F32)}", F32)
    back = cast(single, F64)
    bits = single.view(np.int32)
    finite = np.isfinite(single)
    inexact = (back != a) & finite
    away = np.abs(back) > np.abs(a)
    odd = where(a.lanes, inexact & away & ((bits & 1) == 0), bits - 1, bits)
    odd = where(a.lanes, inexact & ((odd & 1) == 0), odd | 1, odd)
    return odd.view(F32)
