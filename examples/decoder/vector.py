"""What the vector unit does in a layer: norm, rotation, cache, activation, quantisation.

Arrays are bf16, sums and functions f32. `t` is how many tokens there are: one program serves any
number of them; other sizes are part of the program.
"""

from typing import Literal

import pto
from pto import isa

T = Literal["t"]
ROWS, WIDE = 16, 8192  # rows of a tile; elements of a tile of whole rows


@pto.kernel(profile="a5")
def rms_norm(
    x: pto.Global[pto.bf16, T, None],
    weight: pto.Global[pto.bf16, None, None],
    y: pto.Global[pto.bf16, T, None],
    epsilon: float = 1e-5,
) -> None:
    """y = x / rms(x) * weight, by rows."""
    rows = rows_of(x.shape[1])
    i = pto.block_idx() * rows
    v = pto.load(x[i:, :], rows, x.shape[1]).to(pto.f32)
    scale = pto.rsqrt((v * v).mean(axis=1) + epsilon)
    w = pto.load(weight).to(pto.f32)
    pto.store(y[i:, :], (v * scale * w).to(pto.bf16))


def rows_of(width: int) -> int:
    """How many whole rows make a tile, so that a few of them fit the buffer."""
    return max(1, min(ROWS, WIDE // width))


@pto.kernel(profile="a5")
def rotate(
    x: pto.Global[pto.bf16, T, None, None, None],
    cos: pto.Global[pto.f32, T, None],
    sin: pto.Global[pto.f32, T, None],
    y: pto.Global[pto.bf16, None, Literal["room"], None, None],
) -> None:
    """Rotary embedding: halves of each head as the real and imaginary parts. A block is a head.

    x is token, key head, query head of its group, element; y begins with the key head, so that the
    queries of one lie together, and may have room for more tokens.
    """
    i, head = pto.block_idx(0) * ROWS, pto.block_idx(1)
    group, own, half = head // x.shape[2], head % x.shape[2], x.shape[3] // 2
    c, s = pto.load(cos[i:, :], ROWS, half), pto.load(sin[i:, :], ROWS, half)
    low = pto.load(x[i:, group, own, 0:half], ROWS, half).to(pto.f32)
    high = pto.load(x[i:, group, own, half:], ROWS, half).to(pto.f32)
    pto.store(y[group, i:, own, 0:half], (low * c - high * s).to(pto.bf16))
    pto.store(y[group, i:, own, half:], (high * c + low * s).to(pto.bf16))


@pto.kernel(profile="a5")
def append(
    keys: pto.Global[pto.bf16, T, None, None],
    values: pto.Global[pto.bf16, T, None, None],
    table: pto.Global[pto.i32, Literal["used"]],
    start: pto.Scalar[pto.i32],
    key_pages: pto.Global[pto.bf16, Literal["pages"], None, None, None],
    value_pages: pto.Global[pto.bf16, Literal["pages"], None, None, None],
) -> None:
    """Tokens from position `start` on into the pages of the cache. A block is a page and a head.

    Keys lie in a page with a column a token, so that a page is the right side of a product.
    """
    page, head = start // key_pages.shape[3] + pto.block_idx(0), pto.block_idx(1)
    size, depth = key_pages.shape[3], key_pages.shape[2]
    first = pto.max(page * size, start)
    count = pto.min(page * size + size, start + keys.shape[0]) - first
    place = isa.load_scalar(table, page)
    at = first - page * size
    k = pto.load(keys[first - start : first - start + count, head, :], size, depth)
    v = pto.load(values[first - start : first - start + count, head, :], size, depth)
    pto.store(key_pages[place, head, :, at : at + count], k.T)
    pto.store(value_pages[place, head, at : at + count, :], v)


@pto.kernel(profile="a5")
def swiglu(
    gate: pto.Global[pto.bf16, T, None],
    up: pto.Global[pto.bf16, T, None],
    y: pto.Global[pto.bf16, T, None],
) -> None:
    """y = gate * sigmoid(gate) * up."""
    width = min(1024, gate.shape[1])
    i, j = pto.block_idx(0) * ROWS, pto.block_idx(1) * width
    g = pto.load(gate[i:, j:], ROWS, width).to(pto.f32)
    u = pto.load(up[i:, j:], ROWS, width).to(pto.f32)
    pto.store(y[i:, j:], (g / (pto.exp(-g) + 1.0) * u).to(pto.bf16))


@pto.kernel(profile="a5")
def add(
    x: pto.Global[pto.bf16, T, None],
    z: pto.Global[pto.bf16, T, None],
    y: pto.Global[pto.bf16, T, None],
) -> None:
    """y = x + z: what went around a block joins what went through it."""
    rows = rows_of(x.shape[1])
    i = pto.block_idx() * rows
    a = pto.load(x[i:, :], rows, x.shape[1]).to(pto.f32)
    b = pto.load(z[i:, :], rows, x.shape[1]).to(pto.f32)
    pto.store(y[i:, :], (a + b).to(pto.bf16))
