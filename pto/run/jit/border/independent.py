"""A proof, from the program and the sizes of a call, that the blocks of the call are independent.

Its cost does not depend on the number of blocks, and calls with the same sizes share it. Without a
proof, `threads.py` compares the footprints of the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pto.core.pointer import Pointer
from pto.ir.graph import Operation, Value
from pto.prove.blocks import conflicts
from pto.prove.bounds import leaving
from pto.prove.facts import facts
from pto.prove.number import Number, number
from pto.run.jit.border.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable

Given = Mapping[str, int | tuple[int, int] | None]  # numbers; arrays by machine address and bytes
_KEPT: Final = 256  # cached calls


class Independence:
    """The proofs of one kernel."""

    def __init__(self, function: Operation, names: Sequence[str]) -> None:
        """`names`: the parameters that the arguments of the function are."""
        self._function = function
        self._names = names
        self._proved: dict[object, bool] = {}

    def holds(self, blocks: int, given: Given) -> bool:
        """True if no block accesses bytes that another writes, and none leaves its arrays."""
        values = [given.get(name) for name in self._names]
        if None in values:
            return False
        arrays = {n: v for n, v in enumerate(values) if isinstance(v, tuple)}
        starts = {start: n for n, (start, _) in reversed(arrays.items())}
        if not _apart(arrays.values()):
            return False
        key = blocks, tuple((starts[v[0]], v[1]) if isinstance(v, tuple) else v for v in values)
        found = self._proved.get(key)
        if found is None:
            if len(self._proved) >= _KEPT:
                self._proved.clear()
            found = self._proved[key] = self._prove(blocks, key[1])
        return found

    def _prove(self, blocks: int, values: Sequence[Any]) -> bool:
        numbers = {n: v for n, v in enumerate(values) if not isinstance(v, tuple)}
        args = self._function.regions[0].block.args
        sizes = {id(args[n]): v[1] for n, v in enumerate(values) if isinstance(v, tuple)}
        same = {n: v[0] for n, v in enumerate(values) if isinstance(v, tuple)}
        found = facts(self._function, numbers, blocks, same=same)
        if found.unknown or any(use.combines for use in found.uses):
            return False
        return not leaving(found, _sized(sizes)) and not conflicts(found)


def _sized(sizes: Mapping[int, int]) -> Callable[[Value], Number]:
    return lambda root: number(sizes[id(root)])


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
    return value if isinstance(value, int) else 0 if isinstance(value, float) else None
