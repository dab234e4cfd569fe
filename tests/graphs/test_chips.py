"""Graphs on several chips whose kernels wait for each other; values worked out by hand."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.graphs.chips import (
    Buffer,
    CommBufferSpec,
    Domain,
    Orchestrator,
    TaskArgs,
    TensorArgType,
    Worker,
)
from pto.graphs.process import KernelSource
from pto.graphs.scene_names import DataType

from . import sources

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)
# Stores x in the other rank's window, signals it, and waits for the signal of the other.
_EXCHANGE = """
    struct Context { uint64_t space, bytes; uint32_t rank, ranks; uint64_t size, windows[64]; };
    const Context* c = (const Context*)args[2];
    const uint64_t mine = c->windows[c->rank], other = c->windows[1 - c->rank];
    Part x(at(args[0])), theirs((float*)other);
    TLOAD(a, x);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(theirs, a);
    pipe_barrier(PIPE_ALL);
    comm::Signal to((int32_t*)(other + 4096)), own((int32_t*)(mine + 4096));
    comm::TNOTIFY(to, 1, comm::NotifyOp::Set);
    comm::TWAIT(own, 1, comm::WaitCmp::GE);
"""
# Ends when the signal of its own window is 1; its task counts as running until then.
_DEFERRED = """
    struct Context { uint64_t space, bytes; uint32_t rank, ranks; uint64_t size, windows[64]; };
    const Context* c = (const Context*)args[2];
    end_at(args, (int32_t*)(c->windows[c->rank] + 4096), 1);
"""
# Stores x in the other rank's window and signals it.
_SEND = _EXCHANGE[: _EXCHANGE.rindex("comm::TWAIT")]
_BODIES = [
    "CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_scalar(given.scalar(1));"
    " vector_task(0, a);",
    "CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_scalar(5); vector_task(1, a);",
    # Waits by a deferred end, then adds 5 to what has arrived.
    "{ CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_scalar(given.scalar(1));"
    " vector_task(2, a); }"
    " CoreTaskArgs b; b.add_input(y); b.add_inout(y); b.add_scalar(5); vector_task(1, b);",
    "CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_scalar(given.scalar(1));"
    " vector_task(3, a);",
    "Scope manual(PTO2ScopeMode::MANUAL);"
    " { CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_scalar(1); vector_task(1, a); }"
    " { CoreTaskArgs a; a.add_input(x); a.add_inout(y); a.add_scalar(2); vector_task(1, a); }",
]
_WINDOW = 8192


class Chips:
    """A worker, and how a test submits its program."""

    def __init__(self, folder: Path) -> None:
        added = next(k for k in sources.kernels(folder) if k.name == "add_number")
        deferred = '#include "pto_async_kernel_api.h"\n' + sources.kernel(_DEFERRED)
        own = (
            _written(folder, 0, "exchange", sources.kernel(_EXCHANGE)),
            KernelSource(1, "add_number", added.path, "aiv"),
            _written(folder, 2, "deferred", deferred),
            _written(folder, 3, "send", sources.kernel(_SEND)),
        )
        self.program = sources.written(folder, _BODIES, own)
        self.worker = Worker([self.program], 60.0)

    def submit(self, orch: Orchestrator, x: Buffer, y: Buffer, *scalars: Any, chip: int) -> None:
        args = TaskArgs()
        args.add_tensor(x.tensor((16, 64), DataType["FLOAT32"]), TensorArgType.INPUT)
        args.add_tensor(y.tensor((16, 64), DataType["FLOAT32"]), TensorArgType.INOUT)
        for each in scalars:
            args.add_scalar(each)
        orch.submit_next_level(self.program, args, worker=chip)

    def exchange(
        self, orch: Orchestrator, chips: tuple[int, ...], bodies: tuple[int, int] = (0, 0)
    ) -> Domain:
        """Rank n sends n + 1 from each of these chips."""
        part = CommBufferSpec("part", "float32", 1024, 4096)
        domain = orch.allocate_domain(name="d", workers=[0, 1], window_size=_WINDOW, buffers=[part])
        for chip in chips:
            x = self.worker.create_buffer(4096)
            x.data.view(np.float32)[:] = chip + 1
            own = domain[chip]
            self.submit(orch, x, own.buffers["part"], bodies[chip], own.device_ctx, chip=chip)
        return domain


def _written(folder: Path, number: int, name: str, text: str) -> KernelSource:
    path = folder / f"{name}.cpp"
    path.write_text(text)
    return KernelSource(number, name, path, "aiv")


@pytest.fixture(scope="module")
def chips(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chips]:
    made = Chips(tmp_path_factory.mktemp("chips"))
    yield made
    made.worker.end()


def test_chips_that_wait_for_each_other_both_go_on(chips: Chips):
    kept: list[Domain] = []
    chips.worker.run(lambda orch, *_: kept.append(chips.exchange(orch, (0, 1))))
    got = [kept[0][n].buffers["part"].data.view(np.float32) for n in (0, 1)]
    assert [set(values.tolist()) for values in got] == [{2.0}, {1.0}]


def test_a_task_that_defers_its_end_holds_up_the_tasks_behind_it(chips: Chips):
    """Chip 0 begins first; it may add 5 only to the 2 that chip 1 sends."""
    kept: list[Domain] = []
    chips.worker.run(lambda orch, *_: kept.append(chips.exchange(orch, (0, 1), (2, 3))))
    assert set(kept[0][0].buffers["part"].data.view(np.float32).tolist()) == {7.0}


def test_a_chip_that_waits_for_one_that_does_nothing_is_a_finding(chips: Chips):
    with pytest.raises(PtoError) as error:
        chips.worker.run(lambda orch, *_: chips.exchange(orch, (0,)) and None)
    (finding,) = error.value.diagnostics
    assert finding.code == "PTO-D110"
    assert finding.notes[-1].message == "in task 0 (exchange), submitted here"


def test_a_submission_waits_for_the_writer_of_its_buffer_on_another_chip(chips: Chips):
    """Chip 1 adds 5 to what chip 0 has made by adding 5; a host function sees the result."""
    seen: list[float] = []

    def orchestrate(orch: Orchestrator, *_: object) -> None:
        x, y, z = (chips.worker.create_buffer(4096) for _ in range(3))
        chips.submit(orch, x, y, 1, chip=0)
        chips.submit(orch, y, z, 1, chip=1)
        orch.submit_sub(lambda _: seen.append(z.data.view(np.float32)[7]), TaskArgs())

    chips.worker.run(orchestrate)
    assert seen == [10.0]


def test_tasks_of_several_chips_run_in_random_orders(chips: Chips):
    """Two tasks of one graph without an edge store 1 and 2 in y: the last one stays."""
    results, kept = set[float](), list[Domain]()
    for seed in range(8):
        chips.worker.begin(seed)

        def orchestrate(orch: Orchestrator, *_: object) -> None:
            x, y = (chips.worker.create_buffer(4096) for _ in range(2))
            chips.submit(orch, x, y, 4, chip=0)
            orch.submit_sub(lambda _: results.add(float(y.data.view(np.float32)[0])), TaskArgs())

        chips.worker.run(orchestrate)
        chips.worker.run(lambda orch, *_: kept.append(chips.exchange(orch, (0, 1))))
        got = [kept[-1][n].buffers["part"].data.view(np.float32)[0] for n in (0, 1)]
        assert got == [2.0, 1.0]
    assert results == {1.0, 2.0}
