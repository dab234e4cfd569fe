"""Flags between two pipes: kinds of operation become pipes; a profile defines equal flags.

The engines, the schedules and the sanitizer all find a flag by its `key_of`, and show the flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pto.isa.row.attributes import Enum, Int
from pto.isa.row.order import OfFlag
from pto.isa.row.pipe_of import named_pipe
from pto.isa.rules.rule import Case

ANY = "any"  # in a key: the pipe that makes no difference


class Flag(NamedTuple):
    """A flag between two pipes of an agent: set once, taken once."""

    src: str
    dst: str
    id: int

    def __str__(self) -> str:
        return f"[{self.src}, {self.dst}, {self.id}]"


_KEYS: dict[str, Callable[[Flag], Flag]] = {
    "src dst id": lambda flag: flag,
    "src id": lambda flag: flag._replace(dst=ANY),
    "dst id": lambda flag: flag._replace(src=ANY),
}


def key_of(flag: Flag, identity: str) -> Flag:
    """The key of a flag on a profile: flags with the same key are the same hardware flag."""
    return _KEYS[identity](flag)


def event_of(case: Case) -> int:
    """The id an attribute gives."""
    value = case.op.attrs.get("event_id")
    if isinstance(value, Int):
        return value.value
    return int(value.value.removeprefix("EVENT_ID")) if isinstance(value, Enum) else 0


def flag_of(case: Case, event: int | None = None) -> Flag:
    """The flag an operation sets or waits for; `event` where an operand gives the id."""
    order = case.row.order
    if not isinstance(order, OfFlag):
        raise RuntimeError(f"{case.row.name} has no flag")
    src, dst = named_pipe(case, order.src) or "", named_pipe(case, order.dst) or ""
    return Flag(src, dst, event_of(case) if event is None else event)
