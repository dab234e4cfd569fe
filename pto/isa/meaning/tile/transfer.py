"""What a move does to elements on their way from tile to tile, and whose buffer they reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.compact import Packing
from pto.core.convert import convert
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.memory import Space
from pto.core.tile import Role, Tile
from pto.isa.meaning.cube.accumulator import Outlet
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.patch import landing, paste
from pto.isa.rules.rule import Case

Change = Callable[[Machine, Lanes, Tile | None, int | None, int], Lanes]
_SUB_BLOCKS = {None: None, "single_mode_vec0": 0, "single_mode_vec1": 1}
_SPLIT_AXES = {"dual_mode_split_m": 0, "dual_mode_split_n": 1}


def change(case: Case, src: str = "src", dst: str = "dst") -> Change:
    """fn(core, values, fp, word, first column): out of an accumulator elements are converted.

    Elsewhere bits move; only the way into the bias table widens them.
    """
    source, target = tile_type(case.type(src)), tile_type(case.type(dst))
    if source.role is Role.ACC:
        return Outlet(source.dtype, target.dtype, case.word("reluPreMode"))
    return _same_bits(source.dtype, target.dtype)


def _same_bits(src: DType, dst: DType) -> Change:
    if src is dst:
        return lambda core, values, fp, word, column: values
    if src.itemsize == dst.itemsize:
        return lambda core, values, fp, word, column: values.view(dst.numpy)
    return lambda core, values, fp, word, column: convert(values, src, dst)


class Delivery:
    """Puts values into a tile: this agent's, another agent's, or one half into each sub-block's."""

    def __init__(self, case: Case) -> None:
        mode = case.word("accToVecMode")
        src, dst = (tile_type(case.type(name)).role.space is Space.UB for name in ("src", "dst"))
        self.stays = src == dst  # on one side of the core
        self.axis = _SPLIT_AXES.get(mode or "")
        self.sub = _SUB_BLOCKS.get(mode)

    def __call__(
        self,
        core: Machine,
        tile: Tile,
        row: int,
        col: int,
        values: Lanes,
        packed: Packing | None = None,
    ) -> None:
        if self.stays:
            paste(tile, row, col, values, packed)
            return
        if self.axis is None:
            paste(landing(core, tile, self.sub), row, col, values, packed)
            return
        first, second = _halves(values, self.axis)
        targets = [landing(core, tile, sub) for sub in (0, 1)]  # both exist before either changes
        paste(targets[0], row, col, first, packed)
        paste(targets[1], row, col, second, packed)


def _halves(values: Lanes, axis: int) -> tuple[Any, Any]:
    count = values.shape[axis]
    if count % 2:
        what = ("rows", "columns")[axis]
        raise fail("PTO-V171", f"{count} {what} do not split evenly over two vector sub-blocks")
    half = count // 2
    if axis == 0:
        return values[:half], values[half:]
    return values[:, :half], values[:, half:]
