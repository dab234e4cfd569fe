"""Stores of accumulators by strips of up to 16 columns: for scales or slopes from a table or not
constant, and for stores that combine with memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core.constants import FRACTAL_NZ_ROW
from pto.core.dtypes import F32, U64, DType
from pto.isa.meaning.cube.quantise import Finish, Scale
from pto.run.jit.emit.cube.load import segment
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.memory.burst import multiple
from pto.run.jit.emit.tile import planes
from pto.run.jit.llvm.lanes import Lanes, items_of
from pto.run.jit.llvm.text import Val, expect, unsupported_if
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, known

Combine = Callable[[Any, Any], Any]
Of = Callable[[Lanes, Val, str | None], Any]  # what lanes from a column on are scaled by


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value of each channel, and its condition."""

    of: Of
    fine: str


def scale_of(s: OpContext, payload: Lowered, channels: Val) -> Parameter:
    """The scales of the columns: a table, or one number."""
    if isinstance(payload, PointerDesc):
        read, fine = _table(s, payload, U64, channels, 128)
        return Parameter(lambda e, col, mask: Scale.words(read(e, col, mask)), fine)
    number = _spread(payload)
    none = np.zeros(1, np.int64)
    return Parameter(lambda e, col, mask: Scale(number(e), none, None), "true")


def slope_of(s: OpContext, payload: Lowered, channels: Val) -> Parameter:
    """The slopes of the columns: a table, or one number."""
    if isinstance(payload, PointerDesc):
        return Parameter(*_table(s, payload, F32, channels, 64))
    number = _spread(payload)
    return Parameter(lambda e, col, mask: number(e), "true")


def _spread(payload: Lowered) -> Callable[[Lanes], Any]:
    """A number of the program in every lane; known ones may be of any type."""
    found = known(payload) if isinstance(payload, ScalarValue) else None
    if found is not None:
        return lambda e: np.float32(found).reshape(1)
    why = "a scale or slope known only when it runs that is no f32"
    word = expect(payload, ScalarValue, why)
    unsupported_if(word.types[0] != "float", why)
    return lambda e: e.spread(np.dtype(np.float32), word.name)


def _table(
    s: OpContext, place: PointerDesc, kind: DType, channels: Val, line: int
) -> tuple[Of, str]:
    """Entries of a table in the fixpipe buffer."""
    x, size = s.x, kind.itemsize
    place, fine = segment(s, place)
    inside = s.e.inside(place.memory, place.address, x.mul(channels, size))
    fine = x.both(multiple(s, place.address, line), fine, inside)

    def read(e: Lanes, col: Val, mask: str | None) -> Any:
        at = x.at(s.pointer(place.memory, place.address), x.mul(col, size))
        return e.symbol(kind.numpy, planes.load_lanes(x, kind, e.count, at, mask))

    return read, fine


@dataclass(frozen=True, slots=True)
class Strips:
    """The destination of elements of L0C. Strides are bytes. `wide` columns of the destination are
    contiguous (0: all); blocks of them are `pitch` bytes apart, as are rows if there is one
    block."""

    rows: Val
    cols: Val
    first: Val  # the channel of the first column
    from_row: Val
    from_strip: Val
    row: Val
    pitch: Val
    wide: int
    turned: bool  # a column is a row of the destination

    @property
    def lanes(self) -> int:
        if self.turned:
            return 1
        return min(FRACTAL_NZ_ROW, self.wide or FRACTAL_NZ_ROW)


def move(
    s: OpContext,
    types: tuple[DType, DType],
    places: tuple[str, str],
    shape: Strips,
    finish: Callable[[Lanes, Val, str | None], Finish],
    combine: Combine | None,
) -> None:
    """All elements of one tile, from the second of the places to the first."""
    x, (src, dst), (to, from_) = s.x, types, places
    e = Lanes(s.x, shape.lanes)

    def target(i: Val, col: Val) -> Val:
        if shape.turned:
            return x.add(x.mul(col, shape.pitch), x.mul(i, dst.itemsize))
        if not shape.wide:
            return x.add(x.mul(i, shape.row), x.mul(col, dst.itemsize))
        block, rest = x.over(col, shape.wide), x.rest(col, shape.wide)
        inner = x.add(x.mul(i, shape.row), x.mul(rest, dst.itemsize))
        return x.add(x.mul(block, shape.pitch), inner)

    def source(i: Val, col: Val) -> Val:
        strip, rest = x.over(col, FRACTAL_NZ_ROW), x.rest(col, FRACTAL_NZ_ROW)
        inner = x.add(x.mul(i, shape.from_row), x.mul(rest, src.itemsize))
        return x.add(x.mul(strip, shape.from_strip), inner)

    def row(i: Val) -> None:
        def strip(col: Val, mask: str | None) -> None:
            place, lanes = x.at(to, target(i, col)), shape.lanes
            value = planes.load_lanes(x, src, lanes, x.at(from_, source(i, col)), mask)
            how = finish(e, x.add(shape.first, col), mask)
            made = how.apply(e.symbol(src.numpy, value), src, dst)  # pyright: ignore
            if combine is not None:
                old = planes.load_lanes(x, dst, lanes, place, mask)
                made = combine(e.symbol(dst.numpy, old), made)
            planes.store_lanes(x, dst, lanes, items_of(e, made, dst).name, place, mask)

        planes.strips(x, shape.lanes, shape.cols, strip)

    x.loop(shape.rows, 1, row)
