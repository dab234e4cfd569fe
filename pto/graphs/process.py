"""A graph in its child process: the sources to compile, and the requests to the process."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, PtoError, fail
from pto.cxx import compiler
from pto.cxx.child import SECONDS, Child, unpacked
from pto.graphs.launch import DEFERRED, DEFERRED_API, ENTRY, SIDES

Kernels = Literal["all", "some", "none"]  # that are compiled; some: those that can be
USES = {"in": 0, "out": 1, "inout": 2}
# Numbers of cube and vector cores of each profile's chip, as a runtime reports them.
CORES = {"a2a3": (24, 48), "a5": (36, 72)}


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One kernel of a graph, as its author wrote it."""

    number: int
    name: str
    path: Path
    core: str  # aic, aiv
    include: tuple[Path, ...] = ()


_PLATFORM = ("aicpu/cache_ops.cpp", "aicpu/device_time.cpp")  # of a host, below platform/sim


@dataclass(frozen=True, slots=True)
class GraphSource:
    """An orchestration and its kernels, and the checkout with the headers of their runtime."""

    path: Path
    entry: str
    profile: str
    kernels: tuple[KernelSource, ...]
    root: Path
    runtime: str = "tensormap_and_ringbuffer"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # sizes of its rings

    @classmethod
    def listed(
        cls,
        orchestration: Mapping[str, Any],
        kernels: Iterable[Mapping[str, Any]],
        profile: str,
        root: Path,
        runtime: str,
        base: Path = Path(),
        settings: Mapping[str, Any] | None = None,
    ) -> GraphSource:
        """Sources as a scene test and a folder of pypto list them, relative to a folder."""
        own = tuple(
            KernelSource(
                k["func_id"],
                k.get("name") or Path(k["source"]).stem,
                (base / k["source"]).resolve(),
                k["core_type"],
                tuple(base / os.path.expandvars(d) for d in k.get("extra_include_dirs") or ()),
            )
            for k in kernels
        )
        path = (base / orchestration["source"]).resolve()
        entry = orchestration.get("function_name", "aicpu_orchestration_entry")
        return cls(path, entry, profile, own, root, runtime, settings or {})

    @property
    def include(self) -> tuple[Path, ...]:
        """Folders with headers of the runtime."""
        src = self.root / "src"
        home, common = src / self.profile / "runtime" / self.runtime, src / "common"
        return (
            *(home / "runtime", home / "common", home / "orchestration"),
            *(common / "task_interface", common, src / self.profile / "platform" / "include"),
            *(common / "platform" / "include", common / "log" / "include"),
        )

    @property
    def kernel_include(self) -> tuple[Path, ...]:
        return (self.root / "simpler_setup" / "incore", *self.include[:-1])

    @property
    def more(self) -> list[Path]:
        """Sources of the runtime that the orchestration is linked with."""
        sim = self.root / "src" / "common" / "platform" / "sim"
        return [sim / name for name in _PLATFORM if (sim / name).is_file()]


@dataclass(slots=True)
class ArgTensor:
    """An argument of a graph: bytes with a shape. Bytes with stride 0 have no values."""

    name: str
    data: npt.NDArray[np.uint8]
    shape: tuple[int, ...]
    element: str  # as the runtime names it: FLOAT32
    use: str = "in"


@dataclass(slots=True)
class Ran:
    """The result of a run of a graph."""

    tasks: int
    skipped: int
    edges: int
    seconds: float
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    needless: int = 0  # edges that no data needs


@dataclass(slots=True)
class Dry:
    """The size of a submitted graph, and the findings about its declarations."""

    tasks: int
    edges: int
    seconds: float
    slots: int  # of one ring, held at one time
    heap: int  # bytes of one ring, held at one time
    undecided: int  # pairs of tasks that only values decide
    assumed: int  # values of tasks that the orchestration read as 0
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])


class GraphProcess(Child):
    """A child process with one graph."""

    MODULE = "pto.graphs.worker"

    def __init__(self, source: GraphSource, kernels: Kernels = "all") -> None:
        self.source = source
        built = _orchestration(source)
        self._kernels = {
            str(k.number): (k.name, SIDES[k.core], _path(source, k, kernels))
            for k in source.kernels
        }
        paths = {"orchestration": built}
        paths |= {f"kernel {n}": Path(k[2]) for n, k in self._kernels.items() if k[2]}
        super().__init__(paths, source.profile)

    def _load_request(self) -> Mapping[str, Any]:
        return {"do": "load", **self.program}

    @property
    def program(self) -> dict[str, Any]:
        """The builds that the child loads."""
        orchestration = {
            "build": str(self.builds["orchestration"]),
            "source": str(self.source.path),
        }
        return {
            "orchestration": orchestration,
            "kernels": self._kernels,
            "profile": self.source.profile,
            "cores": CORES[self.source.profile],
        }

    @contextmanager
    def _asked(
        self, what: str, arguments: Sequence[ArgTensor | int], seconds: float, **more: Any
    ) -> Generator[tuple[list[dict[str, Any]], dict[str, Any], Path]]:
        """Send a request with the tensors in a file; yields arguments, answer and file."""
        with tempfile.NamedTemporaryFile(prefix="pto-graph-") as file:
            given = _listed(arguments, Path(file.name))
            request = {"do": what, "given": given, "file": file.name, **more}
            yield given, self.ask(request, seconds), Path(file.name)

    def run(
        self,
        arguments: Sequence[ArgTensor | int],
        seed: int | None = None,
        seconds: float = SECONDS,
        watched: bool = False,
    ) -> Ran:
        """Run on these tensors and change their bytes in place."""
        what, more = ("sanitize", self._limits) if watched else ("run", dict[str, Any]())
        with self._asked(what, arguments, seconds, seed=seed, **more) as (given, answer, file):
            raw = np.fromfile(file, np.uint8)
        for each, argument in zip(given, arguments, strict=True):
            if isinstance(argument, ArgTensor):
                argument.data[:] = raw[each["at"] : each["at"] + each["size"]]
        found = [unpacked(d) for d in answer.pop("findings")]
        return Ran(**answer, findings=found)

    @property
    def _limits(self) -> dict[str, Any]:
        return {"runtime": self.source.runtime, "settings": self.source.settings}

    def dry(self, arguments: Sequence[ArgTensor | int], seconds: float = SECONDS) -> Dry:
        """Run the orchestration alone; tensors need no values."""
        with self._asked("dry", arguments, seconds, **self._limits) as (_, answer, _):
            found = [unpacked(d) for d in answer.pop("findings")]
        return Dry(**answer, findings=found)

    def record(
        self,
        arguments: Sequence[ArgTensor | int],
        folder: Path,
        seconds: float = SECONDS,
        kept: int | None = None,
    ) -> int:
        """Run and keep what each task leaves behind in a folder, for `diff`; returns the tasks.

        One task can also be kept with its inputs, for `extract`.
        """
        more = {"folder": str(folder), "kept": kept}
        with self._asked("record", arguments, seconds, **more) as (_, answer, _):
            return answer["tasks"]

    def time(
        self,
        arguments: Sequence[ArgTensor | int],
        device: str | None = None,
        edges: bool = False,
        seconds: float = SECONDS,
    ) -> dict[str, Any]:
        """When each task runs on a chip, as data for `swimlane`; `edges` also runs every task."""
        more = {**self._limits, "device": device, "edges": edges}
        with self._asked("time", arguments, seconds, **more) as (_, _, file):
            return json.loads(file.read_text(encoding="utf-8"))


def _listed(arguments: Sequence[ArgTensor | int], file: Path) -> list[dict[str, Any]]:
    """Describe arguments; the bytes of tensors go to the file one after another."""
    listed: list[dict[str, Any]] = []
    at = 0
    with file.open("wb") as out:
        for each in arguments:
            if isinstance(each, int):
                listed.append({"word": each})
                continue
            size = each.data.size
            has_values = bool(each.data.strides[0])
            where = at if has_values else None
            described = {"at": where, "size": size, "shape": each.shape, "name": each.name}
            listed.append({**described, "element": each.element, "use": USES[each.use]})
            if has_values:
                out.write(each.data.tobytes())
                at += size
    return listed


def _orchestration(source: GraphSource) -> Path:
    if not source.path.is_file():
        raise fail("PTO-U248", f"there is no file {source.path}")
    text = files("pto.graphs").joinpath("runtime.inc").read_text(encoding="utf-8")
    extra = f"#define PTO_GRAPH_ENTRY {source.entry}\n{text}"
    return compiler.build(
        [source.path, *source.more], source.profile, "both", include=source.include, extra=extra
    )


def _path(source: GraphSource, kernel: KernelSource, wanted: Kernels) -> str:
    """The build of a kernel; empty without one."""
    if wanted == "none":
        return ""
    try:
        return str(_kernel(source, kernel))
    except PtoError:
        if wanted == "all":
            raise
        return ""


def _kernel(source: GraphSource, kernel: KernelSource) -> Path:
    if not kernel.path.is_file():
        raise fail("PTO-U248", f"there is no file {kernel.path}")
    text = kernel.path.read_text(encoding="utf-8", errors="replace")
    return compiler.build(
        [kernel.path],
        source.profile,
        SIDES[kernel.core],
        include=(*kernel.include, *source.kernel_include),
        extra=DEFERRED + ENTRY if DEFERRED_API in text else ENTRY,
    )
