"""The k greatest of each row of up to 512, greatest first, with their columns: a row a block."""

import pto
from pto import isa


@pto.kernel
def top_k(
    x: pto.Global[pto.f32], values: pto.Global[pto.f32], columns: pto.Global[pto.i32]
) -> None:
    row, k = pto.block_idx(), values.shape[1]
    t = pto.tile(1, 512, pto.f32, pad="min")
    isa.tfillpad(t, pto.load(x[row, :], 1, 512))  # beside the row: nothing is less
    records, merged = pto.tile(1, 1024, pto.f32), pto.tile(1, 1024, pto.f32)
    isa.tsort32(records, t, pto.arange(512))  # pairs of value and column, 16 runs of 32
    isa.tmrgsort(merged, records, blockLen=64)  # 4 runs of 128
    isa.tmrgsort(records, merged, blockLen=256)  # one run of 512
    best, where = pto.tile(1, 512, pto.f32), pto.tile(1, 512, pto.i32)
    isa.tgather(best, records, maskPattern="P0101", axis="row")
    isa.tgather(where, records, maskPattern="P1010", axis="row")
    pto.set_validshape(best, 1, k)
    pto.set_validshape(where, 1, k)
    pto.store(values[row, :], best)
    pto.store(columns[row, :], where)
