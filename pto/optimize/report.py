"""What an optimisation did: time before and after, the steps, what limits the program now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pto.transform.schedule import PassStep, step


@dataclass(frozen=True, slots=True)
class Speed:
    """The time of a launch by the model, and the share of the roofline that it reaches."""

    us: float
    share: float
    limits: str  # what bounds it, and what comes next

    def __str__(self) -> str:
        return f"{self.us:,.1f} us, {self.share:.0%} of the roofline, {self.limits}"


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step: what it did, and the time of the launch after it."""

    name: str
    us: float
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Optimization:
    """The outcome of a search. Printing it gives the report."""

    kernel: str
    device: str
    constants: dict[str, Any]  # of the kernel, where the search changed them
    schedule: tuple[PassStep, ...]
    blocks: int  # of the optimised launch
    before: Speed
    after: Speed
    steps: tuple[StepReport, ...]
    tried: int  # programs that were timed
    seconds: float
    checked: tuple[str, ...]  # what was proved or compared

    @property
    def factor(self) -> float:
        """How many times as fast the launch is."""
        return self.before.us / self.after.us

    def __str__(self) -> str:
        lines = [
            f"{self.kernel} on {self.device}: {self.before.us:,.1f} us to {self.after.us:,.1f} us,"
            f" {self.factor:.2f} times as fast"
        ]
        previous = self.before.us
        for each in self.steps:
            lines.append(f"  {each.name:<18} {each.us:>10,.1f} us  {each.us - previous:+,.1f}")
            lines += [f"    {words}" for words in each.words]
            previous = each.us
        if not self.steps:
            lines.append("  no step saves time: the program stays as it is")
        return "\n".join(
            [
                *lines,
                f"  before: {self.before}",
                f"  after:  {self.after}",
                f"  {self.tried:,} programs timed in {self.seconds:.1f} s",
                *(f"  checked: {each}" for each in self.checked),
            ]
        )

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data."""
        sides = {"before": self.before, "after": self.after}
        speeds = {
            name: {"us": each.us, "share": each.share, "limits": each.limits}
            for name, each in sides.items()
        }
        return {
            "kernel": self.kernel,
            "device": self.device,
            "constants": self.constants,
            "schedule": [str(each) for each in self.schedule],
            "blocks": self.blocks,
            **speeds,
            "steps": [{"name": s.name, "us": s.us, "words": list(s.words)} for s in self.steps],
            "tried": self.tried,
            "seconds": self.seconds,
            "checked": list(self.checked),
        }

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Optimization:
        """The report that `to_json` wrote."""
        read: dict[str, Any] = {
            **data,
            "schedule": tuple(map(step, data["schedule"])),
            "before": Speed(**data["before"]),
            "after": Speed(**data["after"]),
            "steps": tuple(
                StepReport(s["name"], s["us"], tuple(s["words"])) for s in data["steps"]
            ),
            "checked": tuple(data["checked"]),
        }
        return cls(**read)
