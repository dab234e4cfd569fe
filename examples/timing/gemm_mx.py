"""C = A x B in MXFP8 on all cubes of a 950: e5m2 elements, a scale for 32 of k.

As `gemm.py`; scales are small, so one load brings those of eight panels: 128 of each row, whether a
row has so many or not.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import pto
from examples.timing.gemm import Panels, all_free, in_turn, multiply, store
from pto import isa

GROUP = 32  # elements that share a scale
BASE_M, BASE_K, BASE_N = 128, 128, 256
STEP = 4  # pieces of k that one load of elements brings
A_PANEL, B_PANEL = BASE_M * BASE_K * STEP, BASE_N * BASE_K * STEP
PIECE = BASE_K // GROUP
SCALES = 8 * STEP * PIECE  # of a row, that one load of scales brings


class Scales(NamedTuple):
    """Those of some panels, beside whose first one they are loaded: its flags hold for them."""

    tile: pto.Tile
    is_left: bool

    def load(self, window: Any, at: Any) -> Callable[[], None]:
        """What loads them, where `at` is the first panel."""

        def loads() -> None:
            if at == 0:
                isa.tload(self.tile, window)

        return loads

    def piece(self, at: Any) -> "_Piece":
        return _Piece(self, at // GROUP)


class _Piece(NamedTuple):
    scales: Scales
    first: Any

    def extract(self, into: pto.Tile, piece: int) -> None:
        at = self.first + piece * PIECE
        where = (0, at) if self.scales.is_left else (at, 0)
        isa.textract(into, self.scales.tile, *where)


@pto.kernel(profile="a5")
def gemm_mx(
    a: pto.Global[pto.f8e5m2],
    a_scale: pto.Global[pto.e8m0],
    b: pto.Global[pto.f8e5m2],
    b_scale: pto.Global[pto.e8m0],
    c: pto.Global[pto.bf16],
    blocks: int,
    grid: int,
) -> None:
    """`a` is m x k, `b` n x k; rows of scales are whole loads. `grid` blocks share the rows."""
    (m, k), n = a.shape, b.shape[0]
    b_columns, b_scales = b.T, b_scale.T
    rows, cols = m // grid, n // (blocks // grid)
    top, left = pto.block_idx() % grid * rows, pto.block_idx() // grid * cols
    a_mats = in_turn(BASE_M, BASE_K * STEP, pto.f8e5m2, "mat")
    b_mats = in_turn(BASE_K * STEP, BASE_N, pto.f8e5m2, "mat", "ZN", 2 * A_PANEL)
    behind = 2 * (A_PANEL + B_PANEL)
    scales = [
        in_turn(BASE_M, SCALES, pto.e8m0, "mat", "ZZ", behind, 32),
        in_turn(SCALES, BASE_N, pto.e8m0, "mat", "NN", behind + 2 * BASE_M * SCALES, 32),
    ]
    operands = list(
        zip(
            in_turn(BASE_M, BASE_K, pto.f8e5m2, "left"),
            in_turn(BASE_M, PIECE, pto.e8m0, "scale_left"),
            in_turn(BASE_K, BASE_N, pto.f8e5m2, "right"),
            in_turn(PIECE, BASE_N, pto.e8m0, "scale_right"),
            strict=True,
        )
    )
    acc = pto.tile(BASE_M, BASE_N, pto.f32, role="acc", address=0)

    def take_a(into: pto.Tile, turn: int, inside: int) -> None:
        isa.textract(into, a_mats[turn], 0, inside * BASE_K)

    def take_b(into: pto.Tile, turn: int, inside: int) -> None:
        isa.textract(into, b_mats[turn], inside * BASE_K, 0)

    lefts = Panels(a_mats, STEP, take_a, full=0, free=0, tells=False)
    rights = Panels(b_mats, STEP, take_b, full=2, free=0, waits=False)
    all_free(isa.set_flag)
    for i in pto.range(0, rows, 2 * BASE_M):
        # two rows of tiles, so that it is known which of the two lists of scales is in use
        tiles = product((0, BASE_M), range(0, cols, BASE_N), range(0, k, SCALES * GROUP))
        for turn, (down, across, begin) in enumerate(tiles):
            depth = min(SCALES * GROUP, k - begin)
            row, column = top + i + down, left + across
            of_a, of_b = Scales(scales[0][turn % 2], True), Scales(scales[1][turn % 2], False)
            some = slice(begin // GROUP, begin // GROUP + SCALES)
            for at in pto.range(0, depth, 2 * STEP * BASE_K):
                panels = [lefts, of_a.piece(at), rights, of_b.piece(at)]
                load_a = of_a.load(a_scale[row : row + BASE_M, some], at)
                load_b = of_b.load(b_scales[some, column : column + BASE_N], at)
                for piece in range(2 * STEP):
                    number, inside = divmod(piece, STEP)
                    if inside == 0:
                        here = begin + at + piece * BASE_K
                        there = here + BASE_K * STEP
                        first = piece == 0
                        lefts.load(
                            number, a[row : row + BASE_M, here:there], load_a if first else None
                        )
                        window = b_columns[here:there, column : column + BASE_N]
                        rights.load(number, window, load_b if first else None)
                    begun = begin + at
                    multiply(
                        acc, operands, panels, piece, begun, (isa.tmatmul_mx, isa.tmatmul_mx_acc)
                    )
            if begin + depth == k:
                store(c[row : row + BASE_M, column : column + BASE_N], acc)
    all_free(isa.wait_flag)
