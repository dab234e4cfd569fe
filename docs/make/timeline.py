"""The timeline of a kernel as a picture: one row for each pipe, one bar for each instruction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from examples.gallery.attention import attention
from pto.observe.timing.trace import chrome

_ROWS = ("MTE2", "MTE1", "M", "FIX", "V", "MTE3")
_UNITS = {
    "MTE2": "load",
    "MTE1": "L1 to L0",
    "M": "matrix unit",
    "FIX": "L0C out",
    "V": "vector unit",
    "MTE3": "store",
}
_COLOURS = ("#4C78A8", "#72B7B2", "#E45756", "#F2A65A", "#54A24B", "#B279A2")


def draw(file: Path) -> None:
    """Write the timeline of causal attention, 1,024 tokens and 8 heads, on a 910B1."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tokens, heads = 1024, 8
    half = np.zeros((heads, tokens, 64), np.float16)
    turned = np.zeros((heads, 64, tokens), np.float16)
    out = np.zeros((heads, tokens, 64), np.float32)
    room = np.zeros((tokens // 32 * heads, 32, 32), np.float16)
    timing = attention[tokens // 32, heads].time(half, turned, half, out, room, device="910b1")
    events: list[dict[str, Any]] = chrome(timing)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    bars = [e for e in events if e["ph"] == "X" and names.get(e["tid"]) in _ROWS]
    last = max(e["ts"] + e["dur"] for e in bars)
    begin, length = last * 0.5, min(last * 0.5, 12.0)
    figure: Any
    axes: Any
    figure, axes = pyplot.subplots(figsize=(11, 2.6), dpi=160)
    for row, (name, colour) in enumerate(zip(_ROWS, _COLOURS, strict=True)):
        spans = [(e["ts"] - begin, e["dur"]) for e in bars if names[e["tid"]] == name]
        axes.broken_barh(spans, (row - 0.38, 0.76), facecolors=colour, edgecolor="white", lw=0.4)
    axes.set_yticks(range(len(_ROWS)), [f"{n}  {_UNITS[n]}" for n in _ROWS])
    axes.invert_yaxis()
    axes.set_xlim(0, length)
    axes.set_xlabel("microseconds")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(
        f"Causal attention, {tokens:,} tokens, {heads} heads, 910B1: {timing.us:.0f} us in all;"
        f" {length:.0f} us of one core",
        fontsize=10,
        loc="left",
    )
    figure.tight_layout()
    figure.savefig(file)
    pyplot.close(figure)
