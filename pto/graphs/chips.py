"""Scenes of several chips: the Python names with which they submit graphs, and their runner.

A worker collects the submissions of an orchestration in Python, and runs them in one child process
(`ranks.py`). Buffers are in the parent; the child has copies of them during a run.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.cxx.child import Child
from pto.graphs.process import GraphProcess, GraphSource
from pto.graphs.scene_names import (
    ELEMENTS,
    DataType,
    Scalar,
    SceneTestCase,
    TaskArgsBuilder,
    scalar_to_uint64,
)


class TensorArgType(IntEnum):
    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4


_USES = (0, 1, 2, 1, 2)  # of these: numbers of `process.USES`
_TAGS = {"in": TensorArgType.INPUT, "out": TensorArgType.OUTPUT_EXISTING}


class CallConfig(SimpleNamespace):
    """How a graph is run; nothing of it matters here."""


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
    whole: Buffer | None = None  # the window that this is a part of

    @property
    def owner(self) -> Buffer:
        return self.whole or self

    @property
    def base(self) -> Address:
        return Address(self)

    @property
    def nbytes(self) -> int:
        return self.data.size

    @property
    def shm(self) -> SimpleNamespace:
        return SimpleNamespace(buf=self.data.data)

    def tensor(self, shapes: Sequence[int], dtype: int) -> View:
        return View(self, tuple(shapes), DataType(dtype).name)

    def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True)
class View:
    """A buffer with a shape."""

    buffer: Buffer
    shape: tuple[int, ...]
    element: str


@dataclass(frozen=True)
class Address:
    """The address of a buffer, which the child knows."""

    buffer: Buffer


@dataclass(frozen=True)
class Context:
    """The address of a record with the rank and the windows of all ranks."""

    rank: int
    windows: tuple[Buffer, ...]


class TaskArgs:
    """Arguments of one submission."""

    def __init__(self) -> None:
        self.listed: list[tuple[View, int] | Any] = []

    def add_tensor(self, view: View, tag: TensorArgType = TensorArgType.INPUT) -> None:
        self.listed.append((view, _USES[tag]))

    def add_scalar(self, value: Any) -> None:
        self.listed.append(value)

    @property
    def views(self) -> list[tuple[View, int]]:
        return [each for each in self.listed if isinstance(each, tuple)]


class Domain:
    """Windows of equal size, one for each of some chips."""

    def __init__(self, workers: Sequence[int], size: int, specs: Sequence[CommBufferSpec]) -> None:
        self.workers = tuple(workers)
        windows = tuple(Buffer(np.zeros(size, np.uint8)) for _ in workers)
        self.contexts = {
            worker: SimpleNamespace(
                domain_rank=rank,
                domain_size=len(windows),
                device_ctx=Context(rank, windows),
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
    made, start = dict[str, Buffer](), 0
    for spec in specs:
        made[spec.name] = Buffer(window.data[start : start + spec.nbytes], start, window)
        start += spec.nbytes
    return made


@dataclass
class Submitted:
    """One graph on one chip."""

    program: Program
    args: TaskArgs
    chip: int


@dataclass(frozen=True)
class Program:
    """An orchestration in C++ with its kernels, as a scene names it."""

    name: str
    source: GraphSource


@dataclass
class Orchestrator:
    """The interface that an orchestration in Python calls."""

    run: Callable[[Sequence[Submitted]], None]
    waiting: list[Submitted] = field(default_factory=list[Submitted])

    def submit_next_level(
        self, program: Program, args: TaskArgs, config: Any = None, worker: int = 0
    ) -> None:
        self.waiting.append(Submitted(program, args, worker))

    def submit_next_level_group(
        self,
        program: Program,
        args: Sequence[TaskArgs],
        config: Any = None,
        workers: Sequence[int] = (),
    ) -> None:
        for each, worker in zip(args, workers or range(len(args)), strict=True):
            self.submit_next_level(program, each, config, worker)

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


class Worker(Child):
    """Several chips: runs what orchestrations in Python submit."""

    MODULE = "pto.graphs.ranks"

    def __init__(self, programs: Sequence[Program], profile: str, seconds: float) -> None:
        self._programs = [p.name for p in programs]
        self._processes = [GraphProcess(p.source) for p in programs]
        self._seconds = seconds
        self.tasks = self.edges = 0
        builds = {
            f"{p.name} {n}": path
            for p, own in zip(programs, self._processes, strict=True)
            for n, path in own.builds.items()
        }
        super().__init__(builds, profile)

    def _load_request(self) -> Mapping[str, Any]:
        return {"do": "load", "programs": [p.program for p in self._processes]}

    def begin(self) -> None:
        """Start the process now, with the modules that Python finds now."""
        if self._process is None:
            self._start()

    def create_buffer(self, nbytes: int) -> Buffer:
        return Buffer(np.zeros(nbytes, np.uint8))

    def run(self, function: Callable[..., None], args: Any = None, config: Any = None) -> None:
        """Call an orchestration in Python and run what it submits."""
        made = Orchestrator(self._execute)
        function(made, args, config)
        made.drain()

    def _execute(self, submitted: Sequence[Submitted]) -> None:
        buffers: dict[Buffer, int] = {}
        listed = [self._described(s, buffers) for s in submitted]
        for n, each in enumerate(listed):
            each["after"] = [m for m in range(n) if _depends(submitted[n], submitted[m])]
        with tempfile.NamedTemporaryFile(prefix="pto-graph-") as file:
            with Path(file.name).open("wb") as out:
                for buffer in buffers:
                    out.write(buffer.data.tobytes())
            request = {
                "do": "run",
                "buffers": [buffer.nbytes for buffer in buffers],
                "submissions": listed,
                "file": file.name,
            }
            answer = self.ask(request, self._seconds)
            raw = np.fromfile(file.name, np.uint8)
        at = 0
        for buffer in buffers:
            buffer.data[:] = raw[at : at + buffer.nbytes]
            at += buffer.nbytes
        self.tasks += answer["tasks"]
        self.edges += answer["edges"]

    def _described(self, submitted: Submitted, buffers: dict[Buffer, int]) -> dict[str, Any]:
        def number(buffer: Buffer) -> int:
            return buffers.setdefault(buffer.owner, len(buffers))

        def argument(each: Any) -> dict[str, Any]:
            if isinstance(each, tuple):
                view, use = each
                place = {"buffer": number(view.buffer), "offset": view.buffer.start, "name": ""}
                return {**place, "shape": view.shape, "element": view.element, "use": use}
            if isinstance(each, Address):
                return {"buffer": number(each.buffer), "offset": each.buffer.start}
            if isinstance(each, Context):
                size = each.windows[0].nbytes
                return {"rank": each.rank, "windows": [*map(number, each.windows)], "size": size}
            return {"word": scalar_to_uint64(each)}

        program = self._programs.index(submitted.program.name)
        given = [argument(each) for each in submitted.args.listed]
        return {"program": program, "chip": submitted.chip, "given": given}


def _depends(later: Submitted, earlier: Submitted) -> bool:
    """True if two submissions use one buffer and one of them writes it."""
    return any(
        a.buffer is b.buffer and (use or other)
        for a, use in later.args.views
        for b, other in earlier.args.views
        if a.buffer.whole is None
    )


# ---- names of `simpler_setup.scene_test`


def _rehosted_ref_for(args: TaskArgsBuilder, tensor: Any) -> View:
    """A view of a tensor of the arguments; views of one tensor have one buffer."""
    torch: Any = import_module("torch")
    kept: dict[int, Buffer] = args.__dict__.setdefault("buffers", {})
    address = tensor.data_ptr()
    if address not in kept:
        kept[address] = Buffer(tensor.view(torch.uint8).numpy().reshape(-1))
    element = ELEMENTS[str(tensor.dtype).removeprefix("torch.")]
    return View(kept[address], tuple(tensor.shape), element)


def _rehosted_ref(args: TaskArgsBuilder, name: str) -> View:
    return _rehosted_ref_for(args, getattr(args, name))


def _build_l3_task_args(
    args: TaskArgsBuilder, signature: Sequence[Any], worker: Any = None
) -> tuple[TaskArgs, list[str]]:
    """The arguments of a scene as those of one submission, and the names of its outputs."""
    made, outputs = TaskArgs(), list[str]()
    uses = iter(signature)
    for spec in args.specs:
        if isinstance(spec, Scalar):
            made.add_scalar(spec.value)
            continue
        use = next(uses).value
        made.add_tensor(_rehosted_ref(args, spec.name), _TAGS.get(use, TensorArgType.INOUT))
        outputs += [] if use == "in" else [spec.name]
    return made, outputs


# ---- one case


def run_case(
    test: SceneTestCase, case: Mapping[str, Any], programs: Sequence[Program], worker: Worker
) -> None:
    """Run a case of several chips; an AssertionError says what is wrong."""
    params = case.get("params", {})
    specs = {each["name"]: each for each in test.CALLABLE["callables"]}
    by_name = {p.name: p for p in programs}
    functions = {n: s["callable"] for n, s in specs.items() if "callable" in s}
    signatures = {f"{n}_sig": specs[n]["orchestration"].get("signature", ()) for n in by_name}
    names = Callables({**by_name, **signatures, **functions})

    def run() -> None:
        args = test.generate_args(params)
        golden = args.clone()
        test.compute_golden(golden, params)
        orchestration = test.CALLABLE["orchestration"]
        worker.run(lambda orch, _args, _config: orchestration(orch, names, args, CallConfig()))
        if not (case.get("skip_golden") or test.SKIP_GOLDEN):
            test.compare_outputs(args, golden, args.tensor_names(), params)

    test.run_case = run
    type(test)._st_chip_handles = by_name  # type: ignore[attr-defined]
    given: dict[str, Any] = {"st_platform": "a2a3sim", "st_worker": worker, "request": None}
    wanted = inspect.signature(test.test_run).parameters
    test.test_run(**{name: value for name, value in given.items() if name in wanted})


INTERFACE = (TensorArgType, CallConfig, CommBufferSpec, TaskArgs)
SETUP = (_rehosted_ref_for, _rehosted_ref, _build_l3_task_args)
