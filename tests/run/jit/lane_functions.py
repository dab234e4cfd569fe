"""A lane function alone in compiled code: arrays in, an array out, sixteen lanes at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from pto.run.jit.emit import instructions
from pto.run.jit.emit.unit import Unit
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import Val

LANES = 16
_HEAD = 64  # bytes before the arrays: how many turns


def compiled(fn: Callable[..., Any], kind: Any, sources: int, out: Any) -> Callable[..., Any]:
    """`fn` of so many arrays of one type, each of a whole number of `LANES`."""
    instructions.load()
    kind, out = np.dtype(kind), np.dtype(out)
    unit = Unit()
    x = Text(unit.declare)
    spot, name = lanes.Lanes(x, LANES), unit.new_name()
    size = LANES * kind.itemsize

    def turn(i: Val) -> None:
        first = x.at("%ctx", x.add(x.mul(i, sources * size), _HEAD))
        starts = [x.at(first, n * size) for n in range(sources)]
        found = fn(*(spot.symbol(kind, x.load(spot.type(kind), at)) for at in starts))
        assert found.dtype == out
        x.store(found.type, found.name, x.at("%frame", x.mul(i, LANES * out.itemsize)))

    x.loop(x.load(I64, "%ctx", 8), 1, turn)
    x.do("ret i32 0")
    unit.add(name, x.function(f"define i32 @{name}(ptr %ctx, ptr %frame)"))
    code = unit.function(name)

    def run(*arrays: Any) -> Any:
        whole = np.stack([a.reshape(-1, LANES) for a in arrays], axis=1)
        given = np.empty(_HEAD + whole.nbytes, np.uint8)
        given[:8] = np.array([len(whole)]).view(np.uint8)
        given[_HEAD:] = whole.reshape(-1).view(np.uint8)
        result = np.zeros(len(whole) * LANES, out)
        code(*(ctypes.c_void_p(a.ctypes.data) for a in (given, result)))
        return result

    return run
