"""C++ kernels on the machine: results against NumPy, findings at C++ lines, limits."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.cxx import native
from pto.observe.timing.kinds import regions_of
from tests.cxx.conftest import HEAD

ADD = """
template <class T, int R, int C>
__global__ AICORE void k(__gm__ T* out, __gm__ T* a, __gm__ T* b, T scale)
{
    using G = GlobalTensor<T, Shape<1, 1, 1, R, C>, Stride<1, 1, 1, C, 1>>;
    using V = Tile<TileType::Vec, T, R, C>;
    V x, y, z;
    TASSIGN(x, 0x0); TASSIGN(y, 0x8000); TASSIGN(z, 0x10000);
    const int64_t at = get_block_idx() * R * C;
    G ga(a + at), gb(b + at), go(out + at);
    TLOAD(x, ga);
    TLOAD(y, gb);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
#ifndef RACE
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
#endif
    TADD(z, x, y);
    pipe_barrier(PIPE_V);
    TMULS(z, z, scale);
    Event<Op::TMULS, Op::TSTORE_VEC> done;
    done = RecordEvent();
    TSTORE(go, z, done);
}
"""


def arrays(blocks: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((blocks, 16, 64)).astype(np.float32) for _ in range(2))
    return [np.zeros_like(a), a, b]


def test_blocks_events_and_scalars_give_what_numpy_gives(kernel):
    out, a, b = arrays(3)
    report = kernel(ADD, "k<float, 16, 64>")[3](out, a, b, 2.5)
    assert np.array_equal(out, (a + b) * np.float32(2.5))
    assert "3 blocks" in repr(report)


def test_a_clean_kernel_has_no_findings(kernel):
    assert kernel(ADD, "k<float, 16, 64>").sanitize(*arrays(2), 1.0, blocks=2) == []


def test_a_removed_wait_is_found_at_its_line(kernel):
    found = kernel(ADD, "k<float, 16, 64>", defines=["RACE"]).sanitize(*arrays(1), 1.0)
    race = next(d for d in found if d.code == "PTO-R001")
    lines = ("#include\n\n" + ADD).splitlines()
    assert "TADD" in lines[race.loc.line - 1]
    assert any(n.loc and "TLOAD" in lines[n.loc.line - 1] for n in race.notes)


PLACED = """
__global__ AICORE void k(__gm__ float* out, __gm__ float* a, __gm__ float* b)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 8, 64>, Stride<1, 1, 1, 64, 1>>;
    Tile<TileType::Vec, float, 8, 64> x, y, z;
    Tile<TileType::Vec, float, 4, 64> part;
    TASSIGN(x, 0x0); TASSIGN(y, PLACE); TASSIGN(z, 0x8000); TASSIGN(part, 0x400);
    G ga(a), gb(b), go(out);
    TLOAD(x, ga);
    pipe_barrier(PIPE_MTE2);
    TLOAD(y, gb);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(part, part, 2.0f);
    pipe_barrier(PIPE_V);
    TADD(z, x, y);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, z);
}
"""


@pytest.mark.parametrize(("place", "codes"), [("0x600", ["PTO-M201"]), ("0x800", [])])
def test_a_tile_that_lies_across_another_takes_its_bytes(kernel, place: str, codes: list[str]):
    """Half a tile is a part of it, and may be changed by itself."""
    a = np.arange(512, dtype=np.float32).reshape(8, 64)
    found = kernel(PLACED, defines=[f"PLACE={place}"]).sanitize(np.zeros_like(a), a, a + 1000)
    assert [d.code for d in found] == codes


@pytest.mark.parametrize(("same", "severity"), [(False, "error"), (True, "warning")])
def test_two_loads_to_one_place_lose_data_that_differs(kernel, same: bool, severity: str):
    """Who wrote what is told by a second run, which has other operations of the same names."""
    apart = PLACED.replace("pipe_barrier(PIPE_MTE2);", "")
    a = np.arange(512, dtype=np.float32).reshape(8, 64)
    b = a if same else a + 1000
    found = kernel(apart, defines=["PLACE=0x0"]).sanitize(np.zeros_like(a), a, b)
    assert ("PTO-R006", severity) in [(d.code, d.severity) for d in found]


WINDOWS = """
__global__ AICORE void k(__gm__ float* out, __gm__ float* a)
{
    using Half = GlobalTensor<float, Shape<1, 1, 1, 8, 32>, Stride<1, 1, 1, 64, 1>>;
    using Whole = GlobalTensor<float, Shape<1, 1, 1, 8, 64>, Stride<1, 1, 1, 64, 1>>;
    Tile<TileType::Vec, float, 8, 64> x, z;
    Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 32> left, right;
    TASSIGN(x, 0x0); TASSIGN(left, 0x0); TASSIGN(right, 0x80); TASSIGN(z, 0x8000);
    Half ga(a), gb(a + 32);
    Whole go(out);
    for (int i = 0; i < 2; i++) {
        TLOAD(left, ga);
        TLOAD(right, gb);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADDS(z, x, 1.0f);
        pipe_barrier(PIPE_V);
        TMULS(x, z, 2.0f);
        pipe_barrier(PIPE_ALL);
    }
    TSTORE(go, z);
}
"""


def test_windows_of_columns_are_parts_of_a_tile(kernel):
    """The right one has rows of a whole tile, but ends with the last of them."""
    a = np.arange(512, dtype=np.float32).reshape(8, 64)
    out = np.zeros_like(a)
    windows = kernel(WINDOWS)
    assert windows.sanitize(out, a) == []
    windows[1](out, a)
    np.testing.assert_array_equal(out, a + 1)


UNWRITTEN = """
__global__ AICORE void k(__gm__ float* out, __gm__ float* a)
{
    GlobalTensor<float, Shape<1, 1, 1, 1, 96>, Stride<96, 96, 96, 96, 1>> ga(a);
    GlobalTensor<float, Shape<1, 1, 1, 1, KEPT>, Stride<64, 64, 64, 64, 1>> go(out);
    Tile<TileType::Vec, float, 1, 96> loaded;
    Tile<TileType::Vec, float, 1, 128> x;
    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, KEPT> z;
    TASSIGN(loaded, 0x0); TASSIGN(x, 0x0); TASSIGN(z, 0x1000);
    TLOAD(loaded, ga);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TGATHER<decltype(z), decltype(x), MaskPattern::P0101>(z, x);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, z);
}
"""


@pytest.mark.parametrize(("kept", "codes"), [(48, []), (64, ["PTO-V210"])])
def test_unwritten_bytes_are_found_where_they_are_stored(kernel, kept: int, codes: list[str]):
    """A run of C++ makes its operations anew: values are compared, at the same lines."""
    a, out = np.arange(96, dtype=np.float32), np.zeros(64, np.float32)
    found = kernel(UNWRITTEN, defines=[f"KEPT={kept}"]).sanitize(out, a)
    assert [d.code for d in found] == codes


def test_a_finding_in_a_helper_names_its_caller(kernel):
    text = """
template <class T, class G> void loadOnly(T& t, G& g) { TLOAD(t, g); }
__global__ AICORE void k(__gm__ float* x)
{
    Tile<TileType::Vec, float, 8, 8> t;
    TASSIGN(t, 0x10);
    GlobalTensor<float, Shape<1,1,1,8,8>, Stride<1,1,1,8,1>> g(x);
    loadOnly(t, g);
}
"""
    with pytest.raises(PtoError) as caught:
        kernel(text)(np.zeros((8, 8), np.float32))
    finding = caught.value.diagnostics[0]
    assert finding.code == "PTO-M002"
    assert finding.loc.line == 4
    assert [n.loc.line for n in finding.notes if n.message == "called from here"] == [10]


BOTH = """
__global__ AICORE void k(__gm__ half* a, __gm__ half* b, __gm__ float* gm, __gm__ float* out)
{
    using Slot = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
    if constexpr (DAV_CUBE) {
        using G = GlobalTensor<half, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
        Tile<TileType::Mat, half, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor> ma, mb;
        TileLeft<half, 16, 16> l; TileRight<half, 16, 16> r; TileAcc<float, 16, 16> c;
        TASSIGN(ma, 0x0); TASSIGN(mb, 0x1000); TASSIGN(l, 0x0); TASSIGN(r, 0x0); TASSIGN(c, 0x0);
        G ga(a), gb(b); Slot to(gm);
        TLOAD(ma, ga); TLOAD(mb, gb);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        TMOV(l, ma); TMOV(r, mb);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0); wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        TMATMUL(c, l, r);
        set_flag(PIPE_M, PIPE_FIX, EVENT_ID0); wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        TSTORE(to, c);
        ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(CV_CORES_SYNC, 3));
    } else {
        using Half = GlobalTensor<float, Shape<1, 1, 1, 8, 16>, Stride<1, 1, 1, 16, 1>>;
        Tile<TileType::Vec, float, 8, 16> t;
        TASSIGN(t, 0x0);
        wait_flag_dev(3);
        const int64_t at = get_subblockid() * 8 * 16;
        Half from(gm + at), to(out + at);
        TLOAD(t, from);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TMULS(t, t, 2.0f);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(to, t);
    }
}
"""
SIDES = """
#ifdef __DAV_CUBE__
constexpr bool DAV_CUBE = true;
#else
constexpr bool DAV_CUBE = false;
#endif
"""


def test_cube_and_two_vector_sub_blocks_meet_at_a_signal(kernel):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (16, 16)).astype(np.float16) for _ in range(2))
    gm, out = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    mixed = kernel(SIDES + BOTH)
    mixed(a, b, gm, out)
    assert np.array_equal(out, 2 * (a.astype(np.float32) @ b.astype(np.float32)))
    assert mixed.sanitize(a, b, gm, out) == []


NARROW = """
__global__ AICORE void k(__gm__ int8_t* a, __gm__ int8_t* b, __gm__ int32_t* out)
{
    using A = GlobalTensor<int8_t, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
    using B = GlobalTensor<int8_t, Shape<1, 1, 1, 64, 16>, Stride<1, 1, 1, 16, 1>>;
    using C = GlobalTensor<int32_t, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
    Tile<TileType::Mat, int8_t, 16, 64, BLayout::ColMajor, 16, 64, SLayout::RowMajor> ma;
    Tile<TileType::Mat, int8_t, 64, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor> mb(64, 16);
    TileLeft<int8_t, 16, 64> l;
    TileRight<int8_t, 64, 32, -1, -1> r(64, 16);
    TileAcc<int32_t, 16, 32, -1, -1> c(16, 16);
    TASSIGN(ma, 0x0); TASSIGN(mb, 0x1000); TASSIGN(l, 0x0); TASSIGN(r, 0x0); TASSIGN(c, 0x0);
    A ga(a); B gb(b); C gc(out);
    TLOAD(ma, ga); TLOAD(mb, gb);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(l, ma); %s
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0); wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(c, l, r);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0); wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(gc, c);
}
"""


@pytest.mark.parametrize("move", ["TMOV(r, mb);", "TEXTRACT(r, mb, 0, 0);"])
def test_bytes_move_into_boxes_of_the_valid_columns(kernel, move: str):
    """Rows and columns of bytes are exchanged on the way: the boxes of 16 columns lie side by side
    in a tile of 32, where the matrix unit reads them."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, size).astype(np.int8) for size in ((16, 64), (64, 16)))
    out = np.zeros((16, 16), np.int32)
    kernel(NARROW % move)(a, b, out)
    assert np.array_equal(out, a.astype(np.int32) @ b.astype(np.int32))


PUSHED = """
__global__ AICORE void k(__gm__ int8_t* a, __gm__ int8_t* b, __gm__ half* gm, __gm__ half* out)
{
    using Queue = TPipe<0, Direction::DIR_C2V, 2 * 32 * 32, 2>;
    using How = FixpipeParams<LayoutMode_t::NZ2ND, DEQF16, ReluPreMode::NormalRelu>;
    Queue queue((__gm__ void*)gm, 0x0, 0x0);
    if constexpr (DAV_CUBE) {
        using G = GlobalTensor<int8_t, Shape<1, 1, 1, 32, 32>, Stride<1, 1, 1, 32, 1>>;
        Tile<TileType::Mat, int8_t, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor> ma, mb;
        TileLeft<int8_t, 32, 32> l; TileRight<int8_t, 32, 32> r; TileAcc<int32_t, 32, 32> c;
        TASSIGN(ma, 0x0); TASSIGN(mb, 0x1000); TASSIGN(l, 0x0); TASSIGN(r, 0x0); TASSIGN(c, 0x0);
        G ga(a), gb(b);
        TLOAD(ma, ga); TLOAD(mb, gb);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        TMOV(l, ma); TMOV(r, mb);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0); wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        TMATMUL(c, l, r);
        set_flag(PIPE_M, PIPE_FIX, EVENT_ID0); wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        SET_QUANT_SCALAR<half>(0.5f);
        TPUSH<Queue, TileAcc<int32_t, 32, 32>, How>(queue, c);
    } else {
        using V = Tile<TileType::Vec, half, 32, 32>;
        GlobalTensor<half, Shape<1, 1, 1, 32, 32>, Stride<1, 1, 1, 32, 1>> to(out);
        V t;
        TPOP<Queue, V, TILE_NO_SPLIT>(queue, t);
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        if (get_subblockid() == 0) TSTORE(to, t);
    }
}
"""


def test_an_accumulator_is_pushed_through_the_fixpipe(kernel):
    """fixpipe.hpp, TPush.hpp: scaled, rectified and converted on its way to the slot."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (32, 32)).astype(np.int8) for _ in range(2))
    gm, out = np.zeros((2, 32, 32), np.float16), np.zeros((32, 32), np.float16)
    kernel(SIDES + PUSHED)(a, b, gm, out)
    wanted = np.maximum(a.astype(np.int32) @ b.astype(np.int32) * 0.5, 0)
    assert wanted.any()
    assert np.array_equal(out, wanted.astype(np.float16))


LOADED = """
__global__ AICORE void k(__gm__ float* a, __gm__ float* gm, __gm__ float* out)
{
    using Queue = TPipe<0, Direction::DIR_%s, 4 * 16 * 16, 2>;
    Queue queue((__gm__ void*)gm, 0x0, 0x0);
    using G = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
    using M = Tile<TileType::Mat, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor>;
    if constexpr (DAV_CUBE) {
        M m; TileLeft<float, 16, 16> l; TileRight<float, 16, 16> r;
        using C = TileAcc<float, 16, 16>;
        C c;
        TASSIGN(m, 0x0); TASSIGN(l, 0x0); TASSIGN(r, 0x0); TASSIGN(c, 0x0);
        G ga(a);
        TLOAD(m, ga);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        TMOV(l, m); TMOV(r, m);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0); wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        TMATMUL(c, l, r);
        set_flag(PIPE_M, PIPE_FIX, EVENT_ID0); wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        TPUSH<Queue, C, TILE_NO_SPLIT>(queue, c);
    } else if (get_subblockid() == 0) {
        using V = Tile<TileType::Vec, float, 16, 16>;
        G to(out);
        V t;
        TPOP<Queue, V, TILE_NO_SPLIT>(queue, t);
        set_flag(%s, PIPE_V, EVENT_ID0); wait_flag(%s, PIPE_V, EVENT_ID0);
        TADDS(t, t, 1.0f);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(to, t);
    }
}
"""


@pytest.mark.parametrize("way", ["C2V_GM", "BOTH_GM"])
def test_a_slot_in_global_memory_is_loaded_on_mte2_on_a5_too(kernel, way: str):
    """a5/TPush.hpp, popVecTileFromGMFiFo: TLOAD_IMPL. A flag of MTE2 orders what V reads."""
    a = np.random.default_rng(4).integers(-4, 5, (16, 16)).astype(np.float32)
    gm, out = np.zeros((4, 16, 16), np.float32), np.zeros((16, 16), np.float32)
    right = kernel(SIDES + LOADED % (way, "PIPE_MTE2", "PIPE_MTE2"), profile="a5")
    right(a, gm, out)
    assert np.array_equal(out, a @ a + 1)
    assert [d.code for d in right.sanitize(a, gm, out) if d.severity == "error"] == []
    wrong = kernel(SIDES + LOADED % (way, "PIPE_S", "PIPE_S"), profile="a5")
    assert "PTO-R001" in [d.code for d in wrong.sanitize(a, gm, out)]


POLLED = """
__global__ AICORE void k(__gm__ float* x, __gm__ float* y, __gm__ uint32_t* done)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 8, 64>, Stride<1, 1, 1, 64, 1>>;
    Tile<TileType::Vec, float, 8, 64> t;
    TASSIGN(t, 0x0);
    G gx(x), gy(y);
    if (get_block_idx() == 0) {
        while (WAITS && !ld_dev(done, 0)) {}
        TLOAD(t, gy);
        return;
    }
    TLOAD(t, gx);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(gy, t);
    set_flag(PIPE_MTE3, PIPE_S, EVENT_ID0); wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);
    st_dev(1u, done, 0);
}
"""


@pytest.mark.parametrize(("waits", "codes"), [(1, set()), (0, {"PTO-R022"})])
def test_blocks_that_poll_memory_are_not_said_to_race(kernel, waits: int, codes: set[str]):
    """Native code reads the word: the order that it gives is not seen."""
    x, y, done = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32), np.zeros(8, np.uint32)
    found = kernel(POLLED, defines=[f"WAITS={waits}"]).sanitize(x, y, done, blocks=2)
    assert {d.code for d in found if d.severity == "error"} == codes


def test_a_value_read_back_decides_what_runs(kernel):
    text = """
__global__ AICORE void k(__gm__ int32_t* x)
{
    using G = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 8>, Stride<1, 1, 1, 8, 1>>;
    Tile<TileType::Vec, int32_t, 1, 8> t;
    TASSIGN(t, 0x0);
    G g(x);
    TLOAD(t, g);
    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    const int32_t n = t.GetValue(0);
    for (int i = 0; i < n; ++i) t.SetValue(i, 100 + i);
    set_flag(PIPE_S, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    TSTORE(g, t);
}
"""
    x = np.array([3, 7, 7, 7, 7, 7, 7, 7], np.int32)
    kernel(text)(x)
    assert x.tolist() == [100, 101, 102, 7, 7, 7, 7, 7]


def test_tiles_without_an_address_are_placed(kernel):
    text = """
__global__ AICORE void k(__gm__ float* x, __gm__ float* y)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 64, 128>, Stride<1, 1, 1, 128, 1>>;
    using V = Tile<TileType::Vec, float, 64, 128>;
    G gx(x), gy(y);
    V first;
    TLOAD(first, gx);
    for (int i = 0; i < 20; ++i) {  // 20 tiles of 32 KiB, never more than three at a time
        V next;
        TADDS(next, first, 1.0f);
        V again;
        TMULS(again, next, 1.0f);
        TADDS(first, again, 0.0f);
    }
    TSTORE(gy, first);
}
"""
    x = np.random.default_rng(2).integers(0, 9, (64, 128)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(text)(x, y)
    assert np.array_equal(y, x + 20)


IN_TURN = """
__global__ AICORE void k(__gm__ float* x, __gm__ float* y, int again)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 64, 128>, Stride<1, 1, 1, 128, 1>>;
    using V = Tile<TileType::Vec, float, 64, 128>;
    G gx(x), gy(y);
    V first;
    TLOAD(first, gx);
    for (int i = 0; i < 12; ++i) {  // a new name each time, and each is looked at
        V next;
        TLOAD(next, gx);
        TADDS(next, next, float(i));
        if (next.GetValue(0) < 0) return;
        TSTORE(gy, next);
    }
    if (again) TSTORE(gy, first);
}
"""


def test_names_that_are_not_used_again_make_room(kernel):
    x, y = np.ones((64, 128), np.float32), np.zeros((64, 128), np.float32)
    made = kernel(IN_TURN)
    made(x, y, 0)
    assert np.array_equal(y, x + 11)
    # 13 of 32 KiB: the first one is gone
    with pytest.raises(PtoError, match=r"PTO-M120.*is used again"):
        made(x, y, 1)


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_signals_of_the_custom_kind_go_both_ways(kernel, profile: str):
    text = (
        BOTH.replace("ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(CV_CORES_SYNC, 3));", "s.record();")
        .replace("TSTORE(to, c);", "s.allocate(); TSTORE(to, c);")
        .replace("TASSIGN(t, 0x0);", "TASSIGN(t, 0x0); s.free();")
        .replace("wait_flag_dev(3);", "s.wait();")
        .replace("{\n", "{ TSync_Custom<SyncOpType::TSTORE_C2GM, SyncOpType::TLOAD> s{3};\n", 1)
    )
    a, b = np.eye(16, dtype=np.float16), np.arange(256).reshape(16, 16).astype(np.float16)
    gm, out = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    mixed = kernel(SIDES + text, profile=profile)
    mixed(a, b, gm, out)
    assert np.array_equal(out, 2 * b.astype(np.float32))
    assert mixed.sanitize(a, b, gm, out) == []


def test_a_crash_is_a_finding_at_its_line(kernel):
    text = """
void store(volatile int* to) { *to = 1; }
__global__ AICORE void k(__gm__ float* x)
{
    pipe_barrier(PIPE_ALL);
    store((volatile int*)16);
}
"""
    broken = kernel(text)
    with pytest.raises(PtoError) as caught:
        broken(np.zeros(8, np.float32))
    finding = caught.value.diagnostics[0]
    assert finding.code == "PTO-U245"
    assert "memory that is not its own" in finding.message
    assert (HEAD + text).splitlines()[finding.loc.line - 1].startswith("void store")


def test_an_interpreter_may_have_its_heap_below_all_libraries(monkeypatch):
    """As one that is no position-independent executable: its heap is at 0x35000000 here."""
    monkeypatch.setattr(native, "_heap_end", lambda: lambda _: 0x3560_0000)
    monkeypatch.setattr(native, "_heap", lambda _: 0x3500_0000)
    found = [0, 0x40000, 0x34FF_FFFF, 0x3500_0000, 0x355F_FFFF, 0x3560_0000, 0x7F00_0000_0000]
    assert [native.is_pointer(n) for n in found] == [False] * 3 + [True] * 2 + [False, True]


def test_an_endless_loop_ends(kernel):
    text = "__global__ AICORE void k(__gm__ float* x) { for (volatile int i = 0;; ++i) {} }"
    with pytest.raises(PtoError, match="did not end within"):
        kernel(text).run(np.zeros(8, np.float32), timeout=1)


def test_a_kernel_that_ends_its_process_is_told_with_its_status(kernel):
    text = """
#include <cstdlib>
__global__ AICORE void k(__gm__ float* x) { _Exit(7); }
"""
    with pytest.raises(PtoError, match="ended with status 7"):
        kernel(text)(np.zeros(8, np.float32))


def test_a_tile_without_an_address_beside_tiles_with_one_is_refused(kernel):
    """All or none: the planner does not know which bytes the others use."""
    text = ADD.replace(" TASSIGN(z, 0x10000);", "")
    assert text != ADD
    x = np.zeros((16, 64), np.float32)
    with pytest.raises(PtoError) as caught:
        kernel(text, "k<float, 16, 64>")(x, x, x, 1.0)
    (finding,) = caught.value.diagnostics
    assert finding.code == "PTO-U253"
    assert "4,096 bytes" in finding.message  # 16 x 64 floats
    assert "TADD" in (HEAD + text).splitlines()[finding.loc.line - 1]


def test_what_the_compiler_says_is_told(kernel, monkeypatch):
    monkeypatch.setattr("pto.cxx.compiler.others", lambda: iter(()))  # each wants its own header
    with pytest.raises(PtoError) as caught:
        kernel("__global__ AICORE void k(__gm__ float* x) { vadd(x); }")(np.zeros(8, np.float32))
    assert caught.value.code == "PTO-U243"
    assert "vadd" in str(caught.value)


def test_an_open_brace_is_located_in_the_source(kernel, monkeypatch):
    """The entry that is compiled behind the source is not the user's."""
    monkeypatch.setattr("pto.cxx.compiler.others", lambda: iter(()))
    with pytest.raises(PtoError) as caught:
        kernel("__global__ AICORE void k(__gm__ float* x) { x[0] = 1;")(np.zeros(8, np.float32))
    (finding,) = caught.value.diagnostics
    assert "}" in finding.message
    assert finding.loc is not None and not finding.loc.file.endswith("whole.cpp")


def test_wrong_arguments_are_findings(kernel):
    good = kernel(ADD, "k<float, 16, 64>")
    out, a, b = arrays(1)
    for args, code in (
        ((out, a, b), "PTO-U032"),
        ((out, a, b.astype(np.float64), 1.0), "PTO-U213"),
        ((out, a, b, "two"), "PTO-U033"),
    ):
        with pytest.raises(PtoError) as caught:
            good(*args)
        assert caught.value.code == code


def test_a_kernel_that_throws(kernel):
    with pytest.raises(PtoError) as caught:
        kernel("AICORE void k(__gm__ float* x) { throw 1; }")(np.zeros(8, np.float32))
    assert caught.value.code == "PTO-U244"


def test_without_a_compiler_the_message_says_so(monkeypatch, tmp_path):
    from pto.cxx import compiler

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    cached = (compiler.find, compiler._named)
    for each in cached:
        each.cache_clear()
    with pytest.raises(PtoError) as caught:
        compiler.find()
    for each in cached:
        each.cache_clear()
    assert caught.value.code == "PTO-U242"


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("Debian clang version 14.0.6", True),
        ("Debian clang version 19.1.7 (3+b1)", False),
        ("g++ (Debian 12.2.0-14) 12.2.0", False),
    ],
)
def test_clang_without_float16_is_not_used(version: str, old: bool):
    from pto.cxx.compiler import CxxCompiler

    assert CxxCompiler("path", version).is_too_old is old


def test_clang_builds_what_gcc_builds(kernel, monkeypatch):
    from pto.cxx import compiler

    found = compiler.clang()
    if found is None:
        pytest.skip("no clang++ of 15 or newer")
    monkeypatch.setenv("CXX", found.path)
    out, a, b = arrays(1)
    for cached in (compiler.find, compiler._base):
        cached.cache_clear()
    try:
        kernel(ADD, "k<float, 16, 64>")(out, a, b, 2.0)
    finally:
        for cached in (compiler.find, compiler._base):
            cached.cache_clear()
    assert np.array_equal(out, (a + b) * 2)


def test_a_kernel_is_timed_at_its_own_lines(kernel):
    timing = kernel(ADD, "k<float, 16, 64>").time(
        (4, 16, 64), (4, 16, 64), (4, 16, 64), 1.0, blocks=4
    )
    lines = ("#include\n\n" + ADD).splitlines()
    assert timing.device == "910b1"
    assert timing.busy["vector"]["MTE2"] > 0
    assert timing.hbm_bytes == pytest.approx(2 * 4 * 16 * 64 * 4, rel=0.01)  # what is read, once
    told = {job.op.name: job.op.loc for job in timing.stream.jobs}
    assert "TMULS" in lines[told["pto.tmuls"].line - 1]
    assert timing.waits
    assert all(w.loc.file.endswith("kernel.cpp") for w in timing.waits)


def test_blocks_that_do_different_work_are_timed(kernel):
    """Only block 0 loads: the cores have two kinds of work, each with its timeline."""
    text = ADD.replace("    TLOAD(x", "    if (get_block_idx() == 0) TLOAD(x", 1)
    assert text != ADD
    timing = kernel(text, "k<float, 16, 64>").time(*((4, 16, 64),) * 3, 1.0, blocks=4)
    loads = [
        sum(job.op.name == "pto.tload" for job in group.timing.stream.jobs)
        for group in timing.groups
        if group.timing is not None
    ]
    assert sorted(loads) == [1, 2]


def test_numbers_that_the_kernel_itself_reads_are_there_when_it_is_timed(kernel):
    text = ADD.replace("T scale)", "__gm__ int32_t* times)").replace("scale", "T(1)")
    text = text.replace(
        "    TADD(z, x, y);", "    for (int i = 0; i < times[2]; ++i) TADD(z, x, y);"
    )
    made = kernel(text, "k<float, 16, 64>")
    found = [made.time(*((16, 64),) * 3, np.array([0, 0, n], np.int32)) for n in (9, 3)]
    adds = [sum(job.op.name == "pto.tadd" for job in each.stream.jobs) for each in found]
    assert adds == [9, 3]


def test_pipes_that_a_compiler_orders_are_timed_in_the_order_of_their_tiles(kernel):
    """The first addition waits for the loads, the store for the product, as with flags."""
    shapes = ((16, 64),) * 3
    ordered = kernel(ADD, "k<float, 16, 64>").time(*shapes, 1.0)
    bare = re.sub(r" *(set_flag|wait_flag|pipe_barrier)\(.*;\n", "", ADD)
    found = kernel(bare, "k<float, 16, 64>", defines=["__PTO_AUTO__"]).time(*shapes, 1.0)
    assert found.core_us == pytest.approx(ordered.core_us, rel=0.02)
    assert "__PTO_AUTO__" in str(found) and "__PTO_AUTO__" not in str(ordered)
    assert {w.op.name for w in found.waits} == {"pto.tadd", "pto.tstore"}


def test_time_wants_what_the_kernel_takes(kernel):
    with pytest.raises(PtoError, match="takes 4 arguments, got 1"):
        kernel(ADD, "k<float, 16, 64>").time((4, 16, 64))


OPTIONAL = """
__global__ AICORE void k(__gm__ float* out, __gm__ float* in)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
    Tile<TileType::Vec, float, 1, 64> t;
    TASSIGN(t, 0);
    TEXPANDS(t, in == nullptr ? 1.0f : 2.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    G g(out);
    TSTORE(g, t);
}
"""


def test_none_is_a_null_pointer(kernel):
    out = np.zeros(64, np.float32)
    optional = kernel(OPTIONAL, "k")
    optional(out, None)
    assert (out == 1).all()
    optional(out, out.copy())
    assert (out == 2).all()
    assert optional.time(out, None).us > 0


MERGE = """
__global__ AICORE void k(
    __gm__ float* out, __gm__ uint32_t* counts, __gm__ float* a, __gm__ float* b)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
    using H = GlobalTensor<float, Shape<1, 1, 1, 1, 128>, Stride<128, 128, 128, 128, 1>>;
    Tile<TileType::Vec, float, 1, 64> x, y;
    Tile<TileType::Vec, float, 1, 128> merged, tmp;
    TASSIGN(x, 0x0); TASSIGN(y, 0x400); TASSIGN(merged, 0x800); TASSIGN(tmp, 0x1000);
    G ga(a), gb(b);
    H go(out);
    TLOAD(x, ga);
    TLOAD(y, gb);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MrgSortExecutedNumList executed;
    TMRGSORT<decltype(merged), decltype(tmp), decltype(x), decltype(y), false>(
        merged, executed, tmp, x, y);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, merged);
    counts[0] = executed.mrgSortList0;
    counts[1] = executed.mrgSortList1;
}
"""


def test_lists_are_merged_and_the_kernel_reads_how_many(kernel):
    """A record is a value and its index, both four bytes; values fall."""
    records = np.zeros((2, 32, 2), np.float32)
    values = np.random.default_rng(3).permutation(64).reshape(2, 32).astype(np.float32)
    records[..., 0] = -np.sort(-values, axis=1)
    out, counts = np.zeros((64, 2), np.float32), np.zeros(2, np.uint32)
    kernel(MERGE)(out, counts, records[0].copy(), records[1].copy())
    assert np.array_equal(out[:, 0], np.arange(63, -1, -1, dtype=np.float32))
    assert counts.tolist() == [32, 32]


def test_the_command_line_says_what_it_does_not_do(kernel, capsys):
    from pto.cli.main import main

    path = str(kernel(ADD, "k<float, 16, 64>").source.path)
    sizes = [f"--arg={name}=zeros:16x64xf32" for name in ("out", "a", "b")]
    words = ["run", path, "--entry", "k<float, 16, 64>", *sizes, "--arg=scale=2"]
    assert main([*words, "--schedule", "late"]) != 0
    assert "PTO-U280" in capsys.readouterr().err
    assert main([*words, "--trace", "t.json"]) != 0
    assert "PTO-U232" in capsys.readouterr().err
    assert main([*words, "--profile", "a5"]) == 0
    assert "profile a5" in capsys.readouterr().out
    assert main([*words, "--sanitize", "--format", "json"]) == 0
    assert '"findings": []' in capsys.readouterr().out
    assert main(["run", path]) != 0  # a template
    assert "PTO-U031" in capsys.readouterr().err


def test_the_only_kernel_of_a_source_needs_no_name(kernel, capsys):
    from pto.cli.main import main

    path = str(kernel(MERGE).source.path)
    assert main(["run", path, "--arg=nothing=0"]) != 0
    assert "PTO-U031" not in capsys.readouterr().err


EXPONENTS = """
__global__ AICORE void k(__gm__ uint8_t* out, __gm__ uint8_t* in)
{
    using Line = Tile<TileType::Vec, uint8_t, 1, 128>;
    using Boxes =
        Tile<TileType::Vec, uint8_t, 32, 4, BLayout::RowMajor, 29, 4, SLayout::RowMajor, 32>;
    using G = GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 128>, Stride<128, 128, 128, 128, 1>>;
    Line x, y, tmp;
    Boxes z;
    TASSIGN(x, 0x0); TASSIGN(y, 0x1000); TASSIGN(z, 0x1000); TASSIGN(tmp, 0x2000);
    G gi(in), go(out);
    TLOAD(x, gi);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMOV(z, x, tmp);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, y);
}
"""


def test_exponents_in_a_line_become_boxes_of_scales(kernel):
    """29 rows of 4 exponents: boxes of 16 rows by 2, the last rows zero."""
    x = np.zeros((32, 4), np.uint8)
    x[:29] = np.arange(1, 117).reshape(29, 4)
    out = np.full(128, 255, np.uint8)
    kernel(EXPONENTS, profile="a5", sides=("vector",))(out, x.reshape(-1))
    assert np.array_equal(out, x.reshape(2, 16, 2, 2).transpose(0, 2, 1, 3).reshape(-1))


SCALES = """
template <class Shape2D>
__global__ AICORE void k(__gm__ uint8_t* in)
{
    using X = float8_e8m0_t;
    using G = GlobalTensor<X, Shape2D, BaseShape2D<X, 128, 64, Layout::MX_A_ND>, Layout::MX_A_ND>;
    Tile<TileType::Mat, X, 32, 16, BLayout::RowMajor, 32, 16, SLayout::RowMajor, 32> t;
    TASSIGN(t, 0x0);
    G g(reinterpret_cast<__gm__ X*>(in), Shape2D(SIZES));
    TLOAD(t, g);
}
"""


def test_scales_are_loaded_as_many_as_are_valid(kernel):
    """The header looks at the strides of such a tensor, and not at its shape."""
    shapes = ("Shape<1, 1, -1, -1, 2>", "32, 8"), ("Shape<1, 1, 1, -1, -1>", "32, 16")
    for shape, sizes in shapes:
        load = kernel(SCALES.replace("SIZES", sizes), f"k<{shape}>", "a5")
        (region,) = regions_of(load.time((128 * 64,)).stream)
        assert (region.rows, region.row_bytes, region.pitch) == (32, 16, 64)


def test_pipes_that_a_compiler_orders_are_not_looked_at(kernel):
    """`__PTO_AUTO__` of the build says so."""
    out, a, b = arrays(1)
    unordered = ADD.replace("set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);", "")
    racy = kernel(unordered, "k<float, 16, 64>", defines=["RACE"])
    assert "PTO-R001" in {d.code for d in racy.sanitize(out, a, b, 1.0)}
    left = kernel(unordered, "k<float, 16, 64>", defines=["RACE", "__PTO_AUTO__"])
    found = left.sanitize(out, a, b, 1.0)
    assert found.is_clean
    assert "__PTO_AUTO__" in str(found)


ARRIVALS = """
__global__ AICORE void k(__gm__ int32_t* words, __gm__ int32_t* seen)
{
    const int32_t me = int32_t(get_block_idx());
    set_st_atomic_cfg(ATOMIC_S32, ATOMIC_MAX);
    st_atomic<int32_t>(me * 10, words + 1);
    set_st_atomic_cfg(ATOMIC_S32, ATOMIC_SUM);
    st_atomic<int32_t>(1, words);
    while (ld_dev(words, 0) < int32_t(get_block_num())) {}
    seen[me] = ld_dev(words, 4);
}
"""


def test_blocks_wait_until_a_counter_has_them_all(kernel):
    """A scalar store that adds, or keeps the greatest: whoever passes has seen what all wrote."""
    words, seen = np.zeros(2, np.int32), np.zeros(5, np.int32)
    kernel(ARRIVALS).run(words, seen, blocks=5)
    assert words.tolist() == [5, 40]
    assert seen.tolist() == [40] * 5


ALONE = """
#define GM_ADDR __gm__ uint8_t*
%s
extern "C" __global__ AICORE void k(GM_ADDR x)
{
#if __CCE_AICORE__ == 220 && defined(__DAV_C220_VEC__)
    using G = GlobalTensor<float, Shape<1, 1, 1, 8, 32>, Stride<1, 1, 1, 32, 1>>;
    Tile<TileType::Vec, float, 8, 32> t;
    TASSIGN(t, 0x0);
    G g((__gm__ float*)x + %s * 8 * 32);
    TLOAD(t, g);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(t, t, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(g, t);
#endif
}
%s
"""
GUARD = "#if __CCE_AICORE__ == 220 && defined(__DAV_C220_VEC__)", "#endif"
BLOCK, SUB_BLOCK = "block_idx", "(get_block_idx() * 2 + get_subblockid())"


@pytest.mark.parametrize(
    ("guard", "place", "blocks"),
    [(("", ""), BLOCK, 4), (GUARD, BLOCK, 4), (("", ""), SUB_BLOCK, 2)],
    ids=["body", "file", "sub-blocks"],
)
def test_a_kernel_that_names_vector_cores_alone(kernel, guard, place: str, blocks: int):
    """Its blocks are vector cores, unless it counts the sub-blocks beside a cube. Where all of it
    stands under the word of one side, the other is not built. GM_ADDR takes any array."""
    k = kernel(ALONE % (guard[0], place, guard[1]))
    x = np.arange(4 * 8 * 32, dtype=np.float32)
    before = x.copy()
    assert k.sanitize(x, blocks=blocks).is_clean
    np.testing.assert_array_equal(x, before + 1)


def test_a_kernel_that_no_side_has(kernel):
    text = ALONE % (GUARD[0], SUB_BLOCK, GUARD[1])
    with pytest.raises(PtoError, match="has no scale<float> on a2a3, vector or cube") as caught:
        kernel(text, "scale<float>")(np.zeros(256, np.float32))
    assert caught.value.code == "PTO-U243"


def test_sides_find_a_launch_by_a_key_without_a_path(kernel):
    """Both builds lie in folders of their own; clang names a closure by the path of its file."""
    from pto.cxx.native import NativeBuild

    text = (
        "#ifdef __DAV_CUBE__\n#elif defined(__DAV_VEC__)\n#endif\nAICORE void k(__gm__ float* x) {}"
    )
    builds = kernel(text, sides=("vector", "cube")).source.builds("k")
    for path in builds.values():
        assert NativeBuild(path).kernel(b"1048576 Z8pto_mainEUlvE_") is not None


def test_a_changed_header_of_another_folder_is_built_again(kernel, tmp_path: Path):
    text = '#include "factor.h"\n' + ADD.replace("TMULS(z, z, scale)", "TMULS(z, z, FACTOR)")
    first, second = folders = [tmp_path / "first", tmp_path / "second"]

    def result(*include: Path) -> float:
        out, a, b = (np.ones((16, 64), np.float32) for _ in range(3))
        kernel(text, "k<float, 16, 64>", include=include)(out, a, b, 1.0)
        return float(out[0, 0])

    for folder, factor in zip(folders, (2, 5), strict=True):
        folder.mkdir()
        (folder / "factor.h").write_text(f"#define FACTOR {factor}.0f\n")
    assert (result(first, second), result(second, first)) == (4.0, 10.0)
    (first / "factor.h").write_text("#define FACTOR 3.0f\n")
    assert (result(first, second), result(second, first)) == (6.0, 10.0)


@pytest.mark.parametrize("turned", [False, True], ids=["contiguous", "turned"])
def test_arguments_that_are_one_array_are_one_memory(kernel, turned: bool):
    run = kernel(ADD, "k<float, 16, 64>")
    a = np.ones((64, 16), np.float32).T if turned else np.ones((16, 64), np.float32)
    run(a, a, a, 3.0)  # the result is the first parameter
    assert (a == 6).all()
    found = run.sanitize(a, a, a, 3.0)
    assert found == [] and (a == 36).all()


def test_arguments_that_overlap_do_so_in_the_kernel(kernel):
    run = kernel(ADD, "k<float, 16, 64>")
    whole = np.ones((2, 16, 64), np.float32)
    run[1](whole[1:], whole[:1], whole[1:], 2.0)
    assert (whole[0] == 1).all() and (whole[1] == 4).all()
    wide = np.ones((16, 96), np.float32)
    with pytest.raises(PtoError, match="parameter 0 and parameter 1 overlap in memory"):
        run(wide[:, 32:], wide[:, :64], np.ones((16, 64), np.float32), 2.0)
