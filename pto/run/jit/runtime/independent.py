"""A proof, from the program and the sizes of a call, that the blocks of the call are independent.

Its cost does not depend on the number of blocks, and calls with the same sizes share it. Without a
proof, blocks run in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from pto.core.pointer import Pointer
from pto.ir.graph import Operation
from pto.run.jit.runtime.context import Context

Given = Mapping[str, int | tuple[int, int] | None]  # numbers; arrays by machine address and bytes
Key = tuple[int, tuple[Any, ...]]  # the number of blocks; numbers, and arrays as index and bytes
_KEPT: Final = 256  # cached calls


class Independence:
    """The proofs of one kernel."""

    def __init__(self, function: Operation, names: Sequence[str]) -> None:
        """`names`: the parameters that the arguments of the function are."""
        self._function = function
        self._names = names
        self._proved: dict[Key, bool] = {}
        self.seconds: dict[Key | None, float] = {}  # of one block, for calls that are worth threads
        self.measured: set[int] = set()  # the numbers of blocks of these calls

    def measure(self, key: Key, seconds: float) -> None:
        """Keep the time of one block, so that later calls need not measure it."""
        if len(self.seconds) >= _KEPT:
            self.seconds.clear()
        self.seconds[key] = seconds
        self.measured.add(key[0])

    def key(self, blocks: int, given: Given) -> Key | None:
        """The numbers that a proof depends on; None if arrays overlap, or one is not known."""
        values = [given.get(name) for name in self._names]
        if None in values:
            return None
        arrays = {n: v for n, v in enumerate(values) if isinstance(v, tuple)}
        starts = {start: n for n, (start, _) in reversed(arrays.items())}
        if not _apart(arrays.values()):
            return None
        return blocks, tuple((starts[v[0]], v[1]) if isinstance(v, tuple) else v for v in values)

    def holds(self, key: Key) -> bool:
        """True if no block accesses bytes that another writes, and none leaves its arrays."""
        found = self._proved.get(key)
        if found is None:
            if len(self._proved) >= _KEPT:
                self._proved.clear()
            found = self._proved[key] = self._prove(*key)
        return found

    def _prove(self, blocks: int, values: Sequence[Any]) -> bool:
        from pto.prove.assume import Stated
        from pto.prove.blocks import conflicts
        from pto.prove.bounds import leaving
        from pto.prove.facts import facts

        numbers = {n: v for n, v in enumerate(values) if not isinstance(v, tuple)}
        args = self._function.regions[0].block.args
        sizes = {args[n]: v[1] for n, v in enumerate(values) if isinstance(v, tuple)}
        same = {n: v[0] for n, v in enumerate(values) if isinstance(v, tuple)}
        found = facts(self._function, Stated(numbers, same=same), blocks)
        if found.unknown or any(use.combines for use in found.uses):
            return False
        return not leaving(found, sizes) and not conflicts(found)


def _apart(arrays: Any) -> bool:
    """True if different arrays share no byte."""
    ends = sorted({(start, start + size) for start, size in arrays})
    return all(a[1] <= b[0] for a, b in pairwise(ends))


def given_of(values: Mapping[str, Any], context: Context) -> Given:
    """The arguments of a launch."""
    return {name: _argument(value, context) for name, value in values.items()}


def _argument(value: Any, context: Context) -> int | tuple[int, int] | None:
    if isinstance(value, Pointer):
        row = None if value.address else context.number(value.memory)
        return None if row is None else (int(context.rows[row, 0]), int(context.rows[row, 1]))
    return value if isinstance(value, int) else 0 if isinstance(value, float | np.generic) else None
