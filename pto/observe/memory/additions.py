"""How far sums of atomic additions may differ where the order of the additions is open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.observe.memory.atomic import combination
from pto.run.machine.core import Core
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import Access, WatchedMemory

_NOBODY: Final = -1


class _Sums:
    """The additions to each element of one array."""

    def __init__(self, raw: npt.NDArray[np.uint8], kind: DType) -> None:
        usable = raw[: raw.size // kind.itemsize * kind.itemsize]
        self.kind = kind
        self.values: npt.NDArray[Any] = usable.view(kind.numpy)
        self.before = self.values.astype(np.float64)
        self.sizes = np.abs(self.before)  # the sum of the magnitudes of all terms
        self.counts = np.zeros(self.values.size, np.int64)
        self.agents = np.full(self.values.size, _NOBODY)
        self.shared = np.zeros(self.values.size, np.bool_)  # several agents add

    def write(self, access: Access, agent: int, adds: bool) -> None:
        elements, counts = np.unique(access.bytes() // self.kind.itemsize, return_counts=True)
        now = self.values[elements].astype(np.float64)
        if adds:
            self.sizes[elements] += np.abs(now - self.before[elements])
            self.counts[elements] += -(-counts // self.kind.itemsize)
            others = self.agents[elements]
            self.shared[elements] |= (others != _NOBODY) & (others != agent)
        else:
            self.sizes[elements] = np.abs(now)
            self.counts[elements] = 0
            self.shared[elements] = False
        self.agents[elements] = agent if adds else _NOBODY
        self.before[elements] = now

    def error(self) -> float:
        """Each of n additions rounds by at most u times the sum of all magnitudes, in either order
        (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2)."""
        unit = float(ml_dtypes.finfo(self.kind.numpy).eps) / 2
        bounds = (2 * unit * self.counts * self.sizes)[self.shared]
        return float(np.max(bounds, initial=0.0, where=np.isfinite(bounds)))


class FloatAdditions(Observer):
    """Notes the atomic additions to arrays of floats, given by address with their element type."""

    def __init__(self, kinds: Mapping[int, DType]) -> None:
        self._kinds = kinds
        self._sums: dict[int, _Sums] = {}
        self._agents: dict[str, int] = {}

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        kind = self._kinds.get(memory.base)
        if core is None and kind is not None:
            memory.shadow = self._sums[memory.base] = _Sums(memory.raw, kind)

    def event(self, event: InstructionEvent) -> None:
        for access in event.accesses:
            sums = access.memory.shadow
            if access.writes and sums is not None:
                agent = self._agents.setdefault(event.core.name, len(self._agents))
                sums.write(access, agent, combination(event.op, event.core) == "add")

    def error(self, address: int) -> float:
        """The largest difference between two orders, of the array at this address."""
        sums = self._sums.get(address)
        return 0.0 if sums is None else sums.error()
