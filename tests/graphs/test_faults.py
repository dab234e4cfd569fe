"""Faults between tasks, each beside a right twin: none may be missed, no twin may have an error.

Kernel 0 stores its first tensor plus a number in the second, kernel 1 the sum of two tensors in the
third, kernel 2 accumulates atomically, kernel 4 stores with scalar code. Each moves 16 rows.
Kernel 8 stores its first tensor in 64 of 128 columns of the second, kernel 9 at an address.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import pto
from pto.graphs.process import GraphProcess

from . import sources

F = pto.Global[pto.f32]


def task(
    kernel: int,
    *arguments: str,
    after: str = "",
    name: str = "",
    scalars: str = "1",
    more: str = "",
    lanes: int = 1,
) -> str:
    """A submission: arguments as `in y`; `name` is what its result is called."""
    add = {"in": "add_input", "inout": "add_inout", "over": "add_output", "no": "add_no_dep"}
    parts = [a.split(" ", 1) for a in arguments]
    lines = [f"a.{add[how]}({tensor});" for how, tensor in parts]
    lines += [f"a.after({each}.id);" for each in after.split()]
    result = f"{name} = " if name else ""
    lines += [f"a.add_scalar({each});" for each in scalars.split()]
    second = kernel if lanes == 2 else -1
    call = f"{more} {result}rt_submit_task(MixedKernels{{-1, {kernel}, {second}}}, a);"
    return f"{{ CoreTaskArgs a; {' '.join(lines)} {call} }}\n"


def columns(
    use: str, first: int, step: int = 0, blocks: int = 1, lanes: int = 1, atomic: int = 0
) -> str:
    """Store x in columns of t, which has 128 of them here."""
    scalars, more = f"{atomic} {first} {step} {step}", f"a.launch_spec.n = {blocks};"
    return task(8, "in x", f"{use} t", scalars=scalars, more=more, lanes=lanes)


def when(first: float) -> str:
    """The task runs if y begins with a number; 1000 is there at first."""
    bits = int(np.float32(first).view(np.int32))
    operand = "a.predicate_.operand.tensor = &y; a.predicate_.operand.ndims = 2;"
    return f"{operand} a.predicate_.op = PredicateOp::EQ; a.predicate_.target = {bits};"


def gated(before: str) -> str:
    """A task that is left out, because t, which has no value at first, begins with 0."""
    zero = when(1.0).replace("&y", "&t")
    last = task(0, "in x", "inout y", after="p", more=zero)
    return NAMES + allocation(16, defined=False) + before + last


def host_reads(row: int) -> str:
    """The orchestration reads t[row, 0]: column 64 of its first 128 if the row is 1."""
    return f"uint32_t at[2] = {{{row}, 0}}; rt()->ops->get_tensor_data(rt(), t, 2, at);\n"


def address(after: str) -> str:
    """A task that gets y as a number, and a reader of y."""
    store = task(9, "in x", scalars="y.buffer.addr", name="p")
    return NAMES + store + task(0, "in y", "over info", after=after)


def joined(dependencies: str) -> str:
    """Two writers, an empty task after some of them, and a reader of both after that."""
    waits = " ".join(f"a.after({each}.id);" for each in dependencies.split())
    dummy = f"{{ CoreTaskArgs a; {waits} r = rt()->ops->submit_dummy_task(rt(), a); }}\n"
    reader = task(1, "in p.get_ref(0)", "in q.get_ref(0)", "inout y", after="r")
    return MANUAL + WRITE + task(0, "in x", "over info", name="q") + dummy + reader


def skipped_between(after: str) -> str:
    """A writer of y, a task after it that is left out, and a reader of y."""
    left_out = task(0, "in x", "over info", after="p", name="q", more=when(999))
    write = task(0, "in x", "inout y", name="p")
    return MANUAL + write + left_out + task(0, "in y", "over info", after=after)


def allocation(rows: int, defined: bool = True) -> str:
    """Tensor t with more rows than a kernel moves: its parts are views."""
    return (
        f"TensorCreateInfo wide{{{{{rows}, 64}}, 2, DataType::FLOAT32, {str(defined).lower()}, 0}};"
        " CoreTaskArgs w; w.add_output(wide);"
        " TaskOutputTensors own = rt()->ops->alloc_tensors(rt(), w);"
        " const ChipTensor& t = own.get_ref(0); const ChipTensor top = t.rows(0, 16),"
        " middle = t.rows(8, 16), end = t.rows(16, 16); (void)top, (void)middle, (void)end;\n"
    )


NAMES = "TaskOutputTensors p, q, r; (void)p, (void)q, (void)r;\n"
MANUAL = NAMES + "Scope manual(PTO2ScopeMode::MANUAL);\n"
READ_Y = task(0, "in y", "over info", name="p")
WRITE = task(0, "in x", "over info", name="p")
JOIN = (
    MANUAL
    + WRITE
    + task(0, "in x", "over info", name="q")
    + "{ CoreTaskArgs a; a.add_input(p.get_ref(0)); a.add_input(q.get_ref(0)); a.add_inout(y);"
    " a.after(p.id); AND vector_task(1, a); }"
)
CHAIN = (
    MANUAL + task(0, "in x", "inout y", name="p") + task(0, "in y", "inout y", after="p", name="q")
)
SCOPED = "const ChipTensor* kept; {{ Scope s; {} kept = &p.get_ref(0); {} }} {}"
USE_KEPT = task(0, "in *kept", "inout y")
SECOND_SCOPE = f"{{ Scope other; {task(0, 'in x', 'over info')} }}\n"
BARRIER = (
    MANUAL
    + WRITE
    + "{ CoreTaskArgs a; a.after(p.id); q = rt()->ops->submit_dummy_task(rt(), a); }\n"
)

# name -> code, fault, twin
FAULTS = {
    "write after read": (
        "PTO-G101",
        NAMES + READ_Y + task(0, "in x", "over y"),
        NAMES + READ_Y + task(0, "in x", "over y", after="p"),
    ),
    "write after read, readers declared inout": (
        "PTO-G101",
        NAMES + READ_Y + task(0, "in x", "inout y"),
        NAMES + task(0, "inout y", "over info") + task(0, "in x", "inout y"),
    ),
    "two overwrites": (
        "PTO-G101",
        NAMES + task(0, "in x", "over y", name="p") + task(0, "in x", "over y"),
        NAMES + task(0, "in x", "over y", name="p") + task(0, "in x", "over y", after="p"),
    ),
    "two stores without tracking": (
        "PTO-G101",
        task(0, "in x", "no y") * 2,
        task(0, "in x", "inout y") * 2,
    ),
    "an untracked reader": (
        "PTO-G101",
        task(0, "in x", "inout y") + task(0, "no y", "over info"),
        task(0, "in x", "inout y") + task(0, "in y", "over info"),
    ),
    "an untracked writer": (
        "PTO-G101",
        task(0, "in x", "no y") + task(0, "in y", "over info"),
        task(0, "in x", "inout y") + task(0, "in y", "over info"),
    ),
    "an atomic update beside a store": (
        "PTO-G101",
        task(2, "in x", "no y") + task(0, "in x", "no y"),
        task(2, "in x", "no y") + task(2, "in x", "no y"),
    ),
    "a store beside atomic updates": (
        "PTO-G101",
        task(0, "in x", "over y") + task(2, "in x", "no y") * 2,
        task(0, "in x", "over y") + task(2, "in x", "inout y") * 2,
    ),
    "a reader beside atomic updates": (
        "PTO-G101",
        task(2, "in x", "no y") * 2 + task(0, "in y", "over info"),
        task(2, "in x", "inout y") * 2 + task(0, "in y", "over info"),
    ),
    "an atomic update of half of a store": (
        "PTO-G101",
        allocation(32) + task(0, "in x", "over top") + task(2, "in x", "no middle"),
        allocation(32) + task(0, "in x", "over top") + task(2, "in x", "no end"),
    ),
    "slices that overlap": (
        "PTO-G101",
        allocation(32) + task(0, "in x", "over top") + task(0, "in x", "over middle"),
        allocation(32) + task(0, "in x", "over top") + task(0, "in x", "over end"),
    ),
    "a slice overwritten while its neighbour is read": (
        "PTO-G101",
        allocation(32) + task(0, "in top", "inout y") + task(0, "in x", "over middle"),
        allocation(32) + task(0, "in top", "inout y") + task(0, "in x", "over end"),
    ),
    "a slice read untracked": (
        "PTO-G101",
        allocation(32) + task(0, "in x", "inout top") + task(0, "no middle", "inout y"),
        allocation(32) + task(0, "in x", "inout top") + task(0, "in middle", "inout y"),
    ),
    "a tensor declared whole and written in part": (
        "PTO-G101",
        allocation(32) + task(0, "in x", "over middle") + task(0, "no t", "inout y"),
        allocation(32) + task(0, "in x", "over end") + task(0, "no t", "inout y"),
    ),
    "scalar stores of blocks": (
        "PTO-G101",
        "{ CoreTaskArgs a; a.add_no_dep(y); a.launch_spec.n = 4; vector_task(4, a); }\n"
        + task(0, "in x", "no y"),
        "{ CoreTaskArgs a; a.add_inout(y); a.launch_spec.n = 4; vector_task(4, a); }\n"
        + task(0, "in x", "inout y"),
    ),
    "a manual chain that skips a task": (
        "PTO-G101",
        CHAIN + task(0, "in y", "over info", after="p"),
        CHAIN + task(0, "in y", "over info", after="q"),
    ),
    "a manual join that waits for one of two": (
        "PTO-G101",
        JOIN.replace("AND", ""),
        JOIN.replace("AND", "a.after(q.id);"),
    ),
    "a manual write after read": (
        "PTO-G101",
        MANUAL
        + READ_Y
        + task(0, "in x", "over info", name="q")
        + task(0, "in x", "over y", after="q"),
        MANUAL
        + READ_Y
        + task(0, "in x", "over info", name="q")
        + task(0, "in x", "over y", after="p q"),
    ),
    "a manual pair without an edge": (
        "PTO-G101",
        MANUAL + WRITE + task(0, "in p.get_ref(0)", "inout y"),
        MANUAL + WRITE + task(0, "in p.get_ref(0)", "inout y", after="p"),
    ),
    "a barrier that nobody waits for": (
        "PTO-G101",
        BARRIER + task(0, "in p.get_ref(0)", "inout y"),
        BARRIER + task(0, "in p.get_ref(0)", "inout y", after="q"),
    ),
    "an output declared as an input": (
        "PTO-G105",
        task(0, "in x", "in y"),
        task(0, "in x", "inout y"),
    ),
    "a reader behind an output declared as an input": (
        "PTO-G101",
        task(0, "in x", "in y") + task(0, "in y", "over info"),
        task(0, "in x", "inout y") + task(0, "in y", "over info"),
    ),
    "an accumulator declared as an input": (
        "PTO-G105",
        task(2, "in x", "in y"),
        task(2, "in x", "inout y"),
    ),
    "a scope ended early": (
        "PTO-G104",
        NAMES + SCOPED.format(WRITE, "", USE_KEPT),
        NAMES + SCOPED.format(WRITE, USE_KEPT, ""),
    ),
    "an inner scope ended early": (
        "PTO-G104",
        NAMES + "{ Scope outer; " + SCOPED.format(WRITE, "", USE_KEPT) + " }",
        NAMES + "Scope outer; " + WRITE + "const ChipTensor* kept = &p.get_ref(0);" + USE_KEPT,
    ),
    "a tensor that nobody wrote": (
        "PTO-G102",
        allocation(16, defined=False) + task(0, "in t", "inout y"),
        allocation(16, defined=False) + task(0, "in x", "inout t") + task(0, "in t", "inout y"),
    ),
    "a tensor read before it is written": (
        "PTO-G102",
        allocation(16, defined=False) + task(0, "in t", "inout y") + task(0, "in x", "inout t"),
        allocation(16, defined=False) + task(0, "in x", "inout t") + task(0, "in t", "inout y"),
    ),
    "the other half of a tensor": (
        "PTO-G102",
        allocation(32, defined=False)
        + task(0, "in x", "inout top")
        + task(0, "in middle", "inout y"),
        allocation(32, defined=False) + task(0, "in x", "inout top") + task(0, "in top", "inout y"),
    ),
    "an accumulator without a start": (
        "PTO-G102",
        allocation(16, defined=False) + task(2, "in x", "inout t"),
        allocation(16) + task(2, "in x", "inout t"),
    ),
    "an output that is never written": (
        "PTO-G103",
        task(2, "in x", "inout y", "over info"),
        task(2, "in x", "inout y"),
    ),
    "columns that overlap": (
        "PTO-G101",
        allocation(32) + columns("no", 0) + columns("no", 32),
        allocation(32) + columns("no", 0) + columns("no", 64),
    ),
    "atomic updates and a store in columns that overlap": (
        "PTO-G101",
        allocation(32) + columns("no", 0, atomic=1) * 2 + columns("no", 32),
        allocation(32) + columns("no", 0, atomic=1) * 2 + columns("no", 64),
    ),
    "a predicate read while its tensor is written": (
        "PTO-G101",
        NAMES
        + task(0, "in x", "inout y", name="p")
        + task(0, "in x", "over info", more=when(1000)),
        NAMES
        + task(0, "in x", "inout y", name="p")
        + task(0, "in x", "over info", more=when(1000), after="p"),
    ),
    "a predicate of a task that is left out": (
        "PTO-G101",
        NAMES + task(0, "in x", "over y") + task(0, "in x", "over info", more=when(999)),
        NAMES + task(0, "in x", "over info") + task(0, "in x", "over info", more=when(999)),
    ),
    "a predicated store beside a reader": (
        "PTO-G101",
        allocation(16) + task(0, "in x", "no t", more=when(1000)) + task(0, "in t", "over info"),
        allocation(16) + task(0, "in x", "no t", more=when(999)) + task(0, "in t", "over info"),
    ),
    "a reader that does not wait for the task left out before it": (
        "PTO-G101",
        skipped_between(after=""),
        skipped_between(after="q"),
    ),
    "the second lane of a task": (
        "PTO-G101",
        allocation(32) + columns("no", 0, step=64, lanes=2) + columns("no", 64),
        allocation(32) + columns("no", 0, step=64, lanes=1) + columns("no", 64),
    ),
    "lanes of one task that overlap": (
        "PTO-R013",
        allocation(32) + columns("no", 0, step=32, lanes=2),
        allocation(32) + columns("no", 0, step=64, lanes=2),
    ),
    "blocks of one task that overlap": (
        "PTO-R023",
        allocation(32) + columns("no", 0, step=32, blocks=2),
        allocation(32) + columns("no", 0, step=64, blocks=2),
    ),
    "a block beside another task": (
        "PTO-G101",
        allocation(32) + columns("no", 0, step=64, blocks=2) + columns("no", 64),
        allocation(32) + columns("no", 0, step=64, blocks=1) + columns("no", 64),
    ),
    "a predicate that scalar code sets to 0": (
        "PTO-G102",
        gated(task(0, "in x", "inout y", name="p")),
        gated(task(10, "inout t", name="p")),
    ),
    "a host read of a column that a task stores": (
        "PTO-G101",
        allocation(32) + columns("no", 64) + host_reads(row=1),
        allocation(32) + columns("no", 64) + host_reads(row=0),
    ),
    "a scope ended before another": (
        "PTO-G104",
        NAMES + SCOPED.format(WRITE, "", SECOND_SCOPE + USE_KEPT),
        NAMES + SCOPED.format(WRITE, USE_KEPT, SECOND_SCOPE),
    ),
    "a store at an address given as a number": ("PTO-G101", address(after=""), address(after="p")),
    "an empty task that waits for one of two": ("PTO-G101", joined("p"), joined("p q")),
}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphProcess]:
    folder = tmp_path_factory.mktemp("faults")
    bodies = [text for _, *both in FAULTS.values() for text in both]
    made = GraphProcess(sources.written(folder, bodies, sources.kernels(folder)))
    yield made
    made.end()


@pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_its_twin_is_not(process: GraphProcess, name: str):
    number, code = 2 * list(FAULTS).index(name), FAULTS[name][0]
    found, right = (
        process.run(sources.tensors("in", "inout", body=number + n), watched=True).findings
        for n in (0, 1)
    )
    assert code in [d.code for d in found], name
    assert code not in [d.code for d in right], name
    assert [d for d in right if d.severity == "error" or d.code == "PTO-G103"] == []


@pytest.mark.parametrize(("heap", "severity"), [(8192, "warning"), (4096, "error")])
def test_memory_of_an_ended_scope_has_another_owner_when_the_heap_has_gone_round(
    process: GraphProcess, heap: int, severity: str
):
    """Two scopes create 4,096 bytes each; the tensor of the first is used after the second."""
    number = 2 * list(FAULTS).index("a scope ended before another")
    source = replace(process.source, settings={"ring_heap": heap})
    with GraphProcess(source) as small:
        found = small.run(sources.tensors("in", "inout", body=number), watched=True).findings
        right = small.run(sources.tensors("in", "inout", body=number + 1), watched=True).findings
    assert [(d.code, d.severity) for d in found] == [("PTO-G104", severity)]
    assert right == []


def test_a_run_tells_that_a_card_would_wait_for_ever(process: GraphProcess):
    """Nothing is watched. A task creates 4,096 bytes."""
    number = 2 * list(FAULTS).index("a scope ended early") + 1
    for heap, codes in ((2048, ["PTO-G006"]), (4096, [])):
        source = replace(process.source, settings={"ring_heap": heap})
        with GraphProcess(source) as small:
            found = small.run(sources.tensors("in", "inout", body=number)).findings
        assert [d.code for d in found] == codes


@pto.kernel(profile="a5")
def add_one(x: F, y: F):
    pto.store(y, pto.load(x, 8, 64) + 1.0)


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(np.zeros((16, 64), np.float32) for _ in range(3))  # type: ignore[return-value]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("kind", ["read after write", "write after read", "two writes", "slices"])
def test_python_graphs(kind: str, right: bool):
    a, b, c = arrays()
    g = pto.graph("explicit")
    first = {
        "read after write": (a[:8], b[:8]),
        "write after read": (b[:8], c[:8]),
        "two writes": (a[:8], b[:8]),
        "slices": (a[:8], b[4:12]),
    }[kind]
    second = {
        "read after write": (b[:8], c[:8]),
        "write after read": (a[:8], b[:8]),
        "two writes": (c[:8], b[:8]),
        "slices": (b[:8], c[:8]),
    }[kind]
    one = g.submit(add_one, *first)
    g.submit(add_one, *second, after=[one] if right else [])
    assert [d.code for d in g.check()] == ([] if right else ["PTO-G101"])
