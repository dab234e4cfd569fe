"""Conversion of elements in moves from tile to tile, and the buffer that receives them."""

from __future__ import annotations

from typing import Any

from pto.core.compact import PackedOrder
from pto.core.convert import Round
from pto.core.dtypes import DType
from pto.core.errors import PtoError, fail
from pto.core.memory import Space
from pto.core.tile import Role, Tile, TileType
from pto.isa.meaning.cube.accumulator import Outlet
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.lanes import convert
from pto.isa.meaning.tile.mover import Change, Mover
from pto.isa.rules.rule import Case
from pto.target.facts import Scaling

Place = tuple[Any, Any]  # row and column of the first element
_SUB_BLOCKS = {None: None, "single_mode_vec0": 0, "single_mode_vec1": 1}
SPLIT_AXES = {"dual_mode_split_m": 0, "dual_mode_split_n": 1}


def passes_outlet(case: Case, src: TileType) -> bool:
    """True if elements of src are converted: from an accumulator, or by an attribute."""
    relu = case.word("reluPreMode") not in (None, "no_relu")
    is_requested = relu or any(case.op.operand(name) for name in ("fp", "preQuantScalar"))
    return src.role is Role.ACC or (is_requested and case.profile.scaling.sources == "any")


class TileTransfer:
    """Copies rectangles of one tile to another: of this agent, of another one, or half to each
    sub-block.

    Elements from an accumulator are converted. All other moves copy bits; only a move into the bias
    table widens them.
    """

    def __init__(self, case: Case) -> None:
        mode = case.word("accToVecMode")
        src, dst = (tile_type(case.type(name)) for name in ("src", "dst"))
        self._stays = (src.space is Space.UB) == (dst.space is Space.UB)  # on one side
        self.split = SPLIT_AXES.get(mode or "")  # the axis of src that sub-blocks share
        self._sub = _SUB_BLOCKS.get(mode)
        self._change = changed(src.dtype, dst.dtype, case.profile.scaling)
        self._outlet = None
        if passes_outlet(case, src):
            scaling = case.profile.scaling
            self._outlet = Outlet(src.dtype, dst.dtype, case.word("reluPreMode"), scaling)

    def __call__(
        self,
        x: Mover,
        src: Tile,
        at: Place,
        dst: Tile,
        to: Place,
        size: Place,
        fp: Tile | None = None,
        word: Any = None,
        packed: tuple[PackedOrder | None, PackedOrder | None] = (None, None),
    ) -> None:
        """Copy `size` elements from `at` of src to `to` of dst."""
        if self._stays and self._outlet is None and fp is None and word is None:
            x.copy(src, at, dst, to, size, self._change, packed=packed)
            return

        def go(change: Change | None) -> None:
            by_column = fp is not None or word is not None
            for target, start, goal, part in self._parts(x, at, dst, to, size):
                moved = _from(change, start[1] - at[1]) if change and by_column else change
                x.copy(src, start, target, goal, part, moved, by_column=by_column, packed=packed)

        if fp is not None:
            x.reach(fp, (at[1] + size[1]) * 8)
        if self._outlet is None:
            go(self._change)
        else:
            self._outlet.run(x, fp, word, at[1], go)

    def _parts(
        self, x: Mover, at: Place, dst: Tile, to: Place, size: Place
    ) -> list[tuple[Tile, Place, Place, Place]]:
        """The parts of a transfer: tile, first element of src, first element of dst, size."""
        if self._stays:
            return [(dst, at, to, size)]
        if self.split is None:
            return [(x.landing(dst, self._sub), at, to, size)]
        axis, count = self.split, size[self.split]
        x.require(count % 2 == 0, lambda: _uneven(axis, count))
        half = (count // 2, size[1]) if axis == 0 else (size[0], count // 2)
        second = (at[0] + half[0], at[1]) if axis == 0 else (at[0], at[1] + half[1])
        # both must exist before one of them changes
        targets = [x.landing(dst, sub) for sub in (0, 1)]
        return [(targets[0], at, to, half), (targets[1], second, to, half)]


def _from(change: Change, column: Any) -> Change:
    """The conversion with columns counted from a later one."""
    return change if isinstance(column, int) and column == 0 else lambda v, j: change(v, j + column)


def _uneven(axis: int, count: int) -> PtoError:
    unit = ("rows", "columns")[axis]
    return fail("PTO-V171", f"{count} {unit} do not split evenly over two vector sub-blocks")


def changed(src: DType, dst: DType, scaling: Scaling) -> Change | None:
    """The conversion of an element without a scale; None: unchanged."""
    if src is dst:
        return None
    if scaling.unlike == "values":
        rounding = Round.TRUNC if dst.is_integer else Round.RINT
        return lambda values, j: convert(values, src, dst, rounding)
    if src.itemsize == dst.itemsize:
        return lambda values, j: values.view(dst.storage)
    return lambda values, j: convert(values, src, dst)
