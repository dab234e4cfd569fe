"""A memory plan as a picture: program lines on the x axis, addresses on the y axis.

One panel for each local buffer of one function, one rectangle per allocation. Lifetimes and
addresses come from the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pto.core.errors import fail
from pto.ir.liveness import Lifetime
from pto.plan.buffers import BufferUse, FunctionPlan, Placed
from pto.view.figure import GREY, INK, TITLE, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 13.0
MOST_BUFFERS = 4000  # rectangles; a picture with more is not readable
TALLEST = 18.0  # inches
# Light colours on which text is readable; neighbours in the list differ in hue.
COLOURS = (
    "#8ecae6", "#ffd166", "#a3d9a5", "#f4a6a0", "#cdb4db",
    "#f6bd60", "#84dcc6", "#e0aaff", "#bde0fe", "#d4c685",
)  # fmt: skip
TAKEN = "#dddddd"
HATCH: dict[str, Any] = {"hatch": "///", "edgecolor": (0.1, 0.1, 0.1, 0.22)}
PEAK: dict[str, Any] = {"color": "#d00000", "linewidth": 1.2, "linestyle": (0, (1, 2))}
LIMIT: dict[str, Any] = {"color": "#d00000", "linewidth": 1.6}


@dataclass(frozen=True, slots=True)
class Bar:
    """One allocation as a rectangle: its lifetime and its addresses."""

    placed: Placed
    left: int
    right: int

    @property
    def name(self) -> str:
        return self.placed.buffer.name


class LineAxis:
    """Positions of a function as lines of its source; if it has none, the positions themselves."""

    def __init__(self, plan: FunctionPlan) -> None:
        self.plan = plan
        self.has_lines = plan.lines(plan.times.whole) is not None
        self.loops = [op for op in plan.times.order if op.is_loop]
        self.label = "line of the program" if self.has_lines else "operation of the function"

    def span(self, alive: Lifetime) -> tuple[int, int]:
        """From the start of the first line to the end of the last."""
        lines = self.plan.lines(alive) if self.has_lines else None
        first, last = lines or (alive.first, alive.last)
        return first, last + 1


def draw(plan: FunctionPlan, file: Path) -> None:
    """Write the picture of one function's plan; the suffix of the file selects the format."""
    save(picture(plan), file)


def picture(plan: FunctionPlan) -> Figure:
    """The picture as a matplotlib figure, for a notebook or a page."""
    bars_of = bars(plan)
    uses = [use for use in plan.uses if bars_of.get(use.space.value)]
    count = sum(map(len, bars_of.values()))
    if not uses or count > MOST_BUFFERS:
        raise fail(
            "PTO-U070",
            f"@{plan.name} has {count:,} buffers in use; a picture shows 1 to {MOST_BUFFERS:,}",
            help="`--entry NAME` draws another function",
        )
    ratios = [1.3 + 0.35 * min(len(bars_of[use.space.value]), 14) for use in uses]
    height = min(TALLEST, 1.3 + sum(ratios))
    figure = new_figure((WIDTH, height), f"Local memory of @{plan.name}", "a plan")
    grid = figure.add_gridspec(len(uses), 1, height_ratios=ratios)
    axis, every = LineAxis(plan), [bar for use in uses for bar in bars_of[use.space.value]]
    ends = min(bar.left for bar in every), max(bar.right for bar in every)
    for n, use in enumerate(uses):
        inches = (WIDTH - 1.2, (height - 1.3) * ratios[n] / sum(ratios) - 0.5)
        axes = figure.add_subplot(grid[n, 0])
        axes.set_xlim(*ends)
        _panel(axes, axis, use, bars_of[use.space.value], inches)
        axes.tick_params(labelbottom=n == len(uses) - 1)
    figure.axes[-1].set_xlabel(axis.label)
    return figure


def bars(plan: FunctionPlan) -> dict[str, list[Bar]]:
    """The rectangles of each local buffer."""
    axis = LineAxis(plan)
    bars_of: dict[str, list[Bar]] = {}
    for placed in (*plan.taken, *plan.placed):
        alive = placed.buffer.alive
        if alive is not None and placed.buffer.nbytes:
            bars_of.setdefault(placed.buffer.space.value, []).append(Bar(placed, *axis.span(alive)))
    return bars_of


def _panel(
    axes: Axes, axis: LineAxis, use: BufferUse, bars_drawn: list[Bar], inches: tuple[float, float]
) -> None:
    top = use.capacity if use.high > 0.6 * use.capacity else use.high
    left, right = axes.get_xlim()
    axes.set(ylim=(0, top * 1.04), facecolor="#fafafa")
    _draw_loops(axes, axis)
    scale = (72 * inches[0] / (right - left), 72 * inches[1] / (top * 1.04))
    for n, bar in enumerate(bars_drawn):
        _draw_bar(axes, bar, COLOURS[n % len(COLOURS)], scale)
    axes.set_title(_headline(axis, use, bars_drawn), **TITLE)
    axes.axvline(axis.span(Lifetime(use.fullest, use.fullest))[0] + 0.5, zorder=4, **PEAK)
    if top == use.capacity:
        axes.axhline(use.capacity, **LIMIT)
    _label_axes(axes, top)


def _headline(axis: LineAxis, use: BufferUse, bars_drawn: list[Bar]) -> str:
    where = axis.span(Lifetime(use.fullest, use.fullest))[0]
    share = use.high / use.capacity if use.capacity else 0
    words = [
        f"{use.space.value.upper()}: {use.high:,} of {use.capacity:,} bytes ({share:.0%})",
        f"at most {use.alive:,} in use at once (dotted: {'line' * axis.has_lines} {where})",
    ]
    kinds = {bar.placed.kind for bar in bars_drawn}
    words += ["shaded: loops"] * bool(axis.loops)
    words += ["hatched: placed by the program"] * ("fixed" in kinds)
    words += ["grey: taken by a call"] * ("call" in kinds)
    return ";  ".join(words)


def _draw_loops(axes: Axes, axis: LineAxis) -> None:
    """Loops as darker bands: a value used in a loop is live in the whole loop."""
    at = {id(op): n for n, op in enumerate(axis.plan.times.order)}
    for op in axis.loops:
        last = max(at[id(inner)] for inner in op.walk())
        left, right = axis.span(Lifetime(at[id(op)], last))
        axes.axvspan(left, right, color=INK, alpha=0.06, linewidth=0, zorder=0)


def _draw_bar(axes: Axes, bar: Bar, colour: str, scale: tuple[float, float]) -> None:
    from matplotlib.patches import Rectangle

    kind, placed = bar.placed.kind, bar.placed
    rectangle = (bar.left, placed.start), bar.right - bar.left, placed.buffer.nbytes
    fill = TAKEN if kind == "call" else colour
    axes.add_patch(Rectangle(*rectangle, facecolor=fill, edgecolor=INK, linewidth=0.8, zorder=2))
    if kind == "fixed":
        axes.add_patch(Rectangle(*rectangle, fill=False, linewidth=0, zorder=2, **HATCH))
    _write_in(axes, bar, scale)


def _write_in(axes: Axes, bar: Bar, scale: tuple[float, float]) -> None:
    """The name and the size, as large as the rectangle allows; nothing if it is too small."""
    wide = (bar.right - bar.left) * scale[0]
    high = bar.placed.buffer.nbytes * scale[1]
    both = [bar.name, f"{bar.placed.buffer.nbytes:,} B"]
    for lines in (both, both[:1]):
        for angle, (width, height) in ((0, (wide, high)), (90, (high, wide))):
            longest = max(map(len, lines))
            size = min(10.0, width / (0.66 * longest + 1.2), 0.7 * height / len(lines))
            if size < 5.5:
                continue
            axes.text(
                (bar.left + bar.right) / 2,
                bar.placed.start + bar.placed.buffer.nbytes / 2,
                "\n".join(lines),
                ha="center",
                va="center",
                rotation=angle,
                size=size,
                color=INK,
                zorder=3,
            )
            return


def _label_axes(axes: Axes, top: int) -> None:
    step = 1 << max(0, (top // 6).bit_length())
    ticks = list(range(0, top + 1, step))
    axes.set_yticks(ticks)
    axes.set_yticklabels([f"{n:#x}" for n in ticks], fontfamily="monospace", fontsize=8)
    axes.set_ylabel("address")
    axes.grid(axis="y", color=GREY, linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
