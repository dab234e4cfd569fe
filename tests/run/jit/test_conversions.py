"""Conversions in compiled code against `core.convert`, bit for bit, item by item."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import numpy as np
import pytest

from pto.core.dtypes import (
    ALL,
    BF16,
    E8M0,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    HIFLOAT8,
    I1,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    DType,
)
from pto.core.floats import Round
from pto.isa.meaning.lanes import convert
from pto.run.jit.emit import instructions
from pto.run.jit.emit.unit import Unit
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import UnsupportedLowering
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import Text

_LANES = 16
_TYPES = tuple(t for t in ALL if not t.is_packed and t is not I1)
_EDGES = (0, 0.5, 1.5, 2.5, 3.49, 127.5, 128, 255.5, 447, 448, 464, 480, 65504, 65519, 65520, 57344)
_EDGES += (
    61440,
    32767.5,
    65535.5,
    2.0**31,
    2.0**32,
    2.0**63,
    2.0**64,
    2.0**-22,
    2.0**-24,
    2.0**-25,
)
_EDGES += (
    2.0**-14,
    2.0**-17,
    2.0**-126,
    2.0**-127,
    2.0**-133,
    2.0**-149,
    1e30,
    3e38,
    np.inf,
    np.nan,
)


def items(kind: DType) -> Any:
    """Every item of a small type; of a wide one random bits, and edges with their neighbours."""
    if kind.itemsize <= 2:
        return np.arange(1 << 8 * kind.itemsize).astype(kind.storage).view(kind.numpy)
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 63, 4096, dtype=np.uint64) << np.uint64(1)
    found = [(bits >> np.uint64(64 - 8 * kind.itemsize)).astype(kind.storage).view(kind.numpy)]
    if kind.is_float:
        near = np.array([s * e for e in _EDGES for s in (1, -1)], kind.numpy)
        near = np.concatenate((near, *(np.nextafter(near, kind.numpy.type(v)) for v in (0, 1e38))))
        found += [
            near,
            (rng.standard_normal(4096) * 2.0 ** rng.integers(-30, 34, 4096)).astype(kind.numpy),
        ]
    else:
        powers = [1 << n for n in range(kind.bits - 1)]
        near = [v + d for v in powers for d in (-1, 0, 1)]
        found.append(
            np.array([s * v for v in near for s in ((1, -1) if kind.is_signed else (1,))]).astype(
                kind.numpy
            )
        )
    found = np.concatenate(found)
    return np.resize(found, -(-found.size // _LANES) * _LANES)


class Compiled:
    """Conversions compiled together; called on a register's worth at a time."""

    def __init__(self, src: DType) -> None:
        instructions.load()
        self.unit, self.src = Unit(), src
        self.names: dict[Any, str] = {}

    def add(self, dst: DType, mode: Round, saturate: bool, keep_nan: bool) -> None:
        x, name = Text(self.unit.declare), self.unit.new_name()
        spot = lanes.Lanes(x, _LANES)
        kind = self.src.numpy if kinds.computes(self.src.numpy) else self.src.storage
        given = spot.symbol(kind, x.load(spot.type(kind), "%ctx"))
        found = convert(given, self.src, dst, mode, saturate, keep_nan)
        assert isinstance(found, lanes.Symbol)
        x.store(found.type, found.name, "%frame")
        x.do("ret i32 0")
        self.unit.add(name, x.function(f"define i32 @{name}(ptr %ctx, ptr %frame)"))
        self.names[dst, mode, saturate, keep_nan] = name

    def run(self, key: Any, values: Any) -> Any:
        dst = key[0]
        call = self.unit.function(self.names[key])
        out = np.zeros(values.size, dst.storage)
        for n in range(0, values.size, _LANES):
            call(
                ctypes.c_void_p(values.ctypes.data + n * values.itemsize),
                ctypes.c_void_p(out.ctypes.data + n * out.itemsize),
            )
        return out


def check(src: DType, targets: Any, modes: Any) -> int:
    values, compiled, left = items(src), Compiled(src), 0
    for dst, mode, saturate, keep in product(targets, modes, (True, False), (False, True)):
        if keep and not (src.is_float and dst.is_float):
            continue
        try:
            compiled.add(dst, mode, saturate, keep)
        except UnsupportedLowering:
            left += 1
    for key in compiled.names:
        dst, mode, saturate, keep = key
        got = compiled.run(key, values)
        with np.errstate(all="ignore"):
            want = convert(values, src, dst, mode, saturate, keep).view(dst.storage)
        bad = np.flatnonzero(got != want)
        assert not bad.size, (
            f"{src} {key}: {bad.size} differ, {values[bad[0]]!r} gives {got[bad[0]]:#x}, "
            f"not {want[bad[0]]:#x}"
        )
    return left


_COMMON = (F32, F16, BF16, I32, I16, U8, F8E4M3, HIFLOAT8)


@pytest.mark.parametrize("src", [F32, F16, BF16, I32, U16, I8, I64, F8E5M2], ids=str)
def test_the_common_pairs_to_nearest_and_toward_zero(src: DType) -> None:
    assert check(src, [t for t in _COMMON if t is not src], (Round.RINT, Round.TRUNC)) <= 20


@pytest.mark.parametrize("mode", [Round.NONE, Round.ROUND, Round.FLOOR, Round.CEIL, Round.ODD])
def test_every_mode_from_f32(mode: Round) -> None:
    assert check(F32, (F16, BF16, F8E5M2, E8M0, I16, U32, I64), (mode,)) == 0


def test_from_f64_nothing_is_rounded_twice() -> None:
    assert check(F64, (F32, F16, BF16, F8E4M3, U64), (Round.RINT, Round.ODD)) == 0


def test_integers_wrap_or_saturate() -> None:
    for src in (U32, I64, U8, I16):
        assert check(src, (I8, U8, I16, U16, I32, U64), (Round.RINT,)) == 0


def main() -> None:
    """Every pair in every mode: minutes."""
    for src in _TYPES:
        left = check(src, _TYPES, tuple(Round))
        print(src, "not native:", left, flush=True)


if __name__ == "__main__":
    main()
