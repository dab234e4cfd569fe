"""When tasks run on cores; every time is worked out by hand. The page is shown in a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pto.graphs import swimlane
from pto.graphs.model import Graph, Reason, Task
from pto.graphs.timing import Dispatch, GraphTime, schedule
from tests.observe.timing import test_page as pages

COSTS = Dispatch("a test", submit=1, dispatch=2, complete=3, head=0.5, threads=1)
CUBE, VECTOR, BOTH = (0, None, None), (None, 1, None), (0, 1, 1)


def timed(
    tasks: Sequence[tuple[Any, int, float]],
    *edges: tuple[int, int],
    clusters: int = 1,
    costs: Dispatch = COSTS,
    without: Sequence[tuple[int, int]] = (),
) -> GraphTime:
    """Schedule tasks: kernels, blocks and microseconds of a block."""
    graph = Graph()
    for number, (kernels, blocks, _) in enumerate(tasks):
        kind = "task" if kernels else "dummy"
        task = Task(number, kind, kernels or (None, None, None), f"k{number}", blocks)
        graph.tasks.append(task)
    for before, after in edges:
        graph.connect(before, after, Reason.WRITES)
    times = {n: us for n, (kernels, _, us) in enumerate(tasks) if kernels}
    return schedule(graph, times, clusters, costs, without)


def spans(found: GraphTime) -> list[tuple[int, str, float, float]]:
    return [(s.task, s.core, s.begin, s.end) for s in found.slices]


def test_a_chain_waits_for_submission_dispatch_and_completion():
    """1 submitted, 3 dispatched, 3.5 to 13.5 on the core, noticed at 16.5; then the same again."""
    found = timed([(VECTOR, 1, 10), (VECTOR, 1, 10)], (0, 1))
    assert spans(found) == [(0, "vector 0", 3.5, 13.5), (1, "vector 0", 19, 29)]
    assert found.ended == {0: 16.5, 1: 32}
    assert (found.us, found.path) == (32, [0, 1])
    assert found.busy == {"cube": 0, "vector": 20 / 64}


def test_tasks_without_an_edge_run_at_the_same_time_on_two_cores():
    """One scheduler: the second is dispatched from 3 to 5, and noticed after the first."""
    found = timed([(VECTOR, 1, 10), (VECTOR, 1, 10)])
    assert spans(found) == [(0, "vector 0", 3.5, 13.5), (1, "vector 1", 5.5, 15.5)]
    assert found.ended == {0: 16.5, 1: 19.5}


def test_a_core_holds_one_block_more_than_it_runs():
    """The third task has no slot before 13.5; the end of task 0 is noticed first."""
    found = timed([(CUBE, 1, 10)] * 3)
    assert spans(found) == [
        (0, "cube 0", 3.5, 13.5),
        (1, "cube 0", 14, 24),
        (2, "cube 0", 24.5, 34.5),
    ]
    assert (found.us, found.path) == (37.5, [0, 1, 2])


def test_blocks_of_a_task_spread_over_the_cores():
    found = timed([(VECTOR, 4, 10)], clusters=2)
    assert [(core, begin) for _, core, begin, _ in spans(found)] == [
        (f"vector {n}", 3.5) for n in range(4)
    ]
    assert found.us == 16.5


def test_a_mixed_task_takes_a_cube_and_its_vectors():
    found = timed([(VECTOR, 1, 10), (BOTH, 1, 10)], clusters=2)
    assert [core for _, core, _, _ in spans(found)][1:] == ["cube 1", "vector 2", "vector 3"]


def test_a_task_without_a_kernel_ends_when_it_is_ready():
    found = timed([(None, 1, 0), (VECTOR, 1, 10)], (0, 1))
    assert found.ended[0] == 1
    assert spans(found) == [(1, "vector 0", 4.5, 14.5)]


def test_edges_can_be_left_out():
    tasks = [(VECTOR, 1, 10), (VECTOR, 1, 10)]
    assert timed(tasks, (0, 1), without=[(0, 1)]).us == timed(tasks).us == 19.5


def test_more_schedulers_notice_more_at_a_time():
    costs = Dispatch("a test", 1, 2, 3, 0.5, 2)
    found = timed([(VECTOR, 1, 10), (VECTOR, 1, 10)], costs=costs)
    assert found.ended == {0: 16.5, 1: 17.5}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """A chain of two tasks beside a third, as a process answers."""
    tasks = [(VECTOR, 1, 10.0), (VECTOR, 1, 10.0), (CUBE, 1, 1.0)]
    time = timed(tasks, (0, 1))
    return {
        "device": "910b1",
        "us": time.us,
        "busy": time.busy,
        "path": time.path,
        "tasks": [[f"k{n} </script>", "", 7, time.ready[n], time.ended[n]] for n in range(3)],
        "slices": [[s.task, s.block, s.core, s.begin, s.end] for s in time.slices],
        "edges": 1,
        "needless": 1,
        "fewer_us": time.us - 2,
        "kinds": 2,
        "alike": 0,
        "untimed": ["k9"],
        "costs": "a test",
    }


def test_the_summary_names_path_idle_cores_and_edges(found: dict[str, Any]):
    text = "\n".join(swimlane.summary(found))
    assert "32.0 us on 910b1: 3 tasks, 1 edges" in text
    assert "critical path: 2 tasks, 20.0 us on cores, 12.0 us of" in text
    assert "1 edges that no data needs; 2.0 us less without" in text
    assert "not compiled, timed as 0: k9" in text


def test_a_trace_has_a_lane_a_core_and_arrows_along_the_path(found: dict[str, Any]):
    events = swimlane.chrome(found)["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert names == ["cube 0", "vector 0"]
    slices = [(e["args"]["task"], e["ts"], e["dur"], e["cat"]) for e in events if e["ph"] == "X"]
    assert (1, 19, 10, "critical path") in slices
    assert [(e["ph"], e["ts"]) for e in events if e["ph"] in "sf"] == [("s", 13.5), ("f", 19)]


@pytest.fixture(scope="module")
def browser(found: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("lanes")
    file = folder / "lanes.html"
    file.write_text(swimlane.page(found, "scene"), encoding="utf-8")
    yield from pages.opened(file, folder)


@pages.needs_browser
def test_the_page_shows_cores_and_leads_to_the_task_that_was_waited_for(
    browser: Any, found: dict[str, Any]
):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    (lanes,) = browser.execute_script("return timeline.sums(0, DATA.runs[0].end)")
    busy = {f"{lane['agent']} {lane['pipe']}": lane["busy"] for lane in lanes}
    assert busy == pytest.approx({"cube core 0": 1, "vector core 0": 20})
    assert browser.find_element(By.ID, "chosen").text == "click a task"
    shown = browser.find_element(By.TAG_NAME, "body").text
    assert "waits for another core" in shown and "vector core 0" in shown
    for word in ("instruction", "pipe", "visible yet", "longest waits"):
        assert word not in shown.lower()
    hues = browser.execute_script("return DATA.runs[0].ops.map(op => colour('core 0', op.name))")
    near = [min((a - b) % 360, (b - a) % 360) for n, a in enumerate(hues) for b in hues[:n]]
    assert min(near) > 40
    tasks = [each[0] for each in found["slices"]]
    browser.execute_script(f"choose({{run: DATA.runs[0], i: {tasks.index(1)}}}, false)")
    chosen = browser.find_element(By.ID, "chosen").text
    assert "line 7, task 1, block 0" in chosen and "k1 </script>" in chosen
    assert "cost" not in chosen
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ENTER)
    assert pages.state(browser, "chosen.i") == tasks.index(0)
    assert not browser.get_log("browser") if hasattr(browser, "get_log") else True


def test_a_page_needs_nothing_else(found: dict[str, Any]):
    text = swimlane.page(found, "scene")
    assert "http://" not in text and "https://" not in text and "src=" not in text
    assert text.count("<script>") == text.count("</script>") == 2
