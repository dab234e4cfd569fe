"""Lane functions and folds on tiles: over a valid region, in any layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.handle.view import as_tile, as_view
from pto.isa.meaning.kinds import Axis, Do, Fold, Lane, Move
from pto.isa.meaning.tile.regions import (
    element,
    put,
    read_as,
    region,
    require_arithmetic,
    require_line,
    scalar,
)
from pto.isa.row import types as t
from pto.isa.row.instr import Operand
from pto.isa.row.types import KINDS
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core

Reader = Callable[[Any, int, int], Any]


def lane(case: Case, body: Lane) -> Callable[..., None]:
    """dst[i,j] = fn(sources[i,j]); reads come before the write, so dst may be a source."""
    if not body.moves:
        require_arithmetic(case)
    fn = body.function(case)
    roles = [o.role for o in case.row.operands]
    dst_at = roles.index("inout") if "inout" in roles else roles.index("out")
    dtype = element(case, case.row.operands[dst_at].name)
    ins = [
        (i, _reader(case, operand.name, dtype))
        for i, operand in enumerate(case.row.operands)
        if operand.role in ("in", "inout")
    ]
    tiles = [i for i, _ in ins if _is_tile(case, case.row.operands[i].name)]
    readers = {i: read for i, read in ins if i in tiles}
    spread = None if body.spread is None else _Spread(body.spread, readers, repeats(case))

    def step(core: Core, *operands: Any) -> None:
        dst: Tile = operands[dst_at]
        rows, cols = dst.get_valid()
        if rows == 0 or cols == 0:
            return
        if spread is None:
            sources = [read(operands[i], rows, cols) for i, read in ins]
        else:
            sources = spread.read(operands, rows, cols)
        put(dst, rows, cols, fn(*sources))

    return step


class _Spread:
    """The source that has one value per row, or per column, of the domain."""

    def __init__(self, axis: Axis, tiles: Mapping[int, Reader], repeats: bool) -> None:
        self.axis = axis
        self.repeats = repeats
        self.tiles = tiles

    def read(self, operands: tuple[Any, ...], rows: int, cols: int) -> list[Any]:
        sources = [(operands[i], read) for i, read in self.tiles.items()]
        if self.axis == "column":
            *full_sources, (one, last) = sources
            return [*(read(s, rows, cols) for s, read in full_sources), last(one, 1, cols)]
        if len(sources) == 1:
            return [sources[0][1](sources[0][0], rows, 1)]
        at = 0 if sources[0][0].get_valid()[1] < cols else 1
        return [
            self._one(s, read, rows, cols) if i == at else read(s, rows, cols)
            for i, (s, read) in enumerate(sources)
        ]

    def _one(self, tile: Tile, read: Reader, rows: int, cols: int) -> Any:
        """Column 0 of a tile; or the valid columns repeated."""
        width = min(tile.get_valid()[1], cols) if self.repeats else 1
        if width <= 1:
            return read(tile, rows, 1)
        return read(tile, rows, width)[:, np.arange(cols) % width]


def repeats(case: Case) -> bool:
    """True if a row expansion repeats the columns of its narrow source."""
    return case.profile.vector.row_source == "repeated"


def _is_tile(case: Case, name: str) -> bool:
    return not isinstance(case.type(name), t.Scalar)


def _reader(case: Case, name: str, dtype: DType) -> Reader:
    if _is_tile(case, name):
        stored = element(case, name)
        kind = read_as(stored, dtype)
        return region if kind is stored else lambda tile, r, c: region(tile, r, c).view(kind.numpy)
    become = scalar(case.type(name), dtype)
    return lambda value, rows, cols: become(value)


def fold(case: Case, body: Fold) -> Callable[..., None]:
    """dst = src folded along an axis, in the order defined by `Fold`."""
    require_arithmetic(case)
    names = case.row.operand_names
    src_at, dst_at = names.index("src"), names.index("dst")
    kind = accumulator(element(case, "src"), element(case, "dst"), body.wide)
    into = element(case, "dst").numpy
    pairs = body.pairs is not None and body.pairs(case)
    by_row, fn = body.axis == "row", body.fn

    def step(core: Core, *operands: Any) -> None:
        src: Tile = operands[src_at]
        dst: Tile = operands[dst_at]
        rows, cols = src.get_valid()
        if rows == 0 or cols == 0:
            return
        require_line(src, dst, body.axis)
        values = region(src, rows, cols)
        if by_row:
            put(
                dst,
                rows,
                1,
                lanes.fold_partials(fn, values, kind).astype(into, copy=False)[:, None],
            )
            return
        lines = np.ascontiguousarray(values, kind)
        folded = lanes.fold_pairs(fn, lines) if pairs else lanes.fold(fn, lines)
        put(dst, 1, cols, folded.astype(into, copy=False)[None, :])

    return step


def accumulator(src: DType, dst: DType, wide: bool) -> Any:
    """The type a fold runs in."""
    small = dst.is_float and dst.itemsize < 4
    return np.dtype(np.float32) if wide and small and src.is_float else dst.numpy


# ---- meanings on an interface


def in_words(case: Case, body: Do) -> Callable[..., Any]:
    """The meaning itself, on an interface made from the core, or on the core."""
    fn, words = body.make(case), body.words
    if words is None:
        return fn
    return lambda core, *operands: fn(words(core, case), *operands)


def on_words(case: Case, body: Do | Move) -> Callable[..., Any]:
    """The meaning itself, with lowered tiles and views converted to handles."""
    fn = body.make(case)
    become = [
        None if is_address(case.op, o) else _place(case.type(o.name)) for o in case.row.operands
    ]
    if not any(become):
        return fn

    def step(words: Any, *operands: Any) -> Any:
        pairs = zip(become, operands, strict=True)
        return fn(words, *(o if f is None else f(o) for f, o in pairs))

    return step


def _place(type: t.Type | None) -> Callable[[Any], Any] | None:
    """How lowered tiles and views are converted to handles; None: the value is unchanged."""
    if not isinstance(type, t.MemRef):
        return None
    become = as_tile if type.space.is_local else as_view
    return lambda value: None if value is None else become(value, type)


def is_address(op: Any, operand: Operand) -> bool:
    """True if a memref is used as a pointer: the address of its first element."""
    values, kind = op.group(operand.name), KINDS[operand.kind]
    type = values[0].type if values else None
    if not isinstance(type, t.MemRef) or kind.accepts(t.View((), type.elem, False)):
        return False
    return kind.accepts(t.Ptr(type.elem, type.space))
