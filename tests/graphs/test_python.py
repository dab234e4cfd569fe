"""Graphs of Python kernels: edges by hand, values by NumPy, races with right twins."""

import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.cluster import tasks
from pto.core.errors import PtoError

from ..cluster.local_pool import Here

F = pto.Global[pto.f32]
ROWS, COLS = 8, 64


@pto.kernel(profile="a5")
def add_one(x: F, y: F):
    pto.store(y, pto.load(x, 8, 64) + 1.0)


@pto.kernel(profile="a5")
def add(x: F, y: F, z: F):
    pto.store(z, pto.load(x, 8, 64) + pto.load(y, 8, 64))


@pto.kernel(profile="a5")
def accumulate(x: F, y: F):
    pto.store(y, pto.load(x, 8, 64), atomic="add")


def arrays(count: int) -> list[np.ndarray]:
    return [np.full((8, 64), n, np.float32) for n in range(count)]


def new() -> np.ndarray:
    return np.zeros((ROWS, COLS), np.float32)


def pairs(graph: pto.TaskGraph) -> set[tuple[int, int]]:
    return {(e.before, e.after) for e in graph.edges}


def test_edges_are_derived_from_the_arrays_and_values_are_those_of_numpy():
    a, b, c, d = arrays(4)
    g = pto.graph()
    g.submit(add_one, a, b)  # b = 1
    g.submit(add_one, a, c)  # c = 1
    g.submit(add, b, c, d)  # d = 2
    g.submit(add_one, d, b)  # b = 3: behind the reader of b too
    assert pairs(g) == {(0, 2), (1, 2), (2, 3), (0, 3)}
    report = g.run()
    assert (report.tasks, report.edges, report.order) == (4, 4, (0, 1, 2, 3))
    for array, value in ((a, 0), (b, 3), (c, 1), (d, 2)):
        np.testing.assert_array_equal(array, np.full((8, 64), value))
    assert not g.check()


def test_every_order_gives_the_same_bytes():
    orders: set[tuple[int, ...]] = set()
    for seed in range(12):
        a, b, c, d = arrays(4)
        g = pto.graph()
        g.submit(add_one, a, b)
        g.submit(add_one, a, c)
        g.submit(add, b, c, d)
        orders.add(g.run(seed).order)
        np.testing.assert_array_equal(d, np.full((8, 64), 2))
    assert orders == {(0, 1, 2), (1, 0, 2)}


def test_parts_of_one_array_are_ordered_only_where_they_overlap():
    whole = np.zeros((32, 64), np.float32)
    a = np.zeros((8, 64), np.float32)
    g = pto.graph()
    g.submit(add_one, a, whole[:8])
    g.submit(add_one, a, whole[8:16])
    g.submit(add_one, whole[4:12], whole[16:24])
    assert pairs(g) == {(0, 2), (1, 2)}
    g.run()
    np.testing.assert_array_equal(whole[16:24], np.full((8, 64), 2))
    assert not g.check()


@pytest.mark.parametrize(
    ("named", "codes"), [(False, ["PTO-G101"]), (True, [])], ids=["forgotten", "named"]
)
@pytest.mark.parametrize("kind", ["read-after-write", "write-after-read", "write-after-write"])
def test_a_forgotten_edge_is_a_race_and_the_named_one_is_not(
    kind: str, named: bool, codes: list[str]
):
    a, b, c, d = arrays(4)
    calls = {
        "read-after-write": [(add_one, a, b), (add_one, b, c)],
        "write-after-read": [(add_one, b, c), (add_one, a, b)],
        "write-after-write": [(add_one, a, b), (add_one, d, b)],
    }[kind]
    g = pto.graph("explicit")
    first = g.submit(*calls[0])
    g.submit(*calls[1], after=[first] if named else [])
    found = g.check()
    assert [d.code for d in found] == codes
    if not named:
        assert kind in found[0].message
        assert found[0].loc is not None and Path(found[0].loc.file) == Path(__file__)
        assert "tried: ordered" in (found[0].help or "")


def test_atomic_updates_may_meet_but_not_a_store():
    a, b, c, _ = arrays(4)
    g = pto.graph("explicit")
    g.submit(accumulate, a, b)
    g.submit(accumulate, c, b)
    assert not g.check()
    g.submit(add_one, a, b)  # with both
    assert [d.code for d in g.check()] == ["PTO-G101"] * 2


def test_a_check_leaves_the_arrays_alone():
    a, b = arrays(2)
    g = pto.graph()
    g.submit(add_one, a, b)
    g.check()
    np.testing.assert_array_equal(b, np.full((8, 64), 1))
    g.run()
    np.testing.assert_array_equal(b, np.full((8, 64), 1 + a[0, 0]))


def test_mistakes():
    with pytest.raises(pto.PtoError) as caught:
        pto.graph("none")  # type: ignore[arg-type]
    assert caught.value.code == "PTO-U324"
    a, b = arrays(2)
    task = pto.graph().submit(add_one, a, b)
    with pytest.raises(pto.PtoError) as caught:
        pto.graph().submit(add_one, a, b, after=[task])
    assert caught.value.code == "PTO-U325"
    assert "test_python.py" in str(caught.value)


FILE = """
import numpy as np
import pto

F = pto.Global[pto.f32]

@pto.kernel(profile="a2a3")
def double(x: F, y: F):
    pto.store(y, pto.load(x, 8, 64) * 2.0)

@pto.kernel(profile="a2a3")
def add(x: F, y: F, z: F):
    pto.store(z, pto.load(x, 8, 64) + pto.load(y, 8, 64))

def branches(edges, expected):
    a, b, c, d = (np.full((8, 64), n, np.float32) for n in (1, 0, 0, 0))
    g = pto.graph(edges)
    left = g.submit(double, a, b)   # 2
    g.submit(double, b, c)          # 4
    g.submit(add, b, c, d)          # 6
    g.expect(d, np.full((8, 64), expected))
    return g
"""
RIGHT = "right = branches('derived', 6.0)\n"
WRONG = "wrong = branches('derived', 5.0)\n"
UNORDERED = "unordered = branches('explicit', 6.0)\n"
GOLDEN = """
def double(x, y):
    y[...] = {} * x

def add(x, y, z):
    z[...] = x + y
"""


def graphs(tmp_path: Path, *variables: str) -> str:
    file = tmp_path / "net.py"
    file.write_text(FILE + "".join(variables))
    return str(file)


def test_every_graph_of_a_file_is_run_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = graphs(tmp_path, RIGHT, WRONG)
    assert main(["graph", "run", file, "--orders", "3"]) == 1
    out = capsys.readouterr().out
    assert "FAILED (wrong) net/wrong" in out and "512 of 512 elements differ, by up to 1" in out
    (row,) = [line for line in out.splitlines() if line.startswith("net/right")]
    assert row.split()[1:3] == ["1", "."] and "3 tasks, 3 edges" in row
    assert main(["graph", "run", file, "-k", "right"]) == 0


def test_a_cluster_runs_the_graphs_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Two workers; both attempts at the last graph lose theirs."""
    pool = Here(2, loses=lambda number: number in (2, 3))
    pool.ray = SimpleNamespace(put=lambda value: pickle.loads(pickle.dumps(value)))  # type: ignore[attr-defined]
    alone = SimpleNamespace(run=lambda grid: False, run_world=lambda world: False)
    for module in ("pto.suite.pool", "pto.cluster.tasks"):
        monkeypatch.setattr(f"{module}.cluster_target", lambda: alone)
    monkeypatch.setattr(tasks, "pool", lambda: pool)
    file = graphs(tmp_path, RIGHT, WRONG, RIGHT.replace("right", "lost"))
    assert main(["graph", "run", file]) == 1
    out = capsys.readouterr().out
    assert "1 passed, 2 failed of 3 cases" in out and "FAILED (wrong) net/wrong" in out
    assert "FAILED (crashed) net/lost" in out and "its worker died" in out
    assert pool.given == 4


def test_an_order_that_changes_the_bytes_and_its_missing_edges_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = graphs(tmp_path, UNORDERED)
    assert main(["graph", "run", file, "--orders", "5"]) == 1
    assert "FAILED (differs) net/unordered" in capsys.readouterr().out
    assert main(["graph", "check", file]) == 1
    out = capsys.readouterr().out
    assert "no edge orders task 0 (double) and task 1 (double)" in out
    assert "left = g.submit(double, a, b)" in out and "g.submit(double, b, c)" in out
    assert "make task 1 (double) depend on task 0 (double) (tried: ordered)" in out


def test_a_graph_of_a_file_is_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["graph", "time", graphs(tmp_path, RIGHT), "--edges"]) == 0
    out = capsys.readouterr().out
    assert "3 tasks, 3 edges" in out and "critical path: 3 tasks" in out
    assert "0 edges that no data needs" in out and "2 kinds of tasks timed" in out


def test_tasks_are_compared_with_functions_in_f64(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """A golden that doubles by 2.5 differs first in task 0: 2 where it says 2.5."""
    file, golden = graphs(tmp_path, RIGHT), tmp_path / "golden.py"
    golden.write_text(GOLDEN.format("2.0"))
    assert main(["graph", "diff", file, "--golden", str(golden)]) == 0
    assert "3 tasks, all within" in capsys.readouterr().out
    golden.write_text(GOLDEN.format("2.5"))
    assert main(["graph", "diff", file, "--golden", str(golden)]) == 1
    out = capsys.readouterr().out
    assert "task 0 (double) is the first task with different results: 512 of 512" in out
    assert "by up to 0.5 where values reach 2.5" in out
    golden.write_text("def other(): ...\n")
    assert main(["graph", "diff", file, "--golden", str(golden)]) == 1
    assert "no function with the name of a kernel: add, double" in capsys.readouterr().err


def test_f64_is_carried_from_task_to_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Each task is 0.1 % off: the second differs by more than the first, and they are told."""
    golden = tmp_path / "golden.py"
    golden.write_text("def double(x, y):\n    y[...] = 2.002 * x\n")
    args = [graphs(tmp_path, RIGHT), "--golden", str(golden), "--rtol", "0.0015", "--atol", "0"]
    assert main(["graph", "diff", *args]) == 1
    out = capsys.readouterr().out
    assert "task 1 (double) is the first task with different results" in out
    assert "task 0 (double) differed by up to 0.002 of 2" in out


def test_a_race_names_the_variable_of_the_array():
    source, target, other = new(), new(), new()
    graph = pto.graph("explicit")
    graph.submit(add_one, source, target)
    graph.submit(add_one, target, other)
    (found,) = graph.check()
    assert "race between tasks on target, " in found.message


def test_the_same_memory_is_one_buffer_however_an_array_names_it():
    memory = bytearray(2 * ROWS * COLS * 4)
    first, again = (np.frombuffer(memory, np.float32).reshape(2, ROWS, COLS) for _ in range(2))
    x, y = new(), new()
    graph = pto.graph()
    graph.submit(add_one, x, first[0])
    graph.submit(add_one, again[0], y)
    graph.submit(add_one, y, again[1])
    assert pairs(graph) == {(0, 1), (1, 2)}
    low, high = (np.frombuffer(memory, np.float32, 512, 1024 * n) for n in range(2))
    graph = pto.graph()
    graph.submit(add_one, x, low.reshape(ROWS, COLS))
    with pytest.raises(PtoError, match="overlaps one of an earlier task"):
        graph.submit(add_one, x, high.reshape(ROWS, COLS))


@pytest.mark.parametrize("part", [np.s_[:, :COLS], np.s_[::-1, COLS:], np.s_[::2, ::2]])
def test_a_task_sees_strided_elements_as_they_are_when_it_runs(part: tuple[slice, slice]):
    wide = np.zeros((2 * ROWS, 2 * COLS), np.float32)[: 2 * ROWS if part[0].step == 2 else ROWS]
    x, y = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS), new()
    graph = pto.graph()
    graph.submit(add_one, x, wide[part])
    graph.submit(add_one, wide[part], y)
    graph.submit(add_one, x, wide[part])
    assert pairs(graph) == {(0, 1), (0, 2), (1, 2)}
    assert not graph.check()
    graph.run()
    assert np.array_equal(y, x + 2)
    assert np.array_equal(wide[part], x + 1)


def test_tensors_of_torch_are_ordered_by_their_storage():
    torch = pytest.importorskip("torch")
    whole, y = torch.zeros(ROWS, 2 * COLS), torch.zeros(ROWS, COLS)
    graph = pto.graph()
    graph.submit(add_one, y, whole[:, :COLS])
    graph.submit(add_one, whole[:, :COLS], y)
    graph.expect(y, 2.0)
    assert len(graph.edges) == 1
    assert not graph.check()
    graph.run()
    assert (y == 2).all()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda g, x: g.submit(add_one, x, x, after=[0]), r"after= lists tasks .*, not \[0\]"),
        (lambda g, x: g.submit(len, x, x), "a call of a kernel, not of a builtin_function"),
        (lambda g, x: g.expect(x, [1, 2]), r"the golden has shape \(2,\), the array"),
    ],
)
def test_a_wrong_call_is_a_finding(mistake: Callable[..., object], message: str):
    with pytest.raises(PtoError, match=message):
        mistake(pto.graph(), new())
