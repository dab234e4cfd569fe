"""Words in global memory by which agents tell each other: what a reader of one comes after.

A reader that finds what it asked for may have read the oldest value that fits, but none older than
what it already comes after. It comes after whoever wrote that value; of a sum, after all who added
to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from pto.run.order.effects import Notify
from pto.run.order.state import Pipe, S


@dataclass(slots=True)
class Word(Generic[S]):
    """The values of one word in their order, each with what its writer knew."""

    values: list[int] = field(default_factory=list[int])
    stamps: list[S | None] = field(default_factory=list[S | None])  # None: as the host left it

    def tell(self, effect: Notify, stamp: S, merged: Callable[[S, S], S]) -> None:
        if effect.added is not None and not self.values:
            self.values.append(effect.value - effect.added)
            self.stamps.append(None)
        last = self.stamps[-1] if effect.added is not None else None
        self.values.append(effect.value)
        self.stamps.append(stamp if last is None else merged(stamp, last))

    def seen(self, pipe: Pipe[S, Any], is_met: Callable[[int], bool]) -> tuple[bool, S | None]:
        """Whether a value is as asked, and what its reader comes after.

        Where none is, somebody has written the word in another way, and all who told count.
        """
        first = len(self.values) - 1
        while first > 0 and not self._is_known(pipe, self.stamps[first]):
            first -= 1
        for n in range(max(first, 0), len(self.values)):
            if is_met(self.values[n]):
                return True, self.stamps[n]
        return False, self.stamps[-1] if self.stamps else None

    def _is_known(self, pipe: Pipe[S, Any], stamp: S | None) -> bool:
        return stamp is None or pipe.knows(stamp)
