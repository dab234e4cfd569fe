"""Where launches run: here, or on machines that somebody has joined to this one.

`pto.on(...)` chooses for a `with` block, PTO_ON for a process. What runs elsewhere, and how, is not
known here: whoever offers a place registers under a word, as module and function.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from os import environ
from typing import TYPE_CHECKING, Final, Protocol

from pto.core.errors import fail

if TYPE_CHECKING:
    from pto.run.launch.prepared import Grid
    from pto.run.machine.world import World

PLACES: Final = {"ray": "pto.cluster.on:place"}  # what an address begins with: who is asked
HERE: Final = ("", "here")
chosen: ContextVar[Place | str | None] = ContextVar("chosen", default="")  # "": nobody has


class Place(Protocol):
    """Machines that may take work. False: this work is better done here."""

    def run(self, grid: Grid) -> bool: ...

    def run_world(self, world: World) -> bool: ...


def current() -> Place | None:
    """The place of launches: what a `with` block chose, else PTO_ON; None: here."""
    found = chosen.get()
    return place_of(environ.get("PTO_ON", "")) if isinstance(found, str) else found


def place_of(address: str) -> Place | None:
    """The place of an address: `ray`, `ray://host:10001`; nothing or `here`: this process."""
    if address in HERE:
        return None
    home = PLACES.get(address.partition(":")[0])
    if home is None:
        known = ", ".join((*PLACES, "ray://HOST:10001", "here"))
        raise fail("PTO-U300", f"there is no place `{address}` to run on; there is {known}")
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)(address)
