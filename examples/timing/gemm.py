"""C = A x B in f16 on all cubes of a 910B: panels in L1, two of every buffer, flags by hand."""

import pto

BASE_M, BASE_K, BASE_N = 128, 64, 256
STEP = 4  # pieces of k that one load brings
A_PANEL, B_PANEL = BASE_M * BASE_K * STEP * 2, BASE_N * BASE_K * STEP * 2
A_PIECE, B_PIECE = BASE_M * BASE_K * 2, BASE_N * BASE_K * 2


@pto.kernel(profile="a2a3")
def gemm(
    a: pto.Global[pto.f16],
    b: pto.Global[pto.f16],
    c: pto.Global[pto.f32],
    grid: int,
) -> None:
    """`a` is m x k, `b` k x n, column by column; `grid` blocks share the rows."""
    m, k = a.shape
    n = b.shape[1]
    rows, cols = m // grid, n // (24 // grid)
    top = pto.block_idx() % grid * rows
    left = pto.block_idx() // grid * cols
    a_mats = [
        pto.tile(BASE_M, BASE_K * STEP, pto.f16, role="mat", address=i * A_PANEL) for i in (0, 1)
    ]
    b_mats = [
        pto.tile(
            BASE_K * STEP,
            BASE_N,
            pto.f16,
            role="mat",
            layout="ZN",
            address=2 * A_PANEL + i * B_PANEL,
        )
        for i in (0, 1)
    ]
    lefts = [pto.tile(BASE_M, BASE_K, pto.f16, role="left", address=i * A_PIECE) for i in (0, 1)]
    rights = [pto.tile(BASE_K, BASE_N, pto.f16, role="right", address=i * B_PIECE) for i in (0, 1)]
    acc = pto.tile(BASE_M, BASE_N, pto.f32, role="acc", address=0)
    for turn in (0, 1):
        pto.set_flag("MTE1", "MTE2", turn)
        pto.set_flag("M", "MTE1", turn)
    for i in pto.range(0, rows, BASE_M):
        for j in pto.range(0, cols, BASE_N):
            for panel in pto.range(0, k, 2 * BASE_K * STEP):
                for turn in (0, 1):
                    at = panel + turn * BASE_K * STEP
                    pto.wait_flag("MTE1", "MTE2", turn)
                    pto.tload(a_mats[turn], a[top + i : top + i + BASE_M, at : at + BASE_K * STEP])
                    pto.set_flag("MTE2", "MTE1", 0)
                    pto.tload(
                        b_mats[turn], b[at : at + BASE_K * STEP, left + j : left + j + BASE_N]
                    )
                    pto.set_flag("MTE2", "MTE1", 1)
                    for piece in range(STEP):
                        half = piece % 2
                        pto.wait_flag("M", "MTE1", half)
                        if piece == 0:
                            pto.wait_flag("MTE2", "MTE1", 0)
                        pto.textract(lefts[half], a_mats[turn], 0, piece * BASE_K)
                        if piece == 0:
                            pto.wait_flag("MTE2", "MTE1", 1)
                        pto.textract(rights[half], b_mats[turn], piece * BASE_K, 0)
                        if piece == STEP - 1:
                            pto.set_flag("MTE1", "MTE2", turn)
                        pto.set_flag("MTE1", "M", half)
                        pto.wait_flag("MTE1", "M", half)
                        if turn == piece == 0:
                            with pto.If(panel == 0):
                                pto.tmatmul(acc, lefts[half], rights[half])
                            with pto.Else():
                                pto.tmatmul_acc(acc, acc, lefts[half], rights[half])
                        else:
                            pto.tmatmul_acc(acc, acc, lefts[half], rights[half])
                        pto.set_flag("M", "MTE1", half)
            pto.set_flag("M", "FIX", 0)
            pto.wait_flag("M", "FIX", 0)
            pto.tstore(c[top + i : top + i + BASE_M, left + j : left + j + BASE_N], acc)
            pto.set_flag("FIX", "M", 0)
            pto.wait_flag("FIX", "M", 0)
    for turn in (0, 1):
        pto.wait_flag("M", "MTE1", turn)
        pto.wait_flag("MTE1", "MTE2", turn)
