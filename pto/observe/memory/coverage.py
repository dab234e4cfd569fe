"""How much of its outputs a launch has written: a block too few, a step too long leave holes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.ir.graph import Module
from pto.isa.row.order import OpenQueue
from pto.plan.stores import Covered, writers
from pto.run.machine.core import Core
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import WatchedMemory


class Coverage(list[Covered]):
    """The outputs of a launch; prints a line for each."""

    @property
    def is_complete(self) -> bool:
        return not any(output.never for output in self)

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no output"

    __repr__ = __str__


class Writes(Observer):
    """Notes every byte of global memory that is written."""

    def __init__(self) -> None:
        self._written: dict[int, npt.NDArray[np.bool_]] = {}  # by address of the memory

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        if core is None:
            memory.shadow = self._written.setdefault(memory.base, np.zeros(memory.size, np.bool_))

    def event(self, event: InstructionEvent) -> None:
        for access in event.accesses:
            if access.writes and not access.memory.space.is_local:
                access.memory.shadow[access.where()] = True

    def coverage(self, module: Module, arrays: Mapping[str, npt.NDArray[Any]]) -> Coverage:
        """Of the arrays that the program writes to."""
        names = set(_outputs(module, list(arrays)))
        return Coverage(self._covered(n, a) for n, a in arrays.items() if n in names and a.size)

    def _covered(self, name: str, array: npt.NDArray[Any]) -> Covered:
        bytes_ = self._written.get(array.ctypes.data)
        if bytes_ is None:
            return Covered(name, array.size, array.size, (0,) * array.ndim)
        done = bytes_[: array.nbytes].reshape(array.size, -1).all(axis=1)
        holes = np.flatnonzero(~done)
        first = np.unravel_index(holes[0], array.shape) if holes.size else None
        hole = None if first is None else tuple(int(n) for n in first)
        return Covered(name, array.size, int(holes.size), hole)


def _outputs(module: Module, names: list[str]) -> Iterator[str]:
    for function in module.functions():
        args = [arg.name for arg in function.regions[0].block.args]
        written_by = writers(function)
        if written_by is None:
            yield from names
            continue
        # the slots of a queue are no output
        yield from (args[n] for n, op in written_by.items() if not isinstance(op.order, OpenQueue))
