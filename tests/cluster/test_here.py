"""Parts, ranks and tasks with workers of this process: no Ray is needed for what they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pto
from examples import all_reduce, ring_attention
from pto import isa
from pto.cluster import blocks, ranks, tasks
from pto.cluster.windows import differing
from pto.cluster.worker_pool import LostWorker
from pto.core import intervals
from pto.run.launch.engine import selected_cluster
from pto.suite.result import Result
from tests.cluster.local_pool import Here

SIZE = 60


class Near:
    """A place whose pool is here."""

    def __init__(self, pool: Here) -> None:
        self.pool = pool
        self.moved: list[Any] = []

    def run(self, grid: Any) -> bool:
        self.moved.append(blocks.run(self.pool, grid))  # type: ignore[arg-type]
        return self.moved[-1] is not None

    def run_world(self, world: Any) -> bool:
        self.moved.append(ranks.run(self.pool, world))  # type: ignore[arg-type]
        return self.moved[-1] is not None


@contextmanager
def near(size: int = 2, loses: Callable[[int], bool] = lambda number: False) -> Iterator[Near]:
    found = Near(Here(size, loses))
    token = selected_cluster.set(found)
    try:
        yield found
    finally:
        selected_cluster.reset(token)


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_ENGINE", "jit")


# ---- stretches of bytes, against sets of numbers

pieces = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(sorted), max_size=6)


def made(found: list[list[int]]) -> Any:
    return np.array(found, np.int64).reshape(-1, 2)


def inside(found: Any) -> set[int]:
    return {n for low, high in found.tolist() for n in range(low, high)}


@given(pieces, pieces)
def test_stretches_are_sets_of_bytes(a: list[list[int]], b: list[list[int]]) -> None:
    one, other = intervals.merged([made(a)]), intervals.merged([made(b)])
    assert inside(one) == inside(made(a))
    assert all(high < low for (_, high), (low, _) in pairwise(one))
    assert intervals.meet(one, other) == bool(inside(one) & inside(other))
    assert intervals.length(one) == len(inside(one))
    assert inside(intervals.within(one, 20, 40) + 20) == inside(one) & set(range(20, 40))


@given(pieces)
def test_what_is_gathered_is_scattered_back(a: list[list[int]]) -> None:
    where, data = intervals.merged([made(a)]), np.arange(SIZE, dtype=np.uint8)
    out = np.full(SIZE, 255, np.uint8)
    intervals.scatter(out, where, intervals.gather(data, where))
    assert {n for n in range(SIZE) if out[n] == n} == inside(where)


@given(st.lists(st.integers(0, 9998), max_size=8))
def test_words_that_differ_are_found(places: list[int]) -> None:
    before = np.zeros(9999, np.uint8)
    after = before.copy()
    after[places] = 1
    words = {n for place in places for n in range(place // 4 * 4, min(place // 4 * 4 + 4, 9999))}
    assert inside(differing(before, after)) == words


def test_ranges_are_contiguous_and_alike() -> None:
    for count, workers in ((1, 4), (7, 2), (1000, 64)):
        found = blocks.ranges(count, workers)
        assert [n for low, high in found for n in range(low, high)] == list(range(count))
        assert max(b - a for a, b in found) - min(b - a for a, b in found) <= 1


# ---- blocks


@pto.kernel(profile="a5")
def double(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(1, 64, pto.f32)
    i = pto.block_idx()
    isa.tload(t, x[i : i + 1, :])
    isa.tadd(t, t, t)
    isa.tstore(y[i : i + 1, :], t)


def test_a_part_whose_worker_is_lost_is_run_by_another() -> None:
    x, y = np.ones((40, 64), np.float32), np.zeros((40, 64), np.float32)
    with near(2, loses=lambda number: number in (1, 2)) as found:
        double[40](x, y)
    assert (y == 2).all()
    assert (found.moved[0].parts, found.moved[0].again) == (6, 0)


def test_a_part_that_no_worker_survives_is_run_here() -> None:
    x, y = np.ones((40, 64), np.float32), np.zeros((40, 64), np.float32)
    with near(2, loses=lambda number: True) as found:
        double[40](x, y)
    assert (y == 2).all()
    assert found.moved[0].again == 6


@pto.kernel(profile="a5")
def meets(x: pto.Global[pto.f32]) -> None:
    isa.syncall()
    t = pto.tile(1, 64, pto.f32)
    isa.tload(t, x)
    isa.tstore(x, t)


@pto.kernel(profile="a5")
def one_block(x: pto.Global[pto.f32]) -> None:
    t = pto.tile(1, 64, pto.f32)
    isa.tload(t, x)
    isa.tstore(x, t)


@pytest.mark.parametrize(("kernel", "count"), [(meets, 4), (one_block, 1)], ids=("meet", "one"))
def test_blocks_that_need_each_other_stay_together(kernel: Any, count: int) -> None:
    with near() as found:
        kernel[count](np.ones((1, 64), np.float32))
    assert not any(found.moved)


# ---- ranks


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_ranks_shared_out_among_workers(workers: int) -> None:
    alone, _ = all_reduce.example()
    with near(workers) as found:
        apart, _ = all_reduce.example()
    assert apart.tobytes() == alone.tobytes()
    assert found.moved[0].workers == workers


def test_a_world_begins_again_where_a_worker_dies() -> None:
    alone, _ = all_reduce.example()
    with near(2, loses=lambda number: number == 2) as found:
        apart, _ = all_reduce.example()
    assert apart.tobytes() == alone.tobytes()
    assert found.moved[0] is not None


def test_sixty_four_ranks_gather_and_reduce() -> None:
    data = np.random.default_rng(6).standard_normal((64, 1, 64)).astype(np.float32)
    wanted = data[0, 0]
    for row in data[1:, 0]:
        wanted = wanted + row
    total = [np.zeros((1, 64), np.float32) for _ in range(64)]
    with near(4) as found:
        slots = ring_attention.go_round(pto.World(64, "a5"), ring_attention.all_reduce, data, total)
    assert found.moved[0].ranks == 64
    assert all(slot.tobytes() == data.tobytes() for slot in slots)
    assert {t.tobytes() for t in total} == {wanted.tobytes()}


@pto.kernel(profile="a5")
def last_rank(value: pto.Scalar[pto.f32], word: pto.Global[pto.f32]) -> None:
    t = pto.tile(1, 64, pto.f32)
    isa.texpands(t, value)
    isa.tstore(word, t)


def test_ranks_that_write_one_place_run_in_one_process() -> None:
    """Nothing orders them, so order shows: it is that of one process."""
    with near(2) as found:
        world = pto.World(4, "a5")
        word = world.symmetric((1, 64), "f32")[0]
        args = [[float(n), word] for n in range(4)]
        world.launch(last_rank.module(*args[0]), args=args)
        world.synchronize()
    assert not any(found.moved)
    assert (word == 3).all()


# ---- tasks


def test_a_task_that_ends_its_worker_twice_is_told() -> None:
    pool = Here(1, loses=lambda number: number in (1, 2))
    pool.ray = SimpleNamespace(put=lambda value: value)  # type: ignore[attr-defined]
    found: Any = pool
    items = [("a.pto", "func.func @f() {\n  return\n}"), ("b.pto", "func.func @g(")]
    options = {"profile": None, "device": None, "manual": False, "edition": "current"}
    args = SimpleNamespace(**options, level=3, deep=False)
    answers = {n: r for n, r, _ in tasks.each(found, "pto.cli.check:checked", items, args)}
    assert answers[0][1] == []
    assert isinstance(answers[1], LostWorker)
    pool.given = 1
    with pytest.raises(pto.PtoError, match=r"PTO-U306.*item 0 of 1"):
        list(tasks.in_order(found, "pto.cli.check:checked", items[:1], args))


def test_cases_that_ran_again_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (Result(name, "tadd", "tadd", "passed") for name in ("one", "two"))
    lost = LostWorker("died")
    answers = [(0, one, "n1"), (0, one, "n2"), (1, one, "n2"), (0, two, "n2"), (2, lost, "n1")]
    monkeypatch.setattr(tasks, "pool", lambda: Here(1))
    monkeypatch.setattr(tasks, "each", lambda *args, **options: (answer for answer in answers))
    found = tasks.cases(
        "f", ["a", "b", "c"], None, lambda item, why: Result(why, item, item, "failed")
    )
    assert [(n, r.case, r.name, r.node) for n, r in found or ()] == [
        (0, "tadd", "one", "n1"),
        (1, "tadd", "one", "n2"),
        (0, "tadd", "two", "n2"),
        (2, "c", "its worker died", "n1"),
    ]
