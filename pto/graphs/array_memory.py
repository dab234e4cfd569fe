"""The memory of arrays that tasks share: buffers without a common byte, found by address."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.intervals import Intervals, merged
from pto.graphs.model import TensorBox
from pto.lang.call.place import mistake
from pto.run.launch.arrays import Borrowed, in_place, over

Array = npt.NDArray[Any]


def _bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte and behind the last."""
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    address = array.ctypes.data
    if not array.size:
        return address, address
    return address + sum(min(s, 0) for s in steps), address + sum(
        max(s, 0) for s in steps
    ) + array.itemsize


def _whole(array: Borrowed) -> tuple[int, int]:
    """The bounds of the array or storage that an argument is a view of."""
    storage = getattr(array.source, "untyped_storage", None)
    if storage is not None:
        return storage().data_ptr(), storage().data_ptr() + storage().nbytes()
    root = in_place(array)
    while isinstance(root.base, np.ndarray):
        root = root.base
    return _bounds(root)


def spread(array: Array, touched: Intervals) -> Intervals:
    """Bytes of a contiguous copy as bytes of the array itself, from its first element."""
    offsets = np.zeros(array.shape, np.int64)
    for axis, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        steps = np.arange(extent, dtype=np.int64) * stride
        offsets += steps.reshape([-1 if n == axis else 1 for n in range(array.ndim)])
    size = array.itemsize
    elements = [np.arange(low // size, -(-high // size)) for low, high in touched]
    starts = offsets.ravel()[np.concatenate([np.empty(0, np.int64), *elements])]
    return merged([np.stack([starts, starts + size], axis=1)])


class ArrayMemory:
    """Buffers by number, as bytes."""

    def __init__(self) -> None:
        self.buffers: list[npt.NDArray[np.uint8]] = []
        self._starts: list[int] = []  # sorted
        self._numbers: list[int] = []
        self._held: list[Borrowed] = []  # owners of the memory

    def find(self, borrowed: Borrowed) -> tuple[int, int]:
        """The number of the buffer that holds an argument, and the offset of its first element."""
        array = in_place(borrowed)
        low, high = _bounds(array)
        at = bisect_right(self._starts, low) - 1
        if at >= 0 and high <= self._end(at):
            return self._numbers[at], array.ctypes.data - self._starts[at]
        low, high = _whole(borrowed)
        at = bisect_right(self._starts, low)
        after = at < len(self._starts) and self._starts[at] < high
        if after or (at and low < self._end(at - 1)):
            raise mistake(
                "PTO-U191",
                "an array overlaps one of an earlier task in memory and is no view of it",
                help="pass views of one array, the largest one first",
            )
        self._starts.insert(at, low)
        self._numbers.insert(at, len(self.buffers))
        self.buffers.append(over(low, high - low, np.dtype(np.uint8)))
        self._held.append(borrowed)
        return self._numbers[at], array.ctypes.data - low

    def _end(self, at: int) -> int:
        return self._starts[at] + self.buffers[self._numbers[at]].nbytes

    def box(self, borrowed: Borrowed) -> TensorBox:
        """The region of an argument; axes that run backwards are turned round."""
        array, (number, start) = in_place(borrowed), self.find(borrowed)
        flipped = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True) if s < 0]
        start, size = start + sum(flipped), array.itemsize
        if start % size or any(s % size for s in array.strides):
            low, high = _bounds(array)
            return TensorBox(number, start, (high - low,), (1,), 1, "uint8")
        strides = tuple(abs(s) // size for s in array.strides)
        return TensorBox(number, start // size, array.shape, strides, size, str(array.dtype))
