"""`pto.on("ray")`: launches, worlds and tasks of a `with` block go to a Ray cluster.

`ray` is the cluster that runs here, or that RAY_ADDRESS names; where there is none, one is started
on this machine for as long as it is needed. `ray://HOST:10001` is a cluster of others, reached
through its client server. Tokens and certificates are Ray's own: what it is told by its environment
holds here too.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
from contextvars import Token
from dataclasses import dataclass, field
from functools import cache as once
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from pto.cluster import blocks, ranks, token
from pto.cluster.blocks import Moved
from pto.cluster.crew import Crew
from pto.cluster.ranks import Travelled
from pto.core.errors import fail
from pto.run.launch import place as places
from pto.run.launch.prepared import Grid
from pto.run.machine.world import World

_STORE = 1 << 30  # bytes of shared memory for a cluster that is started here, at most
_ANSWER = 5.0  # seconds until a head node has to answer
_clusters: dict[str, RayCluster] = {}  # by address, while they are used


@dataclass(slots=True)
class RayCluster:
    """Workers of one cluster, and what has been moved to and from them."""

    address: str
    ray: Any
    crew: Crew
    started: bool  # the connection is ours, and ends with us
    users: int = 0
    moved: list[Moved] = field(default_factory=list[Moved])
    travelled: list[Travelled] = field(default_factory=list[Travelled])

    def run(self, grid: Grid) -> bool:
        done = blocks.run(self.crew, grid)
        if done is not None:
            self.moved.append(done)
        return done is not None

    def run_world(self, world: World) -> bool:
        done = ranks.run(self.crew, world)
        if done is not None:
            self.travelled.append(done)
        return done is not None

    def close(self) -> None:
        """No worker stays."""
        _clusters.pop(self.address, None)
        if self.ray.is_initialized():
            self.crew.go_home()
            if self.started:
                self.ray.shutdown()


def place(address: str) -> RayCluster:
    """The cluster of an address, joined once; it is left when the process ends."""
    found = _clusters.get(address)
    if found is None or not found.ray.is_initialized():
        found = _clusters[address] = _join(address)
        atexit.register(found.close)
    return found


class On:
    """`with pto.on("ray") as cluster:`"""

    def __init__(self, address: str) -> None:
        self._address = address
        self._token: Token[Any] | None = None
        self._place: Any = None

    def __enter__(self) -> Any:
        self._place = places.place_of(self._address)
        if isinstance(self._place, RayCluster):
            self._place.users += 1
        self._token = places.chosen.set(self._place)
        return self._place

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._token is not None:
            places.chosen.reset(self._token)
        if isinstance(self._place, RayCluster):
            self._place.users -= 1
            if not self._place.users:
                self._place.close()


def on(address: str) -> On:
    """Where launches run, for a `with` block: `ray`, `ray://host:10001`, or `here`."""
    return On(address)


def _join(address: str) -> RayCluster:
    if find_spec("ray") is None:
        raise fail(
            "PTO-U301",
            f"`{address}` needs Ray, which is not installed",
            help='pip install "pto-machine[ray]", on every node',
        )
    # what Ray says on a terminal is not for users of a kernel
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray: Any = import_module("ray")
    started = not ray.is_initialized()
    if started:
        connect(ray, address)
        _keep_output_clean()
    return RayCluster(address, ray, Crew(ray), started)


def connect(ray: Any, address: str) -> None:
    """Join a cluster; `ray` where none is known or alive starts one on this machine."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "pto"}
    known = _known() if address == "ray" else address
    try:
        if known:
            _require_answer(known)
            token.require_welcome(known)
            ray.init(address=known, **quiet)
        else:
            ray.init(address="local", include_dashboard=False, object_store_memory=_STORE, **quiet)
    except ray.exceptions.AuthenticationError:
        raise token.refused(known or address, "") from None
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise fail(
            "PTO-U302",
            f"no cluster answers at `{known or address}`: {first}",
            help="`ray start --head` starts one; `ray status` tells how it is",
        ) from None


@once
def _keep_output_clean() -> None:
    """Ray tells of nodes that die on standard output, which is for results: JSON lines of ours."""
    worker: Any = import_module("ray._private.worker")
    show = getattr(worker, "print_worker_logs", None)
    if show is not None:
        worker.print_worker_logs = lambda data, _, *more: show(data, sys.stderr, *more)


def _known() -> str:
    """The cluster that RAY_ADDRESS names, or that runs on this machine; nothing: there is none."""
    given = os.environ.get("RAY_ADDRESS", "")
    if given and given != "auto":
        return given
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    try:
        found = note.read_text(encoding="utf-8").strip()
        _require_answer(found)
    except OSError:  # there is none, or it has ended without taking its note away
        return ""
    return found


def _require_answer(address: str) -> None:
    """Ray itself waits for minutes for a machine that is not there."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"an address is HOST:PORT or ray://HOST:PORT, not {address}")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
