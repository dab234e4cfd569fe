"""Truths as numbers, conversions of numbers, and counters of loops: the answers are Python's."""

from __future__ import annotations

import linecache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto import isa

I32 = pto.Global[pto.i32]
ENGINES = ("reference", "jit")
TRUTHS = """
sum([n > 1, n > 2, n > 3])
sum(i * (n > i) for i in range(5))
max(n > 2, n > 4)
min(n > 2, n > 4)
pto.max(n > 2, n > 3)
(n > 2) > (n > 4)
(n > 2) >= (n > 4)
(n > 2) < True
(n > 2) == (n > 4)
(n > 2) == 1
(n > 2) == 2
(n > 2) != n
(n > 2) in (0, 1)
n in (True, 2)
(n > 2) + 1
1 - (n > 2)
(n > 2) - 1
(n > 2) + (n > 3)
(n > 2) - (n > 1)
True + (n > 2)
n + True
n * False
(n > 2) * n
n * (n > 2)
10 * (n > 2) + 20 * (n <= 2)
(n > 2) // 1
7 % ((n > 2) + 1)
pto.cdiv(n > 2, 2)
divmod(n > 2, 2)[1]
(n > 2) ** 2
(n > 2) << 3
(n > 2) >> 1
-(n > 2)
abs(n > 2)
(n > 2) & (n > 1)
(n > 2) & n
(n > 2) & 3
(n > 2) | 4
(n > 2) ^ True
(n > 2) ^ (n > 7)
bool(n) + 1
any([n > 2, n > 5]) + all([n > 2, n > 5])
not (n > 2)
(n > 2) if n > 1 else (n > 5)
pto.select(n > 2, n > 1, n > 9)
pto.select(n > 2, n > 1, n)
pto.select(n > 1, n, 6)
pto.select(n, 5, 6)
""".strip().splitlines()


class Python:
    """The functions of pto on numbers of Python."""

    max = max

    @staticmethod
    def cdiv(a: int, b: int) -> int:
        return -(-a // b)

    @staticmethod
    def select(condition: int, a: int, b: int) -> int:
        return a if condition else b


def kernel_of(expressions: list[str], types: str = "n: pto.Scalar[pto.i32]") -> Any:
    """A kernel that stores the value of each expression."""
    lines = [f"def k(y: I32, {types}):"]
    for at, each in enumerate(expressions):
        stored = "v.to(pto.i32) if hasattr(v, 'to') else v"
        lines += [f"    v = {each}", f"    isa.store_scalar(y, {at}, {stored})"]
    text, names = "\n".join(lines) + "\n", {"pto": pto, "isa": isa, "I32": I32}
    file = f"<{expressions[0]}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), names)
    return pto.kernel(names["k"])


@pytest.mark.parametrize("engine", ENGINES)
def test_truths_count_as_zero_and_one(engine: str):
    kernel = kernel_of(TRUTHS)
    for n in (0, 1, 2, 3, 4, 5, 300, -3):
        wanted = [int(eval(each, {"n": n, "pto": Python})) for each in TRUTHS]
        y = np.full(len(TRUTHS), -99, np.int32)
        kernel.run(y, n, engine=engine)
        got = dict(zip(TRUTHS, y.tolist(), strict=True))
        assert got == dict(zip(TRUTHS, wanted, strict=True)), n


# Conversions, and the number that NumPy's astype gives.
CONVERSIONS = {
    "n - n.to(pto.i8).to(pto.i32)": lambda n: n - n.astype(np.int8),
    "n.to(pto.u8).to(pto.i32) - n": lambda n: n.astype(np.uint8) - n,
    "(n + 1).to(pto.i16).to(pto.i32) - n": lambda n: (n + 1).astype(np.int16) - n,
    "(n.to(pto.u32) // 2).to(pto.i32)": lambda n: (n.astype(np.uint32) // 2).astype(np.int32),
    "n.to(pto.i1)": lambda n: n.astype(bool),
    "(n > 2).to(pto.i8)": lambda n: (n > 2).astype(np.int8),
    "(n > 2).to(pto.i64)": lambda n: (n > 2).astype(np.int64),
    "(n > 2).to(pto.f32).to(pto.i32)": lambda n: (n > 2).astype(np.float32),
    "n.to(pto.f32).to(pto.i1)": lambda n: n.astype(bool),
    "(n.to(pto.f32) * 0.25).to(pto.i32)": lambda n: np.trunc(n * 0.25),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_conversions_are_those_of_numpy(engine: str):
    kernel = kernel_of(list(CONVERSIONS))
    for n in (0, 1, 2, 3, 127, 128, 255, 300, 40000, -3, -129):
        wanted = [int(each(np.array(n, np.int32))) for each in CONVERSIONS.values()]
        y = np.full(len(CONVERSIONS), -99, np.int32)
        kernel.run(y, n, engine=engine)
        got = dict(zip(CONVERSIONS, y.tolist(), strict=True))
        assert got == dict(zip(CONVERSIONS, wanted, strict=True)), n


@pytest.mark.parametrize("engine", ENGINES)
def test_counters_hold_numbers_of_every_type(engine: str):
    @pto.kernel
    def k(
        y: I32,
        a: pto.Scalar[pto.u32],
        b: pto.Scalar[pto.i8],
        c: pto.Scalar[pto.u8],
        d: pto.Scalar[pto.i32],
    ) -> None:
        total = 0
        for i in pto.range(a - 3, a):
            total += i
        isa.store_scalar(y, 0, (total % 1000).to(pto.i32))
        count = 0
        for _ in pto.range(0, b, 16):
            count += 1
        isa.store_scalar(y, 1, count.to(pto.i32))
        count = 0
        for _ in pto.range(c):
            count += 1
        isa.store_scalar(y, 2, count.to(pto.i32))
        count = 0
        for _ in pto.range(d - 20, d, 16):
            if count > 1000:
                break
            count += 1
        isa.store_scalar(y, 3, count.to(pto.i32))
        count = 0
        for _ in pto.range(b > 3):
            count += 1
        isa.store_scalar(y, 4, count.to(pto.i32))
        isa.store_scalar(y, c - 195, c.to(pto.i32))
        isa.store_scalar(y, 6 + (b > 3), b > 3)

    y = np.zeros(8, np.int32)
    k.run(y, 2**31 + 5, 127, 200, 2**31 - 1, engine=engine)
    assert y.tolist() == [sum(range(2**31 + 2, 2**31 + 5)) % 1000, 8, 200, 2, 1, 200, 0, 1]


# ---- parameters


def stored(annotation: Any, value: object) -> object:
    def k(y: Any, n: Any) -> None:
        isa.store_scalar(y, 0, n)

    k.__annotations__ = {"y": pto.Global, "n": pto.Scalar[annotation]}
    y = np.zeros(4, annotation.numpy)
    for _ in range(2):  # the second call takes the fast path
        pto.kernel(k)(y, value)
    return y[0].item()


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pto.i8, -128, 127),
        (pto.i16, -32768, 32767),
        (pto.i32, -(2**31), 2**31 - 1),
        (pto.i64, -(2**63), 2**63 - 1),
        (pto.u8, 0, 255),
        (pto.u32, 0, 2**32 - 1),
    ],
)
def test_a_number_is_in_the_range_of_its_type(kind: Any, low: int, high: int):
    for value in (low, high):
        assert stored(kind, value) == value
    for value in (low - 1, high + 1):
        with pytest.raises(pto.PtoError, match="PTO-U033"):
            stored(kind, value)


def test_a_number_out_of_range_is_refused_on_the_fast_path_too():
    @pto.kernel
    def k(y: I32, n: pto.Scalar[pto.i32]) -> None:
        isa.store_scalar(y, 0, n)

    y = np.zeros(4, np.int32)
    for _ in range(3):
        k(y, 5)
    for value in (2**31, 2**32 - 1, np.uint32(2**31), np.int64(-(2**31) - 1), 3e9):
        with pytest.raises(pto.PtoError, match="PTO-U033"):
            k(y, value)
    assert y[0] == 5


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (np.float32, np.float32),
        (np.dtype(np.int8), np.int8),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        ("f16", np.float16),
        ("float32", np.float32),
        (pto.f32, np.float32),
    ],
)
def test_an_annotation_may_name_a_type_of_numpy(given: Any, kind: Any):
    def k(x: Any, y: Any) -> None:
        pto.store(y, pto.load(x, 16, 64))

    for annotation in (pto.Global[given], pto.Global[given, "m", "n"]):
        k.__annotations__ = {"x": annotation, "y": pto.Global}
        x = np.arange(16 * 64).reshape(16, 64).astype(kind)
        y = np.zeros_like(x)
        pto.kernel(k)(x, y)
        assert np.array_equal(x, y)
        for other in {np.float32, np.float16, np.int8, np.int32} - {kind}:
            with pytest.raises(pto.PtoError, match="PTO-U213"):
                pto.kernel(k)(np.ones((16, 64), other), y)


@pytest.mark.parametrize(
    "annotation",
    [
        pto.Global[float],
        pto.Global[int, "m", "n"],
        pto.Global["f23"],  # pyright: ignore[reportUndefinedVariable]
        pto.Global["m", "n"],  # pyright: ignore[reportUndefinedVariable]
        pto.Global[None],
        pto.Global[np.ndarray],
        pto.Global[3],
        pto.Scalar[int],
        pto.Scalar["i23"],  # pyright: ignore[reportUndefinedVariable]
        pto.Scalar[Any],
    ],
)
def test_an_annotation_that_names_no_element_type_is_refused(annotation: Any):
    def k(x: Any) -> None:
        del x

    k.__annotations__ = {"x": annotation}
    with pytest.raises(pto.PtoError, match="PTO-U210"):
        pto.kernel(k)(np.ones((16, 64), np.float32))
