"""A decoder layer of kernels: weights, cache, and the launches in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import pto
from examples.decoder import products, vector
from examples.decoder.attention import PAGE, SLOTS, attention, slot
from examples.decoder.attention import ROWS as QUERIES

BF16 = ml_dtypes.bfloat16
Array = npt.NDArray[Any]
Launch = Callable[[pto.Kernel[...], Any, tuple[Any, ...]], None]  # kernel, blocks, arguments


@dataclass(frozen=True)
class Sizes:
    """Of a layer; heads share keys and values in groups."""

    width: int = 256
    heads: int = 8
    key_heads: int = 2
    depth: int = 64
    hidden: int = 384
    base: float = 10_000.0  # of the rotary embedding

    @property
    def group(self) -> int:
        return self.heads // self.key_heads

    @property
    def splits(self) -> tuple[int, int]:
        """Columns of queries, and of queries and keys, in the product of all three."""
        return self.heads * self.depth, (self.heads + self.key_heads) * self.depth

    def angles(self, positions: Array) -> Array:
        """Of the rotary embedding: token, half of a head."""
        steps = self.base ** (-np.arange(self.depth // 2) / (self.depth // 2))
        return positions[:, None] * steps[None, :]


@dataclass(frozen=True)
class Quantized:
    """A matrix as int8, with a scale for each column."""

    matrix: Array
    scale: Array

    @staticmethod
    def of(matrix: Array) -> Quantized:
        wide = matrix.astype(np.float32)
        scale = np.abs(wide).max(axis=0, keepdims=True) / np.float32(127)
        return Quantized(np.rint(wide / scale).astype(np.int8), scale)

    def wide(self) -> Array:
        return self.matrix * self.scale.astype(np.float64)


Weight = Array | Quantized


@dataclass(frozen=True)
class Weights:
    norms: tuple[Array, Array]
    query_key_value: Weight
    out: Weight
    gate: Weight
    up: Weight
    down: Weight

    @staticmethod
    def random(sizes: Sizes, seed: int = 0, *, int8: bool = False) -> Weights:
        """Of a layer that has learnt nothing; int8 rounds the matrices."""
        rng = np.random.default_rng(seed)

        def matrix(rows: int, cols: int) -> Weight:
            made = (rng.standard_normal((rows, cols)) * rows**-0.5).astype(BF16)
            return Quantized.of(made) if int8 else made

        norms = [rng.uniform(0.5, 1.5, (1, sizes.width)).astype(BF16) for _ in range(2)]
        all_heads = (sizes.heads + 2 * sizes.key_heads) * sizes.depth
        return Weights(
            (norms[0], norms[1]),
            matrix(sizes.width, all_heads),
            matrix(sizes.heads * sizes.depth, sizes.width),
            matrix(sizes.width, sizes.hidden),
            matrix(sizes.width, sizes.hidden),
            matrix(sizes.hidden, sizes.width),
        )


@dataclass
class Cache:
    """Keys and values of what has been read, in pages; the table says which page is where."""

    key_pages: Array
    value_pages: Array
    table: Array
    length: int = 0

    @staticmethod
    def empty(sizes: Sizes, tokens: int, seed: int = 0) -> Cache:
        """Room for so many tokens, its pages in any order."""
        pages = pto.cdiv(tokens, PAGE)
        table = np.random.default_rng(seed).permutation(pages).astype(np.int32)
        keys = np.zeros((pages, sizes.key_heads, sizes.depth, PAGE), BF16)
        values = np.zeros((pages, sizes.key_heads, PAGE, sizes.depth), BF16)
        return Cache(keys, values, table)


@cache
def on(kernel: pto.Kernel[...], profile: str) -> pto.Kernel[...]:
    """A kernel for a profile, traced and compiled once."""
    return kernel.on(profile)


@dataclass
class Layer:
    """`layer(x, cache)` gives what the layer makes of tokens that follow those in the cache."""

    sizes: Sizes
    weights: Weights
    profile: str = "a5"
    launch: Launch | None = None

    def __call__(self, x: Array, cache: Cache) -> Array:
        s = self.sizes
        normal = self.normalised(x, self.weights.norms[0])
        together = self.product(normal, self.weights.query_key_value)
        mixed = self.attended(together, cache)
        x = self.added(x, self.product(mixed.reshape(len(x), s.splits[0]), self.weights.out))
        normal = self.normalised(x, self.weights.norms[1])
        gate, up = (self.product(normal, w) for w in (self.weights.gate, self.weights.up))
        active = np.empty_like(gate)
        grid = pto.cdiv(len(x), vector.ROWS), pto.cdiv(s.hidden, min(1024, s.hidden))
        self.run(vector.swiglu, grid, gate, up, active)
        return self.added(x, self.product(active, self.weights.down))

    def run(self, kernel: pto.Kernel[...], blocks: Any, *args: Any) -> None:
        """Launch a kernel; `launch` is told instead, where there is one."""
        chosen = on(kernel, self.profile)
        if self.launch is None:
            chosen[blocks](*args)
        else:
            self.launch(chosen, blocks, args)

    def normalised(self, x: Array, weight: Array) -> Array:
        y = np.empty_like(x)
        self.run(vector.rms_norm, pto.cdiv(len(x), vector.rows_of(x.shape[1])), x, weight, y)
        return y

    def added(self, x: Array, z: Array) -> Array:
        y = np.empty_like(x)
        self.run(vector.add, pto.cdiv(len(x), vector.rows_of(x.shape[1])), x, z, y)
        return y

    def product(self, x: Array, weight: Weight) -> Array:
        """By the kernels of the kind that the weights are of."""
        if not isinstance(weight, Quantized):
            y = np.empty((len(x), weight.shape[1]), BF16)
            self.run(products.project, self.tiles(y), x, weight, y)
            return y
        q, scale = np.empty(x.shape, np.int8), np.empty(len(x), np.float32)
        rows = vector.rows_of(x.shape[1])
        self.run(products.quantize, pto.cdiv(len(x), rows), x, q, scale)
        sums = np.empty((len(x), weight.matrix.shape[1]), np.int32)
        self.run(products.project_int8, self.tiles(sums), q, weight.matrix, sums)
        y = np.empty(sums.shape, BF16)
        grid = tuple(map(pto.cdiv, y.shape, products.DEQUANTIZED))
        self.run(products.dequantize, grid, sums, scale, weight.scale, y)
        return y

    def tiles(self, y: Array) -> tuple[int, int]:
        return pto.cdiv(y.shape[0], products.M), pto.cdiv(y.shape[1], products.COLUMNS)

    def attended(self, together: Array, cache: Cache) -> Array:
        """Queries, keys and values of new tokens: rotated, kept, and looked up."""
        s, tokens, start = self.sizes, len(together), cache.length
        first, second = s.splits
        angles = s.angles(start + np.arange(tokens))
        turn = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        steps = pto.cdiv(tokens, vector.ROWS)
        room = pto.cdiv(tokens * s.group, QUERIES) * QUERIES // s.group
        q = np.zeros((s.key_heads, room, s.group, s.depth), BF16)
        k = np.zeros((s.key_heads, tokens, 1, s.depth), BF16)
        asked = np.ascontiguousarray(together[:, :first]).reshape(
            tokens, s.key_heads, s.group, s.depth
        )
        self.run(vector.rotate, (steps, s.heads), asked, *turn, q)
        told = np.ascontiguousarray(together[:, first:second]).reshape(
            tokens, s.key_heads, 1, s.depth
        )
        self.run(vector.rotate, (steps, s.key_heads), told, *turn, k)
        v = np.ascontiguousarray(together[:, second:]).reshape(tokens, s.key_heads, s.depth)
        pages = (start + tokens - 1) // PAGE - start // PAGE + 1
        kept = cache.table, start, cache.key_pages, cache.value_pages
        keys = np.ascontiguousarray(k[:, :, 0].swapaxes(0, 1))
        self.run(vector.append, (pages, s.key_heads), keys, v, *kept)
        cache.length += tokens
        seen = np.zeros(room * s.group, np.float32)
        seen[: tokens * s.group] = np.repeat(start + np.arange(tokens), s.group)
        o = np.empty((room, s.key_heads, s.group, s.depth), BF16)
        grid = room * s.group // QUERIES, s.key_heads
        queues = np.zeros(grid[0] * grid[1] * 2 * SLOTS * slot(s.depth) // 4, np.float32)
        where = cache.key_pages, cache.value_pages, cache.table, seen, start, cache.length - 1
        through_gm = self.profile == "a2a3"
        rows = q.reshape(s.key_heads, room * s.group, s.depth)
        self.run(attention, grid, rows, *where, o, queues, through_gm)
        return np.ascontiguousarray(o[:tokens])
