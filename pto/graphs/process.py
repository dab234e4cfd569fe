"""Graphs in their child process: the sources to compile, and the requests to the process."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from pto.core.errors import Note, PtoError, fail
from pto.cxx import compiler
from pto.cxx.child import SECONDS, Child
from pto.graphs.model import Task
from pto.graphs.runs import Ran

Kernels = Literal["all", "some", "none"]  # that are compiled; some: those that can be
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One kernel of a graph, as its author wrote it."""

    number: int
    name: str
    path: Path
    core: str  # aic, aiv
    include: tuple[Path, ...] = ()


SIDES = {"aic": "cube", "aiv": "vector"}
_DEFERRED = "pto_async_kernel_api.h"  # a kernel with this header may end its task later
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
        listed_kernels = tuple(_listed(kernel, base) for kernel in kernels)
        path = (base / _named("the orchestration", orchestration, "source")).resolve()
        entry = orchestration.get("function_name", "aicpu_orchestration_entry")
        return cls(path, entry, profile, listed_kernels, root, runtime, settings or {})

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

    def program(self, kernels: Kernels) -> dict[str, Any]:
        """The builds, as the child loads them."""
        sim = self.root / "src" / "common" / "platform" / "sim"
        more = [sim / name for name in _PLATFORM if (sim / name).is_file()]
        extra = f"#define PTO_GRAPH_ENTRY {self.entry}\n{included('runtime.inc')}"
        self._require_runtime()
        built = self._built([self.path, *more], "both", self.include, extra, self.entry)
        listed = {k.number: (k.name, SIDES[k.core], self._kernel(k, kernels)) for k in self.kernels}
        facts = {"profile": self.profile, "runtime": self.runtime, "settings": self.settings}
        return {"build": built, "source": str(self.path), "kernels": listed, **facts}

    def _kernel(self, kernel: KernelSource, wanted: Kernels) -> str:
        """The build of a kernel; empty without one."""
        if wanted == "none":
            return ""
        try:
            include = (*kernel.include, *self.kernel_include)
            ends_later = kernel.path.is_file() and _DEFERRED in kernel.path.read_text(
                errors="replace"
            )
            names = ("deferred.inc", "task.inc") if ends_later else ("task.inc",)
            extra = "".join(f"\n{included(name)}" for name in names)
            return self._built([kernel.path], SIDES[kernel.core], include, extra, "kernel_entry")
        except PtoError:
            if wanted == "all":
                raise
            return ""

    def _built(
        self, sources: Sequence[Path], side: str, include: Sequence[Path], extra: str, entry: str
    ) -> str:
        path = sources[0]
        if not path.is_file():
            raise fail("PTO-U248", f"there is no file {path}")
        try:
            return str(compiler.Build(sources, self.profile, side, include, extra=extra).made())
        except PtoError:
            if re.search(rf"\b{re.escape(entry)}\b", path.read_text(errors="replace")):
                raise
            raise fail("PTO-U327", f"{path} has no function {entry}") from None

    def _require_runtime(self) -> None:
        home = self.root / "src" / self.profile / "runtime"
        if home.is_dir() and not (home / self.runtime).is_dir():
            runtimes = ", ".join(sorted(p.name for p in home.iterdir() if (p / "runtime").is_dir()))
            message = f"{home} has no runtime {self.runtime!r}; it has {runtimes}"
            raise fail("PTO-U321", message)


def _listed(kernel: Mapping[str, Any], base: Path) -> KernelSource:
    """A kernel as a scene test lists it."""
    source = Path(_named("a kernel", kernel, "source"))
    core = _named(f"the kernel {source.stem}", kernel, "core_type")
    if core not in SIDES:
        message = f"the kernel {source.stem} has core_type {core!r}; it must be aic or aiv"
        raise fail("PTO-U327", message)
    return KernelSource(
        _named(f"the kernel {source.stem}", kernel, "func_id"),
        kernel.get("name") or source.stem,
        (base / source).resolve(),
        core,
        tuple(base / os.path.expandvars(d) for d in kernel.get("extra_include_dirs") or ()),
    )


def _named(whose: str, entries: Mapping[str, Any], key: str) -> Any:
    if key not in entries:
        raise fail("PTO-U327", f"{whose} has no {key!r}; it has {', '.join(entries)}")
    return entries[key]


def included(name: str) -> str:
    """C++ that is compiled behind a source."""
    return files("pto.graphs").joinpath(name).read_text(encoding="utf-8")


@dataclass(slots=True)
class ArgTensor:
    """An argument of a graph: bytes with a shape. Bytes with stride 0 have no values."""

    name: str
    data: Bytes
    shape: tuple[int, ...]
    element: str  # as the runtime names it: FLOAT32
    use: str = "in"
    whole: Bytes | None = None  # the buffer that `data` is a part of
    start: int = 0  # in the whole buffer


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a byte of a buffer, which the child knows."""

    buffer: Bytes
    start: int = 0


@dataclass(frozen=True, slots=True)
class RankContext:
    """The address of a record with the rank and the windows of all ranks."""

    rank: int
    windows: tuple[Bytes, ...]


Argument = ArgTensor | Address | RankContext | int


@dataclass(slots=True)
class Submission:
    """One graph on one chip."""

    given: Sequence[Argument]
    program: int = 0
    chip: int = 0
    after: Sequence[int] = ()  # submissions that must have ended


class GraphProcess(Child):
    """A child process with one graph, or with the graphs of several chips."""

    MODULE = "pto.graphs.worker"

    def __init__(self, *sources: GraphSource, kernels: Kernels = "all") -> None:
        self.source = sources[0]
        self._programs = [source.program(kernels) for source in sources]
        paths = [p["build"] for p in self._programs]
        paths += [path for p in self._programs for _, _, path in p["kernels"].values() if path]
        super().__init__({path: Path(path) for path in paths}, self.source.profile)

    def _loaded(self) -> Mapping[str, Any]:
        return {"programs": self._programs}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.end()

    def _doing(self, note: str) -> tuple[str, tuple[Note, ...]]:
        if not note:
            return "the orchestration", ()
        from pto.graphs.orchestration import CallChain

        number, name, build, source, *frames = json.loads(note)
        where = CallChain(Path(build), Path(source), tuple(frames))
        task = Task(number, "task", (None, None, None), name, where=where)
        return "the kernel", (task.submitted("in {}, submitted here"),)

    def start(self) -> None:
        """Start the process now, with the modules that Python finds now."""
        if self._peer is None:
            self._start()

    def act(
        self, action: str, runs: Sequence[Submission], seconds: float = SECONDS, **options: Any
    ) -> Any:
        """Send the name of an action with the buffers in a file; a run changes their bytes."""
        buffers = _Buffers()
        listed = [
            {
                "program": run.program,
                "chip": run.chip,
                "after": run.after,
                "given": [buffers.described(argument) for argument in run.given],
            }
            for run in runs
        ]
        with tempfile.NamedTemporaryFile(prefix="pto-graph-") as file:
            with Path(file.name).open("wb") as out:
                for array in buffers.filled:
                    out.write(array.tobytes())
            sizes = [(array.size, _has_values(array)) for array in buffers.arrays]
            payload = {"buffers": sizes, "runs": listed, "file": file.name}
            answer = self.ask("act", seconds, action=action, options=options, **payload)
            if action in ("run", "together"):
                with Path(file.name).open("rb") as back:
                    for array in buffers.filled:
                        array[:] = np.fromfile(back, np.uint8, array.size)
        return answer

    def run(self, arguments: Sequence[Argument], seconds: float = SECONDS, **options: Any) -> Ran:
        """Run on these tensors and change their bytes in place; options of `RunnableGraph.run`."""
        return self.act("run", [Submission(arguments)], seconds, **options)


class _Buffers:
    """The buffers of a request, each once."""

    def __init__(self) -> None:
        self.arrays: list[Bytes] = []
        self._numbers: dict[int, int] = {}

    @property
    def filled(self) -> list[Bytes]:
        return [array for array in self.arrays if _has_values(array)]

    def _number(self, array: Bytes) -> int:
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._numbers[id(array)]

    def described(self, argument: Argument) -> dict[str, Any]:
        if isinstance(argument, int):
            return {"word": argument}
        if isinstance(argument, RankContext):
            windows = [*map(self._number, argument.windows)]
            return {"rank": argument.rank, "windows": windows, "size": argument.windows[0].size}
        if isinstance(argument, Address):
            return {"buffer": self._number(argument.buffer), "offset": argument.start}
        number = self._number(argument.data if argument.whole is None else argument.whole)
        facts = {
            "shape": argument.shape,
            "element": argument.element,
            "use": argument.use,
            "name": argument.name,
        }
        return {"buffer": number, "offset": argument.start, **facts}


def _has_values(array: Bytes) -> bool:
    return bool(array.strides[0])
