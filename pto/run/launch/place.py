"""The selection of the machines on which launches run: this process, or a cluster.

`pto.on(...)` selects for a `with` block, PTO_ON for a process. A cluster backend registers here
under its address prefix, as module and function; its implementation is not imported.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from os import environ
from typing import TYPE_CHECKING, Final, Protocol

from pto.core.errors import fail

if TYPE_CHECKING:
    from pto.run.launch.prepared import LaunchGrid
    from pto.run.machine.world import World

PLACES: Final = {"ray": "pto.cluster.on:place"}  # address prefix -> backend
HERE: Final = ("", "here")
chosen: ContextVar[ClusterTarget | str | None] = ContextVar("chosen", default="")


class ClusterTarget(Protocol):
    """A cluster that may run work; its methods return False for work that should run locally."""

    def run(self, grid: LaunchGrid) -> bool: ...

    def run_world(self, world: World) -> bool: ...


def current() -> ClusterTarget | None:
    """The selected cluster: of the `with` block, else of PTO_ON; None for this process."""
    found = chosen.get()
    return place_of(environ.get("PTO_ON", "")) if isinstance(found, str) else found


def place_of(address: str) -> ClusterTarget | None:
    """The cluster of an address such as `ray` or `ray://host:10001`; None for `here` or nothing."""
    if address in HERE:
        return None
    home = PLACES.get(address.partition(":")[0])
    if home is None:
        known = ", ".join((*PLACES, "ray://HOST:10001", "here"))
        raise fail("PTO-U300", f"there is no place `{address}` to run on; there is {known}")
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)(address)
