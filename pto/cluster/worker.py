"""What runs on a node: one process that does jobs, and remembers kernels and arrays between them.

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
from pto.cluster.cargo import Cargo
from pto.cluster.intervals import Bytes
from pto.cluster.parcel import Parcel, unpack
from pto.cluster.part import Part, attempt, put, take
from pto.cluster.seat import Seat
from pto.cluster.windows import Update
from pto.cluster.world import Ended, Plan, Turn
from pto.core.errors import fail
from pto.run.launch.prepared import Grid
from pto.run.machine.device import Device


@dataclass(frozen=True, slots=True)
class Hello:
    """Who a worker is."""

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
                help="install the same on every node",
            )


def versions() -> tuple[str, str]:
    return __version__, ".".join(map(str, sys.version_info[:2]))


class Worker:
    """An actor of one processor."""

    def __init__(self) -> None:
        os.environ.pop("PTO_ON", None)  # what was sent here stays here
        os.environ["PTO_THREADS"] = "1"
        self._launch = ""
        self._shared: tuple[Bytes, ...] = ()  # what `_data` lies over, where it is not written
        self._data: list[Bytes] = []
        self._seat: Seat | None = None

    def hello(self) -> Hello:
        ray: Any = import_module("ray")
        here = ray.get_runtime_context()
        node = here.get_node_id()
        return Hello(node, f"{platform.node()} {node[:6]}", os.getpid(), *versions())

    # ---- blocks

    def blocks(
        self,
        launch: str,
        parcel: Parcel,
        cargo: Cargo,
        which: tuple[int, int, int],
        *shared: Bytes,
    ) -> Part:
        """Blocks `first` to `end` of `count`; arrays are shared with the other workers here."""
        first, end, count = which
        if launch != self._launch:
            self._launch, self._shared, self._data = launch, shared, cargo.own(shared)
        kernel = unpack(parcel)
        device = Device(kernel.profile, engine=kernel.engine, checks=kernel.checks)
        plain = cargo.plain(self._data)
        grid = Grid(kernel, device, device.values(kernel, plain), count, plain)
        with np.errstate(all="ignore"):
            part = attempt(cargo, self._data, grid, first, end, self._node())
        if part.reads is None:
            self.forget()
        else:
            put(cargo, self._data, part.writes, take(cargo, shared, part.writes))
        return part

    def forget(self) -> None:
        """Arrays of the launch that is over."""
        self._launch, self._shared, self._data = "", (), []

    def _node(self) -> str:
        ray: Any = import_module("ray")
        return ray.get_runtime_context().get_node_id()

    # ---- ranks

    def join(self, plan: Plan, mine: range, *data: Bytes) -> None:
        self._seat = Seat(plan, mine, data)

    def turn(
        self, meetings: Mapping[Any, Mapping[Any, int]], own: int, *updates: Update
    ) -> tuple[Turn, Update]:
        return self._taken().turn(meetings, own, updates)

    def leave(self, own: int, *updates: Update) -> Ended:
        seat, self._seat = self._taken(), None
        return seat.leave(own, updates)

    def _taken(self) -> Seat:
        if self._seat is None:
            raise RuntimeError("this worker has no ranks")
        return self._seat

    # ---- tasks

    def task(self, function: str, shared: Any, item: Any) -> Any:
        return named(function)(shared, item)

    def tasks(self, function: str, shared: Any, item: Any) -> Iterator[Any]:
        yield from named(function)(shared, item)


def named(path: str) -> Any:
    """`module:function` of this package."""
    module, _, name = path.partition(":")
    if module.partition(".")[0] != "pto":
        raise fail("PTO-U305", f"`{path}` is no function of this package: only those are sent")
    return getattr(import_module(module), name)
