"""The name of a schedule, as users write it. Its policy is in `choice.py`."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.errors import fail

_NAMES = ("program", "early", "late", "random")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The name of a schedule; `seed` is random's."""

    name: str = "program"
    seed: int = 0

    def __str__(self) -> str:
        return f"random:{self.seed}" if self.name == "random" else self.name


PROGRAM = Schedule()


def parse_schedule(text: str | Schedule | None) -> Schedule:
    """`program`, `early`, `late` or `random:SEED`."""
    if isinstance(text, Schedule):
        return text
    name, colon, seed = (text or "program").partition(":")
    if name not in _NAMES or (colon and name != "random") or (colon and not seed.isdecimal()):
        raise fail(
            "PTO-U230",
            f"there is no schedule {text!r}",
            help="use program, early, late, or random:SEED with a number, such as random:7",
        )
    return Schedule(name, int(seed or 0))
