"""What a notebook shows: the same facts as text, as HTML that nothing in a program can break."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import Diagnostic, Note
from pto.observe import sanitize

_VOID = {"br", "hr"}


class Reader(HTMLParser):
    """Text by tag, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[tuple[str, str]] = []  # (style, text) of td
        self.text = ""
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append((dict(attrs)["style"], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1:] == ["td"]:
            style, before = self.cells[-1]
            self.cells[-1] = style, before + data


@pto.kernel
def add_one(x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.Scalar[pto.i32]) -> None:
    """Adds <b>one</b>."""
    t = pto.tile(4, 8, pto.f32)
    isa.tload(t, x)
    isa.tadds(t, t, 1.0)
    isa.tstore(y, t)


def test_a_tile_shows_values_region_and_order():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pto.eager("a5"):
        t = pto.tile(4, 8, pto.f32)
        isa.tload(t, x)
        found = Reader(t._repr_html_())
    assert "valid 3x4" in found.text
    assert len(found.cells) == 4 * 8
    shaded = [text for style, text in found.cells if "background" in style]
    assert shaded == [f"{n:g}" for n in range(12)]
    orders = re.findall(r'margin-left:3px">(\d+)<', t._repr_html_())
    assert [int(n) for n in orders] == list(range(32))


def test_the_order_is_that_of_the_layout():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    with pto.eager("a5"):
        t = pto.tile(8, 4, pto.f32, layout="DN")
        isa.tload(t, x)
        shown = t._repr_html_()
    orders = [int(n) for n in re.findall(r'margin-left:3px">(\d+)<', shown)]
    assert orders == [c * 8 + r for r in range(8) for c in range(4)]  # column by column


def test_a_large_tile_shows_its_corner_and_its_edges():
    x = np.arange(20 * 50, dtype=np.float32).reshape(20, 50)
    with pto.eager("a5"):
        t = pto.tile(32, 64, pto.f32)
        isa.tload(t, x)
        found = Reader(t._repr_html_())
    assert "…" in found.text
    shaded = [text for style, text in found.cells if "background" in style]
    assert "999" in shaded  # the last valid element
    assert len(found.cells) < 400


def test_a_tile_of_a_trace_shows_its_type():
    shown: list[str] = []

    @pto.kernel
    def looked_at(x: pto.Global[pto.f32]) -> None:
        t = pto.tile(8, 64, pto.f32)
        isa.tload(t, x)
        shown.append(t._repr_html_())
        isa.tstore(x, t)

    looked_at(np.zeros((8, 64), np.float32))
    assert "tile_buf&lt;vec" in shown[0]
    Reader(shown[0])


def test_a_kernel_shows_its_parameters_profile_and_program():
    fresh = add_one.on("a2a3")
    before = Reader(fresh._repr_html_())
    assert "not traced yet" in before.text
    told = "<kernel add_one(x: Global[f32], y: Global[f32], n: Scalar[i32]), profile a2a3>"
    assert repr(fresh) == told
    x = np.zeros((4, 8), np.float32)
    fresh(x, x.copy(), 3)
    found = Reader(fresh._repr_html_())
    assert "x: Global[f32], y: Global[f32], n: Scalar[i32]" in found.text
    assert "profile a2a3" in found.text
    assert "Adds <b>one</b>." in found.text
    assert "pto.tadds" in found.text
    assert fresh.ir.strip() in found.text


def test_findings_show_the_line_and_the_caret():
    x = np.zeros((16, 64), np.float32)
    import examples.racy as racy

    found = racy.racy.sanitize(x, x.copy())
    shown = Reader(found._repr_html_())
    assert "PTO-R" in shown.text
    assert "isa.tadds(t, t, 1.0)" in shown.text
    assert "^^^" in shown.text
    verdict = sanitize(racy.racy.module(x, x), args=[x, x.copy()])
    assert "PTO-R" in Reader(verdict._repr_html_()).text
    assert Reader(add_one.check("a5", x[:4, :8], x[:4, :8], 1)._repr_html_()).text == "no findings"


def test_a_difference_is_shown_like_a_finding():
    x = np.zeros((4, 8), np.float32)
    found = pto.diff(add_one, lambda x, y, n: x + 2, (x, x.copy(), 1))
    shown = Reader(found._repr_html_())
    assert "y[0, 0] is 1, wanted 2" in shown.text
    assert "isa.tadds(t, t, 1.0)" in shown.text
    same = pto.diff(add_one, lambda x, y, n: x + 1, (x, x.copy(), 1))
    assert "no difference" in Reader(same._repr_html_()).text


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\"' onload=x", "&lt;", "</pre>"])
def test_text_of_a_program_cannot_become_markup(text: str):
    finding = Diagnostic("PTO-U073", text, notes=(Note(text),), help=text)
    shown = Reader(finding._repr_html_())
    assert shown.tags == {"pre", "span"}
    assert shown.text.count(text) == 3
    fresh = pto.Kernel(add_one.function, "a5", text)
    assert text in Reader(fresh._repr_html_()).text
    assert "script" not in Reader(fresh._repr_html_()).tags
