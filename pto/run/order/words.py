"""Words in global memory that serve as signals: the order of a read after its writes.

A read that satisfies its condition may have seen the oldest value that does, but none older than
the values already ordered before the reader. It is ordered after the write of that value; for a
sum, after all additions to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from pto.run.order.effects import WordWrite
from pto.run.order.state import PipeQueue, S


@dataclass(slots=True)
class SignalWord(Generic[S]):
    """The values of one word in order, each with the stamp of its writer."""

    values: list[int] = field(default_factory=list[int])
    # None: initial value from the host
    stamps: list[S | None] = field(default_factory=list[S | None])

    def tell(self, effect: WordWrite, stamp: S, merged: Callable[[S, S], S]) -> None:
        if effect.added is not None and not self.values:
            self.values.append(effect.value - effect.added)
            self.stamps.append(None)
        last = self.stamps[-1] if effect.added is not None else None
        self.values.append(effect.value)
        self.stamps.append(stamp if last is None else merged(stamp, last))

    def seen(self, pipe: PipeQueue[S, Any], is_met: Callable[[int], bool]) -> tuple[bool, S | None]:
        """Whether a value satisfies the condition, and the stamp that orders its reader.

        If no value does, the word was written by other means, and all recorded writes count.
        """
        first = len(self.values) - 1
        while first > 0 and not self._is_known(pipe, self.stamps[first]):
            first -= 1
        for n in range(max(first, 0), len(self.values)):
            if is_met(self.values[n]):
                return True, self.stamps[n]
        return False, self.stamps[-1] if self.stamps else None

    def _is_known(self, pipe: PipeQueue[S, Any], stamp: S | None) -> bool:
        return stamp is None or pipe.knows(stamp)
