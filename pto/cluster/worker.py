"""The process on a node: it runs jobs, and caches kernels and arrays between them.

Only functions of this package and data reach it; nothing of the user's environment is sent.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from pto import __version__
from pto.cluster.kernel_message import KernelMessage, unpack
from pto.cluster.part import RangeResult, attempt, put, take
from pto.cluster.payload import Payload
from pto.cluster.windows import Update
from pto.cluster.worker_slot import WorkerSlot
from pto.cluster.world import RoundReport, WorkerResult, WorldPlan
from pto.core.errors import fail
from pto.core.intervals import Bytes
from pto.run.launch.prepared import LaunchGrid
from pto.run.machine.device import Device


@dataclass(frozen=True, slots=True)
class Hello:
    """The identity of a worker: node, process and versions."""

    node: str
    host: str
    pid: int
    version: str
    python: str

    def require_alike(self) -> None:
        mine = versions()
        if (self.version, self.python) != mine:
            raise fail(
                "PTO-U303",
                f"node {self.host} runs pto {self.version} on Python {self.python}, this is pto"
                f" {mine[0]} on Python {mine[1]}",
                help="install the same versions on every node",
            )


def versions() -> tuple[str, str]:
    return __version__, ".".join(map(str, sys.version_info[:2]))


class Worker:
    """An actor of one processor."""

    def __init__(self) -> None:
        os.environ.pop("PTO_ON", None)  # work that was sent here must not be sent on
        os.environ["PTO_THREADS"] = "1"
        self._launch = ""
        # arrays that `_data` refers to where it is not written
        self._shared: tuple[Bytes, ...] = ()
        self._data: list[Bytes] = []
        self._slot: WorkerSlot | None = None

    def hello(self) -> Hello:
        ray: Any = import_module("ray")
        here = ray.get_runtime_context()
        node = here.get_node_id()
        return Hello(node, f"{platform.node()} {node[:6]}", os.getpid(), *versions())

    # ---- blocks

    def blocks(
        self,
        launch: str,
        message: KernelMessage,
        payload: Payload,
        block_range: tuple[int, int, int],
        *shared: Bytes,
    ) -> RangeResult:
        """Run blocks `first` to `end` of `count`; workers of a node share the arrays."""
        first, end, count = block_range
        if launch != self._launch:
            self._launch, self._shared, self._data = launch, shared, payload.own(shared)
        kernel = unpack(message)
        device = Device(kernel.profile, engine=kernel.engine)
        plain = payload.plain(self._data)
        grid = LaunchGrid(kernel, device, device.values(kernel, plain), count, plain)
        with np.errstate(all="ignore"):
            part = attempt(payload, self._data, grid, first, end, self._node())
        if part.reads is None:
            self.forget()
        else:
            put(payload, self._data, part.writes, take(payload, shared, part.writes))
        return part

    def forget(self) -> None:
        """Drop the arrays of the launch that has ended."""
        self._launch = ""
        self._shared = ()
        self._data = []

    def _node(self) -> str:
        ray: Any = import_module("ray")
        return ray.get_runtime_context().get_node_id()

    # ---- ranks

    def join(self, plan: WorldPlan, mine: range, *data: Bytes) -> None:
        self._slot = WorkerSlot(plan, mine, data)

    def run_round(
        self, meetings: Mapping[Any, Mapping[Any, int]], number: int, *updates: Update
    ) -> tuple[RoundReport, Update]:
        return self._taken().run_round(meetings, number, updates)

    def leave(self, number: int, *updates: Update) -> WorkerResult:
        slot, self._slot = self._taken(), None
        return slot.leave(number, updates)

    def _taken(self) -> WorkerSlot:
        if self._slot is None:
            raise RuntimeError("this worker has no ranks")
        return self._slot

    # ---- tasks

    def task(self, function: str, shared: Any, item: Any) -> Any:
        return named(function)(shared, item)

    def tasks(self, function: str, shared: Any, item: Any) -> Iterator[Any]:
        yield from named(function)(shared, item)


def named(path: str) -> Any:
    """`module:function` of this package."""
    module, _, name = path.partition(":")
    if module.partition(".")[0] != "pto":
        raise fail(
            "PTO-U305", f"`{path}` is not a function of this package: only those can be sent"
        )
    return getattr(import_module(module), name)
