"""C++ orchestrations: order, values and findings, worked out by hand."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.cxx.child import Crash
from pto.graphs.process import ArgTensor, GraphProcess, KernelSource, Ran, Submission

from . import sources

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)
X = np.arange(1024, dtype=np.float32).reshape(16, 64)


def add_number(source: str, target: str, number: int, more: str = "") -> str:
    """A task that stores source + number in target."""
    arguments = f"a.add_input({source}); a.add_inout({target}); a.add_scalar({number});"
    return f"{{ CoreTaskArgs a; {arguments} {more} vector_task(0, a); }}\n"


def predicated(target: float) -> str:
    """A task that runs if the bits of y[0, 0] are those of a number."""
    bits = int(np.float32(target).view(np.int32))
    more = (
        f"a.predicate_.operand.tensor = &y; a.predicate_.operand.ndims = 2;"
        f" a.predicate_.op = PredicateOp::EQ; a.predicate_.target = {bits};"
    )
    return add_number("x", "y", 3, more)


CHAIN = """
    CoreTaskArgs a;
    a.add_input(x); a.add_output(info); a.add_scalar(5);
    TaskOutputTensors made = vector_task(0, a);
    CoreTaskArgs b;
    b.add_input(made.get_ref(0)); b.add_input(x); b.add_inout(y);
    vector_task(1, b);
"""
_UNDEFINED = """
    CoreTaskArgs a; a.add_output(info);
    TaskOutputTensors made = rt()->ops->alloc_tensors(rt(), a);
    CoreTaskArgs b; b.add_input(made.get_ref(0)); b.add_inout(y); b.add_scalar(1);
    vector_task(0, b);
"""
_UNTRACKED = (
    "{{ CoreTaskArgs a; a.add_input(x); a.add_no_dep(y); a.add_scalar(1); vector_task({0}, a); }}\n"
)
_SCOPED = (
    "const ChipTensor* kept; { Scope s; CoreTaskArgs a; a.add_input(x); a.add_output(info);"
    " a.add_scalar(5); kept = &vector_task(0, a).get_ref(0);"
)
_AFTER = "CoreTaskArgs b; b.add_input(*kept); b.add_inout(y); b.add_scalar(1); vector_task(0, b);"
_HOST_STORE = """
    CoreTaskArgs a; a.add_{}(y); a.add_output(info); a.add_scalar(1); vector_task(0, a);
    uint32_t first[2] = {{0, 0}};
    rt()->ops->set_tensor_data(rt(), y, 2, first, 0);
"""
_HOST_LOAD = """
    CoreTaskArgs a; a.add_input(x); a.add_{}(y); a.add_scalar(1); vector_task(0, a);
    uint32_t first[2] = {{0, 0}};
    rt()->ops->get_tensor_data(rt(), y, 2, first);
"""
_PAIR = add_number("x", "y", 1) + add_number("y", "y", 2)
BODIES = {
    "chain": CHAIN,
    "longer chain": CHAIN + add_number("y", "y", 1),
    "write after read": """
    CoreTaskArgs a; a.add_input(y); a.add_output(info); a.add_scalar(1); vector_task(0, a);
    CoreTaskArgs b; b.add_input(x); b.add_output(y); b.add_scalar(2); vector_task(0, b);
""",
    "write after read, ordered": """
    CoreTaskArgs a; a.add_input(y); a.add_output(info); a.add_scalar(1);
    TaskOutputTensors first = vector_task(0, a);
    CoreTaskArgs b; b.add_input(x); b.add_output(y); b.add_scalar(2); b.after(first.id);
    vector_task(0, b);
""",
    "two atomic updates": _UNTRACKED.format(2) * 2,
    "two stores": _UNTRACKED.format(0) * 2,
    "undefined": _UNDEFINED,
    "defined": f"info.has_initial_value = true; {_UNDEFINED}",
    "unwritten": """
    CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_output(info); vector_task(2, a);
""",
    "pair": _PAIR,
    "manual pair": f"Scope manual(PTO2ScopeMode::MANUAL);\n{_PAIR}",
    "after its scope": f"{_SCOPED} }} {_AFTER}",
    "inside its scope": f"{_SCOPED} {_AFTER} }}",
    "reads a value": """
    CoreTaskArgs a; a.add_inout(y); a.add_scalar(7); vector_task(3, a);
    uint32_t first[2] = {0, 0};
    uint64_t bits = rt()->ops->get_tensor_data(rt(), y, 2, first);
    float seen; memcpy(&seen, &bits, 4);
    CoreTaskArgs b; b.add_input(x); b.add_inout(y); b.add_scalar(uint64_t(seen)); vector_task(0, b);
""",
    "reads an output": CHAIN
    + """
    uint32_t first[2] = {0, 0};
    uint64_t bits = rt()->ops->get_tensor_data(rt(), made.get_ref(0), 2, first);
    if (bits == 0) vector_task(0, a);
""",
    "needless edge": """
    CoreTaskArgs a; a.add_input(x); a.add_output(info); a.add_scalar(1);
    TaskOutputTensors first = vector_task(0, a);
    CoreTaskArgs b; b.add_input(x); b.add_inout(y); b.add_scalar(1); b.after(first.id);
    vector_task(0, b);
""",
    "predicate holds": predicated(1000),
    "predicate fails": predicated(999),
    "four blocks": "CoreTaskArgs a; a.add_inout(y); a.launch_spec.n = 4; vector_task(4, a);",
    "no such kernel": "CoreTaskArgs a; vector_task(99, a);",
    "no such task": "CoreTaskArgs a; a.after({7}); vector_task(3, a);",
    "both lanes": """
    CoreTaskArgs a; a.add_inout(y); MixedKernels k; k.aiv0_kernel_id = k.aiv1_kernel_id = 5;
    rt()->ops->submit_task(rt(), k, a);
""",
    "cube kernel": "CoreTaskArgs a; MixedKernels k; k.aic_kernel_id = 3; rt_submit_task(k, a);",
    "no kernel": "CoreTaskArgs a; rt_submit_task(MixedKernels{}, a);",
    "no block": "CoreTaskArgs a; a.launch_spec.n = 0; vector_task(3, a);",
    "too many at once": "CoreTaskArgs a; a.launch_spec.n = 49; a.launch_spec.together = true;"
    " a.add_inout(y); vector_task(4, a);",
    "all at once": "CoreTaskArgs a; a.launch_spec.n = 48; a.launch_spec.together = true;"
    " a.add_inout(y); vector_task(4, a);",
    "allocates with a scalar": "CoreTaskArgs a; a.add_output(info); a.add_scalar(0);"
    " rt()->ops->alloc_tensors(rt(), a);",
    "allocates nothing": "CoreTaskArgs a; rt()->ops->alloc_tensors(rt(), a);",
    "store after a reader": _HOST_STORE.format("input"),
    "store after an updater": _HOST_STORE.format("inout"),
    "load after an unknown writer": _HOST_LOAD.format("no_dep"),
    "load after a writer": _HOST_LOAD.format("inout"),
    "deep scopes": "for (int n = 0; n < 64; ++n) rt()->ops->scope_begin(rt());",
    "waits": "CoreTaskArgs a; a.add_inout(y); vector_task(6, a);",
    "unflagged": "CoreTaskArgs a; a.add_input(x); a.add_inout(y); vector_task(7, a);",
    "by a helper": """
    auto submit = [&](int which) {
        CoreTaskArgs a; a.add_input(x); a.add_no_dep(y); a.add_scalar(which); vector_task(0, a);
    };
    submit(1);
    submit(2);
""",
    "one after the other": "Scope manual(PTO2ScopeMode::MANUAL);\n"
    + add_number("x", "y", 1)
    + add_number("y", "y", 2),
    "automatic in manual": "Scope outer(PTO2ScopeMode::MANUAL); Scope inner;",
    "manual in manual": f"Scope outer(PTO2ScopeMode::MANUAL);"
    f" Scope inner(PTO2ScopeMode::MANUAL);\n{_PAIR}",
    "scope never begun": "rt()->ops->scope_end(rt());",
    "scope never ended": "rt()->ops->scope_begin(rt());",
    "fatal": 'rt()->ops->report_fatal(rt(), 4, "entry", "no room for %d", 3);',
    "assertion": 'assert_impl("x > 0", "o.cpp", 3);',
    "finding in a task": """
    CoreTaskArgs a; a.add_input(x.rows(8, 8)); a.add_inout(y); a.add_scalar(0); vector_task(0, a);
""",
}
_READ_AND_WAITED = """
    CoreTaskArgs a; a.add_input(y); a.add_output(info); a.add_scalar(1);
    TaskOutputTensors read = vector_task(0, a);
    uint32_t first[2] = {0, 0};
    rt()->ops->get_tensor_data(rt(), read.get_ref(0), 2, first);
"""
BODIES["store after a wait"] = (
    _READ_AND_WAITED + "rt()->ops->set_tensor_data(rt(), y, 2, first, 0);"
)
BODIES["task after a wait"] = _READ_AND_WAITED + add_number("x", "y", 1)
_FILLED = """
    CoreTaskArgs a; a.add_output(info);
    const ChipTensor& made = rt()->ops->alloc_tensors(rt(), a).get_ref(0);
    for (uint32_t n = %d; n < 1024; ++n) {
        uint32_t at[2] = {n / 64, n %% 64};
        rt()->ops->set_tensor_data(rt(), made, 2, at, n);
    }
    CoreTaskArgs b; b.add_input(made); b.add_inout(y); b.add_scalar(1); vector_task(0, b);
"""
BODIES["reads what the orchestration wrote"] = _FILLED % 0
BODIES["reads more than the orchestration wrote"] = _FILLED % 2
BODIES["scalar code and a large output"] = """
    TensorCreateInfo large{{256, 1024}, 2, DataType::FLOAT32, false, 0};
    CoreTaskArgs a; a.add_output(large); a.add_scalar(7); vector_task(3, a);
"""
BODIES["a task crashes"] = add_number("x", "y", 1) + (
    "CoreTaskArgs a; a.add_input(y); vector_task(11, a);"
)
BODIES["reads a value and exits"] = BODIES["reads a value"] + "exit(3);"


@dataclass
class Outcome:
    """What a run did, and what the tensor y became."""

    ran: Ran
    y: np.ndarray


class Runner:
    """One process with every body of this file."""

    def __init__(self, folder: Path) -> None:
        self.process = GraphProcess(
            sources.written(folder, BODIES.values(), sources.kernels(folder))
        )

    def run(self, name: str, seed: int | None = None, watched: bool = False) -> Outcome:
        given = sources.tensors("in", "inout", body=list(BODIES).index(name))
        ran = self.process.run(given, seed=seed, watched=watched)
        return Outcome(ran, sources.values(given[1]))

    def codes(self, name: str) -> list[str]:
        return [d.code for d in self.run(name, watched=True).ran.findings]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    made = Runner(tmp_path_factory.mktemp("graph"))
    yield made
    made.process.end()


def test_a_chain_gives_the_values_of_the_two_kernels(runner: Runner):
    got = runner.run("chain")
    assert (got.ran.tasks, got.ran.edges) == (2, 1)
    np.testing.assert_array_equal(got.y, X + 5 + X)


@pytest.mark.parametrize(
    ("name", "tasks", "again", "other"),
    [
        ("longer chain", 3, 0, None),
        ("reads a value", 2, 0, None),
        # Here each task also finds what the other has left, in the other order.
        ("by a helper", 2, 2, X + 1),
        ("one after the other", 2, 2, X + 1),
    ],
)
def test_a_task_that_reads_the_same_bytes_in_another_order_is_not_executed_again(
    runner: Runner, name: str, tasks: int, again: int, other: np.ndarray | None
):
    given = sources.tensors("in", "inout", body=list(BODIES).index(name))
    ran, orders = runner.process.act("orders", [Submission(given)], count=9), 9
    if other is None:
        assert ran.differs == ""
    else:
        text, _, last = ran.differs.rpartition(" ")
        count = (runner.run(name).y.view(np.uint8) != other.view(np.uint8)).sum()
        assert text == f"y: {count} bytes differ in the order of seed"
        orders = int(last) + 1  # the first difference ends the comparison
    assert (ran.tasks, ran.copied) == (tasks, orders * tasks - again)


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_every_order_that_the_edges_allow_gives_the_same_bytes(runner: Runner, seed: int | None):
    np.testing.assert_array_equal(runner.run("longer chain", seed).y, X + 5 + X + 1)


def test_a_write_after_a_read_without_an_edge_is_a_race(runner: Runner):
    """The tensor map remembers writers only: the first task reads y, the second overwrites it."""
    (finding,) = runner.run("write after read", watched=True).ran.findings
    assert finding.code == "PTO-G101"
    assert "write-after-read race between tasks on y" in finding.message
    assert "task 0 (add_number) and task 1 (add_number)" in finding.message
    assert finding.loc is not None and finding.loc.file.endswith("orchestration.cpp")
    assert [n.loc.file.rpartition("/")[2] for n in finding.notes if n.loc] == [
        "add_number.cpp",
        "add_number.cpp",
        "orchestration.cpp",
        "orchestration.cpp",
    ]
    assert finding.help == "make task 1 (add_number) depend on task 0 (add_number) (tried: ordered)"


def test_the_same_tasks_with_an_explicit_edge_are_no_race(runner: Runner):
    assert runner.codes("write after read, ordered") == []


def test_two_atomic_updates_may_meet_and_two_stores_may_not(runner: Runner):
    assert runner.run("two atomic updates").ran.edges == runner.run("two stores").ran.edges == 0
    assert runner.codes("two atomic updates") == []
    assert runner.codes("two stores") == ["PTO-G101"]


def test_a_read_of_bytes_that_no_task_wrote_is_a_finding(runner: Runner):
    (finding,) = runner.run("undefined", watched=True).ran.findings
    assert finding.code == "PTO-G102" and "reads 4096 bytes" in finding.message
    assert runner.codes("defined") == []


def test_an_output_that_no_instruction_writes_is_a_warning(runner: Runner):
    """Kernel 2 accumulates into its second tensor; the third is declared and never touched."""
    (finding,) = runner.run("unwritten", watched=True).ran.findings
    assert (finding.code, finding.severity) == ("PTO-G103", "warning")
    assert "argument 2 (buffer 2) as out" in finding.message


def test_a_manual_scope_has_only_explicit_edges(runner: Runner):
    assert runner.run("manual pair").ran.edges == 0
    assert runner.run("manual in manual").ran.edges == 0
    assert runner.run("pair").ran.edges == 1


def test_a_tensor_used_after_its_scope_is_a_finding(runner: Runner):
    assert runner.codes("after its scope") == ["PTO-G104"]
    assert runner.codes("inside its scope") == []


def test_an_orchestration_reads_a_value_after_its_producer_has_run(runner: Runner):
    np.testing.assert_array_equal(runner.run("reads a value").y, X + 7)


@pytest.mark.parametrize(
    ("name", "skipped", "expected"),
    [("predicate holds", 0, X + 3), ("predicate fails", 1, X + 1000)],
)
def test_a_task_whose_predicate_does_not_hold_is_left_out(
    runner: Runner, name: str, skipped: int, expected: np.ndarray
):
    """y[0, 0] is 1000.0, whose bits are compared as an integer."""
    got = runner.run(name)
    assert got.ran.skipped == skipped
    np.testing.assert_array_equal(got.y, expected)


def test_blocks_of_a_task_each_know_their_number(runner: Runner):
    assert list(runner.run("four blocks").y[0, :6]) == [-1, -2, -3, -4, 1004, 1005]


def test_a_lane_is_known_by_the_context_of_the_runtime_and_not_by_the_register(runner: Runner):
    """Lane n writes 10 n + what the register says, which the runtime of a2a3 leaves at 0."""
    assert list(runner.run("both lanes").y[0, :3]) == [0, 10, 1002]


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("no such kernel", "PTO-G001", "there is no kernel 99"),
        ("cube kernel", "PTO-G001", "runs set_first on a cube core"),
        ("no kernel", "PTO-G001", "has no kernel"),
        ("no block", "PTO-G001", "has 0 blocks"),
        ("too many at once", "PTO-G006", "49 blocks at once, and the chip has 48 vector cores"),
        ("allocates with a scalar", "PTO-G004", "new tensors only"),
        ("allocates nothing", "PTO-G004", "new tensors only"),
        ("deep scopes", "PTO-G003", "more than 64 scopes"),
        ("no such task", "PTO-G002", "task 7"),
        ("scope never begun", "PTO-G003", "never begun"),
        ("automatic in manual", "PTO-G003", "inside a manual scope"),
        ("scope never ended", "PTO-G003", "never ends"),
        ("fatal", "PTO-G004", "no room for 3"),
        ("assertion", "PTO-G004", "x > 0"),
    ],
)
def test_mistakes_of_an_orchestration_are_findings(
    runner: Runner, name: str, code: str, words: str
):
    with pytest.raises(PtoError) as error:
        runner.run(name)
    assert error.value.code == code
    assert words in str(error.value)


def test_mistakes_are_located_in_the_orchestration(runner: Runner):
    for name in ("fatal", "no block", "allocates nothing"):
        with pytest.raises(PtoError) as error:
            runner.run(name)
        loc = error.value.diagnostics[0].loc
        assert loc is not None and loc.file.endswith("orchestration.cpp")


def test_as_many_blocks_as_cores_may_start_at_once(runner: Runner):
    assert list(runner.run("all at once").y[0, 46:49]) == [-47, -48, 1048]


@pytest.mark.parametrize(
    ("racy", "right", "does"),
    [
        ("store after a reader", "store after an updater", "writes"),
        ("load after an unknown writer", "load after a writer", "reads"),
    ],
)
def test_the_orchestration_races_with_a_task_that_it_does_not_wait_for(
    runner: Runner, racy: str, right: str, does: str
):
    (found,) = runner.run(racy, watched=True).ran.findings
    assert (found.code, found.severity) == ("PTO-G101", "error")
    assert f"orchestration {does} the element and does not wait" in found.message
    assert "race between task 0 (add_number) and the orchestration on y" in found.message
    assert found.loc is not None and found.loc.file.endswith("orchestration.cpp")
    assert found.notes[1].loc is not None and found.notes[1].loc.line < found.loc.line
    assert not [d for d in runner.run(right, watched=True).ran.findings if d.severity == "error"]


@pytest.mark.parametrize("name", ["store after a wait", "task after a wait"])
def test_what_the_orchestration_waited_for_has_ended(runner: Runner, name: str):
    """It has read the output of the reader of y: nothing that follows races with the reader."""
    assert runner.codes(name) == []


def test_elements_that_the_orchestration_wrote_are_defined(runner: Runner):
    assert runner.codes("reads what the orchestration wrote") == []
    (found,) = runner.run("reads more than the orchestration wrote", watched=True).ran.findings
    assert found.code == "PTO-G102" and " 8 bytes of buffer 2 in 0x0..0x8 " in found.message


def test_a_store_of_scalar_code_to_a_large_output_is_seen(runner: Runner):
    assert runner.codes("scalar code and a large output") == []


_CONFIG = """
struct Config { int expected; };
extern "C" __attribute__((visibility("default")))
Config aicpu_orchestration_config(const ChipTaskArgs&) { return {4}; }
"""


def test_an_orchestration_says_how_many_arguments_it_needs(tmp_path: Path):
    """Two tensors and a scalar are three."""
    source = sources.written(tmp_path, [""], ())
    source.path.write_text(source.path.read_text() + _CONFIG)
    with GraphProcess(source) as process:
        with pytest.raises(PtoError, match="it expects 4 arguments, and 3 are given") as error:
            process.run(sources.tensors("in", "inout"))
        assert error.value.code == "PTO-G004"
        assert process.run(sources.tensors("in", "inout", "in")).tasks == 0


def test_an_orchestration_sees_the_cores_of_the_largest_chip_or_of_the_timed_one(tmp_path: Path):
    """It submits a task for each cluster. The chips of a5 have 28, 32 and 36."""
    each = "for (int n = 0; n < rt()->ops->available_cluster_count(rt()); ++n) { BODY }"
    kernel = KernelSource(0, "add_number", tmp_path / "none.cpp", "aiv")
    bodies = [each.replace("BODY", add_number("x", "y", 1))]
    source = replace(sources.written(tmp_path, bodies, (kernel,)), profile="a5")
    given = [Submission(sources.tensors("in", "inout"))]
    with GraphProcess(source, kernels="none") as process:
        assert process.act("dry", given).tasks == 36
        assert len(process.act("time", given)["tasks"]) == 32
        assert len(process.act("time", given, device="950pr_9579")["tasks"]) == 28


def test_a_header_beside_a_kernel_does_not_hide_a_header_of_the_runtime(tmp_path: Path):
    """The runtime includes its `intrinsic.h` around the kernel, which includes none."""
    own = next(k for k in sources.kernels(tmp_path) if k.name == "number_blocks")
    text = own.path.read_text().replace('#include "intrinsic.h"', "")
    own.path.write_text(text.replace("get_block_idx(args)", "0"))
    (tmp_path / "intrinsic.h").write_text("#error hidden\n")
    body = "CoreTaskArgs a; a.add_inout(y); vector_task(4, a);"
    given = sources.tensors("in", "inout")
    with GraphProcess(sources.written(tmp_path, [body], (own,))) as process:
        process.run(given)
    assert sources.values(given[1])[0, 0] == -1


def test_a_finding_inside_a_task_names_the_task_and_where_it_was_submitted(runner: Runner):
    with pytest.raises(PtoError) as error:
        runner.run("finding in a task")
    (finding,) = error.value.diagnostics
    assert finding.loc is not None and finding.loc.file.endswith("add_number.cpp")
    note = finding.notes[-1]
    assert note.message == "in task 0 (add_number), submitted here"
    assert note.loc is not None and note.loc.file.endswith("orchestration.cpp")


def test_a_crash_names_the_task_and_where_it_was_submitted(runner: Runner):
    with pytest.raises(Crash, match="the kernel touched memory that is not its own") as error:
        runner.run("a task crashes")
    (finding,) = error.value.diagnostics
    assert finding.loc is not None and finding.loc.file.endswith("crashes.cpp")
    (note,) = finding.notes
    assert note.message == "in task 1 (crashes), submitted here"
    assert note.loc is not None and note.loc.file.endswith("orchestration.cpp")


def test_an_orchestration_that_ends_the_process_is_told_as_such(runner: Runner):
    """A task has run before: the orchestration has read its output."""
    with pytest.raises(Crash, match="the orchestration ended with status 3") as error:
        runner.run("reads a value and exits")
    assert error.value.diagnostics[0].notes == ()


def test_a_missing_entry_is_named(tmp_path: Path):
    own = KernelSource(0, "other", tmp_path / "other.cpp", "aiv")
    own.path.write_text('extern "C" void my_kernel(long* args) {}\n')
    source = sources.written(tmp_path, [""], (own,))
    with pytest.raises(PtoError, match=r"other\.cpp has no function kernel_entry") as error:
        GraphProcess(source)
    assert error.value.code == "PTO-U327"
    with pytest.raises(PtoError, match=r"orchestration\.cpp has no function start"):
        GraphProcess(replace(source, entry="start"))


def test_a_runtime_that_the_checkout_lacks_is_named(tmp_path: Path):
    (tmp_path / "src" / "a2a3" / "runtime" / "ours" / "runtime").mkdir(parents=True)
    source = replace(sources.written(tmp_path, [""], ()), root=tmp_path, runtime="theirs")
    with pytest.raises(PtoError, match="has no runtime 'theirs'; it has ours"):
        GraphProcess(source)


def test_a_buffer_that_is_too_large_is_told_with_its_size(tmp_path: Path):
    body = """
    TensorCreateInfo large{{1 << 20, 1 << 20}, 2, DataType::FLOAT32, false, 0};
    CoreTaskArgs a; a.add_output(large); rt()->ops->alloc_tensors(rt(), a);
"""
    with (
        GraphProcess(sources.written(tmp_path, [body], ())) as process,
        pytest.raises(PtoError, match="creates a buffer of 4,398,046,511,104 bytes"),
    ):
        process.run(sources.tensors("in", "inout"))


@pytest.mark.parametrize(
    ("name", "code", "kernel"), [("waits", "PTO-D201", 6), ("unflagged", "PTO-R001", 7)]
)
def test_the_sanitizer_looks_inside_a_task(runner: Runner, name: str, code: str, kernel: int):
    found = runner.run(name, watched=True).ran.findings
    assert found[0].code == code
    assert found[0].loc is not None
    assert found[0].loc.file.endswith(f"{sources.BODIES[kernel][0]}.cpp")
    assert found[0].notes[-1].message == f"in task 0 ({name}), submitted here"


def test_a_watched_run_gives_the_same_bytes(runner: Runner):
    """The sanitizer runs a task several times; an atomic sum counts once."""
    got = runner.run("two atomic updates", watched=True)
    np.testing.assert_array_equal(got.y, runner.run("two atomic updates").y)


def test_a_task_submitted_by_a_helper_is_told_with_the_lines_that_call_it(runner: Runner):
    (found,) = runner.run("by a helper", watched=True).ran.findings
    first, second = found.notes[2:]
    assert first.loc is not None and first.loc == second.loc
    line = first.loc.line + 2
    assert first.message == f"task 0 (add_number) is submitted here, called from line {line}"
    assert second.message == f"task 1 (add_number) is submitted here, called from line {line + 1}"


def test_a_dry_run_needs_no_kernel_and_no_values(runner: Runner, tmp_path: Path):
    """The kernels do not exist; x has a gigabyte and no memory. The value that is read is 0."""
    missing = tuple(KernelSource(n, f"k{n}", tmp_path / "none.cpp", "aiv") for n in range(2))
    x, *others = sources.tensors("in", "inout", body=list(BODIES).index("reads an output"))
    assert isinstance(x, ArgTensor)
    x.data, x.shape = np.broadcast_to(np.uint8(0), 1 << 30), (1 << 28,)
    process = GraphProcess(replace(runner.process.source, kernels=missing), kernels="none")
    found = process.act("dry", [Submission([x, *others])])
    process.end()
    assert (found.tasks, found.edges, found.findings) == (3, 1, [])
    assert (found.slots, found.heap, found.assumed) == (3, 8192, 1)


def test_times_of_tasks_follow_edges_and_an_edge_that_no_data_needs_is_told(runner: Runner):
    """The last task names the first as a dependency and shares no byte with it."""
    given = sources.tensors("in", "inout", body=list(BODIES).index("needless edge"))
    found = runner.process.act("time", [Submission(given)], edges=True)
    assert [task[0] for task in found["tasks"]] == ["add_number", "add_number"]
    first, second = found["slices"]
    assert first[4] < found["tasks"][1][3] < second[3]
    assert (found["path"], found["needless"], found["kinds"]) == ([0, 1], 1, 1)
    assert found["fewer_us"] < found["us"]
    assert found["us"] > (first[4] - first[3]) + (second[4] - second[3])
    assert runner.process.act("time", [Submission(given)])["needless"] is None


def test_a_recording_has_what_each_task_left(runner: Runner, tmp_path: Path):
    """The first task adds 5 to x, the second adds x to that."""
    given = sources.tensors("in", "inout", body=list(BODIES).index("chain"))
    assert runner.process.act("record", [Submission(given)], folder=str(tmp_path)).tasks == 2
    values = np.fromfile(tmp_path / "values.bin", np.float32).reshape(2, 16, 64)
    np.testing.assert_array_equal(values, [X + 5, X + 5 + X])
    assert '"element": "FLOAT32"' in (tmp_path / "tasks.json").read_text()
