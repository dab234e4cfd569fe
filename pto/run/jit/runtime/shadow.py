"""Initialised-bytes shadow of an agent's local buffers: one byte for each of their bytes.

Compiled code maintains it (`emit/init_check.py`); Python does for steps of the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Blocked
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step

_SPACES: Final = tuple(Space)
_PLAIN: Final = (int, float, np.generic, np.ndarray, GlobalTensor, type(None))


class InitShadow:
    """The shadow of one agent. Buffers that other agents also write count as initialised."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._bytes: dict[Space, Any] = {}
        table = np.zeros(len(_SPACES), np.uint64)
        alone = len({agent.side for agent in core.cluster.agents}) == 1
        for n, space in enumerate(_SPACES):
            size = core.profile.buffers.get(space.value, 0) if space.is_local else 0
            mine = alone or space not in (Space.UB, Space.L1)
            self._bytes[space] = np.zeros(size, np.uint8) if mine else np.ones(size, np.uint8)
            table[n] = self._bytes[space].ctypes.data
        self._table = table
        self.pointer = table.ctypes.data

    def mark(self, value: Any) -> None:
        """Mark the bytes of a value as initialised, after a reference step."""
        if isinstance(value, _PLAIN):
            return
        if isinstance(value, Tile) and value.window_pitch is None:
            if self._is_mine(value.memory):
                end = value.address + value.type.nbytes
                self._bytes[value.memory.space][value.address : end] = 1
            return
        if isinstance(value, Tile | Pointer):
            if self._is_mine(value.memory):
                self._bytes[value.memory.space][:] = 1
            return
        self.mark_all()

    def mark_all(self) -> None:
        for each in self._bytes.values():
            each[:] = 1

    def _is_mine(self, memory: Memory) -> bool:
        return memory.space.is_local and memory is self._core.memory(memory.space)


def noted(
    step: Step, shadow_of: Callable[[Core], InitShadow | None], slots: Sequence[int], unknown: bool
) -> Step:
    """A step of the reference engine that marks the bytes it has written."""

    def run(core: Core, regs: Regs) -> Any:
        found = step(core, regs)
        shadow = shadow_of(core)
        if shadow is not None and not isinstance(found, Blocked):
            if unknown:
                shadow.mark_all()
            for slot in slots:
                shadow.mark(regs[slot])
        return found

    return run
