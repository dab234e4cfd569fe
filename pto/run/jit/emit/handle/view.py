"""Conditions of numbers and views: no overflow, inside the memory."""

from __future__ import annotations

from pto.core.pointer import FAR
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.llvm.text import Text, Val, expect, unsupported_if
from pto.run.jit.runtime.values import Lowered, ScalarValue, ViewDesc


def number(native: Lowered) -> Val:
    """An index or i64."""
    word = expect(native, ScalarValue, "a number of another width")
    unsupported_if(word.types[0] != "i64", "a number of another width")
    return word.name


def wide(s: OpContext, word: ScalarValue) -> Val:
    """A signed integer as 64 bits."""
    kind = word.types[0]
    if kind == "i64" or isinstance(word.name, int):
        return word.name
    unsupported_if(kind not in ("i8", "i16", "i32"), "a scalar that is no integer")
    return s.x.new(f"sext {kind} {word.name} to i64")


def near(x: Text, count: Val, far: int = FAR) -> str:
    """True if a number is small enough that arithmetic with it cannot wrap."""
    return x.compare("ult", x.add(count, far), 2 * far)


def inside(s: OpContext, view: ViewDesc) -> str:
    """True if all elements of a view lie inside its memory; tested at each use."""
    x, empty = s.x, "false"
    nbytes, whole = view.dtype.itemsize, "true"
    for size, step in zip(view.shape, view.strides, strict=True):
        empty = x.either(empty, x.compare("eq", size, 0))
        for op, factor in (("mul", x.sub(size, 1)), ("mul", view.dtype.itemsize)):
            step, kept = _exact(s, op, step, factor)
            whole = x.both(whole, kept)
        nbytes, kept = _exact(s, "add", nbytes, step)
        whole = x.both(whole, kept)
    whole = x.both(whole, x.compare("sge", nbytes, 0))
    return x.either(empty, x.both(whole, s.e.inside(view.memory, view.address, nbytes)))


def _exact(s: OpContext, op: str, a: Val, b: Val) -> tuple[Val, str]:
    """A sum or product, and whether it fits into 64 bits."""
    if isinstance(a, int) and isinstance(b, int):
        found = a * b if op == "mul" else a + b
        return found, "true" if abs(found) < 1 << 63 else "false"
    if (op, b) in (("mul", 1), ("add", 0)):
        return a, "true"
    if op == "mul" and 0 in (a, b):
        return 0, "true"
    s.e.unit.declare(f"declare {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64, i64)")
    pair = s.x.new(f"call {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64 {a}, i64 {b})")
    over = s.x.new(f"extractvalue {{i64, i1}} {pair}, 1")
    return s.x.new(f"extractvalue {{i64, i1}} {pair}, 0"), s.x.new(f"xor i1 {over}, true")
