"""The picture of a plan: rectangles and words, read back from the figure."""

import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.plan.memory import plan_memory
from pto.target.profile import profile
from pto.view import plan_picture
from pto.view.plan_picture import picture

TILE = "!pto.tile_buf<vec, 16x64xf32>"
LOOP = f"""func.func @k(%c0: index, %c1: index, %n: index) {{
%at = arith.constant 8192 : i64
%f = pto.alloc_tile addr = %at : {TILE}
%a = pto.alloc_tile : {TILE}
pto.tabs ins(%a : {TILE}) outs(%f : {TILE})
scf.for %i = %c0 to %n step %c1 {{
  %b = pto.alloc_tile : {TILE}
  pto.tabs ins(%a : {TILE}) outs(%b : {TILE})
}}
return
}}"""


def figure(text: str):
    (plan,) = plan_memory(parse(text), profile("a5")).functions
    return picture(plan)


def boxes(axes) -> set[tuple[float, float, float, float]]:
    filled = [p for p in axes.patches if p.get_fill() and p.get_linewidth() and not p.get_hatch()]
    return {tuple(map(float, p.get_bbox().bounds)) for p in filled}


def test_a_rectangle_spans_the_lines_and_the_bytes_of_its_tile():
    (ub,) = figure(LOOP).axes
    assert boxes(ub) == {  # line, address, lines, bytes
        (5, 8192, 1, 4096),  # %f, placed by the program
        (5, 0, 4, 4096),  # %a, through the loop
        (8, 4096, 1, 4096),  # %b
    }
    assert {t.get_text().split("\n")[0] for t in ub.texts} == {"%f", "%a", "%b"}


def test_the_title_says_how_full_the_buffer_is():
    (ub,) = figure(LOOP).axes
    title = ub.get_title(loc="left")
    assert "UB: 12,288 of 262,144 bytes (5%)" in title
    assert "at most 8,192 in use at once" in title
    assert "hatched: placed by the program" in title and "shaded: loops" in title


def test_placed_tiles_are_hatched():
    (ub,) = figure(LOOP).axes
    assert [p.get_bbox().y0 for p in ub.patches if p.get_hatch()] == [8192]


def test_each_buffer_has_its_panel():
    mat = "!pto.tile_buf<mat, 16x64xf32>"
    text = f"""func.func @k() {{
%a = pto.alloc_tile : {TILE}
%m = pto.alloc_tile : {mat}
pto.tabs ins(%a : {TILE}) outs(%a : {TILE})
pto.tabs ins(%m : {mat}) outs(%m : {mat})
return
}}"""
    titles = [axes.get_title(loc="left") for axes in figure(text).axes]
    assert [title.partition(":")[0] for title in titles] == ["UB", "L1"]


def test_bytes_taken_by_a_call_are_grey():
    text = f"""module {{
func.func @leaf() {{
%l = pto.alloc_tile : {TILE}
pto.tabs ins(%l : {TILE}) outs(%l : {TILE})
return
}}
func.func @k() {{
%a = pto.alloc_tile : {TILE}
pto.tabs ins(%a : {TILE}) outs(%a : {TILE})
func.call @leaf() : () -> ()
return
}}
}}"""
    plans = plan_memory(parse(text), profile("a5")).functions
    (ub,) = picture(next(p for p in plans if p.name == "k")).axes
    assert "grey: taken by a call" in ub.get_title(loc="left")
    assert any(t.get_text().startswith("@leaf") for t in ub.texts)


def test_too_much_or_nothing_to_draw(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(PtoError) as caught:
        figure("func.func @k() {\nreturn\n}")
    assert caught.value.code == "PTO-U070"
    monkeypatch.setattr(plan_picture, "MOST_BUFFERS", 2)
    with pytest.raises(PtoError) as caught:
        figure(LOOP)
    assert caught.value.code == "PTO-U070"
