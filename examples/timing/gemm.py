"""C = A x B on all cubes: panels in L1, two of every buffer, flags by hand.

The published kernels it stands for differ in their sizes, in how much one load brings, in whether
the next panels are asked for before these are used, and in whether all rows are done in one go.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pto
from pto import isa


class Tiling(NamedTuple):
    """How a product is cut."""

    base: tuple[int, int, int] = (128, 64, 256)  # m, k, n of one step of the matrix unit
    steps: tuple[int, int] = (4, 4)  # pieces of k that one load of a, and one of b, brings
    ahead: bool = False  # whether the next panels are loaded before these are used
    rounds: int = 1  # parts of m, one after the other, so that b stays in the L2 cache


USUAL = Tiling()


class Panels(NamedTuple):
    """Two buffers in L1, filled in turn with panels of one matrix, and taken apart piece by piece.

    Flag `full + turn` of MTE2 says that a buffer is full, flag `free + turn` of MTE1 that it is
    free again. Where two matrices share those, the first one waits and the second one tells.
    """

    buffers: list[pto.Tile]
    step: int  # pieces in a panel
    take: Callable[[pto.Tile, int, int], None]  # into, of which buffer, which piece
    full: int
    free: int
    waits: bool = True
    tells: bool = True

    def load(self, number: int, window: Any, also: Callable[[], None] | None = None) -> None:
        turn = number % 2
        if self.waits:
            isa.wait_flag("MTE1", "MTE2", self.free + turn)
        isa.tload(self.buffers[turn], window)
        if also is not None:
            also()
        isa.set_flag("MTE2", "MTE1", self.full + turn)

    def extract(self, into: pto.Tile, piece: int) -> None:
        panel, inside = divmod(piece, self.step)
        turn = panel % 2
        if inside == 0:
            isa.wait_flag("MTE2", "MTE1", self.full + turn)
        self.take(into, turn, inside)
        if inside == self.step - 1 and self.tells:
            isa.set_flag("MTE1", "MTE2", self.free + turn)


def in_turn(
    rows: int,
    cols: int,
    dtype: Any,
    role: str,
    layout: str | None = None,
    at: int = 0,
    fractal: int | None = None,
) -> list[pto.Tile]:
    """Two tiles side by side."""
    size = rows * cols * dtype.itemsize
    return [
        pto.tile(rows, cols, dtype, layout, role, address=at + i * size, fractal=fractal)
        for i in (0, 1)
    ]


def multiply(
    acc: pto.Tile,
    operands: list[Any],
    panels: list[Any],
    piece: int,
    at: Any,
    products: tuple[Any, Any] = (isa.tmatmul, isa.tmatmul_acc),
) -> None:
    """One piece of k: to L0, then multiplied; `at` is where its panels began."""
    turn, (first, more) = piece % 2, products
    isa.wait_flag("M", "MTE1", turn)
    for panel, tile in zip(panels, operands[turn], strict=True):
        panel.extract(tile, piece)
    isa.set_flag("MTE1", "M", turn)
    isa.wait_flag("MTE1", "M", turn)
    if piece == 0:
        if at == 0:
            first(acc, *operands[turn])
        else:
            more(acc, acc, *operands[turn])
    else:
        more(acc, acc, *operands[turn])
    isa.set_flag("M", "MTE1", turn)


def store(window: Any, acc: pto.Tile) -> None:
    """The one accumulator, when it is done; the next product begins when it is stored."""
    isa.set_flag("M", "FIX", 0)
    isa.wait_flag("M", "FIX", 0)
    isa.tstore(window, acc)
    isa.set_flag("FIX", "M", 0)
    isa.wait_flag("FIX", "M", 0)


def all_free(say: Callable[[str, str, int], Any], flags: int = 2) -> None:
    """Before the first piece every buffer is free, after the last one again."""
    for flag in range(flags):
        say("MTE1", "MTE2", flag)
    for turn in (0, 1):
        say("M", "MTE1", turn)


@pto.kernel(profile="a2a3")
def gemm(
    a: pto.Global[pto.f16],
    b: pto.Global[pto.f16],
    c: pto.Global[Any],
    blocks: int,
    grid: int,
    tiling: Tiling = USUAL,
) -> None:
    """`a` is m x k, `b` n x k, to be multiplied as k x n; `grid` of the blocks share the rows."""
    (m, k), n, columns = a.shape, b.shape[0], b.T
    (base_m, base_k, base_n), steps, ahead = tiling.base, tiling.steps, tiling.ahead
    rows = m // tiling.rounds // grid
    cols = pto.cdiv(n, blocks // grid * base_n) * base_n
    left = pto.block_idx() // grid * cols
    width = cols if n % cols == 0 else pto.min(n - left, cols)
    a_mats = in_turn(base_m, base_k * steps[0], pto.f16, "mat")
    behind = 2 * base_m * base_k * steps[0] * 2
    b_mats = in_turn(base_k * steps[1], base_n, pto.f16, "mat", "ZN", behind)

    def take_a(into: pto.Tile, turn: int, inside: int) -> None:
        isa.textract(into, a_mats[turn], 0, inside * base_k)

    def take_b(into: pto.Tile, turn: int, inside: int) -> None:
        isa.textract(into, b_mats[turn], inside * base_k, 0)

    panels = [
        Panels(a_mats, steps[0], take_a, full=0, free=0, tells=ahead),
        Panels(b_mats, steps[1], take_b, full=2, free=2 if ahead else 0, waits=ahead),
    ]
    lefts = in_turn(base_m, base_k, pto.f16, "left")
    rights = in_turn(base_k, base_n, pto.f16, "right")
    pairs = list(zip(lefts, rights, strict=True))
    acc = pto.tile(base_m, base_n, pto.f32, role="acc", address=0)
    all_free(isa.set_flag, 4 if ahead else 2)
    for part in pto.range(0, tiling.rounds):
        top = (part * grid + pto.block_idx() % grid) * rows
        for i in pto.range(0, rows, base_m):
            for j in pto.range(0, width, base_n):
                row, column = top + i, left + j
                if ahead:
                    panels[0].load(0, a[row : row + base_m, 0 : base_k * steps[0]])
                    panels[1].load(0, columns[0 : base_k * steps[1], column : column + base_n])
                for at in pto.range(0, k, 2 * max(steps) * base_k):
                    for piece in range(2 * max(steps)):
                        for which in (1, 0) if ahead else (0, 1):
                            number, inside = divmod(piece, steps[which])
                            if inside:
                                continue
                            here = at + (number + ahead) * steps[which] * base_k
                            there = here + steps[which] * base_k
                            if here < k:
                                rest = a[row : row + base_m, here:there]
                                if which:
                                    rest = columns[here:there, column : column + base_n]
                                panels[which].load(number + ahead, rest)
                        multiply(acc, pairs, panels, piece, at)
                store(c[row : row + base_m, column : column + base_n], acc)
    all_free(isa.wait_flag, 4 if ahead else 2)
