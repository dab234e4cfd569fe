"""Options of a run that a parameter or the environment sets: engine, sanitizer, machines.

A parameter comes first, then PTO_ENGINE, PTO_SANITIZE and PTO_COVERAGE, then the
default. No engine is implemented here. `pto.on(...)` selects a cluster for a `with` block, PTO_ON
for a process; a backend registers here as module and function, and is imported only if selected.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from os import environ
from typing import TYPE_CHECKING, Any, Final, Protocol

from pto.core.errors import fail, nearest
from pto.target.cpu import SIZE_VARIABLES

if TYPE_CHECKING:
    from pto.run.launch.prepared import LaunchGrid
    from pto.run.machine.world import World


PLACES: Final = {"ray": "pto.cluster.on:place"}  # address prefix -> backend
HERE: Final = ("", "here")
selected_cluster: ContextVar[ClusterTarget | str | None] = ContextVar(
    "selected_cluster", default=""
)


class ClusterTarget(Protocol):
    """A cluster that may run work; its methods return False for work that should run locally."""

    def run(self, grid: LaunchGrid) -> bool: ...

    def run_world(self, world: World) -> bool: ...


def cluster_target() -> ClusterTarget | None:
    """The selected cluster: of the `with` block, else of PTO_ON; None for this process."""
    selected = selected_cluster.get()
    return cluster_of(environ.get("PTO_ON", "")) if isinstance(selected, str) else selected


def cluster_of(address: str) -> ClusterTarget | None:
    """The cluster of an address such as `ray` or `ray://host:10001`; None for `here` or nothing."""
    if address in HERE:
        return None
    home = PLACES.get(address.partition(":")[0])
    if home is None:
        places = ", ".join((*PLACES, "ray://HOST:10001", "here"))
        raise fail("PTO-U300", f"there is no place `{address}` to run on; there is {places}")
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)(address)


ENGINES: Final = ("jit", "reference")
DEFAULT: Final = "jit"
_RUN: Final = ("PTO_ENGINE", "PTO_SANITIZE", "PTO_DEBUG", "PTO_ON")
# The environment itself, if Python exposes it: `environ.get` takes thirty times as long.
ENVIRONMENT: Final[Any] = vars(environ).get("_data", environ)


def variable(name: str) -> Any:
    """The key of a variable in SAID."""
    return name if ENVIRONMENT is environ else environ.encodekey(name)


_NAMES: Final = tuple(map(variable, (*_RUN, *SIZE_VARIABLES.values())))


def switches() -> list[Any]:
    """The settings that decide how a call is made: a `with` block, the environment."""
    where = selected_cluster.get()
    return [where if isinstance(where, str) else where is None, *map(ENVIRONMENT.get, _NAMES)]


def chosen_engine(option: str | None = None) -> str:
    """The name of the engine to use: `option`, else PTO_ENGINE, else the default."""
    name = option or environ.get("PTO_ENGINE") or DEFAULT
    if name not in ENGINES:
        source = "" if option else "PTO_ENGINE: "
        raise fail(
            "PTO-U072",
            f"{source}there is no engine `{name}`; there is {', '.join(ENGINES)}",
            help=nearest(name, ENGINES),
        )
    return name


def wants_sanitizer(option: bool = False) -> bool:
    """True if the option or PTO_SANITIZE enables the sanitizer."""
    return option or environ.get("PTO_SANITIZE", "0") not in ("", "0")


def wants_debugging() -> bool:
    """True unless PTO_DEBUG is 0: assertions and prints of kernels stay in their programs."""
    return environ.get("PTO_DEBUG", "1") not in ("", "0")


def wants_coverage(option: bool | None = None) -> bool:
    """True unless PTO_COVERAGE is 0: a first run is checked for holes and idle blocks."""
    return environ.get("PTO_COVERAGE", "1") not in ("", "0") if option is None else option
