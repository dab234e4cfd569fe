"""Findings that declarations and the limits of a runtime decide; graphs and answers by hand."""

from collections.abc import Sequence

import pytest

from pto.core.errors import PtoError
from pto.graphs import dry
from pto.graphs.limits import RUNTIMES, RuntimeLimits, limits_of, usage
from pto.graphs.model import Graph, GraphBuffer, GraphScope, Reason, Task, TaskArg, TensorBox, Use
from pto.graphs.tensormap import TensorMap

SMALL = RuntimeLimits("a test", (8, 4), (8192, 4096), 100, True)


class Builder:
    """Builds a graph as an orchestration would."""

    def __init__(self) -> None:
        self.graph = Graph(scopes=[GraphScope(0, None, False)])
        self._open = [0]
        self._edges = TensorMap(self.graph)

    def buffer(self, use: Use | None = None, nbytes: int = 1024) -> TensorBox:
        """A buffer of the caller."""
        number = len(self.graph.buffers)
        self.graph.buffers[number] = GraphBuffer(
            number, number << 20, nbytes, f"b{number}", use=use
        )
        return TensorBox(number, 0, (nbytes,), (1,), 1)

    def task(
        self, *arguments: tuple[Use, TensorBox], created: Sequence[int] = (), kind: str = "task"
    ) -> list[TensorBox]:
        """Submit a task that also creates buffers of some sizes; returns these."""
        number = len(self.graph.tasks)
        made: list[TensorBox] = []
        for nbytes in created:
            made.append(self.buffer(nbytes=nbytes))
            own = self.graph.buffers[made[-1].buffer]
            own.creator, own.initial, own.scope = number, False, self._open[-1]
        listed = [TaskArg(region, use) for use, region in arguments]
        listed += [TaskArg(region, Use.OUT) for region in made]
        scope = self._open[-1]
        task = Task(number, "task", (None, 0, None), f"k{number}", arguments=listed, scope=scope)
        task.kind = kind  # type: ignore[assignment]
        task.is_manual = self.graph.scopes[scope].is_manual
        self.graph.tasks.append(task)
        self._edges.submit(task)
        return made

    def begin(self, is_manual: bool = False) -> None:
        scopes = self.graph.scopes
        scopes.append(GraphScope(len(scopes), self._open[-1], is_manual))
        self._open.append(len(scopes) - 1)

    def end(self) -> None:
        self.graph.scopes[self._open.pop()].end = len(self.graph.tasks)


def codes(graph: Graph, limits: RuntimeLimits = SMALL) -> list[str]:
    return [d.code for d in dry.report(graph, limits).findings]


@pytest.mark.parametrize(("tasks", "expected"), [(7, []), (8, ["PTO-G006"])])
def test_one_slot_of_a_ring_stays_free(tasks: int, expected: list[str]):
    build = Builder()
    for _ in range(tasks):
        build.task()
    assert codes(build.graph) == expected


def test_a_scope_inside_a_loop_gives_slots_back_and_one_around_it_does_not():
    inside, around = Builder(), Builder()
    for _ in range(20):
        inside.begin()
        inside.task()
        inside.end()
    around.begin()
    for _ in range(20):
        around.task()
    around.end()
    assert codes(inside.graph) == []
    assert codes(around.graph) == ["PTO-G006"]
    (finding,) = usage(around.graph, SMALL).findings
    assert "task 3 (k3) needs 4 task slots of ring 1, and the runtime has 3" in finding.message


def test_slots_are_given_back_in_order():
    """The first task of ring 0 belongs to the outermost scope: it holds its slot to the end."""
    build = Builder()
    for _ in range(4):
        build.task()
        build.begin()
        build.task()
        build.end()
    assert codes(build.graph) == []
    assert usage(build.graph, SMALL).slots == 4


@pytest.mark.parametrize(("nbytes", "expected"), [(1024, []), (1025, ["PTO-G006"])])
def test_created_buffers_take_multiples_of_1024_bytes_of_the_heap(nbytes: int, expected: list[str]):
    build = Builder()
    build.begin()
    build.task(created=[nbytes, 1])
    build.task(created=[nbytes, 1])
    assert codes(build.graph) == expected


def test_a_runtime_that_builds_the_whole_graph_first_gives_nothing_back():
    build = Builder()
    for _ in range(20):
        build.begin()
        build.task()
        build.end()
    limits = RuntimeLimits("a test", (16,), (1 << 20,), 100, False)
    (finding,) = usage(build.graph, limits).findings
    assert "needs 16 task slots of ring 0, and the runtime has 15" in finding.message


def test_entries_of_the_tensor_map_and_edges_into_one_task_are_limited():
    build = Builder()
    whole = build.buffer()
    for n in range(5):
        row = TensorBox(whole.buffer, 10 * n, (10,), (1,), 1)
        build.task((Use.INOUT, row))
    build.task((Use.IN, whole))
    assert codes(build.graph) == []
    tight = RuntimeLimits("a test", (64,), (1 << 20,), 4, False, 4)
    messages = [d.message for d in usage(build.graph, tight).findings]
    assert "needs 5 entries of the tensor map, and the runtime has 4" in messages[0]
    assert "task 5 (k5) needs 5 edges into one task, and the runtime has 4" in messages[1]


def test_a_case_sets_the_sizes_of_all_rings_or_of_each():
    known = RUNTIMES["tensormap_and_ringbuffer"]
    assert limits_of("tensormap_and_ringbuffer", {"ring_task_window": 32}).window == (32,) * 4
    each = limits_of("tensormap_and_ringbuffer", {"ring_heap": [0, 1024, 0, 2048]})
    assert each.heap == (known.heap[0], 1024, known.heap[2], 2048)
    with pytest.raises(PtoError) as error:
        limits_of("another", {})
    assert error.value.code == "PTO-U321"


@pytest.mark.parametrize(
    ("inside", "severity"), [(1, "warning"), (5, "error")], ids=["no reuse", "the ring goes round"]
)
def test_a_tensor_used_after_its_scope_is_an_error_once_memory_is_reused(
    inside: int, severity: str
):
    build = Builder()
    build.begin()
    (kept,) = build.task(created=[1000])
    build.end()
    for _ in range(inside - 1):
        build.begin()
        build.task(created=[1000])
        build.end()
    build.task((Use.IN, kept))
    (finding,) = dry.report(build.graph, SMALL).findings
    assert (finding.code, finding.severity) == ("PTO-G104", severity)
    assert f"after 4,096 bytes, and the graph creates {inside * 1024:,}" in finding.message


def test_an_input_that_no_task_before_declares_to_write():
    build = Builder()
    (made,) = build.task(created=[1024], kind="allocation")
    build.task((Use.IN, made))
    build.task((Use.INOUT, made))
    (finding,) = dry.report(build.graph, SMALL).findings
    assert finding.code == "PTO-G102"
    assert finding.help == "make task 1 (k1) depend on task 2 (k2)"
    right = Builder()
    (made,) = right.task(created=[1024], kind="allocation")
    right.task((Use.INOUT, made))
    right.task((Use.IN, made))
    assert codes(right.graph) == []


def test_a_part_that_only_another_part_was_written_of():
    build = Builder()
    (made,) = build.task(created=[1024], kind="allocation")
    build.task((Use.INOUT, TensorBox(made.buffer, 0, (512,), (1,), 1)))
    build.task((Use.IN, TensorBox(made.buffer, 512, (512,), (1,), 1)))
    assert codes(build.graph) == ["PTO-G102"]


def test_in_a_manual_scope_a_wrong_direction_is_a_warning():
    build = Builder()
    (made,) = build.task(created=[1024], kind="allocation")
    build.begin(is_manual=True)
    build.task((Use.IN, made))
    (finding,) = dry.report(build.graph, SMALL).findings
    assert (finding.code, finding.severity) == ("PTO-G102", "warning")


def test_an_output_of_the_graph_that_no_task_declares_to_write():
    build = Builder()
    given, out = build.buffer(Use.IN), build.buffer(Use.OUT)
    build.task((Use.IN, given), (Use.IN, out))
    (finding,) = dry.report(build.graph, SMALL).findings
    assert finding.code == "PTO-G103"
    build.task((Use.OVERWRITE, out))
    assert codes(build.graph) == []


def test_an_input_of_the_graph_that_a_task_overwrites():
    build = Builder()
    build.task((Use.OVERWRITE, build.buffer(Use.IN)))
    assert codes(build.graph) == ["PTO-G105"]


def test_conflicts_that_only_values_decide_are_counted_and_not_reported():
    """Two overwrites of one tensor and a later reader of it: two pairs of tasks without an edge."""
    build = Builder()
    out = build.buffer(Use.OUT)
    build.task((Use.OVERWRITE, out))
    build.task((Use.OVERWRITE, out))
    build.task((Use.UNTRACKED, out))
    found = dry.report(build.graph, SMALL)
    assert found.findings == []
    assert found.undecided == 3
    build.graph.connect(0, 1, Reason.EXPLICIT)
    build.graph.connect(1, 2, Reason.EXPLICIT)
    assert dry.report(build.graph, SMALL).undecided == 0


def test_disjoint_parts_of_one_tensor_do_not_conflict():
    build = Builder()
    out = build.buffer(Use.OUT)
    for start in (0, 512):
        build.task((Use.OVERWRITE, TensorBox(out.buffer, start, (512,), (1,), 1)))
    assert dry.report(build.graph, SMALL).undecided == 0
