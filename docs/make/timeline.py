"""Timelines of kernels as pictures: one row for each pipe, one bar for each instruction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import pto
from examples.gallery.attention import attention
from pto.observe.timing.trace import chrome

_UNITS = {
    "MTE2": "load",
    "MTE1": "L1 to L0",
    "M": "matrix unit",
    "FIX": "L0C out",
    "S": "scalar unit",
    "V": "vector unit",
    "MTE3": "store",
}
_COLOURS = ("#4C78A8", "#72B7B2", "#E45756", "#F2A65A", "#9D9D9D", "#54A24B", "#B279A2")
_FRONT = tuple(name for name in _UNITS if name != "S")


def draw(file: Path) -> None:
    """Write the timeline of causal attention, 1,024 tokens and 8 heads, on a 910B1."""
    tokens, heads = 1024, 8
    half = np.zeros((heads, tokens, 64), np.float16)
    turned = np.zeros((heads, 64, tokens), np.float16)
    out = np.zeros((heads, tokens, 64), np.float32)
    room = np.zeros((tokens // 32 * heads, 32, 32), np.float16)
    timing = attention[tokens // 32, heads].time(half, turned, half, out, room, device="910b1")
    title = f"Causal attention, {tokens:,} tokens, {heads} heads, 910B1: {timing.us:.0f} us in all"
    plot(timing, file, title, rows=_FRONT, begin=0.5, size=(11, 2.6))


@pto.kernel(profile="a2a3")
def gemm(
    a: pto.Global[pto.f16],
    b: pto.Global[pto.f16],
    c: pto.Global[pto.f32],
    m: int = 64,
    n: int = 64,
) -> None:
    """The kernel of the guide to optimisation."""
    i, j = pto.block_idx(0) * m, pto.block_idx(1) * n
    acc = pto.zeros(m, n, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], 64):
        acc += pto.load(a[i:, k:], m, 64) @ pto.load(b[k:, j:], 64, n)
    pto.store(c[i:, j:], acc)


def draw_optimized(file: Path, *, after: bool) -> None:
    """Write the timeline of a product of 1,536 cubed, as it is written or as it is optimised."""
    square, chip = (1536, 1536), "910b1"
    if after:
        timing = gemm.optimize(square, square, square, device=chip).time(square, square, square)
    else:
        timing = gemm.time(square, square, square, blocks=(24, 24), device=chip)
    words = "optimised" if after else "as written"
    title = f"Product of 1,536 x 1,536 x 1,536, {words}, 910B1: {timing.us:.0f} us in all"
    plot(timing, file, title, rows=_FRONT, begin=0.5 if after else 0.0, size=(11, 2.6))


def plot(
    timing: Any,
    file: Path,
    title: str,
    *,
    rows: tuple[str, ...] = tuple(_UNITS),
    begin: float = 0.0,
    longest: float = 12.0,
    size: tuple[float, float] | None = None,
) -> None:
    """Write the pipes of one core from a share of its time on, `longest` microseconds at most."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    events: list[dict[str, Any]] = chrome(timing)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    bars = [e for e in events if e["ph"] == "X" and names.get(e["tid"]) in rows]
    shown = [name for name in rows if any(names[e["tid"]] == name for e in bars)]
    last = max(e["ts"] + e["dur"] for e in bars)
    first = last * begin
    length = min(last - first, longest)
    figure: Any
    axes: Any
    figure, axes = pyplot.subplots(figsize=size or (9, 0.8 + 0.28 * len(shown)), dpi=160)
    colours = dict(zip(_UNITS, _COLOURS, strict=True))
    for row, name in enumerate(shown):
        spans = [(e["ts"] - first, e["dur"]) for e in bars if names[e["tid"]] == name]
        axes.broken_barh(
            spans, (row - 0.38, 0.76), facecolors=colours[name], edgecolor="white", lw=0.4
        )
    axes.set_yticks(range(len(shown)), [f"{n}  {_UNITS[n]}" for n in shown])
    axes.invert_yaxis()
    axes.set_xlim(0, length)
    axes.set_xlabel("microseconds")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(f"{title}; {length:.0f} us of one core", fontsize=10, loc="left")
    figure.tight_layout()
    figure.savefig(file)
    pyplot.close(figure)
