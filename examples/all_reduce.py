"""All-reduce over four ranks: rank 0 waits until all data is there, adds it up, and hands the sum
to everyone; the others wait until they have been told."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
RANKS, ROWS, COLS = 4, 16, 64


@pto.kernel(profile="a5")
def all_reduce(
    rank: pto.Scalar[pto.i32],
    x0: pto.Global[pto.f32],
    x1: pto.Global[pto.f32],
    x2: pto.Global[pto.f32],
    x3: pto.Global[pto.f32],
    y0: pto.Global[pto.f32],
    y1: pto.Global[pto.f32],
    y2: pto.Global[pto.f32],
    y3: pto.Global[pto.f32],
    arrived: pto.Global[pto.i32],  # on rank 0
    told: pto.Global[pto.i32],  # on rank 0
) -> None:
    isa.comm_tnotify(arrived, 1, "atomic_add")
    if rank == 0:
        acc = pto.tile(ROWS, COLS, pto.f32)
        staging = pto.tile(ROWS, COLS, pto.f32)
        isa.comm_twait(arrived, RANKS, "ge")
        isa.comm_treduce(y0, [x0, x1, x2, x3], "sum", 0, acc=acc, recvPing=staging)
        isa.comm_tbroadcast([y0, y1, y2, y3], y0, 0, ping=staging)
        isa.fence_barrier_all("gm")  # the sums are in memory before the others are told
        isa.comm_tnotify(told, 1, "set")
    else:
        isa.comm_twait(told, 1, "ge")


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What each rank gets, and what NumPy gives in f64."""
    world = pto.World(RANKS, profile)
    inputs = world.symmetric((ROWS, COLS), "f32")
    outputs = world.symmetric((ROWS, COLS), "f32")
    arrived, told = world.symmetric((1,), "i32")[0], world.symmetric((1,), "i32")[0]
    rng = np.random.default_rng(20)
    for x in inputs:
        x[...] = rng.standard_normal(x.shape)
    args = [[rank, *inputs, *outputs, arrived, told] for rank in range(RANKS)]
    world.launch(all_reduce.on(profile).module(*args[0]), args=args)
    world.synchronize()
    total = np.sum([x.astype(np.float64) for x in inputs], axis=0)
    return np.stack(outputs), np.stack([total] * RANKS)


if __name__ == "__main__":
    actual, expected = example()
    print(f"all_reduce: largest error {abs(actual - expected).max():.1e}")
