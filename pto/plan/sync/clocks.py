"""Clocks of a static walk: the work that each pipe is known to follow, on every path.

The rule is the sanitizer's: a pipe issues in order and completes in any order, so that its
knowledge of its own work lags, except on memory-ordered pipes of the profile. Here a time is a
position in the text, of work on one pipe, and a clock is a set of times as the bits of an integer:
the work at these positions is done, in all iterations so far, or never began on this path.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.plan.sync.effects import NUMBER, PIPES

Times = int  # bit t: the time t
Work = Sequence[Times]  # the times of the work of each pipe
_S = NUMBER["S"]


def until(now: int) -> Times:
    """All times up to now."""
    return (1 << (now + 1)) - 1


def between(first: int, last: int) -> Times:
    """The times after `first`, up to `last`."""
    return until(last) ^ until(first)


class ClockState:
    """The clocks of all pipes."""

    __slots__ = ("clocks", "touched")

    def __init__(self, clocks: list[Times] | None = None, touched: Times = 0) -> None:
        self.clocks = [0] * len(PIPES) if clocks is None else clocks
        self.touched = touched  # times at which the scalar unit accessed memory

    def copy(self) -> ClockState:
        return ClockState(self.clocks.copy(), self.touched)

    def published(self, pipe: int, work: Work) -> Times:
        """The clock that holds once all earlier work of a pipe is done."""
        self.hear_scalar(pipe, work)
        return self.clocks[pipe] | work[pipe]

    def hear_scalar(self, pipe: int, work: Work) -> None:
        """Order a pipe after all waits of the scalar unit; its own accesses need a flag."""
        if pipe != _S:
            scalar_work = work[_S]
            self.clocks[pipe] |= (self.clocks[_S] & ~scalar_work) | (scalar_work & ~self.touched)

    def without(self, times: Times) -> ClockState:
        """The same state if nothing began at these times."""
        return ClockState([clock | times for clock in self.clocks], self.touched)


def common(ways: Sequence[ClockState]) -> ClockState:
    """The state that holds on every path to a point."""
    first, *others = ways
    for other in others:
        both = zip(first.clocks, other.clocks, strict=True)
        first = ClockState([a & b for a, b in both], first.touched | other.touched)
    return first
