"""Lane functions and conversions of tiles: which function of elements, and how the operands lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pto.core.dtypes import F32, I64, DType
from pto.core.floats import round_integral
from pto.isa.meaning import Lane
from pto.isa.meaning.kinds import Axis
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.regions import element as element_of
from pto.isa.meaning.tile.regions import require_arithmetic
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.llvm import conversions, lanes
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import (
    UnsupportedLowering,
    Val,
    unsupported_if,
)
from pto.run.jit.runtime.values import Lowered, ScalarValue, TileDesc
from pto.run.reference.tiles import repeats


class Mapped(NamedTuple):
    """dst = fn(given), element by element, in items of `dtype`. `ones` are the positions in `given`
    of the source that is spread along `axis` (see `_spread`); a position, because one tile may be
    both sources. `key` is what `fn` depends on beside the attributes of the operation."""

    fn: Callable[..., Any]
    dst: TileDesc
    dtype: DType
    given: list[Lowered | None]
    ones: tuple[int | None, ...] = (None,)
    axis: Axis | None = None
    key: object = None


def mapped(s: OpContext) -> Mapped:
    """The lane function of an instruction and its operands."""
    body: Lane = s.body
    if not body.moves:
        require_arithmetic(s.case)
    operands = s.case.row.operands
    roles = [o.role for o in operands]
    at = roles.index("inout") if "inout" in roles else roles.index("out")
    dst = s.need(TileDesc, operands[at].name)
    dtype = element_of(s.case, operands[at].name)
    given = [s.operand(o.name) for o in operands if o.role in ("in", "inout")]
    if not body.moves:
        _require_computed(dtype, *(v.type.dtype for v in given if isinstance(v, TileDesc)))
    ones = _spread(body, given, dst.valid[1])
    return Mapped(body.function(s.case), dst, dtype, given, ones, body.spread)


def _require_computed(*kinds: DType) -> None:
    """Refuse types that symbols hold as bits, which would be added as integers."""
    unsupported_if(
        not all(lanes.computes(kind.numpy) for kind in kinds),
        "arithmetic on elements without machine instructions",
    )


def converted(s: OpContext) -> Mapped:
    """The conversion of an element."""
    body: Conversion = s.body
    if body.choose is None:
        raise UnsupportedLowering("a conversion without a choice of types")
    pair = src, dst, mode, saturate = body.choose(s.case)
    source, target = s.need(TileDesc, "src"), s.need(TileDesc, "dst")

    def change(a: Symbol) -> Symbol:
        if src is F32 and dst is F32:
            return round_integral(a, mode)  # type: ignore[arg-type, return-value]
        return conversions.convert(a, src, dst, mode, saturate)

    return Mapped(change, target, dst, [source], key=pair)


def _spread(body: Lane, given: Sequence[Lowered | None], cols: Val) -> tuple[int | None, ...]:
    """The position of the source with one value for a row or column of the domain; two candidates
    if the extents that decide it are not constant."""
    if body.spread is None:
        return (None,)
    tiles = [(n, value) for n, value in enumerate(given) if isinstance(value, TileDesc)]
    (at, first), last = tiles[0], tiles[-1][0]
    if body.spread == "column":
        return (last,)
    if len(tiles) == 1 or first.type.cols == 1:
        return (at,)  # of a single column it does not matter which
    width = first.valid[1]
    if isinstance(width, int) and isinstance(cols, int):
        return (at if width < cols else last,)
    return at, last


def repeated(s: OpContext, one: TileDesc, given: Sequence[Lowered | None]) -> bool:
    """True if a source may have several columns for each row."""
    tiles = [value for value in given if isinstance(value, TileDesc)]
    return repeats(s.case) and len(tiles) > 1 and one.type.cols != 1 and one.valid[1] != 1


def scalar_kind(word: ScalarValue, like: DType) -> np.dtype[Any]:
    """The element type that a scalar counts as: integers of one width are the same bits."""
    own = word.type.dtype or I64
    if own.is_float:
        return own.numpy
    return (like if like.is_integer and like.bits == own.bits else own).numpy
