"""Loads and nothing else: how fast cores read global memory, by the shape of what they read."""

import pto
from pto import isa

PAST = 4  # what a load says to the L2 cache, that it keep nothing of it


@pto.kernel(profile="a2a3")
def data_copy(
    x: pto.Global[pto.f16],
    rows: int,
    cols: int,
    role: str,
    repeat: int = 1,
    slices: int = 1,
) -> None:
    """Each block reads its rows of `x` in tiles: all of it `repeat` times, or each of `slices` of
    the columns so often before the next."""
    nbytes = rows * cols * 2
    layout = "NZ" if role == "mat" else "ND"
    tiles = [
        pto.tile(rows, cols, pto.f16, role=role, layout=layout, address=n * nbytes)
        for n in range(2 if nbytes <= 65536 else 1)
    ]
    height = x.shape[0] // pto.block_num()
    width = x.shape[1] // (cols * slices) * cols
    first = pto.block_idx() * height
    for left in pto.range(0, width * slices, width):
        for _ in pto.range(0, repeat):
            for i in pto.range(0, height, rows):
                for j in pto.range(0, width, cols * len(tiles)):
                    for n, tile in enumerate(tiles):
                        at = left + j + n * cols
                        isa.tload(tile, x[first + i : first + i + rows, at : at + cols])
    _end(role)


@pto.kernel(profile="a2a3")
def read_together(x: pto.Global[pto.f16], rows: int, cols: int, role: str, apart: bool) -> None:
    """All blocks read all of `x`: each from the top, or each from a place of its own (`apart`).

    The loads pass by the L2 cache, as the published ones do.
    """
    height, width = x.shape
    layout = "NZ" if role == "mat" else "ND"
    tile = pto.tile(rows, cols, pto.f16, role=role, layout=layout, address=0)
    for i in pto.range(0, height, rows):
        top = (i + pto.block_idx() * rows) % height if apart else i
        for j in pto.range(0, width, cols):
            start = isa.addptr(x, top * width + j)
            if role == "mat":
                isa.mte_gm_l1_frac(
                    *(start, tile, rows, cols, width * 2, 1, 1, rows, 0, PAST, False), mode="nd2nz"
                )
            else:
                isa.mte_gm_ub(start, tile, PAST, cols * 2, rows, width * 2, cols * 2)
    _end(role)


def _end(role: str) -> None:
    """The program orders its pipes itself: nothing reads the tiles."""
    reader = "MTE1" if role == "mat" else "V"
    isa.set_flag("MTE2", reader, 0)
    isa.wait_flag("MTE2", reader, 0)
