"""TIMG2COL: a convolution computed by loops is the product of its matrix and the filters."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.places import TILES, inside, untouched
from tests.machine import Bench

C0 = 16  # of f16


def feature_map(n: int, c1: int, h: int, w: int, d: int = 1) -> np.ndarray:
    count = n * d * c1 * h * w * C0
    return (np.arange(count) % 2039 + 1).astype(np.float16).reshape(n, d, c1, h, w, C0)


def attrs(**numbers: int) -> str:
    return "{" + ", ".join(f"{name} = {value} : i64" for name, value in numbers.items()) + "}"


def expected(
    fmap: np.ndarray,
    filter: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    outside: float = 0.0,
) -> np.ndarray:
    """Row (n, d, oh, ow), column (c1, kh, kw, c0), by looking into a padded map."""
    left, right, top, bottom = pad
    wide = ((0, 0), (0, 0), (0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(fmap, wide, constant_values=outside)
    n, d, c1, h, w, _ = padded.shape
    out_h = (h - dilation[0] * (filter[0] - 1) - 1) // stride[0] + 1
    out_w = (w - dilation[1] * (filter[1] - 1) - 1) // stride[1] + 1
    rows = []
    for where in np.ndindex(n, d, out_h, out_w):
        row = [
            padded[
                where[0],
                where[1],
                c,
                where[2] * stride[0] + kh * dilation[0],
                where[3] * stride[1] + kw * dilation[1],
            ]
            for c in range(c1)
            for kh in range(filter[0])
            for kw in range(filter[1])
        ]
        rows.append(np.concatenate(row))
    return np.array(rows)


def run(
    fmap: np.ndarray,
    text: str,
    rows: int,
    cols: int,
    at: tuple[int, int] | None = None,
    before: str = "",
) -> Bench:
    bench = Bench("a5")
    size = -(-fmap.size // 512) * 512
    source = bench.tile("s", f"mat, {size // 16}x16xf16")
    source.items[: fmap.size] = fmap.reshape(-1).view(np.uint16)
    tall, wide = -(-rows // 16) * 16, -(-cols // 16) * 16
    bench.tile("d", f"left, {tall}x{wide}xf16{TILES['NZ']}", valid=(rows, cols))
    ins = "%s : {s}"
    if at is not None:
        bench.scalar("m", "i32", at[0])
        bench.scalar("k", "i32", at[1])
        ins = "%s, %m, %k : {s}, i32, i32"
    bench.run(f"{before}\npto.timg2col ins({ins}) outs(%d : {{d}}) {text}")
    return bench


@pytest.mark.parametrize(
    ("stride", "dilation", "pad"),
    [
        ((1, 1), (1, 1), (0, 0, 0, 0)),
        ((2, 1), (1, 1), (0, 0, 0, 0)),
        ((1, 1), (1, 2), (1, 1, 0, 0)),
        ((2, 3), (2, 1), (2, 1, 1, 3)),
    ],
)
def test_every_tap_of_every_place(
    stride: tuple[int, int], dilation: tuple[int, int], pad: tuple[int, int, int, int]
):
    fmap = feature_map(2, 2, 6, 7)
    want = expected(fmap, (3, 2), stride, dilation, pad)
    text = attrs(
        n=2, c1=2, h=6, w=7, filter_h=3, filter_w=2,
        stride_h=stride[0], stride_w=stride[1], dilation_h=dilation[0], dilation_w=dilation[1],
        pad_left=pad[0], pad_right=pad[1], pad_top=pad[2], pad_bottom=pad[3],
    )  # fmt: skip
    bench = run(fmap, text, *want.shape)
    tile = bench.values["d"]
    assert np.array_equal(tile.read_valid(), want)
    assert untouched(tile)[~inside(tile.type.shape, *want.shape)].all()


def test_depth_is_part_of_the_row():
    fmap = feature_map(1, 1, 3, 3, d=2)
    want = expected(fmap, (2, 2))
    text = attrs(d=2, c1=1, h=3, w=3, filter_h=2, filter_w=2)[:-1] + ', format = "NDC1HWC0"}'
    bench = run(fmap, text, *want.shape)
    assert np.array_equal(bench.values["d"].read_valid(), want)


def test_a_window_of_the_matrix():
    fmap = feature_map(1, 2, 5, 5)
    want = expected(fmap, (2, 2))[5:12, 24:50]
    bench = run(fmap, attrs(c1=2, h=5, w=5, filter_h=2, filter_w=2), 7, 26, at=(5, 24))
    assert np.array_equal(bench.values["d"].read_valid(), want)


def test_outside_the_map_stands_the_padding():
    fmap = feature_map(1, 1, 2, 2)
    bits = int(np.float16(-1.5).view(np.uint16))
    want = expected(fmap, (2, 2), pad=(1, 1, 1, 1), outside=-1.5)
    text = attrs(
        c1=1, h=2, w=2, filter_h=2, filter_w=2,
        pad_left=1, pad_right=1, pad_top=1, pad_bottom=1, pad_value=bits,
    )  # fmt: skip
    bench = run(fmap, text, *want.shape)
    assert np.array_equal(bench.values["d"].read_valid(), want)
    # rows beyond the last place and columns beyond the last tap are padding too
    beyond = run(fmap, text, 12, 80).values["d"].read_valid()
    assert (beyond[9:] == -1.5).all() and (beyond[:, 64:] == -1.5).all()


def test_channels_that_do_not_count_are_padding():
    fmap = feature_map(1, 1, 2, 2)
    bench = run(fmap, attrs(c1=1, h=2, w=2, channels=5), 4, 16)
    found = bench.values["d"].read_valid()
    assert np.array_equal(found[:, :5], fmap.reshape(4, 16)[:, :5]) and not found[:, 5:].any()


def test_registers_of_a_manual_matrix_win():
    fmap = feature_map(1, 1, 2, 2)
    want = expected(fmap, (1, 1), pad=(1, 0, 0, 0), outside=2.0)
    two = int(np.float16(2.0).view(np.uint16))
    before = (
        f"pto.setfmatrix ins(%s : {{s}}) {attrs(h=2, w=2, pad_left=1)}\n"
        f"pto.set_img2col_padding ins(%s : {{s}}) {attrs(pad_value=two)}\n"
        f"pto.set_img2col_rpt ins(%s : {{s}}) {attrs(repeat_time=3)}"
    )
    manual = run(fmap, attrs(c1=1, h=2, w=2), *want.shape, before=before)
    assert np.array_equal(manual.values["d"].read_valid(), want)
    own = attrs(c1=1, h=2, w=2)[:-1] + ', fmatrix = "FMATRIX_A_AUTO"}'
    automatic = run(fmap, own, 4, 16, before=before)
    assert np.array_equal(automatic.values["d"].read_valid(), fmap.reshape(4, 16))
    other = attrs(c1=1, h=2, w=2)[:-1] + ', fmatrix = "FMATRIX_B_MANUAL"}'
    second = run(fmap, other, 4, 16, before=before)
    assert np.array_equal(second.values["d"].read_valid(), fmap.reshape(4, 16))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (attrs(c1=9, h=8, w=8), "PTO-S173"),
        (attrs(c1=1, h=2, w=2, filter_h=4), "PTO-S174"),
    ],
)
def test_maps_that_cannot_be(text: str, code: str):
    with pytest.raises(PtoError) as error:
        run(feature_map(1, 1, 2, 2), text, 4, 16)
    assert error.value.diagnostics[0].code == code


@pytest.mark.parametrize("at", [(-1, 0), (0, -1), (0, -(1 << 31))])
def test_there_is_nothing_before_the_matrix(at: tuple[int, int]):
    sizes = attrs(h=4, w=4, c1=1, filter_h=2, filter_w=2, stride_h=1, stride_w=1)
    text = sizes[:-1] + ', fmatrix = "FMATRIX_A_AUTO"}'
    with pytest.raises(PtoError, match="PTO-S175"):
        run(feature_map(1, 1, 4, 4), text, 9, 64, at=at)
