"""z = x + y in f16, as published in its variants: one core or all, small or large copies, one
buffer or two in turn, sources that the L2 cache keeps or that pass by it, in one bank group or in
different ones."""

import pto

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
        pto.set_flag("V", "MTE2", b)
        pto.set_flag("MTE3", "V", b)
    for row in pto.range(0, rows, buffers):
        for b, (a, c, out) in enumerate(tiles):
            at = first + row + b
            pto.wait_flag("V", "MTE2", b)
            for array, tile in ((x, a), (y, c)):
                if hint:
                    start = pto.addptr(array, at * columns)
                    pto.mte_gm_ub(start, tile, hint, nbytes, 1, nbytes, nbytes)
                else:
                    pto.tload(tile, array[at : at + 1, :])
            pto.set_flag("MTE2", "V", b)
            pto.wait_flag("MTE2", "V", b)
            pto.wait_flag("MTE3", "V", b)
            pto.tadd(out, a, c)
            pto.set_flag("V", "MTE2", b)
            pto.set_flag("V", "MTE3", b)
            pto.wait_flag("V", "MTE3", b)
            pto.tstore(z[at : at + 1, :], out)
            pto.set_flag("MTE3", "V", b)
    for b in range(buffers):
        pto.wait_flag("V", "MTE2", b)
        pto.wait_flag("MTE3", "V", b)
