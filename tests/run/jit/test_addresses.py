"""Address arithmetic with absurd numbers: compiled code refuses what the reference refuses, in the
same words, and never goes around 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.run.launch.host import launch

HUGE = [(1 << 62) + 3, (1 << 61) + 3, -(1 << 62) + 3, (1 << 63) - 1, -(1 << 63), 1 << 48, -1]
HEAD = (
    'module attributes {pto.target_arch = "a5"} {\nfunc.func @f(%p: !pto.ptr<f32>, %n: index) {\n'
)
BODIES = {
    "addptr": """
      %q = pto.addptr %p, %n : !pto.ptr<f32> -> !pto.ptr<f32>
      %c0 = arith.constant 0 : index
      %v = pto.load_scalar %q[%c0] : !pto.ptr<f32> -> f32
      pto.store_scalar %v, %p[%c0] : !pto.ptr<f32>, f32""",
    "addptr again and again": """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %q = scf.for %i = %c0 to %c4 step %c1 iter_args(%r = %p) -> (!pto.ptr<f32>) {
        %s = pto.addptr %r, %n : !pto.ptr<f32> -> !pto.ptr<f32>
        scf.yield %s : !pto.ptr<f32>
      }
      %v = pto.load_scalar %q[%c0] : !pto.ptr<f32> -> f32
      pto.store_scalar %v, %p[%c0] : !pto.ptr<f32>, f32""",
    "load_scalar": """
      %c0 = arith.constant 0 : index
      %v = pto.load_scalar %p[%n] : !pto.ptr<f32> -> f32
      pto.store_scalar %v, %p[%c0] : !pto.ptr<f32>, f32""",
    "vlds": """
      %at = arith.constant 0 : i64
      %ub = pto.castptr %at : i64 -> !pto.ptr<f32, ub>
      %c0 = arith.constant 0 : index
      pto.vecscope {
        %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
        %v = pto.vlds %ub[%n] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        pto.vsts %v, %ub[%c0], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
      }""",
}


def refused(body: str, number: int, engine: str) -> tuple[str, str]:
    array = np.arange(8, dtype=np.float32)
    module = parse(f"{HEAD}{body}\nreturn\n}}\n}}")
    with pytest.raises(PtoError) as caught:
        launch(module, args=[array, number], engine=engine)
    assert array.tolist() == list(range(8))
    found = caught.value.diagnostics[0]
    return found.code, found.message


@pytest.mark.parametrize("number", HUGE, ids=hex)
@pytest.mark.parametrize("name", BODIES)
def test_both_engines_refuse_it_in_the_same_words(name: str, number: int) -> None:
    ours: Any = refused(BODIES[name], number, "reference")
    assert refused(BODIES[name], number, "jit") == ours


def test_a_pointer_may_leave_its_array_and_come_back() -> None:
    body = """
      %q = pto.addptr %p, %n : !pto.ptr<f32> -> !pto.ptr<f32>
      %back = arith.constant -1000 : index
      %r = pto.addptr %q, %back : !pto.ptr<f32> -> !pto.ptr<f32>
      %c0 = arith.constant 0 : index
      %v = pto.load_scalar %r[%c0] : !pto.ptr<f32> -> f32
      pto.store_scalar %v, %p[%c0] : !pto.ptr<f32>, f32"""
    for engine in ("reference", "jit"):
        array = np.arange(8, dtype=np.float32)
        launch(parse(f"{HEAD}{body}\nreturn\n}}\n}}"), args=[array, 1003], engine=engine)
        assert array[0] == 3
