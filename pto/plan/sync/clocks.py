"""What each pipe is known to come after at a point of a program, whichever way led there.

The rule is the sanitizer's: a pipe issues in order and completes in any order, so that its own
entry lags, except on pipes the profile calls memory-ordered. Here times are positions in the text:
an entry t of pipe q means that all operations of q up to position t are done, in all turns so far.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.plan.sync.effects import NUMBER, PIPES

Clock = list[int]  # an entry a pipe
_S = NUMBER["S"]


class State:
    """The clocks of all pipes, and when each has last worked on the way to this point."""

    __slots__ = ("clocks", "last")

    def __init__(self, clocks: list[Clock] | None = None, last: Clock | None = None) -> None:
        count = len(PIPES)
        self.clocks = [[0] * count for _ in PIPES] if clocks is None else clocks
        self.last = [0] * count if last is None else last

    def copy(self) -> State:
        return State([clock.copy() for clock in self.clocks], self.last.copy())

    def published(self, pipe: int, now: int) -> Clock:
        """What holds once all earlier work of a pipe is done."""
        self.hear_scalar(pipe, now)
        clock = self.clocks[pipe].copy()
        clock[pipe] = now
        return clock

    def hear(self, pipe: int, clock: Clock) -> None:
        self.clocks[pipe] = [max(a, b) for a, b in zip(self.clocks[pipe], clock, strict=True)]

    def hear_scalar(self, pipe: int, now: int) -> None:
        """The scalar unit hands out work: what it has done before is done."""
        if pipe != _S:
            clock = self.clocks[_S].copy()
            clock[_S] = now
            self.hear(pipe, clock)

    def settle(self, pipe: int, now: int) -> None:
        """A barrier of one pipe."""
        self.clocks[pipe][pipe] = now

    def settle_all(self, now: int) -> None:
        """A barrier of all pipes."""
        self.clocks = [[now] * len(PIPES) for _ in PIPES]

    def knows_all(self) -> bool:
        """Whether no pipe has work that another is not known to come after."""
        return all(
            done <= known
            for clock in self.clocks
            for done, known in zip(self.last, clock, strict=True)
        )

    def raised(self, now: int) -> State:
        """The same, said as late as it holds: what did not work since has nothing left to do."""
        for clock in self.clocks:
            for pipe, done in enumerate(self.last):
                if clock[pipe] >= done:
                    clock[pipe] = now
        return self


def merged(ways: Sequence[State], now: int) -> State:
    """What holds on every way to a point."""
    raised = [way.raised(now) for way in ways]
    clocks = [
        [min(entries) for entries in zip(*rows, strict=True)]
        for rows in zip(*(way.clocks for way in raised), strict=True)
    ]
    last = [max(times) for times in zip(*(way.last for way in raised), strict=True)]
    return State(clocks, last)
