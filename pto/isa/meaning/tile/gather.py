"""Gather and scatter on tiles: by index, by comparison or by pattern.

An index counts elements of a tile in rows of its physical width, and is unsigned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.errors import PtoError, fail
from pto.core.primitives import less_of
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, const, equal, greater, raw, select
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element, region
from pto.isa.rules.rule import Case

Places = npt.NDArray[np.int64]
_GREATEST = np.iinfo(np.int64).max


def unsigned(values: Lanes) -> Lanes:
    """Elements of an index tile as int64; a value above its range becomes the greatest int64."""
    bits = raw(values)
    if bits.dtype.itemsize == 8:
        bits = less_of(bits, const(bits, _GREATEST))
    return bits.astype(np.int64)


def stray(at: Places, bound: int, source: str) -> PtoError:
    """The error for the first index that is too large."""
    first = tuple(int(n) for n in np.argwhere(at >= bound)[0])
    return fail("PTO-M180", f"index {int(at[first])} at {first} is outside {source}")


def _index(x: Mover, tile: Tile, r: Any, c: Any) -> Lanes:
    """Elements of an index tile, read as unsigned."""
    return unsigned(x.read(tile, r, c))


def _require_inside(x: Mover, tile: Tile, rows: int, cols: int, bound: int, source: str) -> None:
    """Require that the first rows x cols elements of an index tile are below a bound."""
    fine = x.all(rows, cols, lambda i, j: _index(x, tile, i, j) < bound)
    x.require(fine, lambda: stray(unsigned(region(tile, rows, cols)), bound, source))


def _count(x: Mover, tile: Tile) -> int:
    """The number of elements that an index can address: with the gaps between rows in layout ND."""
    return x.items(tile) if tile.type.layout.name == "ND" else tile.type.rows * tile.type.cols


def _counted(x: Mover, tile: Tile, k: Any, where: Lanes | None) -> Lanes:
    """The elements at these indices."""
    if tile.type.layout.name == "ND":
        return x.item(tile, k, where)
    return x.read(tile, k // tile.type.cols, k % tile.type.cols, where)


# ---- tgather


_PARTS = ("indices", "kValue", "cdst", "tmp", "maskPattern")
_FORM_OF = {
    "indices": "index",
    "indices tmp": "index",
    "kValue cdst tmp": "compare",
    "maskPattern": "mask",
}


def parts(case: Case) -> list[str]:
    """The operands and attributes beside src and dst."""
    return [n for n in _PARTS if case.type(n) or n in case.op.attrs]


def form(case: Case) -> str:
    """index, compare or mask; "" if the operands match no form."""
    return _FORM_OF.get(" ".join(parts(case)), "")


def _by_index(case: Case) -> Callable[..., None]:
    harmless = case.profile.stray_index == "harmless"

    def gather(x: Mover, src: Tile, dst: Tile, cdst: None, indices: Tile, *rest: Any) -> None:
        (rows, cols), bound = dst.get_valid(), _count(x, src)
        x.within(indices, rows, cols)

        def cell(i: Lanes, j: Lanes) -> Lanes:
            return _counted(x, src, _index(x, indices, i, j), None)

        def careful(i: Lanes, j: Lanes) -> Lanes:
            at = _index(x, indices, i, j)
            inside = at < bound
            value = _counted(x, src, at, inside)
            return select(inside, value, const(value, 0))

        if harmless:
            x.when(
                x.all(rows, cols, lambda i, j: _index(x, indices, i, j) < bound),
                lambda: x.each(rows, cols, cell, dst),
                lambda: x.each(rows, cols, careful, dst),
            )
            return
        _require_inside(x, indices, rows, cols, bound, str(src.type))
        x.each(rows, cols, cell, dst)

    return gather


def _by_comparison(case: Case) -> Callable[..., None]:
    """Columns of src's valid region that satisfy the comparison. The result is an index tile."""
    test = {"eq": equal, "gt": greater}[case.word("cmpMode") or "eq"]
    value_type, src_type = case.type("kValue"), element(case, "src")
    offset, kind = int(case.word("offset") or 0), element(case, "dst")

    def gather(
        x: Mover, src: Tile, dst: Tile, cdst: Tile, indices: None, tmp: Tile, value: Any, *rest: Any
    ) -> None:
        (rows, cols), (height, width) = src.get_valid(), dst.get_valid()
        step = src.pitch if src.type.layout.name == "ND" else src.type.cols

        def matches(i: Lanes, j: Lanes) -> Lanes:
            return test(x.read(src, i, j), x.lane(value, value_type, src_type))

        def fits(i: Lanes, j: Lanes) -> Lanes:
            number = x.fold(cols, (np.int64(0),), lambda k, n: (n + matches(i, k).astype(n.dtype),))
            return number[0] <= width

        def cell(i: Lanes, j: Lanes) -> tuple[Lanes, Lanes]:
            return (i * step + j + offset).astype(kind.storage), matches(i, j)

        fits_all = (rows <= height) & (rows <= x.items(cdst)) & x.all(rows, 1, fits)
        x.require(fits_all, lambda: _no_room(dst, cdst, matches(*_numbers(rows, cols)).sum(axis=1)))
        x.compress(rows, cols, cell, dst, cdst)

    return gather


def _numbers(rows: int, cols: int) -> tuple[Lanes, Lanes]:
    return np.arange(rows)[:, None], np.arange(cols)[None, :]


def _no_room(dst: Tile, counts: Tile, number: Places) -> PtoError:
    rows, cols = dst.get_valid()
    if number.size > rows or number.max() > cols:
        at = int(number.argmax())
        return fail(
            "PTO-V180",
            f"{number.size} rows are searched and row {at} has {int(number[at])} matches: dst is "
            f"{rows}x{cols}",
        )
    return fail("PTO-V180", f"{number.size} rows are counted, but {counts.type} is too small")


PICKED = {  # (first column, step): the pattern is read from right to left
    "P0101": (0, 2),
    "P1010": (1, 2),
    "P0001": (0, 4),
    "P0010": (1, 4),
    "P0100": (2, 4),
    "P1000": (3, 4),
    "P1111": (0, 1),
}


def _by_pattern(case: Case) -> Callable[..., None]:
    """Select by pattern into one row of dst per row of src.

    If the widths differ, into one stream.
    """
    first, step = PICKED[case.word("maskPattern") or "P1111"]
    kind = element(case, "dst").numpy

    def gather(x: Mover, src: Tile, dst: Tile, *rest: Any) -> None:
        (rows, cols), (height, width) = src.get_valid(), dst.get_valid()
        count = (cols - first + step - 1) // step

        def line(i: Lanes, j: Lanes) -> Lanes:
            return x.read(src, i, first + j * step).view(kind)

        def cell(i: Lanes, j: Lanes) -> Lanes:
            k = i * width + j
            picked = k < rows * count
            value = x.read(src, k // count, first + k % count * step, picked)
            return select(picked, value.view(kind), x.read(dst, i, j).view(kind))

        def lines() -> None:
            x.within(src, height, cols)
            x.each(height, width, line, dst)

        def flat() -> None:
            x.require(
                rows * count <= height * width,
                lambda: fail(
                    "PTO-V180",
                    f"{rows} rows of {count} elements are selected, but dst is {height}x{width}",
                ),
            )
            x.when(rows * count > 0, lambda: x.each(height, width, cell, dst))

        # one row takes as many as it can hold; further elements are stored after its region
        fits = (count == width) | ((rows == 1) & (height == 1) & (count > width))
        x.when(fits, lines, flat)

    return gather


def _gather(case: Case) -> Callable[..., None]:
    return _FORMS[form(case)](case)


def _undefined(case: Case) -> Callable[..., None]:
    raise fail("PTO-S055", f"'{case.op.name}' op: its operands match none of its forms")


_FORMS = {"index": _by_index, "compare": _by_comparison, "mask": _by_pattern, "": _undefined}
GATHER = Move(_gather)

# ---- tgatherb


def _blocks(case: Case) -> Callable[..., None]:
    """Copy blocks of 32 bytes of src in memory order, from any byte on."""
    kind, harmless = element(case, "dst"), case.profile.stray_index == "harmless"
    per_block = BLOCK_BYTE_SIZE // kind.itemsize

    def gather(x: Mover, src: Tile, offsets: Tile, dst: Tile) -> None:
        rows, cols = dst.get_valid()
        nbytes, count = x.items(src) * src.type.itemsize, cols // per_block
        starts = max(0, nbytes - BLOCK_BYTE_SIZE + 1)
        x.require(
            cols % per_block == 0,
            lambda: fail(
                "PTO-S056",
                f"a row of dst has {cols} elements, not a multiple of {per_block} (32 bytes)",
            ),
        )
        x.within(offsets, rows, count)
        if not harmless:
            source = f"the {nbytes} bytes of {src.type}"
            _require_inside(x, offsets, rows, count, starts, source)

        def start(i: Lanes, k: Lanes) -> tuple[Lanes, Lanes | None]:
            at = _index(x, offsets, i, k)
            return at, at < starts if harmless else None

        x.within(dst, rows, cols)
        x.blocks(rows, count, BLOCK_BYTE_SIZE, start, src, dst)

    return gather


GATHER_BLOCKS = Move(_blocks)

# ---- tscatter


def _scatter(case: Case) -> Callable[..., None]:
    """Scatter over the valid region of indexes; the last writer wins."""
    kind, clears = element(case, "dst"), case.profile.scatter_clears

    def scatter(x: Mover, src: Tile, indexes: Tile, dst: Tile) -> None:
        (rows, cols), bound = indexes.get_valid(), x.items(dst)
        x.within(src, rows, cols)
        _require_inside(x, indexes, rows, cols, bound, str(dst.type))

        def cell(i: Lanes, j: Lanes) -> tuple[Lanes, Lanes, None]:
            return _index(x, indexes, i, j), x.read(src, i, j).view(kind.numpy), None

        if clears:
            zero, shape = np.zeros((), kind.storage), dst.type.shape
            x.when((rows > 0) & (cols > 0), lambda: x.each(*shape, lambda i, j: zero, dst))
        x.place(rows, cols, cell, dst)

    return scatter


def _spread(case: Case) -> Callable[..., None]:
    """Scatter src to the positions of dst that a pattern selects, with zeros between them."""
    first, step = PICKED[case.word("maskPattern") or "P1111"]
    by_row = case.word("axis") != "col"

    def spread(x: Mover, src: Tile, indexes: None, dst: Tile) -> None:
        rows, cols = src.get_valid()
        zero = np.zeros((), element(case, "dst").storage)
        tall, wide = (1, step) if by_row else (step, 1)
        x.within(dst, rows * tall, cols * wide)

        def cell(i: Lanes, j: Lanes) -> Lanes:
            at = j if by_row else i
            row, col = (i, j // step) if by_row else (i // step, j)
            return select(at % step == first, x.read(src, row, col).view(zero.dtype), zero)

        x.each(rows * tall, cols * wide, cell, dst)

    return spread


def _scattered(case: Case) -> Callable[..., None]:
    return _spread(case) if case.word("maskPattern") else _scatter(case)


SCATTER = Move(_scattered)
