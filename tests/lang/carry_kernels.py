"""Kernels of `python_kernels` in the deprecated form, with `pto.If` and `pto.carry`."""

from __future__ import annotations

from typing import Any

import pto
from pto import isa

F32, I32, Number = pto.Global[pto.f32], pto.Global[pto.i32], pto.Scalar[pto.i32]
CARRIED: dict[str, Any] = {}


def carried(function: Any) -> Any:
    CARRIED[function.__name__] = function
    return function


def put(y: Any, at: Any, value: Any) -> None:
    isa.store_scalar(y, at, value.to(pto.i32))


@carried
def elif_chain(y: I32, n: Number) -> None:
    kind = pto.carry(3)
    with pto.If(n < 0):
        kind.set(1)
    with pto.Else(), pto.If(n == 0):
        kind.set(2)
    put(y, 0, kind.value)


@carried
def sum_in_a_loop(y: I32, n: Number) -> None:
    total = pto.carry(0)
    for i in pto.range(n):
        total += i
    put(y, 0, total.value)


@carried
def nested_loops(y: I32, n: Number) -> None:
    total = pto.carry(0)
    for i in pto.range(n):
        for j in pto.range(i):
            total.set(total.value + i * j)
    put(y, 0, total.value)


@carried
def continue_in_a_loop(y: I32, n: Number) -> None:
    total = pto.carry(0)
    for i in pto.range(n):
        with pto.If(i % 3 == 1):
            total += i
    put(y, 0, total.value)


@carried
def swapped_numbers(y: I32, n: Number) -> None:
    a, b = pto.carry(0), pto.carry(1)
    for _ in pto.range(n):
        old = a.value
        a.set(b.value)
        b.set(old + b.value)
    put(y, 0, a.value)


@carried
def early_return(y: I32, n: Number) -> None:
    with pto.If(n > 6):
        isa.store_scalar(y, 0, pto.scalar(5, pto.i32))
    with pto.Else():
        isa.store_scalar(y, 0, pto.scalar(9, pto.i32))


@carried
def unrolled_with_branches(y: I32, n: Number) -> None:
    total = pto.carry(0)
    for k in (1, 2, 4, 8):
        with pto.If(n > k):
            total += k
    put(y, 0, total.value)


@carried
def accumulate(x: F32, y: F32, n: Number) -> None:
    acc = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        acc += pto.load(x[i * 16 :, :], 16, 64)
    pto.store(y, acc)


@carried
def tile_in_a_branch(x: F32, y: F32, n: Number) -> None:
    acc = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        acc += pto.load(x[i * 16 :, :], 16, 64)
    with pto.If(n > 2):
        acc *= 0.5
    with pto.Else():
        acc *= 2.0
    pto.store(y, acc)


@carried
def best_tile(x: F32, y: F32, n: Number) -> None:
    best = pto.load(x[0:16, :], 16, 64)
    for i in pto.range(1, n):
        t = pto.load(x[i * 16 :, :], 16, 64)
        with pto.If(isa.tgetval(t, 0) > isa.tgetval(best, 0)):
            best[:] = t
    pto.store(y, best)


@carried
def running_maximum(x: F32, y: F32, n: Number) -> None:
    t = pto.load(x[0:16, :], 16, 64)
    m = t.max(axis=1)
    for i in pto.range(1, n):
        m[:] = pto.max(m, pto.load(x[i * 16 :, :], 16, 64).max(axis=1))
    pto.store(y, t * 0.0 + m)


@carried
def rebinding_everywhere(x: F32, y: F32, n: Number) -> None:
    total = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        row = pto.load(x[i * 16 :, :], 16, 64)
        for j in pto.range(i):
            with pto.If(j % 2 == 0):
                row *= 0.5
            with pto.Else():
                row += pto.load(x[j * 16 :, :], 16, 64)
        total += row
    pto.store(y, total)


@carried
def conditional_expressions(y: I32, n: Number) -> None:
    most, least, size = pto.carry(n), pto.carry(n), pto.carry(n)
    with pto.If(n <= 4):
        most.set(pto.scalar(4, pto.i32))
    with pto.If(n > 4):
        least.set(pto.scalar(4, pto.i32))
    with pto.If(n < 0):
        size.set(-n)
    put(y, 0, most.value)
    put(y, 1, least.value)
    put(y, 2, size.value)


@carried
def joined_conditions(y: I32, n: Number) -> None:
    inside, outside, none = (pto.carry(0) for _ in range(3))
    with pto.If((n > 0) & (n < 6) & (n != 3)):
        inside.set(1)
    with pto.If((n < 0) | (n > 5)):
        outside.set(1)
    with pto.If(n == 0):
        none.set(1)
    put(y, 0, inside.value)
    put(y, 1, outside.value)
    put(y, 2, none.value)


@carried
def branches_in_loops_in_branches(y: I32, n: Number) -> None:
    total, big = pto.carry(0), pto.carry(0)
    with pto.If(n > 0):
        for i in pto.range(0, n, 2):
            with pto.If(i < 5):
                total += i
            with pto.Else():
                total += 2 * i
    with pto.If(n > 3):
        big.set(1)
    put(y, 0, total.value)
    put(y, 1, big.value)


@carried
def integer_that_becomes_a_float(y: I32, n: Number) -> None:
    total = pto.carry(0.0)
    for i in pto.range(n):
        total += i.to(pto.f32) * 0.5
    put(y, 0, total.value * 2.0)


@carried
def value_of_the_last_iteration(y: I32, n: Number) -> None:
    last, only, counter = pto.carry(-1), pto.carry(0), pto.carry(0)
    for i in pto.range(n):
        last.set(i * 2)
    put(y, 0, last.value)
    for i in pto.range(3):
        only.set(i + 4)
        counter.set(i)
    put(y, 1, only.value)
    put(y, 2, counter.value)


@carried
def tuples_in_loops(y: I32, n: Number) -> None:
    low, high = pto.carry(0), pto.carry(-1)
    for i in pto.range(n):
        value = i * 5 % 7
        with pto.If(value > high.value):
            low.set(i)
            high.set(value)
    put(y, 0, low.value)
    put(y, 1, high.value)


@carried
def function_that_binds_around_it(y: I32, n: Number) -> None:
    total, more = pto.carry(0), pto.carry(0)
    for _ in pto.range(n):
        total += 2
    with pto.If(n > 3):
        more.set(5)
    put(y, 0, total.value)
    put(y, 1, more.value)


@carried
def rotated_in_nested_loops(y: I32, n: Number) -> None:
    a, b, c = pto.carry(1), pto.carry(2), pto.carry(3)
    for i in pto.range(n):
        first, second, third = a.value, b.value, c.value
        a.set(third)
        b.set(first)
        c.set(second)
        for _ in pto.range(i):
            first, second = a.value, b.value
            a.set(second)
            b.set(first)
    put(y, 0, a.value)
    put(y, 1, b.value)
    put(y, 2, c.value)


@carried
def load_in_both_branches(x: F32, y: F32, n: Number) -> None:
    t = pto.tile(16, 64, pto.f32)
    with pto.If(n > 2):
        isa.tload(t, x[16:32, :])
    with pto.Else():
        isa.tload(t, x[48:64, :])
    pto.store(y, t)


@carried
def swapped_tiles(x: F32, y: F32, n: Number) -> None:
    a, b = pto.load(x[0:16, :], 16, 64), pto.load(x[16:32, :], 16, 64)
    kept = pto.tile(16, 64, pto.f32)
    for _ in pto.range(n):
        kept[:] = a
        a[:] = b
        b[:] = kept
    pto.store(y, a)


@carried
def old_value_still_needed(x: F32, y: F32, n: Number) -> None:
    first, t = pto.load(x[0:16, :], 16, 64), pto.tile(16, 64, pto.f32)
    t[:] = first
    for _ in pto.range(n):
        t += t
    pto.store(y, first + t)


@carried
def previous_tile(x: F32, y: F32, n: Number) -> None:
    previous = pto.load(x[0:16, :], 16, 64)
    acc = previous * 1.0
    for i in pto.range(1, n):
        t = pto.load(x[i * 16 :, :], 16, 64)
        acc += t - previous
        previous[:] = t
    pto.store(y, acc)


@carried
def columns_in_loops(x: F32, y: F32, n: Number) -> None:
    total = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        total += pto.load(x[i * 16 :, :], 16, 64)
    pto.store(y, total * 0.0 + total.max(axis=1))


@carried
def tuples_of_tiles(x: F32, y: F32, n: Number) -> None:
    low, high = pto.load(x[0:16, :], 16, 64), pto.tile(16, 64, pto.f32)
    high[:] = low
    for i in pto.range(1, n):
        t = pto.load(x[i * 16 :, :], 16, 64)
        low[:] = pto.min(low, t)
        high[:] = pto.max(high, t)
    pto.store(y, high - low)


@carried
def function_that_adds_to_a_tile_around_it(x: F32, y: F32, n: Number) -> None:
    total = pto.zeros(16, 64, pto.f32)
    for i in pto.range(n):
        total += pto.load(x[i * 16 :, :], 16, 64)
    pto.store(y, total)


@carried
def list_of_tiles_that_is_bound_again(x: F32, y: F32, n: Number) -> None:
    a, b = pto.load(x[0:16, :], 16, 64), pto.load(x[16:32, :], 16, 64)
    for _ in pto.range(n):
        following = a + b
        a[:] = b
        b[:] = following
    pto.store(y, a)
