"""Causal attention of several heads, of any length: o = softmax(q k' / sqrt(d), causal) v.

`attention[cdiv(s, 32), heads](q, kt, v, o, room)`; q and v are heads x s x 64, kt heads x 64 x s.
Room has 32 x 32 for each block: weights go from the vector unit to the cube by global memory.
"""

import pto

Half, Single = pto.Global[pto.f16, "h", "s", 64], pto.Global[pto.f32, "h", "s", 64]
Turned, Room = pto.Global[pto.f16, "h", 64, "s"], pto.Global[pto.f16, "b", 32, 32]


@pto.kernel
def attention(q: Half, kt: Turned, v: Half, o: Single, room: Room) -> None:
    i, h, own = pto.block_idx(0) * 32, pto.block_idx(1), pto.block_idx()
    queries = pto.load(q[h, i:, :], 32, 64, role="mat")
    highest, total = pto.full(32, 1, float("-inf"), pto.f32), pto.zeros(32, 1, pto.f32)
    out = pto.zeros(32, 64, pto.f32)
    for j in pto.range(0, i + 32, 32):
        scores = pto.dot(queries, pto.load(kt[h, :, j:], 64, 32)) * 0.125
        scores = pto.where(pto.tri(32, 32, i - j) > 0.0, scores, -1e30)
        now = pto.max(highest, scores.max(axis=1))
        weights, shrink = pto.exp(scores - now), pto.exp(highest - now)
        part = room[own, 0 : weights.valid[0], 0 : weights.valid[1]]
        pto.store(part, weights.to(pto.f16))
        out *= shrink
        out += pto.dot(pto.load(part, 32, 32), pto.load(v[h, j:, :], 32, 64))
        total *= shrink
        total += weights.sum(axis=1)
        highest[:] = now
    pto.store(o[h, i:, :], out / total)
