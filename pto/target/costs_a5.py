"""The costs of work on Ascend 950. Data only; see `costs.py` for the fields.

Sources as in `costs_a2a3.py`; `mxfp8`: README table of pto-isa's kernel. `vfsim`: pto-isa's
simulator of vector functions. `gym`: the cycle tables of PTO-Gym's manual of micro-instructions.
"""

from __future__ import annotations

from pto.target.costs import OTHER, Chip, Costs, LaunchCost, cost

CHIP = Chip(
    mhz=1650,
    queue_depth=32,  # guess: as the older chips
    launches={
        "vector": LaunchCost(1.1, 0.0),  # elementwise of cann-bench below 20 MB
        "cube": LaunchCost(0.8, 8.0),  # vendor matmul; mxfp8 at its smallest
        "mix": LaunchCost(0.8, 8.0),  # as of the cube
    },
    hbm_read=1.63e12,  # datacopy
    hbm_write=1.65e12,  # add
    hbm_new=1.30e12,  # elementwise of cann-bench, after other kernels have used the cache
    small_copies=0.9,  # datacopy of 8 KiB tiles, add case 2
    l2_read=6.0e12,  # datacopy
    l2_bytes=128.0e6,  # pypto platform file
    past_row=0,  # datacopy to UB, all blocks read all: no less than of long rows
    unaligned=32,  # datacopy of 12287 columns: rows of 2048 take 1.02, of 512 1.08 as long
    flag=10,
    cross_core=200,
    issue=2,
    loop=0,  # a tile operation is one vector function
    slowest=0.91,
    vector_functions=True,
)

_LATENCY = {"lat_hit": 120, "lat_miss": 560, "lat_load": 0.6}
_BURSTS = {"issue": 39.4, "burst_hit": 2.8, "burst_miss": 5.4, "burst_past": 4.7}
# pto-isa's table of MXFP4, 2048 x 8192 x 8192: products no faster than of fp8, extracts far slower
_FP4_PASSES = {"float4_e2m1x2_passes": 2, "float4_e1m2x2_passes": 2}
_FP4_RATE = {"float4_e2m1x2_rate": 34, "float4_e1m2x2_rate": 34}
_LOADS = "datacopy, vendor matmul, mxfp8, add"

CLASSES = {
    # ---- global memory
    # same: datacopy where all blocks read the same; to UB it makes no difference
    "gm>l1": cost(
        "load", "measured", _LOADS, **_BURSTS, r_hit=92, r_miss=80, same=1780, **_LATENCY
    ),
    "gm>ub": cost("load", "measured", "datacopy, add", **_BURSTS, r_hit=67, r_miss=64, **_LATENCY),
    "ub>gm": cost(
        "store", "guess", "pypto platform file; bursts as of loads", start=0, rate=40, burst=2.8
    ),
    "l0c>gm": cost("store", "measured", "mxfp8, vendor matmul", start=100, rate=80),
    "gm>gm": cost("store", "guess", "transfers between ranks", start=1000, rate=13),
    "l1>gm": cost("store", "guess", "as ub>gm", start=0, rate=40),
    # ---- inside a core
    "l1>l0a": cost("fractals", "measured", "vendor matmul, mxfp8", column=9, rate=256, **_FP4_RATE),
    "l1>l0b": cost("fractals", "measured", "vendor matmul", column=9, rate=256, **_FP4_RATE),
    "img2col": cost("store", "guess", "as a2a3", start=27, rate=256),
    "l1>bias": cost("store", "guess", "as a2a3", start=20, rate=32),
    "l1>fixpipe": cost("store", "guess", "as a2a3", start=20, rate=32),
    "l1>scale_a": cost("store", "measured", "mxfp8", start=18, rate=256),
    "l1>scale_b": cost("store", "measured", "mxfp8", start=18, rate=256),
    "l0c>l1": cost("store", "vendor", "pypto platform file", start=50, rate=128),
    "l0c>ub": cost("store", "vendor", "pypto platform file", start=50, rate=128),
    "l1>ub": cost("store", "vendor", "pypto platform file", start=30, rate=128),
    "ub>l1": cost("store", "vendor", "pypto platform file", start=30, rate=128),
    OTHER: cost("store", "guess", "as ub>l1", start=30, rate=128),
    "l1>l1": cost("store", "guess", "as ub>l1", start=30, rate=128),
    "ub>ub": cost("vector", "guess", "256 bytes a cycle", fixed=24, slope=1),
    # f32: the platform file has 8 of k a cycle, pypto's fit eight passes of that
    "product": cost("product", "measured", "vendor matmul, mxfp8", head=8, **_FP4_PASSES),
    # ---- one vector scope, or one tile operation, is one vector function
    "scope": cost(
        "function", "sim", "vfsim; add measured 28.8 + 2.07 a repeat", startup=23, drain=12,
        issue=2, loads=2, stores=1, units=2,
    ),
    "block_sort": cost("vector", "guess", "as a2a3", fixed=22.5, element=0.5),
    "merge": cost("vector", "guess", "as a2a3", fixed=22.5, element=1.5),
    "simt": cost("vector", "guess", "no rate is published", fixed=35, slope=2),
    # ---- order, and the scalar unit
    "flag": cost("cycles", "guess", "as a2a3", cycles=1),
    "barrier": cost("cycles", "guess", "as a2a3; V to V is ordered by hardware", cycles=1),
    "semaphore": cost("cycles", "guess", "as a2a3", cycles=10),
    "register": cost("cycles", "guess", "one move", cycles=2),
    "alu": cost("cycles", "guess", "as a2a3", cycles=2),
    "branch": cost("cycles", "guess", "as a2a3", cycles=4),
    "code": cost("code", "measured", "dhrystone, as a2a3", operation=1.3, branch=1.3, division=50),
    "element": cost("cycles", "guess", "as a2a3", ub=20, gm=350),
    "free": cost("cycles", "vendor", "a name, no work", cycles=0),
}  # fmt: skip

# Inside a vector function: (latency, interval). vfsim and gym.
LANES = {
    "add": (7, 1), "mul": (8, 1), "div": (17, 4), "div16": (22, 4), "exp": (16, 4),
    "exp16": (21, 4), "power": (40, 12), "unary": (6, 1), "bits": (6, 1), "compare": (6, 1),
    "convert": (7, 1), "fold": (7, 1), "group_fold": (13, 1), "lane_fold": (22, 1),
    "spread": (6, 1), "search": (32, 2), "fused": (8, 1), "rearrange": (7, 1), "lane": (7, 1),
    "transpose": (100, 112),  # a gather of one column, with all lanes in one bank: cann-bench
    "predicate": (4, 1), "reg_load": (9, 1), "reg_store": (9, 1), "reg_gather": (28, 10),
    "gather": (28, 10), "reg_scatter": (17, 8), "reg_fold": (22, 1), "block_sort": (30, 16),
}  # fmt: skip

COSTS = Costs(CHIP, CLASSES, LANES)
