"""Scenes of several chips: the Python names with which they submit graphs, and their runner.

A worker collects the submissions of an orchestration in Python, and runs them in one child process.
Buffers are in the parent; the child has copies of them during a run.
"""

from __future__ import annotations

import hashlib
import inspect
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.graphs.process import (
    Address,
    ArgTensor,
    Argument,
    GraphProcess,
    GraphSource,
    RankContext,
    Submission,
)
from pto.graphs.scene_names import (
    DataType,
    Scalar,
    SceneTestCase,
    TaskArgsBuilder,
    scalar_to_uint64,
    torch_bytes,
    torch_dtype_to_datatype,
)


class TensorArgType(IntEnum):
    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4


_USES = ("in", "out", "inout", "out", "inout")  # of these
_TAGS = {"in": TensorArgType.INPUT, "out": TensorArgType.OUTPUT_EXISTING}


class CallConfig(SimpleNamespace):
    """How a graph is run: sizes of rings; the rest is of the card."""

    def __init__(self, **options: Any) -> None:
        super().__init__(runtime_env=SimpleNamespace(), **options)


@dataclass
class CommBufferSpec:
    """A named part of the window of each rank."""

    name: str
    dtype: str
    count: int
    nbytes: int
    load_from_host: bool = False
    store_to_host: bool = False


@dataclass(eq=False)
class Buffer:
    """Bytes that a submission may use."""

    data: npt.NDArray[np.uint8]
    start: int = 0  # in `whole`
    whole: npt.NDArray[np.uint8] | None = None  # the window that this is a part of

    @property
    def base(self) -> Address:
        return Address(self.data if self.whole is None else self.whole, self.start)

    @property
    def nbytes(self) -> int:
        return self.data.size

    @property
    def shm(self) -> SimpleNamespace:
        return SimpleNamespace(buf=self.data.data)

    def tensor(self, shapes: Sequence[int], dtype: int) -> ArgTensor:
        shape, element = tuple(shapes) or (1,), DataType(dtype).name
        return ArgTensor("", self.data, shape, element, "in", self.whole, self.start)

    def close(self) -> None:
        """Nothing to release."""


class TaskArgs:
    """Arguments of one submission."""

    def __init__(self) -> None:
        self.listed: list[Any] = []

    def add_tensor(self, view: ArgTensor, tag: TensorArgType = TensorArgType.INPUT) -> None:
        self.listed.append(replace(view, use=_USES[tag]))

    def add_scalar(self, value: Any) -> None:
        self.listed.append(value)

    @property
    def given(self) -> list[Argument]:
        kinds = (ArgTensor, Address, RankContext)
        return [e if isinstance(e, kinds) else scalar_to_uint64(e) for e in self.listed]


def _conflict(a: Submission, b: Submission) -> bool:
    """True if both use one buffer, which is no window, and one of them writes it."""
    ours, theirs = (
        [e for e in run.given if isinstance(e, ArgTensor) and e.whole is None] for run in (a, b)
    )
    return any(x.data is y.data and not x.use == y.use == "in" for x in ours for y in theirs)


class Domain:
    """Windows of equal size, one for each of some chips."""

    def __init__(self, workers: Sequence[int], size: int, specs: Sequence[CommBufferSpec]) -> None:
        self.workers = tuple(workers)
        windows = tuple(Buffer(np.zeros(size, np.uint8)) for _ in workers)
        self.contexts = {
            worker: SimpleNamespace(
                domain_rank=rank,
                domain_size=len(windows),
                device_ctx=RankContext(rank, tuple(w.data for w in windows)),
                local_window_base=windows[rank].base,
                actual_window_size=size,
                buffers=_parts(windows[rank], specs),
            )
            for rank, worker in enumerate(workers)
        }

    def __getitem__(self, worker: int) -> SimpleNamespace:
        return self.contexts[worker]

    def __enter__(self) -> Domain:
        return self

    def __exit__(self, *error: object) -> None:
        """The windows live until the run has ended."""


def _parts(window: Buffer, specs: Sequence[CommBufferSpec]) -> dict[str, Buffer]:
    parts, start = dict[str, Buffer](), 0
    for spec in specs:
        parts[spec.name] = Buffer(window.data[start : start + spec.nbytes], start, window.data)
        start += spec.nbytes
    return parts


@dataclass
class Orchestrator:
    """The interface that an orchestration in Python calls."""

    programs: Sequence[GraphSource]
    run: Callable[[Sequence[Submission]], None]
    waiting: list[Submission] = field(default_factory=list[Submission])

    def submit_next_level(
        self, program: GraphSource, args: TaskArgs, config: Any = None, worker: int = 0
    ) -> None:
        submission = Submission(args.given, self.programs.index(program), worker)
        submission.after = [
            n for n, earlier in enumerate(self.waiting) if _conflict(submission, earlier)
        ]
        self.waiting.append(submission)

    def submit_next_level_group(
        self,
        program: GraphSource,
        args: Sequence[TaskArgs],
        config: Any = None,
        workers: Sequence[int] = (),
    ) -> None:
        for task_args, worker in zip(args, workers or range(len(args)), strict=True):
            self.submit_next_level(program, task_args, config, worker)

    def submit_sub(self, function: Callable[[TaskArgs], None], args: TaskArgs) -> None:
        """A function of the host, after everything submitted before it."""
        self.drain()
        function(args)

    def allocate_domain(
        self,
        *,
        name: str,
        workers: Sequence[int],
        window_size: int,
        buffers: Sequence[CommBufferSpec] = (),
    ) -> Domain:
        return Domain(workers, window_size, buffers)

    def drain(self) -> None:
        if self.waiting:
            self.run(self.waiting)
            self.waiting = []


class Callables:
    """The programs and functions of a scene by name, and each program's signature."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.__dict__.update(entries)

    def keep(self, *objects: object) -> None:
        """Everything is kept anyway."""


class Worker:
    """Several chips: runs what orchestrations in Python submit."""

    def __init__(self, programs: Sequence[GraphSource], seconds: float) -> None:
        self._programs = programs
        self._process = GraphProcess(*programs)
        self._seconds = seconds
        self.begin(None)
        self.start, self.end = self._process.start, self._process.end

    def begin(self, seed: int | None) -> None:
        """Begin a run of a scene: the order of tasks by seed, the same random inputs each time."""
        self._seed = seed
        self.tasks = self.edges = 0
        self.results: list[tuple[bytes, bytes]] = []  # digests of tensors before and after graphs
        random.seed(0)
        np.random.seed(0)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(0)

    def create_buffer(self, nbytes: int) -> Buffer:
        return Buffer(np.zeros(nbytes, np.uint8))

    def run(self, function: Callable[..., None], args: Any = None, config: Any = None) -> None:
        """Call an orchestration in Python and run what it submits."""
        orchestrator = Orchestrator(self._programs, self._execute)
        function(orchestrator, args, config)
        orchestrator.drain()

    def _execute(self, runs: Sequence[Submission]) -> None:
        before = _digest(runs)
        ran = self._process.act("together", runs, self._seconds, seed=self._seed)
        self.results.append((before, _digest(runs)))
        self.tasks += ran.tasks
        self.edges += ran.edges


def _digest(runs: Sequence[Submission]) -> bytes:
    """A digest of all tensors of these graphs."""
    digest = hashlib.sha256()
    for run in runs:
        for argument in run.given:
            if isinstance(argument, ArgTensor):
                digest.update(argument.data.tobytes())
    return digest.digest()


# ---- names of `simpler_setup.scene_test`


def _rehosted_ref_for(args: TaskArgsBuilder, tensor: Any) -> ArgTensor:
    """A view of a tensor of the arguments; views of one tensor have one buffer."""
    buffers: dict[int, Buffer] = args.__dict__.setdefault("buffers", {})
    buffer = buffers.setdefault(tensor.data_ptr(), Buffer(torch_bytes(tensor)))
    return buffer.tensor(tensor.shape, torch_dtype_to_datatype(tensor.dtype))


def _rehosted_ref(args: TaskArgsBuilder, name: str) -> ArgTensor:
    return _rehosted_ref_for(args, getattr(args, name))


def _build_l3_task_args(
    args: TaskArgsBuilder, signature: Sequence[Any], worker: Any = None
) -> tuple[TaskArgs, list[str]]:
    """The arguments of a scene as those of one submission, and the names of its outputs."""
    task_args, outputs = TaskArgs(), list[str]()
    uses = iter(signature)
    for spec in args.specs:
        if isinstance(spec, Scalar):
            task_args.add_scalar(spec.value)
            continue
        use = next(uses).value
        task_args.add_tensor(_rehosted_ref(args, spec.name), _TAGS.get(use, TensorArgType.INOUT))
        outputs += [] if use == "in" else [spec.name]
    return task_args, outputs


# ---- one case


def run_case(
    test: SceneTestCase,
    case: Mapping[str, Any],
    programs: Mapping[str, GraphSource],
    worker: Worker,
) -> None:
    """Run a case of several chips; raises AssertionError for wrong results."""
    params = case.get("params", {})
    specs = {entry["name"]: entry for entry in test.CALLABLE["callables"]}
    functions = {n: s["callable"] for n, s in specs.items() if "callable" in s}
    signatures = {f"{n}_sig": specs[n]["orchestration"].get("signature", ()) for n in programs}
    names = Callables({**programs, **signatures, **functions})

    def run() -> None:
        args = test.generate_args(params)
        golden = args.clone()
        test.compute_golden(golden, params)
        orchestration = test.CALLABLE["orchestration"]
        worker.run(lambda orch, _args, _config: orchestration(orch, names, args, CallConfig()))
        if not (case.get("skip_golden") or test.SKIP_GOLDEN):
            test.compare_outputs(args, golden, args.tensor_names(), params)

    test.run_case = run
    type(test)._st_chip_handles = programs  # type: ignore[attr-defined]
    fixtures: dict[str, Any] = {"st_platform": "a2a3sim", "st_worker": worker, "request": None}
    wanted = inspect.signature(test.test_run).parameters
    test.test_run(**{name: value for name, value in fixtures.items() if name in wanted})


INTERFACE = (TensorArgType, CallConfig, CommBufferSpec, TaskArgs)
SETUP = (_rehosted_ref_for, _rehosted_ref, _build_l3_task_args)
