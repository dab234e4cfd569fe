"""Switches of a run that an option or the environment sets: engine, its checks, the sanitizer.

An option comes first, then PTO_ENGINE, PTO_CHECKS, PTO_SANITIZE and PTO_COVERAGE, then the default.
No engine lives here.
"""

from __future__ import annotations

from os import environ
from typing import Any, Final

from pto.core.errors import fail, nearest
from pto.run.launch.place import chosen
from pto.target.cpu import SIZE_VARIABLES

ENGINES: Final = ("jit", "reference")
DEFAULT: Final = "jit"
_RUN: Final = ("PTO_ENGINE", "PTO_CHECKS", "PTO_SANITIZE", "PTO_DEBUG", "PTO_ON")
# The environment itself, where Python shows it: `environ.get` takes thirty times as long.
SAID: Final[Any] = vars(environ).get("_data", environ)


def variable(name: str) -> Any:
    """The key of a variable in SAID."""
    return name if SAID is environ else environ.encodekey(name)


_NAMES: Final = tuple(map(variable, (*_RUN, *SIZE_VARIABLES.values())))


def switches() -> list[Any]:
    """What decides how a call is made beside its arguments: a `with` block, the environment."""
    where = chosen.get()
    return [where if isinstance(where, str) else where is None, *map(SAID.get, _NAMES)]


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


def wants_checks(option: bool = False) -> bool:
    """True where the jit engine is to watch for data nobody has written: PTO_CHECKS, or asked."""
    return option or environ.get("PTO_CHECKS", "0") not in ("", "0")


def wants_sanitizer(option: bool = False) -> bool:
    """True where an option asks for the sanitizer, or PTO_SANITIZE is set and not 0."""
    return option or environ.get("PTO_SANITIZE", "0") not in ("", "0")


def wants_debugging() -> bool:
    """Assertions and prints of kernels stay in their programs unless PTO_DEBUG is 0."""
    return environ.get("PTO_DEBUG", "1") not in ("", "0")


def wants_coverage(option: bool | None = None) -> bool:
    """Holes, idle blocks and cut results of a first run are looked for unless PTO_COVERAGE is 0."""
    return environ.get("PTO_COVERAGE", "1") not in ("", "0") if option is None else option
