"""Windows of tiles: TEXTRACT copies a window out of a tile, TINSERT into a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.compact import PackedOrder
from pto.core.tile import Tile
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.pairs import turn, turns_pairs
from pto.isa.meaning.tile.patch import packing
from pto.isa.meaning.tile.transfer import TileTransfer
from pto.isa.rules.rule import Case
from pto.isa.rules.windows import (
    Step,
    beside_the_window,
    inside_a_box,
    window_step,
    written_boxes,
)


def _packings(case: Case) -> tuple[PackedOrder | None, PackedOrder | None]:
    """The packing of src and dst, if a mode defines it."""
    mode = case.word("mode")
    src, dst = (packing(mode, tile_type(case.type(n)).layout.name) for n in ("src", "dst"))
    return src, dst


def _start(x: Mover, name: str, r: Any, c: Any, step: Step, tile: Tile) -> tuple[Any, Any]:
    """The start of a window, which must be a multiple of `step`."""
    at = x.number(r), x.number(c)
    if step != (1, 1):
        x.require(
            (at[0] % step[0] == 0) & (at[1] % step[1] == 0),
            lambda: inside_a_box(name, at, step, tile.type),
        )
    return at


def _extract(case: Case) -> Callable[..., None]:
    """Copy a window of src over dst's valid region."""
    transfer = TileTransfer(case)
    packed = _packings(case)
    turned = turns_pairs(case)
    step, name = window_step(case, "src"), case.op.name

    def run(
        x: Mover,
        src: Tile,
        r: Any,
        c: Any,
        dst: Tile,
        r1: Any,
        c1: Any,
        dst1: Any,
        word: Any,
        fp: Any,
    ) -> None:
        for target, row, col in ((dst1, r1, c1), (dst, r, c)):
            if target is None:
                continue
            at = _start(x, name, row, col, step, src)
            if turned:
                turn(x, src, at, target, target.get_valid())
            else:
                transfer(
                    x, src, at, target, (0, 0), target.get_valid(), fp=fp, word=word, packed=packed
                )

    return run


def _extract_scaled(case: Case) -> Callable[..., None]:
    extract = _extract(case)
    return lambda x, src, fp, r, c, dst: extract(x, src, r, c, dst, *(None,) * 4, fp)


def _insert(case: Case) -> Callable[..., None]:
    """Copy src's valid region into a window of dst."""
    transfer, packed = TileTransfer(case), _packings(case)
    step = window_step(case, "dst")
    boxes = written_boxes(case)
    name = case.op.name

    def run(x: Mover, src: Tile, r: Any, c: Any, dst: Tile, fp: Any, word: Any) -> None:
        to = _start(x, name, r, c, step, dst)
        size, target_region = src.get_valid(), dst.get_valid()
        for axis, box in enumerate(boxes):
            if box > 1:
                end = to[axis] + size[axis]
                x.require(
                    (size[axis] % box == 0) | (end >= target_region[axis]),
                    lambda: beside_the_window(name, to, size, boxes, target_region),
                )
        transfer(x, src, (0, 0), dst, to, size, fp=fp, word=word, packed=packed)

    return run


def _insert_scaled(case: Case) -> Callable[..., None]:
    insert = _insert(case)
    return lambda x, src, fp, r, c, dst: insert(x, src, r, c, dst, fp, None)


EXTRACT = Move(_extract)
EXTRACT_SCALED = Move(_extract_scaled)
INSERT = Move(_insert)
INSERT_SCALED = Move(_insert_scaled)
