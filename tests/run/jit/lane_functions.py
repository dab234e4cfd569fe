"""A lane function alone in compiled code: arrays in, an array out, sixteen lanes at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from pto.run.jit.emit import instructions
from pto.run.jit.emit.unit import Unit
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import Text

LANES = 16


def compiled(fn: Callable[..., Any], kind: Any, sources: int, out: Any) -> Callable[..., Any]:
    """`fn` of so many arrays of one type, each of a whole number of `LANES`."""
    instructions.load()
    kind, out = np.dtype(kind), np.dtype(out)
    unit, x = Unit(), Text()
    spot, name = lanes.Lanes(x, LANES, unit.declare), unit.new_name()
    starts = [n * LANES * kind.itemsize for n in range(sources)]
    given = [spot.symbol(kind, x.load(spot.type(kind), x.at("%ctx", n))) for n in starts]
    found = fn(*given)
    assert found.dtype == out
    x.store(found.type, found.name, "%frame")
    x.do("ret i32 0")
    unit.add(name, x.function(f"define i32 @{name}(ptr %ctx, ptr %frame)"))
    code = unit.function(name)

    def run(*arrays: Any) -> Any:
        whole = np.stack([a.reshape(-1, LANES) for a in arrays], axis=1)
        result = np.zeros((len(whole), LANES), out)
        for n in range(len(whole)):
            code(*(ctypes.c_void_p(a[n].ctypes.data) for a in (whole, result)))
        return result.reshape(-1)

    return run
