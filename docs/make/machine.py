"""The picture of the machine: host, blocks, cores, buffers and pipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

INK, PALE, CUBE, VECTOR, MEMORY = "#24303c", "#f4f6f8", "#dbe8f6", "#e2f0df", "#f7ecd5"
# buffers of the cube, left to right: name, what it holds, left edge, bottom edge, width
CUBE_BUFFERS = (
    ("L1", "mat", 8.0, 36.0, 10.0),
    ("L0A", "left", 26.0, 41.0, 8.0),
    ("L0B", "right", 26.0, 31.0, 8.0),
    ("L0C", "acc", 44.0, 36.0, 10.0),
)


def draw(file: Path) -> None:
    from matplotlib import pyplot as plt  # heavy, and only for pictures

    figure, axes = plt.subplots(figsize=(12, 7.4))
    axes.set(xlim=(0, 100), ylim=(0, 76))
    axes.axis("off")
    _box(axes, 2, 66, 96, 8, PALE)
    axes.text(4, 70, "Host", weight="bold", va="center", color=INK)
    axes.text(
        13,
        70,
        "arrays, streams, events:  kernel[n](x, y)  launches n blocks",
        va="center",
        color=INK,
    )
    for n in range(6):
        _box(axes, 66 + 5 * n, 67.6, 4, 4.8, "white")
        axes.text(68 + 5 * n, 70, f"{n}" if n < 5 else "…", ha="center", va="center", color=INK)
    _arrow(axes, (78, 66), (78, 60.5), "blocks")
    _core(axes)
    _box(axes, 2, 2, 96, 9, MEMORY)
    axes.text(4, 6.5, "Global memory", weight="bold", va="center", color=INK)
    axes.text(21, 6.5, "arrays of all blocks, behind the L2 cache", va="center", color=INK)
    figure.savefig(file, dpi=150, bbox_inches="tight")
    plt.close(figure)


def _core(axes: Any) -> None:
    _box(axes, 2, 15, 96, 45, "white")
    axes.text(4, 57.5, "Core", weight="bold", va="center", color=INK)
    axes.text(10, 57.5, "one of many; runs one block after the other", va="center", color=INK)
    _box(axes, 4, 18, 54, 36, CUBE)
    axes.text(6, 51, "Cube", weight="bold", va="center", color=INK)
    axes.text(12, 51, "scalar unit S, pipes MTE2, MTE1, M, FIX", va="center", color=INK)
    for name, role, x, y, width in CUBE_BUFFERS:
        _buffer(axes, name, role, x, y, width)
    _arrow(axes, (13, 11), (13, 36), "MTE2")
    _arrow(axes, (18, 40), (26, 44), "MTE1")
    _arrow(axes, (18, 38), (26, 34.5), "")
    _arrow(axes, (34, 44), (44, 40.5), "M")
    _arrow(axes, (34, 34.5), (44, 38), "")
    _arrow(axes, (49, 36), (49, 11), "FIX")
    for n, bottom in enumerate((37, 18)):
        _box(axes, 64, bottom, 32, 17, VECTOR)
        axes.text(66, bottom + 14.5, f"Vector sub-block {n}", weight="bold", va="center", color=INK)
        axes.text(66, bottom + 11.8, "S, pipes MTE2, V, MTE3", va="center", color=INK, size=9)
        _buffer(axes, "UB", "vec", 75, bottom + 2, 10)
        _arrow(axes, (85, bottom + 7), (85, bottom + 4), "", bend=-2.2)
        axes.text(89.5, bottom + 5.5, "V", va="center", color=INK, size=9)
    _arrow(axes, (77, 11), (77, 20), "MTE2", label_y=13)
    _arrow(axes, (83, 20), (83, 11), "MTE3", label_y=13)
    axes.annotate(
        "",
        (64, 30),
        (58, 30),
        arrowprops={"arrowstyle": "<->", "color": INK, "linewidth": 1.4, "linestyle": "--"},
    )
    axes.text(61, 32, "queues", ha="center", color=INK, size=9)


def _buffer(axes: Any, name: str, role: str, x: float, y: float, width: float) -> None:
    _box(axes, x, y, width, 7, "white")
    axes.text(x + width / 2, y + 4.6, name, ha="center", va="center", weight="bold", color=INK)
    axes.text(x + width / 2, y + 2.0, role, ha="center", va="center", color=INK, size=9)


def _box(axes: Any, x: float, y: float, width: float, height: float, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.8"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, style, facecolor=colour, edgecolor=INK, linewidth=1.1)
    )


def _arrow(
    axes: Any,
    start: tuple[float, float],
    end: tuple[float, float],
    label: str,
    *,
    bend: float = 0.0,
    label_y: float | None = None,
) -> None:
    shape = {"arrowstyle": "->", "color": INK, "linewidth": 1.4}
    if bend:
        shape["connectionstyle"] = f"arc3,rad={bend}"
    axes.annotate("", end, start, arrowprops=shape)
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    if start[0] == end[0]:
        is_down = start[1] > end[1]
        ha, x = ("left", x + 0.8) if is_down else ("right", x - 0.8)
        axes.text(x, label_y or y, label, ha=ha, va="center", color=INK)
    else:
        axes.text(x, y + 1.4, label, ha="center", color=INK, size=9)
