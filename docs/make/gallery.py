"""docs/gallery.md: every kernel of examples/gallery with its predicted times and its timeline.

`make tables` writes the page and `make pictures` the timelines, from one launch of each kernel.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bench.bench_gallery import cases
from docs.make import timeline

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gallery.md"
DEVICES = ("910b1", "950pr")
_HEAD = """\
# Gallery

Kernels of models and libraries, 5 to 20 lines each. `tests/examples/test_gallery.py` compares every
one with NumPy at odd sizes, on both engines and under the sanitizer. Times are
[predicted](guide/timing.md) for the sizes given. A launch itself takes most of 10 us.
"""


def page() -> str:
    """The page as Markdown."""
    head = (
        "| kernel | arrays | grid | 910B1, us | 950PR, us | bound on 950PR |\n" + "| --- " * 6 + "|"
    )
    lines = [_HEAD, head, *(_row(name) for name in cases()), ""]
    for file in files():
        text = (ROOT / "examples" / "gallery" / f"{file}.py").read_text("utf-8")
        title = file.replace("_", " ").capitalize()
        about = (ast.get_docstring(ast.parse(text)) or "").replace("\n\n", "\n")
        lines += [
            f"## {title}\n",
            f"{about}\n",
            f"![Timeline of {shown(file)} on a 950PR](pictures/{picture(file)})\n",
            f"[examples/gallery/{file}.py](../examples/gallery/{file}.py)\n",
        ]
    return "\n".join(lines)


def files() -> list[str]:
    """Modules of the gallery in the order of the table."""
    return list(dict.fromkeys(file for file, _, _ in cases().values()))


def shown(file: str) -> str:
    """The kernel of a module whose timeline the page shows."""
    return next(name for name, (own, _, _) in cases().items() if own == file)


def picture(file: str) -> str:
    return f"gallery_{file}.png"


def draw(file: str, to: Path) -> None:
    name = shown(file)
    took = timing(name, "950pr")
    timeline.plot(took, to, f"{name} on a 950PR: {took.us:.1f} us in all")


def _row(name: str) -> str:
    file, grid, args = cases()[name]
    arrays = ", ".join("x".join(map(str, a.shape)) for a in args)
    times = " | ".join(f"{timing(name, device).us:.1f}" for device in DEVICES)
    bound = timing(name, "950pr").bound
    link = f"[`{name}`](#{file.replace('_', '-')})"
    return f"| {link} | {arrays} | {'x'.join(map(str, grid))} | {times} | {bound} |"


@cache
def timing(name: str, device: str) -> Any:
    file, grid, args = cases()[name]
    kernel = getattr(importlib.import_module(f"examples.gallery.{file}"), name)
    return kernel[grid].time(*args, device=device, data=file == "gather_scatter")


def pictures() -> Iterator[tuple[str, str]]:
    """Each picture with the module that it shows."""
    return ((picture(file), file) for file in files())


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
