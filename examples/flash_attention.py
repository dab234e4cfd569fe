"""Flash attention, forward: o = softmax(q k' / sqrt(d)) v, without ever holding all of the scores.

The cube multiplies, the two vector sub-blocks of its core do the softmax, half of the rows each;
tiles go between them through queues. For every chunk of keys the cube pushes scores, gets weights
back, and pushes their product with the values; the vector side keeps a running maximum, sum and
output. On a5 a queue lies in the buffer of its consumer; on a2a3 it goes through global memory, and
the kernel is given room for it.
"""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
ROWS, CHUNK, DEPTH = 32, 64, 64
HALF = ROWS // 2
SLOT = ROWS * CHUNK * 4  # bytes of the largest tile in a queue
SLOTS = 4  # of a queue, each way
BOTH_WAYS, UPPER_LOWER = 3, 1


def scores_and_values(
    q: pto.Global[pto.f16],
    kt: pto.Global[pto.f16],
    v: pto.Global[pto.f16],
    o: pto.Global[pto.f32],
    room: pto.Global[pto.f32],
    through_gm: bool,
) -> None:
    """The cube: scores = q k', then weights x v."""
    to_cube = isa.reserve_buffer("to_cube", SLOTS * SLOT, "mat", True)
    to_vector = isa.import_reserved_buffer("to_vector", "running_softmax")
    isa.aic_initialize_pipe(
        BOTH_WAYS,
        SLOT,
        gm_slot_buffer=room_of_block(room) if through_gm else None,
        c2v_consumer_buf=to_vector,
        v2c_consumer_buf=to_cube,
    )
    queries = pto.tile(ROWS, DEPTH, pto.f16, role="mat")
    isa.tload(queries, q[pto.block_idx() * ROWS :, :])
    for j in pto.range(0, kt.shape[1], CHUNK):
        keys = pto.tile(DEPTH, CHUNK, pto.f16, role="mat")
        values = pto.tile(CHUNK, DEPTH, pto.f16, role="mat")
        isa.tload(keys, kt[:, j:])
        isa.tload(values, v[j:, :])
        isa.tpush_to_aiv(product(queries, keys), UPPER_LOWER)
        weights = isa.tpop_from_aiv(UPPER_LOWER, to=pto.tile_type(ROWS, CHUNK, pto.f16, role="mat"))
        part = product(weights, values)
        isa.tfree_from_aiv(UPPER_LOWER)
        isa.tpush_to_aiv(part, UPPER_LOWER)


def room_of_block(room: pto.Global[pto.f32]) -> pto.Pointer:
    """Where the queues of this block lie in global memory."""
    return isa.addptr(room, pto.block_idx() * (2 * SLOTS * SLOT // 4))


def product(a: pto.Tile, b: pto.Tile) -> pto.Tile:
    left = pto.tile(a.rows, a.cols, pto.f16, role="left")
    right = pto.tile(b.rows, b.cols, pto.f16, role="right")
    acc = pto.tile(a.rows, b.cols, pto.f32, role="acc")
    isa.tmov(left, a)
    isa.tmov(right, b)
    isa.tmatmul(acc, left, right)
    return acc


def running_softmax(
    q: pto.Global[pto.f16],
    kt: pto.Global[pto.f16],
    v: pto.Global[pto.f16],
    o: pto.Global[pto.f32],
    room: pto.Global[pto.f32],
    through_gm: bool,
) -> None:
    """The vector side: weights = exp(scores - maximum), and the output so far, rescaled."""
    to_vector = isa.reserve_buffer("to_vector", SLOTS * SLOT, "vec", True)
    to_cube = isa.import_reserved_buffer("to_cube", "scores_and_values")
    isa.aiv_initialize_pipe(
        BOTH_WAYS,
        SLOT,
        gm_slot_buffer=room_of_block(room) if through_gm else None,
        c2v_consumer_buf=to_vector,
        v2c_consumer_buf=to_cube,
    )
    popped = pto.tile_type(HALF, CHUNK, pto.f32)
    out = pto.tile(HALF, DEPTH, pto.f32)
    work = pto.tile(HALF, CHUNK, pto.f32)
    highest, highest_row = column()
    total, total_row = column()
    now, now_row = column()
    shrink, shrink_row = column()
    isa.texpands(highest_row, float("-inf"))
    isa.texpands(total_row, 0.0)
    isa.texpands(out, 0.0)
    for _ in pto.range(0, kt.shape[1], CHUNK):
        scores = isa.tpop_from_aic(UPPER_LOWER, to=popped)
        weights = pto.tile(HALF, CHUNK, pto.f32)
        isa.tmuls(weights, scores, DEPTH**-0.5)
        isa.tfree_from_aic(UPPER_LOWER)
        isa.trowmax(now, weights, work)
        isa.tmax(now_row, now_row, highest_row)
        isa.tsub(shrink_row, highest_row, now_row)
        isa.texp(shrink_row, shrink_row)
        isa.tmov(highest_row, now_row)
        isa.trowexpandsub(weights, weights, highest)
        isa.texp(weights, weights)
        isa.trowsum(now, weights, work)
        isa.tmul(total_row, total_row, shrink_row)
        isa.tadd(total_row, total_row, now_row)
        send(weights, through_gm)
        isa.trowexpandmul(out, out, shrink)  # while the cube multiplies
        part = isa.tpop_from_aic(UPPER_LOWER, to=popped)
        isa.tadd(out, out, part)
        isa.tfree_from_aic(UPPER_LOWER)
    isa.trowexpanddiv(out, out, total)
    first = pto.block_idx() * ROWS + pto.subblock_idx() * HALF
    isa.tstore(o[first : first + HALF, :], out)


def column() -> tuple[pto.Tile, pto.Tile]:
    """A number for each row, as a column and, over the same bytes, as a row to calculate with."""
    tall = pto.tile(HALF, 1, pto.f32, layout="DN")
    return tall, isa.treshape(tall, to=pto.tile_type(1, HALF, pto.f32))


def send(weights: pto.Tile, through_gm: bool) -> None:
    """Round to f16 and push; a queue in L1 holds boxes as the cube reads them."""
    half = pto.tile(HALF, CHUNK, pto.f16)
    isa.tcvt(half, weights)
    if not through_gm:
        boxed = pto.tile(HALF, CHUNK, pto.f16, layout="NZ")
        isa.tmov(boxed, half)
        half = boxed
    isa.tpush_to_aic(half, UPPER_LOWER)


flash_attention = pto.pair(scores_and_values, running_softmax, profile="a5")


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    rng = np.random.default_rng(17)
    q, k, v = rng.standard_normal((3, 128, DEPTH)).astype(np.float16)
    o = np.zeros((128, DEPTH), np.float32)
    kt = np.ascontiguousarray(k.T)
    blocks = 128 // ROWS
    room = np.zeros(blocks * 2 * SLOTS * SLOT // 4, np.float32)
    flash_attention.on(profile)[blocks](q, kt, v, o, room, profile == "a2a3")
    wide_q, wide_k, wide_v = (x.astype(np.float64) for x in (q, k, v))
    scores = wide_q @ wide_k.T / np.sqrt(DEPTH)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return o, weights / weights.sum(axis=1, keepdims=True) @ wide_v


if __name__ == "__main__":
    actual, expected = example()
    print(f"flash_attention: largest error {abs(actual - expected).max():.1e}")
