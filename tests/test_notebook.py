"""The tutorial notebook: every cell runs, its assertions hold, and its results show themselves."""

from __future__ import annotations

import ast
import json
import linecache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "docs" / "tutorial.ipynb"
# What a person sees below each cell that shows something, in order.
SHOWN = [
    "valid 3x4",  # a tile
    "DN at UB",  # a tile by columns
    "kernel normalise",
    "no findings",
    "PTO-M105",
    "PTO-R001",
    "no findings",
    "y[0, 48] is 96, wanted 97",
    "no difference",
]


def cells() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8"))["cells"]


def execute(number: int, text: str, names: dict[str, Any]) -> Any:
    """A cell as Jupyter runs it: its last expression is its result, its lines can be shown."""
    file = f"<cell {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    tree = ast.parse(text, file)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), file, "eval"), names)


class Text(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found = ""
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.found += data


def test_every_cell_runs_and_shows_what_it_should():
    names: dict[str, Any] = {"__name__": "__main__"}
    shown: list[str] = []
    for number, cell in enumerate(cells()):
        if cell["cell_type"] == "code":
            result = execute(number, "".join(cell["source"]), names)
            if result is not None:
                shown.append(Text(result._repr_html_()).found)
    assert len(shown) == len(SHOWN)
    for text, wanted in zip(shown, SHOWN, strict=True):
        assert wanted in text
    assert "isa.tadds(t, t, 1.0)" in shown[5]  # the line of a cell, above its caret
    assert "^^^^" in shown[5]
    assert "help: " in shown[5]
    assert "isa.tmuls(t, t, 2.0)" in shown[7]


def test_it_teaches_with_assertions():
    code = ["".join(c["source"]) for c in cells() if c["cell_type"] == "code"]
    assert sum("\nassert " in text for text in code) >= 9


def test_it_is_a_notebook_without_stale_output():
    document = json.loads(FILE.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
