"""C++ orchestrations: order, values and findings, worked out by hand."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.graphs.process import GraphProcess, KernelSource, Ran

from . import sources

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)
Start = Callable[[str], GraphProcess]
X = np.arange(1024, dtype=np.float32).reshape(16, 64)
ADD_NUMBER = (
    "{{ CoreTaskArgs a; a.add_input({0}); a.{3}({1}); a.add_scalar({2}); {4} vector_task(0, a); }}"
)


def add_number(
    source: str, target: str, number: int, how: str = "add_inout", more: str = ""
) -> str:
    return ADD_NUMBER.format(source, target, number, how, more) + "\n"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> tuple[KernelSource, ...]:
    return sources.kernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def start(tmp_path: Path, kernels: tuple[KernelSource, ...]) -> Iterator[Start]:
    made: list[GraphProcess] = []

    def begin(body: str) -> GraphProcess:
        made.append(GraphProcess(sources.written(tmp_path, body, kernels)))
        return made[-1]

    yield begin
    for each in made:
        each.end()


def watched(process: GraphProcess) -> tuple[Ran, list[str]]:
    ran = process.run(sources.tensors("in", "inout"), watched=True)
    return ran, [d.code for d in ran.findings]


CHAIN = """
    CoreTaskArgs a;
    a.add_input(x); a.add_output(info); a.add_scalar(5);
    TaskOutputTensors made = vector_task(0, a);
    CoreTaskArgs b;
    b.add_input(made.get_ref(0)); b.add_input(x); b.add_inout(y);
    vector_task(1, b);
"""


def test_a_chain_gives_the_values_of_the_two_kernels(start: Start):
    given = sources.tensors("in", "inout")
    ran = start(CHAIN).run(given)
    assert (ran.tasks, ran.edges) == (2, 1)
    np.testing.assert_array_equal(sources.values(given[1]), X + 5 + X)


def test_every_order_that_the_edges_allow_gives_the_same_bytes(start: Start):
    process = start(CHAIN + add_number("y", "y", 1))
    expected = X + 5 + X + 1
    for seed in (None, 0, 1, 2):
        given = sources.tensors("in", "inout")
        process.run(given, seed=seed)
        np.testing.assert_array_equal(sources.values(given[1]), expected)


def test_a_write_after_a_read_without_an_edge_is_a_race(start: Start):
    """The tensor map remembers writers only: the first task reads y, the second overwrites it."""
    body = """
    CoreTaskArgs a; a.add_input(y); a.add_output(info); a.add_scalar(1); vector_task(0, a);
    CoreTaskArgs b; b.add_input(x); b.add_output(y); b.add_scalar(2); vector_task(0, b);
"""
    ran, codes = watched(start(body))
    assert codes == ["PTO-G101"]
    (finding,) = ran.findings
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


def test_the_same_tasks_with_an_explicit_edge_are_no_race(start: Start):
    body = """
    CoreTaskArgs a; a.add_input(y); a.add_output(info); a.add_scalar(1);
    TaskOutputTensors first = vector_task(0, a);
    CoreTaskArgs b; b.add_input(x); b.add_output(y); b.add_scalar(2); b.after(first.id);
    vector_task(0, b);
"""
    assert watched(start(body))[1] == []


@pytest.mark.parametrize(
    ("kernel", "codes"), [("2", []), ("0", ["PTO-G101"])], ids=["atomic", "stores"]
)
def test_two_atomic_updates_may_meet_and_two_stores_may_not(
    start: Start, kernel: str, codes: list[str]
):
    arguments = "CoreTaskArgs a; a.add_input(x); a.add_no_dep(y); a.add_scalar(1);"
    one = f"{{ {arguments} vector_task({kernel}, a); }}\n"
    ran, found = watched(start(one + one))
    assert ran.edges == 0
    assert found == codes


def test_a_read_of_bytes_that_no_task_wrote_is_a_finding(start: Start):
    body = """
    CoreTaskArgs a; a.add_output(info); a.add_scalar(0);
    TaskOutputTensors made = rt()->ops->alloc_tensors(rt(), a);
    CoreTaskArgs b; b.add_input(made.get_ref(0)); b.add_inout(y); b.add_scalar(1);
    vector_task(0, b);
"""
    ran, codes = watched(start(body))
    assert codes == ["PTO-G102"]
    assert "reads 4096 bytes" in ran.findings[0].message
    right = body.replace("CoreTaskArgs a;", "info.has_initial_value = true; CoreTaskArgs a;")
    assert watched(start(right))[1] == []


def test_an_output_that_no_instruction_writes_is_a_warning(start: Start):
    """Kernel 2 accumulates into its second tensor; the third is declared and never touched."""
    body = "CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_output(info); vector_task(2, a);"
    ran, codes = watched(start(body))
    assert codes == ["PTO-G103"]
    assert ran.findings[0].severity == "warning"
    assert "argument 2 (buffer 2) as out" in ran.findings[0].message


def test_a_manual_scope_has_only_explicit_edges(start: Start):
    pair = add_number("x", "y", 1) + add_number("y", "y", 2)
    assert (
        start(f"Scope manual(PTO2ScopeMode::MANUAL);\n{pair}")
        .run(sources.tensors("in", "inout"))
        .edges
        == 0
    )
    assert start(pair).run(sources.tensors("in", "inout")).edges == 1


def test_a_tensor_used_after_its_scope_is_a_finding(start: Start):
    inside = "CoreTaskArgs a; a.add_input(x); a.add_output(info); a.add_scalar(5);"
    after = (
        "CoreTaskArgs b; b.add_input(*kept); b.add_inout(y); b.add_scalar(1); vector_task(0, b);"
    )
    made = f"const ChipTensor* kept; {{ Scope s; {inside} kept = &vector_task(0, a).get_ref(0);"
    wrong, right = f"{made} }} {after}", f"{made} {after} }}"
    assert watched(start(wrong))[1] == ["PTO-G104"]
    assert watched(start(right))[1] == []


def test_an_orchestration_reads_a_value_after_its_producer_has_run(start: Start):
    body = """
    CoreTaskArgs a; a.add_inout(y); a.add_scalar(7); vector_task(3, a);
    uint32_t first[2] = {0, 0};
    uint64_t bits = rt()->ops->get_tensor_data(rt(), y, 2, first);
    float seen; memcpy(&seen, &bits, 4);
    CoreTaskArgs b; b.add_input(x); b.add_inout(y); b.add_scalar(uint64_t(seen)); vector_task(0, b);
"""
    given = sources.tensors("in", "inout")
    start(body).run(given)
    np.testing.assert_array_equal(sources.values(given[1]), X + 7)


@pytest.mark.parametrize(("target", "expected"), [(1000, X + 3), (999, X + 1000)])
def test_a_task_whose_predicate_does_not_hold_is_left_out(
    start: Start, target: int, expected: np.ndarray
):
    """y[0, 0] is 1000.0, whose bits are compared as an integer."""
    bits = int(np.float32(target).view(np.int32))
    more = (
        f"a.predicate_.operand.tensor = &y; a.predicate_.operand.ndims = 2;"
        f" a.predicate_.op = PredicateOp::EQ; a.predicate_.target = {bits};"
    )
    given = sources.tensors("in", "inout")
    ran = start(add_number("x", "y", 3, more=more)).run(given)
    assert ran.skipped == (target != 1000)
    np.testing.assert_array_equal(sources.values(given[1]), expected)


def test_blocks_of_a_task_each_know_their_number(tmp_path: Path):
    body = "CoreTaskArgs a; a.add_inout(y); a.launch_spec.n = 4; vector_task(3, a);"
    source = sources.written(tmp_path, body, sources.kernels(tmp_path)[3:])
    kernel = next(k.path for k in source.kernels if k.number == 3)
    text = kernel.read_text().replace(
        "using namespace pto;", 'using namespace pto;\n#include "intrinsic.h"'
    )
    line = "at(args[0])[0] = (float)args[1];"
    assert line in text
    kernel.write_text(
        text.replace(line, "at(args[0])[get_block_idx(args)] = -1.0f - get_block_idx(args);")
    )
    process = GraphProcess(source)
    given = sources.tensors("in", "inout")
    process.run(given)
    process.end()
    np.testing.assert_array_equal(sources.values(given[1])[0, :6], [-1, -2, -3, -4, 1004, 1005])


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("CoreTaskArgs a; vector_task(9, a);", "PTO-G001", "there is no kernel 9"),
        ("CoreTaskArgs a; a.after({7}); vector_task(3, a);", "PTO-G002", "task 7"),
        ("rt()->ops->scope_end(rt());", "PTO-G003", "never begun"),
        ("rt()->ops->scope_begin(rt());", "PTO-G003", "never ends"),
        (
            'rt()->ops->report_fatal(rt(), 4, "entry", "no room for %d", 3);',
            "PTO-G004",
            "no room for 3",
        ),
        ('assert_impl("x > 0", "o.cpp", 3);', "PTO-G004", "x > 0"),
    ],
)
def test_mistakes_of_an_orchestration_are_findings(start: Start, body: str, code: str, words: str):
    with pytest.raises(PtoError) as error:
        start(body).run(sources.tensors("in", "inout"))
    assert error.value.code == code
    assert words in str(error.value)


def test_a_finding_inside_a_task_names_the_task_and_where_it_was_submitted(start: Start):
    body = "CoreTaskArgs a; a.add_input(x.rows(8, 8)); a.add_inout(y); vector_task(0, a);"
    with pytest.raises(PtoError) as error:
        start(body).run(sources.tensors("in", "inout"))
    (finding,) = error.value.diagnostics
    assert finding.loc is not None and finding.loc.file.endswith("add_number.cpp")
    note = finding.notes[-1]
    assert note.message == "in task 0 (add_number), submitted here"
    assert note.loc is not None and note.loc.file.endswith("orchestration.cpp")
