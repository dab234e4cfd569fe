"""The kernels that stand for published ones: they compute what they say, and take as long."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from docs.make.timing import PAGE, replayed
from examples.timing.conv2d import conv2d
from examples.timing.flash_attention import flash_attention, shapes
from examples.timing.gemm import Tiling, gemm
from examples.timing.gemm_mx import gemm_mx
from examples.timing.published import Published, published
from examples.timing.top_k import top_k
from pto.core.findings import Findings

QUICK = (
    "GEMM 1536",
    "GEMM 3072",
    "conv2d 4x128x8x48 to 1536",
    "conv2d 4x256x12x64 to 3072",
    "MXFP8 matmul 4096",
    "flash attention 1024x1024",
    "top-k float32 2304x1024, best 1000",
)
ROWS = {row.name: row for row in published()}
rng = np.random.default_rng(16)


def races(found: Findings) -> list[str]:
    """All but those of products that follow each other without a barrier, as the published do."""
    return [str(each) for each in found if each.code != "PTO-R004"]


@pytest.mark.parametrize("row", [ROWS[name] for name in QUICK], ids=lambda row: row.name)
def test_a_published_time(row: Published):
    (found,) = replayed([row])
    assert abs(found.error) < 0.12
    assert found.bound in ("right", "")
    if "M" in row.busy:
        assert found.busy["M"] == pytest.approx(row.busy["M"], abs=0.05)


def test_the_page_has_every_row():
    text = PAGE.read_text()
    assert len(list(published())) >= 60
    for row in published():
        assert f"| {row.name} | {row.device} | {row.us:.1f} |" in text


@pytest.mark.parametrize(
    "tiling",
    [Tiling((16, 16, 16), (2, 2)), Tiling((16, 16, 32), (2, 1), ahead=True, rounds=2)],
    ids=str,
)
@pytest.mark.parametrize("out", [np.float16, np.float32])
def test_gemm(tiling: Tiling, out: type):
    m, k, n = tiling.base
    a = rng.integers(-3, 4, (4 * m, 8 * k)).astype(np.float16)
    b = rng.integers(-3, 4, (3 * n, 8 * k)).astype(np.float16)
    c = np.zeros((4 * m, 3 * n), out)
    args = (a, b, c, 4, 2, tiling)
    gemm[4](*args)
    assert (c == a.astype(np.float64) @ b.astype(np.float64).T).all()
    assert not races(gemm[4].sanitize(*args))


def test_conv2d():
    images, groups, height, width, outputs = 2, 2, 8, 48, 512
    x = rng.integers(-3, 4, (images, groups, height, width, 16)).astype(np.float16)
    filters = rng.integers(-3, 4, (groups, 3, 3, outputs, 16)).astype(np.float16)
    y = np.zeros((images * height * width, outputs), np.float16)
    flat = (x.reshape(-1, width * 16), filters.reshape(groups * 9, -1), y, groups, height, 4)
    conv2d[4](*flat)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
    wanted = sum(
        np.einsum("bghwc,gnc->bhwn", padded[:, :, i : i + height, j : j + width], filters[:, i, j])
        for i in range(3)
        for j in range(3)
    )
    assert (y == np.asarray(wanted).reshape(y.shape)).all()
    assert not races(conv2d[4].sanitize(*flat))


@pytest.mark.parametrize("k", [1024, 5120], ids=["less than one load of scales", "more"])
def test_gemm_mx(k: int):
    m, n = 256, 256
    a, b = (rng.integers(-3, 4, (rows, k)).astype(ml_dtypes.float8_e5m2) for rows in (m, n))
    scales = [
        (2.0 ** rng.integers(-2, 3, (rows, -(-k // 4096) * 128))).astype(ml_dtypes.float8_e8m0fnu)
        for rows in (m, n)
    ]
    c = np.zeros((m, n), ml_dtypes.bfloat16)
    gemm_mx(a, scales[0], b, scales[1], c, 1, 1)
    wide = [
        x.astype(np.float64) * np.repeat(s.astype(np.float64), 32, axis=1)[:, :k]
        for x, s in zip((a, b), scales, strict=True)
    ]
    assert (c == (wide[0] @ wide[1].T).astype(ml_dtypes.bfloat16)).all()


@pytest.mark.parametrize("keys", [1024, 4096])
def test_flash_attention(keys: int):
    sizes = shapes(128, keys, 1)
    q, k, v = (rng.standard_normal(size).astype(np.float16) for size in sizes[:3])
    kinds = (np.float32, np.float32, np.float16, np.float32)
    o, *rings = (np.zeros(size, kind) for size, kind in zip(sizes[3:7], kinds, strict=True))
    args = (q, k, v, o, *rings, 1)
    flash_attention(*args)
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(128)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    assert np.allclose(o, wanted, atol=1e-3)
    assert not [each for each in races(flash_attention.sanitize(*args)) if "error" in each]


@pytest.mark.parametrize(("dtype", "best"), [(np.float32, 1000), (np.float16, 1008)])
def test_top_k(dtype: type, best: int):
    x = np.stack([rng.permutation(1280) for _ in range(8)]).astype(dtype)
    values, columns = np.zeros((8, best), dtype), np.zeros((8, best), np.uint32)
    places = np.arange(1024, dtype=np.uint32)[None]
    top_k[2](x, places, values, columns, 2)
    wanted = np.argsort(-x[:, :1024].astype(np.float64), axis=1)[:, :best]
    assert (columns == wanted).all()
    assert (values == np.take_along_axis(x, wanted, axis=1)).all()
