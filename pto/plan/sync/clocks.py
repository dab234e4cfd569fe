"""What each pipe is known to come after at a point of a program, whichever way led there.

The rule is the sanitizer's: a pipe issues in order and completes in any order, so that what it
knows of itself lags, except on pipes the profile calls memory-ordered. Here a time is a position in
the text and knowledge a set of times, as the bits of a number: what stands there is done, in all
turns so far, or was never begun on the way here.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.plan.sync.effects import NUMBER, PIPES

Times = int  # bit t: the time t
Clock = list[Times]  # an entry a pipe
_S = NUMBER["S"]


def until(now: int) -> Times:
    """All times up to now."""
    return (1 << (now + 1)) - 1


def between(first: int, last: int) -> Times:
    """The times after `first`, up to `last`."""
    return until(last) ^ until(first)


class State:
    """What all pipes know."""

    __slots__ = ("clocks", "touched")

    def __init__(self, clocks: list[Clock] | None = None, touched: Times = 0) -> None:
        self.clocks = [[0] * len(PIPES) for _ in PIPES] if clocks is None else clocks
        self.touched = touched  # when the scalar unit touched memory

    def copy(self) -> State:
        return State([clock.copy() for clock in self.clocks], self.touched)

    def published(self, pipe: int, now: int) -> Clock:
        """What holds once all earlier work of a pipe is done."""
        self.hear_scalar(pipe, now)
        clock = self.clocks[pipe].copy()
        clock[pipe] = until(now)
        return clock

    def hear(self, pipe: int, clock: Clock) -> None:
        self.clocks[pipe] = [a | b for a, b in zip(self.clocks[pipe], clock, strict=True)]

    def hear_scalar(self, pipe: int, now: int) -> None:
        """The scalar unit hands out work after all it has waited for. Its own accesses need a flag,
        as those of any pipe."""
        if pipe != _S:
            known = self.clocks[_S].copy()
            known[_S] = until(now) & ~self.touched
            self.hear(pipe, known)

    def settle(self, pipe: int, now: int) -> None:
        """A barrier of one pipe."""
        self.clocks[pipe][pipe] = until(now)

    def settle_all(self, now: int) -> None:
        """A barrier of all pipes."""
        self.clocks = [[until(now)] * len(PIPES) for _ in PIPES]

    def without(self, times: Times) -> State:
        """The same where nothing was begun at these times."""
        return State([[known | times for known in clock] for clock in self.clocks], self.touched)


def common(ways: Sequence[State]) -> State:
    """What holds on every way to a point."""
    first, *others = ways
    for other in others:
        first = State(
            [
                [a & b for a, b in zip(one, two, strict=True)]
                for one, two in zip(first.clocks, other.clocks, strict=True)
            ],
            first.touched | other.touched,
        )
    return first
