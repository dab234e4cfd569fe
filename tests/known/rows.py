"""Instructions on one-row tiles given and answered as lists: what the tests of tile rows share."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.machine import Bench

KINDS: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "ui16": np.uint16,
    "i32": np.int32,
    "ui32": np.uint32,
    "i64": np.int64,
    "ui64": np.uint64,
}
FLOATS = ("f32", "f16", "bf16")
INTS = ("i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64")
INF, NAN = float("inf"), float("nan")
FILL = 0xA5  # what Bench leaves in bytes nobody wrote


def apply(
    op: str,
    dtype: str,
    *rows: Any,
    scalar: tuple[str, Any] | None = None,
    at: int = 1,
    into: Any = None,
    to: str = "",
    profile: str = "a5",
) -> Any:
    """dst of an instruction whose sources are rows, a scalar (type, value) the one at `at`.

    `into` is what dst holds before, `to` its element type where that is another.
    """
    bench = Bench(profile)
    names = [f"s{i}" for i in range(len(rows))]
    for name, row in zip(names, rows, strict=True):
        bench.tile(name, f"vec, 1x{len(row)}x{dtype}", np.asarray(row, KINDS[dtype])[None, :])
    if scalar is not None:
        bench.scalar("c", *scalar)
        names.insert(at, "c")
    start = None if into is None else np.asarray(into, KINDS[to or dtype])[None, :]
    bench.tile("d", f"vec, 1x{len(rows[0])}x{to or dtype}", start)
    bench.run(f"pto.{op} {operands(names)} outs(%d : {{d}})")
    return bench["d"][0]


def operands(names: list[str]) -> str:
    """`ins(%a, %b : {a}, {b})`."""
    types = ", ".join("{" + name + "}" for name in names)
    return f"ins({', '.join('%' + name for name in names)} : {types})"


def bits(values: Any) -> Any:
    array = np.asarray(values)
    return array.view(f"u{array.dtype.itemsize}").tolist()


def same(found: Any, wanted: Any) -> bool:
    """Bit for bit, any NaN for NaN."""
    want = np.asarray(wanted, found.dtype)
    nan = want != want
    return bool((nan == (found != found)).all()) and bits(found[~nan]) == bits(want[~nan])


def wrapped(values: list[int], dtype: str) -> list[int]:
    """Python integers modulo 2**n, as the type reads them."""
    width = np.dtype(KINDS[dtype]).itemsize * 8
    signed = not dtype.startswith("u")
    out: list[int] = []
    for value in values:
        low = value & ((1 << width) - 1)
        out.append(low - (1 << width) if signed and low >> (width - 1) else low)
    return out


def untouched(tile: Any, rows: int, cols: int) -> bool:
    """Whether every byte outside the first rows x cols elements is as Bench left it."""
    inside = np.zeros(tile.shape, bool)
    inside[:rows, :cols] = True
    raw = np.ascontiguousarray(tile).view(np.uint8).reshape(*tile.shape, -1)
    return bool((raw[~inside] == FILL).all())
