"""Cases where the headers of the chips decide otherwise than text programs: values and findings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError

FILLPAD = """
extern "C" __global__ AICORE void k(__gm__ float* y, __gm__ float* x)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 1, 20>, Stride<1, 1, 1, 64, 1>>;
    using W = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>>;
    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, 20, SLayout::NoneBox, 512,
        PadValue::%s> a;
    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, 64, SLayout::NoneBox, 512,
        PadValue::Zero> p;
    TASSIGN(a, 0); TASSIGN(p, 0);
    G from(x); W to(y);
    TLOAD(a, from);
    %s
    TFILLPAD_INPLACE(p, a);
    %s
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, p);
}
"""
WAIT = "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"


def padded(factor: int = 1) -> np.ndarray:
    return np.where(np.arange(64) < 20, np.arange(64) * factor, 0).astype(np.float32)


def test_a_fill_in_place_begins_behind_the_block_that_the_load_padded(kernel):
    """a2a3/TFillPad.hpp: with one pad value columns 24 and on alone; the load writes up to 24."""
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    assert kernel(FILLPAD % ("Zero", "", "")).sanitize(y, x) == []
    np.testing.assert_array_equal(y, padded())


def test_with_another_pad_value_it_writes_the_rest_of_that_block(kernel):
    """Bytes 80 to 96, which the load pads too."""
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    found = kernel(FILLPAD % ("Max", "", "")).sanitize(y, x)
    assert [d.code for d in found] == ["PTO-R003"]
    assert "UB[0x0050..0x0060)" in found[0].message
    assert kernel(FILLPAD % ("Max", WAIT, "")).sanitize(y, x) == []
    np.testing.assert_array_equal(y, padded())


def test_a_fill_of_one_row_ends_with_a_barrier_of_its_own(kernel):
    """PadRightSingleRow ends with pipe_barrier(PIPE_V); a barrier of the source is not needless."""
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    for between in ("", "pipe_barrier(PIPE_V);"):
        text = FILLPAD % ("Zero", WAIT, f"{between} TMULS(p, p, 2.0f);")
        assert kernel(text).sanitize(y, x) == []
        np.testing.assert_array_equal(y, padded(2))


TWO_ROWS = """
extern "C" __global__ AICORE void k(__gm__ float* y)
{
    Tile<TileType::Vec, float, 2, 64, BLayout::RowMajor, 2, 20> a;
    Tile<TileType::Vec, float, 2, 64, BLayout::RowMajor, 2, 64, SLayout::NoneBox, 512,
        PadValue::Zero> p;
    Tile<TileType::Vec, float, 1, 64> first, second, sum;
    TASSIGN(a, 0); TASSIGN(p, 0); TASSIGN(first, 0); TASSIGN(second, 256); TASSIGN(sum, 1024);
    TEXPANDS(a, 1.0f);
    pipe_barrier(PIPE_V);
    TFILLPAD_INPLACE(p, a);
    TMULS(sum, %s, 2.0f);
}
"""


@pytest.mark.parametrize(("row", "codes"), [("first", []), ("second", ["PTO-R004"])])
def test_a_fill_of_two_rows_has_the_barrier_behind_the_first(kernel, row, codes):
    found = kernel(TWO_ROWS % row).sanitize(np.ones(64, np.float32))
    assert [d.code for d in found] == codes


LOOK = """
extern "C" __global__ AICORE void k(__gm__ float* x)
{
    GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>> from(x);
    Tile<TileType::Vec, float, 1, 64> t, u;
    TASSIGN(t, 0); TASSIGN(u, 0x100);
    TLOAD(t, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(t, t, 2.0f);
    %s
    const float n = t.GetValue(63);
    TEXPANDS(u, n);
    pipe_barrier(PIPE_V);
    TEXPANDS(t, 0.0f);
}
"""


def test_the_scalar_unit_reads_an_element_and_waits_for_who_wrote_it(kernel):
    x = np.ones(64, np.float32)
    flag = "set_flag(PIPE_V, PIPE_S, EVENT_ID0); wait_flag(PIPE_V, PIPE_S, EVENT_ID0);"
    (found, *others) = kernel(LOOK % "").sanitize(x)
    assert found.code == "PTO-R001"
    assert "S may read before V has written" in found.message
    line = Path(found.loc.file).read_text().splitlines()[found.loc.line - 1]
    assert "GetValue" in line
    assert others == []
    assert kernel(LOOK % flag).sanitize(x) == []  # the value is there before more is issued


CONVERT = """
extern "C" __global__ AICORE void k(__gm__ float* y, __gm__ half* x)
{
    Tile<TileType::Vec, half, 1, 16, BLayout::RowMajor, -1, -1> h(1, 3);
    Tile<TileType::Vec, float, 1, 8, BLayout::RowMajor, -1, -1> f(1, %d);
    TASSIGN(h, 0); TASSIGN(f, 0x100);
    GlobalTensor<half, Shape<1, 1, 1, 1, 3>, Stride<1, 1, 1, 3, 1>> from(x);
    GlobalTensor<float, Shape<1, 1, 1, 1, 3>, Stride<1, 1, 1, 3, 1>> to(y);
    TLOAD(h, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TCVT(f, h, RoundMode::CAST_NONE);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, f);
}
"""


def test_a_conversion_asks_for_valid_regions_not_for_shapes(kernel):
    x, y = np.array([1.5, -2, 7], np.float16), np.zeros(3, np.float32)
    assert kernel(CONVERT % 3).sanitize(y, x) == []
    np.testing.assert_array_equal(y, x.astype(np.float32))
    with pytest.raises(PtoError):
        kernel(CONVERT % 2).run(y, x)


COLUMN = """
extern "C" __global__ AICORE void k(__gm__ float* y, __gm__ float* x)
{
    Tile<TileType::Vec, float, 16, %d, BLayout::ColMajor, %d, %d> t;
    TASSIGN(t, 0);
    GlobalTensor<float, Shape<1, 1, 1, %d, %d>, Stride<1, 1, 1, 1, 16>, Layout::DN> from(x), to(y);
    TLOAD(t, from);
    pipe_barrier(PIPE_ALL);
    TMULS(t, t, 2.0f);
    pipe_barrier(PIPE_ALL);
    TSTORE(to, t);
}
"""


def test_a_scalar_and_columns_without_a_gap(kernel):
    """TBinSOp.hpp takes them as one line; with a gap it would take other elements."""
    for cols, rows in ((1, 16), (1, 11), (2, 16)):
        x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
        kernel(COLUMN % (cols, rows, cols, rows, cols)).run(y, x)
        expected = np.zeros((2, 16), np.float32)
        expected[:cols, :rows] = 2 * x.reshape(2, 16)[:cols, :rows]
        np.testing.assert_array_equal(y.reshape(2, 16), expected)
    with pytest.raises(PtoError) as caught:
        kernel(COLUMN % (2, 11, 2, 11, 2)).run(np.zeros(32, np.float32), np.zeros(32, np.float32))
    assert caught.value.code == "PTO-L023"


INSERT = """
extern "C" __global__ AICORE void k(__gm__ half* y, __gm__ half* x)
{
    Tile<TileType::Mat, half, 32, 32, BLayout::%s, 32, 32, SLayout::RowMajor, 512> l1;
    TASSIGN(l1, 0);
#if defined(__DAV_VEC__)
    using G = GlobalTensor<half, Shape<1, 1, 1, 16, 32>, Stride<1, 1, 1, 32, 1>>;
    Tile<TileType::Vec, half, 16, 32> nd;
    Tile<TileType::Vec, half, 16, 32, BLayout::ColMajor, 16, 32, SLayout::RowMajor, 512> nz;
    TASSIGN(nd, 0); TASSIGN(nz, 0x1000);
    G from(x + get_subblockid() * 16 * 32);
    TLOAD(nd, from);
    pipe_barrier(PIPE_ALL);
    TMOV(nz, nd);
    pipe_barrier(PIPE_ALL);
    TINSERT(l1, nz, uint16_t(get_subblockid() * 16), uint16_t(0));
    pipe_barrier(PIPE_ALL);
    set_intra_block(PIPE_MTE3, 0);
#endif
#if defined(__DAV_CUBE__)
    wait_intra_block(PIPE_MTE1, 0); wait_intra_block(PIPE_MTE1, 16);
    Tile<TileType::Mat, half, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor, 512> seen;
    TASSIGN(seen, 0);
    TileLeft<half, 32, 32> l; TileRight<half, 32, 32> r; TileAcc<float, 32, 32> acc;
    Tile<TileType::Mat, half, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor, 512> one;
    TASSIGN(one, 0x4000); TASSIGN(l, 0); TASSIGN(r, 0); TASSIGN(acc, 0);
    using W = GlobalTensor<half, Shape<1, 1, 1, 32, 32>, Stride<1, 1, 1, 32, 1>>;
    W unit(x + 1024), to(y);
    TLOAD(one, unit);
    pipe_barrier(PIPE_ALL);
    TMOV(l, seen); TMOV(r, one);
    pipe_barrier(PIPE_ALL);
    TMATMUL(acc, l, r);
    pipe_barrier(PIPE_ALL);
    TSTORE(to, acc);
#endif
}
"""


@pytest.mark.parametrize("declared", ["ColMajor", "RowMajor"])
def test_boxes_are_inserted_by_columns_whatever_the_type_says(kernel, declared: str):
    """a5/TInsert.hpp, TInsertVecToMatImpl: strips of columns are copied as they are."""
    x = np.concatenate([np.arange(1024) % 61, np.eye(32).reshape(-1)]).astype(np.float16)
    y = np.zeros(1024, np.float16)
    kernel(INSERT % declared, profile="a5").run(y, x)
    np.testing.assert_array_equal(y, x[:1024])


def test_an_insertion_in_bursts_writes_16_rows_at_a_time(kernel):
    """a5/TInsert.hpp, TInsertSplitImpl: 8 rows are valid in the tile that is inserted."""
    part = (
        "Tile<TileType::Vec, half, 16, 32, BLayout::ColMajor, 8, 32, SLayout::RowMajor, 512> part;"
    )
    text = (INSERT % "ColMajor").replace("TINSERT(l1, nz", "TINSERT<TInsertMode::SPLIT2>(l1, part")
    text = text.replace("TASSIGN(nd, 0);", f"{part} TASSIGN(part, 0x1000); TASSIGN(nd, 0);")
    x = np.concatenate([np.arange(1024) % 61, np.eye(32).reshape(-1)]).astype(np.float16)
    y = np.zeros(1024, np.float16)
    kernel(text, profile="a5").run(y, x)
    np.testing.assert_array_equal(y, x[:1024])


BOXES = """
extern "C" __global__ AICORE void k(__gm__ float* y, __gm__ half* x, __gm__ half* unit)
{
    using G = GlobalTensor<half, Shape<1, 1, 1, 11, %d>, Stride<1, 1, 1, 16, 1>>;
    using U = GlobalTensor<half, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
    using O = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
    Tile<TileType::Mat, half, 16, 16, BLayout::ColMajor, 16, %d, SLayout::RowMajor, 512> a;
    Tile<TileType::Mat, half, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 512> b, whole;
    TASSIGN(a, 0); TASSIGN(whole, 0); TASSIGN(b, 0x1000);
    TileLeft<half, 16, 16> l; TileRight<half, 16, 16> r; TileAcc<float, 16, 16> acc;
    TASSIGN(l, 0); TASSIGN(r, 0); TASSIGN(acc, 0);
    G part(x); U zeros(unit + 256), one(unit); O to(y);
    TLOAD(whole, zeros);
    pipe_barrier(PIPE_ALL);
    TLOAD(a, part);
    TLOAD(b, one);
    pipe_barrier(PIPE_ALL);
    TMOV(l, whole); TMOV(r, b);
    pipe_barrier(PIPE_ALL);
    TMATMUL(acc, l, r);
    pipe_barrier(PIPE_ALL);
    TSTORE(to, acc);
}
"""


@pytest.mark.parametrize(
    ("profile", "given", "valid", "loaded"), [("a2a3", 9, 16, 9), ("a5", 9, 9, 9), ("a5", 16, 9, 9)]
)
def test_a_load_into_boxes_takes_the_lines_of_the_tensor(
    kernel, profile: str, given: int, valid: int, loaded: int
):
    """11 lines, whatever is valid; a2a3 takes their length from the tensor, a5 from the tile."""
    x = np.arange(1, 257, dtype=np.float16).reshape(16, 16)
    unit = np.concatenate([np.eye(16), np.zeros((16, 16))]).astype(np.float16)
    y = np.ones((16, 16), np.float32)
    kernel(BOXES % (given, valid), profile=profile).run(y, x, unit)
    expected = np.zeros((16, 16), np.float32)
    expected[:11, :loaded] = x[:11, :loaded]
    np.testing.assert_array_equal(y, expected)


L1 = """
extern "C" __global__ AICORE void k(__gm__ half* x)
{
    using G = GlobalTensor<half, Shape<1, 1, 1, 10, 20>, Stride<1, 1, 1, 20, 1>>;
    Tile<TileType::Mat, half, 16, 48, BLayout::ColMajor, 10, 20, SLayout::RowMajor, 512,
        PadValue::Zero> a;
    TASSIGN(a, 0);
    G from(x);
    TLOAD(a, from);
    TFILLPAD(a, a);
}
"""


def test_a_fill_in_l1_touches_nothing_that_a_load_wrote(kernel):
    """One pipe, no barrier between: rows below, and columns behind the block of the last one."""
    assert kernel(L1, sides=("cube",)).sanitize(np.ones((10, 20), np.float16)) == []
