"""The scalar unit in compiled code: integers of exact width, floats LLVM computes with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pto.core.dtypes import F16, F32, F64
from pto.core.rounding import Round
from pto.isa.meaning import lanes as meaning_lanes
from pto.isa.meaning.scalar.arith import FUNCTIONS, SCALAR, bits_of, is_unsigned, number, wrapper
from pto.isa.row import types as t
from pto.run.jit.border.values import Native, Word, word_type
from pto.run.jit.emit.table import Emit, Spot, emits
from pto.run.jit.llvm import conversions, lanes
from pto.run.jit.llvm.text import NotNative, Val, constant

_FLOATS = (F16, F32, F64)


def _words(s: Spot) -> list[Word]:
    found = s.all()
    words = [w for w in found if isinstance(w, Word)]
    if len(words) != len(found):
        raise NotNative("an operand is no scalar")
    return words


def _result(s: Spot, name: Val) -> list[Native]:
    type = s.op.results[0].type
    if not isinstance(type, t.Scalar):
        raise NotNative("a result that is no scalar")
    return [Word((name,), type)]


def _constant(s: Spot) -> Sequence[Native]:
    type = s.op.results[0].type
    if not isinstance(type, t.Scalar):
        raise NotNative("a vector constant")
    value = number(s.op.attrs.get("value"), type)
    if type.is_float:
        if type.dtype not in _FLOATS:
            raise NotNative("a constant of a small float")
        return _result(s, constant(type.dtype.numpy, value))
    if bits_of(type) == 1:
        return _result(s, "true" if value else "false")
    return _result(s, wrapper(type)(value))


def _simple(op: str) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        a, b = _words(s)
        kind = a.types[0]
        if kind == "i64" and op in ("add", "sub", "mul"):
            fold: Callable[[Val, Val], Val] = getattr(s.x, op)
            return _result(s, fold(a.name, b.name))
        return _result(s, s.x.new(f"{op} {kind} {a.name}, {b.name}"))

    return emit


def _float(op: str) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        words = _words(s)
        if words[0].type.dtype not in (F32, F64):
            return word_of(s, _LANES[op](*(lane_of(s, word) for word in words)))
        listed = ", ".join(str(w.name) for w in words)
        return _result(s, s.x.new(f"{op} {words[0].types[0]} {listed}"))

    return emit


def _shift(op: str) -> Emit:
    """By the width or more everything is shifted out."""

    def emit(s: Spot) -> Sequence[Native]:
        a, b = _words(s)
        kind, bits = a.types[0], bits_of(a.type)
        if bits == 1:
            raise NotNative("a shift of i1")
        far = s.x.new(f"icmp uge {kind} {b.name}, {bits}")
        by = s.x.new(f"select i1 {far}, {kind} {bits - 1 if op == 'ashr' else 0}, {kind} {b.name}")
        moved = s.x.new(f"{op} {kind} {a.name}, {by}")
        if op != "ashr":
            moved = s.x.new(f"select i1 {far}, {kind} 0, {kind} {moved}")
        return _result(s, moved)

    return emit


def _divide(op: str, round_up: str | None = None) -> Emit:
    """The reference speaks about division by zero; the lowest by -1 wraps."""

    def emit(s: Spot) -> Sequence[Native]:
        x = s.x
        a, b = _words(s)
        kind, bits = a.types[0], bits_of(a.type)
        if bits == 1:
            raise NotNative("division of i1")
        s.fault_unless(x.compare("ne", b.name, 0, kind))
        by = b.name
        if op.startswith("s"):  # lowest / -1 traps: divide by 1 and negate instead
            minus = x.new(f"icmp eq {kind} {by}, -1")
            by = x.new(f"select i1 {minus}, {kind} 1, {kind} {by}")
            found = x.new(f"{op} {kind} {a.name}, {by}")
            if op == "sdiv":
                negated = x.new(f"sub {kind} 0, {found}")
                found = x.new(f"select i1 {minus}, {kind} {negated}, {kind} {found}")
        else:
            found = x.new(f"{op} {kind} {a.name}, {by}")
        if round_up is not None:
            found = _rounded(s, found, a, b, kind, round_up)
        return _result(s, found)

    return emit


def _rounded(s: Spot, quotient: str, a: Word, b: Word, kind: str, way: str) -> str:
    """A truncated quotient one further, where it was not exact and lies on the other side."""
    x = s.x
    product = x.new(f"mul {kind} {quotient}, {b.name}")
    inexact = x.new(f"icmp ne {kind} {product}, {a.name}")
    if way == "ceil unsigned":
        step = inexact
    else:
        signs = x.new(f"xor {kind} {a.name}, {b.name}")
        word = "slt" if way == "floor" else "sge"
        step = x.both(inexact, x.new(f"icmp {word} {kind} {signs}, 0"))
    one = -1 if way == "floor" else 1
    moved = x.new(f"add {kind} {quotient}, {one}")
    return x.new(f"select i1 {step}, {kind} {moved}, {kind} {quotient}")


def _extreme(word: str) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        a, b = _words(s)
        kind = a.types[0]
        first = s.x.new(f"icmp {word} {kind} {a.name}, {b.name}")
        return _result(s, s.x.new(f"select i1 {first}, {kind} {a.name}, {kind} {b.name}"))

    return emit


def _compare_integers(s: Spot) -> Sequence[Native]:
    a, b = _words(s)
    return _result(s, s.x.compare(s.case.word("predicate") or "eq", a.name, b.name, a.types[0]))


def _compare_floats(s: Spot) -> Sequence[Native]:
    a, b = _words(s)
    if a.type.dtype not in _FLOATS:
        raise NotNative("comparison of a small float")
    word = s.case.word("predicate") or "false"
    return _result(s, s.x.new(f"fcmp {word} {a.types[0]} {a.name}, {b.name}"))


def _select(s: Spot) -> Sequence[Native]:
    condition, a, b = s.all()
    if not isinstance(condition, Word) or not a.is_like(b):
        raise NotNative("a choice between different forms")
    pairs = zip(a.types, a.names, b.names, strict=True)
    chosen = [s.x.new(f"select i1 {condition.name}, {k} {p}, {k} {q}") for k, p, q in pairs]
    return [a.renamed(chosen)]


def _resize(signed: bool) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        (a,) = _words(s)
        type = s.op.results[0].type
        if not isinstance(type, t.Scalar):
            raise NotNative("a result that is no scalar")
        have, want, kind = bits_of(a.type), bits_of(type), word_type(type)
        if have == want:
            return _result(s, a.name)
        if isinstance(a.name, int) and signed and want >= have and not is_unsigned(a.type):
            return _result(s, a.name)
        op = "trunc" if want < have else "sext" if signed else "zext"
        return _result(s, s.x.new(f"{op} {a.types[0]} {a.name} to {kind}"))

    return emit


def _to_float(op: str) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        (a,) = _words(s)
        type = s.op.results[0].type
        if not isinstance(type, t.Scalar) or type.dtype not in (F32, F64):
            raise NotNative("a small float")
        return _result(s, s.x.new(f"{op} {a.types[0]} {a.name} to {word_type(type)}"))

    return emit


def lane_of(s: Spot, word: Word) -> lanes.Symbol:
    """A scalar as a symbol of one lane."""
    own = word.type.dtype
    if own is None or not lanes.computes(own.numpy):
        raise NotNative("arithmetic of this type")
    spot = lanes.Lanes(s.x, 1, s.e.unit.declare)
    type = spot.type(own.numpy)
    name = s.x.new(f"insertelement {type} poison, {word.types[0]} {word.name}, i64 0")
    return spot.symbol(own.numpy, name)


def word_of(s: Spot, symbol: lanes.Symbol) -> list[Native]:
    return _result(s, s.x.new(f"extractelement {symbol.type} {symbol.name}, i64 0"))


def _function(fn: Callable[..., Any]) -> Emit:
    """A lane function of floats, on one lane."""

    def emit(s: Spot) -> Sequence[Native]:
        return word_of(s, fn(*(lane_of(s, word) for word in _words(s))))

    return emit


def _convert(s: Spot) -> Sequence[Native]:
    """Between floats: rounded to nearest even, infinities and NaN kept."""
    (word,), type = _words(s), s.op.results[0].type
    if not isinstance(type, t.Scalar) or type.dtype is None or word.type.dtype is None:
        raise NotNative("a result that is no float")
    changed = conversions.convert(lane_of(s, word), word.type.dtype, type.dtype, Round.RINT, False)
    return word_of(s, changed)


def _same_bits(s: Spot) -> Sequence[Native]:
    (word,), type = _words(s), s.op.results[0].type
    if not isinstance(type, t.Scalar) or bits_of(word.type) != bits_of(type):
        raise NotNative("a value that is no scalar")
    have, want = word.types[0], word_type(type)
    return _result(
        s, word.name if have == want else s.x.new(f"bitcast {have} {word.name} to {want}")
    )


_LANES: dict[str, Callable[..., Any]] = {
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmul": operator.mul,
    "fdiv": operator.truediv,
    "fneg": operator.neg,
}
_NATIVE: dict[str, Emit] = {
    "arith.constant": _constant,
    "arith.addi": _simple("add"),
    "arith.subi": _simple("sub"),
    "arith.muli": _simple("mul"),
    "arith.andi": _simple("and"),
    "arith.ori": _simple("or"),
    "arith.xori": _simple("xor"),
    "arith.shli": _shift("shl"),
    "arith.shrsi": _shift("ashr"),
    "arith.shrui": _shift("lshr"),
    "arith.divsi": _divide("sdiv"),
    "arith.divui": _divide("udiv"),
    "arith.remsi": _divide("srem"),
    "arith.remui": _divide("urem"),
    "arith.floordivsi": _divide("sdiv", "floor"),
    "arith.ceildivsi": _divide("sdiv", "ceil"),
    "arith.ceildivui": _divide("udiv", "ceil unsigned"),
    "arith.maxsi": _extreme("sgt"),
    "arith.maxui": _extreme("ugt"),
    "arith.minsi": _extreme("slt"),
    "arith.minui": _extreme("ult"),
    "arith.addf": _float("fadd"),
    "arith.subf": _float("fsub"),
    "arith.mulf": _float("fmul"),
    "arith.divf": _float("fdiv"),
    "arith.negf": _float("fneg"),
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "arith.index_cast": _resize(True),
    "arith.index_castui": _resize(False),
    "arith.extsi": _resize(True),
    "arith.extui": _resize(False),
    "arith.trunci": _resize(False),
    "arith.sitofp": _to_float("sitofp"),
    "arith.uitofp": _to_float("uitofp"),
    "arith.maximumf": _function(meaning_lanes.maximum),
    "arith.minimumf": _function(meaning_lanes.minimum),
    "arith.extf": _convert,
    "arith.truncf": _convert,
    "arith.bitcast": _same_bits,
    **{name: _function(fn) for name, fn in FUNCTIONS.items()},
}
for _name, _emit in _NATIVE.items():
    emits(SCALAR[_name], cheap=True)(_emit)
