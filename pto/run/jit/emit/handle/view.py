"""What holds of numbers and views in compiled code: that they are near, that they lie inside."""

from __future__ import annotations

from pto.core.pointer import FAR
from pto.run.jit.border.values import Native, ViewPlace, Word
from pto.run.jit.emit.table import Spot
from pto.run.jit.llvm.text import NotNative, Text, Val


def number(native: Native) -> Val:
    """An index or i64."""
    if not isinstance(native, Word) or native.types[0] != "i64":
        raise NotNative("a number of another width")
    return native.name


def wide(s: Spot, word: Word) -> Val:
    """A signed integer as 64 bits."""
    kind = word.types[0]
    if kind == "i64" or isinstance(word.name, int):
        return word.name
    if kind not in ("i8", "i16", "i32"):
        raise NotNative("a scalar that is no integer")
    return s.x.new(f"sext {kind} {word.name} to i64")


def near(x: Text, count: Val, far: int = FAR) -> str:
    """Whether a number is small enough that arithmetic with it cannot go around."""
    return x.compare("ult", x.add(count, far), 2 * far)


def inside(s: Spot, view: ViewPlace) -> str:
    """Whether all elements of a view lie inside its memory, which is asked where they are used."""
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


def _exact(s: Spot, op: str, a: Val, b: Val) -> tuple[Val, str]:
    """A sum or product, and whether it fits 64 bits."""
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
