"""Arrays that a kernel only updates by atomic operations: sums, maxima and minima.

Blocks that add to the same bytes need no order: a worker collects their additions separately, and
the host adds them in the order of the blocks. If the order cannot change the bits (integers), one
sum for each worker is enough; sums of floats are kept for each block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core.dtypes import DType, dtype
from pto.core.intervals import Bytes, Intervals
from pto.ir.graph import Operation, Value
from pto.isa.meaning.tile.move import COMBINE, STORE
from pto.isa.row import types as t
from pto.isa.row.attributes import Enum
from pto.isa.row.traits import Control
from pto.plan.calls import FunctionNames, names_of, with_peers
from pto.plan.stores import is_global, root
from pto.run.launch.prepared import PreparedKernel

_ADD = "atomic_add"


@dataclass(frozen=True, slots=True)
class Accumulator:
    """How an array is updated: a key of `COMBINE`, and the element type."""

    word: str
    element: str

    @property
    def dtype(self) -> DType:
        return dtype(self.element)

    @property
    def by_block(self) -> bool:
        """True if the order of blocks changes the bits."""
        return self.dtype.is_float

    @property
    def combine(self) -> Callable[[Any, Any], Any]:
        function = COMBINE[self.word]
        if function is None:
            raise RuntimeError(f"{self.word} does not combine")
        return function

    def neutral(self) -> Any:
        """The neutral element: -0.0 for sums of floats."""
        kind = self.dtype.numpy
        if self.word == _ADD:
            return np.array(-0.0 if self.dtype.is_float else 0).astype(kind)
        limits = np.iinfo(kind)
        return np.array(limits.min if self.word == "atomic_max" else limits.max, kind)

    def clear(self, data: Bytes, intervals: Intervals | None = None) -> None:
        """Set all of the bytes, or these intervals, to the neutral element."""
        items = data.view(self.dtype.numpy)
        if intervals is None:
            items[...] = self.neutral()
            return
        size = self.dtype.itemsize
        for start, end in intervals.tolist():
            items[start // size : end // size] = self.neutral()

    def apply(self, data: Bytes, intervals: Intervals, values: Bytes) -> None:
        """Combine the array with the values that one worker or block has collected."""
        items, increments = data.view(self.dtype.numpy), values.view(self.dtype.numpy)
        size, at = self.dtype.itemsize, 0
        for start, end in (intervals // size).tolist():
            span = items[start:end]
            span[...] = self.combine(span, increments[at : at + end - start])
            at += end - start


def accumulators(kernel: PreparedKernel) -> dict[str, Accumulator]:
    """The parameters that a kernel only updates atomically, with one element type."""
    names, uses = list(kernel.parameters), dict[str, set[Accumulator | None]]()
    entries = {id(f) for f in kernel.functions}
    for function in with_peers(kernel.functions, FunctionNames()):
        args = function.regions[0].block.args
        name_of = dict(zip(map(id, args), names_of(args, names), strict=True))
        for op, value in _touching(function):
            name = name_of.get(id(root(value))) if id(function) in entries else None
            if name is None:
                return {}  # it may be any array
            uses.setdefault(name, set()).add(_use(op, value))
    return {n: next(iter(u)) for n, u in uses.items() if len(u) == 1 and None not in u}  # type: ignore[misc]


def _touching(function: Operation) -> Iterator[tuple[Operation, Value]]:
    """Operations that access global memory, each with the value that refers to it."""
    for op in function.walk():
        if op.traits.names_only or op.control is Control.FUNCTION:
            continue
        for value in op.operands:
            if is_global(value.type):
                yield op, value


def _use(op: Operation, value: Value) -> Accumulator | None:
    """How an operation updates memory; None for a plain read or write."""
    if op.body is not STORE or value is not op.operand("dst"):
        return None
    word = op.attrs.get("atomicType")
    elem = getattr(value.type, "elem", None)
    kind = elem.dtype if isinstance(elem, t.Scalar) else None
    if not isinstance(word, Enum) or COMBINE.get(word.value) is None or kind is None:
        return None
    if kind.is_packed or (kind.is_float and word.value != _ADD):
        return None
    return Accumulator(word.value, kind.name)
