"""The picture of a tile: what is drawn, read back from the figure, against hand-written answers."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.core.layout import layout
from pto.core.tile import Role, TileType
from pto.view.tile_picture import cut, draw, picture, strokes


def tile(rows: int, cols: int, name: str, *, element: str = "f16", valid=None, role=Role.VEC):
    return TileType.of(role, dtype(element), rows, cols, layout(name), valid=valid)


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def hatched(axes) -> list:
    return [patch for patch in axes.patches if patch.get_hatch()]


@pytest.mark.parametrize(
    ("name", "origins"),
    [
        ("NZ", [(0, 0), (16, 0), (0, 16), (16, 16), (0, 32), (16, 32)]),
        ("NN", [(0, 0), (16, 0), (0, 16), (16, 16), (0, 32), (16, 32)]),
        ("ZN", [(0, 0), (0, 16), (0, 32), (16, 0), (16, 16), (16, 32)]),
        ("ZZ", [(0, 0), (0, 16), (0, 32), (16, 0), (16, 16), (16, 32)]),
    ],
)
def test_boxes_are_cut_in_memory_order(name: str, origins: list[tuple[int, int]]):
    pieces = cut(tile(32, 48, name))
    assert [tuple(map(int, origin)) for origin in pieces.origins] == origins
    assert pieces.starts.tolist() == [0, 256, 512, 768, 1024, 1280]


def test_a_tile_without_boxes_is_cut_into_its_contiguous_lines():
    rows, columns = cut(tile(3, 16, "ND")), cut(tile(16, 3, "DN"))
    assert (rows.height, rows.width, rows.starts.tolist()) == (1, 16, [0, 16, 32])
    assert (columns.height, columns.width, columns.starts.tolist()) == (16, 1, [0, 16, 32])


def test_words_for_the_letters():
    assert strokes(layout("NZ")) == (
        "column by column, as a pen draws N",
        "row by row, as a pen draws Z",
    )
    assert strokes(layout("DN")) == ("column by column, as a pen draws N", None)


def test_colour_is_the_address_of_each_element():
    whole = picture(tile(32, 32, "NZ")).axes[0]
    shown = np.asarray(whole.images[0].get_array())
    r, c = np.mgrid[0:32, 0:32]
    assert (shown == c // 16 * 512 + r // 16 * 256 + r % 16 * 16 + c % 16).all()
    assert list(whole.images[0].get_extent()) == [0, 32, 32, 0]


def test_boxes_are_numbered_and_the_close_up_holds_offsets():
    whole, close, memory = picture(tile(32, 64, "NZ")).axes
    assert texts(whole) == texts(memory) == [str(n) for n in range(8)]
    assert texts(close) == [str(n) for n in range(256)]
    assert (whole.get_xlabel(), whole.get_ylabel()) == ("column", "row")
    assert [int(tick) for tick in memory.get_xticks()] == [512 * n for n in range(9)]


def test_outside_of_the_valid_region_is_hatched():
    whole = picture(tile(16, 32, "NZ", valid=(10, 20))).axes[0]
    covered = {patch.get_bbox().bounds for patch in hatched(whole)}
    assert covered == {(0, 10, 32, 6), (20, 0, 12, 10)}  # x, y, width, height
    assert "10x20" in whole.get_xlabel()


def test_a_wholly_valid_tile_has_no_hatching():
    assert hatched(picture(tile(16, 32, "NZ")).axes[0]) == []
    assert hatched(picture(tile(16, 32, "NZ", valid=(None, None))).axes[0]) == []


@pytest.mark.parametrize(
    ("rows", "cols", "name", "element"),
    [(1, 16, "ND", "f16"), (1, 4096, "ND", "f32"), (2048, 16, "ND", "f16"), (8, 32, "NZ", "f16")],
)
def test_odd_shapes_are_drawn(rows: int, cols: int, name: str, element: str):
    whole = picture(tile(rows, cols, name, element=element)).axes[0]
    assert whole.images[0].get_array().max() == rows * cols - 1


def test_file_is_a_picture(tmp_path: Path):
    draw(tile(16, 16, "NZ"), tmp_path / "tile.png")
    assert (tmp_path / "tile.png").read_bytes().startswith(b"\x89PNG\r\n")
    draw(tile(16, 16, "NZ"), tmp_path / "tile.svg")
    assert b"<svg" in (tmp_path / "tile.svg").read_bytes()


@pytest.mark.parametrize("name", ["tile.xyz", "no/such/folder/tile.png"])
def test_an_unwritable_file_is_a_finding_and_leaves_nothing(tmp_path: Path, name: str):
    with pytest.raises(PtoError) as caught:
        draw(tile(16, 16, "NZ"), tmp_path / name)
    assert caught.value.code == "PTO-U011"
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_finding_says_what_to_install(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PtoError) as caught:
        draw(tile(16, 16, "NZ"), tmp_path / "tile.png")
    assert caught.value.code == "PTO-U010"
    assert caught.value.diagnostics[0].help == 'pip install "pto-machine[plot]"'


def test_a_tile_beyond_all_buffers_is_refused_before_work():
    with pytest.raises(PtoError) as caught:
        picture(tile(1_000_000, 1_000_000, "ND"))
    assert caught.value.code == "PTO-U012"


def test_a_layout_without_offsets_is_refused():
    with pytest.raises(PtoError) as caught:
        picture(tile(16, 16, "FR"))
    assert caught.value.code == "PTO-L003"
