"""Loads, stores and moves: between global memory and tiles, and from tile to tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import (
    BLOCK_BYTE_SIZE,
    CUBE_BLOCK_SIZE,
    FRACTAL_NZ_ROW,
    MX_COL_LEN,
    MX_ROW_LEN,
)
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.global_layout import GlobalLayout
from pto.core.global_tensor import GlobalTensor
from pto.core.pad import Pad
from pto.core.tile import Role, Tile, TileType
from pto.isa.meaning import lanes
from pto.isa.meaning.cube.accumulator import Outlet
from pto.isa.meaning.handle.view import as_tile, as_view, element, handle, tile_type
from pto.isa.meaning.kinds import Do, Move
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory.collective import TOKEN
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.pairs import turn, turns_pairs
from pto.isa.meaning.tile.patch import paste
from pto.isa.meaning.tile.regions import put, region
from pto.isa.meaning.tile.transfer import TileTransfer, changed, passes_outlet
from pto.isa.meaning.tile.window import Array, Window, candidates, chosen, one_matrix, read
from pto.isa.rules.rule import Case
from pto.target.facts import Profile

Fill = Callable[[Tile], None]

# ---- load


def _load(case: Case) -> Callable[..., None]:
    """Load dst over its valid region; then fill the padding if dst has a pad value."""
    view_type, dst_type = case.type("src"), case.type("dst")
    layouts = candidates(tile_type(dst_type), case.word("layout"))
    fill = padding(tile_type(dst_type), case.profile)
    margins = _margins(case) if has_margins(case) else None
    kind = tile_type(dst_type).dtype.numpy
    same = element(view_type) is tile_type(dst_type).dtype
    boxed = tile_type(dst_type).layout.is_boxed
    by_blocks = boxed and case.profile.load_padding == "block"

    def load(core: Machine, src: Any, dst: Any, *options: Any) -> None:
        view, tile = as_view(src, view_type), as_tile(dst, dst_type)
        rows, cols = tile.get_valid()
        if rows == 0 or cols == 0:
            return
        if margins is None:
            values = read(view, layouts, rows, cols)
        else:
            left, right = (options[i] or 0 for i in (1, 2))
            inner = _inner(cols, left, right)
            values = margins(tile, read(view, layouts, rows, inner), *options)
        if not same:
            values = values.view(kind)
        if boxed and (rows, cols) == tile.type.shape:
            tile.write(values)
        else:
            put(tile, rows, cols, values)
        if fill is None or (by_blocks and in_boxes(view, layouts, rows, cols)):
            return
        fill(tile)

    return load


def has_margins(case: Case) -> bool:
    """True if operands define the columns beside the loaded ones."""
    names = ("pad_mode", "init_out_buffer", "left_padding_num", "right_padding_num")
    return any(n in case.op.attrs or case.op.operand(n) is not None for n in names)


def beside(type: TileType, profile: Profile) -> tuple[Pad, bool] | None:
    """The value that a load writes beside the valid region, and whether it fills the whole tile.

    Otherwise it fills to the end of a block of 32 bytes: Profile.load_padding. A load that makes
    boxes from rows fills with zeros.
    """
    if profile.load_padding == "tile":
        return (type.pad if type.pad.is_defined else Pad.ZERO), True
    if type.layout.is_boxed:
        makes = type.role is Role.MAT and type.is_dense and type.layout.name in ("NZ", "ZN")
        return (Pad.ZERO, False) if makes and type.layout.fractal == CUBE_BLOCK_SIZE else None
    return (type.pad, False) if type.pad.is_defined else None


def in_boxes(view: GlobalTensor, layouts: tuple[GlobalLayout, ...], rows: int, cols: int) -> bool:
    """True if the source is already in boxes, which are copied unchanged."""
    if view.layout.name != "ND" or all(size == 1 for size in view.shape[:3]):
        return view.layout.name == "NZ"
    layout = chosen(layouts, view.shape, view.dtype.itemsize, rows, cols)
    return layout is not None and layout.name == "NZ"


def padding(type: TileType, profile: Profile) -> Fill | None:
    """Fills the elements beside the valid region."""
    found = beside(type, profile)
    if found is None:
        return None
    pad, everywhere = found
    if everywhere:
        return lambda tile: None if tile.get_valid() == type.shape else tile.fill_pad(pad)
    bits = np.array(pad.bits(type.dtype), type.dtype.storage).view(type.dtype.numpy)
    block = padded_block(type)

    def fill(tile: Tile) -> None:
        rows, cols = tile.get_valid()
        if not type.layout.is_boxed and tile.view() is None:
            return
        if pads_columns(type):
            end = min(-(-cols // block) * block, type.cols)
            if end > cols:
                paste(tile, 0, cols, np.broadcast_to(bits, (rows, end - cols)))
        else:
            end = min(-(-rows // block) * block, type.rows)
            if end > rows:
                paste(tile, rows, 0, np.broadcast_to(bits, (end - rows, cols)))

    return fill


def padded_block(type: TileType) -> int:
    """The number of elements in a 32-byte block."""
    return max(1, BLOCK_BYTE_SIZE // type.itemsize)


def pads_columns(type: TileType) -> bool:
    """True if a 32-byte block is along a row, False if along a column."""
    return type.layout.name in ("ND", "NZ")


def _inner(cols: int, left: int, right: int) -> int:
    if left < 0 or right < 0 or left + right > cols:
        raise fail(
            "PTO-V170",
            f"{left} padding columns on the left and {right} on the right do not fit in {cols}",
        )
    return cols - left - right


def _margins(case: Case) -> Callable[..., Array]:
    """The padding operands: columns of the valid region beside the loaded ones.

    PadNull leaves them unchanged, PadFirstElem repeats the first element, PadValue uses pad_value.
    init_out_buffer first fills the whole tile, if init_condition allows.
    """
    mode = case.word("pad_mode") or "PadNull"
    first = case.word("init_out_buffer") == "true"

    def margins(
        tile: Tile, loaded: Array, value: Any, left: Any, right: Any, condition: Any
    ) -> Array:
        kind = tile.type.dtype
        value_of_fill = np.asarray(0 if value is None else value, kind.numpy)
        if first and (condition is None or condition):
            tile.write(np.full(tile.type.shape, value_of_fill))
        result = tile.read_valid()
        if mode == "PadFirstElem" and loaded.size:
            result[...] = loaded.view(kind.numpy)[0, 0]
        elif mode == "PadValue":
            result[...] = value_of_fill
        start = left or 0
        result[:, start : start + loaded.shape[1]] = loaded.view(kind.numpy)
        return result

    return margins


LOAD = Do(_load)

# ---- store

COMBINE: dict[str, Callable[[Array, Array], Array] | None] = {
    "atomic_none": None,
    **{f"atomic_{name}": combine for name, combine in lanes.COMBINE.items()},
}


def _store(case: Case) -> Callable[..., None]:
    """Store src over its valid region.

    Accumulators are converted, and atomics combine with memory.
    """
    src_type, view_type = case.type("src"), case.type("dst")
    type = tile_type(src_type)
    layouts = candidates(type, case.word("layout"))
    stored = element(view_type) or type.dtype
    combine = combination(case, stored)
    scaling, outlet = case.profile.scaling, None
    if passes_outlet(case, type):
        outlet = Outlet(type.dtype, stored, case.word("reluPreMode"), scaling)
    change, by_rows = changed(type.dtype, stored, scaling), scales_rows(type, case.profile)

    def store(core: Machine, src: Any, dst: Any, fp: Any, word: int | None = None) -> None:
        tile, view = as_tile(src, src_type), as_view(dst, view_type)
        rows, cols = tile.get_valid()
        if rows == 0 or cols == 0:
            return
        window = one_matrix(view, rows, cols)
        if window is None:
            window = Window(view, layouts, rows, cols)
        values = region(tile, rows, cols)
        if outlet is not None:
            values = (
                outlet(core, values.T, fp, word).T if by_rows else outlet(core, values, fp, word)
            )
        elif change is not None:
            values = change(values, 0)
        if combine is not None:
            values = combine(window[...], values)
        window[...] = values

    return store


def scales_rows(type: TileType, profile: Profile) -> bool:
    """True if there is a scale for each row instead of each column."""
    return profile.scaling.sources == "any" and type.layout.name == "DN"


def _store_scaled(case: Case) -> Callable[..., None]:
    """Store with the scales of the columns in a tile."""
    store, fp_type = _store(case), case.type("fp")

    def run(core: Machine, src: Any, fp: Any, dst: Any) -> None:
        store(core, src, dst, as_tile(fp, fp_type))

    return run


def combination(case: Case, stored: DType) -> Callable[[Array, Array], Array] | None:
    """The combination of a store with memory: one operation of the element type, rounded once."""
    name = case.word("atomicType") or "atomic_none"
    combine = COMBINE[name]
    if combine is not None and stored.is_float and stored.numpy == stored.storage:
        raise fail("PTO-T170", f"{name} is not defined for elements of {stored}")
    return combine


STORE = Do(_store)
STORE_SCALED = Do(_store_scaled)

# ---- tile to tile


def _regroup(case: Case) -> Callable[..., None]:
    """Exponents of MX groups in boxes of 16 by 2, the order of the cube; src and dst are flat."""
    by_rows = case.word("grpAxis") == "axis0"  # a group is along rows, so src is transposed

    def move(x: Mover, src: Tile, dst: Tile, tmp: Any = None, word: Any = None) -> None:
        (high, wide), (m, groups) = src.get_valid(), dst.get_valid()
        pitch, pairs = (src.type.cols, high // 2) if by_rows else (groups, groups // 2)

        def cell(i: Any, j: Any) -> Any:
            row, group = (j, i) if by_rows else (i, j)
            box = row // MX_ROW_LEN * pairs + group // MX_COL_LEN
            at = (box * MX_ROW_LEN + row % MX_ROW_LEN) * MX_COL_LEN + group % MX_COL_LEN
            return at, x.item(src, i * pitch + j), None

        rows, cols = (high, wide) if by_rows else (m, groups)
        long, many = (cols, rows) if by_rows else (rows, cols)
        filled = (long + MX_ROW_LEN - 1) // MX_ROW_LEN * MX_ROW_LEN * many
        read = (rows - 1) * pitch + cols
        x.require(
            (many % MX_COL_LEN == 0) & (filled <= x.items(dst)) & (read <= x.items(src)),
            lambda: fail(
                "PTO-S044",
                f"exponents of {rows}x{cols} in boxes of {MX_ROW_LEN}x{MX_COL_LEN} are {filled}"
                f" items: {src.type} has {x.items(src)}, {dst.type} {x.items(dst)}",
            ),
        )
        x.place(rows, cols, cell, dst)

    return move


def _move(case: Case) -> Callable[..., None]:
    dst = case.tile("dst")
    into_boxes = dst is not None and dst.layout.name == "ZZ"
    return _regroup(case) if case.role("fp") == "vec" and into_boxes else _transfer(case)


def _transfer(case: Case) -> Callable[..., None]:
    """dst = src over the region valid in both; accumulators are converted.

    A mode that splits src over two sub-blocks gives each its own dst. Whole boxes are split: all
    rows of src, and columns up to the end of a box (a5/TMov.hpp, TMovCcToUb).
    """
    if turns_pairs(case):
        return lambda x, src, dst, fp=None, word=None: turn(x, src, (0, 0), dst, dst.get_valid())
    transfer = TileTransfer(case)
    down, across = (2 if axis == transfer.split else 1 for axis in (0, 1))
    boxes = transfer.split is not None and tile_type(case.type("dst")).layout.name == "NZ"
    step = FRACTAL_NZ_ROW if transfer.split == 0 else BLOCK_BYTE_SIZE

    def move(x: Mover, src: Tile, dst: Tile, fp: Any = None, word: Any = None) -> None:
        (rows, cols), (height, width) = src.get_valid(), dst.get_valid()
        if boxes:
            (rows, most), (height, width) = src.type.shape, dst.type.shape
            cols = x.least((cols + step - 1) // step * step, most)
        size = x.least(rows, height * down), x.least(cols, width * across)
        transfer(x, src, (0, 0), dst, (0, 0), size, fp, word)

    return move


def _move_scaled(case: Case) -> Callable[..., None]:
    move = _transfer(case)
    return lambda x, src, fp, dst: move(x, src, dst, fp)


MOVE = Move(_move)
MOVE_SCALED = Move(_move_scaled)


# A transfer into a cache changes no value; its event completes at once.
PREFETCH = handle(lambda x, src, dst: None)
PREFETCH_ASYNC = handle(lambda x, src, session: TOKEN)
PREFETCH_CONTEXT = handle(lambda x, workspace: TOKEN)
PREFETCH_SESSION = handle(lambda x, ctx: TOKEN)
