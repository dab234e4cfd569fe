"""Order inside a vector scope: every class of the manual's table of `mem_bar`, found and clean."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize

_PROGRAM = """
!p = !pto.ptr<f32, ub>
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !pto.ptr<f32, gm>) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %z = arith.constant 0 : i64
    %far = arith.constant 4096 : i64
    %p = pto.castptr %z : i64 -> !p
    %q = pto.castptr %far : i64 -> !p
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : !m
      %w = pto.vdup %one, %all : f32, !m -> !v
      {body}
    }}
    return
  }}
}}
"""
_ACCESS = {
    "VLD": "%v{n} = pto.vlds %p[%c0] : !p -> !v",
    "VST": "pto.vsts %w, %p[%c0], %all : !v, !p, !m",
    "LD": "%s{n} = pto.load_scalar %p[%c0] : !p -> f32",
    "ST": "pto.store_scalar %one, %p[%c0] : !p, f32",
}
# The table of the manual: the class before, the class behind, and the family that has both.
_TABLE = {
    "VST_VLD": "VV_ALL",
    "VLD_VST": "VV_ALL",
    "VST_VST": "VV_ALL",
    "VST_LD": "VS_ALL",
    "VLD_ST": "VS_ALL",
    "VST_ST": "VS_ALL",
    "ST_VLD": "SV_ALL",
    "LD_VST": "SV_ALL",
    "ST_VST": "SV_ALL",
}


def _races(*body: str) -> list[tuple[str, str]]:
    module = parse(_PROGRAM.format(body="\n      ".join(body)))
    found = sanitize(module, args=[np.zeros(64, np.float32)]).findings
    return [(d.code, d.severity) for d in found if d.code in ("PTO-R006", "PTO-R007")]


def _pair(name: str, *between: str) -> list[tuple[str, str]]:
    first, second = name.split("_")
    bars = [f'pto.mem_bar "{bar}"' for bar in between]
    return _races(_ACCESS[first].format(n=0), *bars, _ACCESS[second].format(n=1))


@pytest.mark.parametrize("name", _TABLE)
def test_a_barrier_orders_its_classes_and_no_others(name: str) -> None:
    """Two vector stores to one place are a warning: programs rely on their order."""
    expected = [("PTO-R006", "warning") if name == "VST_VST" else ("PTO-R007", "error")]
    assert _pair(name) == expected
    assert _pair(name, name) == _pair(name, _TABLE[name]) == []
    for other in _TABLE:
        if other != name:
            assert _pair(name, other) == expected


def test_scalar_accesses_keep_their_order() -> None:
    assert _pair("ST_LD") == _pair("LD_ST") == _pair("ST_ST") == []


def test_a_store_comes_after_the_loads_it_is_made_of() -> None:
    load, add = _ACCESS["VLD"].format(n=0), "%u = pto.vadds %v0, %one, %all : !v, f32, !m -> !v"
    store = "pto.vsts %u, %p[%c0], %all : !v, !p, !m"
    assert _races(load, add, store) == []


def test_order_goes_on_through_another_place() -> None:
    """p is read, the value goes to q and, behind a barrier, comes back: only then p is written."""
    away = "pto.vsts %v0, %q[%c0], %all : !v, !p, !m"
    back = "%r = pto.vlds %q[%c0] : !p -> !v"
    store = "pto.vsts %r, %p[%c0], %all : !v, !p, !m"
    load, bar = _ACCESS["VLD"].format(n=0), 'pto.mem_bar "VST_VLD"'
    assert _races(load, away, bar, back, store) == []
    assert _races(load, away, back, store)[0] == ("PTO-R007", "error")
