"""Rows of a table by their numbers, and rows added to a table at their numbers; 16 at a time."""

import pto
from pto import isa


@pto.kernel
def gather(
    table: pto.Global[pto.f32, "rows", "n"],
    numbers: pto.Global[pto.i32, "m"],
    y: pto.Global[pto.f32, "m", "n"],
) -> None:
    i = pto.block_idx() * 16
    for r in pto.range(i, pto.min(i + 16, y.shape[0])):
        number = isa.load_scalar(numbers, r)
        pto.store(y[r, :], pto.load(table[number, :], 1, 512))


@pto.kernel
def scatter_add(
    table: pto.Global[pto.f32, "rows", "n"],
    numbers: pto.Global[pto.i32, "m"],
    x: pto.Global[pto.f32, "m", "n"],
) -> None:
    i = pto.block_idx() * 16
    for r in pto.range(i, pto.min(i + 16, x.shape[0])):
        number = isa.load_scalar(numbers, r)
        pto.store(table[number, :], pto.load(x[r, :], 1, 512), atomic="add")
