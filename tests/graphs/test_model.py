"""Regions, edges, orders and footprints of graphs; answers by brute force or by hand."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.intervals import Intervals, common, length, merged, without
from pto.graphs import scene
from pto.graphs.model import Graph, GraphBuffer, HostUse, Reason, Task, TaskArg, TensorBox, Use
from pto.graphs.schedule import TaskSchedule
from pto.graphs.tensormap import TensorMap

REGIONS = [
    TensorBox(0, start, extents, strides, 4)
    for start, (extents, strides) in product(
        (0, 3, 8, 13),
        [
            ((3, 4), (8, 1)),
            ((2, 2), (8, 1)),
            ((4, 1), (8, 1)),
            ((5,), (1,)),
            ((3,), (2,)),
            ((2, 3), (12, 1)),
            ((0, 4), (8, 1)),
            ((2, 2, 2), (16, 4, 1)),
        ],
    )
]


def elements(region: TensorBox) -> set[int]:
    ranges = [range(0, n * s, s) for n, s in zip(region.extents, region.strides, strict=True)]
    return {region.start + sum(offsets) for offsets in product(*ranges)}


def fits(region: TensorBox) -> bool:
    """A box whose rows do not wrap around."""
    return region.start % 8 + region.extents[-1] <= 8


def test_overlap_never_misses_a_shared_element_and_is_exact_for_boxes_of_one_array():
    exact = 0
    for a, b in product(REGIONS, REGIONS):
        shared = bool(elements(a) & elements(b))
        assert a.overlaps(b) or not shared, (a, b)
        if a.strides == b.strides == (8, 1) and fits(a) and fits(b):
            assert a.overlaps(b) == shared
            exact += not shared
    assert exact > 20


def test_covers_means_that_every_element_is_inside():
    found = [(a, b) for a, b in product(REGIONS, REGIONS) if a.covers(b)]
    assert len(found) > len(REGIONS) // 2
    for a, b in found:
        assert elements(b) <= elements(a) or b.is_empty


def graph_of(*uses: tuple[Use, TensorBox]) -> Graph:
    """One task for each use, on one buffer of the caller."""
    graph = Graph(buffers={0: GraphBuffer(0, 0x1000, 4096)})
    edges = TensorMap(graph)
    for number, (use, region) in enumerate(uses):
        task = Task(
            number, "task", (None, 0, None), f"k{number}", arguments=(TaskArg(region, use),)
        )
        graph.tasks.append(task)
        edges.submit(task)
    return graph


WHOLE = TensorBox(0, 0, (4, 8), (8, 1), 4)
TOP, BOTTOM = TensorBox(0, 0, (2, 8), (8, 1), 4), TensorBox(0, 16, (2, 8), (8, 1), 4)


@pytest.mark.parametrize(
    ("uses", "edges"),
    [
        ([(Use.INOUT, WHOLE), (Use.IN, WHOLE)], {(0, 1)}),
        ([(Use.IN, WHOLE), (Use.INOUT, WHOLE)], set()),  # readers are not remembered
        ([(Use.INOUT, TOP), (Use.IN, BOTTOM)], set()),
        ([(Use.INOUT, TOP), (Use.INOUT, BOTTOM), (Use.IN, WHOLE)], {(0, 2), (1, 2)}),
        ([(Use.INOUT, TOP), (Use.INOUT, WHOLE), (Use.IN, WHOLE)], {(0, 1), (1, 2)}),
        ([(Use.OVERWRITE, TOP), (Use.OVERWRITE, TOP), (Use.IN, TOP)], {(0, 2), (1, 2)}),
        ([(Use.INOUT, WHOLE), (Use.UNTRACKED, WHOLE)], set()),
    ],
)
def test_edges_that_a_tensor_map_derives(
    uses: list[tuple[Use, TensorBox]], edges: set[tuple[int, int]]
):
    assert set(graph_of(*uses).edges) == edges


def diamond() -> Graph:
    graph = graph_of(*[(Use.IN, WHOLE)] * 4)
    for before, after in ((0, 1), (0, 2), (1, 3), (2, 3)):
        graph.connect(before, after, Reason.EXPLICIT)
    return graph


class _Nowhere:
    loc = None
    callers = ()


def test_a_task_comes_after_tasks_that_the_orchestration_waited_for():
    """It waits for task 1, and with it for task 0, before it submits task 3. Task 4 does not wait
    for task 2, on which task 3 alone depends."""
    graph = graph_of(*[(Use.IN, WHOLE)] * 5)
    graph.connect(0, 1, Reason.EXPLICIT)
    graph.connect(2, 3, Reason.EXPLICIT)
    graph.accesses.append(HostUse(0, (0, 4), False, 3, [1], _Nowhere()))
    assert graph.ancestors() == [0, 0b1, 0, 0b111, 0b11]


def test_a_schedule_keeps_every_edge_and_reaches_every_legal_order():
    orders: set[tuple[int, ...]] = set()
    for seed in range(20):
        done: list[int] = []
        TaskSchedule(diamond(), done.append, seed).run()
        orders.add(tuple(done))
    assert orders == {(0, 1, 2, 3), (0, 2, 1, 3)}


def test_a_schedule_runs_only_what_a_task_needs_and_goes_on_later():
    done: list[int] = []
    graph = diamond()
    schedule = TaskSchedule(graph, done.append)
    schedule.run([2])
    assert done == [0, 2]
    graph.tasks.append(Task(4, "task", (None, 0, None), "late"))
    graph.connect(3, 4, Reason.EXPLICIT)
    schedule.run()
    assert done == [0, 2, 1, 3, 4]
    schedule.require_end()


def as_set(found: Intervals) -> set[int]:
    return {b for s, e in found.tolist() for b in range(s, e)}


def test_intervals_behave_as_sets():
    rng = np.random.default_rng(0)
    for _ in range(200):
        sets: list[Intervals] = []
        for _ in range(2):
            starts = rng.integers(0, 60, rng.integers(1, 6))
            ends = starts + rng.integers(1, 9, len(starts))
            sets.append(merged([np.stack([starts, ends], axis=1)]))
        a, b = sets
        assert as_set(common(a, b)) == as_set(a) & as_set(b)
        assert as_set(without(a, b)) == as_set(a) - as_set(b)
        assert length(a) == len(as_set(a))


def test_scalars_become_the_words_that_kernels_receive():
    import ctypes

    bits = scene.scalar_to_uint64
    assert bits(-1) == (1 << 64) - 1
    assert bits(ctypes.c_float(1.0)) == 0x3F800000
    assert bits(1.0) == 0x3F800000
    assert bits(ctypes.c_double(1.0)) == 0x3FF0000000000000
    assert bits(ctypes.c_int32(7)) == 7


def test_a_scene_outside_of_a_checkout_is_a_finding(tmp_path: Path):
    file = tmp_path / "test_it.py"
    file.write_text("CALLABLE = 1\n")
    with pytest.raises(PtoError) as error:
        list(scene.find(file))
    assert error.value.code == "PTO-U321"


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        ("import no_such_module_of_mine", "no_such_module_of_mine", "PTO-U322"),
        ("1 / 0", "division by zero", "PTO-U281"),
    ],
)
def test_a_scene_that_cannot_be_imported_is_a_finding(
    tmp_path: Path, text: str, words: str, code: str
):
    (tmp_path / "src" / "common" / "task_interface").mkdir(parents=True)
    file = tmp_path / "test_it.py"
    file.write_text(f"CALLABLE = 1\n{text}\n")
    with pytest.raises(PtoError) as error:
        list(scene.find(file))
    assert error.value.code == code
    assert words in str(error.value)


def test_a_graph_that_waits_for_ever_is_a_finding():
    graph = diamond()
    graph.connect(3, 0, Reason.EXPLICIT)
    schedule = TaskSchedule(graph, lambda number: None)
    schedule.run()
    with pytest.raises(PtoError) as error:
        schedule.require_end()
    assert error.value.code == "PTO-G005"
    assert "task 0 (k0) waits for task 3 (k3)" in str(error.value)
