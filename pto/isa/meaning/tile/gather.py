"""Elements of tiles picked and placed by index, by comparison or by pattern.

An index counts elements of a tile in rows of its physical width, and is unsigned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.errors import PtoError, fail
from pto.core.tile import Tile
from pto.isa.meaning.handle.view import as_tile
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes, equal, greater
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import element, put, region, scalar
from pto.isa.rules.rule import Case

Places = npt.NDArray[np.int64]


def places(tile: Tile, rows: int, cols: int) -> Places:
    """The first rows x cols elements of an index tile, read as unsigned."""
    found = region(tile, rows, cols)
    return found.view(tile.type.dtype.storage).astype(np.int64)


def stray(at: Places, bound: int, what: str) -> PtoError:
    """The error for the first index that is too large."""
    first = tuple(int(n) for n in np.argwhere(at >= bound)[0])
    return fail("PTO-M180", f"index {int(at[first])} at {first} is outside {what}")


def _flat(tile: Tile) -> Lanes:
    """All elements row by row, in place where they lie so; with what lies between rows."""
    if tile.type.layout.name == "ND":
        return tile.items.view(tile.type.dtype.numpy)
    return tile.read().reshape(-1)


def _width(tile: Tile) -> int:
    """Elements of `_flat` from one row to the next."""
    return tile.pitch if tile.type.layout.name == "ND" else tile.type.cols


# ---- tgather


_PARTS = ("indices", "kValue", "cdst", "tmp", "maskPattern")
_FORM_OF = {
    "indices": "index",
    "indices tmp": "index",
    "kValue cdst tmp": "compare",
    "maskPattern": "mask",
}


def parts(case: Case) -> list[str]:
    """What the program wrote beside src and dst."""
    return [n for n in _PARTS if case.type(n) or n in case.op.attrs]


def form(case: Case) -> str:
    """index, compare, mask, or nothing where the parts do not make a form."""
    return _FORM_OF.get(" ".join(parts(case)), "")


def _by_index(case: Case) -> Callable[..., None]:
    types = [case.type(name) for name in ("src", "dst", "indices")]
    harmless = case.profile.stray_index == "harmless"

    def gather(core: Machine, src: Any, dst: Any, cdst: Any, indices: Any, *rest: Any) -> None:
        source, out, index = map(as_tile, (src, dst, indices), types)
        rows, cols = out.get_valid()
        if rows == 0 or cols == 0:
            return
        at, flat = places(index, rows, cols), _flat(source)
        if at.max() < flat.size:
            found = flat[at]
        elif harmless:
            inside = at < flat.size
            found = np.where(inside, flat[np.where(inside, at, 0)], flat.dtype.type(0))
        else:
            raise stray(at, flat.size, str(source.type))
        put(out, rows, cols, found)

    return gather


def _by_comparison(case: Case) -> Callable[..., None]:
    """Domain: src's valid region. What is found serves the index form."""
    types = [case.type(name) for name in ("src", "dst", "cdst")]
    test = {"eq": equal, "gt": greater}[case.word("cmpMode") or "eq"]
    become = scalar(case.type("kValue"), element(case, "src"))
    offset, kind = int(case.word("offset") or 0), element(case, "dst")

    def gather(
        core: Machine, src: Any, dst: Any, cdst: Any, indices: Any, tmp: Any, value: Any
    ) -> None:
        source, out, counts = map(as_tile, (src, dst, cdst), types)
        rows, cols = source.get_valid()
        if rows == 0:
            return
        found = test(region(source, rows, cols), become(value))
        number = found.sum(axis=1)
        _require_room(out, counts, number)
        r, c = np.nonzero(found)
        start = np.cumsum(number) - number
        held = out.read()
        bits = (offset + r * _width(source) + c).astype(kind.storage)
        held.view(kind.storage)[r, np.arange(r.size) - start[r]] = bits
        out.write(held)
        counts.items[:rows] = number

    return gather


def _require_room(dst: Tile, counts: Tile, number: Places) -> None:
    rows, cols = dst.get_valid()
    if number.size > rows or number.max() > cols:
        at = int(number.argmax())
        raise fail(
            "PTO-V180",
            f"{number.size} rows are searched and row {at} has {int(number[at])} matches: dst is "
            f"{rows}x{cols}",
        )
    if number.size > counts.items.size:
        raise fail("PTO-V180", f"{number.size} rows are counted, {counts.type} is too small")


_PICKED = {  # (first column, step): the pattern is read from right to left
    "P0101": (0, 2),
    "P1010": (1, 2),
    "P0001": (0, 4),
    "P0010": (1, 4),
    "P0100": (2, 4),
    "P1000": (3, 4),
    "P1111": (0, 1),
}


def _by_pattern(case: Case) -> Callable[..., None]:
    """Rows of dst, one for each of src; where widths differ, all that is picked, row by row."""
    src_type, dst_type = case.type("src"), case.type("dst")
    first, step = _PICKED[case.word("maskPattern") or "P1111"]
    chosen, kind = slice(first, None, step), element(case, "dst").numpy

    def gather(core: Machine, src: Any, dst: Any, *rest: Any) -> None:
        source, out = as_tile(src, src_type), as_tile(dst, dst_type)
        (rows, cols), (height, width) = source.get_valid(), out.get_valid()
        count = (cols - first + step - 1) // step
        if count == width:
            put(out, height, width, region(source, height, cols)[:, chosen].view(kind))
            return
        found = region(source, rows, cols)[:, chosen].view(kind).reshape(-1)
        if found.size > height * width:
            raise fail(
                "PTO-V180", f"{rows} rows of {count} elements are picked: dst is {height}x{width}"
            )
        if found.size < height * width:
            held = out.read_valid().view(kind).reshape(-1)
            held[: found.size] = found
            found = held
        put(out, height, width, found.reshape(height, width))

    return gather


def _gather(case: Case) -> Callable[..., None]:
    return _FORMS[form(case)](case)


def _undefined(case: Case) -> Callable[..., None]:
    raise fail("PTO-S055", f"'{case.op.name}' op has the parts of no form")


_FORMS = {"index": _by_index, "compare": _by_comparison, "mask": _by_pattern, "": _undefined}
GATHER = Do(_gather)

# ---- tgatherb


def _blocks(case: Case) -> Callable[..., None]:
    """Blocks of 32 bytes of src as it lies in memory, from any byte on."""
    types = [case.type(name) for name in ("src", "offsets", "dst")]
    kind, harmless = element(case, "dst"), case.profile.stray_index == "harmless"
    per_block = BLOCK_BYTE_SIZE // kind.itemsize

    def gather(core: Machine, src: Any, offsets: Any, dst: Any) -> None:
        source, index, out = map(as_tile, (src, offsets, dst), types)
        rows, cols = out.get_valid()
        count, rest = divmod(cols, per_block)
        if rest:
            raise fail("PTO-S056", f"a row of dst is {cols} elements, no blocks of {per_block}")
        if rows == 0 or count == 0:
            return
        at, raw = places(index, rows, count), source.items.view(np.uint8)
        starts = max(0, raw.size - BLOCK_BYTE_SIZE + 1)
        anywhere = source.memory.strided(source.address, (starts, BLOCK_BYTE_SIZE), (1, 1))
        if at.max() < starts:
            found = anywhere[at]
        elif harmless:
            inside = at < starts
            found = np.array(region(out, rows, cols), order="C").view(np.uint8)
            found = found.reshape(rows, count, BLOCK_BYTE_SIZE)
            found[inside] = anywhere[at[inside]]
        else:
            raise stray(at, starts, f"the {raw.size} bytes of {source.type}")
        put(out, rows, cols, found.reshape(rows, -1).view(kind.numpy))

    return gather


GATHER_BLOCKS = Do(_blocks)

# ---- tscatter


def _scatter(case: Case) -> Callable[..., None]:
    """Domain: the valid region of indexes; the last writer wins."""
    types = [case.type(name) for name in ("src", "indexes", "dst")]
    clears = case.profile.scatter_clears

    def scatter(core: Machine, src: Any, indexes: Any, dst: Any) -> None:
        source, index, out = map(as_tile, (src, indexes, dst), types)
        rows, cols = index.get_valid()
        if rows == 0 or cols == 0:
            return
        at = places(index, rows, cols)
        values = region(source, rows, cols).flatten()
        items = out.items
        if at.max() >= items.size:
            raise stray(at, items.size, str(out.type))
        if clears:
            out.write(np.zeros(out.type.shape, items.dtype))
        # a list of indices is assigned in its order, the last of equal ones last (NumPy quickstart)
        items[at.reshape(-1)] = values.view(items.dtype)

    return scatter


SCATTER = Do(_scatter)
