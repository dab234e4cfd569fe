"""The front end: which functions are rewritten, where findings point, what variables cost."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import linecache
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.lang.front import variables
from tests.lang.python_kernels import NUMBERS, TILES

F32, I32, Number = pto.Global[pto.f32], pto.Global[pto.i32], pto.Scalar[pto.i32]
LIMIT = 6


def stored(function: Any, n: int, size: int = 4) -> list[int]:
    y = np.zeros(size, np.int32)
    pto.kernel(function)(y, n)
    return y.tolist()


def put(y: Any, at: int, value: Any) -> None:
    isa.store_scalar(y, at, value.to(pto.i32))


# ---- functions


class Scale:
    def __init__(self, factor: int) -> None:
        self.__factor = factor

    def times(self, n: Any) -> Any:
        return n * self.__factor if n > 0 else n

    def __call__(self, n: Any) -> Any:
        if n > LIMIT:
            return n - self.__factor
        return n

    @staticmethod
    def least(n: Any) -> Any:
        return n if n < LIMIT else n * 0 + LIMIT


def twice(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        return function(function(*args, **named), **named)

    return call


@twice
def step(n: Any, by: int = 1) -> Any:
    while n < LIMIT:
        n = n + by
    return n + 1


def add_or_not(a: int, n: Any) -> Any:
    return n + a if n != 3 else n


@pytest.mark.parametrize("n", [2, 3, 9])
def test_functions_of_every_kind_are_rewritten(n: int):
    scale = Scale(3)
    plus = functools.partial(add_or_not, 10)
    pick = lambda k: k if k > 2 else k + 100  # noqa: E731

    def kernel(y: I32, n: Number) -> None:
        put(y, 0, scale.times(n))
        put(y, 1, scale(n))
        put(y, 2, Scale.least(n))
        put(y, 3, plus(n))
        put(y, 4, pick(n))
        put(y, 5, step(n, by=2))

    expected = [fn(n) for fn in (scale.times, scale, Scale.least, plus, pick)] + [step(n, by=2)]
    assert stored(kernel, n, 6) == expected


def test_closures_globals_and_names_keep_their_meaning():
    count = 0

    def kernel(y: I32, n: Number) -> None:
        nonlocal count
        count += 1

        def inner(k: Any, *rest: Any, **named: Any) -> Any:
            nonlocal total
            if k > 1:
                total = total + len(rest) + named["more"]
            return total

        total = n
        for k in range(3):
            if (twice_k := 2 * k) > 2:
                break
            inner(n, k, more=twice_k)
        put(y, 0, total)

    assert stored(kernel, 5)[0] == 5 + (1 + 0) + (1 + 2)
    assert count == 1, "a function is traced once"


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Sizes:
    def __init__(self, rows: int) -> None:
        self.rows = rows

    @functools.cached_property
    def half(self) -> int:
        return self.rows // 2


LOG = logging.getLogger("kernels")


def test_values_that_python_computes_once_are_no_state_of_the_program():
    sizes = Sizes(8)

    @functools.cache
    def factor(n: int) -> int:
        return n * 3

    def kernel(y: I32, n: Number) -> None:
        total = n
        for _ in pto.range(n):
            LOG.debug("traced")
            both = Access.READ | Access.WRITE
            total = total + sizes.half + factor(2) + len(both)
        put(y, 0, total)

    assert stored(kernel, 3, 1) == [3 + 3 * (4 + 6 + 2)]


def test_a_function_of_an_installed_package_is_rewritten(tmp_path: Path, monkeypatch: Any):
    package = tmp_path / "site-packages" / "helping"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def least(a, b):\n    return a if a < b else b\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    import helping  # pyright: ignore[reportMissingImports]

    def kernel(y: I32, n: Number) -> None:
        put(y, 0, helping.least(n, 4))

    assert [stored(kernel, n)[0] for n in (1, 7)] == [1, 4]
    monkeypatch.delitem(sys.modules, "helping")


def test_names_of_functions_inside_are_their_own():
    """Operands of the matrix unit are not carried: nothing after the loop may read `t` or `p`."""

    def kernel(x: F32, y: F32) -> None:
        def twice(t: Any) -> Any:
            return t + t

        def first(k: Any) -> Any:
            p = k + 0.0
            return p * 1.0

        add = lambda t, u=1.0: t + u  # noqa: E731
        total = pto.zeros(16, 64, pto.f32)
        for i in pto.range(0, x.shape[0], 16):
            t = pto.load(x[i:, :], 16, 64, role="mat")
            p = pto.load(x[0:64, :], 64, 64, role="mat")
            total = total + pto.dot(t, p)
        sizes = [t * 1.0 for t in (1.0, 2.0)] + [p + 0.0 for p in (3.0,)]
        total = add(twice(total), first(sum(sizes)))
        pto.store(y, total)

    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 5
    y = np.zeros((16, 64), np.float32)
    pto.kernel(kernel)(x, y)
    assert np.array_equal(y, 2 * (x.reshape(4, 16, 64).sum(0) @ x) + 6)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(a, *b, c=d, **e): return a + b + c + e + g", "d g"),
        ("lambda a, b=c: a + b + d", "c d"),
        ("[a + b for a in c if a > d for e in a]", "b c d"),
        ("[a for a in a]", "a"),
        ("{a: b for a, b in c.items()}", "c"),
        ("def f():\n a = 1\n def g():\n  nonlocal a\n  a = a + b\n return a", "b"),
        ("def f():\n nonlocal a\n a = a + 1", "a"),
        ("def f():\n global a\n a = a + 1", ""),
        ("@d(e)\ndef f(a): return a", "d e"),
        ("def f():\n if (a := b) > 1: pass\n return a", "b"),
        ("(lambda: (yield a))", "a"),
    ],
)
def test_variables_that_a_statement_reads(text: str, names: str):
    assert variables.read(ast.parse(text)) == {*names.split()}


# ---- without source


def from_text(text: str) -> Any:
    names: dict[str, Any] = {"pto": pto, "I32": I32, "Number": Number, "LOG": [], "isa": isa}
    names["reduce"] = functools.reduce
    exec(text, names)
    return pto.kernel(names["k"])


def test_a_function_without_source_runs_as_it_is():
    k = from_text(
        "def k(y: I32, n: Number):\n"
        "    for i in pto.range(n):\n"
        "        j = i * 2\n"
        "        isa.store_scalar(y, i, j.to(pto.i32))\n"
    )
    y = np.zeros(4, np.int32)
    k(y, 3)
    assert y.tolist() == [0, 2, 4, 0]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("if n > 0:\n        pass", "PTO-U202"),
        ("a = 0\n    for i in pto.range(n):\n        a = a + i", "PTO-U217"),
        ("for i in pto.range(n):\n        break\n    isa.store_scalar(y, 0, n)", "PTO-U206"),
        ("a = [0]\n    for i in pto.range(n):\n        a[0] = a[0] + 1", "PTO-U217"),
        ("for i in pto.range(n):\n        LOG.append(1)", "PTO-U217"),
        ("a = sum(pto.range(n))", "PTO-U224"),
        ("a = [1 for i in pto.range(n)]", "PTO-U224"),
        ("a = len({1 for i in pto.range(n)})", "PTO-U224"),
        ("a = next(iter(pto.range(n)))", "PTO-U224"),
        ("a = reduce(lambda a, i: a + 1, pto.range(n), 0)", "PTO-U224"),
        ("for i in map(str, pto.range(n)):\n        pass", "PTO-U224"),
        ("for i in (i for i in pto.range(n)):\n        pass", "PTO-U224"),
        ("for i in enumerate(pto.range(n)):\n        pass", "PTO-U224"),
    ],
)
def test_without_source_a_construct_that_needs_it_says_so(body: str, code: str):
    with pytest.raises(pto.PtoError) as caught:
        from_text(f"def k(y: I32, n: Number):\n    {body}\n")(np.zeros(4, np.int32), 1)
    assert caught.value.code == code
    changes_a_container = "LOG" in body or "[0]" in body
    assert changes_a_container or "its source is not available" in str(caught.value)


def test_without_source_a_loop_changes_containers_of_its_own():
    k = from_text(
        "def k(y: I32, n: Number):\n"
        "    for i in pto.range(n):\n"
        "        both = [i, i + 1]\n"
        "        both.append(both[0] + both[1])\n"
        "        isa.store_scalar(y, i, both[2].to(pto.i32))\n"
    )
    y = np.zeros(4, np.int32)
    k(y, 3)
    assert y.tolist() == [1, 3, 5, 0]


def test_source_that_python_keeps_by_code_is_found(monkeypatch: pytest.MonkeyPatch):
    text = (
        "def k(y: I32, n: Number):\n    v = n * 2 if n > 2 else n\n    isa.store_scalar(y, 0, v)\n"
    )
    names: dict[str, Any] = {"pto": pto, "isa": isa, "I32": I32, "Number": Number}
    exec(compile(text, "<python-input-7>", "single"), names)
    lines = text.splitlines(keepends=True)
    by_code = {names["k"].__code__: lines}.get
    monkeypatch.setattr(linecache, "_getlines_from_code", by_code, raising=False)
    y = np.zeros(1, np.int32)
    pto.kernel(names["k"])(y, 5)
    assert y[0] == 10
    assert linecache.getline("<python-input-7>", 2) == lines[1]
    monkeypatch.delitem(linecache.cache, "<python-input-7>")


# ---- places and names


def test_findings_in_blocks_have_the_columns_of_the_source():
    def kernel(x: F32, y: F32, n: Number) -> None:
        for i in pto.range(n):
            if i > 2 and n < 9:
                t = pto.load(x, 16, 64)
                pto.store(y, t + "word")

    x = np.zeros((16, 64), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(kernel)(x, x, 3)
    loc = caught.value.diagnostics[0].loc
    line = kernel.__code__.co_firstlineno + 4
    assert loc is not None and (loc.file, loc.line) == (__file__, line)
    source = Path(__file__).read_text().splitlines()[line - 1]
    assert source[loc.col - 1 : (loc.end or 0) - 1] == 't + "word"'


def test_operations_have_lines_and_variables_their_names():
    def kernel(y: I32, n: Number) -> None:
        total = 0
        for row in pto.range(n):
            if row != 1:
                total += row
        put(y, 0, total)

    made = pto.kernel(kernel)
    module = made.module(np.zeros(1, np.int32), 2)
    first = kernel.__code__.co_firstlineno
    lines = {op.name: op.loc.line for op in module.walk() if op.loc is not None}
    assert lines["scf.for"] == first + 2
    assert lines["arith.cmpi"] == first + 3
    assert "scf.for %row = " in made.ir and "%total" in made.ir


# ---- printing and asserting


def test_print_and_assert_are_parts_of_the_program():
    def kernel(y: I32, n: Number) -> None:
        for i in pto.range(n):
            print("at", i)
            assert i < 2, "too far"
        put(y, 0, n)

    report = pto.kernel(kernel)(np.zeros(1, np.int32), 2)
    assert list(report.printed) == ["at 0", "at 1"]
    with pytest.raises(pto.PtoError, match="too far") as caught:
        pto.kernel(kernel)(np.zeros(1, np.int32), 3)
    assert caught.value.code == "PTO-S135"


def test_a_print_that_somebody_replaced_is_print(monkeypatch: pytest.MonkeyPatch):
    plain = builtins.print
    monkeypatch.setattr(builtins, "print", lambda *parts, **named: plain(*parts, **named))

    def kernel(y: I32, n: Number) -> None:
        print(f"n is {n}")
        put(y, 0, n)

    assert list(pto.kernel(kernel)(np.zeros(1, np.int32), 3).printed) == ["n is 3"]


def test_f_strings_show_numbers_and_tiles():
    def kernel(x: F32, y: I32, n: Number) -> None:
        t = pto.load(x, 1, 4)
        print(f"{LIMIT:>3}: n = {n:3d} and {n * 2:x}!", f"x[0] = {isa.tgetval(t, 0):.2f}", "end")
        print(f"tile {t}")
        assert n < 20, f"n is {n}"
        put(y, 0, n)

    x, y = np.arange(4, dtype=np.float32).reshape(1, 4), np.zeros(1, np.int32)
    printed = list(pto.kernel(kernel)(x, y, 14).printed)
    assert printed[:5] == ["  6: n =  14", "and 1c!", "x[0] = 0.00", "end", "tile"]
    assert list(map(float, printed[-1].split())) == [0, 1, 2, 3]
    with pytest.raises(pto.PtoError, match="n is 20"):
        pto.kernel(kernel)(x, y, 20)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda n: print(f"{n:>8}"), "PTO-U205"),
        (lambda n: print(f"{n:f}"), "PTO-U205"),
        (lambda n: {}[str(f"{n}")], "PTO-U202"),
        (lambda n: print(str(n) == "3"), "PTO-U202"),
    ],
)
def test_an_f_string_that_the_program_cannot_show(make: Any, code: str):
    def kernel(y: I32, n: Number) -> None:
        make(n)
        put(y, 0, n)

    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(kernel)(np.zeros(1, np.int32), 3)
    assert caught.value.code == code


def matched(n: Any, mode: str) -> Any:
    match n:
        case 0:
            r = n + 10
        case 1 | 2:
            r = n + 20
        case m if m > 5:
            r = m * 2
        case _:
            return n
    match (mode, n):
        case ("a", 7):
            r = r + 100
        case ("b", _):
            r = r + 200
        case [_, k] as both:
            r = r + k + len(both)
    return r


@pytest.mark.parametrize("mode", ["a", "b"])
def test_match_is_a_chain_of_branches(mode: str):
    def kernel(y: I32, n: Number) -> None:
        r = matched(n, mode)
        for i in pto.range(4):
            match i:
                case 2:
                    break
            r = r + 1000
        put(y, 0, r)

    for n in (0, 1, 2, 4, 6, 7):
        assert stored(kernel, n, 1) == [matched(n, mode) + 2000]


def test_patterns_of_classes_are_decided_while_tracing():
    def kernel(y: I32, n: Number) -> None:
        match {"size": 3}:
            case {"size": int(size)}:
                put(y, 0, n + size)

    assert stored(kernel, 2, 1) == [5]


# ---- what it costs


def arguments(name: str) -> tuple[Any, ...]:
    if name in NUMBERS:
        return np.zeros(8, np.int32), 3
    return np.zeros((80, 64), np.float32), np.zeros((16, 64), np.float32), 3


def count(function: Any, name: str) -> int:
    return sum(1 for _ in pto.kernel(function).module(*arguments(name)).walk())


# The operations of each kernel with one explicit carried value for each variable.
EXPLICIT = {
    "elif_chain": 14,
    "sum_in_a_loop": 12,
    "nested_loops": 15,
    "continue_in_a_loop": 18,
    "swapped_numbers": 12,
    "early_return": 13,
    "unrolled_with_branches": 26,
    "accumulate": 26,
    "tile_in_a_branch": 35,
    "best_tile": 30,
    "running_maximum": 37,
    "rebinding_everywhere": 44,
    "conditional_expressions": 18,
    "joined_conditions": 28,
    "branches_in_loops_in_branches": 28,
    "integer_that_becomes_a_float": 17,
    "value_of_the_last_iteration": 25,
    "tuples_in_loops": 25,
    "function_that_binds_around_it": 19,
    "rotated_in_nested_loops": 19,
    "load_in_both_branches": 23,
    "swapped_tiles": 26,
    "old_value_still_needed": 23,
    "previous_tile": 31,
    "columns_in_loops": 32,
    "tuples_of_tiles": 32,
    "function_that_adds_to_a_tile_around_it": 26,
    "list_of_tiles_that_is_bound_again": 26,
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_no_more_operations_than_with_explicit_carried_values(name: str):
    plain = (NUMBERS.get(name) or TILES[name])[0]
    assert count(plain, name) <= EXPLICIT[name]


MOVES = {"accumulate": 0, "load_in_both_branches": 0, "while_with_tiles": 0, "best_tile": 1}
MOVES |= {"old_value_still_needed": 1, "previous_tile": 1, "swapped_tiles": 3}


@pytest.mark.parametrize("name", MOVES)
def test_tiles_are_copied_only_where_the_old_value_is_needed(name: str):
    kernel = pto.kernel(TILES[name][0])
    kernel.module(*arguments(name))
    assert kernel.ir.count("pto.tmov") == MOVES[name]
