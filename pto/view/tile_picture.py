"""A tile as a picture: the memory address of each element, so that the layout is visible.

Three panels share one colour scale, the address: the tile cut into its boxes, one box with the
offset of every element, and memory as a strip. Offsets come from `core/layout.py` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.layout import Layout
from pto.core.tile import TileType
from pto.view.figure import GREY, INK, PALE, TITLE, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "viridis"
THREAD, VALID = "#9ec5e0", "#e8590c"
LENS: dict[str, Any] = {"edgecolor": "#ff4f8b", "linewidth": 2.6, "linestyle": (0, (4, 2))}

MOST_SAMPLES = 512  # rows and columns that are computed; a larger tile is sampled
MOST_PIECES = 1 << 16  # parts that are put in order; a picture with more is not readable
MOST_NUMBERS = 160  # parts that get a number
MOST_BORDERS = 65  # lines in one direction; more would cover the tile
MOST_STEPS = 64  # boxes the path visits
MOST_LINES = 6  # rows or columns the path visits
CORNER = 16  # side of the close-up of a tile without boxes

# The letters of a layout are pen strokes: N goes down and back to the top, Z across and back.
STROKES = {"Z": "row by row, as a pen draws Z", "N": "column by column, as a pen draws N"}


@dataclass(frozen=True)
class Pieces:
    """A tile cut into contiguous parts of memory: boxes, or rows or columns if it has no boxes."""

    height: int
    width: int
    origins: npt.NDArray[np.intp]  # (row, column) of each part, in memory order
    starts: npt.NDArray[np.intp]  # element offset of each

    @property
    def centres(self) -> npt.NDArray[np.float64]:
        """(x, y) of the centre of each part."""
        middle = np.array([self.width / 2, self.height / 2])
        return np.asarray(self.origins[:, ::-1] + middle, np.float64)


def draw(tile: TileType, file: Path) -> None:
    """Write the picture of `tile` to `file`; its suffix selects the format (png, svg, pdf)."""
    save(picture(tile), file)


def picture(tile: TileType) -> Figure:
    """The picture as a matplotlib figure, for a notebook or a page."""
    pieces = cut(tile)
    figure = new_figure((13, 7.2), _headline(tile), "a tile")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.5, 1), height_ratios=(1, 0.1))
    overview = figure.add_subplot(grid[0, 0])
    close = figure.add_subplot(grid[0, 1])
    memory = figure.add_subplot(grid[1, :])
    _draw_tile(overview, tile, pieces)
    _draw_close_up(close, tile)
    _draw_memory(memory, tile, pieces)
    return figure


def cut(tile: TileType) -> Pieces:
    """The parts of a tile in memory order."""
    height, width = _piece_shape(tile)
    rows = np.arange(0, tile.rows, height, dtype=np.intp)
    cols = np.arange(0, tile.cols, width, dtype=np.intp)
    if len(rows) * len(cols) > MOST_PIECES:
        raise fail(
            "PTO-U012",
            f"a {tile.rows}x{tile.cols} tile is {len(rows) * len(cols)} pieces of "
            f"{height}x{width}; a picture shows at most {MOST_PIECES}",
            help="draw a smaller tile with the same layout",
        )
    starts = tile.offset(rows[:, None], cols[None, :]).ravel()
    order = np.argsort(starts)
    origins = np.stack(np.meshgrid(rows, cols, indexing="ij"), axis=-1).reshape(-1, 2)
    return Pieces(height, width, origins[order], starts[order])


def strokes(layout: Layout) -> tuple[str, str | None]:
    """The order of boxes and of elements in a box; without boxes, of all elements and None."""
    if layout.is_boxed:
        return STROKES[layout.name[0]], STROKES[layout.name[1]]
    return STROKES["Z" if layout.name == "ND" else "N"], None


def _piece_shape(tile: TileType) -> tuple[int, int]:
    if tile.layout.is_boxed:
        return tile.box
    return (1, tile.cols) if tile.layout.name == "ND" else (tile.rows, 1)


def _valid(tile: TileType) -> tuple[int, int]:
    """The valid region; a size known only at run time is drawn as the whole tile."""
    rows, cols = tile.valid
    return tile.rows if rows is None else rows, tile.cols if cols is None else cols


def _headline(tile: TileType) -> str:
    boxes = f" in boxes of {tile.box[0]}x{tile.box[1]}" if tile.layout.is_boxed else ""
    shape = f"{tile.rows}x{tile.cols} {tile.dtype.name}"
    return f"{tile.layout.name}: {tile.role.value} tile of {shape}{boxes}, {tile.nbytes} bytes"


def _draw_tile(axes: Axes, tile: TileType, pieces: Pieces) -> None:
    rows, cols = _sample(tile.rows), _sample(tile.cols)
    axes.imshow(
        tile.offset(rows[:, None], cols[None, :]),
        cmap=COLOURS,
        extent=(0, tile.cols, tile.rows, 0),
        aspect="auto" if max(tile.shape) > 3 * min(tile.shape) else "equal",
        interpolation="nearest",
    )
    _draw_borders(axes, tile, pieces)
    _draw_valid(axes, tile)
    _draw_lens(axes, tile)
    if tile.layout.is_boxed:
        _draw_box_path(axes, pieces)
    else:
        _draw_line_path(axes, pieces)
    unit = "Boxes" if tile.layout.is_boxed else "Elements"
    axes.set_title(f"The tile. {unit} go {strokes(tile.layout)[0]}", **TITLE)
    axes.set_xlabel(_column_label(tile))
    axes.set_ylabel("row")
    axes.set_xticks(_ticks(tile.cols, pieces.width))
    axes.set_yticks(_ticks(tile.rows, pieces.height))


def _draw_borders(axes: Axes, tile: TileType, pieces: Pieces) -> None:
    across = np.arange(0, tile.rows + 1, pieces.height)
    down = np.arange(0, tile.cols + 1, pieces.width)
    style: dict[str, Any] = {"color": PALE, "linewidth": 1.4 if max(tile.shape) <= 512 else 0.4}
    if len(across) <= MOST_BORDERS:
        axes.hlines(across, 0, tile.cols, **style)
    if len(down) <= MOST_BORDERS:
        axes.vlines(down, 0, tile.rows, **style)


def _draw_box_path(axes: Axes, pieces: Pieces) -> None:
    """Arrows from box to box in memory order, with numbers if they fit."""
    roomy = len(pieces.centres) <= 40
    _draw_arrows(axes, pieces.centres[:MOST_STEPS], gap=11 if roomy else 8)
    if len(pieces.centres) > MOST_NUMBERS:
        return
    for number, (x, y) in enumerate(pieces.centres):
        _badge(axes, x, y, number, size=12 if roomy else 8)


def _draw_line_path(axes: Axes, pieces: Pieces) -> None:
    """Along the first rows (or columns), from the end of each back to the start of the next."""
    along = np.array([max(pieces.width - 1, 0), max(pieces.height - 1, 0)])
    first = pieces.origins[:MOST_LINES, ::-1] + 0.5
    ends = np.stack([first, first + along], axis=1).reshape(-1, 2)
    _draw_arrows(axes, np.asarray(ends, np.float64), gap=0)


def _draw_arrows(axes: Axes, points: npt.NDArray[np.float64], gap: float) -> None:
    from matplotlib.patheffects import Normal, Stroke

    arrow = {
        "arrowstyle": "-|>,head_width=0.25,head_length=0.5",
        "color": PALE,
        "linewidth": 1.8,
        "shrinkA": 0,
        "shrinkB": gap,
        "path_effects": [Stroke(linewidth=3.6, foreground=INK, alpha=0.6), Normal()],
    }
    for start, end in pairwise(points):
        axes.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=arrow)


def _badge(axes: Axes, x: float, y: float, number: int, size: float) -> None:
    circle = {"boxstyle": "circle,pad=0.25", "facecolor": PALE, "edgecolor": INK, "linewidth": 0.8}
    axes.text(x, y, str(number), ha="center", va="center", size=size, color=INK, bbox=circle)


def _draw_valid(axes: Axes, tile: TileType) -> None:
    """Hatch the part outside the valid region and frame the part inside."""
    rows, cols = _valid(tile)
    if (rows, cols) == tile.shape:
        return
    from matplotlib.patches import Rectangle

    veil: dict[str, Any] = {
        "facecolor": (1, 1, 1, 0.62),
        "edgecolor": (0.1, 0.1, 0.1, 0.5),
        "hatch": "//",
    }
    below = Rectangle((0, rows), tile.cols, tile.rows - rows, linewidth=0, **veil)
    beside = Rectangle((cols, 0), tile.cols - cols, rows, linewidth=0, **veil)
    frame = Rectangle((0, 0), cols, rows, fill=False, edgecolor=VALID, linewidth=3, clip_on=False)
    frame.set_zorder(3)  # above the outlines of boxes
    for patch in (below, beside, frame):
        axes.add_patch(patch)


def _draw_lens(axes: Axes, tile: TileType) -> None:
    """Frame the part that the close-up shows, in the colour of the close-up's frame."""
    from matplotlib.patches import Rectangle

    height, width = _close_up_shape(tile)
    if (height, width) == tile.shape:
        return  # it shows everything: a frame would only hide the valid region's
    inset = 0.02 * min(height, width)
    lens = Rectangle((inset, inset), width - 2 * inset, height - 2 * inset, fill=False)
    lens.set(**LENS, zorder=3)
    axes.add_patch(lens)


def _close_up_shape(tile: TileType) -> tuple[int, int]:
    height, width = tile.box if tile.layout.is_boxed else (CORNER, CORNER)
    return min(height, tile.rows), min(width, tile.cols)


def _draw_close_up(axes: Axes, tile: TileType) -> None:
    """The first box (or corner): every element with its offset, joined in memory order."""
    height, width = _close_up_shape(tile)
    r, c = np.mgrid[0:height, 0:width]
    offsets = tile.offset(r, c)
    _draw_thread(axes, r, c, offsets)
    size = 8.5 if width <= 8 else 7.5 if width <= 16 else 5
    shield = {"boxstyle": "square,pad=0.15", "facecolor": PALE, "edgecolor": "none"}
    valid_rows, valid_cols = _valid(tile)
    for row, col, offset in zip(r.flat, c.flat, offsets.flat, strict=True):
        colour = INK if row < valid_rows and col < valid_cols else GREY
        axes.text(
            col, row, str(offset), ha="center", va="center", size=size, color=colour, bbox=shield
        )
    axes.set(xlim=(-0.6, width - 0.4), ylim=(height - 0.4, -0.6), xlabel="column", ylabel="row")
    inside = strokes(tile.layout)[1]
    title = f"Box 0, element offsets: {inside}" if inside else "The corner, element offsets"
    axes.set_title(title, **TITLE)
    axes.set_xticks(_ticks(width, 1)[:-1])
    axes.set_yticks(_ticks(height, 1)[:-1])
    for spine in axes.spines.values():
        spine.set(**LENS)


def _draw_thread(
    axes: Axes, r: npt.NDArray[Any], c: npt.NDArray[Any], offsets: npt.NDArray[Any]
) -> None:
    """Connect consecutive elements in memory: solid to a neighbour, dotted for a jump."""
    from matplotlib.collections import LineCollection

    order = np.argsort(offsets, axis=None)
    points = np.stack([c.flat, r.flat], axis=1)[order]
    follows = np.diff(offsets.ravel()[order]) == 1
    near = np.abs(np.diff(points, axis=0)).max(axis=1) == 1
    segments = np.stack([points[:-1], points[1:]], axis=1)
    axes.add_collection(LineCollection(list(segments[follows & near]), colors=THREAD, linewidths=2))
    jumps = list(segments[follows & ~near])
    axes.add_collection(LineCollection(jumps, colors=THREAD, linewidths=1, linestyles=":"))


def _draw_memory(axes: Axes, tile: TileType, pieces: Pieces) -> None:
    """Memory as a strip: the colour scale of the tile, divided into parts."""
    strip = np.linspace(0, 1, MOST_SAMPLES)[None, :]
    axes.imshow(strip, cmap=COLOURS, extent=(0, tile.nbytes, 0, 1), aspect="auto")
    axes.set_yticks([])
    axes.set_xlabel("byte offset from the base of the tile")
    unit = "box" if tile.layout.is_boxed else "row" if pieces.height == 1 else "column"
    axes.set_title(f"Memory, {unit} after {unit}. The same colour is the same address", **TITLE)
    edges = np.append(pieces.starts * tile.itemsize, tile.nbytes)
    step = -(-len(pieces.starts) // 16)
    axes.vlines(edges[:: max(1, step // 4)], 0, 1, color=PALE, linewidth=1)
    axes.set_xticks(np.unique([*edges[:: step if step == 1 else 2 * step], edges[-1]]))
    for number in range(0, len(pieces.starts), step):
        middle = (edges[number] + edges[number + 1]) / 2
        _badge(axes, middle, 0.5, number, size=9)


def _column_label(tile: TileType) -> str:
    rows, cols = _valid(tile)
    if (rows, cols) == tile.shape:
        return "column"
    return f"column      (framed: the valid region, {rows}x{cols}; hatched: outside it)"


def _sample(size: int) -> npt.NDArray[np.intp]:
    return np.linspace(0, size - 1, min(size, MOST_SAMPLES)).astype(np.intp)


def _ticks(size: int, step: int) -> npt.NDArray[np.intp]:
    """About eight multiples of `step`, and the end."""
    every = step if step < size else 1
    wanted = -(-size // (8 * every)) * every
    return np.unique(np.append(np.arange(0, size, wanted, dtype=np.intp), size))
