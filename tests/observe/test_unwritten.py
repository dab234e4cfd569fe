"""Bytes nobody has written that a transfer copies: a warning, or harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.ir.text.parser import parse
from pto.observe import sanitize

_COPY = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %y: !g, %z: !g) attributes {{pto.aicore}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %loaded = arith.constant {loaded} : i64
    %bytes = arith.constant 256 : i64
    %far = arith.constant 1024 : i64
    %a = pto.castptr %zero : i64 -> !p
    %b = pto.castptr %far : i64 -> !p
    pto.mte_gm_ub %x, %a, %zero, %loaded nburst(%one, %loaded, %loaded)
      : !g, !p, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %{stored}, %y, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    {then}
    return
  }}
}}
"""
_AGAIN = """
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_gm_ub %y, %a, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64"""


@pytest.mark.parametrize(
    ("loaded", "stored", "held", "then", "expected"),
    [
        (128, "a", 0, "", ["warning"]),  # the end may be meant to be ignored
        (128, "a", 7, "", ["warning"]),  # over values of the host, which it may not look at
        (128, "a", 0, _AGAIN, ["error"]),  # they are taken for data
        (256, "b", 0, "", ["error"]),  # another buffer is stored
        (256, "a", 7, _AGAIN, []),
    ],
)
def test_a_transfer_longer_than_what_was_loaded(
    loaded: int, stored: str, held: int, then: str, expected: list[str]
) -> None:
    y = np.full(64, held, np.float32)
    args = [np.arange(64, dtype=np.float32), y, np.zeros(64, np.float32)]
    module = parse(_COPY.format(loaded=loaded, stored=stored, then=then))
    found = sanitize(module, args=args).findings
    assert [d.severity for d in found if d.code == "PTO-V214"] == expected


@pto.kernel(profile="a5")
def all_rows(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Loads four rows of a tile of eight, and stores eight."""
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t[0:4, :], x[0:4, :])
    isa.tstore(y[0:8, :], t)


@pto.kernel(profile="a5")
def loaded_rows(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t[0:4, :], x[0:4, :])
    isa.tstore(y[0:4, :], t[0:4, :])


@pto.kernel(profile="a5")
def added_rows(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Adds eight rows of a tile to what is there, of which four were computed; nobody reads it."""
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t[0:4, :], x[0:4, :])
    isa.tadds(t[0:4, :], t[0:4, :], 1.0)
    isa.tstore(y[0:8, :], t, atomicType="atomic_add")


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (all_rows, ["PTO-V214 error"]),
        (loaded_rows, []),
        (added_rows, ["PTO-V214 warning"]),
    ],
)
def test_a_store_of_a_tile_that_was_loaded_in_part(kernel: Any, expected: list[str]) -> None:
    args: list[Any] = [np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)]
    found = sanitize(kernel.module(*args), args=args, profile="a5").findings
    assert [f"{d.code} {d.severity}" for d in found] == expected
