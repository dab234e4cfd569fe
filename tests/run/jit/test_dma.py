"""Bursts on the fast engine: the same bytes as on the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import pto
from tests.run.jit.both import agree, fails_alike

_BYTES = 8192
_RANDOM = np.random.default_rng(3)
_PTR = "!pto.ptr<{kind}, {space}>"


def _program(body: str, kind: str = "f32") -> str:
    """UB is filled from %a, then `body`, then all of UB goes to %b; %c is for the body."""
    gm, ub = _PTR.format(kind=kind, space="gm"), _PTR.format(kind=kind, space="ub")
    types = ", ".join(["i64"] * 3)
    used = sorted(
        {int(w[2:].strip(",):")) for w in body.split() if w.startswith("%n")} | {0, 1, _BYTES}
    )
    numbers = "\n    ".join(f"%n{n} = arith.constant {n} : i64" for n in used)
    return f"""
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @k(%a: {gm}, %b: {gm}, %c: {gm}) attributes {{pto.aicore}} {{
    {numbers}
    %ub = pto.castptr %n0 : i64 -> {ub}
    pto.mte_gm_ub %a, %ub, %n0, %n{_BYTES} nburst( %n1 , %n0 , %n0 )
      : {gm}, {ub}, i64, i64, {types}
    {body.replace("GM", gm).replace("UB", ub)}
    pto.mte_ub_gm %ub, %b, %n{_BYTES} nburst( %n1 , %n0 , %n0 ) : {ub}, {gm}, i64, {types}
    return
  }}
}}
"""


def _arrays() -> list[Any]:
    return [_RANDOM.integers(0, 256, _BYTES, dtype=np.uint8).view(np.float32) for _ in range(3)]


def _load(width: int, loops: Sequence[tuple[int, int, int]], pad: str = "") -> str:
    first, *outer = [" , ".join(f"%n{n}" for n in loop) for loop in loops]
    text = f"pto.mte_gm_ub %c, %ub, %n0, %n{width} nburst( {first} )"
    types = "GM, UB, i64, i64, i64, i64, i64"
    for each in outer:
        text += f" loop( {each} )"
        types += ", loop i64, i64, i64"
    if pad:
        text += f" pad( {pad} )"
        types += ", pad f32" + ", i64" * pad.count(",")
    return f"{text} : {types}"


def _store(width: int, loops: Sequence[tuple[int, int, int]]) -> str:
    first, *outer = [" , ".join(f"%n{n}" for n in loop) for loop in loops]
    text = f"pto.mte_ub_gm %ub, %c, %n{width} nburst( {first} )"
    types = "UB, GM, i64, i64, i64, i64"
    for each in outer:
        text += f" loop( {each} )"
        types += ", loop i64, i64, i64"
    return f"{text} : {types}"


_SHAPES = [
    (64, [(8, 64, 64)]),
    (100, [(5, 200, 128)]),
    (32, [(4, 64, 96), (3, 512, 1024)]),
    (7, [(3, 11, 32), (2, 100, 256), (2, 1000, 2048)]),
    (256, [(1, 0, 0)]),
]


@pytest.mark.parametrize(("width", "loops"), _SHAPES)
def test_loads_and_stores(width: int, loops: list[tuple[int, int, int]]) -> None:
    agree(_program(_load(width, loops)), _arrays(), check=False)
    turned = [(count, dst, src) for count, src, dst in loops]
    agree(_program(_store(width, turned)), _arrays(), check=False)


@pytest.mark.parametrize("pad", ["%v", "%v, %n3, %n2", "%v, %n0, %n9"])
@pytest.mark.parametrize("loops", [[(4, 100, 256)], [(4, 100, 256), (2, 1000, 2048)]])
def test_loads_with_pads(pad: str, loops: list[tuple[int, int, int]]) -> None:
    body = f"%v = arith.constant 1.25 : f32\n    {_load(76, loops, pad)}"
    agree(_program(body), _arrays(), check=False)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (_load(64, [(200, 64, 64)]), "PTO-M161"),
        (_load(64, [(2, 64, 40)]), "PTO-M164"),
        (_store(64, [(200, 64, 64)]), "PTO-M161"),
    ],
)
def test_what_is_wrong_is_named(body: str, code: str) -> None:
    assert fails_alike(_program(body), _arrays(), check=False) == code


def test_bursts_over_each_other_and_none() -> None:
    for body in (_load(64, [(4, 64, 32)]), _load(64, [(0, 64, 64)]), _load(0, [(4, 64, 64)])):
        agree(_program(body), _arrays(), check=False, all_native=False)


def test_loops_in_registers() -> None:
    body = """
    %off = arith.constant false
    pto.set_loop_size_outtoub %n2, %n3 : i64, i64
    pto.set_loop1_stride_outtoub %n256, %n512 : i64, i64
    pto.set_loop2_stride_outtoub %n1024, %n2048 : i64, i64
    pto.copy_gm_to_ubuf %c, %ub, %n0, %n4, %n32, %n0, %n0, %off, %n0, %n64, %n96
      : GM, UB, i64, i64, i64, i64, i64, i1, i64, i64, i64
    pto.set_loop_size_ubtoout %n2, %n3 : i64, i64
    pto.set_loop1_stride_ubtoout %n256, %n512 : i64, i64
    pto.set_loop2_stride_ubtoout %n1024, %n2048 : i64, i64
    pto.copy_ubuf_to_gm %ub, %c, %n0, %n4, %n32, %n0, %n96, %n64
      : UB, GM, i64, i64, i64, i64, i64, i64"""
    agree(_program(body), _arrays(), check=False)


@pytest.mark.parametrize("shift", [0, 64, 4096])
def test_within_a_buffer(shift: int) -> None:
    body = f"""
    %to = arith.constant {shift} : i64
    %there = pto.castptr %to : i64 -> UB
    pto.mte_ub_ub %ub, %there, %n2 nburst( %n4 , %n1 , %n0 ) : UB, UB, i64, i64, i64, i64"""
    agree(_program(body), _arrays(), check=False, all_native=shift == 4096)


_OVERLAPPING = [
    (64, [(8, 64, 32)]),
    (256, [(5, 96, 0)]),
    (32, [(4, 64, 32), (3, 512, 64)]),
    (32, [(4, 64, 1024), (3, 512, 32)]),  # apart, but for the order of the loops
    (96, [(3, 32, 32), (2, 96, 64), (2, 1024, 32)]),
]


@pytest.mark.parametrize(("width", "loops"), _OVERLAPPING)
def test_of_bursts_that_write_over_each_other_the_later_one_wins(
    width: int, loops: list[tuple[int, int, int]], python_is_silent: None
) -> None:
    agree(_program(_load(width, loops)), _arrays(), check=False)
    agree(_program(_store(width, loops)), _arrays(), check=False)


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_padded_bursts_apart_by_no_whole_number_of_elements(engine: str) -> None:
    """Bursts of one i64 with one of padding on the left, 100 bytes apart: 12.5 elements."""
    text = """module attributes {pto.target_arch = "cpu"} {
  func.func @f(%from: !pto.ptr<i64>, %to: !pto.ptr<i8>) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c2 = arith.constant 2 : i64
    %c8 = arith.constant 8 : i64
    %c100 = arith.constant 100 : i64
    %c160 = arith.constant 160 : i64
    %pad = arith.constant true
    %u = pto.castptr %c0 : i64 -> !pto.ptr<i64, ub>
    %b = pto.castptr %c0 : i64 -> !pto.ptr<i8, ub>
    pto.mte_gm_ub %to, %b, %c0, %c160 nburst(%c1, %c160, %c160) : !pto.ptr<i8>, !pto.ptr<i8, ub>, i64, i64, i64, i64, i64
    pto.copy_gm_to_ubuf %from, %u, %c0, %c2, %c8, %c1, %c0, %pad, %c0, %c8, %c100 : !pto.ptr<i64>, !pto.ptr<i64, ub>, i64, i64, i64, i64, i64, i1, i64, i64, i64
    pto.mte_ub_gm %b, %to, %c160 nburst(%c1, %c160, %c160) : !pto.ptr<i8, ub>, !pto.ptr<i8>, i64, i64, i64, i64
    return
  }
}"""  # noqa: E501
    to = np.ones(160, np.int8)
    want = to.copy()
    for at, number in ((0, 7), (100, 9)):
        want[at : at + 32] = 0  # padding, up to a whole block
        want[at + 8] = number
    pto.launch(pto.parse(text), args=[np.array([7, 9], np.int64), to], engine=engine)
    assert np.array_equal(to, want)
