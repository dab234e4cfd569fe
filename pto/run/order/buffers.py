"""Buffer ids: releases in program order, and the pipes that hold an id.

An acquire waits for every release of its id that comes before it in program order, on any pipe, and
for no later one. A release of mode 1 covers the pipe that it names and every other pipe that holds
the id: the work of all of them up to this point of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")  # a stamp: what is known to be done


class Releases(Generic[S]):
    """The releases of one buffer id of one agent, numbered in program order."""

    __slots__ = ("_early", "_merged", "_whole", "holders", "issued")

    def __init__(self, merged: Callable[[S, S], S]) -> None:
        self._merged = merged
        self._whole: list[S] = []  # by number: the merged stamps of this release and all before it
        # stamps of releases that are done before one that precedes them
        self._early: dict[int, S] = {}
        self.issued = 0
        self.holders: dict[str, None] = {}  # pipes, in the order in which they acquired the id

    @property
    def done(self) -> int:
        """The number of releases that are done together with all that precede them."""
        return len(self._whole)

    def issue(self) -> int:
        """Number one more release."""
        self.issued += 1
        return self.issued - 1

    def complete(self, number: int, stamp: S) -> None:
        """Record that the work before a release is done."""
        self._early[number] = stamp
        while len(self._whole) in self._early:
            early = self._early.pop(len(self._whole))
            self._whole.append(self._merged(early, self._whole[-1]) if self._whole else early)

    def before(self, count: int) -> S:
        """The merged stamp of the first `count` releases, all of which are done."""
        return self._whole[count - 1]
