"""The costs of work on Ascend 910B and 910C. Data only; see `costs.py` for the fields.

Sources: `add`, `datacopy`, `vendor matmul`: README tables of asc-devkit's best practices. `gemm`,
`conv2d`, `topk`: README tables of pto-isa's kernels. `vecdoc`: asc-devkit's table of theoretical
vector throughput. `cce`: pto-isa's cost model of 910B3, `fitted`: its table of tile operations.
`dhrystone`: the report of pto-isa's `t_dhrystone`. `cumsum`, `kkt`, `wy_fast`, `chunk_h`,
`chunk_o`: kernels of megagdn-pto. `jit`: flash attention of pto-isa's demo of just-in-time
compilation, four blocks with a host of x86_64. `pypto`: its platform files and simulator.
"""

from __future__ import annotations

from pto.target.costs import OTHER, Chip, Costs, LaunchCost, cost

CHIP = Chip(
    mhz=1850,
    queue_depth=32,  # vendor matmul
    launches={
        "vector": LaunchCost(2.2, 0.3),  # elementwise of cann-bench below 20 MB
        "cube": LaunchCost(6.3, 5.0),  # gemm and conv2d at their smallest
        "mix": LaunchCost(4.1, 7.2),  # jit: launches on warm data; the sum is that of the cube
    },
    hbm_read=1.50e12,  # datacopy
    hbm_write=1.56e12,  # add, case 4
    hbm_new=1.30e12,  # elementwise of cann-bench, after other kernels have used the cache
    small_copies=0.9,  # datacopy, add
    l2_read=5.9e12,  # datacopy of slices that stay in the cache
    l2_bytes=192.0e6,  # write-back: add cases 4 and 5
    past_row=66,  # datacopy to UB, all blocks read all elsewhere: rows of 128 at 1 TB/s
    unaligned=512,  # datacopy of 12287 columns: rows of 2048 take 1.28, of 512 twice as long
    flag=10,  # add
    cross_core=200,  # chunk_h, chunk_o: 100 to 300 fit as well
    issue=2,  # guess
    loop=9,  # kkt; dhrystone: 1.3 cycles an instruction, of which a row takes six or seven
    slowest=0.91,  # vendor matmul: the same products take up to 9 % longer from run to run
    vector_functions=False,
)

_LOADS = "datacopy, vendor matmul, gemm, conv2d, add"
_LATENCY = {"lat_hit": 120, "lat_miss": 440, "lat_load": 0.6}
# burst_past: of loads that pass by the L2 cache; datacopy to L1, all blocks read all elsewhere
# same: datacopy where all blocks read the same; 24 cores and 48 get as much together. That requests
# within 512 bytes are served one after the other: Ascend C guide, "Avoiding Same-Address Access"
_BURSTS = {"issue": 20.6, "burst_hit": 3.9, "burst_miss": 5.3, "burst_past": 7.9, "same": 1365}

CLASSES = {
    # ---- global memory
    "gm>l1": cost("load", "measured", _LOADS, **_BURSTS, r_hit=84, r_miss=70, **_LATENCY),
    "gm>ub": cost("load", "measured", "datacopy, add", **_BURSTS, r_hit=67, r_miss=64, **_LATENCY),
    "ub>gm": cost("store", "measured", "add; bursts as of loads", start=0, rate=27, burst=3.9),
    "l0c>gm": cost("store", "measured", "gemm, conv2d, vendor matmul", start=107, rate=77),
    "gm>gm": cost("store", "guess", "transfers between ranks", start=1000, rate=13),
    "l1>gm": cost("store", "guess", "as ub>gm", start=0, rate=27),
    # ---- inside a core
    "l1>l0a": cost("fractals", "measured", "gemm, vendor matmul", column=11.3, rate=256),
    "l1>l0b": cost("fractals", "measured", "gemm", column=11.3, rate=128),
    "img2col": cost("store", "measured", "conv2d, pypto", start=27, rate=256),
    "l1>bias": cost("store", "guess", "cce", start=20, rate=32),
    "l1>fixpipe": cost("store", "guess", "cce", start=20, rate=32),
    "l1>scale_a": cost("store", "guess", "as mx loads of a5", start=18, rate=256),
    "l1>scale_b": cost("store", "guess", "as mx loads of a5", start=18, rate=256),
    "l0c>l1": cost("store", "sim", "pypto", start=50, rate=128),
    "l0c>ub": cost("store", "guess", "as l0c>l1", start=50, rate=128),
    "l1>ub": cost("store", "vendor", "pypto platform file", start=30, rate=128),
    "ub>l1": cost("store", "vendor", "pypto platform file", start=30, rate=128),
    OTHER: cost("store", "guess", "as ub>l1", start=30, rate=128),
    "l1>l1": cost("store", "guess", "as ub>l1", start=30, rate=128),
    "ub>ub": cost("vector", "guess", "pypto platform file: 256 bytes a cycle", fixed=24, slope=1),
    "product": cost("product", "measured", "gemm, vendor matmul", head=12.5, f32_passes=2),
    # ---- the vector unit: cycles for each repeat of 256 bytes; both sources in one bank group
    # double it (`conflict`)
    "add": cost("vector", "measured", "add", fixed=22.5, slope=1, conflict=2),
    "mul": cost("vector", "sim", "cce, vecdoc", fixed=25, slope=1, conflict=2),
    "div": cost("vector", "sim", "vecdoc, cce; they differ by 2", fixed=30, slope=2, slope16=4),
    "exp": cost("vector", "sim", "vecdoc, cce", fixed=31, slope=2, slope16=4),
    "power": cost("vector", "guess", "several instructions", fixed=60, slope=10),
    "unary": cost("vector", "sim", "cce, vecdoc", fixed=25, slope=1),
    "bits": cost("vector", "sim", "cce", fixed=20, slope=1, conflict=2),
    "compare": cost("vector", "sim", "vecdoc, cce", fixed=27, slope=1, conflict=2),
    "convert": cost("vector", "sim", "vecdoc, cce; they differ by 2", fixed=32, slope=1),
    "fold": cost("vector", "vendor", "cce; chain: fitted", fixed=22.5, slope=1, chain=17.5),
    "group_fold": cost("vector", "sim", "cce, vecdoc", fixed=38, slope=1),
    "lane_fold": cost("vector", "sim", "cce, vecdoc", fixed=46, slope=7),
    "spread": cost("vector", "vendor", "vecdoc; chain: fitted", fixed=24, slope=1, chain=13),
    "search": cost("vector", "guess", "two lane folds", fixed=46, slope=14),
    "fused": cost("vector", "guess", "two instructions", fixed=25, slope=2),
    "rearrange": cost("vector", "guess", "two instructions", fixed=25, slope=2),
    "transpose": cost("vector", "measured", "transposes of cann-bench", fixed=25, slope=46),
    "block_sort": cost("vector", "vendor", "vecdoc: 2 elements a cycle", fixed=22.5, element=0.5),
    "merge": cost("vector", "measured", "topk; vecdoc has 0.5", fixed=22.5, element=1.62),
    "gather": cost("vector", "vendor", "vecdoc: 5 elements a cycle", fixed=26, element=0.2),
    "simt": cost("vector", "guess", "the profile has no SIMT", fixed=26, slope=2),
    # ---- order, and the scalar unit
    "flag": cost("cycles", "measured", "add", cycles=1),
    "barrier": cost("cycles", "measured", "add", cycles=1),
    "semaphore": cost("cycles", "guess", "pto-isa issue 99", cycles=10),
    "register": cost("cycles", "guess", "one move", cycles=2),
    "alu": cost("cycles", "sim", "pypto; constants and hoisted arithmetic are free", cycles=2),
    "branch": cost("cycles", "sim", "pypto", cycles=4),
    "code": cost(
        "code", "measured", "dhrystone, wy_fast, cumsum", operation=1.3, branch=1.3, division=50
    ),
    "element": cost("cycles", "guess", "add, the scalar loop", ub=20, gm=350),
    "free": cost("cycles", "vendor", "a name, no work", cycles=0),
}

COSTS = Costs(CHIP, CLASSES)
