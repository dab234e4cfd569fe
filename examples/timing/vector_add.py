"""z = x + y in f16, as published in its variants: one core or all, small or large copies, one
buffer or two in turn, sources that the L2 cache keeps or that pass by it, in one bank group or in
different ones."""

import pto
from pto import isa

PIPES = (("MTE2", "V"), ("V", "MTE3"))


@pto.kernel(profile="a2a3")
def vector_add(
    x: pto.Global[pto.f16],
    y: pto.Global[pto.f16],
    z: pto.Global[pto.f16],
    columns: int,
    buffers: int,
    hint: int = 0,
) -> None:
    """Rows of `columns` elements, shared among the blocks; `buffers` sets of three tiles.

    `hint` is what the loads ask of the L2 cache: with 4 it keeps nothing of them.
    """
    nbytes = columns * 2
    tiles = [
        [pto.tile(1, columns, pto.f16, address=(3 * b + n) * nbytes) for n in range(3)]
        for b in range(buffers)
    ]
    rows = x.shape[0] // pto.block_num()
    first = pto.block_idx() * rows
    for b in range(buffers):
        isa.set_flag("V", "MTE2", b)
        isa.set_flag("MTE3", "V", b)
    for row in pto.range(0, rows, buffers):
        for b, (a, c, out) in enumerate(tiles):
            at = first + row + b
            isa.wait_flag("V", "MTE2", b)
            for array, tile in ((x, a), (y, c)):
                if hint:
                    start = isa.addptr(array, at * columns)
                    isa.mte_gm_ub(start, tile, hint, nbytes, 1, nbytes, nbytes)
                else:
                    isa.tload(tile, array[at : at + 1, :])
            isa.set_flag("MTE2", "V", b)
            isa.wait_flag("MTE2", "V", b)
            isa.wait_flag("MTE3", "V", b)
            isa.tadd(out, a, c)
            isa.set_flag("V", "MTE2", b)
            isa.set_flag("V", "MTE3", b)
            isa.wait_flag("V", "MTE3", b)
            isa.tstore(z[at : at + 1, :], out)
            isa.set_flag("MTE3", "V", b)
    for b in range(buffers):
        isa.wait_flag("V", "MTE2", b)
        isa.wait_flag("MTE3", "V", b)
