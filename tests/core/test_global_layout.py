"""Global layouts against the index maps of pto-isa pto_tile.hpp, written out here."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto.core.errors import PtoError
from pto.core.global_layout import (
    GLOBAL_LAYOUTS,
    GlobalLayout,
    contiguous,
    default_strides,
    global_layout,
    matrix_view,
)

C0 = 16  # of two-byte elements
Shape = tuple[int, int, int, int, int]
Map = Callable[[int, int, Shape], dict[int, int]]

MAPS: dict[str, Map] = {
    "ND": lambda r, c, s: {
        4: c,
        3: r % s[3],
        2: (r // s[3]) % s[2],
        1: (r // (s[3] * s[2])) % s[1],
        0: r // (s[1] * s[2] * s[3]),
    },
    "DN": lambda r, c, s: {
        3: r,
        4: c % s[4],
        2: (c // s[4]) % s[2],
        1: (c // (s[4] * s[2])) % s[1],
        0: c // (s[1] * s[2] * s[4]),
    },
    "NZ": lambda r, c, s: {
        4: c % s[4],
        3: r % s[3],
        2: r // s[3],
        1: (c // s[4]) % s[1],
        0: (c // s[4]) // s[1],
    },
    "NC1HWC0": lambda r, c, s: {
        4: c % s[4],
        1: c // s[4],
        3: r % s[3],
        2: (r // s[3]) % s[2],
        0: r // (s[2] * s[3]),
    },
    "NDC1HWC0": lambda r, c, s: {
        5: c % C0,
        2: (c // C0) % s[2],
        1: c // (s[2] * C0),
        4: r % s[4],
        3: (r // s[4]) % s[3],
        0: r // (s[3] * s[4]),
    },
    "FRACTAL_Z": lambda r, c, s: {
        3: c,
        4: r % s[4],
        2: (r // s[4]) % s[2],
        1: (r // (s[2] * s[4])) % s[1],
        0: r // (s[1] * s[2] * s[4]),
    },
    "NHWC": lambda r, c, s: {
        4: c % s[4],
        0: c // s[4],
        3: r % s[3],
        2: (r // s[3]) % s[2],
        1: r // (s[2] * s[3]),
    },
    "NCHW": lambda r, c, s: {
        2: c,
        4: r % s[4],
        3: (r // s[4]) % s[3],
        1: (r // (s[3] * s[4])) % s[1],
        0: r // (s[1] * s[3] * s[4]),
    },
    "NCDHW": lambda r, c, s: {
        1: c,
        4: r % s[4],
        3: (r // s[4]) % s[3],
        2: (r // (s[3] * s[4])) % s[2],
        0: r // (s[2] * s[3] * s[4]),
    },
    "MX_A_ZZ": lambda r, c, s: {1: r // 16, 2: c // 2, 3: r % 16, 4: c % 2},
    "MX_B_NN": lambda r, c, s: {1: c // 16, 2: r // 2, 3: c % 16, 4: r % 2},
    "MX_A_ND": lambda r, c, s: {2: r, 3: c // 2, 4: c % 2},
    "MX_A_DN": lambda r, c, s: {2: c // 2, 3: r, 4: c % 2},
    "MX_B_ND": lambda r, c, s: {2: r // 2, 3: c, 4: r % 2},
    "MX_B_DN": lambda r, c, s: {2: c, 3: r // 2, 4: r % 2},
}


@st.composite
def shaped(draw: st.DrawFn) -> tuple[GlobalLayout, Shape]:
    each = GLOBAL_LAYOUTS[draw(st.sampled_from(sorted(MAPS)))]
    sizes = [draw(st.integers(1, 5)) for _ in range(5)]
    for axis, size in each.sizes:
        sizes[axis] = size
    a, b, c, d, e = sizes
    return each, (a, b, c, d, e)


@given(shaped(), st.data())
def test_indices_are_the_maps_of_the_isa(case: tuple[GlobalLayout, Shape], data: st.DataObject):
    each, shape = case
    rows, cols = each.matrix_shape(shape, 2)
    r, c = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    assert each.indices(r, c, shape, 2) == MAPS[each.name](r, c, shape)


@given(shaped())
def test_a_matrix_touches_every_place_of_its_dimensions_once(case: tuple[GlobalLayout, Shape]):
    each, shape = case
    rows, cols = each.matrix_shape(shape, 2)
    strides = default_strides(each, shape, 2)
    offsets = each.offset(np.arange(rows)[:, None], np.arange(cols)[None], shape, strides, 2)
    assert np.unique(offsets).size == rows * cols
    assert offsets.min() == 0


def test_the_maps_above_cover_every_defined_layout():
    assert {name for name, each in GLOBAL_LAYOUTS.items() if each.is_defined} == set(MAPS)


def test_every_name_of_the_isa_is_known():
    names = """ND DN NZ SCALE MX_A_ND MX_A_DN MX_A_ZZ MX_B_ND MX_B_DN MX_B_NN HIF4_A_ZZ HIF4_B_NN
    NC1HWC0 GNC1HWC0 NCHW GNCHW NHWC NDC1HWC0 NCDHW FRACTAL_Z FRACTAL_Z_S16S8 FRACTAL_Z_3D"""
    assert set(names.split()) == set(GLOBAL_LAYOUTS)
    assert global_layout("nz") is GLOBAL_LAYOUTS["NZ"]


@pytest.mark.parametrize(
    ("name", "matrix", "shape", "strides"),
    [
        ("ND", (6, 10), (1, 1, 1, 6, 10), (60, 60, 60, 10, 1)),
        ("DN", (6, 10), (1, 1, 1, 6, 10), (60, 60, 60, 1, 6)),
        ("NZ", (32, 48), (1, 3, 2, 16, 16), (1536, 512, 256, 16, 1)),
        ("MX_A_ZZ", (32, 8), (1, 2, 4, 16, 2), (256, 128, 32, 2, 1)),
        ("MX_B_NN", (8, 48), (1, 3, 4, 16, 2), (384, 128, 32, 2, 1)),
        ("MX_A_ND", (5, 8), (1, 1, 5, 4, 2), (40, 40, 8, 2, 1)),
        ("MX_A_DN", (5, 8), (1, 1, 4, 5, 2), (40, 40, 10, 2, 1)),
        ("MX_B_ND", (8, 5), (1, 1, 4, 5, 2), (40, 40, 10, 2, 1)),
        ("MX_B_DN", (8, 5), (1, 1, 5, 4, 2), (40, 40, 8, 2, 1)),
    ],
)
def test_shape_and_strides_of_a_matrix(
    name: str, matrix: tuple[int, int], shape: Shape, strides: Shape
):
    """pto-isa pto_tile.hpp, helpers of strides, and the scale helpers beside it."""
    each = global_layout(name)
    assert matrix_view(each, *matrix, 2) == (shape, strides)
    assert each.matrix_shape(shape, 2) == matrix


def test_a_matrix_that_does_not_divide_into_boxes_is_refused():
    with pytest.raises(PtoError, match=r"NZ needs rows a multiple of 16 .* 17x32") as caught:
        matrix_view(global_layout("NZ"), 17, 32, 2)
    assert caught.value.code == "PTO-S009"


def test_a_layout_that_fixes_a_dimension_is_checked():
    each = global_layout("MX_A_ZZ")
    each.check((1, 2, 4, 16, 2))
    with pytest.raises(PtoError, match="size 16 in dimension 3, and the shape is 1x2x4x8x2"):
        each.check((1, 2, 4, 8, 2))


@pytest.mark.parametrize("name", ["SCALE", "GNCHW", "FRACTAL_Z_3D"])
def test_layouts_without_an_index_map_say_so(name: str):
    with pytest.raises(PtoError, match=f"layout {name}: .* not defined by the ISA") as caught:
        global_layout(name).matrix_shape((1, 1, 1, 1, 1), 2)
    assert caught.value.code == "PTO-L003"
    with pytest.raises(PtoError):
        matrix_view(global_layout(name), 16, 16, 2)


def test_an_unknown_global_layout_is_refused():
    with pytest.raises(PtoError, match="unknown global layout `NX`") as caught:
        global_layout("NX")
    assert caught.value.code == "PTO-L001"


def test_five_dimensions_without_gaps():
    assert contiguous((2, 3, 4, 5, 6)) == (360, 120, 30, 6, 1)
    assert default_strides(global_layout("NDC1HWC0"), (1, 1, 2, 3, 4), 2) == (
        24 * C0,
        24 * C0,
        12 * C0,
        4 * C0,
        C0,
    )
