"""The machine in place of a card: the Python interface of the runtime that pypto calls.

pypto imports `simpler` and `simpler_setup` to compile kernels and to run them; `in_place` provides
modules of these names with the classes of this module. Kernels and orchestrations are the C++ files
that pypto has generated; they are compiled when a worker first runs them.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.graphs.chips import Buffer, CallConfig, TaskArgs
from pto.graphs.process import ArgTensor, Argument, GraphProcess, GraphSource
from pto.graphs.scene_names import ArgDirection, torch_bytes, torch_dtype_to_datatype


def runtime_root() -> Path:
    """The checkout with the headers of the runtime: PTO_RUNTIME, or `runtime` beside pypto."""
    configured = os.environ.get("PTO_RUNTIME")
    if configured:
        root = Path(configured)
    else:
        pypto = find_spec("pypto")
        package = Path(pypto.origin) if pypto and pypto.origin else Path()
        root = package.parents[2] / "runtime" if len(package.parents) > 2 else Path("runtime")
    if not (root / "src" / "common" / "task_interface").is_dir():
        raise fail(
            "PTO-U321",
            f"{root} has no headers of the runtime (src/common/task_interface)",
            help="PTO_RUNTIME=<checkout of simpler>",
        )
    return root.resolve()


class KernelCompiler:
    """Describes what is to be compiled; a worker compiles it for this machine."""

    def __init__(self, platform: str = "a2a3sim") -> None:
        self.platform = platform
        self.project_root = runtime_root()

    def get_incore_include_dirs(self) -> list[str]:
        return [str(self.project_root / "simpler_setup" / "incore")]

    def compile_incore(
        self,
        source_path: str,
        core_type: str = "aiv",
        pto_isa_root: str | None = None,
        extra_include_dirs: Sequence[str] | None = None,
        build_dir: str | None = None,
    ) -> bytes:
        include = [*map(str, extra_include_dirs or ())]
        return _described(source=source_path, core_type=core_type, extra_include_dirs=include)

    def compile_orchestration(self, runtime_name: str, source_path: str, **more: Any) -> bytes:
        profile = self.platform.removesuffix("sim")
        root = str(self.project_root)
        return _described(source=source_path, runtime=runtime_name, profile=profile, root=root)


def _described(**facts: Any) -> bytes:
    facts["source"] = str(Path(facts["source"]).resolve())
    return json.dumps(facts).encode()


@dataclass(frozen=True)
class CoreCallable:
    """A kernel."""

    binary: dict[str, Any]

    @classmethod
    def build(cls, signature: Sequence[ArgDirection], binary: bytes) -> CoreCallable:
        return cls(json.loads(binary))


@dataclass(frozen=True, eq=False)
class ChipCallable:
    """An orchestration with its kernels by number."""

    signature: tuple[ArgDirection, ...]
    source: GraphSource

    @classmethod
    def build(
        cls,
        signature: Sequence[ArgDirection],
        func_name: str,
        binary: bytes,
        children: Sequence[tuple[int, CoreCallable]] = (),
        **more: Any,
    ) -> ChipCallable:
        facts = json.loads(binary)
        kernels = [{"func_id": number, **child.binary} for number, child in children]
        entry = {"source": facts["source"], "function_name": func_name}
        source = GraphSource.listed(
            entry, kernels, facts["profile"], Path(facts["root"]), facts["runtime"]
        )
        return cls(tuple(signature), source)


class DeviceBuffer(Buffer):
    """Memory that a worker has allocated, with an address that a program may compare."""

    @property
    def base(self) -> int:  # type: ignore[override]
        return self.data.ctypes.data


class Worker:
    """Runs graphs on one chip."""

    def __init__(self, level: int = 2, **options: Any) -> None:
        if level != 2:
            raise fail(
                "PTO-U321", f"a worker of level {level} is not supported: use level 2, one chip"
            )
        self._callables: dict[int, ChipCallable] = {}
        self._processes: dict[int, GraphProcess] = {}
        self.aicpu_dlopen_count = self.host_dlopen_count = 0

    def init(self, **options: Any) -> None:
        """Nothing to start: a graph has a process of its own."""

    def close(self) -> None:
        for process in self._processes.values():
            process.end()
        self._processes.clear()

    def register(self, callable: ChipCallable) -> int:
        number = len(self._callables)
        self._callables[number] = callable
        self.aicpu_dlopen_count += 1
        return number

    def unregister(self, number: int) -> None:
        if number in self._processes:
            self._processes.pop(number).end()

    def run(self, number: int, args: TaskArgs, config: CallConfig | None = None) -> None:
        """Run a graph; the bytes of its tensors are changed in place."""
        callable = self._callables[number]
        if number not in self._processes:
            self._processes[number] = GraphProcess(callable.source)
        uses = iter(d.value for d in callable.signature if d is not ArgDirection.SCALAR)
        arguments: list[Argument] = []
        for n, argument in enumerate(args.given):
            if isinstance(argument, ArgTensor):
                argument = replace(argument, name=f"argument {n}", use=next(uses, "inout"))
            arguments.append(argument)
        self._processes[number].run(arguments)

    def malloc(self, nbytes: int) -> DeviceBuffer:
        return DeviceBuffer(np.zeros(nbytes, np.uint8))

    def free(self, buffer: DeviceBuffer) -> None:
        """Python frees it."""

    def copy_to(self, buffer: DeviceBuffer, source: Any) -> None:
        data = np.frombuffer(source, np.uint8)
        buffer.data[: data.size] = data

    def copy_from(self, target: Any, buffer: DeviceBuffer) -> None:
        size = ctypes.sizeof(target)
        ctypes.memmove(target, buffer.data[:size].tobytes(), size)


# ---- torch


def make_chip_tensor_arg(tensor: Any) -> ArgTensor:
    """A tensor of torch as an argument; a run changes its bytes."""
    return Buffer(torch_bytes(tensor)).tensor(tensor.shape, torch_dtype_to_datatype(tensor.dtype))


def make_tensor_arg(worker: Worker, tensor: Any) -> ArgTensor:
    return make_chip_tensor_arg(tensor)
