"""Random kernels of Python's control flow, executed by Python on NumPy arrays and by the machine.

`written(seed)` is the text of a kernel. `expected` executes it as plain Python: a small stand-in
for `pto` gives arrays of NumPy, which are changed in place and may have two names. `outcome`
executes the same text as a kernel. To try many seeds:

    python -m tests.lang.random_kernels 0 2000
"""

from __future__ import annotations

import linecache
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

import pto
from pto import isa

ARGUMENTS = ((0, 3), (1, -2), (3, 2))  # n and m
X = (np.arange(16 * 8, dtype=np.float32) % 7 - 3).reshape(16, 8)


@dataclass
class Scope:
    """The variables of one function, and what its statements may do."""

    tiles: tuple[str, ...]
    numbers: tuple[str, ...]  # variables that are bound
    constants: tuple[str, ...] = ()
    pair: str = ""  # a variable that holds two tiles
    result: Callable[[], str] | None = None  # of a `return` before the end
    counters: list[str] = field(default_factory=list[str])  # of the loops around
    yields: bool = False  # it is a generator


class Writer:
    """Writes the statements of one kernel and of the functions that it calls."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0
        self._calls: list[str] = []  # functions of two tiles and a number that give a tile
        self._pairs: list[str] = []  # and that give a tile and a number
        self._binders: list[str] = []  # functions of a tile that bind variables of the kernel
        self._generators: list[tuple[str, int]] = []  # of a tile and a number, that yield numbers
        self._scope = Scope((), ())
        self._in_place, self._renames = self._random.choice(((1, 0), (0, 1), (1, 1)))

    def text(self) -> str:
        for _ in range(self._random.randrange(3)):
            self._function()
        for _ in range(self._random.randrange(3)):
            self._generator("t, u, r", ("t", "u"), ("r",))
        self._scope = Scope(("a", "b", "c"), ("p", "q"), ("n", "m"), self._any("", "s"))
        with self._indented("def k(x: F32, y: F32, out: I32, n: Number, m: Number) -> None:"):
            self._line("a = pto.load(x[0:8, :], 8, 8)")
            self._line("b = pto.load(x[8:16, :], 8, 8)")
            self._line(self._any("c = a", "c = pto.zeros(8, 8, pto.f32)", "c = a + b"))
            self._line(self._any("p, q = n, m", "p, q = n, 1", "p, q = 0, m"))
            if self._scope.pair:
                self._line("s = (a, b)")
            if self._chance(0.2):
                self._binder()
            if self._chance(0.2):
                self._generator("t, r", ("t", "a"), ("r", "p"), "nonlocal a, p")
            if self._chance(0.2):
                self._scope.result = lambda: ""
            self._statements(3, 5)
            results = ("a", "b", "c", "s[0]") if self._scope.pair else ("a", "b", "c")
            for at, name in enumerate(results):
                self._line(f"pto.store(y[{8 * at} : {8 * at + 8}, :], {name})")
            self._line("put(out, 0, p)")
            self._line("put(out, 1, q)")
        return "".join(self._lines)

    def _function(self) -> None:
        name, is_pair = self._fresh("f"), self._chance(0.3)
        result = lambda: self.tile() + (f", {self.number()}" if is_pair else "")  # noqa: E731
        self._scope = Scope(("t", "u"), ("r",), result=result if self._chance(0.5) else None)
        with self._indented(f"def {name}(t, u, r):"):
            self._statements(1, 3)
            self._line(f"return {result()}")
        (self._pairs if is_pair else self._calls).append(name)

    def _binder(self) -> None:
        name, outer = self._fresh("g"), self._scope
        self._scope = Scope(("t", "a"), ("p",))
        with self._indented(f"def {name}(t):"):
            self._line("nonlocal a, p")
            self._statements(1, 2)
        self._scope = outer
        self._binders.append(name)

    def _generator(
        self, given: str, tiles: tuple[str, ...], numbers: tuple[str, ...], first: str = ""
    ) -> None:
        name, outer = self._fresh("h"), self._scope
        self._scope = Scope(tiles, numbers, result=lambda: "", yields=True)
        with self._indented(f"def {name}({given}):"):
            if first:
                self._line(first)
            self._statements(1, 2)
            self._loop(*self._counted())
            if self._chance(0.7):  # a generator has a `yield`
                self._line("if not YES:")
                self._depth += 1
            self._yield()
        self._scope = outer
        self._generators.append((name, given.count(",")))

    def _yield(self) -> None:
        forms = [f"yield {self.number()}", f"yield {self.number()}"]
        forms += [f"yield from {each}" for each in self._called()]
        self._line(self._any(*forms))

    def _called(self) -> list[str]:
        """Calls of generators."""
        return [
            f"{name}({', '.join([self._tile()] * tiles)}, {self._number()})"
            for name, tiles in self._generators
        ]

    # ---- statements

    def _statements(self, least: int, most: int) -> None:
        for _ in range(self._random.randint(least, most)):
            self._statement()

    def _block(self, head: str, most: int) -> None:
        with self._indented(head):
            self._statements(1, most)

    def _statement(self) -> None:
        forms = [self._bind, self._bind, self._bind_number, self._bind_several]
        forms += [self._change] * self._in_place + [self._yield] * (2 * self._scope.yields)
        if self._scope.counters or self._scope.result:
            forms.append(self._exit)
        if self._depth < self._random.choice((3, 3, 4)):
            forms += [self._if, self._if, self._for, self._while, self._match]
        self._random.choice(forms)()

    def _bind(self) -> None:
        values = [self.tile(), self.tile()] + [self._tile()] * self._renames
        self._line(f"{self._tile()} = {self._any(*values)}")

    def _bind_number(self) -> None:
        name = self._target()
        forms = (f"{name} = {self.number()}", f"{name} += 1", f"{name} -= {self._small()}")
        self._line(self._any(*forms))

    def _change(self) -> None:
        """A change in place."""
        t, u = self._tile(), self._tile()
        forms = (
            f"{t} += {u}",
            f"{t} -= 1.0",
            f"{t} *= 0.5",
            f"{t}[:] = {u}",
            f"{t}[0:4, :] += 1.0",
        )
        self._line(self._any(*forms))

    def _bind_several(self) -> None:
        t, u = self._random.sample(self._scope.tiles, 2)
        p, pair = self._target(), self._scope.pair
        forms = [f"{t}, {u} = {u}, {t}", f"{t}, {u} = {u}, {self.tile()}"]
        forms.append(f"{p}, {t} = {self.number()}, {self.tile()}")
        forms += [f"{t}, {p} = {each}({t}, {u}, {self._number()})" for each in self._pairs]
        if pair:
            forms += [f"{pair} = ({pair}[1], {pair}[0])", f"{pair} = ({t}, {self.tile()})"]
            forms += [f"{t}, {u} = {pair}", f"{t} = {pair}[1]"]
        if pair or "q" in self._scope.numbers:
            forms += [f"{each}({t})" for each in self._binders] * 2
        self._line(self._any(*forms))

    def _if(self) -> None:
        self._block(f"if {self.condition()}:", 2)
        if self._chance(0.2):
            self._block(f"elif {self.condition()}:", 2)
        if self._chance(0.4):
            self._block("else:", 2)

    def _for(self) -> None:
        self._loop(*self._counted())

    def _counted(self) -> tuple[str, str]:
        """The head and the counter of a loop."""
        name = self._fresh("i")
        count = self._any("2", "1, 3", f"{self._number()} % 4", f"{self._number()}, 3")
        forms = [f"pto.range({count})", "range(2)", *self._called()]
        return f"for {name} in {self._any(*forms)}:", name

    def _while(self) -> None:
        name = self._fresh("w")
        self._line(f"{name} = {self._any('2', f'{self._number()} % 4')}")
        more = f" and {self.condition()}" if self._chance(0.3) else ""
        self._loop(f"while {name} > 0{more}:", name, f"{name} = {name} - 1")

    def _loop(self, head: str, counter: str, first: str = "") -> None:
        self._scope.counters.append(counter)
        with self._indented(head):
            if first:
                self._line(first)
            self._statements(1, 3)
        self._scope.counters.pop()
        if self._chance(0.1):
            self._block("else:", 2)

    def _match(self) -> None:
        with self._indented(f"match {self._number()} % 3:"):
            for case in ("0", self._any("1", "1 | 2", f"v if v > {self._small()}"), "_"):
                self._block(f"case {case}:", 2)

    def _exit(self) -> None:
        forms = ["break", "continue"] if self._scope.counters else []
        if self._scope.result is not None:
            forms.append(f"return {self._scope.result()}")
        with self._indented(f"if {self.condition()}:"):
            self._line(self._any(*forms).rstrip())

    # ---- expressions

    def tile(self) -> str:
        t, u = self._tile(), self._tile()
        forms = [f"{t} + {u}", f"{t} * 0.5", f"{t} + 1.0", f"pto.max({t}, {u})"]
        forms += [f"{t} if {self.condition()} else {u}"] * (1 + self._renames)
        forms += [f"{each}({t}, {u}, {self._number()})" for each in self._calls]
        return self._any(*forms)

    def number(self) -> str:
        p, q = self._any(self._number, self._small), self._number()
        forms = [f"{q} + 1", f"({p} + {q}) % 7", f"{q} - {self._small()}", f"({q} * 3) % 5"]
        forms += [f"{q} // 2", f"max({p}, {q})", f"abs({q})", q]
        return self._any(*forms, f"{p} if {self.condition()} else {q}")

    def condition(self, deep: int = 2) -> str:
        p, q = self._number(), self._any(self._number, self._small)
        forms = [p, f"{p} > {q}", f"{p} % 2 == 0", f"0 <= {p} < 3", f"{p} in (1, 2)", "YES"]
        if deep:
            first, second = self.condition(deep - 1), self.condition(deep - 1)
            forms += [f"({first} and {second})", f"({first} or {second})", f"not {first}"]
        return self._any(*forms)

    # ---- names

    def _tile(self) -> str:
        return self._random.choice(self._scope.tiles)

    def _target(self) -> str:
        return self._random.choice(self._scope.numbers)

    def _number(self) -> str:
        scope = self._scope
        return self._random.choice((*scope.numbers, *scope.constants, *scope.counters))

    def _small(self) -> str:
        return str(self._random.randrange(4))

    def _fresh(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _any(self, *forms: str | Callable[[], str]) -> str:
        found = self._random.choice(forms)
        return found if isinstance(found, str) else found()

    @contextmanager
    def _indented(self, head: str) -> Generator[None]:
        self._line(head)
        depth = self._depth
        self._depth += 1
        yield
        self._depth = depth

    def _line(self, text: str) -> None:
        self._lines.append(f"{'    ' * self._depth}{text}\n")


def written(seed: int) -> str:
    """The text of the kernel of a seed."""
    return Writer(seed).text()


# ---- executed by Python


def _stored(array: Any, tile: Any) -> None:
    array[...] = tile


STAND_IN = SimpleNamespace(
    load=lambda window, rows, cols: window[:rows, :cols].copy(),
    zeros=lambda rows, cols, dtype: np.zeros((rows, cols), dtype),
    store=_stored,
    max=np.maximum,
    range=range,
    f32=np.float32,
)


def _put(out: Any, at: int, number: Any) -> None:
    out[at] = number


Result = tuple[list[float], list[int]]


def results() -> tuple[Any, Any]:
    """The arrays that a kernel stores to."""
    return np.full((32, 8), -99.0, np.float32), np.full(2, -99, np.int32)


def expected(text: str, n: int, m: int) -> Result | None:
    """The results of the text as plain Python; None if it reads a variable that has no value."""
    names: dict[str, Any] = {"pto": STAND_IN, "put": _put, "YES": True}
    names.update(F32=object, I32=object, Number=object)
    exec(compile(text, "<plain>", "exec"), names)
    y, out = results()
    try:
        names["k"](X.copy(), y, out, n, m)
    except NameError:
        return None
    return y.ravel().tolist(), out.tolist()


# ---- executed by the machine


def _store_number(out: Any, at: int, number: Any) -> None:
    kind = pto.i32
    isa.store_scalar(
        out, at, pto.scalar(number, kind) if isinstance(number, int) else number.to(kind)
    )


def kernel_of(text: str, file: str) -> Any:
    """The kernel of a text, which only Python's line cache has as a file."""
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {"pto": pto, "put": _store_number, "YES": True, "__name__": "kernels"}
    names.update(F32=pto.Global[pto.f32], I32=pto.Global[pto.i32], Number=pto.Scalar[pto.i32])
    exec(compile(text, file, "exec"), names)
    return pto.kernel(profile="a5")(names["k"])


def outcome(seed: int, engines: Sequence[str] = ("reference", "jit")) -> tuple[str, str]:
    """`equal`, `finding` or what is wrong, and more about it."""
    text, file = written(seed), f"<random kernel {seed}>"
    kernel = kernel_of(text, file)
    for n, m in ARGUMENTS:
        wanted = expected(text, n, m)
        for engine in engines:
            y, out = results()
            try:
                kernel.run(X, y, out, n, m, engine=engine, coverage=False)
            except pto.PtoError as error:
                return _judged(error, file)
            except Exception:
                return "traceback", traceback.format_exc()
            got = y.ravel().tolist(), out.tolist()
            if got != wanted:
                return "different", f"{engine}, n={n}, m={m}: {got} is not {wanted}"
    return "equal", ""


def _judged(error: pto.PtoError, file: str) -> tuple[str, str]:
    found = error.diagnostics[0]
    if found.loc is None or found.loc.file != file:
        return "misplaced", str(error)
    is_known = found.code.startswith("PTO-U") or found.code == "PTO-V201"
    return ("finding" if is_known else "other finding"), str(error)


def main(first: int, last: int) -> None:
    counts: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    for seed in range(first, last):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            what, told = outcome(seed, ("reference", "jit")[: 2 if seed % 8 == 0 else 1])
        counts[what] += 1
        if what == "finding":
            messages[told.strip().splitlines()[0]] += 1
        elif what != "equal":
            print(f"==== seed {seed}: {what}\n{told}", flush=True)
    print(dict(counts))
    for message, count in messages.most_common(40):
        print(count, message)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
