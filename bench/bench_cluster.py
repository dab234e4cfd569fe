"""A cluster of two nodes on this machine, a processor each: blocks, ranks and what they move.

Goals: 2 s of work in two workers at least 1.7 times as fast as in one process; an empty launch in
20 ms; bytes moved are the arrays once a node, and what was written. `--plot FILE` draws how cost
grows with blocks, ranks and nodes (docs/pictures/cluster.png).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import pto
from bench.measure import Rows
from examples import ring_attention
from pto import isa

_STORE = 200 << 20
_BLOCKS, _TURNS = 24, 10_000
ROWS, COLS = 64, 128


@pto.kernel(profile="a5")
def work(x: pto.Global[pto.f32], y: pto.Global[pto.f32], turns: int) -> None:
    """Some work for each block, on 32 KB in and 32 KB out."""
    t, u = pto.tile(ROWS, COLS, pto.f32), pto.tile(ROWS, COLS, pto.f32)
    i = pto.block_idx() * ROWS
    isa.tload(t, x[i:, :])
    isa.tmuls(u, t, 0.0)
    for _ in pto.range(turns):
        isa.tadd(u, u, t)
    isa.tstore(y[i:, :], u)


@pto.kernel(profile="a5")
def nothing(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """A block that only copies 256 bytes."""
    t = pto.tile(1, 64, pto.f32)
    i = pto.block_idx()
    isa.tload(t, x[i : i + 1, :])
    isa.tstore(y[i : i + 1, :], t)


def arrays(blocks: int) -> tuple[Any, Any]:
    x = np.ones((ROWS * blocks, COLS), np.float32)
    return x, np.zeros_like(x)


@contextmanager
def cluster(nodes: int) -> Iterator[Any]:
    """So many nodes of one processor, and their workers."""
    import ray
    from ray.cluster_utils import Cluster

    # Ray lets workers give way to others (nice 15): beside a busy machine that would be measured
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    node = {"num_cpus": 1, "object_store_memory": _STORE, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=node)
    for _ in range(nodes - 1):
        made.add_node(**node)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    try:
        with pto.on("ray") as place:
            place.crew.muster(nodes)
            yield place
    finally:
        ray.shutdown()
        made.shutdown()


def taken(run: Callable[[], object], times: int) -> float:
    """Median seconds of some calls, after one that fills caches."""
    run()
    found: list[float] = [0.0] * (not times)
    for _ in range(times):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return median(found)


def best(run: Callable[[], object], times: int) -> float:
    """Least seconds of some calls: what it costs where nothing comes between."""
    return min(taken(run, 1) for _ in range(times))


def here(run: Callable[[], object], times: int) -> float:
    """In this process, on one thread."""
    os.environ["PTO_THREADS"] = "1"
    try:
        with pto.on("here"):
            return taken(run, times)
    finally:
        del os.environ["PTO_THREADS"]


def processor_seconds(pid: int) -> float:
    """What a process has used so far (Linux): a busy machine does not count."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def used(pids: list[int], run: Callable[[], object]) -> float:
    """Processor seconds of the busiest of some processes."""
    before = [processor_seconds(pid) for pid in pids]
    run()
    return max(processor_seconds(pid) - old for pid, old in zip(pids, before, strict=True))


def run() -> Rows:
    if find_spec("ray") is None:
        return [("Ray is not installed", 0.0, "-")]
    x, y = arrays(_BLOCKS)
    small = arrays(2)
    with cluster(2) as place:
        own, workers = [os.getpid()], [hand.pid for hand in place.crew.ready]
        here(lambda: work[_BLOCKS](x, y, _TURNS), 1)
        cost = used(own, lambda: here(lambda: work[_BLOCKS](x, y, _TURNS), 1)) / 2
        turns = max(1, round(_TURNS * 2.0 / cost))  # two seconds, whatever the machine
        alone = here(lambda: work[_BLOCKS](x, y, turns), 3)
        apart = taken(lambda: work[_BLOCKS](x, y, turns), 3)
        alone_used = used(own, lambda: here(lambda: work[_BLOCKS](x, y, turns), 0))
        apart_used = used(workers, lambda: work[_BLOCKS](x, y, turns))
        moved = place.moved[-1]
        empty = taken(lambda: work[2](*small, 0), 20)
        print(f"  {moved}: {moved.total:,} bytes in all", flush=True)
        if moved.total != moved.nodes * (x.nbytes + y.nbytes) + y.nbytes:
            raise RuntimeError("bytes moved are not the arrays once a node and what was written")
        many = worlds(place)
    return [
        ("one process, one thread", alone, "s"),
        ("two workers", apart, "s"),
        ("  times as fast (goal 1.7)", alone / apart, "x"),
        ("  by processor time", alone_used / apart_used, "x"),
        ("an empty launch (goal 20)", empty * 1e3, "ms"),
        ("bytes moved", moved.total / 1e3, "KB"),
        *many,
    ]


# ---- worlds of 64 ranks, in the bits of one process


def _gathered(ranks: int) -> list[Any]:
    return _ring(ring_attention.all_gather, ranks)[0]


def _reduced(ranks: int) -> list[Any]:
    total = [np.zeros((1, 64), np.float32) for _ in range(ranks)]
    return [*_ring(ring_attention.all_reduce, ranks, total)[0], *total]


def _ring(kernel: Any, ranks: int, *others: list[Any]) -> tuple[list[Any], Any]:
    data = np.random.default_rng(ranks).standard_normal((ranks, 1, 64)).astype(np.float32)
    return ring_attention.go_round(pto.World(ranks, "a5"), kernel, data, *others), data


def _attended(ranks: int) -> list[Any]:
    return [ring_attention.example("a5", ranks)[0]]


def worlds(place: Any, ranks: int = 64) -> Rows:
    """Rings of many ranks on the cluster, each compared with one process byte by byte."""
    rows: Rows = []
    for name, world in (
        ("all-gather", _gathered),
        ("all-reduce", _reduced),
        ("ring attention", _attended),
    ):
        with pto.on("here"):
            began = time.perf_counter()
            alone = world(ranks)
            middle = time.perf_counter()
        before = len(place.travelled)
        apart = world(ranks)
        if len(place.travelled) != before + 1:
            raise RuntimeError(f"{name} did not run on the cluster")
        if [a.tobytes() for a in alone] != [a.tobytes() for a in apart]:
            raise RuntimeError(f"{name} of {ranks} ranks differs from that of one process")
        rows.append((f"{ranks} ranks, {name}, one process", middle - began, "s"))
        rows.append(("  on the cluster, the same bits", time.perf_counter() - middle, "s"))
    return rows


# ---- how cost grows


def by_blocks(counts: tuple[int, ...]) -> list[float]:
    """Milliseconds of launches that do next to nothing."""
    found: list[float] = []
    for count in counts:
        x, y = np.ones((2, count, 64), np.float32)
        found.append(1e3 * best(lambda x=x, y=y, n=count: nothing[n](x, y), 12))
    return found


def by_ranks(counts: tuple[int, ...]) -> list[float]:
    """Milliseconds of a ring all-gather of 256 bytes a rank."""
    found: list[float] = []
    for count in counts:
        data = np.ones((count, 1, 64), np.float32)

        def gather(data: Any = data, n: int = count) -> None:
            ring_attention.go_round(pto.World(n, "a5"), ring_attention.all_gather, data)

        found.append(1e3 * best(gather, 4))
    return found


BLOCKS, RANKS, NODES = (2, 16, 128, 1024, 8192), (2, 4, 8, 16, 32, 64), (1, 2, 4, 8)


def measured() -> dict[str, Any]:
    nodes: list[float] = []
    blocks: list[float] = []
    ranks: list[float] = []
    for count in NODES:
        with cluster(count):
            nodes += by_blocks((16,))
            if count == 2:
                blocks, ranks = by_blocks(BLOCKS), by_ranks(RANKS)
    with pto.on("here"):
        alone, together = by_blocks(BLOCKS), by_ranks(RANKS)
    return {"nodes": nodes, "blocks": blocks, "ranks": ranks, "alone": alone, "together": together}


def plot(file: Path, found: dict[str, Any]) -> None:
    from pto.view.figure import new_figure, save

    figure = new_figure((11, 3.6), "What a launch costs on a cluster", "a plot")
    for axes, what, counts, lines in zip(
        figure.subplots(1, 3),
        ("blocks that do nothing, 2 nodes", "ranks of an all-gather, 2 nodes", "nodes, 16 blocks"),
        (BLOCKS, RANKS, NODES),
        (("blocks", "alone"), ("ranks", "together"), ("nodes",)),
        strict=True,
    ):
        for line in lines:
            label = "one process" if line in ("alone", "together") else "cluster"
            axes.plot(counts, found[line], marker="o", label=label)
        axes.set(xscale="log", yscale="log", xlabel=what, ylabel="ms")
        axes.set_xticks(counts, [str(n) for n in counts])
        axes.minorticks_off()
        axes.legend()
        axes.grid(alpha=0.3)
    save(figure, file)


if __name__ == "__main__":
    results = measured()
    for name, values in results.items():
        print(name, [round(value, 2) for value in values])
    if "--plot" in sys.argv:
        plot(Path(sys.argv[sys.argv.index("--plot") + 1]), results)
