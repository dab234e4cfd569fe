"""C++ between instructions: what is counted in compiled code, and how long it takes."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from pto.cxx import counted
from pto.isa.cost.work import CodeWork
from pto.target.costs_a2a3 import CLASSES

LISTING = """
0000000000001000 <_Z1fPii>:
    1000:\tpush   %rbp
    1004:\tsub    $0x20,%rsp
    1008:\tcall   9000 <__sanitizer_cov_trace_pc>
    100d:\tmov    -0x8(%rbp),%rax
    1011:\tmov    (%rax),%eax
    1013:\timul   -0x14(%rbp),%eax
    1017:\tcltd
    1018:\tidivl  -0x18(%rbp)
    101b:\tjmp    1030 <_Z1fPii+0x30>
    101d:\tcall   9000 <__sanitizer_cov_trace_pc>
    1022:\taddl   $0x1,-0x4(%rbp)
    1026:\tcmp    -0x4(%rbp),%eax
    1029:\tjl     1022 <_Z1fPii+0x22>
    102b:\tmulss  -0x8(%rbp),%xmm0
    1030:\tleave
0000000000001040 <_Z1gv>:
    1040:\tmov    $0x0,%eax
    1045:\tcall   9000 <__sanitizer_cov_trace_pc>
    104a:\tpop    %rbp
"""


def test_blocks_of_a_listing() -> None:
    """By hand: a load through a pointer, a product and a division; then a sum, a comparison, a
    branch and a product of floats. Moves to and from the stack and jumps are no work."""
    found = dict(counted._functions(LISTING.splitlines()))
    blocks = {at: counted.code(amount)[1:] for at, amount in found[0x1000].items()}
    assert blocks == {0x100D: (2, 0, 1), 0x1022: (3, 1, 0)}
    assert found[0x1040] == {0x104A: 0}


OTHER = """
0000000000000800 <_Z1fPii>:
     800:\tstp\tx29, x30, [sp, #-48]!
     804:\tbl\t700 <__sanitizer_cov_trace_pc@plt>
     808:\tldr\tx0, [sp, #24]
     80c:\tldr\tw1, [x0]
     810:\tldr\tw0, [sp, #20]
     814:\tsdiv\tw2, w1, w0
     818:\tmsub\tw0, w2, w0, w1
     81c:\tcmp\tw0, #0x3
     820:\tb.ne\t830 <_Z1fPii+0x30>
     824:\tadd\tsp, sp, #0x30
"""


def test_blocks_of_another_processor() -> None:
    (_, blocks) = list(counted._functions(OTHER.splitlines()))[-1]
    assert {at: counted.code(amount)[1:] for at, amount in blocks.items()} == {0x808: (3, 1, 1)}


def test_amounts_add_up() -> None:
    one = counted.code(5 + (3 << 24) + (2 << 44))
    assert one == CodeWork("code", 5, 3, 2)
    assert counted.code(1 + (1 << 44), one) == CodeWork("code", 6, 3, 3)


BETWEEN = """
__global__ AICORE void k(__gm__ float* out, __gm__ int32_t* times)
{
    using G = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
    Tile<TileType::Vec, float, 16, 64> x;
    TASSIGN(x, 0x0);
    G go(out + times[2]);
    if (times[0] % 2) go = G(out);
    TEXPANDS(x, 1.0f);
    pipe_barrier(PIPE_ALL);
    int64_t found = 0;
    for (int64_t i = 0; i < times[0]; ++i) {
        if (i % times[1] == 3) found = i;
    }
    TSTORE(go, x);
    pipe_barrier(PIPE_ALL);
}
"""


def test_a_loop_between_instructions_takes_its_time(kernel) -> None:
    """A division and six other operations a turn: two loads of an argument, a comparison and a
    branch for each of the two conditions, and the counter; here and there one more."""
    if shutil.which("objdump") is None:
        pytest.skip("no objdump: code between instructions is not counted")
    made = kernel(BETWEEN)
    few, many = (made.time((16, 64), np.array([n, 24, 0], np.int32)) for n in (24, 1024))
    work = [
        sum(j.work.divisions for j in t.stream.jobs if isinstance(j.work, CodeWork))
        for t in (few, many)
    ]
    assert work == [24, 1024]
    cost = CLASSES["code"]
    turn = (cost["division"] + 7 * cost["operation"]) / 1850
    assert many.us - few.us == pytest.approx(1000 * turn, rel=0.05)
    assert many.band[0] < many.us - 400 * turn and many.band[1] > many.us + 900 * turn
    first = [isinstance(job.work, CodeWork) for job in few.stream.jobs]
    assert first.index(True) > first.index(False)  # what comes first belongs to the launch
    assert "C++ between instructions" in str(many)
    assert "half or twice" in str(many)


def test_a_run_counts_nothing(kernel) -> None:
    out = np.zeros((16, 64), np.float32)
    kernel(BETWEEN)(out, np.array([24, 5, 0], np.int32))
    assert (out == 1).all()
