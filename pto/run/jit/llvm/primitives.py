"""The vocabulary of lane functions in LLVM: operators, and every name of `core.primitives`.

f16 and bf16 are computed in f32 and rounded once, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from pto.core.primitives import absolute, isfinite, trunc
from pto.run.jit.ir.conversions import Table, convert
from pto.run.jit.ir.kinds import BF16, BOOL, F16, F32, F64, SMALL, Kind
from pto.run.jit.llvm.lanes import PRIMITIVES, Lanes, Symbol, alike, cast, common, to_f32, where
from pto.run.jit.llvm.text import mangled, scalar_type, vector
from pto.run.jit.llvm.value import Condition


def _arithmetic(integer: str, floating: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        kind = a.dtype
        if kind in SMALL:
            return cast(emit(to_f32(a), to_f32(b)), kind)
        op = floating if kind.kind == "f" else integer
        if not op or kind == BOOL:
            raise TypeError(f"{integer or floating} of {kind}")
        if a.lanes.count == 0 and kind.kind in "iu" and kind.itemsize == 8:  # folds numbers
            return Symbol(a.lanes, kind, getattr(a.lanes.x, op)(a.name, b.name))
        new = a.new_slow if op == "fdiv" else a.new
        return new(f"{op} {a.type} {a.name}, {b.name}", kind)

    return emit


def _compare(ordered: str, signed: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype in SMALL:
            a, b = to_f32(a), to_f32(b)
        if a.dtype.kind == "f":
            return a.new(f"fcmp {ordered} {a.type} {a.name}, {b.name}", BOOL)
        word = signed
        if a.dtype.kind in "ub" and signed not in ("eq", "ne"):
            word = "u" + signed[1:]
        if a.lanes.count == 0:
            return Symbol(a.lanes, BOOL, str(a.lanes.x.compare(word, a.name, b.name, a.type)))
        return a.new(f"icmp {word} {a.type} {a.name}, {b.name}", BOOL)

    return emit


def _bits(op: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype.kind == "f" or a.dtype == BF16:
            raise TypeError(f"{op} of {a.dtype}")
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
        number = b.number
        if number is not None and 0 <= number < bits:
            return a.new(f"{op} {a.type} {a.name}, {count}", a.dtype)
        most = a.like(bits - 1).name
        far = a.new(f"icmp ugt {a.type} {count}, {most}", BOOL)
        safe = a.new(f"select {far.type} {far.name}, {a.type} {most}, {a.type} {count}", a.dtype)
        moved = a.new(f"{op} {a.type} {a.name}, {safe.name}", a.dtype)
        if not left and signed:
            return moved
        return where(a.lanes, far, a.like(0), moved)

    return emit


def _extreme(greater: bool) -> Callable[..., Symbol]:
    """NaN wins; of equal operands the first."""

    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype in SMALL:
            return cast(emit(to_f32(a), to_f32(b)), a.dtype)
        first = a >= b if greater else a <= b
        if a.dtype.kind == "f":
            first = first | (a != a)
        return where(a.lanes, first, a, b)

    return emit


def rank(a: Symbol, greatest: bool) -> Symbol:
    """Floats as unsigned integers in their order, -0 below +0; NaN is above all, or below all where
    the least is wanted: the extreme of floats is that of their ranks."""
    key = _sign_folded(a.view(f"i{a.dtype.itemsize}"))
    return (key - _first_rank(a.dtype, greatest)).view(f"u{a.dtype.itemsize}")


def ranked(rank: Symbol, kind: Kind, greatest: bool) -> Symbol:
    """The float of this rank."""
    signed = rank.view(f"i{kind.itemsize}")
    return _sign_folded(signed + _first_rank(kind, greatest)).view(kind)


def _sign_folded(bits: Symbol) -> Symbol:
    """Below zero the other bits turned round, so that all count up. Its own inverse."""
    width = 8 * bits.dtype.itemsize
    sign = bits >> (width - 1)
    if width == 16:  # of `&` LLVM makes a choice under a mask
        return bits ^ (sign.view(np.uint16) >> 1).view(bits.dtype)
    return bits ^ (sign & ((1 << (width - 1)) - 1))


def _first_rank(kind: Kind, greatest: bool) -> int:
    """The key of -inf, or of the first NaN above +inf."""
    most = int(np.array(np.inf, kind).view(f"i{kind.itemsize}"))
    return ~most if greatest else most + 1


def _best(greatest: bool) -> Callable[..., Symbol]:
    """IEEE maximum and minimum."""

    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        ranks = (a, b) if a.dtype.kind in "iu" else (rank(a, greatest), rank(b, greatest))
        first = ranks[0] >= ranks[1] if greatest else ranks[0] <= ranks[1]
        return where(a.lanes, first, a, b)

    return emit


def _quotient(a: Symbol, b: Symbol) -> Symbol:
    """Of integers; nothing traps. Of many narrow ones in floats that hold both exactly and round
    finer than 1 / b: no machine divides integers side by side."""
    a, b = common(a, b)
    if a.dtype.kind not in "iu":
        raise TypeError(f"a quotient of {a.dtype}")
    none, signed = b == 0, a.dtype.kind == "i"
    if b.number is not None and b.number > 0:  # a machine multiplies instead
        return a.new_slow(f"{'sdiv' if signed else 'udiv'} {a.type} {a.name}, {b.name}", a.dtype)
    if a.lanes.count and a.dtype.itemsize < 8:
        kind, whole = (F32, np.int32) if a.dtype.itemsize < 4 else (F64, np.int64)
        safe = where(a.lanes, none, b.like(1), b)
        found = cast(cast(cast(a, kind) / cast(safe, kind), np.dtype(whole)), a.dtype)
        return where(a.lanes, none, a.like(0), found)
    minus = b == a.like(-1) if signed else a.lanes.constant(BOOL, False)
    safe = where(a.lanes, none | minus, a.like(1), b)
    found = a.new_slow(f"{'sdiv' if signed else 'udiv'} {a.type} {a.name}, {safe.name}", a.dtype)
    if signed:
        found = where(a.lanes, minus, a.like(0) - a, found)
    return where(a.lanes, none, a.like(0), found)


def _floor_divide(a: Symbol, b: Symbol) -> Symbol:
    a, b = common(a, b)
    whole = _quotient(a, b)
    below = (whole * b != a) & ((a < 0) != (b < 0))
    return where(a.lanes, below, whole - 1, whole)


def _fmod(a: Symbol, b: Symbol) -> Symbol:
    """The exact rest of a truncated division; by zero NaN, of integers 0."""
    a, b = common(a, b)
    if a.dtype in SMALL:
        return cast(_float_rest(to_f32(a), to_f32(b), _DIGITS[a.dtype]), a.dtype)
    if a.dtype.kind == "f":
        return _float_rest(a, b, _DIGITS.get(a.dtype, 53))
    if a.lanes.count and a.dtype.itemsize < 8:
        rest = a - _quotient(a, b) * b
        return where(a.lanes, b == 0, a.like(0), rest)
    signed, one = a.dtype.kind == "i", a.like(1)
    odd = (b == 0) | (b == a.like(-1)) if signed else b == 0
    safe = where(a.lanes, odd, one, b)  # by 1 and -1 nothing is left
    return a.new_slow(f"{'srem' if signed else 'urem'} {a.type} {a.name}, {safe.name}", a.dtype)


_DIGITS = {F16: 11, BF16: 8, F32: 24}  # of a mantissa


def _float_rest(a: Symbol, b: Symbol, digits: int, wide: Kind = F32) -> Symbol:
    """The exact remainder of floats. A quotient below 2^n has n digits before the point, and if it
    is no integer it misses one by at least 2^-digits: if n + digits fit into a wider float, its
    division is decisive and its product exact. The C library is used if a quotient is too large for
    f64 too, or for a single lane."""
    if not a.lanes.count or digits == 53:
        return a.new_slow(f"frem {a.type} {a.name}, {b.name}", a.dtype)
    wide = F64 if digits == 24 else wide
    x = a.lanes.x
    n = cast(a, wide)
    d = cast(b, wide)
    share = n / d
    far = absolute(share) >= share.like(2.0 ** (np.finfo(wide).nmant - digits))  # infinite by 0
    some = far.some  # NaN is not far
    near = n - trunc(share) * d
    near = where(a.lanes, absolute(d) == d.like(np.inf), where(a.lanes, isfinite(n), n, near), near)
    near = _copysign(cast(near, a.dtype), a)
    before = x.here
    farther = x.fresh("farther")
    done = x.fresh("rest")
    x.branch(some, farther, done)
    x.label(farther)
    slow, ended = _float_rest(a, b, 53 if wide == F64 else digits, F64), x.here
    x.jump(done)
    x.label(done)
    return a.lanes.symbol(
        a.dtype, x.phi(a.type, [(str(near.name), before), (str(slow.name), ended)])
    )


def _remainder(a: Symbol, b: Symbol) -> Symbol:
    """With the sign of b, as Python has it."""
    a, b = common(a, b)
    if a.dtype in SMALL:
        wide, by = to_f32(a), to_f32(b)
        return cast(_signed_as(_float_rest(wide, by, _DIGITS[a.dtype]), by), a.dtype)
    rest = _fmod(a, b)
    return rest if a.dtype.kind == "u" else _signed_as(rest, b)


def _signed_as(rest: Symbol, b: Symbol) -> Symbol:
    """A rest with the sign of what it was divided by."""
    other = (rest != 0) & ((b < 0) != (rest < 0)) & (b != 0)
    found = where(b.lanes, other, rest + b, rest)
    if b.dtype.kind == "i":
        return found
    return where(b.lanes, (rest == 0) & (b != 0), _copysign(rest, b), found)


def _through_f32(fn: Callable[[Symbol], Symbol]) -> Callable[[Symbol], Symbol]:
    def emit(a: Symbol) -> Symbol:
        if a.dtype in SMALL:
            return cast(fn(to_f32(a)), a.dtype)
        return fn(a)

    return emit


def _intrinsic(name: str) -> Callable[[Symbol], Symbol]:
    def emit(a: Symbol) -> Symbol:
        if a.dtype.kind != "f":
            raise TypeError(f"{name} of {a.dtype}")
        return Symbol(a.lanes, a.dtype, a.lanes.intrinsic(name, a.dtype, a.name))

    return _through_f32(emit)


def _fused(a: Symbol, b: Symbol, c: Symbol) -> Symbol:
    return Symbol(a.lanes, a.dtype, a.lanes.intrinsic("fma", a.dtype, a.name, b.name, c.name))


def _absolute(a: Symbol) -> Symbol:
    if a.dtype.kind == "u":
        return a
    if a.dtype.kind == "i":
        return where(a.lanes, a < 0, _negative(a), a)
    bits = a.view(f"u{a.dtype.itemsize}")
    return (bits & (_all(a) >> 1)).view(a.dtype)


def _negative(a: Symbol) -> Symbol:
    if a.dtype.kind in "iu":
        return a.like(0) - a
    bits = a.view(f"u{a.dtype.itemsize}")
    return (bits ^ ((_all(a) >> 1) + 1)).view(a.dtype)


def _signbit(a: Symbol) -> Symbol:
    return a.view(f"i{a.dtype.itemsize}") < 0


def _copysign(a: Symbol, b: Symbol) -> Symbol:
    a, b = common(a, b)
    high = (_all(a) >> 1) + 1
    bits = f"u{a.dtype.itemsize}"
    return ((a.view(bits) & (high - 1)) | (b.view(bits) & high)).view(a.dtype)


def _on_values(fn: Callable[..., Symbol]) -> Callable[..., Symbol]:
    """Arguments that are numbers become symbols."""

    def write(lanes: Lanes, *args: Any) -> Symbol:
        return fn(*alike(lanes, args))

    return write


PRIMITIVES.update(
    {
        name: _on_values(fn)
        for name, fn in {
            "add": _arithmetic("add", "fadd"),
            "sub": _arithmetic("sub", "fsub"),
            "mul": _arithmetic("mul", "fmul"),
            "truediv": _arithmetic("", "fdiv"),
            "floordiv": _floor_divide,
            "mod": _remainder,
            "and": _bits("and"),
            "or": _bits("or"),
            "xor": _bits("xor"),
            "lshift": _shift(True),
            "rshift": _shift(False),
            "lt": _compare("olt", "slt"),
            "le": _compare("ole", "sle"),
            "gt": _compare("ogt", "sgt"),
            "ge": _compare("oge", "sge"),
            "eq": _compare("oeq", "eq"),
            "ne": _compare("une", "ne"),
            "neg": _negative,
            "invert": _not,
            "greater_of": _extreme(True),
            "less_of": _extreme(False),
            "maximum": _best(True),
            "minimum": _best(False),
            "absolute": _absolute,
            "copysign": _copysign,
            "signbit": _signbit,
            "isnan": lambda a: a != a,
            "isinf": lambda a: _absolute(a) == a.like(np.inf),
            "isfinite": lambda a: _absolute(a) < a.like(np.inf),
            "sqrt": _intrinsic("sqrt"),
            "rint": _intrinsic("rint"),
            "floor": _intrinsic("floor"),
            "ceil": _intrinsic("ceil"),
            "trunc": _intrinsic("trunc"),
            "fused": _fused,
            "quotient": _quotient,
            "remainder": _remainder,
            "fmod": _fmod,
        }.items()
    }
)
PRIMITIVES["select"] = where


def _every(lanes: Lanes, a: Symbol) -> Symbol:
    """All lanes are one packed value; a scalar is by itself."""
    return lanes.spread(BOOL, str(a.every)) if lanes.count else a


def _repeated(lanes: Lanes, step: Callable[..., Any], *state: Any) -> tuple[Symbol, ...]:
    x, first = lanes.x, [s if isinstance(s, Symbol) else lanes.constant(s.dtype, s) for s in state]

    def named(names: Sequence[str]) -> list[Symbol]:
        return [Symbol(lanes, s.dtype, name) for s, name in zip(first, names, strict=True)]

    def test(names: list[str]) -> Condition:
        held = named(names)[0]
        return _compare("une", "ne")(held, held.like(0)).some

    def turn(names: list[str]) -> list[Any]:
        return [each.name for each in step(*named(names))]

    types, begin = [s.type for s in first], [s.name for s in first]
    return tuple(named(x.while_loop(types, begin, test, turn)))


def _library(name: str) -> Callable[[Lanes, Symbol], Symbol]:
    """Lane by lane: both engines call the function of the C library."""

    def write(lanes: Lanes, a: Symbol) -> Symbol:
        lanes.declare(f"declare double @{name}(double) nounwind willreturn memory(none)")
        if lanes.count == 0:
            return a.new_slow(f"call double @{name}(double {a.name})", F64)
        found = "poison"
        for n in range(lanes.count):
            value = lanes.x.new_slow(f"call double @{name}(double {a.lane(n)})")
            found = lanes.x.new(f"insertelement {a.type} {found}, double {value}, i64 {n}")
        return Symbol(lanes, F64, found)

    return write


PRIMITIVES.update(
    {"every": _every, "repeated": _repeated, "sine": _library("sin"), "cosine": _library("cos")}
)


def _to_integer(lanes: Lanes, a: Symbol, kind: Kind) -> Symbol:
    """A float that the integer type holds, truncated; others have no defined result."""
    return a.new(f"fptosi {a.type} {a.name} to {lanes.type(kind)}", kind)


def _saturated(lanes: Lanes, a: Symbol, kind: Kind) -> Symbol:
    """A float as the nearest integer of a type; NaN is 0."""
    word = "fptosi" if kind.kind == "i" else "fptoui"
    short = mangled(scalar_type(a.dtype))
    name = f"@llvm.{word}.sat.v{lanes.count}{scalar_type(kind)}.v{lanes.count}{short}"
    lanes.declare(f"declare {lanes.type(kind)} {name}({a.type})")
    return a.new_slow(f"call {lanes.type(kind)} {name}({a.type} {a.name})", kind)


def _looked_up(lanes: Lanes, index: Symbol, table: Table) -> Symbol:
    """The entries of a table at these numbers. They are words at least: no machine gathers less."""
    values = np.frombuffer(table.data, table.dtype)
    size = max(4, table.dtype.itemsize)
    entries = values.view(f"u{table.dtype.itemsize}").astype(f"u{size}")
    x, item = lanes.x, f"i{8 * size}"
    name = f"@table.{item}.{sha256(entries.tobytes()).hexdigest()[:16]}"
    listed = ", ".join(f"{item} {int(v)}" for v in entries.view(f"i{size}"))
    lanes.declare(f"{name} = private unnamed_addr constant [{entries.size} x {item}] [{listed}]")
    wide = cast(index, np.dtype(np.int64))
    at = x.new(f"getelementptr {item}, ptr {name}, {wide.type} {wide.name}")
    type = vector(lanes.count, item)
    pointers = vector(lanes.count, "ptr")
    bits = vector(lanes.count, "i1")
    gather = f"@llvm.masked.gather.v{lanes.count}{item}.v{lanes.count}p0"
    lanes.declare(f"declare {type} {gather}({pointers}, i32, {bits}, {type})")
    found = x.new_slow(
        f"call {type} {gather}({pointers} {at}, i32 1, {bits} splat (i1 true), {type} poison)"
    )
    return cast(lanes.symbol(entries.dtype, found), np.dtype(f"u{table.dtype.itemsize}"))


PRIMITIVES.update({"to_integer": _to_integer, "saturated": _saturated, "lookup": _looked_up})


def _converted(lanes: Lanes, a: Symbol, *how: Any) -> Symbol:
    """A scalar as the only lane of a vector."""
    if lanes.count:
        return convert(a, *how)
    one = lanes.of(1)
    type = one.type(a.dtype)
    name = lanes.x.new(f"insertelement {type} poison, {a.type} {a.name}, i64 0")
    found = convert(one.symbol(a.dtype, name), *how)
    return lanes.symbol(found.dtype, found.lane(0))


PRIMITIVES["convert"] = _converted
