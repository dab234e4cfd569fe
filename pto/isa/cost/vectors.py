"""Tile operations of the vector unit as instructions of 256-byte repeats: their lowering.

How the headers of pto-isa lower them for a2a3; on a5 the same instructions make one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.memory import Space
from pto.core.tile import Tile
from pto.isa.cost.work import VectorStep, VectorWork, Work
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.handle.view import as_tile
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.tile import elementwise as arithmetic
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

_REPEAT = 256
_BLOCK = 32
_RECORD = 8
_GROUPS = 16  # of banks in UB, interleaved every 32 bytes
# Cost classes of lane functions that differ from an addition.
_CLASSES: dict[str, tuple[Any, ...]] = {
    "mul": (lanes.mul,),
    "div": (lanes.div, mathlib.recip),
    "power": (lanes.remainder, lanes.fmod, mathlib.power),
    "exp": (mathlib.exp, mathlib.log, mathlib.sqrt, mathlib.tanh, arithmetic.exp_difference),
    "fused": (arithmetic.prelu,),
    "bits": (lanes.bit_and, lanes.bit_or, lanes.bit_xor, lanes.shift_left, lanes.shift_right),
}
_FUNCTIONS = {fn: name for name, functions in _CLASSES.items() for fn in functions}
_REFINED = frozenset({"add", "unary", "lane"})
# Kinds of lowering, and the class that most of their instructions are of.
_PRICED = {
    "row_fold": "lane_fold",
    "column_fold": "fold",
    "row_spread": "spread",
    "column_spread": "spread",
}


def refined(name: str, body: object) -> str:
    """The class of a row, narrowed by the function its lanes compute."""
    if name in _REFINED and isinstance(body, Lane) and body.fn is not None:
        return _FUNCTIONS.get(body.fn, name)
    if name == "spread" and isinstance(body, Lane):
        return f"{body.spread}_spread"
    return name


def priced(kind: str) -> str:
    """The cost class of a kind of lowering."""
    return _PRICED.get(kind, kind)


def class_of(case: Case) -> str:
    return refined(case.row.cost, case.row.body)


def tiles(case: Case) -> Callable[[list[Any]], Work] | None:
    """The work of a tile operation; None for rows that name no tile."""
    named = [(i, case.type(o.name), o.role) for i, o in enumerate(case.row.operands)]
    places = [(i, type, role) for i, type, role in named if _is_tile(type)]
    if not places:
        return None
    kind = class_of(case)
    lower = _LOWERED.get(kind, _one)

    def work(values: list[Any]) -> Work:
        tiles = [
            (as_tile(values[i], type), role) for i, type, role in places if values[i] is not None
        ]
        sources = [tile for tile, role in tiles if role in ("in", "inout")]
        targets = [tile for tile, role in tiles if role in ("out", "inout")]
        return VectorWork(case.row.cost, lower(kind, sources, targets))

    return work


def _is_tile(type: t.Type | None) -> bool:
    if isinstance(type, t.MemRef):
        return type.space is not Space.GM
    return isinstance(type, t.TileBuf)


def _repeats(tile: Tile) -> int:
    rows, cols = tile.get_valid()
    size = tile.type.itemsize
    if (rows, cols) == tile.type.shape and tile.window_pitch is None:
        return max(1, -(-rows * cols * size // _REPEAT))
    lines, line = (rows, cols) if tile.type.layout.name != "DN" else (cols, rows)
    return max(1, lines * -(-line * size // _REPEAT))


def _widest(tiles: list[Tile]) -> Tile:
    return max(
        tiles, key=lambda tile: tile.get_valid()[0] * tile.get_valid()[1] * tile.type.itemsize
    )


def _one(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """One instruction over the largest operand."""
    tile = _widest([*targets, *sources])
    rows, cols = tile.get_valid()
    return (
        VectorStep(
            kind,
            _repeats(tile),
            rows * cols,
            len(sources),
            tile.type.itemsize == 2,
            _conflict(sources),
        ),
    )


def _conflict(sources: list[Tile]) -> float:
    """Share of bank conflicts between two sources: a repeat reads 8 of 16 bank groups of each."""
    if len(sources) < 2:
        return 0.0
    apart = (sources[1].address - sources[0].address) // _BLOCK % _GROUPS
    return max(0.0, (8 - min(apart, _GROUPS - apart)) / 8)


def _row_fold(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """Registers of a row folded into one, then that one across its lanes; short rows in groups."""
    source = sources[0]
    rows, cols = source.get_valid()
    size = source.type.itemsize
    is_16 = size == 2
    lanes_of = _REPEAT // size
    if size == 4 and rows * cols == 8192 and cols in (128, 256, 512, 1024):
        repeats = _repeats(source)
        found = [VectorStep("group_fold", repeats, rows * cols, 1, is_16)]
        left = cols // 8
        while left > 8:
            repeats = max(1, repeats // 8)
            found.append(VectorStep("group_fold", repeats, rows * left, 1, is_16))
            left //= 8
        return (*found, VectorStep("fold", max(1, rows * left // lanes_of), rows * left, 2, is_16))
    folds = -(-cols // lanes_of) - 1
    steps = [VectorStep("fold", rows, rows * lanes_of, 2, is_16)] * folds
    return (*steps, VectorStep("lane_fold", rows, rows * min(cols, lanes_of), 1, is_16))


def _column_fold(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """Each row is folded onto the first one, with a barrier in between."""
    source = sources[0]
    rows, cols = source.get_valid()
    size = source.type.itemsize
    width = -(-cols * size // _REPEAT)
    copy = VectorStep("unary", width, cols, 1, size == 2)
    if rows < 2:
        return (copy,)
    folds = rows - 1
    return copy, VectorStep("fold", folds * width, folds * cols, 2, size == 2, 0.0, folds, True)


def _convert(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """An instruction for each row, and one more for the remainders of all rows."""
    (step,) = _one(kind, sources, targets)
    tile = _widest([*targets, *sources])
    rows, cols = tile.get_valid()
    full, rest = divmod(cols * tile.type.itemsize, _REPEAT)
    return (step._replace(instructions=max(1, rows * bool(full) + bool(rest))),)


def _each_row(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """An instruction for each row."""
    (step,) = _one(priced(kind), sources, targets)
    return (step._replace(instructions=max(1, targets[0].get_valid()[0])),)


def _spread_rows(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """The scalar unit reads each row's value for its copy; rows of a block take one `vbrcb`."""
    (step,) = _each_row(kind, sources, targets)
    if targets[0].get_valid()[1] * targets[0].type.itemsize == _BLOCK:
        return (step._replace(instructions=1),)
    return (step._replace(chained=True),)


def _records(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """Sorting works on records of eight bytes: a value and its index."""
    (step,) = _one(kind, sources, targets)
    rows, cols = targets[0].get_valid()
    count = rows * cols * targets[0].type.itemsize // _RECORD
    return (step._replace(elements=count),)


def _gather(kind: str, sources: list[Tile], targets: list[Tile]) -> tuple[VectorStep, ...]:
    """By a pattern, whole registers; by indices, as many elements as indices, whatever src has."""
    if len(sources) == 1:
        return _one("rearrange", sources, targets)
    (step,) = _one(kind, sources[1:], targets)
    return (step._replace(sources=len(sources)),)


_LOWERED: dict[str, Callable[[str, list[Tile], list[Tile]], tuple[VectorStep, ...]]] = {
    "row_fold": _row_fold,
    "column_fold": _column_fold,
    "row_spread": _spread_rows,
    "column_spread": _each_row,
    "compare": _each_row,
    "convert": _convert,
    "block_sort": _records,
    "merge": _records,
    "gather": _gather,
}
