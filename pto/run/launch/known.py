"""A cache of launched programs: each is checked, planned and compiled once.

The key is the module object; a module that has changed since is compiled again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

from pto.ir.graph import Module

_KEPT: Final = 64
_Made = TypeVar("_Made")


class ProgramCache(Generic[_Made]):
    """A cache of results by module and options; the least recently used are dropped."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[_Snapshot, _Made]] = OrderedDict()
        self._seen = WeakValueDictionary[int, _Snapshot]()  # of modules with several entries
        self._lock = threading.Lock()

    def get(self, module: Module, how: Hashable, make: Callable[[], _Made]) -> _Made:
        """The result of `make` for this module and these options, made again after a change."""
        key = id(module), how
        with self._lock:
            found = self._made.get(key)
            if found is not None and found[0].is_as_it_was():
                self._made.move_to_end(key)
                return found[1]
            before = self._seen.get(id(module))
        if before is None or not before.is_as_it_was():
            before = _Snapshot(module)
        made = make()
        with self._lock:
            self._seen[id(module)] = before
            self._made[key] = before, made
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made


_OF_OPERATION: Final = attrgetter("row", "operands", "attrs", "results", "regions", "segments")
_OF_BLOCK: Final = attrgetter("ops", "args")


class _Snapshot:
    """The state of a module: its operations in order, their fields, and the types of values.

    Lists of the same objects are compared without Python code.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        ops = self._ops = list(module.walk())
        regions = [region for op in ops for region in op.regions]
        blocks = [block for region in regions for block in region.blocks]
        values = [value for op in ops for value in op.results]
        values += [value for block in blocks for value in block.args]
        self._parts = [
            (of, objects, _kept(list(map(of, objects))))
            for of, objects in (
                (_OF_OPERATION, ops),
                (_OF_BLOCK, blocks),
                (attrgetter("blocks"), regions),
                (attrgetter("type"), values),
            )
        ]

    def is_as_it_was(self) -> bool:
        if self._module.op is not self._ops[0]:
            return False
        for of, objects, kept in self._parts:  # noqa: SIM110 - a call less
            if list(map(of, objects)) != kept:
                return False
        return True


def _kept(part: Any) -> Any:
    """A copy that later changes of the lists in it do not affect."""
    if isinstance(part, list | tuple):
        return type(part)(map(_kept, part))  # pyright: ignore[reportUnknownVariableType]
    return dict(part) if isinstance(part, dict) else part  # pyright: ignore
