"""Loads and nothing else: how fast a core reads global memory, by the shape of what it reads."""

import pto


@pto.kernel(profile="a2a3")
def data_copy(
    x: pto.Global[pto.f16],
    rows: int,
    cols: int,
    role: str,
    repeat: int = 1,
    whole: bool = True,
) -> None:
    """Each block reads its rows of `x` in tiles; again and again, all of it or tile by tile."""
    nbytes = rows * cols * 2
    layout = "NZ" if role == "mat" else "ND"
    tiles = [
        pto.tile(rows, cols, pto.f16, role=role, layout=layout, address=n * nbytes)
        for n in range(2 if nbytes <= 65536 else 1)
    ]
    height = x.shape[0] // pto.block_num()
    first = pto.block_idx() * height
    for _ in pto.range(0, repeat if whole else 1):
        for i in pto.range(0, height, rows):
            for j in pto.range(0, x.shape[1] // cols * cols, cols * len(tiles)):
                for n, tile in enumerate(tiles):
                    at = j + n * cols
                    for _ in range(1 if whole else repeat):
                        pto.tload(tile, x[first + i : first + i + rows, at : at + cols])
    pto.set_flag("MTE2", "V", 0)  # the program orders its pipes itself: nothing reads the tiles
    pto.wait_flag("MTE2", "V", 0)
