"""Convolution tiles of C++: maps and filters in their orders, img2col, results by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pto.core.errors import PtoError

CONV = """
template <int C1, int H, int W, int N, Layout Out>
__global__ AICORE void k(__gm__ float* out, __gm__ half* map, __gm__ half* filters)
{
    constexpr int M = H * W, K = C1 * 16 * 9, STEP = 48;
    using MapShape = Shape<1, C1, H, W, 16>;
    using MapStride = Stride<C1 * M * 16, M * 16, W * 16, 16, 1>;
    GlobalTensor<half, MapShape, MapStride, Layout::NC1HWC0> gmap(map);
    using FilterShape = Shape<1, K / 16, N / 16, 16, 16>;
    using FilterStride = Stride<K * N, N * 16, 256, 16, 1>;
    GlobalTensor<half, FilterShape, FilterStride, Layout::FRACTAL_Z> gfilters(filters);
    ConvTile<TileType::Mat, half, C1 * M * 32, Layout::NC1HWC0, ConvTileShape<1, C1, H, W, 16>> x;
    using FilterTile = ConvTileShape<K / 16, N / 16, 16, 16>;
    ConvTile<TileType::Mat, half, K * N * 2, Layout::FRACTAL_Z, FilterTile> f;
    TileLeft<half, 2 * M, 2 * STEP, M, STEP> a;  // of twice the size: only what is valid counts
    TileRight<half, 2 * STEP, N, STEP, N> b;
    TileAcc<float, M, N> c;
    TASSIGN(x, 0x0); TASSIGN(f, 0x20000); TASSIGN(a, 0x0); TASSIGN(b, 0x0); TASSIGN(c, 0x0);
    TLOAD(x, gmap);
    TLOAD(f, gfilters);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    x.SetFmapH(H); x.SetFmapW(W); x.SetFilterH(3); x.SetFilterW(3); x.SetChannelSize(C1 * 16);
    const uint8_t pads[4] = {1, 1, 1, 1};
    x.SetPadListArray(pads);
    SETFMATRIX(x);
    SET_IMG2COL_PADDING(x);
    for (int at = 0; at < K; at += STEP) {
        TIMG2COL(a, x, 0, at);
        TEXTRACT(b, f, at, 0);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        if (at) TMATMUL_ACC(c, c, a, b); else TMATMUL(c, a, b);
        set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    }
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    if constexpr (Out == Layout::NC1HWC0) {  // a row more than there is: what is valid is written
        using S = Shape<1, N / 16, H + 1, W, 16>;
        GlobalTensor<float, S, Stride<M * N, M * 16, W * 16, 16, 1>, Out> g(out);
        TSTORE(g, c);
    } else if constexpr (Out == Layout::NHWC) {
        GlobalTensor<float, Shape<1, 1, H, W, N>, Stride<M * N, M * N, W * N, N, 1>, Out> g(out);
        TSTORE(g, c);
    } else {
        GlobalTensor<float, Shape<1, 1, N, H, W>, Stride<M * N, M * N, M, W, 1>, Out> g(out);
        TSTORE(g, c);
    }
}
"""


UNPLACED = """
    ConvTile<TileType::Mat, half, C1 * M * 32, Layout::NC1HWC0, ConvTileShape<1, C1, H, W, 16>> y;
"""


def convolved(x: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """x [C, H, W] by filters [N, C, 3, 3], padded by one, as [H, W, N]."""
    _, h, w = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    out = np.zeros((h, w, len(filters)))
    for y, z in np.ndindex(3, 3):
        out += np.einsum("chw,nc->hwn", padded[:, y : y + h, z : z + w], filters[:, :, y, z])
    return out


@pytest.mark.parametrize(
    ("profile", "layout", "turn"),
    [
        ("a2a3", "NC1HWC0", lambda y: y.reshape(4, 8, 2, 16).transpose(2, 0, 1, 3)),
        ("a5", "NHWC", lambda y: y),
        ("a5", "NCHW", lambda y: y.transpose(2, 0, 1)),
    ],
)
def test_a_convolution_is_what_loops_compute(kernel, profile, layout, turn):
    c1, h, w, n = 2, 4, 8, 32
    rng = np.random.default_rng(5)
    x = rng.integers(-4, 5, (c1 * 16, h, w)).astype(np.float16)  # small integers: sums are exact
    filters = rng.integers(-4, 5, (n, c1 * 16, 3, 3)).astype(np.float16)
    blocks = x.reshape(c1, 16, h, w).transpose(0, 2, 3, 1).copy()
    fractal = filters.reshape(n, c1, 16, 3, 3).transpose(1, 3, 4, 0, 2).copy()
    out = np.zeros(h * w * n, np.float32)
    entry = f"k<{c1}, {h}, {w}, {n}, Layout::{layout}>"
    conv = kernel(CONV, entry, profile=profile, sides=("cube",))
    conv(out, blocks, fractal)
    want = turn(convolved(x.astype(float), filters.astype(float)))
    assert np.array_equal(out, want.reshape(-1))
    assert not [d for d in conv.sanitize(out, blocks, fractal) if d.code != "PTO-R004"]


def test_registers_take_the_geometry_of_a_tile_without_an_address(kernel):
    """SETFMATRIX and SET_IMG2COL_PADDING read what a tile says of itself, none of its bytes."""
    before = "    TLOAD(x, gmap);"
    geometry = CONV[CONV.index("    x.SetFmapH") : CONV.index("    for (int at")]
    text = CONV.replace(geometry, "").replace(
        before, f"{UNPLACED}{geometry.replace('x.', 'y.')}{before}"
    )
    text = text.replace("SETFMATRIX(x)", "SETFMATRIX(y)").replace("PADDING(x)", "PADDING(y)")
    assert "x.Set" not in text
    text = text.replace(
        "    for (int at",
        geometry[: geometry.index("    SETF")].replace("pads", "others") + "    for (int at",
    )
    x, filters = np.ones((32, 4, 8), np.float16), np.ones((32, 32, 3, 3), np.float16)
    out = np.zeros(4 * 8 * 32, np.float32)
    conv = kernel(text, "k<2, 4, 8, 32, Layout::NHWC>", profile="a5", sides=("cube",))
    conv(out, x.reshape(2, 16, 4, 8).transpose(0, 2, 3, 1).copy(), filters)
    want = convolved(x.astype(float), filters.astype(float))
    assert np.array_equal(out, want.reshape(-1))


TURN = """
__global__ AICORE void k(__gm__ int16_t* out, __gm__ int16_t* in)
{
    using Flat = Tile<TileType::Vec, int16_t, 1, 2 * 32 * 16>;
    using G = GlobalTensor<int16_t, Shape<1, 1, 1, 1, 1024>, Stride<1, 1, 1, 1024, 1>>;
    Flat from, to;
    ConvTile<TileType::Vec, int16_t, 1024, Layout::NCHW, ConvTileShape<2, 32, 4, 4>> x;
    ConvTile<TileType::Vec, int16_t, 1024, Layout::ORDER, ConvTileShape<SIZES>> y;
    Tile<TileType::Vec, int16_t, 16, 16> tmp;
    TASSIGN(from, 0x0); TASSIGN(x, 0x0); TASSIGN(to, 0x4000); TASSIGN(y, 0x4000);
    TASSIGN(tmp, 0x8000);
    G gi(in), go(out);
    TLOAD(from, gi);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TTRANS(y, x, tmp);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, to);
}
"""


def test_a_transpose_between_convolution_tiles(kernel):
    x = np.arange(1024, dtype=np.int16).reshape(2, 32, 4, 4)
    out = np.zeros_like(x)
    options = {"defines": ["ORDER=NC1HWC0", "SIZES=2,2,4,4,16"]}
    turn = kernel(TURN, **options)
    turn(out, x)
    want = x.reshape(2, 2, 16, 4, 4).transpose(0, 1, 3, 4, 2)
    assert np.array_equal(out.reshape(-1), want.reshape(-1))
    assert turn.sanitize(out, x) == []


def test_orders_without_a_way_between_them_are_a_finding(kernel):
    x = np.zeros((2, 32, 4, 4), np.int16)
    with pytest.raises(PtoError, match="PTO-L061"):
        kernel(TURN, defines=["ORDER=FRACTAL_Z", "SIZES=32,1,16,2"])(x.copy(), x)


def test_the_block_of_a_map_goes_without_saying(kernel):
    """Four sizes of NC1HWC0 are those of blocks of 32 bytes."""
    text = """
    __global__ AICORE void k(__gm__ float* out, __gm__ float* in)
    {
        using S = Shape<1, 2, 3, 4, 8>;
        GlobalTensor<float, S, Stride<192, 96, 32, 8, 1>, Layout::NC1HWC0> g(in);
        ConvTile<TileType::Mat, float, 768, Layout::NC1HWC0, ConvTileShape<1, 2, 3, 4>> x;
        TASSIGN(x, 0x0);
        TLOAD(x, g);
        for (int i = 0; i < 192; i++) out[i] = x.data()[i];
    }
    """
    source, out = np.arange(192, dtype=np.float32), np.zeros(192, np.float32)
    kernel(text, profile="cpu")[1](out, source)
    np.testing.assert_array_equal(out, source)
