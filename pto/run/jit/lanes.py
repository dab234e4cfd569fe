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
from pto.run.jit.text import NotNative, Text, constant, scalar_type, vector

F32: Final = np.dtype(np.float32)
F64: Final = np.dtype(np.float64)
F16: Final = np.dtype(np.float16)
BF16: Final = np.dtype(ml_dtypes.bfloat16)
BOOL: Final = np.dtype(np.bool_)
_SMALL: Final = (F16, BF16)
_FLOATS: Final = (F16, BF16, F32, F64)


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

    def spread(self, dtype: np.dtype[Any], scalar: str) -> Symbol:
        """One scalar in every lane."""
        item, type = scalar_type(dtype), self.type(dtype)
        one = self.x.new(f"insertelement {type} poison, {item} {scalar}, i64 0")
        zeros = f"<{self.count} x i32> zeroinitializer"
        return Symbol(
            self, dtype, self.x.new(f"shufflevector {type} {one}, {type} poison, {zeros}")
        )

    def intrinsic(self, name: str, dtype: np.dtype[Any], *names: str) -> str:
        type = self.type(dtype)
        mangled = f"@llvm.{name}.v{self.count}{_SUFFIX[scalar_type(dtype)]}"
        self.declare(f"declare {type} {mangled}({', '.join([type] * len(names))})")
        listed = ", ".join(f"{type} {n}" for n in names)
        return self.x.new(f"call {type} {mangled}({listed})")


_SUFFIX: Final = {
    "half": "f16",
    "float": "f32",
    "double": "f64",
    **{f"i{n}": f"i{n}" for n in (8, 16, 32, 64)},
}


class Symbol(NDArrayOperatorsMixin):
    """An array of which only the type is known."""

    __slots__ = ("dtype", "lanes", "name")
    shape: tuple[int, ...]

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
        from pto.run.jit.conversions import convert

        return convert(self, src, dst, mode, saturate, keep_nan)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        known = _UFUNCS.get(ufunc)
        if known is None or method != "__call__" or options:
            raise NotNative(f"{ufunc.__name__} has no form in compiled code")
        return known(*_alike(self.lanes, inputs))

    def __array_function__(self, fn: Any, types: Any, args: Any, options: Any) -> Any:
        known = _FUNCTIONS.get(fn)
        if known is None or options:
            raise NotNative(f"{fn.__name__} has no form in compiled code")
        return known(self.lanes, *args)


def _alike(lanes: Lanes, inputs: tuple[Any, ...]) -> list[Symbol]:
    """Operands as symbols; a bare Python number takes the type of what it stands beside."""
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


# ---- conversions


def cast(a: Symbol, to: np.dtype[Any]) -> Symbol:
    """As NumPy's astype: floats to nearest even, integers keep their low bits."""
    have = a.dtype
    if have == to:
        return a
    if have in _SMALL and to != BOOL:
        return cast(_to_f32(a), to)
    if to in _SMALL:
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


def _to_f32(a: Symbol) -> Symbol:
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
    odd = np.where(inexact & away & ((bits & 1) == 0), bits - 1, bits)
    odd = np.where(inexact & ((odd & 1) == 0), odd | 1, odd)
    return odd.view(F32)


# ---- arithmetic


def _arithmetic(integer: str, floating: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        kind = a.dtype
        if kind in _SMALL:
            return cast(emit(_to_f32(a), _to_f32(b)), kind)
        op = floating if kind.kind == "f" else integer
        if not op or kind == BOOL:
            raise NotNative("an operation that is not defined for the type")
        return a.new(f"{op} {a.type} {a.name}, {b.name}", kind)

    return emit


def _compare(ordered: str, signed: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype in _SMALL:
            a, b = _to_f32(a), _to_f32(b)
        if a.dtype.kind == "f":
            return a.new(f"fcmp {ordered} {a.type} {a.name}, {b.name}", BOOL)
        word = signed
        if a.dtype.kind in "ub" and signed not in ("eq", "ne"):
            word = "u" + signed[1:]
        return a.new(f"icmp {word} {a.type} {a.name}, {b.name}", BOOL)

    return emit


def _bits(op: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype.kind == "f" or a.dtype == BF16:
            raise NotNative("bits of floats")
        return a.new(f"{op} {a.type} {a.name}, {b.name}", a.dtype)

    return emit


def _not(a: Symbol) -> Symbol:
    ones = a.lanes.constant(
        a.dtype, True if a.dtype == BOOL else -1 if a.dtype.kind == "i" else _all(a)
    )
    return _bits("xor")(a, ones)


def _all(a: Symbol) -> int:
    return (1 << (8 * a.dtype.itemsize)) - 1


def _shift(left: bool) -> Callable[..., Symbol]:
    """By the width or more, or by a negative number, everything is shifted out."""

    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        bits, signed = 8 * a.dtype.itemsize, a.dtype.kind == "i"
        op = "shl" if left else "ashr" if signed else "lshr"
        count = b.name
        if count.startswith("splat"):
            number = int(count.rstrip(")").split()[-1])
            if 0 <= number < bits:
                return a.new(f"{op} {a.type} {a.name}, {count}", a.dtype)
        most = a.lanes.constant(a.dtype, bits - 1).name
        far = a.new(f"icmp ugt {a.type} {count}, {most}", BOOL)
        safe = a.new(f"select {far.type} {far.name}, {a.type} {most}, {a.type} {count}", a.dtype)
        moved = a.new(f"{op} {a.type} {a.name}, {safe.name}", a.dtype)
        if not left and signed:
            return moved
        return where(a.lanes, far, a.lanes.constant(a.dtype, 0), moved)

    return emit


def _extreme(greater: bool) -> Callable[..., Symbol]:
    """NaN wins; of equal operands the first."""

    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype in _SMALL:
            return cast(emit(_to_f32(a), _to_f32(b)), a.dtype)
        first = np.greater_equal(a, b) if greater else np.less_equal(a, b)
        if a.dtype.kind == "f":
            first = first | (a != a)
        return where(a.lanes, first, a, b)

    return emit


def _floor_divide(a: Symbol, b: Symbol) -> Symbol:
    """Of integers; by zero 0, and the lowest by -1 wraps: neither traps."""
    a, b = common(a, b)
    if a.dtype.kind not in "iu":
        raise NotNative("floor division of floats")
    zero, one = a.lanes.constant(a.dtype, 0), a.lanes.constant(a.dtype, 1)
    none = b == zero
    if a.dtype.kind == "u":
        safe = where(a.lanes, none, one, b)
        found = a.new(f"udiv {a.type} {a.name}, {safe.name}", a.dtype)
        return where(a.lanes, none, zero, found)
    minus = b == a.lanes.constant(a.dtype, -1)
    safe = where(a.lanes, none | minus, one, b)
    found = a.new(f"sdiv {a.type} {a.name}, {safe.name}", a.dtype)
    product = found * safe
    below = (product != a) & ((a ^ safe) < zero)
    found = where(a.lanes, below, found - one, found)
    found = where(a.lanes, minus, zero - a, found)
    return where(a.lanes, none, zero, found)


def _fmod(a: Symbol, b: Symbol) -> Symbol:
    """The exact rest of a truncated division; by zero NaN, of integers 0."""
    a, b = common(a, b)
    if a.dtype in _SMALL:
        return cast(_fmod(_to_f32(a), _to_f32(b)), a.dtype)
    if a.dtype.kind == "f":
        return a.new(f"frem {a.type} {a.name}, {b.name}", a.dtype)
    signed, one = a.dtype.kind == "i", a.lanes.constant(a.dtype, 1)
    odd = (b == 0) | (b == a.lanes.constant(a.dtype, -1)) if signed else b == 0
    safe = where(a.lanes, odd, one, b)  # by 1 and -1 nothing is left
    return a.new(f"{'srem' if signed else 'urem'} {a.type} {a.name}, {safe.name}", a.dtype)


def _remainder(a: Symbol, b: Symbol) -> Symbol:
    """With the sign of b, as Python has it."""
    a, b = common(a, b)
    if a.dtype in _SMALL:
        return cast(_remainder(_to_f32(a), _to_f32(b)), a.dtype)
    rest = _fmod(a, b)
    if a.dtype.kind == "u":
        return rest
    other = (rest != 0) & ((b < 0) != (rest < 0)) & (b != 0)
    found = where(a.lanes, other, rest + b, rest)
    if a.dtype.kind == "i":
        return found
    return where(a.lanes, (rest == 0) & (b != 0), _copysign(rest, b), found)


def _through_f32(fn: Callable[[Symbol], Symbol]) -> Callable[[Symbol], Symbol]:
    def emit(a: Symbol) -> Symbol:
        if a.dtype in _SMALL:
            return cast(fn(_to_f32(a)), a.dtype)
        return fn(a)

    return emit


def _intrinsic(name: str) -> Callable[[Symbol], Symbol]:
    def emit(a: Symbol) -> Symbol:
        if a.dtype.kind != "f":
            raise NotNative(f"{name} of integers")
        return Symbol(a.lanes, a.dtype, a.lanes.intrinsic(name, a.dtype, a.name))

    return _through_f32(emit)


def _absolute(a: Symbol) -> Symbol:
    if a.dtype.kind == "u":
        return a
    if a.dtype.kind == "i":
        return where(a.lanes, a < 0, _negative(a), a)
    bits = a.view(f"u{a.dtype.itemsize}")
    return (bits & (_all(a) >> 1)).view(a.dtype)


def _negative(a: Symbol) -> Symbol:
    if a.dtype.kind in "iu":
        return a.lanes.constant(a.dtype, 0) - a
    bits = a.view(f"u{a.dtype.itemsize}")
    return (bits ^ ((_all(a) >> 1) + 1)).view(a.dtype)


def _signbit(a: Symbol) -> Symbol:
    return a.view(f"i{a.dtype.itemsize}") < 0


def _copysign(a: Symbol, b: Symbol) -> Symbol:
    a, b = common(a, b)
    high = (_all(a) >> 1) + 1
    bits = f"u{a.dtype.itemsize}"
    return ((a.view(bits) & (high - 1)) | (b.view(bits) & high)).view(a.dtype)


def _isnan(a: Symbol) -> Symbol:
    return a != a


def _isinf(a: Symbol) -> Symbol:
    return _absolute(a) == a.lanes.constant(a.dtype, np.inf)


def _isfinite(a: Symbol) -> Symbol:
    return _absolute(a) < a.lanes.constant(a.dtype, np.inf)


def where(lanes: Lanes, condition: Any, a: Any, b: Any) -> Symbol:
    """The first where the condition holds."""
    if not isinstance(condition, Symbol):
        condition = lanes.constant(BOOL, bool(condition))
    if condition.dtype != BOOL:
        condition = cast(condition, BOOL)
    if not any(isinstance(v, Symbol | np.ndarray | np.generic) for v in (a, b)):
        a, b = (lanes.constant(np.asarray(v).dtype, v) for v in (a, b))
    a, b = common(*_alike(lanes, (a, b)))
    text = f"select {condition.type} {condition.name}, {a.type} {a.name}, {b.type} {b.name}"
    return a.new(text, a.dtype)


def _full_like(lanes: Lanes, like: Symbol, value: Any) -> Symbol:
    return lanes.constant(like.dtype, value)


_UFUNCS: Final[dict[Any, Callable[..., Symbol]]] = {
    np.add: _arithmetic("add", "fadd"),
    np.subtract: _arithmetic("sub", "fsub"),
    np.multiply: _arithmetic("mul", "fmul"),
    np.true_divide: _arithmetic("", "fdiv"),
    np.floor_divide: _floor_divide,
    np.fmod: _fmod,
    np.remainder: _remainder,
    np.equal: _compare("oeq", "eq"),
    np.not_equal: _compare("une", "ne"),
    np.less: _compare("olt", "slt"),
    np.less_equal: _compare("ole", "sle"),
    np.greater: _compare("ogt", "sgt"),
    np.greater_equal: _compare("oge", "sge"),
    np.bitwise_and: _bits("and"),
    np.bitwise_or: _bits("or"),
    np.bitwise_xor: _bits("xor"),
    np.bitwise_not: _not,
    np.left_shift: _shift(True),
    np.right_shift: _shift(False),
    np.maximum: _extreme(True),
    np.minimum: _extreme(False),
    np.absolute: _absolute,
    np.negative: _negative,
    np.sqrt: _intrinsic("sqrt"),
    np.rint: _intrinsic("rint"),
    np.floor: _intrinsic("floor"),
    np.ceil: _intrinsic("ceil"),
    np.trunc: _intrinsic("trunc"),
    np.signbit: _signbit,
    np.copysign: _copysign,
    np.isnan: _isnan,
    np.isinf: _isinf,
    np.isfinite: _isfinite,
}
_FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.where: where,
    np.full_like: _full_like,
    np.broadcast_arrays: lambda lanes, *arrays: arrays,
    np.count_nonzero: lambda lanes, a: True,
    np.isfinite: lambda lanes, a: _isfinite(a),
}
