"""Kernels that use Python's control flow in every way, each with the result worked out in NumPy.

`NUMBERS`: kernels of a number n that store numbers to y. `TILES`: kernels of five tiles of 16 x 64
elements, one below the other in x, that store tiles to y. The reference beside each is independent:
NumPy or plain arithmetic on n and x.
"""

# ruff: noqa: SIM108, UP028  (statements are what is tested)
from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pto
from pto import isa
from tests.lang import python_helpers
from tests.lang.python_helpers import clamp, first_above

F32, I32, Number = pto.Global[pto.f32], pto.Global[pto.i32], pto.Scalar[pto.i32]
NUMBERS: dict[str, tuple[Any, Callable[[int], list[int]]]] = {}
TILES: dict[str, tuple[Any, Callable[[Any, int], Any]]] = {}
FACTOR = 3


def number(expected: Callable[[int], list[int]]) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        NUMBERS[function.__name__] = function, expected
        return function

    return add


def tiles(expected: Callable[[Any, int], Any]) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        TILES[function.__name__] = function, expected
        return function

    return add


def put(y: Any, at: Any, value: Any) -> None:
    """Store a number, of Python or of the program."""
    isa.store_scalar(
        y, at, pto.scalar(value, pto.i32) if isinstance(value, int) else value.to(pto.i32)
    )


# ---- numbers


@number(lambda n: [1 if n < 0 else 2 if n == 0 else 3])
def elif_chain(y: I32, n: Number) -> None:
    if n < 0:
        kind = 1
    elif n == 0:
        kind = 2
    else:
        kind = 3
    put(y, 0, kind)


@number(lambda n: [max(n, 4), min(n, 4), abs(n)])
def conditional_expressions(y: I32, n: Number) -> None:
    put(y, 0, n if n > 4 else 4)
    put(y, 1, min(n, 4))
    put(y, 2, -n if n < 0 else n)


@number(lambda n: [int(bool(n and n < 4)), 2 if n > 3 or not (n and FACTOR) else 1])
def numbers_as_conditions(y: I32, n: Number) -> None:
    put(y, 0, 1 if n and n < 4 else 0)
    if n > 3 or not (n and FACTOR):
        put(y, 1, 2)
    else:
        put(y, 1, 1)


@number(lambda n: [n + 5 if n > 3 else n, 7 if n > 3 else 1])
def branch_of_a_function_that_binds_variables_around_it(y: I32, n: Number) -> None:
    total, last = n, 1

    def add(k: Any) -> None:
        nonlocal total, last
        if k > 3:
            total = total + 5
            last = 7

    for i in pto.range(2):
        if i == 1:
            add(n)
    put(y, 0, total)
    put(y, 1, last)


@number(lambda n: [int(0 < n < 6 and n != 3), int(n < 0 or n > 5), int(not n)])
def joined_conditions(y: I32, n: Number) -> None:
    put(y, 0, 1 if 0 < n < 6 and n != 3 else 0)
    put(y, 1, 1 if n < 0 or n > 5 else 0)
    put(y, 2, 1 if not n else 0)


@number(lambda n: [sum(range(max(n, 0)))])
def sum_in_a_loop(y: I32, n: Number) -> None:
    total = 0
    for i in pto.range(n):
        total += i
    put(y, 0, total)


@number(lambda n: [sum(i * j for i in range(max(n, 0)) for j in range(i))])
def nested_loops(y: I32, n: Number) -> None:
    total = 0
    for i in pto.range(n):
        for j in pto.range(i):
            total = total + i * j
    put(y, 0, total)


@number(lambda n: [sum(i for i in range(max(n, 0)) if i % 3 == 1)])
def continue_in_a_loop(y: I32, n: Number) -> None:
    total = 0
    for i in pto.range(n):
        if i % 3 != 1:
            continue
        total += i
    put(y, 0, total)


@number(lambda n: [min(max(n, 0), 4), sum(range(min(max(n, 0), 4)))])
def break_in_a_loop(y: I32, n: Number) -> None:
    total, count = 0, 0
    for i in pto.range(n):
        if i == 4:
            break
        total += i
        count += 1
    put(y, 0, count)
    put(y, 1, total)


@number(lambda n: [1 if n > 3 else 7])
def for_else(y: I32, n: Number) -> None:
    found = 0
    for i in pto.range(n):
        if i == 3:
            found = 1
            break
    else:
        found = 7
    put(y, 0, found)


@number(lambda n: [math.isqrt(n - 1) + 1 if n > 0 else 0])
def while_loop(y: I32, n: Number) -> None:
    root = 0
    while root * root < n:
        root += 1
    put(y, 0, root)


def _collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


@number(lambda n: [_collatz(n)])
def branch_in_a_while(y: I32, n: Number) -> None:
    value, steps = n, 0
    while value > 1:
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    put(y, 0, steps)


@number(lambda n: [next(k for k in range(100) if k * 7 >= n)])
def endless_with_break(y: I32, n: Number) -> None:
    k = 0
    while True:
        if k * 7 >= n:
            break
        k += 1
    put(y, 0, k)


@number(lambda n: [math.gcd(n, 12)])
def greatest_common_divisor(y: I32, n: Number) -> None:
    a, b = n, pto.scalar(12, pto.i32)
    while b != 0:
        a, b = b, a % b
    put(y, 0, a if a > 0 else -a)


def _fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@number(lambda n: [_fibonacci(n)])
def swapped_numbers(y: I32, n: Number) -> None:
    a, b = 0, 1
    for _ in pto.range(n):
        a, b = b, a + b
    put(y, 0, a)


@number(lambda n: [5 if n > 6 else 9])
def early_return(y: I32, n: Number) -> None:
    if n > 6:
        put(y, 0, 5)
        return
    put(y, 0, 9)


@number(lambda n: [min(max(n, 2), 5), min(max(n + 1, 0), 3)])
def helper_with_returns(y: I32, n: Number) -> None:
    put(y, 0, clamp(n, 2, high=5))
    put(y, 1, clamp(n + 1, high=3))


@number(lambda n: [next((i for i in range(10) if i * i > n), 10)])
def return_from_a_loop(y: I32, n: Number) -> None:
    put(y, 0, first_above(n, 10))


@number(lambda n: [2 * n + 1, FACTOR * n])
def nested_functions(y: I32, n: Number) -> None:
    def line(k: Any, add: int = 0, *, times: int = 1) -> Any:
        return times * k + add if times != 0 else add

    put(y, 0, line(n, 1, times=2))
    put(y, 1, (lambda k: k * FACTOR)(n))


@number(lambda n: [sum(k for k in (1, 2, 4, 8) if n > k)])
def unrolled_with_branches(y: I32, n: Number) -> None:
    total = 0
    for k in (1, 2, 4, 8):
        if n > k:
            total += k
    put(y, 0, total)


@number(lambda n: [sum(range(min(max(n, 0), 4)))])
def unrolled_with_break(y: I32, n: Number) -> None:
    total = 0
    for k in range(4):
        if k >= n:
            break
        total += k
    put(y, 0, total)


@number(lambda n: [3 * n * n + 2 * n + 1])
def comprehension_of_constants(y: I32, n: Number) -> None:
    powers = [1, n, n * n]
    put(y, 0, sum(c * p for c, p in zip([c for c in (1, 2, 3) if c], powers, strict=True)))


@number(
    lambda n: [
        int(n in (1, 3, 5)),
        int(n not in {1, 3, 5}),
        int(n != 2 and n != 4),
        int(2 <= n < 7),
    ]
)
def membership(y: I32, n: Number) -> None:
    put(y, 0, 1 if n in (1, 3, 5) else 0)
    put(y, 1, 1 if n not in {1, 3, 5} else 0)
    put(y, 2, 1 if all(n != k for k in (2, 4)) else 0)
    put(y, 3, 1 if n in range(2, 7) else 0)


@number(lambda n: [n + 10 if n > 3 else 10 - n])
def constants_decide(y: I32, n: Number) -> None:
    debug, size = False, 10
    while size > 100:
        size //= 2
    if debug:
        put(y, 5, n.no_such_method())
    value = size + n if n > 3 else size - n
    put(y, 0, value)


@number(lambda n: [sum(i if i < 5 else 2 * i for i in range(0, max(n, 0), 2)), 1 if n > 3 else 0])
def branches_in_loops_in_branches(y: I32, n: Number) -> None:
    total = 0
    big = n > 3
    if n > 0:
        for i in pto.range(0, n, 2):
            if i < 5:
                total += i
            else:
                total += 2 * i
    put(y, 0, total)
    put(y, 1, 1 if big else 0)


@number(lambda n: [sum(0.5 * i for i in range(max(n, 0))) * 2])
def integer_that_becomes_a_float(y: I32, n: Number) -> None:
    total = 0
    for i in pto.range(n):
        total = total + i.to(pto.f32) * 0.5
    put(y, 0, total * 2.0)


@number(lambda n: [0 if n < 1 else 10 if n < 5 else 20])
def short_circuit(y: I32, n: Number) -> None:
    put(y, 7, 0)
    if n < 1:
        put(y, 0, 0)
    elif n >= 5 and isa.load_scalar(y, n * 0 + 7) == 0:
        put(y, 0, 20)
    else:
        put(y, 0, 10)


@number(lambda n: [2 * n - 2 if n > 0 else -1, 6, 2])
def value_of_the_last_iteration(y: I32, n: Number) -> None:
    last = -1
    for i in pto.range(n):
        last = i * 2
    put(y, 0, last)
    for i in pto.range(3):  # it surely runs
        only = i + 4
    put(y, 1, only)
    put(y, 2, i)


@number(lambda n: [5, 5, 0])
def variables_that_take_each_others_place(y: I32, n: Number) -> None:
    a, b, going, k = 7 * n, n * 0 + 5, n >= 0, 0
    for _ in pto.range(n + 1):
        a, b = b, a
        b = a
    while going:
        going = k < n
        k += 1
    put(y, 0, a)
    put(y, 1, b)
    put(y, 2, k - n - 1)


class Pair(NamedTuple):
    low: Any
    high: Any


@number(
    lambda n: [
        0 if n < 1 else max(range(n), key=lambda i: i * 5 % 7),
        max([i * 5 % 7 for i in range(n)] or [-1]),
    ]
)
def tuples_in_loops(y: I32, n: Number) -> None:
    best = Pair(0, -1)
    for i in pto.range(n):
        value = i * 5 % 7
        if value > best.high:
            best = Pair(i, value)
    put(y, 0, best.low)
    put(y, 1, best.high)


@number(lambda n: [2 * n, 5 if n > 3 else 0])
def function_that_binds_around_it(y: I32, n: Number) -> None:
    total, more = 0, 0

    def add(k: Any) -> None:
        nonlocal total
        total = total + k

    def choose() -> None:
        nonlocal more
        more = 5

    for _ in pto.range(n):
        add(2)
    if n > 3:
        choose()
    put(y, 0, total)
    put(y, 1, more)


@number(lambda n: [6 if n > 3 else 1, 6 if n > 3 else 0])
def expression_that_binds_around_it(y: I32, n: Number) -> None:
    a = 1

    def grown() -> Any:
        nonlocal a
        a += 5
        return a

    value = grown() if n > 3 else 0
    put(y, 0, a)
    put(y, 1, value)


@number(lambda n: [100 + n if n > 2 else n + 3])
def bare_return_from_a_loop(y: I32, n: Number) -> None:
    c = n
    for i in pto.range(n):
        if i == 2:
            put(y, 0, n + 100)
            return
    for j in pto.range(3):
        c = c + j
    put(y, 0, c)


@number(lambda n: [sum(k * k for k in range(99) if k * k < n), math.isqrt(max(n - 1, 0)) + (n > 0)])
def binding_in_the_condition_of_a_while(y: I32, n: Number) -> None:
    i, total = 0, 0
    while (square := i * i) < n:
        total += square
        i += 1
    put(y, 0, total)
    put(y, 1, i)


def _until(n: int, most: int) -> list[int]:
    i = 0
    while (double := 2 * i) < n:
        if double == most:
            return [double, i, 1]
        i += 1
    return [double, i, 2]


@number(lambda n: _until(n, 4))
def binding_in_a_while_with_break_and_else(y: I32, n: Number) -> None:
    i, end = 0, 1
    while (double := 2 * i) < n:
        if double == 4:
            break
        i += 1
    else:
        end = 2
    put(y, 0, double)
    put(y, 1, i)
    put(y, 2, end)


@number(lambda n: [(i := next(i for i in range(99) if 3 * i >= n)), 3 * i])
def variable_of_an_endless_loop(y: I32, n: Number) -> None:
    i = 0
    while True:
        triple = 3 * i
        if triple >= n:
            break
        i += 1
    put(y, 0, i)
    put(y, 1, triple)


@number(lambda n: [3 if n > 3 else 50, min(n, 4)])
def while_else(y: I32, n: Number) -> None:
    i, kind = 0, 3
    while i < n:
        i += 1
        if i == 4:
            break
    else:
        kind = 50
    put(y, 0, kind)
    put(y, 1, i)


@number(lambda n: [sum(all(i % j for j in range(2, i)) for i in range(n))])
def primes_by_for_else(y: I32, n: Number) -> None:
    count = 0
    for i in pto.range(n):
        for j in pto.range(2, i):
            if i % j == 0:
                break
        else:
            count += 1
    put(y, 0, count)


def _rotated(n: int) -> list[int]:
    row = [1, 2, 3]
    for i in range(n):
        row = [row[2], *row[:2]]
        if i % 2:
            row[:2] = row[1::-1]
    return row


@number(_rotated)
def rotated_in_nested_loops(y: I32, n: Number) -> None:
    a, b, c = 1, 2, 3
    for i in pto.range(n):
        a, b, c = c, a, b
        for _ in pto.range(i):
            a, b = b, a
    put(y, 0, a)
    put(y, 1, b)
    put(y, 2, c)


@number(
    lambda n: [(400 if n > 1 else 500) if n < 3 else 300 if n < 6 else 100 + 100 * (n % 2 == 0)]
)
def early_returns_from_nested_branches(y: I32, n: Number) -> None:
    if n > 2:
        if n > 5:
            if n % 2 == 1:
                put(y, 0, 100)
                return
            put(y, 0, 200)
            return
        put(y, 0, 300)
        return
    for i in pto.range(n):
        if i == 1:
            put(y, 0, 400)
            return
    put(y, 0, 500)


@number(lambda n: [3 * n])
def function_in_a_function_that_binds_around_both(y: I32, n: Number) -> None:
    count = 0

    def outer() -> None:
        nonlocal count

        def inner() -> None:
            nonlocal count
            count = count + 2

        inner()
        count = count + 1

    for _ in pto.range(n):
        outer()
    put(y, 0, count)


@number(lambda n: [n // 3, n % 3, abs(n - 4), n**5])
def functions_of_python(y: I32, n: Number) -> None:
    quotient, rest = divmod(n, 3)
    put(y, 0, quotient)
    put(y, 1, rest)
    put(y, 2, abs(n - 4))
    put(y, 3, pow(n, 5))


def _scanned(n: int) -> list[int]:
    total = 0
    for i in range(n):
        total += sum(i * j for j in range(i + 1) if (i + j) % 2 == 0)
        total += 1000 * (i == n - 1)
        if total > 3000:
            break
    return [total]


@number(_scanned)
def exits_of_two_loops(y: I32, n: Number) -> None:
    total = 0
    for i in pto.range(n):
        for j in pto.range(n):
            if j > i:
                break
            if (i + j) % 2 != 0:
                continue
            total += i * j
        else:
            total += 1000
        if total > 3000:
            break
    put(y, 0, total)


@number(lambda n: [n - 1, n + 1, 3, n - 1, n + 1])
def targets_of_every_form(y: I32, n: Number) -> None:
    a = b = n
    a += 1
    b -= 1
    a, (b, c) = b, (a, 3)
    [d, *e] = [a, b, c]
    for i, value in enumerate([a, b, c, d, e[0]]):
        put(y, i, value)


@number(lambda n: [6 + n, n + 1, n + 5, 3 * n, n + 1])
def functions_and_contexts_of_python(y: I32, n: Number) -> None:
    def every(*given: Any, **named: Any) -> Any:
        return sum(given) + named["last"]

    def repeated() -> Any:
        yield from (n for _ in range(3))

    put(y, 0, every(*(n, 1, 2), last=3))
    try:
        step = {"a": 1}["b"]
    except KeyError:
        step = 1
    put(y, 1, n + step)
    with contextlib.nullcontext(5) as five:
        put(y, 2, n + five)
    put(y, 3, sum(repeated()))
    it = iter([1, 2])
    put(y, 4, n + next(it))


# ---- generators


def steps(n: Any) -> Any:
    for i in pto.range(n):
        yield i


class Blocks:
    """An iterable whose class yields, with methods that do."""

    def __init__(self, n: Any) -> None:
        self.n = n

    def __iter__(self) -> Any:
        yield from self.pairs(self.n)

    @staticmethod
    def pairs(n: Any) -> Any:
        for i in pto.range(n):
            for j in range(2):
                yield i, j


def halves(n: Any, depth: int) -> Any:
    """The leaves of a tree; it calls itself as often as Python knows."""
    if depth == 0:
        yield n
        return
    for i in pto.range(2):
        yield from halves(2 * n + i, depth - 1)


@number(lambda n: [n, n * (n - 1) // 2, 2 * n, n * (n - 1) + n])
def loops_over_generators(y: I32, n: Number) -> None:
    count = total = inner = 0
    for i in steps(n):
        count = count + 1
        total += i
    for _ in Blocks(n):
        inner = inner + 1
    put(y, 0, count)
    put(y, 1, total)
    put(y, 2, inner)
    inner = 0
    for i, j in Blocks.pairs(n):
        inner += i + j
    put(y, 3, inner)


@number(lambda n: [sum(8 * n + k for k in range(8)), 8])
def a_generator_that_calls_itself(y: I32, n: Number) -> None:
    total = count = 0
    for leaf in halves(n, 3):
        total = total + leaf
        count = count + 1
    put(y, 0, total)
    put(y, 1, count)


def _left(n: int) -> list[int]:
    total = 0
    for i in range(n):
        if i == 1:
            continue
        if i == 3:
            return [total, 1, 7 if n > 2 else 99]
        total += 10 + i
    return [total, 2, 7 if n > 2 else 99]


@number(_left)
def exits_of_a_loop_over_a_generator(y: I32, n: Number) -> None:
    def first(limit: int) -> Any:
        for i in steps(n):
            for j in steps(n):
                if i * j == limit:
                    return 7
        return 99

    total, way = 0, 1
    for i in steps(n):
        if i == 1:
            continue
        if i == 3:
            break
        total += 10 + i
    else:
        way = 2
    put(y, 0, total)
    put(y, 1, way)
    put(y, 2, first(2))


def _swapped(n: int) -> list[int]:
    total, step = 0, 1
    for _ in range(n):
        total += 1 + (total + step)
        step += 1
        total += 5
    return [total, step]


@number(_swapped)
def variables_that_a_generator_shares(y: I32, n: Number) -> None:
    total, step = n * 0, 1

    def counted() -> Any:
        nonlocal total
        for _ in pto.range(n):
            total += 1
            yield total + step - 1

    for value in counted():
        total += value
        step = step + 1
        total += 5
    put(y, 0, total)
    put(y, 1, step)


@number(lambda n: [sum(range(0, n, 2)), sum(i for i in range(0, n, 2) if i < 3), 1 if n > 3 else 2])
def generators_with_branches_and_returns(y: I32, n: Number) -> None:
    def even(stop: Any) -> Any:
        i = 0
        while True:
            if i >= stop:
                return
            if i % 2 == 0:
                yield i
            i = i + 1

    def either(k: Any) -> Any:
        if k > 3:
            yield 1
        else:
            yield 2

    total = small = 0
    for i in even(n):
        total = total + i
    for i in even(n):
        if i >= 3:
            break
        small = small + i
    put(y, 0, total)
    put(y, 1, small)
    only = 0
    for value in either(n):
        only = value
    put(y, 2, only)


@number(lambda n: [3 * n, 1, 21, 60])
def generators_that_python_resumes(y: I32, n: Number) -> None:
    ended: list[int] = []

    def three() -> Any:
        try:
            for i in range(3):
                yield i
        finally:
            ended.append(1)

    put(y, 0, sum(n for _ in three()))
    put(y, 1, len(ended))
    numbers = iter(three())
    first = next(numbers) + 1
    for i in numbers:
        first = first * 10 + i
    put(y, 2, first - 91)
    for i, j in zip(three(), (10, 20, 30), strict=True):
        first = 0 if i == 0 else first
        first = first + j
    put(y, 3, first)


# ---- tiles


def _block(x: Any, i: int) -> Any:
    return x[16 * i : 16 * i + 16]


def _sum(x: Any, n: int) -> Any:
    return sum((_block(x, i) for i in range(n)), np.zeros((16, 64), np.float32))


@tiles(lambda x, n: _sum(x, n))
def accumulate(x: F32, y: F32, n: Number) -> None:
    acc = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        acc = acc + pto.load(x[i * 16 :, :], 16, 64)
    pto.store(y, acc)


def windows(x: Any, n: Any) -> Any:
    for i in pto.range(n):
        yield pto.load(x[i * 16 :, :], 16, 64), i


@tiles(lambda x, n: _sum(x, n) + (_block(x, n - 1) if n else 0))
def tiles_of_a_generator(x: F32, y: F32, n: Number) -> None:
    acc, last = pto.zeros(16, 64, pto.f32), pto.zeros(16, 64, pto.f32)
    for t, _ in windows(x, n):
        acc = acc + t
        last = t
    pto.store(y, acc + last)


@tiles(lambda x, n: _block(x, (1, 0)[n % 2]))
def tiles_swapped_in_the_body_of_a_generator(x: F32, y: F32, n: Number) -> None:
    a, b = pto.load(x[0:16, :], 16, 64), pto.load(x[16:32, :], 16, 64)
    for i in steps(n + 1):
        a, b = b, a
        if i > 20:
            break
    pto.store(y, a)


@tiles(lambda x, n: _sum(x, n) * np.float32(0.5 if n > 2 else 2.0))
def tile_in_a_branch(x: F32, y: F32, n: Number) -> None:
    acc = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        acc += pto.load(x[i * 16 :, :], 16, 64)
    if n > 2:
        acc = acc * 0.5
    else:
        acc = acc * 2.0
    pto.store(y, acc)


@tiles(lambda x, n: _block(x, 1) if n > 2 else _block(x, 3))
def load_in_both_branches(x: F32, y: F32, n: Number) -> None:
    if n > 2:
        t = pto.load(x[16:32, :], 16, 64)
    else:
        t = pto.load(x[48:64, :], 16, 64)
    pto.store(y, t)


@tiles(
    lambda x, n: max((_block(x, i) for i in range(n)), key=lambda t: t[0, 0], default=_block(x, 0))
)
def best_tile(x: F32, y: F32, n: Number) -> None:
    best = pto.load(x[0:16, :], 16, 64)
    for i in pto.range(1, n):
        t = pto.load(x[i * 16 :, :], 16, 64)
        best = t if isa.tgetval(t, 0) > isa.tgetval(best, 0) else best
    pto.store(y, best)


@tiles(lambda x, n: _block(x, n % 2))
def swapped_tiles(x: F32, y: F32, n: Number) -> None:
    a, b = pto.load(x[0:16, :], 16, 64), pto.load(x[16:32, :], 16, 64)
    for _ in pto.range(n):
        a, b = b, a
    pto.store(y, a)


@tiles(lambda x, n: _block(x, 0) + _block(x, 0) * np.float32(2.0**n))
def old_value_still_needed(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[0:16, :], 16, 64)
    first = t
    for _ in pto.range(n):
        t = t + t
    pto.store(y, first + t)


@tiles(
    lambda x, n: _block(x, 0) + sum(_block(x, i) - _block(x, i - 1) for i in range(1, max(n, 1)))
)
def previous_tile(x: F32, y: F32, n: Number) -> None:
    previous = pto.load(x[0:16, :], 16, 64)
    acc = previous * 1.0
    for i in pto.range(1, n):
        t = pto.load(x[i * 16 :, :], 16, 64)
        acc = acc + (t - previous)
        previous = t
    pto.store(y, acc)


@tiles(lambda x, n: np.repeat(_sum(x, n).max(axis=1, keepdims=True), 64, axis=1))
def columns_in_loops(x: F32, y: F32, n: Number) -> None:
    total = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        t = pto.load(x[i * 16 :, :], 16, 64)
        total = total + t
    top = total.max(axis=1)
    pto.store(y, total * 0.0 + top)


def _online(x: Any, n: int) -> Any:
    e = np.concatenate([_block(x, i) for i in range(max(n, 1))], axis=1)
    return np.repeat(e.max(axis=1, keepdims=True), 64, axis=1)


@tiles(_online)
def running_maximum(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[0:16, :], 16, 64)
    m = t.max(axis=1)
    for i in pto.range(1, n):
        m = pto.max(m, pto.load(x[i * 16 :, :], 16, 64).max(axis=1))
    pto.store(y, t * 0.0 + m)


@tiles(lambda x, n: _block(x, min(n, 3)))
def early_return_of_tiles(x: F32, y: F32, n: Number) -> None:
    pto.store(y, python_helpers.pick(x, n))


@tiles(lambda x, n: _block(x, 0) * np.float32(2.0 ** (3 if n > 4 else 1)))
def while_with_tiles(x: F32, y: F32, n: Number) -> None:
    t, k = pto.load(x[0:16, :], 16, 64), 0
    last = 3 if n > 4 else 1
    while k < last:
        t = t + t
        k += 1
    pto.store(y, t)


@tiles(lambda x, n: sum((_block(x, i) for i in range(min(n, 2))), np.zeros((16, 64), np.float32)))
def break_with_tiles(x: F32, y: F32, n: Number) -> None:
    acc = pto.zeros(16, 64, pto.f32)
    for i in pto.range(5):
        if i >= n or i == 2:
            break
        acc = acc + pto.load(x[i * 16 :, :], 16, 64)
    pto.store(y, acc)


@tiles(lambda x, n: _block(x, 0) * np.float32(4.0) + (_block(x, 1) if n > 1 else _block(x, 2)))
def tile_helpers(x: F32, y: F32, n: Number) -> None:
    t = python_helpers.doubled(pto.load(x[0:16, :], 16, 64), times=2)
    u = pto.load(x[16:32, :], 16, 64) if n > 1 else pto.load(x[32:48, :], 16, 64)
    pto.store(y, t + u)


def _nested(x: Any, n: int) -> Any:
    total = np.zeros((16, 64), np.float32)
    for i in range(n):
        row = _block(x, i)
        for j in range(i):
            row = row * np.float32(0.5) if j % 2 == 0 else row + _block(x, j)
        total = total + row
    return total


@tiles(_nested)
def rebinding_everywhere(x: F32, y: F32, n: Number) -> None:
    total = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        row = pto.load(x[i * 16 :, :], 16, 64)
        for j in pto.range(i):
            if j % 2 == 0:
                row = row * 0.5
            else:
                row = row + pto.load(x[j * 16 :, :], 16, 64)
        total = total + row
    pto.store(y, total)


def _state(x: Any, n: int) -> Any:
    low = high = _block(x, 0)
    for i in range(1, n):
        low, high = np.minimum(low, _block(x, i)), np.maximum(high, _block(x, i))
    return high - low


@tiles(_state)
def tuples_of_tiles(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[0:16, :], 16, 64)
    state = (t, t)
    for i in pto.range(1, n):
        t = pto.load(x[i * 16 :, :], 16, 64)
        state = (pto.min(state[0], t), pto.max(state[1], t))
    pto.store(y, state[1] - state[0])


@tiles(lambda x, n: x[n : n + 16] + 1)
def rows_that_only_the_run_knows(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[n:, :], 16, 64)
    for _ in pto.range(1):
        t = t + 1.0
    pto.store(y, t)


def _changed(x: Any, n: int) -> Any:
    t = _block(x, 0).copy()
    t[:8] += n * 1.0
    t[-8:, :32] *= 2.0
    return t


@tiles(_changed)
def windows_changed_in_place(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[0:16, :], 16, 64)
    for _ in pto.range(n):
        t[0:8, :] += 1.0
    t[-8:, 0:32] *= 2.0
    pto.store(y, t)


def _both_names(x: Any, n: int) -> Any:
    t = _block(x, 0).copy()
    other = t
    for _ in range(n):
        other += 1.0
    return t + np.float32(2) * other


@tiles(_both_names)
def two_names_of_a_tile(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[0:16, :], 16, 64)
    other = t
    for _ in pto.range(n):
        other += 1.0
    pto.store(y, t + 2.0 * other)


@tiles(lambda x, n: _block(x, 0) * np.float32(3) + _block(x, 0) + np.float32(2 * n))
def second_name_that_is_bound_again(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[0:16, :], 16, 64)
    other = t
    for _ in pto.range(n):
        other = other + 1.0
        other += 1.0
    pto.store(y, t * 3.0 + other)


def _turned(x: Any, n: int) -> Any:
    a, b, c = (_block(x, i) for i in range(3))
    for i in range(n):
        a, b, c = (a, c, b) if i % 2 else (c, a, b)
    return a - np.float32(2) * b + np.float32(3) * c


@tiles(_turned)
def rotated_tiles(x: F32, y: F32, n: Number) -> None:
    a, b, c = (pto.load(x[16 * i :, :], 16, 64) for i in range(3))
    for i in pto.range(n):
        a, b, c = c, a, b
        if i % 2 != 0:
            a, b = b, a
    pto.store(y, a - 2.0 * b + 3.0 * c)


@tiles(_sum)
def function_that_adds_to_a_tile_around_it(x: F32, y: F32, n: Number) -> None:
    total = pto.zeros(16, 64, pto.f32)

    def add(t: Any) -> None:
        nonlocal total
        total = total + t

    for i in pto.range(n):
        add(pto.load(x[i * 16 :, :], 16, 64))
    pto.store(y, total)


def _two_terms(x: Any, n: int) -> Any:
    row = [_block(x, 0), _block(x, 1)]
    for _ in range(n):
        row.append(row[-2] + row[-1])
    return row[n]


@tiles(_two_terms)
def list_of_tiles_that_is_bound_again(x: F32, y: F32, n: Number) -> None:
    last = [pto.load(x[0:16, :], 16, 64), pto.load(x[16:32, :], 16, 64)]
    for _ in pto.range(n):
        last = [last[1], last[0] + last[1]]
    pto.store(y, last[0])


@tiles(lambda x, n: _block(x, 0) + np.float32(2) if n > 2 else (_block(x, 0) + np.float32(n)) * 2)
def return_of_a_tile_from_a_loop(x: F32, y: F32, n: Number) -> None:
    def grown(t: Any, count: Any) -> Any:
        for j in pto.range(count):
            if j == 2:
                return t
            t = t + 1.0
        return t * 2.0

    pto.store(y, grown(pto.load(x[0:16, :], 16, 64), n))


@tiles(lambda x, n: _block(x, max(n - 1, 0)))
def tile_of_an_endless_loop(x: F32, y: F32, n: Number) -> None:
    i = 0
    while True:
        t = pto.load(x[i * 16 :, :], 16, 64)
        i += 1
        if i >= n:
            break
    pto.store(y, t)
