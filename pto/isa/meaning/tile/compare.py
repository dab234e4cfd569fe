"""Comparisons into packed bits, and selection by such bits.

Row i of a mask starts at row i of the mask tile, for every element type; column j is bit j of it,
lowest bit first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.mover import Cell, Mover
from pto.isa.meaning.tile.regions import element, require_arithmetic, taken
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

_STREAM = 64  # number of register lanes from which on rows do not start at a new register


def _compare(case: Case) -> Callable[..., None]:
    require_arithmetic(case)
    test = lanes.MODES[case.word("cmpMode") or "eq"]

    def step(x: Mover, src0: Tile, src1: Tile, dst: Tile) -> None:
        rows, cols = src0.get_valid()

        def run() -> None:
            x.within(src0, rows, cols)
            x.within(src1, rows, cols)
            _by_rows(x, rows, cols, lambda i, j: test(x.read(src0, i, j), x.read(src1, i, j)), dst)

        x.when((rows > 0) & (cols > 0), run)

    return step


def _compare_scalar(case: Case) -> Callable[..., None]:
    """A comparison with a scalar.

    If the profile has dense masks, the mask has the layout of PTO-Gym's tcmps, except for 64-bit
    elements. It has no row pitch and consists of the blocks that the vector unit stores: 32-bit
    elements are one stream in blocks of two registers; for narrower ones each row starts a new
    block of one register.
    """
    require_arithmetic(case)
    kind, number = element(case, "src"), _number(case, "src")
    test = lanes.MODES[case.word("cmpMode") or "eq"]
    is_scalar = isinstance(case.type("scalar"), t.Scalar)
    packing = case.profile.vector.scalar_compare_mask
    dense = packing == "dense" and kind.itemsize < 8
    wide = case.profile.vector.lanes(kind.itemsize)

    def step(x: Mover, src: Tile, value: Any, dst: Tile) -> None:
        rows, cols = src.get_valid()

        def cell(i: Lanes, j: Lanes) -> Lanes:
            other = number(x, value) if is_scalar else x.read(value, 0, 0)
            return test(x.read(src, i, j), other)

        def inside(r: Lanes, c: Lanes) -> Lanes:
            """The bit of (r, c), zero outside the valid region."""
            fine = (r < rows) & (c < cols)
            other = number(x, value) if is_scalar else x.read(value, r, c, fine)
            return fine & test(x.read(src, r, c, fine), other)

        def run() -> None:
            x.within(src, rows, cols)
            if packing == "bytes":
                _by_bytes(x, src.type.cols, inside, dst)
                return
            if not dense:
                _by_rows(x, rows, cols, cell, dst)
                return
            in_one = wide <= _STREAM
            pitch = cols if in_one else (cols + (wide - 1)) // wide * wide
            piece = 2 * wide if in_one else wide
            nbytes = (rows * pitch + (piece - 1)) // piece * piece // 8
            capacity = x.items(dst) * dst.type.itemsize
            x.require(
                nbytes <= capacity,
                lambda: fail("PTO-S042", f"{dst.type} has {capacity} bytes, the mask {nbytes}"),
            )
            x.pack(rows, cols, cell, dst, pitch, nbytes)

        x.when((rows > 0) & (cols > 0), run)

    return step


def _by_rows(x: Mover, rows: int, cols: int, cell: Callable[..., Lanes], mask: Tile) -> None:
    """Store the bits of row i in row i of the mask."""
    (height, width), size = mask.type.shape, mask.type.itemsize
    x.require(
        (rows <= height) & (cols <= width * size * 8),
        lambda: fail(
            "PTO-S042",
            f"{mask.type} has {height} rows of {width * size * 8} bits, not {rows}x{cols}",
        ),
    )
    x.pack(rows, cols, cell, mask)


def _by_bytes(x: Mover, pitch: int, bit: Callable[..., Lanes], mask: Tile) -> None:
    """Store eight bits per element of the valid region, row by row; zero elsewhere."""
    rows, cols = mask.get_valid()
    kind = mask.type.dtype.numpy.type

    def byte(i: Lanes, j: Lanes) -> Lanes:
        packed = kind(0)
        for n in range(8):
            at = (i * cols + j) * 8 + n
            there = (i < rows) & (j < cols) & bit(at // pitch, at % pitch)
            packed = lanes.select(there, kind(1 << n), kind(0)) | packed
        return packed

    x.each(mask.type.rows, mask.type.cols, byte, mask)


def _row_bits(case: Case, name: str) -> int | None:
    mask = case.tile(name)
    return None if mask is None else mask.cols * mask.itemsize * 8


def _scalar_row_bits(case: Case) -> int | None:
    """The bits per row that `_compare_scalar` writes; None if they are known only at run time."""
    src = case.tile("src")
    if src is not None and case.profile.vector.scalar_compare_mask == "bytes":
        return src.cols
    if src is None or case.profile.vector.scalar_compare_mask != "dense" or src.itemsize == 8:
        return _row_bits(case, "dst")
    lanes_in_register, cols = case.profile.vector.lanes(src.itemsize), src.valid[1]
    if cols is None or lanes_in_register <= _STREAM:
        return cols
    return -(-cols // lanes_in_register) * lanes_in_register


def _select(case: Case) -> Callable[..., None]:
    in_bytes = case.profile.vector.select_mask == "bytes"

    def step(x: Mover, mask: Tile, src0: Tile, src1: Tile, tmp: Tile, dst: Tile) -> None:
        first, second = (lambda i, j, src=src: x.read(src, i, j) for src in (src0, src1))
        _choose(x, mask, dst, (src0, src1), first, second, in_bytes)

    return step


def _select_scalar(case: Case) -> Callable[..., None]:
    number = _number(case, "dst")

    def step(x: Mover, mask: Tile, src: Tile, tmp: Tile, value: Any, dst: Tile) -> None:
        _choose(x, mask, dst, (src,), lambda i, j: x.read(src, i, j), lambda i, j: number(x, value))

    return step


def _choose(
    x: Mover,
    mask: Tile,
    dst: Tile,
    sources: tuple[Tile, ...],
    first: Cell,
    second: Cell,
    in_bytes: bool = False,
) -> None:
    """dst[i,j] = first(i, j) if its bit of the mask is set, else second(i, j)."""
    rows, cols = dst.get_valid()

    def bit(i: Lanes, j: Lanes) -> Lanes:
        if not in_bytes:
            return x.bit(mask, i, j)
        at, width = i * cols + j, mask.get_valid()[1]
        byte = x.read(mask, at // 8 // width, at // 8 % width)
        return byte >> (at % 8).astype(byte.dtype) & byte.dtype.type(1) != byte.dtype.type(0)

    def run() -> None:
        for src in sources:
            x.within(src, rows, cols)
        if in_bytes:
            _require_stream(x, mask, rows * cols)
        else:
            _require_bits(x, mask, rows, cols)
        x.each(rows, cols, lambda i, j: lanes.select(bit(i, j), first(i, j), second(i, j)), dst)

    x.when((rows > 0) & (cols > 0), run)


def _number(case: Case, tile: str) -> Callable[[Mover, Any], Lanes]:
    """The scalar as a lane of a tile's element type."""
    kind, type = element(case, tile), case.type("scalar")
    change = taken(case, "scalar", kind)
    if change is None:
        return lambda x, value: x.lane(value, type, kind)
    return lambda x, value: change(x.lane(value, type, kind))


def _require_stream(x: Mover, mask: Tile, bits: int) -> None:
    height, width = mask.get_valid()
    x.require(
        bits <= height * width * 8,
        lambda: fail("PTO-S042", f"{mask.type} has {height}x{width} bytes, not {bits} bits"),
    )


def _require_bits(x: Mover, mask: Tile, rows: int, cols: int) -> None:
    bits = 8 * mask.type.itemsize
    x.within(mask, rows, (cols + (bits - 1)) // bits)


COMPARE = Move(_compare)
COMPARE_SCALAR = Move(_compare_scalar)
SELECT = Move(_select)
SELECT_SCALAR = Move(_select_scalar)

# The mask operand of each body, and the function that gives the bits from one row to the next.
PACKING: dict[int, tuple[str, Callable[[Case], int | None]]] = {
    id(COMPARE): ("dst", lambda case: _row_bits(case, "dst")),
    id(COMPARE_SCALAR): ("dst", _scalar_row_bits),
    id(SELECT): ("mask", lambda case: _row_bits(case, "mask")),
    id(SELECT_SCALAR): ("mask", lambda case: _row_bits(case, "mask")),
}
