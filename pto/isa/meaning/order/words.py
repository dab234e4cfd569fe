"""The interface of agents that signal each other and wait, implemented on the state of a core.

A wait is two functions: `met` tests the condition, `take` has the effect. The reference engine
calls them once, and returns the reason if the agent must wait; compiled code suspends between two
tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.isa.meaning.handle.view import as_view
from pto.isa.meaning.kinds import Blocked
from pto.isa.meaning.tile.mover import Mover
from pto.isa.row import types as t

Receiver = tuple[str, int, int]  # side, sub-block, id


class AgentSignals(Mover):
    """Counts that agents share: signals of one core, arrivals at barriers, words in memory."""

    __slots__ = ()

    def until(
        self,
        met: Callable[[], Any],
        take: Callable[[], None],
        reason: Callable[[], Blocked | None],
        *,
        polls: bool = False,
    ) -> Blocked | None:
        """Take if met; else the reason of the wait. With `polls`, `reason` may also end the wait
        by means that compiled code does not have."""
        if not met():
            return reason()
        take()
        return None

    def leave_unless(self, fact: Any, why: str) -> None:
        """Compiled code leaves the instruction to this engine unless the fact holds."""

    # ---- agents

    @property
    def side(self) -> str:
        return self.core.side

    @property
    def agents(self) -> tuple[int, int]:
        """The number of vector sub-blocks and of cubes of this core."""
        return self.core.cluster.vectors, int(self.core.cluster.has_cube)

    # ---- signals of one core

    def has_signal(self, number: int) -> bool:
        """True if compiled code counts signals with this id."""
        return True

    def signal(self, to: Receiver, sender: int) -> int:
        """The number of signals that were sent and not yet waited for."""
        return self.core.cluster.cross_flags[to, sender]

    def set_signal(self, to: Receiver, sender: int, count: int) -> None:
        self.core.cluster.cross_flags[to, sender] = count

    # ---- barriers of all cores

    def arrivals(self, kind: str) -> int:
        """The number of arrivals at barriers of a kind of core, of all blocks."""
        return self.core.cluster.arrivals[kind]

    def arrive(self, kind: str) -> None:
        self.core.cluster.arrivals[kind] += 1

    # ---- words in global memory

    def words(self, signal: Any, type: t.Type | None) -> GlobalTensor:
        """A view of words, which is inside its memory and aligned."""
        view = as_view(signal, type)
        if view.address % view.dtype.itemsize:
            raise fail(
                "PTO-M193",
                f"the address of a signal must be a multiple of 4 bytes, not {view.address:#x}",
            )
        view.as_array()
        return view

    def every(self, view: GlobalTensor, holds: Callable[[Any], Any]) -> bool:
        """True if all words satisfy a condition."""
        return bool(holds(view.as_array()).all())

    def notify(self, view: GlobalTensor, value: int, *, adds: bool) -> None:
        """Set the first word, or add to it; integers wrap."""
        first = view.as_array()[:1, :1, :1, :1, :1]
        number = np.asarray(value & 0xFFFF_FFFF, np.uint32).view(first.dtype)
        first[...] = first + number if adds else number
        if adds:
            one = GlobalTensor.of(view.memory, view.address, view.dtype, [1])
            self.core.device.combined(one, number)
