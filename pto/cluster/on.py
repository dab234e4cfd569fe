"""`pto.on("ray")`: launches, worlds and tasks of a `with` block run on a Ray cluster.

`ray` is the local cluster, or the one that RAY_ADDRESS names; if there is none, a cluster is
started on this machine for the time of its use. `ray://HOST:10001` is a remote cluster, reached
through its client server. Tokens and certificates are configured by Ray's own environment
variables.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache as once
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pto.cluster import blocks, ranks, token
from pto.cluster.blocks import BlockTraffic
from pto.cluster.ranks import WorldTraffic
from pto.cluster.worker_pool import WorkerPool
from pto.core.errors import fail
from pto.run.launch.engine import cluster_of, selected_cluster
from pto.run.launch.prepared import LaunchGrid
from pto.run.machine.world import World

_STORE = 1 << 30  # bytes of shared memory of a cluster that is started here, at most
_ANSWER = 5.0  # seconds until a head node must answer
_clusters: dict[str, RayCluster] = {}  # open clusters by address


@dataclass(slots=True)
class RayCluster:
    """The workers of one cluster, and the amounts of data moved to and from them."""

    address: str
    ray: Any
    pool: WorkerPool
    started: bool  # the connection was opened here, and is closed on exit
    users: int = 0
    moved: list[BlockTraffic] = field(default_factory=list[BlockTraffic])
    travelled: list[WorldTraffic] = field(default_factory=list[WorldTraffic])

    def run(self, grid: LaunchGrid) -> bool:
        done = blocks.run(self.pool, grid)
        if done is not None:
            self.moved.append(done)
        return done is not None

    def run_world(self, world: World) -> bool:
        done = ranks.run(self.pool, world)
        if done is not None:
            self.travelled.append(done)
        return done is not None

    def close(self) -> None:
        """Stop all workers."""
        _clusters.pop(self.address, None)
        if self.ray.is_initialized():
            self.pool.shutdown()
            if self.started:
                self.ray.shutdown()


def place(address: str) -> RayCluster:
    """The cluster of an address, joined once and left at the end of the process."""
    cluster = _clusters.get(address)
    if cluster is None or not cluster.ray.is_initialized():
        cluster = _clusters[address] = _join(address)
        atexit.register(cluster.close)
    return cluster


@contextmanager
def on(address: str) -> Generator[Any]:
    """Select where launches of a `with` block run: `ray`, `ray://host:10001`, or `here`."""
    target: Any = cluster_of(address)
    cluster = target if isinstance(target, RayCluster) else None
    if cluster is not None:
        cluster.users += 1
    before = selected_cluster.set(target)
    try:
        yield target
    finally:
        selected_cluster.reset(before)
        if cluster is not None:
            cluster.users -= 1
            if not cluster.users:
                cluster.close()


def _join(address: str) -> RayCluster:
    if find_spec("ray") is None:
        raise fail(
            "PTO-U301",
            f"`{address}` needs Ray, which is not installed",
            help='pip install "pto-machine[ray]", on every node',
        )
    # Ray's messages on the terminal are not for users of a kernel
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray: Any = import_module("ray")
    started = not ray.is_initialized()
    if started:
        connect(ray, address)
        _keep_output_clean()
    return RayCluster(address, ray, WorkerPool(ray), started)


def connect(ray: Any, address: str) -> None:
    """Join a cluster; `ray` starts one on this machine if none is known or alive."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "pto"}
    existing = _known() if address == "ray" else address
    try:
        if existing:
            _require_answer(existing)
            token.require_welcome(existing)
            ray.init(address=existing, **quiet)
        else:
            ray.init(address="local", include_dashboard=False, object_store_memory=_STORE, **quiet)
    except ray.exceptions.AuthenticationError:
        raise token.refused(existing or address, "") from None
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise fail(
            "PTO-U302",
            f"no cluster answers at `{existing or address}`: {first}",
            help="`ray start --head` starts one; `ray status` shows its state",
        ) from None


@once
def _keep_output_clean() -> None:
    """Send Ray's messages about dead nodes to standard error; standard output is for results."""
    worker: Any = import_module("ray._private.worker")
    show = getattr(worker, "print_worker_logs", None)
    if show is not None:
        worker.print_worker_logs = lambda data, _, *more: show(data, sys.stderr, *more)


def _known() -> str:
    """The address in RAY_ADDRESS, or of the cluster on this machine; empty if there is none."""
    configured = os.environ.get("RAY_ADDRESS", "")
    if configured and configured != "auto":
        return configured
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    try:
        noted = note.read_text(encoding="utf-8").strip()
        _require_answer(noted)
    except OSError:  # there is none, or it ended without removing its address file
        return ""
    return noted


def _require_answer(address: str) -> None:
    """Check quickly that a head node answers; Ray itself waits for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"an address is HOST:PORT or ray://HOST:PORT, not {address}")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
