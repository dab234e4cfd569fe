"""HTML of tiles and kernels for notebooks. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import decode
from pto.core.excerpt import GAP, excerpt
from pto.core.html import block
from pto.core.tile import Tile

_MOST = 16  # rows and columns shown
_CELL = "padding:1px 6px;text-align:right;border:1px solid #8884"
_VALID = f"{_CELL};background:#4a7fd033"
_OUTSIDE = f"{_CELL};color:#888"
_ORDER = "font-size:65%;color:#888;margin-left:3px"


def tile_html(tile: Tile) -> str:
    """A table of values; the valid region is shaded, and small numbers show the memory order."""
    rows, cols = tile.get_valid()
    values, order = decode(tile.type.dtype, tile.read()), _order(tile)
    picked = [
        excerpt(size, edge, _MOST) for size, edge in zip(values.shape, (rows, cols), strict=True)
    ]
    per_item = tile.type.dtype.values_per_item
    head = "".join(_head(c) for c in picked[1])
    lines = [f"<tr><th></th>{head}</tr>"]
    for r in picked[0]:
        cells = (
            _cell(values, order, r, c, r < rows and c < cols * per_item, per_item)
            for c in picked[1]
        )
        lines.append(f"<tr>{_head(r)}{''.join(cells)}</tr>")
    address = f"{tile.memory.space.value.upper()} {tile.address:#x}"
    title = f"{tile.type} at {address}, valid {rows}x{cols}; small numbers: order in memory"
    table = f'<table style="border-collapse:collapse">{"".join(lines)}</table>'
    return f"<div><div>{escape(title)}</div>{table}</div>"


def _order(tile: Tile) -> npt.NDArray[np.intp]:
    """The storage position of each element; -1 for elements that compact storage leaves out."""
    offsets = tile.offsets()
    order = np.full(tile.type.shape, -1, np.intp)
    order[: offsets.shape[0], : offsets.shape[1]] = offsets
    return order


def _head(number: int) -> str:
    return f'<th style="{_CELL}">{"…" if number == GAP else number}</th>'


def _cell(
    values: npt.NDArray[Any],
    order: npt.NDArray[np.intp],
    row: int,
    col: int,
    inside: bool,
    per_item: int,
) -> str:
    if GAP in (row, col):
        return f'<td style="{_CELL}">…</td>'
    item = int(order[row, col // per_item])
    mark = "" if item < 0 else f'<span style="{_ORDER}">{item}</span>'
    return f'<td style="{_VALID if inside else _OUTSIDE}">{values[row, col]:.5g}{mark}</td>'


def kernel_html(
    name: str, profile: str, parameters: Iterable[tuple[str, str]], doc: str | None, text: str
) -> str:
    """A kernel as HTML: parameters, profile, and the program last traced."""
    listed = ", ".join(f"<b>{escape(p)}</b>: {escape(kind)}" for p, kind in parameters)
    description = f"<div>{escape(doc.strip())}</div>" if doc else ""
    title = f"kernel <b>{escape(name)}</b>({listed}), profile {escape(profile)}"
    return f"<div><div>{title}</div>{description}{block(escape(text), '#4a7fd0')}</div>"
