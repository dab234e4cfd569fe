"""LLVM text, line by line: names, labels, loops and constants. It knows no PTO instruction."""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from pto.core.dtypes import F16, F32, F64, DType
from pto.run.jit.ir.kinds import Kind
from pto.run.jit.llvm.value import Condition, Val, Value, known_condition

I1: Final = "i1"
I8: Final = "i8"
I32: Final = "i32"
I64: Final = "i64"
_FLOATS: Final = {F16: "half", F32: "float", F64: "double"}
_WIDTHS: Final = {"half": 16, "float": 32, "double": 64} | {f"i{2**n}": 2**n for n in range(10)}

FIXED: Final = "!invariant.load !0"


def element(dtype: DType) -> str:
    """The LLVM type of one item; floats that LLVM does not compute with are their bits."""
    return _FLOATS.get(dtype, f"i{8 * dtype.itemsize}")


def number(dtype: DType) -> str:
    """The LLVM type of one value, which may be narrower than an item."""
    return _FLOATS.get(dtype, f"i{dtype.bits}")


def scalar_type(kind: Kind) -> str:
    """The LLVM type of a NumPy type; bf16 is `bfloat` nowhere: its bits are an i16, fp8 an i8."""
    if kind.kind == "b":
        return I1
    if kind.kind == "f" and kind.itemsize > 1:
        return {2: "half", 4: "float", 8: "double"}[kind.itemsize]
    return f"i{8 * kind.itemsize}"


def width_of(item: str) -> int:
    """The bits of a scalar type."""
    return _WIDTHS[item]


def is_integer(item: str) -> bool:
    return item not in _FLOATS.values()


def mangled(item: str) -> str:
    """The type in the name of an intrinsic."""
    return {"half": "f16", "float": "f32", "double": "f64"}.get(item, item)


def vector(lanes: int, item: str) -> str:
    return f"<{lanes} x {item}>"


def constant(kind: Kind, value: Any) -> Value:
    """One number of a NumPy type, exactly."""
    item = np.asarray(value, kind)
    return Value(_spelled(kind, item), constant=item[()])


def _spelled(kind: Kind, item: Any) -> str:
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


Declare = Callable[[str], None]


def _no_module(line: str) -> None:
    raise RuntimeError(f"a text without a module cannot declare {line}")


class Text:
    """The body of one function under construction.

    `declare` adds a declaration to its module; `entry` is the label of its first block.
    """

    def __init__(self, declare: Declare = _no_module, entry: str = "entry") -> None:
        self.declare = declare
        self.lines: list[str] = []
        self.here = entry  # the label of the block being written
        self._entry = entry
        self._names = 0
        self._stack: list[str] = []
        self._prologue: list[str] = []
        self.slow = 0  # instructions that take many cycles: divisions, calls
        self.widest = 0  # bytes of the widest float that an instruction computes

    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def new(self, op: str) -> str:
        """A line with a result; returns its name."""
        name = self.name()
        self.lines.append(f"  {name} = {op}")
        return name

    def new_slow(self, op: str) -> str:
        """As `new`, of an instruction that takes many cycles."""
        self.slow += 1
        return self.new(op)

    def do(self, op: str) -> None:
        self.lines.append(f"  {op}")

    def fresh(self, word: str) -> str:
        """An unused label."""
        self._names += 1
        return f"{word}{self._names}"

    def label(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.here = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: Condition, yes: str, no: str, weights: str = "") -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}{weights}")

    def when(
        self,
        condition: Condition,
        body: Callable[[], object],
        otherwise: Callable[[], object] | None = None,
    ) -> None:
        """One of two ways, by a condition that may be known now."""
        if condition.is_known:
            way = body if condition.is_true else otherwise
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

    def leave_unless(
        self, condition: Condition, leave: Callable[[], object], weights: str = ""
    ) -> None:
        """Emit `leave`, which ends with a return or a jump, for the case that a condition fails."""
        if condition.is_true:
            return
        bad, go = self.fresh("bad"), self.fresh("go")
        self.branch(condition, go, bad, weights)
        self.label(bad)
        leave()
        self.label(go)

    def while_loop(
        self,
        types: Sequence[str],
        first: Sequence[Val],
        test: Callable[[list[str]], Condition],
        step: Callable[[list[str]], Sequence[Val]],
    ) -> list[str]:
        """values = first; while test(values): values = step(values). Returns the last values."""
        before = self.here
        head, inside, done = map(self.fresh, ("loop", "in", "out"))
        self.jump(head)
        self.label(head)
        place, values = len(self.lines), [self.name() for _ in first]
        self.branch(test(values), inside, done)
        self.label(inside)
        found = step(values)
        self.lines[place:place] = [
            f"  {name} = phi {type} [ {a}, %{before} ], [ {b}, %{self.here} ]"
            for name, type, a, b in zip(values, types, first, found, strict=True)
        ]
        self.jump(head)
        self.label(done)
        return values

    def fold(
        self,
        count: Val,
        types: Sequence[str],
        first: Sequence[Val],
        step: Callable[[str, list[str]], Sequence[Val]],
        by: Val = 1,
        start: Val = 0,
    ) -> list[str]:
        """values = first; for i = start; i < count; i += by: values = step(i, values)."""

        def test(state: list[str]) -> Condition:
            return Condition(self, self.new(f"icmp slt i64 {state[0]}, {count}"))

        def turn(state: list[str]) -> list[Val]:
            found = step(state[0], state[1:])
            return [self.new(f"add nsw i64 {state[0]}, {by}"), *found]

        return self.while_loop(["i64", *types], [start, *first], test, turn)[1:]

    def loop(self, count: Val, step: Val, body: Callable[[str], None], start: Val = 0) -> None:
        """for i = start; i < count; i += step: body(i)."""

        def turn(i: str, _: list[str]) -> list[Val]:
            body(i)
            return []

        self.fold(count, [], [], turn, step, start)

    def switch(self, type: str, value: Val, other: str, labels: Mapping[int, str]) -> None:
        listed = " ".join(f"{type} {number}, label %{label}" for number, label in labels.items())
        self.do(f"switch {type} {value}, label %{other} [ {listed} ]")

    def phi(self, type: str, pairs: Sequence[tuple[Val, str]]) -> str:
        listed = ", ".join(f"[ {value}, %{label} ]" for value, label in pairs)
        return self.new(f"phi {type} {listed}")

    @contextmanager
    def part(self) -> Generator[None]:
        """A part of the text that is added when it is complete: nothing of it if it is given up."""
        lines = self.lines
        here = self.here
        self.lines = []
        try:
            yield
        except Exception:
            self.lines, self.here = lines, here
            raise
        lines += self.lines
        self.lines = lines

    def stack(self, type: str, first: int | None = None) -> str:
        """A stack slot for the whole function, perhaps with an initial value."""
        name = self.name()
        self._stack.append(f"  {name} = alloca {type}, align 64")
        self._prologue += [] if first is None else [f"  store {type} {first}, ptr {name}"]
        return name

    def first(self, op: str) -> str:
        """An instruction at the start of the function."""
        name = self.name()
        self._prologue.append(f"  {name} = {op}")
        return name

    def at(self, base: str, offset: Val) -> str:
        """An address so many bytes behind a pointer."""
        if offset == 0:
            return base
        return self.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, type: str, pointer: str, align: int = 1) -> str:
        return self.new(f"load {type}, ptr {pointer}, align {align}")

    def load_fixed(self, type: str, pointer: str) -> str:
        """A word that keeps its value throughout a launch."""
        return self.new(f"load {type}, ptr {pointer}, align 8, {FIXED}")

    def load_flag(self, pointer: str) -> str:
        """A word that another thread sets."""
        return self.new(f"load volatile i64, ptr {pointer}, align 8")

    def store(self, type: str, value: Val, pointer: str, align: int = 1, extra: str = "") -> None:
        self.do(f"store {type} {value}, ptr {pointer}, align {align}{extra}")

    def prefetch(self, pointer: str) -> None:
        """Ask for the cache line of an address, which may be outside of all buffers."""
        self.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    def bitcast(self, value: Val, have: str, want: str) -> Val:
        """The same bits as another type."""
        return value if have == want else self.new(f"bitcast {have} {value} to {want}")

    def narrow(self, value: Val, bits: int) -> Val:
        """The low bits of a 64-bit integer."""
        return value if bits == 64 else self.new(f"trunc i64 {value} to i{bits}")

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

    def compare(self, word: str, a: Val, b: Val, type: str = I64) -> Condition:
        if isinstance(a, int) and isinstance(b, int) and (word[0] != "u" or min(a, b) >= 0):
            return known_condition(_COMPARE[word.lstrip("su")](a, b))
        return Condition(self, self.new(f"icmp {word} {type} {a}, {b}"))

    def bit(self, value: Val) -> Condition:
        """A scalar of one bit as a condition."""
        if isinstance(value, int) or value in ("true", "false"):
            return known_condition(value not in (0, "false"))
        return Condition(self, value)

    def disjoint(self, a: Val, a_size: Val, b: Val, b_size: Val) -> Condition:
        """True if two ranges, each given by its start and size, are disjoint."""
        before = self.compare("sle", self.add(a, a_size), b)
        return before | self.compare("sle", self.add(b, b_size), a)

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

    def procedure(
        self, name: str, types: Sequence[str], result: str = "void", value: Val = ""
    ) -> str:
        """The whole function `name(..)` with parameters %p0, %p1, .. of these types; it ends with
        this result."""
        self.do(f"ret {result} {value}".rstrip())
        listed = ", ".join(f"{type} %p{n}" for n, type in enumerate(types))
        return self.function(f"define internal {result} {name}({listed}) noinline nounwind")

    def function(self, head: str, begin: Sequence[str] = ()) -> str:
        """The whole function. `begin` are the lines before its first block, if that is not
        `entry`."""
        label = [] if self._entry == "entry" else [f"{self._entry}:"]
        start = ["entry:", *self._stack, *begin, *label, *self._prologue]
        return "\n".join([f"{head} {{", *start, *self.lines, "}"])


_COMPARE: Final = {word: getattr(operator, word) for word in ("eq", "ne", "lt", "le", "gt", "ge")}


def wrap(value: int) -> int:
    """A number as the signed 64 bits that it leaves."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
