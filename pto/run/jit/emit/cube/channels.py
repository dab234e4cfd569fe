"""Scales and slopes of accumulators that are stored: from a table, or not constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core.dtypes import F32, U64, DType
from pto.isa.meaning.cube.quantise import Scale
from pto.isa.meaning.scalar.arith import kind_of
from pto.run.jit.emit.cube.load import segment
from pto.run.jit.emit.memory.burst import multiple
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import masked
from pto.run.jit.ir.kinds import certain
from pto.run.jit.llvm.lanes import Lanes
from pto.run.jit.llvm.value import TRUE, Condition, Val
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, known

Of = Callable[[Lanes, Val, str | None], Any]  # what lanes from a column on are scaled by


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value of each channel, and its condition."""

    of: Of
    guard: Condition


def scale_of(s: OpContext, payload: Lowered, channels: Val) -> Parameter:
    """The scales of the columns: a table, or one number."""
    if isinstance(payload, PointerDesc):
        read, guard = _table(s, payload, U64, channels, 128)
        return Parameter(lambda e, col, mask: Scale.words(read(e, col, mask)), guard)
    number = _spread(payload)
    none = np.zeros(1, np.int64)
    return Parameter(lambda e, col, mask: Scale(number(e), none, None), TRUE)


def slope_of(s: OpContext, payload: Lowered, channels: Val) -> Parameter:
    """The slopes of the columns: a table, or one number."""
    if isinstance(payload, PointerDesc):
        return Parameter(*_table(s, payload, F32, channels, 64))
    number = _spread(payload)
    return Parameter(lambda e, col, mask: number(e), TRUE)


def _spread(payload: Lowered) -> Callable[[Lanes], Any]:
    """A number of the program in every lane; known ones may be of any type."""
    found = known(payload) if isinstance(payload, ScalarValue) else None
    if found is not None:
        return lambda e: np.float32(found).reshape(1)
    word = certain(payload, ScalarValue)
    return lambda e: e.spread(kind_of(word.type), word.name).astype(np.float32)


def _table(
    s: OpContext, place: PointerDesc, kind: DType, channels: Val, line: int
) -> tuple[Of, Condition]:
    """Entries of a table in the fixpipe buffer."""
    x, size = s.x, kind.itemsize
    place, guard = segment(s, place)
    inside = s.e.inside(place.memory, place.address, x.mul(channels, size))
    guard = multiple(s, place.address, line) & guard & inside

    def read(e: Lanes, col: Val, mask: str | None) -> Any:
        at = x.at(s.pointer(place.memory, place.address), x.mul(col, size))
        return e.symbol(kind.numpy, masked.load_lanes(x, kind, e.count, at, mask))

    return read, guard
