"""The decoder layer: each kernel against NumPy in f64, odd sizes, both profiles; then the whole."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from examples.decoder import products, reference, vector
from examples.decoder.__main__ import LARGE, PROMPT, times, written
from examples.decoder.attention import attention
from examples.decoder.layer import Cache, Layer, Quantized, Sizes, Weights, on
from pto.core.errors import Diagnostic
from pto.observe import sanitize
from pto.plan.sync import insert
from pto.target.profile import profile as find_profile

BF16 = ml_dtypes.bfloat16
ULP = 2.0**-8  # of bf16
PROFILES = ("a2a3", "a5")
NEEDLESS = ("PTO-R014", "PTO-R015")  # a flag or barrier that orders nothing new: safe
KERNELS = [
    *(vector.rms_norm, vector.rotate, vector.append, vector.swiglu, vector.add, attention),
    *(products.project, products.project_int8, products.quantize, products.dequantize),
]


def near(actual: np.ndarray, wanted: np.ndarray, error: float = ULP) -> bool:
    return bool(np.abs(actual.astype(np.float64) - wanted).max() <= error * np.abs(wanted).max())


def some(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(BF16)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("shape", [(1, 256), (35, 320), (3, 8192)])
def test_norm_activation_and_sum(profile: str, shape: tuple[int, int]) -> None:
    x, z = some(*shape), some(*shape, seed=1)
    weight, y = some(1, shape[1], seed=2), np.zeros(shape, BF16)
    whole = -(-shape[0] // vector.rows_of(shape[1]))
    on(vector.rms_norm, profile)[whole](x, weight, y)
    assert near(y, reference.norm(x.astype(np.float64), weight))
    on(vector.add, profile)[whole](x, z, y)
    assert near(y, x.astype(np.float64) + z.astype(np.float64))
    on(vector.swiglu, profile)[-(-shape[0] // vector.ROWS), -(-shape[1] // 1024)](x, z, y)
    wide = x.astype(np.float64)
    assert near(y, wide / (1 + np.exp(-wide)) * z.astype(np.float64))


@pytest.mark.parametrize("profile", PROFILES)
def test_rotation_leaves_room_alone(profile: str) -> None:
    x, y = some(21, 2, 4, 64), np.zeros((2, 24, 4, 64), BF16)
    angles = Sizes().angles(100 + np.arange(21))
    turn = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    on(vector.rotate, profile)[2, 8](x, *turn, y)
    assert near(y[:, :21].swapaxes(0, 1), reference.rotated(x.astype(np.float64), angles))
    assert not y[:, 21:].any()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("start", "tokens"), [(0, 1), (37, 77), (63, 2), (64, 64)])
def test_tokens_go_to_their_pages(profile: str, start: int, tokens: int) -> None:
    cache = Cache.empty(Sizes(), 300)
    keys, values = some(tokens, 2, 64), some(tokens, 2, 64, seed=1)
    pages = (start + tokens - 1) // 64 - start // 64 + 1
    kept = cache.table, start, cache.key_pages, cache.value_pages
    on(vector.append, profile)[pages, 2](keys, values, *kept)
    for n in range(tokens):
        page, place = cache.table[(start + n) // 64], (start + n) % 64
        assert np.array_equal(cache.key_pages[page, :, :, place], keys[n])
        assert np.array_equal(cache.value_pages[page, :, place], values[n])
    assert np.count_nonzero(cache.key_pages) == np.count_nonzero(keys)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("rows", "inner", "cols"), [(1, 320, 200), (131, 77, 300)])
def test_products_with_tails(profile: str, rows: int, inner: int, cols: int) -> None:
    x, weight, y = some(rows, inner), some(inner, cols, seed=1), np.zeros((rows, cols), BF16)
    layer = Layer(Sizes(), Weights.random(Sizes()), profile)
    on(products.project, profile)[layer.tiles(y)](x, weight, y)
    assert near(y, x.astype(np.float64) @ weight.astype(np.float64))
    rounded = Quantized.of(weight)
    made = layer.product(x, rounded)
    wide = x.astype(np.float64)
    scale = np.abs(wide).max(axis=1, keepdims=True) / 127
    assert near(made, np.rint(wide / scale) * scale @ rounded.wide(), 3 * ULP)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("int8", [False, True], ids=["bf16", "int8"])
def test_a_prompt_and_the_tokens_after_it(profile: str, int8: bool) -> None:
    actual, expected = written(profile, int8=int8)
    bound = (8 if int8 else 2) * ULP
    assert near(actual[:PROMPT], expected[:PROMPT], bound)
    assert near(actual[PROMPT:], expected[PROMPT:], bound)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_sanitizer_finds_nothing_in_any_kernel(profile: str) -> None:
    """Three tokens after sixty-three: they end one page and begin another. The kernels leave the
    order of pipes to a compiler; with flags as `pto sync` puts them, that is watched too."""
    found: dict[str, list[Diagnostic]] = {}

    def watched(kernel, blocks, args) -> None:
        told = list(kernel.sanitize(*args, blocks=blocks))
        made, _, given = kernel.specialise(kernel.values(args, {}), blocks)
        ordered = insert(made.module, find_profile(profile))
        verdict = sanitize(ordered, args=given, blocks=blocks, profile=profile)
        told += [d for d in verdict.findings if d.code not in NEEDLESS]
        found[kernel.name] = told

    for int8 in (False, True):
        sizes = Sizes(width=64, heads=4, key_heads=1, depth=64, hidden=64)
        cache = Cache.empty(sizes, 128)
        cache.length = 63
        Layer(sizes, Weights.random(sizes, int8=int8), profile, watched)(some(3, 64), cache)
    assert found.keys() == {kernel.name for kernel in KERNELS}
    assert {name: each for name, each in found.items() if each} == {}


def test_times_are_those_of_every_kernel_of_the_layer() -> None:
    found = times("a2a3", 1, 64, int8=False)
    assert found.keys() == {
        k.name for k in KERNELS if "quant" not in k.name and "int8" not in k.name
    }
    read = 2 * LARGE.width * (LARGE.width + 3 * LARGE.hidden)  # bytes of weights, at the least
    assert found["project"] > read / 1.6e6  # us: the chip reads 1.6 TB/s
