"""A real cluster of two nodes on this machine: the same bits as one process, whoever dies.

One file, so that one process has the cluster; starting it takes as long as all tests together.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import Context
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from examples import flash_attention, gemm_f16, ring_attention, softmax
from pto import isa

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason='Ray is not installed: pip install "pto-machine[ray]"'
)
_NODE = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Two nodes of one processor each."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=_NODE)
    cluster.add_node(**_NODE)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def ray_place(nodes: Any) -> Iterator[Any]:
    """The workers, which stay for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PTO_ENGINE", "jit")
        with pto.on("ray") as place:
            assert place.pool.wait_for_workers(2) == 2
            yield place


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Runs something in this process alone."""
    monkeypatch.setenv("PTO_ENGINE", "jit")

    def run(work: Callable[[], Any]) -> Any:
        from pto.run.launch.engine import selected_cluster

        token = selected_cluster.set(None)
        try:
            return work()
        finally:
            selected_cluster.reset(token)

    return run


Here = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def there(ray_place: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Runs something on the cluster, which must have taken it."""
    monkeypatch.setenv("PTO_ENGINE", "jit")

    def run(work: Callable[[], Any], launches: int = 1) -> Any:
        before = len(ray_place.moved)
        with pto.on("ray"):
            found = work()
        assert len(ray_place.moved) == before + launches
        return found

    return run


There = Callable[..., Any]


@pytest.mark.parametrize("example", [softmax, gemm_f16, flash_attention], ids=lambda e: e.__name__)
def test_examples_have_the_bits_of_one_process(example: Any, here: Here, there: There) -> None:
    alone, _ = here(example.example)
    apart, _ = there(example.example)
    assert apart.tobytes() == alone.tobytes()


BLOCKS = 24


@pto.kernel(profile="a5")
def histogram(x: pto.Global[pto.i32], bins: pto.Global[pto.i32]) -> None:
    """Each block adds its row of counts to all bins."""
    t = pto.tile(1, 64, pto.i32)
    isa.tload(t, x[pto.block_idx() : pto.block_idx() + 1, :])
    isa.tstore(bins, t, atomicType="atomic_add")


@pto.kernel(profile="a5")
def float_sum(x: pto.Global[pto.f32], total: pto.Global[pto.f32]) -> None:
    """Order shows in the bits: (total + x0) + x1 is not total + (x0 + x1)."""
    t = pto.tile(1, 64, pto.f32)
    isa.tload(t, x[pto.block_idx() : pto.block_idx() + 1, :])
    isa.tstore(total, t, atomicType="atomic_add")


def test_an_atomic_histogram(there: There, ray_place: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-(1 << 31), 1 << 31, (BLOCKS, 64), np.int32)
    bins = rng.integers(0, 9, (1, 64), np.int32)
    wanted = (bins + x.astype(np.int64).sum(0)).astype(np.int32)
    there(lambda: histogram[BLOCKS](x, bins))
    assert (bins == wanted).all()
    assert ray_place.moved[-1].again == 0


def test_an_atomic_sum_of_floats_is_made_in_the_order_of_blocks(
    there: There, ray_place: Any
) -> None:
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((BLOCKS, 64)) * 10.0 ** rng.integers(-6, 7, (BLOCKS, 64))).astype("f4")
    total = np.full((1, 64), -0.0, np.float32)
    wanted = total.copy()
    for row in x:
        wanted = wanted + row
    backwards = np.full((1, 64), -0.0, np.float32)
    for row in x[::-1]:
        backwards = backwards + row
    there(lambda: float_sum[BLOCKS](x, total))
    assert total.tobytes() == wanted.tobytes() != backwards.tobytes()
    assert ray_place.moved[-1].again == 0


@pto.kernel(profile="a5")
def chain(x: pto.Global[pto.f32]) -> None:
    """Row i + 1 = 2 * row i: every block needs what the one before it wrote."""
    t = pto.tile(1, 64, pto.f32)
    i = pto.block_idx()
    isa.tload(t, x[i : i + 1, :])
    isa.tadd(t, t, t)
    isa.tstore(x[i + 1 :, :], t)


def test_blocks_that_meet_run_again_in_their_order(there: There, ray_place: Any) -> None:
    x = np.zeros((BLOCKS + 1, 64), np.float32)
    x[0] = np.arange(64)
    there(lambda: chain[BLOCKS](x))
    assert (x == np.arange(64) * 2.0 ** np.arange(BLOCKS + 1)[:, None]).all()
    assert ray_place.moved[-1].again > 0


@pto.kernel(profile="a5")
def last_wins(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(1, 64, pto.f32)
    isa.tload(t, x[pto.block_idx() : pto.block_idx() + 1, :])
    isa.tstore(y, t)


def test_of_blocks_that_write_one_place_the_last_wins(there: There) -> None:
    x = np.zeros((BLOCKS, 64), np.float32)
    x[:-1] = np.random.default_rng(5).standard_normal((BLOCKS - 1, 64))
    y = np.zeros((1, 64), np.float32)  # what the last one writes changes nothing for itself
    there(lambda: last_wins[BLOCKS](x, y))
    assert (y == 0).all()


def test_arrays_that_overlap_on_the_host_do_so_on_a_worker(there: There) -> None:
    whole = np.zeros((BLOCKS + 1, 64), np.float32)
    whole[:BLOCKS] = np.arange(BLOCKS)[:, None]
    there(lambda: last_wins[BLOCKS](whole[:BLOCKS], whole[BLOCKS - 1 : BLOCKS]))
    assert (whole[BLOCKS - 1] == BLOCKS - 2).all()  # the last block reads what that one wrote


@pto.kernel(profile="a5")
def copy_rows(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(1, 64, pto.f32)
    i = pto.block_idx()
    isa.tload(t, x[i : i + 1, :])
    isa.tstore(y[i : i + 1, :], t)


def test_bytes_moved_are_inputs_once_a_node_and_what_was_written(
    there: There, ray_place: Any
) -> None:
    x = np.ones((BLOCKS, 64), np.float32)
    y = np.zeros_like(x)
    there(lambda: copy_rows[BLOCKS](x, y))
    moved = ray_place.moved[-1]
    assert (y == 1).all()
    assert moved.arrays == x.nbytes + y.nbytes
    assert moved.written == y.nbytes
    assert moved.total == moved.nodes * moved.arrays + moved.written


def test_a_finding_is_that_of_one_process(here: Here, ray_place: Any) -> None:
    """Block 9 loads beyond its array; blocks before it have written, those behind have not."""

    def run() -> tuple[str, bytes]:
        x, y = np.ones((9, 64), np.float32), np.zeros((BLOCKS, 64), np.float32)
        with pytest.raises(pto.PtoError) as caught:
            pto.launch(copy_rows.module(np.ones((BLOCKS, 64), "f4"), y), args=[x, y], blocks=BLOCKS)
        return str(caught.value), y.tobytes()

    alone = here(run)
    with pto.on("ray"):
        apart = run()
    assert apart == alone
    assert np.frombuffer(alone[1], np.float32).sum() == 9 * 64


def test_one_word_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pto.PtoError, match="PTO-U300"), pto.on("spark"):
        pass
    monkeypatch.setattr("pto.cluster.on.find_spec", lambda name: None)
    monkeypatch.setattr("pto.cluster.on._clusters", {})
    with pytest.raises(pto.PtoError, match="PTO-U301") as caught, pto.on("ray"):
        pass
    assert caught.value.diagnostics[0].help == 'pip install "pto-machine[ray]", on every node'
    monkeypatch.setenv("PTO_ON", "ray")
    x, y = np.ones((2, 64), np.float32), np.zeros((2, 64), np.float32)
    with pytest.raises(pto.PtoError, match="PTO-U301"):
        Context().run(copy_rows[2], x, y)
    with pto.on("here"):
        copy_rows[2](x, y)
    assert (y == 1).all()


# ---- those who die


@pto.kernel(profile="a5")
def slow(x: pto.Global[pto.f32], y: pto.Global[pto.f32], turns: int) -> None:
    """Some time for each block."""
    t, u = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
    i = pto.block_idx() * 16
    isa.tload(t, x[i:, :])
    isa.tmuls(u, t, 0.0)
    for _ in pto.range(turns):
        isa.tadd(u, u, t)
    isa.tstore(y[i:, :], u)


TURNS = 800_000  # a range must not end before its node is removed
ROWS = 16 * BLOCKS


def test_a_node_dies_in_the_middle(nodes: Any, ray_place: Any, here: Here) -> None:
    x = np.ones((ROWS, 64), np.float32)
    y = np.zeros_like(x)
    third = nodes.add_node(**_NODE)
    nodes.wait_for_nodes()
    ray_place.pool._seen = 0.0
    assert ray_place.pool.wait_for_workers(3) == 3
    victim = next(h for h in ray_place.pool.ready if h.node == third.node_id)
    seen: list[bool] = []

    def kill() -> None:
        """As soon as it works."""
        while victim.job is None:
            time.sleep(0.01)
        seen.append(victim.job is not None)
        nodes.remove_node(third, allow_graceful=False)

    with pto.on("ray"):
        thread = threading.Thread(target=kill)
        thread.start()
        slow[BLOCKS](x, y, TURNS)
        thread.join()
    assert seen == [True]
    assert victim not in ray_place.pool.workers
    assert (y == TURNS).all()


def test_a_worker_dies_in_the_middle(ray_place: Any, there: There) -> None:
    x = np.ones((ROWS, 64), np.float32)
    y = np.zeros_like(x)
    ray_place.pool.wait_for_workers(2)
    victim = ray_place.pool.ready[0]

    def kill() -> None:
        while victim.job is None:
            time.sleep(0.01)
        os.kill(victim.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    there(lambda: slow[BLOCKS](x, y, TURNS))
    thread.join()
    assert victim not in ray_place.pool.workers
    assert (y == TURNS).all()


DRIVER = """
import signal, sys, threading, time
import numpy as np
import pto
from tests.cluster.test_ray import BLOCKS, ROWS, slow

signal.signal(signal.SIGINT, signal.default_int_handler)
x, y = np.ones((ROWS, 64), np.float32), np.zeros((ROWS, 64), np.float32)
with pto.on("ray") as place:
    from ray._private.worker import print_to_stdstream  # as when a node dies
    print_to_stdstream({"lines": ["a notice"], "pid": "raylet", "is_err": False}, False)
    place.pool.wait_for_workers(2)
    def told():
        while not any(worker.job for worker in place.pool.workers):
            time.sleep(0.01)
        print("pto", *(worker.pid for worker in place.pool.ready), flush=True)
    for _ in range(2):  # interrupted, then killed
        threading.Thread(target=told).start()
        try:
            slow[BLOCKS](x, y, 1 << 30)
        except KeyboardInterrupt:
            print("pto interrupted", time.monotonic(), (y == 0).all(), flush=True)
            place.pool.wait_for_workers(1)
"""


def test_an_interrupted_driver_and_one_that_is_killed_leave_nothing(
    nodes: Any, ray_place: Any
) -> None:
    ray_place.pool.shutdown()  # processors for the other driver
    root = Path(__file__).parents[2]
    env = {"RAY_ADDRESS": nodes.address, "PTO_ENGINE": "jit", "PYTHONPATH": str(root)}
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    try:
        first = [int(word) for word in said(driver)]
        asked = time.monotonic()
        driver.send_signal(signal.SIGINT)
        word, at, unchanged = said(driver)
        second = [int(word) for word in said(driver)]
    finally:
        driver.kill()
        driver.communicate()
    assert (word, unchanged) == ("interrupted", "True")
    assert float(at) - asked < 2.0
    assert first and second
    end = time.monotonic() + 20
    while (left := [pid for pid in {*first, *second} if is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def said(driver: subprocess.Popen[str]) -> list[str]:
    """The next line. Standard output is the program's alone: Ray tells of nodes on another."""
    assert driver.stdout is not None
    first, *rest = (driver.stdout.readline() or "-").split()
    assert first == "pto"
    return rest


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# ---- ranks


def test_ranks_on_two_nodes(ray_place: Any, here: Here) -> None:
    """An all-reduce of 8 ranks, and a ring attention."""
    data = np.random.default_rng(7).standard_normal((8, 1, 64)).astype(np.float32)

    def run() -> list[Any]:
        total = [np.zeros((1, 64), np.float32) for _ in range(8)]
        ring_attention.go_round(pto.World(8, "a5"), ring_attention.all_reduce, data, total)
        return total

    alone = here(run)
    wanted = data[0, 0]
    for row in data[1:, 0]:
        wanted = wanted + row
    ray_place.pool.wait_for_workers(2)
    before = len(ray_place.travelled)
    with pto.on("ray"):
        apart = run()
        attention, _ = ring_attention.example()
    assert len(ray_place.travelled) == before + 2
    assert ray_place.travelled[before].workers == 2
    for one, other in zip(alone, apart, strict=True):
        assert one.tobytes() == other.tobytes() == wanted.tobytes()
    assert attention.tobytes() == here(ring_attention.example)[0].tobytes()


def test_sixty_four_ranks_on_two_nodes(ray_place: Any) -> None:
    """An all-gather, an all-reduce and a ring attention, byte by byte (it raises)."""
    from bench.bench_cluster import worlds

    ray_place.pool.wait_for_workers(2)
    before = len(ray_place.travelled)
    with pto.on("ray"):
        worlds(ray_place, 64)
    found = ray_place.travelled[before:]
    assert [(each.ranks, each.workers) for each in found] == [(64, 2)] * 3


@pto.kernel(profile="a5")
def waits(heard: pto.Global[pto.i32]) -> None:
    isa.comm_twait(heard, 3, "ge")


def test_a_deadlock_of_ranks_on_two_nodes_is_told(ray_place: Any, here: Here) -> None:
    def run() -> str:
        world = pto.World(2, "a5")
        words = world.symmetric((1,), "i32")
        world.launch(waits.module(words[0]), args=[[word] for word in words])
        with pytest.raises(pto.PtoError) as caught:
            world.synchronize()
        return "\n".join(note.message for d in caught.value.diagnostics for note in d.notes)

    alone = here(run)
    ray_place.pool.wait_for_workers(2)
    with pto.on("ray"):
        apart = run()
    assert apart == alone
    assert "rank 1 block 0 waits at 'pto.comm.twait' op for a signal >= 3" in apart


# ---- many small things


def test_cases_of_a_checkout_and_one_that_is_poisoned(ray_place: Any, tmp_path: Path) -> None:
    from pto.core.selection import select
    from pto.gym.cases import find_programs
    from pto.gym.runner import Options, suite
    from pto.suite import pool
    from tests.gym import checkout

    ray_place.pool.wait_for_workers(2)
    programs = find_programs(checkout.make(tmp_path / "gym"), select(""))
    options = Options(launch="tests.gym.checkout:launch_dying")
    with pto.on("ray"):
        results = pool.run(suite(programs, options), 1)
    assert sorted(r.name for r in results) == sorted(checkout.NAMES)
    assert {r.name: r.diagnostics[0].code for r in results if r.status != "passed"} == {
        "tileop/sum/f32_4x8": "PTO-U069"
    }
    assert all(r.node for r in results)


def test_files_are_checked_and_configurations_tried(
    ray_place: Any, here: Here, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from pto.cli.main import main

    good = (Path(__file__).parents[2] / "examples" / "add.pto").read_text()
    (tmp_path / "good.pto").write_text(good)
    (tmp_path / "bad.pto").write_text(good.replace("tadd", "tnothing"))

    def check(*more: str) -> tuple[int, str]:
        return main(["check", str(tmp_path), "--format", "json", *more]), capsys.readouterr().out

    assert check("--on", "ray") == here(check)

    def tune(*more: str) -> tuple[int, str]:
        kernel = f"{Path(__file__).parents[1] / 'lang' / 'test_tune.py'}:scale"
        arrays = ["--arg", "x=rand:512x128", "--arg", "y=zeros:512x128"]
        words = ["tune", kernel, *arrays, "--space", "rows=8,64,256,4096", "--again", "-j", "1"]
        return main([*words, "--format", "lines", *more]), capsys.readouterr().out

    alone = here(tune)
    assert tune("--on", "ray") == alone
    assert [json.loads(line)["config"]["rows"] for line in alone[1].splitlines()] == [
        8,
        64,
        256,
        4096,
    ]
