"""A ring of ranks: each has some queries, keys and values, and keys and values go round.

In every step a rank puts what it got last into the memory of the next one, tells it, works on it,
and waits until the one before has told. `all_gather` is the ring alone; `all_reduce` adds up what
came, in the order of ranks, so that every rank has the same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
RANKS, KEYS, DEPTH, ROWS = 4, 4, 64, 16  # keys of a rank; queries of a rank


def ring(
    rank: pto.Scalar[pto.i32],
    ranks: pto.Scalar[pto.i32],
    own: pto.Global[pto.f32],
    next_one: pto.Global[pto.f32],
    heard: pto.Global[pto.i32],
    told: pto.Global[pto.i32],
    rows: int,
    work: Callable[[Any], None],
) -> None:
    """The rows of every rank pass by: `work` gets the first row of each."""
    staging = pto.tile(rows, DEPTH, pto.f32)
    for step in pto.range(0, ranks):
        at = (rank + ranks - step) % ranks * rows
        if step < ranks - 1:
            isa.comm_tput(next_one[at : at + rows, :], own[at : at + rows, :], ping=staging)
            isa.fence_barrier_all("gm")  # the rows are in memory before the next rank is told
            isa.comm_tnotify(told, 1, "atomic_add")
        work(at)
        if step < ranks - 1:
            isa.comm_twait(heard, step + 1, "ge")


@pto.kernel(profile="a5")
def all_gather(
    rank: pto.Scalar[pto.i32],
    ranks: pto.Scalar[pto.i32],
    own: pto.Global[pto.f32],
    next_one: pto.Global[pto.f32],
    heard: pto.Global[pto.i32],
    told: pto.Global[pto.i32],
) -> None:
    ring(rank, ranks, own, next_one, heard, told, 1, lambda at: None)


@pto.kernel(profile="a5")
def all_reduce(
    rank: pto.Scalar[pto.i32],
    ranks: pto.Scalar[pto.i32],
    own: pto.Global[pto.f32],
    next_one: pto.Global[pto.f32],
    heard: pto.Global[pto.i32],
    told: pto.Global[pto.i32],
    total: pto.Global[pto.f32],
) -> None:
    ring(rank, ranks, own, next_one, heard, told, 1, lambda at: None)
    acc, row = pto.tile(1, DEPTH, pto.f32), pto.tile(1, DEPTH, pto.f32)
    isa.tload(acc, own[0:1, :])
    for i in pto.range(1, ranks):
        isa.tload(row, own[i : i + 1, :])
        isa.tadd(acc, acc, row)
    isa.tstore(total, acc)


def column() -> tuple[pto.Tile, pto.Tile]:
    """A number for each row, as a column and, over the same bytes, as a row to calculate with."""
    tall = pto.tile(ROWS, 1, pto.f32, layout="DN")
    return tall, isa.treshape(tall, to=pto.tile_type(1, ROWS, pto.f32))


@pto.kernel(profile="a5")
def ring_attention(
    rank: pto.Scalar[pto.i32],
    ranks: pto.Scalar[pto.i32],
    own: pto.Global[pto.f32],  # of each rank: its keys, then its values
    next_one: pto.Global[pto.f32],
    heard: pto.Global[pto.i32],
    told: pto.Global[pto.i32],
    q: pto.Global[pto.f32],
    o: pto.Global[pto.f32],
) -> None:
    queries, out = pto.tile(ROWS, DEPTH, pto.f32), pto.tile(ROWS, DEPTH, pto.f32)
    product, scratch = pto.tile(ROWS, DEPTH, pto.f32), pto.tile(ROWS, DEPTH, pto.f32)
    row = pto.tile(1, DEPTH, pto.f32)
    (highest, highest_row), (total, total_row) = column(), column()
    (score, score_row), (_, shrink_row) = column(), column()
    isa.tload(queries, q)
    isa.texpands(highest_row, float("-inf"))
    isa.texpands(total_row, 0.0)
    isa.texpands(out, 0.0)

    def attend(at: Any) -> None:
        """One key after the other: a running maximum, sum and output."""
        for key in pto.range(at, at + KEYS):
            isa.tload(row, own[key : key + 1, :])
            isa.tcolexpandmul(product, queries, row)
            isa.trowsum(score, product, scratch)
            isa.tmuls(score_row, score_row, DEPTH**-0.5)
            isa.tmax(shrink_row, score_row, highest_row)  # the maximum from here on
            isa.tsub(score_row, score_row, shrink_row)
            isa.texp(score_row, score_row)
            isa.tsub(highest_row, highest_row, shrink_row)
            isa.texp(highest_row, highest_row)
            isa.tmul(total_row, total_row, highest_row)
            isa.tadd(total_row, total_row, score_row)
            isa.trowexpandmul(out, out, highest)
            isa.tmov(highest_row, shrink_row)
            isa.tload(row, own[key + KEYS : key + KEYS + 1, :])
            isa.tcolexpand(product, row)
            isa.trowexpandmul(product, product, score)
            isa.tadd(out, out, product)

    ring(rank, ranks, own, next_one, heard, told, 2 * KEYS, attend)
    isa.trowexpanddiv(out, out, total)
    isa.tstore(o, out)


def go_round(
    world: pto.World, kernel: Any, data: npt.NDArray[np.float32], *others: list[Any]
) -> list[npt.NDArray[np.float32]]:
    """Run a ring whose rank n begins with `data[n]`; what each rank has gathered."""
    ranks = len(world)
    slots = world.symmetric((ranks * data.shape[1], DEPTH), "f32")
    signals = world.symmetric((1,), "i32")
    for n, (slot, rows) in enumerate(zip(slots, data, strict=True)):
        slot[n * len(rows) : (n + 1) * len(rows)] = rows
    args: list[Any] = []
    for n in range(ranks):
        after = (n + 1) % ranks
        own = [n, ranks, slots[n], slots[after], signals[n], signals[after]]
        args.append([*own, *(other[n] for other in others)])
    world.launch(kernel.module(*args[0]), args=args)
    world.synchronize()
    return slots


def example(
    profile: str = "a5", ranks: int = RANKS
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the ranks give together, and what NumPy gives in f64."""
    rng = np.random.default_rng(23)
    q = rng.standard_normal((ranks, ROWS, DEPTH)).astype(np.float32)
    k, v = rng.standard_normal((2, ranks, KEYS, DEPTH)).astype(np.float32)
    o = np.zeros_like(q)
    world = pto.World(ranks, profile)
    both = np.concatenate([k, v], axis=1)
    go_round(world, ring_attention.on(profile), both, list(q), list(o))
    scores = q.astype(np.float64) @ k.reshape(-1, DEPTH).T / np.sqrt(DEPTH)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return o, weights / weights.sum(axis=-1, keepdims=True) @ v.reshape(-1, DEPTH)


if __name__ == "__main__":
    actual, expected = example()
    print(f"ring_attention: largest error {abs(actual - expected).max():.1e}")
