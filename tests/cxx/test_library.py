"""Where the headers of C++ decide otherwise than the manual: the simulator of cpu, masks of a5."""

from __future__ import annotations

import numpy as np
import pytest

MASKS = """
using G = GlobalTensor<float, Shape<1, 1, 1, 4, 16>, Stride<1, 1, 1, 16, 1>>;
using B = GlobalTensor<uint8_t, Shape<1, 1, 1, 4, 32>, Stride<1, 1, 1, 32, 1>>;
using V = Tile<TileType::Vec, float, 4, 16>;
using M = Tile<TileType::Vec, uint8_t, 4, 32, BLayout::RowMajor, -1, -1>;
__global__ AICORE void k(__gm__ float* out, __gm__ uint8_t* bits, __gm__ float* x)
{
    V a, b, c, tmp;
    M mask(4, WIDTH), all(4, 32);
    TASSIGN(a, 0x0); TASSIGN(b, 0x400); TASSIGN(c, 0x800); TASSIGN(tmp, 0xc00);
    TASSIGN(mask, 0x1000); TASSIGN(all, 0x1000);
    G gx(x), go(out);
    B gb(bits);
    TEXPANDS(all, 0);
    TLOAD(a, gx);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    pipe_barrier(PIPE_V);
    TCMPS(mask, a, 0.0f, CmpMode::GT);
    TEXPANDS(b, -1.0f);
    pipe_barrier(PIPE_V);
    TSEL(c, mask, a, b, tmp);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, c);
    TSTORE(gb, all);
}
"""


def run_masks(kernel, profile: str, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    out, bits = np.zeros_like(x), np.zeros((4, 32), np.uint8)
    kernel(MASKS, profile=profile, defines=[f"WIDTH={width}"])(out, bits, x)
    return x, out, bits


@pytest.mark.parametrize("width", [2, 32])
def test_the_simulator_streams_bits_through_the_valid_bytes_of_a_mask(kernel, width):
    x, out, bits = run_masks(kernel, "cpu", width)
    stream = np.packbits((x > 0).reshape(-1), bitorder="little")
    assert np.array_equal(bits[:, :width].reshape(-1)[:8], stream)
    assert np.array_equal(out, np.where(x > 0, x, np.float32(-1)))


def test_on_a5_the_headers_keep_a_row_of_bits_for_each_row(kernel):
    x, out, bits = run_masks(kernel, "a5", 32)
    assert np.array_equal(bits[:, :2], np.packbits(x > 0, axis=1, bitorder="little"))
    assert np.array_equal(out, np.where(x > 0, x, np.float32(-1)))


PAIRS = """
__global__ AICORE void k(__gm__ float* out, __gm__ float* x)
{
    using V = Tile<TileType::Vec, float, 4, 16, BLayout::RowMajor, 4, 7>;
    V a, b;
    TASSIGN(a, 0x0); TASSIGN(b, 0x400);
    GlobalTensor<float, Shape<1, 1, 1, 4, 7>, Stride<1, 1, 1, 7, 1>> gx(x), go(out);
    TLOAD(a, gx);
    TLOAD(b, go);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TPAIRREDUCESUM(b, a);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, b);
}
"""


@pytest.mark.parametrize("profile", ["a2a3", "a5", "cpu"])
def test_chips_sum_whole_pairs_alone_and_the_simulator_adds_the_odd_one_to_zero(kernel, profile):
    x = np.arange(28, dtype=np.float32).reshape(4, 7)
    out = np.full_like(x, 99)
    kernel(PAIRS, profile=profile)(out, x)
    pairs = x[:, 0:6:2] + x[:, 1:6:2]
    assert np.array_equal(out[:, :3], pairs)
    assert np.array_equal(out[:, 3], x[:, 6] if profile == "cpu" else np.full(4, 99))


EQUALS = """
using F = GlobalTensor<float, Shape<1, 1, 1, 4, 8>, Stride<1, 1, 1, 8, 1>>;
using U = GlobalTensor<uint32_t, Shape<1, 1, 1, 4, 8>, Stride<1, 1, 1, 8, 1>>;
__global__ AICORE void k(__gm__ float* out, __gm__ uint32_t* which, __gm__ float* x,
    __gm__ uint32_t* n)
{
    using V = Tile<TileType::Vec, float, 4, 8>;
    using I = Tile<TileType::Vec, uint32_t, 4, 8>;
    V a, b;
    I first, second, found;
    TASSIGN(a, 0x0); TASSIGN(b, 0x400);
    TASSIGN(first, 0x800); TASSIGN(second, 0xc00); TASSIGN(found, 0x1000);
    F gx(x), go(out);
    U g0(n), g1(n + 32), gw(which);
    TLOAD(a, gx);
    TLOAD(first, g0);
    TLOAD(second, g1);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TPARTARGMAX(b, a, a, found, first, second);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, b);
    TSTORE(gw, found);
}
"""


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_of_equal_parts_chips_take_the_first_index(kernel, profile):
    """TPartArgOp.hpp of a2a3; a5 takes src1 where `vcmp_gt(src1, src0)`, TPartArgBinOps.hpp:121."""
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    numbers = np.arange(64, dtype=np.uint32).reshape(2, 4, 8)
    out, found = np.zeros_like(x), np.zeros((4, 8), np.uint32)
    kernel(EQUALS, profile=profile)(out, found, x, numbers)
    assert np.array_equal(out, x)
    assert np.array_equal(found, numbers[0])


PRODUCT = """
__global__ AICORE void k(__gm__ float* out, __gm__ float* x, __gm__ float* y)
{
    using M = Tile<TileType::Mat, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 512>;
    M a, b;
    TileLeft<float, 16, 16> left;
    TileRight<float, 16, 16> right;
    TileAcc<float, 16, 16> sum;
    TASSIGN(a, 0x0); TASSIGN(b, 0x4000); TASSIGN(left, 0x0); TASSIGN(right, 0x0); TASSIGN(sum, 0x0);
    using G = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
    G gx(x), gy(y), go(out);
    TLOAD(a, gx);
    TLOAD(b, gy);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, a);
    TMOV(right, b);
    left.SetMadTF32Mode(RoundMode::CAST_ROUND);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(sum, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(go, sum);
}
"""


@pytest.mark.parametrize(("profile", "bits"), [("a2a3", 11), ("a5", 10)])
def test_rounded_factors_keep_eleven_bits_on_a2a3_and_ten_on_a5(kernel, profile, bits):
    x = np.random.default_rng(9).uniform(1, 2, (16, 16)).astype(np.float32)
    out = np.zeros_like(x)
    kernel(PRODUCT, profile=profile)(out, x, np.eye(16, dtype=np.float32))
    steps = np.float64(2.0**bits)
    assert np.array_equal(out, np.floor(x.astype(np.float64) * steps + 0.5) / steps)


SCALED = """
template <class T, class R>
__global__ AICORE void k(__gm__ R* out, __gm__ T* x, uint64_t word)
{
    using L = Tile<TileType::Mat, T, 8, 32>;
    using S = Tile<TileType::Mat, R, 4, 32, BLayout::RowMajor, 4, 16>;
    L a;
    S b;
    TASSIGN(a, 0x0); TASSIGN(b, 0x4000);
    GlobalTensor<T, Shape<1, 1, 1, 8, 32>, Stride<1, 1, 1, 32, 1>> gx(x);
    GlobalTensor<R, Shape<1, 1, 1, 4, 16>, Stride<1, 1, 1, 16, 1>> go(out);
    TLOAD(a, gx);
    MOVE;
    TSTORE(go, b);
}
"""
PLAIN = SCALED.replace("MOVE", "TEXTRACT(b, a, uint16_t(2), uint16_t(8))")
BY_A_WORD = SCALED.replace(
    "MOVE", "TEXTRACT<S, L, ReluPreMode::NormalRelu>(b, a, word, uint16_t(2), uint16_t(8))"
)


def test_the_simulator_scales_any_tile_and_adds_an_unsigned_offset(kernel):
    x = np.arange(-128, 128, dtype=np.int32).reshape(8, 32)
    out = np.zeros((4, 16), np.uint8)
    word = int(np.float32(0.75).view(np.uint32)) | 300 << 37  # 300 is -212 in nine signed bits
    kernel(BY_A_WORD, "k<int32_t, uint8_t>", profile="cpu")(out, x, word)
    product = np.rint(x[2:6, 8:24] * np.float32(0.75) + np.float32(300))
    assert np.array_equal(out, np.clip(product, 0, 255).astype(np.uint8))


def test_relu_of_nan_is_zero_in_the_simulator(kernel):
    x = np.full((8, 32), np.nan, np.float32)
    x[2:6, 8:24] = np.where(np.arange(16) % 3 == 0, np.nan, np.arange(-8.0, 8.0))
    out = np.ones((4, 16), np.float16)
    word = int(np.float32(2).view(np.uint32))
    kernel(BY_A_WORD, "k<float, half>", profile="cpu")(out, x, word)
    assert np.array_equal(out, np.nan_to_num(np.maximum(x[2:6, 8:24], 0) * 2).astype(np.float16))


def test_without_a_scale_the_simulator_converts_values(kernel):
    x = np.arange(256, dtype=np.float32).reshape(8, 32) - np.float32(100.75)
    out = np.zeros((4, 16), np.int32)
    kernel(PLAIN, "k<float, int32_t>", profile="cpu")(out, x, 0)
    assert np.array_equal(out, np.trunc(x[2:6, 8:24]).astype(np.int32))


GROUPS = """
__global__ AICORE void k(__gm__ float* most, __gm__ int8_t* codes, __gm__ float* x)
{
    Tile<TileType::Vec, float, 4, 32> a, factor;
    Tile<TileType::Vec, int8_t, 4, 32> b;
    Tile<TileType::Vec, uint8_t, 4, 32, BLayout::RowMajor, 4, 1> exp;
    Tile<TileType::Vec, float, 4, 8, BLayout::RowMajor, 4, 1> max;
    Tile<TileType::Vec, float, 1, 8, BLayout::RowMajor, 1, 4> line;
    TASSIGN(a, 0x0); TASSIGN(factor, 0x400); TASSIGN(b, 0x800); TASSIGN(exp, 0xa00);
    TASSIGN(max, 0xc00); TASSIGN(line, 0xc00);
    GlobalTensor<float, Shape<1, 1, 1, 4, 32>, Stride<1, 1, 1, 32, 1>> gx(x);
    GlobalTensor<int8_t, Shape<1, 1, 1, 4, 32>, Stride<1, 1, 1, 32, 1>> gb(codes);
    GlobalTensor<float, Shape<1, 1, 1, 1, 4>, Stride<1, 1, 1, 4, 1>> gm(most);
    TLOAD(a, gx);
    TQUANT<QuantType::MXFP8>(b, a, &exp, &max, &factor);
    TSTORE(gb, b);
    TSTORE(gm, line);
}
"""


def test_the_simulator_puts_group_maxima_in_memory_order_and_has_no_negative_zero(kernel):
    x = np.random.default_rng(5).uniform(-400, 400, (4, 32)).astype(np.float32)
    x[1, 3], x[2, 5] = np.nan, -1e-9
    most, codes = np.zeros(4, np.float32), np.zeros((4, 32), np.int8)
    kernel(GROUPS, profile="cpu")(most, codes, x)
    assert np.array_equal(most, np.nanmax(np.abs(x), axis=1))
    assert codes[2, 5] == 0
    assert codes[1, 3] == 0x7F


AGAIN = """
__global__ AICORE void k(__gm__ float* out, __gm__ float* x)
{
    using V = Tile<TileType::Vec, float, 8, 16>;
    GlobalTensor<float, Shape<1, 1, 1, 8, 16>, Stride<1, 1, 1, 16, 1>> gx(x), go(out);
    V kept, other, sum;
    TLOAD(kept, gx);
    TADDS(other, kept, 1.0f);
    TMULS(sum, other, 2.0f);
    if (sum.GetValue(0) > -1e30f) TADD(sum, sum, kept);
    TSTORE(go, sum);
}
"""


def test_a_tile_without_an_address_lives_on_after_a_look(kernel):
    x = np.random.default_rng(7).standard_normal((8, 16)).astype(np.float32)
    out = np.zeros_like(x)
    kernel(AGAIN, profile="cpu")(out, x)
    assert np.array_equal(out, (x + 1) * 2 + x)


FOUR_BITS = """
template <class G, class T> void load(T& tile, __gm__ void* from)
{
    G global(reinterpret_cast<__gm__ typename T::DType*>(from));
    TLOAD(tile, global);
}
template <class E, int R, int C>
using Plain = GlobalTensor<E, Shape<1, 1, 1, R, C>, Stride<1, 1, 1, C, 1>>;
template <class E, int R, int C, Layout L>
using Scales = GlobalTensor<E, TileShape2D<E, R, C, L>, BaseShape2D<E, R, C, L>, L>;
__global__ AICORE void k(
    __gm__ float* out, __gm__ void* a, __gm__ void* b, __gm__ void* sa, __gm__ void* sb)
{
    using E = float4_e2m1x2_t;
    using S = float8_e8m0_t;
    Tile<TileType::Mat, E, 16, 64, BLayout::ColMajor, 16, 64, SLayout::RowMajor> ma;
    Tile<TileType::Mat, E, 64, 128, BLayout::ColMajor, 64, 128, SLayout::RowMajor> mb;
    Tile<TileType::Mat, S, 16, 2, BLayout::RowMajor, 16, 2, SLayout::RowMajor, 32> msa;
    Tile<TileType::Mat, S, 2, 64, BLayout::ColMajor, 2, 64, SLayout::ColMajor, 32> msb;
    TileLeft<E, 16, 64> left;
    TileRight<E, 64, 64, 64, 48> right;
    TileLeftScale<S, 16, 2> leftScale;
    TileRightScale<S, 2, 64, 2, 48> rightScale;
    TileAcc<float, 16, 64, 16, 48> acc;
    TASSIGN(ma, 0); TASSIGN(mb, 0x1000); TASSIGN(msa, 0x4000); TASSIGN(msb, 0x5000);
    TASSIGN(left, 0); TASSIGN(right, 0); TASSIGN(acc, 0);
    TASSIGN(leftScale, 0); TASSIGN(rightScale, 0);
    load<Plain<E, 16, 64>>(ma, a);
    load<Plain<E, 64, 128>>(mb, b);
    load<Scales<S, 16, 2, Layout::MX_A_ZZ>>(msa, sa);
    load<Scales<S, 2, 64, Layout::MX_B_NN>>(msb, sb);
    pipe_barrier(PIPE_ALL);
    TMOV(left, ma);
    TEXTRACT(right, mb, 0, 64);
    TMOV(leftScale, msa);
    TMOV(rightScale, msb);
    pipe_barrier(PIPE_ALL);
    TMATMUL_MX(acc, left, leftScale, right, rightScale);
    pipe_barrier(PIPE_ALL);
    Plain<float, 16, 48> to(out);
    TSTORE(to, acc);
}
"""


def test_right_factors_of_four_bits_pair_their_values_along_k(kernel):
    """In memory and L1 two values of a row share a byte, in L0B two of a column; of the 128 columns
    the product takes 48, from 64 on. All scales are 1."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 16, (16, 64), np.uint8), rng.integers(0, 16, (64, 128), np.uint8)
    out, one = np.zeros((16, 48), np.float32), np.uint8(127)
    pairs = [codes[:, 0::2] | codes[:, 1::2] << 4 for codes in (a, b)]
    scales = np.full((16, 2), one), np.full((2, 64), one)
    kernel(FOUR_BITS, profile="a5", sides=("cube",))(out, *pairs, *scales)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    numbers = np.concatenate([table, -table])
    assert np.array_equal(out, numbers[a] @ numbers[b[:, 64:112]])


def test_print_goes_to_the_streams_of_a_program_on_cpu(kernel):
    text = """
    __global__ AICORE void k(__gm__ float* out)
    {
        Tile<TileType::Vec, float, 2, 8> t;
        TASSIGN(t, 0);
        t.data()[9] = -3.456789f;
        std::ostringstream text;
        auto* before = std::cout.rdbuf(text.rdbuf());
        TPRINT<PrintFormat::Width8_Precision2>(t);
        std::cout.rdbuf(before);
        out[0] = float(text.str().find("TPRINT 2x8") != std::string::npos);
        out[1] = float(text.str().find(" -3.46 ") != std::string::npos);
    }
    """
    out = np.zeros(8, np.float32)
    kernel("#include <sstream>\n" + text, profile="cpu")(out)
    assert list(out[:2]) == [1, 1]


def test_scales_of_a_tile_in_the_same_buffer_are_its_bytes_on_cpu(kernel):
    text = """
    using Map = ConvTile<TileType::Mat, float, 96, Layout::NC1HWC0, ConvTileShape<1, 1, 3, 4, 8>>;
    static_assert(Map::staticShape[2] == 3 && Map::staticShape[4] == 8);
    __global__ AICORE void k(__gm__ float* out)
    {
        Tile<TileType::Vec, float, 2, 8> a, b;
        TASSIGN(a, 0x100); TASSIGN(b, 0);
        TGET_SCALE_ADDR(b, a);
        a.data()[3] = 42;
        out[0] = b.data()[3];
    }
    """
    out = np.zeros(8, np.float32)
    kernel(text, profile="cpu")(out)
    assert out[0] == 42


BITS = """
using T = TYPE;
using G = GlobalTensor<T, Shape<1, 1, 1, 4, 16>, Stride<1, 1, 1, 16, 1>>;
__global__ AICORE void k(__gm__ T* both, __gm__ T* any, __gm__ T* x, __gm__ T* y)
{
    Tile<TileType::Vec, T, 4, 16> a, b, c, d;
    TASSIGN(a, 0x0); TASSIGN(b, 0x400); TASSIGN(c, 0x800); TASSIGN(d, 0xc00);
    G gx(x), gy(y), gboth(both), gany(any);
    TLOAD(a, gx);
    TLOAD(b, gy);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TAND(c, a, b);
    TOR(d, a, b);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gboth, c);
    TSTORE(gany, d);
}
"""


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name, kind", [("half", np.float16), ("float", np.float32)])
def test_chips_take_the_bits_of_floats(kernel, profile, name, kind):
    bits = f"u{np.dtype(kind).itemsize}"
    x, y = np.random.default_rng(7).standard_normal((2, 4, 16)).astype(kind)
    both, any_ = np.zeros_like(x), np.zeros_like(x)
    kernel(BITS, profile=profile, defines=[f"TYPE={name}"])(both, any_, x, y)
    assert np.array_equal(both.view(bits), x.view(bits) & y.view(bits))
    assert np.array_equal(any_.view(bits), x.view(bits) | y.view(bits))
