"""A real cluster of two nodes on this machine: the same bits as one process, whoever dies.

One file, so that one process has the cluster; starting it takes as long as all tests together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import pto
from examples import flash_attention, gemm_f16, softmax
from tests import agreement

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason='Ray is not installed: pip install "pto-machine[ray]"'
)
_NODE = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Two nodes of one processor each."""
    import ray
    from ray.cluster_utils import Cluster

    agreement.STATE.here = False
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
            assert place.crew.muster(2) == 2
            yield place


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Runs something in this process alone."""
    monkeypatch.setenv("PTO_ENGINE", "jit")

    def run(work: Callable[[], Any]) -> Any:
        from pto.run.launch import place

        token = place.chosen.set(None)
        try:
            return work()
        finally:
            place.chosen.reset(token)

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
    pto.tload(t, x[pto.block_idx() : pto.block_idx() + 1, :])
    pto.tstore(bins, t, atomicType="atomic_add")


@pto.kernel(profile="a5")
def float_sum(x: pto.Global[pto.f32], total: pto.Global[pto.f32]) -> None:
    """Order shows in the bits: (total + x0) + x1 is not total + (x0 + x1)."""
    t = pto.tile(1, 64, pto.f32)
    pto.tload(t, x[pto.block_idx() : pto.block_idx() + 1, :])
    pto.tstore(total, t, atomicType="atomic_add")


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
    pto.tload(t, x[i : i + 1, :])
    pto.tadd(t, t, t)
    pto.tstore(x[i + 1 :, :], t)


def test_blocks_that_meet_run_again_in_their_order(there: There, ray_place: Any) -> None:
    x = np.zeros((BLOCKS + 1, 64), np.float32)
    x[0] = np.arange(64)
    there(lambda: chain[BLOCKS](x))
    assert (x == np.arange(64) * 2.0 ** np.arange(BLOCKS + 1)[:, None]).all()
    assert ray_place.moved[-1].again > 0


@pto.kernel(profile="a5")
def last_wins(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(1, 64, pto.f32)
    pto.tload(t, x[pto.block_idx() : pto.block_idx() + 1, :])
    pto.tstore(y, t)


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
    pto.tload(t, x[i : i + 1, :])
    pto.tstore(y[i : i + 1, :], t)


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
