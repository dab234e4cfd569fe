"""Elements of views, sizes of zero, fills of other sizes, and windows that begin inside a block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa

F32 = pto.Global[pto.f32]
ENGINES = ("reference", "jit")


def array(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


# ---- elements of views

VIEWS = {
    "T": (lambda x: x.T, lambda x: x.T),
    "row": (lambda x: x[2], lambda x: x[2:3]),
    "rows": (lambda x: x[3:, :], lambda x: x[3:, :]),
    "window": (lambda x: x[1:5, 2:6], lambda x: x[1:5, 2:6]),
    "column": (lambda x: x[:, 3:4], lambda x: x[:, 3:4]),
    "T of a shape": (lambda x: x.reshape(4, 12).T, lambda x: x.reshape(4, 12).T),
    "shape": (lambda x: x.reshape(8, 6), lambda x: x.reshape(8, 6)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_an_element_of_a_view_is_read(name: str) -> None:
    """The number is a Python number, and one of the program."""
    seen, expected = VIEWS[name]

    @pto.kernel(profile="a5")
    def element(x: F32, y: F32, n: pto.Scalar[pto.i32]) -> None:
        isa.store_scalar(y, 0, isa.load_scalar(seen(x), 3))
        isa.store_scalar(y, 1, isa.load_scalar(seen(x), n))

    x = array(6, 8)
    for engine in ENGINES:
        y = np.zeros((1, 8), np.float32)
        element(x, y, 2, engine=engine)
        assert y[0, :2].tolist() == [expected(x).ravel()[3], expected(x).ravel()[2]]


@pytest.mark.parametrize("name", VIEWS)
def test_an_element_of_a_view_is_written(name: str) -> None:
    seen, expected = VIEWS[name]

    @pto.kernel(profile="a5")
    def element(y: F32, n: pto.Scalar[pto.i32]) -> None:
        isa.store_scalar(seen(y), 3, 5.0)
        isa.store_scalar(seen(y), n, 7.0)

    want = array(6, 8)
    whole = np.arange(48).reshape(6, 8)
    for number, value in ((3, 5.0), (2, 7.0)):
        want.ravel()[expected(whole).ravel()[number]] = value
    for engine in ENGINES:
        y = array(6, 8)
        element(y, 2, engine=engine)
        assert np.array_equal(y, want)


def test_an_element_of_three_dimensions_turned() -> None:
    @pto.kernel(profile="a5")
    def element(x: F32, y: F32) -> None:
        for i in pto.range(24):
            isa.store_scalar(y, i, isa.load_scalar(x.T, i))

    x, y = array(2, 3, 4), np.zeros((1, 24), np.float32)
    element(x, y)
    assert np.array_equal(y[0], x.T.ravel())


def test_an_element_outside_of_a_view() -> None:
    @pto.kernel(profile="a5")
    def outside(x: F32) -> None:
        isa.store_scalar(x[1:3, 0:2], 4, 1.0)

    with pytest.raises(pto.PtoError, match=r"PTO-S201.*element 4 of a view of 4 elements"):
        outside(array(6, 8))


def test_a_pointer_knows_no_strides() -> None:
    @pto.kernel(profile="a5")
    def turned(x: F32) -> None:
        isa.dcci(x.T, "SINGLE_CACHE_LINE")

    with pytest.raises(pto.PtoError, match=r"PTO-S201.*this view has strides \(1, 8\)"):
        turned(array(6, 8))


# ---- sizes of zero


@pytest.mark.parametrize("sizes", [(0, 64), (16, 0), (-1, 64), (0, None), (None, 0)])
def test_a_load_of_no_element(sizes: tuple[Any, Any]) -> None:
    @pto.kernel(profile="a5")
    def nothing(x: F32, y: F32) -> None:
        pto.store(y, pto.load(x, *sizes))

    with pytest.raises(pto.PtoError, match=r"PTO-S200.*a tile of (0|-1) (rows|columns)"):
        nothing(array(16, 64), array(16, 64))


# ---- fills


def combined(rows: int, cols: int, fill: Any) -> Any:
    @pto.kernel(profile="a5")
    def combine(x: F32, y: F32) -> None:
        t = pto.load(x, rows, cols)
        pto.store(y, pto.max(fill(), t.max(axis=1) if fill().cols == 1 else t))

    return combine


@pytest.mark.parametrize(
    ("size", "fill"),
    [
        ((16, 64), (4, 1)),
        ((4, 64), (16, 1)),
        ((16, 100), (16, 128)),
        ((16, 128), (16, 100)),
    ],
)
def test_a_fill_of_another_size(size: tuple[int, int], fill: tuple[int, int]) -> None:
    kernel = combined(*size, lambda: pto.full(*fill, 0.5, pto.f32))
    out = np.zeros((size[0], 1 if fill[1] == 1 else size[1]), np.float32)
    with pytest.raises(pto.PtoError, match=r"PTO-U087.*filled tile has \d+ (rows|columns)"):
        kernel(array(*size), out)


def test_regions_of_which_only_the_run_knows_the_rows() -> None:
    @pto.kernel(profile="a5")
    def one_hot(x: pto.Global[pto.f32], labels: pto.Global[pto.i32], y: pto.Global[pto.f32]):
        i = pto.block_idx() * 8
        hit = pto.arange(128) == pto.load(labels[i:], 8).T
        pto.store(y[i:, :], pto.load(x[i:, :], 8, 128) - pto.where(hit, 1.0, 0.0))

    x = array(21, 100)
    with pytest.raises(pto.PtoError, match=r"\? x 100 elements .*, and \? x 128 of the right one"):
        one_hot[3](x, np.zeros(21, np.int32), x)


@pytest.mark.parametrize("size", [(16, 64), (16, 100), (7, 33)])
def test_a_fill_of_the_same_size(size: tuple[int, int]) -> None:
    x = array(*size)
    for fill in (size, (size[0], 1)):
        kernel = combined(*size, lambda fill=fill: pto.full(*fill, 0.5, pto.f32))
        want = np.maximum(x if fill == size else x.max(axis=1, keepdims=True), np.float32(0.5))
        out = np.zeros_like(want)
        kernel(x, out)
        assert np.array_equal(out, want)


def test_a_fill_meets_a_tile_that_ends_early() -> None:
    """Both were asked for in one size; the array has less."""

    @pto.kernel(profile="a5")
    def edge(x: F32, y: F32) -> None:
        for i in pto.range(0, 24, 16):
            t = pto.load(x[i:, :], 16, 64)
            pto.store(y[i:, :], pto.max(pto.full(16, 1, 2.0, pto.f32), t.max(axis=1)))

    x, y = array(24, 64), np.zeros((24, 1), np.float32)
    edge(x, y)
    assert np.array_equal(y, np.maximum(x.max(axis=1, keepdims=True), np.float32(2.0)))


# ---- windows


def windowed(profile: str, first: int, kind: Any) -> Any:
    @pto.kernel(profile=profile)
    def window(x: pto.Global[Any], y: pto.Global[Any]) -> None:
        t = pto.load(x, 8, 64)
        pto.store(y[:, 0:32], t[:, first : first + 32] + t[:, 0:32])

    return window


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize(("first", "kind"), [(1, pto.f32), (12, pto.f32), (8, pto.f16)])
def test_a_window_inside_a_block_is_refused(profile: str, first: int, kind: Any) -> None:
    x = array(8, 64).astype(kind.numpy)
    nbytes = first * kind.itemsize
    kernel = windowed(profile, first, kind)
    with pytest.raises(pto.PtoError, match=rf"PTO-M104.*begins {nbytes} bytes into its tile"):
        kernel(x, np.zeros_like(x))


@pytest.mark.parametrize(
    ("profile", "first", "kind"),
    [("cpu", 1, pto.f32), ("a5", 8, pto.f32), ("a2a3", 16, pto.f16), ("a2a3", 0, pto.f32)],
)
def test_a_window_at_a_block_is_taken(profile: str, first: int, kind: Any) -> None:
    x = array(8, 64).astype(kind.numpy)
    want = x[:, first : first + 32] + x[:, :32]
    for engine in ENGINES:
        y = np.zeros_like(x)
        windowed(profile, first, kind)(x, y, engine=engine)
        assert np.array_equal(y[:, :32], want)


def test_windows_add_up() -> None:
    """Of a window of a window the sum of both offsets counts."""

    def nested(inner: int) -> Any:
        @pto.kernel(profile="a5")
        def kernel(x: F32, y: F32) -> None:
            t = pto.load(x, 8, 64)
            pto.store(y[:, 0:32], t[:, 4:60][:, inner : inner + 32] + 1.0)

        return kernel

    x, y = array(8, 64), np.zeros((8, 64), np.float32)
    nested(4)(x, y)
    assert np.array_equal(y[:, :32], x[:, 8:40] + np.float32(1))
    with pytest.raises(pto.PtoError, match=r"PTO-M104.*begins 20 bytes"):
        nested(1)(x, y)


def test_the_scalar_unit_reads_anywhere() -> None:
    """Rows are whole blocks, so an unknown row changes nothing."""

    @pto.kernel(profile="a5")
    def element(x: F32, y: F32) -> None:
        t = pto.load(x, 8, 64)
        isa.store_scalar(y, 0, isa.tgetval(t[2:3, 1:9], 2))

    x, y = array(8, 64), np.zeros((1, 8), np.float32)
    element(x, y)
    assert y[0, 0] == x[2, 3]


def test_none_adds_a_dimension_and_a_tuple_is_a_shape() -> None:
    """As in NumPy, of arrays and of windows on them."""

    @pto.kernel(profile="a2a3")
    def kernel(x: F32, w: F32, y: F32) -> None:
        i = pto.block_idx() * 8
        t = pto.load(x[i:, :], 8, 32) * pto.load(w[None, :], 1, 32)
        t = t + pto.load(x[i, :][None, :], 1, 32) + pto.load(w[0:8][:, None], 8, 1)
        t = t + pto.full((8, 32), 2.0, pto.f32) + pto.full((32,), 1.0, dtype=pto.f32)
        pto.store(y[..., None, :][i:], t + pto.zeros([8, 32], pto.f32))

    x, w = array(16, 32), array(2, 16).ravel()
    want = [x[b : b + 8] * w[None] + x[b][None] + w[:8][:, None] + 2 + 1 for b in (0, 8)]
    for engine in ENGINES:
        y = np.zeros_like(x)
        kernel[2](x, w, y, engine=engine)
        assert np.array_equal(y, np.concatenate(want))


@pytest.mark.parametrize("shape", [(8, 32, 2), (8.0, 32), ()])
def test_a_tuple_that_is_no_shape_of_a_tile(shape: Any) -> None:
    @pto.kernel(profile="a2a3")
    def kernel(y: F32) -> None:
        pto.store(y, pto.zeros(shape, pto.f32))

    with pytest.raises(pto.PtoError, match=r"PTO-U203.*takes rows, columns and an element type"):
        kernel(np.zeros((8, 32), np.float32))


def test_a_running_sum_beside_its_own_elements() -> None:
    """Transposes make whole lines of rows: the sums have the shape of what is added up."""

    @pto.kernel(profile="a5")
    def before(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
        i = pto.block_idx() * 8
        t = pto.load(x[i:, :], 8, 64)
        pto.store(y[i:, :], pto.cumsum(t, axis=1) - t)

    x = np.arange(11 * 40, dtype=np.float32).reshape(11, 40) % 5
    y = np.zeros_like(x)
    before[2](x, y)
    assert (y == np.cumsum(x, axis=1) - x).all()


def test_a_filled_element_is_broadcast_and_carried() -> None:
    @pto.kernel(profile="a5")
    def running(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
        carry = pto.zeros(1, 1, pto.f32)
        for i in pto.range(0, x.shape[0], 32):
            t = pto.load(x[i:], 32)
            pto.store(y[i:], pto.cumsum(t, axis=1) + carry)
            carry = carry + t.sum(axis=1)

    x = np.arange(100, dtype=np.float32) % 7
    y = np.zeros_like(x)
    running(x, y)
    assert (y == np.cumsum(x)).all()


def test_an_index_between_slices_leaves_rows_and_columns(tmp_path: Path):
    """The library loads two axes into boxes: x[:, r, :] has no third one, and can be exported."""

    @pto.kernel(profile="a2a3")
    def k(x: pto.Global[pto.f16], w: pto.Global[pto.f16], y: pto.Global[pto.f32]) -> None:
        r = pto.block_idx()
        pto.store(y[:, r, :], pto.dot(pto.load(w, 16, 16), pto.load(x[:, r, 2:34], 16, 32)))

    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, n).astype(np.float16) for n in ((16, 5, 40), (16, 16)))
    y = np.zeros((16, 5, 32), np.float32)
    k[5](x, w, y)
    wanted = np.einsum("oc,chw->ohw", w.astype(np.float64), x[:, :, 2:34].astype(np.float64))
    np.testing.assert_array_equal(y, wanted)
    assert not k.check("a2a3")
    k[5].export(x, w, np.zeros_like(y), out=str(tmp_path / "out"))
