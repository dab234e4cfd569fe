"""y = values of volumes at points of a grid, by the eight nearest elements, or by the nearest.

Bound by the gathers: eight elements of each channel for a point, from anywhere in global memory.
Indices and weights are computed once for the points of a block, then used for every channel.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 2
POINTS = 256  # of a block
Array = pto.Global[Any]


def pixel(t: pto.Tile, size: int, padding: str, aligned: bool) -> pto.Tile:
    """The coordinates -1 to 1 of points along an axis as numbers of elements."""
    t = (t + 1.0) * ((size - 1) / 2) if aligned else ((t + 1.0) * float(size) - 1.0) * 0.5
    if padding == "reflection":
        least, span = (0.0, size - 1.0) if aligned else (-0.5, float(size))
        if span > 0:
            t = t - least
            rest = t - pto.floor(t / (2 * span)) * (2 * span)
            t = least + (span - abs(rest - span))
        else:
            t = t * 0.0
    return t if padding == "zeros" else pto.clamp(t, 0.0, size - 1.0)


def corners(t: pto.Tile, size: int, mode: str) -> list[tuple[pto.Tile, pto.Tile, pto.Tile]]:
    """The elements beside points along an axis: index, weight, and the weight 0 if outside."""
    low = pto.round(t) if mode == "nearest" else pto.floor(t)
    both = [(low, 1.0 - (t - low)), (low + 1.0, t - low)]
    made: list[tuple[pto.Tile, pto.Tile, pto.Tile]] = []
    for at, weight in both[: 1 if mode == "nearest" else 2]:
        inside = pto.where((at >= 0.0) & (at <= size - 1.0), 1.0, pto.zeros_like(at))
        share = pto.full_like(at, 1.0) if mode == "nearest" else weight
        made.append((pto.clamp(at, 0.0, size - 1.0).to(pto.i32), share, inside))
    return made


@pto.kernel
def kernel(
    x: Array, grid: Array, y: Array, sizes: tuple[int, ...], mode: str, padding: str, aligned: bool
) -> None:
    p, n = pto.block_idx(0) * POINTS, pto.block_idx(1)
    along: list[Any] = []
    points = pto.load(grid[n, p:, :], POINTS, 3).to(pto.f32).T
    for axis, size in enumerate(sizes):
        t = points[2 - axis : 3 - axis, :]
        along.append(corners(pixel(t, size, padding, aligned), size, mode))
    parts = [(a, b, c) for a in along[0] for b in along[1] for c in along[2]]
    places = [(a[0] * sizes[1] + b[0]) * sizes[2] + c[0] for a, b, c in parts]
    weights = [a[1] * b[1] * c[1] for a, b, c in parts]
    insides = [a[2] * b[2] * c[2] for a, b, c in parts]
    for channel in pto.range(x.shape[1]):
        total = pto.zeros_like(weights[0])
        for place, weight, inside in zip(places, weights, insides, strict=True):
            value = pto.take(x[n, channel, :], place).to(pto.f32)
            total = total + pto.where(inside > 0.0, value, 0.0) * weight
        pto.store(y[n, channel, p:], total.to(y.dtype, saturate=False))


@pto.operator
def run(
    x: Any,
    grid: Any,
    interpolation_mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Any:
    n, channels, *sizes = x.shape
    y = np.empty((n, channels, *grid.shape[1:4]), x.dtype)
    a, b, out = x.reshape(n, channels, -1), grid.reshape(n, -1, 3), y.reshape(n, channels, -1)
    how = tuple(sizes), interpolation_mode, padding_mode, align_corners
    kernel[pto.cdiv(b.shape[1], POINTS), n](a, b, out, *how)
    return y


def reference(
    x: Any,
    grid: Any,
    interpolation_mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Any:
    at: list[Any] = []
    for axis, size in enumerate(x.shape[2:]):
        t = grid[..., 2 - axis]
        t = (t + 1) / 2 * (size - 1) if align_corners else ((t + 1) * size - 1) / 2
        low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
        if padding_mode == "reflection":
            for _ in range(4):
                t = np.where(t < low, 2 * low - t, t)
                t = np.where(t > high, 2 * high - t, t)
        at.append(t if padding_mode == "zeros" else np.clip(t, 0, size - 1))
    y = np.zeros((*x.shape[:2], *grid.shape[1:4]))
    near = interpolation_mode == "nearest"
    low = [np.rint(t) if near else np.floor(t) for t in at]
    for shift in np.ndindex(*((1, 1, 1) if near else (2, 2, 2))):
        place = [(f + s).astype(int) for f, s in zip(low, shift, strict=True)]
        weight: Any = 1.0
        inside: Any = True
        for t, f, s, i, size in zip(at, low, shift, place, x.shape[2:], strict=True):
            weight = weight if near else weight * (t - f if s else 1 - (t - f))
            inside = inside & (i >= 0) & (i < size)
        z, v, u = (np.clip(i, 0, m - 1) for i, m in zip(place, x.shape[2:], strict=True))
        for n in range(len(x)):
            part = np.where(inside[n], x[n][:, z[n], v[n], u[n]], 0)
            y[n] += part * (1.0 if near else weight[n])
    return y


def _case(x: str, grid: str, kind: str = "f32", **more: Any) -> dict[str, Any]:
    arrays = {"x": f"{kind}[{x}] {more.pop('span', '-3..6')}", "grid": f"{kind}[{grid}] -1.2..1.2"}
    return {**arrays, **more}


CASES: list[dict[str, Any]] = [
    _case("2, 3, 5, 6, 7", "2, 3, 4, 5, 3"),
    _case("1, 2, 4, 5, 6", "1, 9, 9, 9, 3", "f16", padding_mode="border", align_corners=True),
    _case("2, 2, 5, 6, 7", "2, 3, 4, 5, 3", padding_mode="reflection"),
    _case("1, 2, 5, 1, 7", "1, 3, 4, 5, 3", padding_mode="reflection", align_corners=True),
    _case("1, 2, 5, 6, 7", "1, 3, 4, 5, 3", interpolation_mode="nearest", align_corners=True),
    _case("1, 2, 5, 6, 7", "1, 3, 4, 5, 3", "f16", span="-inf..inf"),
]
