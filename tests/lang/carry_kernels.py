"""Kernels of `python_kernels` in the deprecated form, with `pto.If` and `pto.carry`."""

from __future__ import annotations

from typing import Any

import pto

F32, I32, Number = pto.Global[pto.f32], pto.Global[pto.i32], pto.Scalar[pto.i32]
CARRIED: dict[str, Any] = {}


def carried(function: Any) -> Any:
    CARRIED[function.__name__] = function
    return function


def put(y: Any, at: Any, value: Any) -> None:
    pto.store_scalar(y, at, value.to(pto.i32))


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
        pto.store_scalar(y, 0, pto.scalar(5, pto.i32))
    with pto.Else():
        pto.store_scalar(y, 0, pto.scalar(9, pto.i32))


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
        with pto.If(pto.tgetval(t, 0) > pto.tgetval(best, 0)):
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
