"""Programs that were launched before: checked once, planned once, compiled once.

They are found by the module itself, as long as nobody has changed it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from pto.ir.graph import Module, Operation

_KEPT: Final = 64
_Made = TypeVar("_Made")


class Known(Generic[_Made]):
    """What was made of modules; those that were used longest ago are forgotten."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[Module, int, _Made]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, module: Module, how: Hashable, make: Callable[[], _Made]) -> _Made:
        """What `make` gave for this module and these options, made anew where it has changed."""
        key, marks = (id(module), how), _marks(module)
        with self._lock:
            found = self._made.get(key)
            if found is not None and found[1] == marks:
                self._made.move_to_end(key)
                return found[2]
        made = make()
        with self._lock:
            self._made[key] = module, marks, made
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made


def _marks(module: Module) -> int:
    """A number that changes with operations, their order, operands, types and attributes."""
    found: list[int] = []
    left: list[Operation] = [module.op]
    while left:
        op = left.pop()
        found.append(id(op))
        found += map(id, op.operands)
        found += map(id, op.attrs.values())
        for result in op.results:
            found.append(id(result.type))
        for region in op.regions:
            for block in region.blocks:
                left += block.ops
    return hash(tuple(found))
