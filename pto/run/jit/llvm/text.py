"""LLVM text, line by line: names, labels and constants. Knows nothing of instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from pto.core.dtypes import F16, F32, F64, DType

I1: Final = "i1"
I8: Final = "i8"
I32: Final = "i32"
I64: Final = "i64"
_FLOATS: Final = {F16: "half", F32: "float", F64: "double"}


# A value: a number known while the text is written, or the name of one known when it runs. Bits
# are LLVM's own words `true` and `false`, or names.
Val = int | str


class NotNative(Exception):
    """This cannot be compiled; the reference engine does it instead."""


def element(dtype: DType) -> str:
    """The LLVM type of one item; floats that LLVM does not compute with are their bits."""
    return _FLOATS.get(dtype, f"i{8 * dtype.itemsize}")


def number(dtype: DType) -> str:
    """The LLVM type of one value, which may be narrower than an item."""
    return _FLOATS.get(dtype, f"i{dtype.bits}")


def scalar_type(kind: np.dtype[Any]) -> str:
    """The LLVM type of a NumPy type; bf16 is `bfloat` nowhere: its bits are an i16, fp8 an i8."""
    if kind.kind == "b":
        return I1
    if kind.kind == "f" and kind.itemsize > 1:
        return {2: "half", 4: "float", 8: "double"}[kind.itemsize]
    return f"i{8 * kind.itemsize}"


def mangled(item: str) -> str:
    """What a type is called inside the name of an intrinsic."""
    return {"half": "f16", "float": "f32", "double": "f64"}.get(item, item)


def vector(lanes: int, item: str) -> str:
    return f"<{lanes} x {item}>"


def constant(kind: np.dtype[Any], value: Any) -> str:
    """One number of a NumPy type, exactly."""
    item = np.asarray(value, kind)
    if kind.kind == "b":
        return "true" if item else "false"
    if kind.kind == "f":
        if kind.itemsize == 2:
            return f"0xH{int(item.view(np.uint16)):04X}"
        wide = item.astype(np.float64)
        return f"0x{int(wide.view(np.uint64)):016X}"
    if kind.kind in "iu":
        return str(int(item))
    return str(int(item.view(f"u{kind.itemsize}")))  # bf16 and its like: the bits


def splat(lanes: int, item: str, value: str) -> str:
    """A constant vector of one constant."""
    return f"splat ({item} {value})" if lanes else value


class Noted(str):
    """A line that tells of a use of global memory: only a survey needs it, or code that logs."""


class Text:
    """The body of one function under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = ["entry:"]
        self.here = "entry"  # the label of the block being written
        self._names = 0
        self.allocas: list[str] = []
        self.zeroed: dict[str, tuple[str, str]] = {}  # lanes off are 0: of what, under which bits
        self.heads: dict[str, Val] = {}  # predicates of the first lanes: how many
        self.held: dict[str, Any] = {}  # unsigned numbers, or made of them: where they lie too
        self.same: dict[str, Val] = {}  # integers that are one in all lanes: which

    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def new(self, op: str) -> str:
        """A line with a result; returns its name."""
        name = self.name()
        self.lines.append(f"  {name} = {op}")
        return name

    def do(self, op: str) -> None:
        self.lines.append(f"  {op}")

    def note(self, op: str) -> None:
        self.lines.append(Noted(f"  {op}"))

    def fresh(self, word: str) -> str:
        """A label nobody has used."""
        self._names += 1
        return f"{word}{self._names}"

    def label(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.here = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, weights: str = "") -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}{weights}")

    def when(
        self, condition: str, body: Callable[[], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        """One of two ways, by a condition that may be known now."""
        if condition in ("true", "false"):
            way = body if condition == "true" else otherwise
            if way is not None:
                way()
            return
        yes, done = self.fresh("yes"), self.fresh("done")
        no = done if otherwise is None else self.fresh("no")
        self.branch(condition, yes, no)
        for label, way in ((yes, body), (no, otherwise)):
            if way is not None:
                self.label(label)
                way()
                self.jump(done)
        self.label(done)

    def switch(self, type: str, value: Val, other: str, labels: Mapping[int, str]) -> None:
        listed = " ".join(f"{type} {number}, label %{label}" for number, label in labels.items())
        self.do(f"switch {type} {value}, label %{other} [ {listed} ]")

    def phi(self, type: str, pairs: Sequence[tuple[Val, str]]) -> str:
        listed = ", ".join(f"[ {value}, %{label} ]" for value, label in pairs)
        return self.new(f"phi {type} {listed}")

    def mark(self) -> tuple[int, str]:
        """Where the text stands."""
        return len(self.lines), self.here

    def back_to(self, mark: tuple[int, str]) -> None:
        """Forget what was written since; rooms on the stack stay."""
        del self.lines[mark[0] :]
        self.here = mark[1]

    def stack(self, type: str) -> str:
        """Room on the stack for the whole function."""
        name = self.name()
        self.allocas.append(f"  {name} = alloca {type}, align 64")
        return name

    def at(self, base: str, offset: Val) -> str:
        """An address so many bytes behind a pointer."""
        if offset == 0:
            return base
        return self.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, type: str, pointer: str, align: int = 1, extra: str = "") -> str:
        return self.new(f"load {type}, ptr {pointer}, align {align}{extra}")

    def store(self, type: str, value: Val, pointer: str, align: int = 1, extra: str = "") -> None:
        self.do(f"store {type} {value}, ptr {pointer}, align {align}{extra}")

    # ---- integers of 64 bits, folded where both are numbers

    def add(self, a: Val, b: Val) -> Val:
        if isinstance(a, int) and isinstance(b, int):
            return wrap(a + b)
        return b if a == 0 else a if b == 0 else self.new(f"add i64 {a}, {b}")

    def sub(self, a: Val, b: Val) -> Val:
        if isinstance(a, int) and isinstance(b, int):
            return wrap(a - b)
        return a if b == 0 else self.new(f"sub i64 {a}, {b}")

    def mul(self, a: Val, b: Val) -> Val:
        if isinstance(a, int) and isinstance(b, int):
            return wrap(a * b)
        if 0 in (a, b):
            return 0
        return b if a == 1 else a if b == 1 else self.new(f"mul i64 {a}, {b}")

    def over(self, a: Val, by: Val) -> Val:
        """a // by, of numbers that are not negative."""
        if isinstance(a, int) and isinstance(by, int):
            return a // by
        return a if by == 1 else self.new(f"udiv i64 {a}, {by}")

    def rest(self, a: Val, by: Val) -> Val:
        """a % by, of numbers that are not negative."""
        if isinstance(a, int) and isinstance(by, int):
            return a % by
        return 0 if by == 1 else self.new(f"urem i64 {a}, {by}")

    def up(self, a: Val, by: int) -> Val:
        """a / by, rounded up."""
        return self.over(self.add(a, by - 1), by)

    def compare(self, word: str, a: Val, b: Val, type: str = I64) -> str:
        if isinstance(a, int) and isinstance(b, int):
            found = _COMPARE[word](a, b)
            if found is not None:
                return "true" if found else "false"
        return self.new(f"icmp {word} {type} {a}, {b}")

    def less(self, a: Val, b: Val) -> str:
        """Signed a < b."""
        return self.compare("slt", a, b)

    def both(self, a: str, b: str) -> str:
        if "false" in (a, b):
            return "false"
        return b if a == "true" else a if b == "true" else self.new(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        if "true" in (a, b):
            return "true"
        return b if a == "false" else a if b == "false" else self.new(f"or i1 {a}, {b}")

    def negated(self, a: str) -> str:
        known = {"true": "false", "false": "true"}.get(a)
        return known or self.new(f"xor i1 {a}, true")

    def apart(self, a: Val, a_size: Val, b: Val, b_size: Val) -> str:
        """Whether two ranges, each from a number on, have no number in common."""
        before = self.compare("sle", self.add(a, a_size), b)
        return self.either(before, self.compare("sle", self.add(b, b_size), a))

    def smaller(self, a: Val, b: Val) -> Val:
        """The lesser of two, signed."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.new(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def greater(self, a: Val, b: Val) -> Val:
        """The greater of two, signed."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.new(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def function(self, head: str, *, notes: bool = True) -> str:
        """The whole text of the function, with lines that are noted or without."""
        entry, *rest = (line for line in self.lines if notes or not isinstance(line, Noted))
        return "\n".join([f"{head} {{", entry, *self.allocas, *rest, "}"])


_COMPARE: Final[dict[str, Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ugt": lambda a, b: a > b if a >= 0 and b >= 0 else None,
    "ult": lambda a, b: a < b if a >= 0 and b >= 0 else None,
    "uge": lambda a, b: a >= b if a >= 0 and b >= 0 else None,
    "ule": lambda a, b: a <= b if a >= 0 and b >= 0 else None,
}


def wrap(value: int) -> int:
    """A number as the signed 64 bits that it leaves."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
