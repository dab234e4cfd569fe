"""Shared parts of pictures: an empty figure, colours, and writing to a file.

Matplotlib is optional.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pto.core.errors import fail
from pto.core.optional import not_installed
from pto.core.output import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#222222"
PALE = "#ffffff"
GREY = "#b0b0b0"
TITLE: dict[str, Any] = {"fontsize": 11, "loc": "left", "color": INK}


def new_figure(size: tuple[float, float], headline: str, subject: str) -> Figure:
    """An empty figure; `subject` names the picture in the error if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise not_installed(f"drawing {subject}", "matplotlib", "plot") from None
    figure = Figure(figsize=size, layout="constrained", facecolor=PALE)
    figure.suptitle(headline, fontsize=15, fontweight="bold", color=INK)
    return figure


def save(figure: Figure, file: Path) -> None:
    """Write a figure; the suffix of the file selects the format (png, svg, pdf)."""
    drawn = BytesIO()
    try:
        figure.savefig(drawn, format=file.suffix[1:] or "png", dpi=150)
    except ValueError as error:
        raise fail("PTO-U011", f"cannot write `{file}`: {error}") from None
    write_whole(file, drawn.getvalue())
