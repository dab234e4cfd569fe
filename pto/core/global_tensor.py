"""Global tensors: a pointer into GM with five dimensions, strides and a layout. Never the storage.

How tiles are loaded from and stored to them is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from pto.core.constants import C0_SIZE_BYTE
from pto.core.dtypes import DType, items_of
from pto.core.errors import PtoError, fail
from pto.core.global_layout import C0_AXIS, ND, RANK, GlobalLayout, Shape5, default_strides, times
from pto.core.memory import Bytes, Memory, Space


@dataclass(frozen=True, slots=True)
class GlobalTensor:
    """GlobalTensor<DType, Shape, Stride, Layout> of the manual at a byte address of a memory."""

    memory: Memory
    address: int
    dtype: DType
    shape: Shape5
    strides: Shape5  # in elements
    layout: GlobalLayout = ND

    @classmethod
    def of(
        cls,
        memory: Memory,
        address: int,
        dtype: DType,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        layout: GlobalLayout = ND,
    ) -> GlobalTensor:
        """A tensor of one to five dimensions; absent strides mean a tensor without gaps."""
        five = _five(shape, 1)
        if strides is None:
            filled = default_strides(layout, five, dtype.itemsize)
            return cls(memory, address, dtype, five, filled, layout)
        if len(strides) != len(shape):
            raise _malformed(shape, strides, "has as many strides as dimensions")
        # A dimension of one element is never stepped over: its stride is only bookkeeping.
        extent = max((n * step for n, step in zip(shape, strides, strict=True)), default=1)
        return cls(memory, address, dtype, five, _five(strides, extent), layout)

    @classmethod
    def from_array(
        cls, array: npt.NDArray[Any], dtype: DType, layout: GlobalLayout = ND
    ) -> GlobalTensor:
        """A tensor over the caller's array, strided or not: nothing is copied."""
        size, steps = dtype.itemsize, array.strides
        stepped = all(step >= 0 and step % size == 0 for step in steps)
        typed = array.dtype in (dtype.numpy, dtype.storage)
        if not typed or not stepped or not array.flags.writeable:
            access = "writable" if array.flags.writeable else "read-only"
            raise fail(
                "PTO-M008",
                f"a {access} array of {array.dtype} with byte strides {steps} cannot be seen as "
                f"{dtype.name} without a copy",
                help=f"pass a writable array of {dtype.numpy} with steps that are not negative",
            )
        memory = Memory.over(Space.GM, _bytes_of(array))
        return cls.of(memory, 0, dtype, array.shape, [step // size for step in steps], layout)

    def __post_init__(self) -> None:
        if min(self.shape) < 0 or min(self.strides) < 0:
            raise _malformed(self.shape, self.strides, "has no negative size or stride")
        if self.layout.sizes:
            self.layout.check(self.shape)

    def __str__(self) -> str:
        return f"{times(self.shape)}x{self.dtype.name} {self.layout}"

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last one."""
        if 0 in self.shape:
            return 0
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return (reach + self._c0) * self.dtype.itemsize

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Rows and columns a tile sees."""
        if self.layout.name in ("ND", "DN") and self.shape[:3] == (1, 1, 1):
            return self.shape[3:]  # type: ignore[return-value]
        return self.layout.matrix_shape(self.shape, self.dtype.itemsize)

    def offset(self, r: Any, c: Any) -> Any:
        """Element offset of row r, column c from the pointer; ints or index arrays."""
        return self.layout.offset(r, c, self.shape, self.strides, self.dtype.itemsize)

    def as_array(self) -> npt.NDArray[Any]:
        """The elements as a five-dimensional array over the same memory: no copy, writable."""
        return self._strided(self.shape, self.strides)

    def as_matrix(self) -> npt.NDArray[Any]:
        """The elements as an array: its first axes make the row, its last axes the column.

        Reshaping it to `matrix_shape` gives the matrix; over the same memory, so writable.
        """
        size = self.dtype.itemsize
        self.layout.matrix_shape(self.shape, size)  # raises if the layout has no index map
        axes = (*self.layout.row_axes, *self.layout.col_axes)
        shape, strides = (*self.shape, self._c0), (*self.strides, 1)
        return self._strided([shape[a] for a in axes], [strides[a] for a in axes])

    def matrix(self) -> npt.NDArray[Any] | None:
        """A writable view of shape `matrix_shape`, or None where that needs a copy."""
        parts = self.as_matrix()
        reshaped = parts.reshape(self.matrix_shape)
        return reshaped if np.may_share_memory(parts, reshaped) else None

    def read_matrix(self) -> npt.NDArray[Any]:
        """A copy of the elements of shape `matrix_shape`."""
        parts = self.as_matrix()
        result = np.empty(self.matrix_shape, self.dtype.numpy)
        result.reshape(parts.shape)[...] = parts
        return result

    def write_matrix(self, array: npt.NDArray[Any]) -> None:
        """Store an array of shape `matrix_shape`."""
        if array.shape != self.matrix_shape:
            raise fail(
                "PTO-S006",
                f"{self} takes an array of {times(self.matrix_shape)}, not {times(array.shape)}",
            )
        items, target = items_of(self.dtype, array), self.as_matrix()
        target.view(self.dtype.storage)[...] = items.reshape(target.shape)

    def partition(self, offsets: Sequence[int], sizes: Sequence[int]) -> GlobalTensor:
        """The sub-tensor of `sizes` at `offsets`; fewer than five apply to the last dimensions."""
        if len(offsets) != len(sizes):
            raise _malformed(sizes, offsets, "has as many offsets as sizes")
        start = _five(offsets, 0)
        size: Shape5 = _join(self.shape[: RANK - len(sizes)], sizes)
        for axis in range(RANK):
            first = start[axis]
            count = size[axis]
            limit = self.shape[axis]
            if first < 0 or count < 0 or first + count > limit:
                raise self._outside(axis - RANK + len(sizes), first, count, limit)
        skipped = sum(n * step for n, step in zip(start, self.strides, strict=True))
        return replace(self, address=self.address + skipped * self.dtype.itemsize, shape=size)

    def _outside(self, axis: int, first: int, count: int, limit: int) -> PtoError:
        """The error for a partition outside the tensor; `axis` counts the program's dimensions."""
        if first < 0:
            help = (
                f"the window begins {-first} before the first element: an index cannot be negative,"
                " so branch on it, or clamp it"
            )
        elif first >= limit:
            help = (
                f"the window begins behind the last element, {limit - 1}: launch fewer blocks, end"
                " the loop before, or check an index that is read from an array"
            )
        else:
            help = (
                f"{limit - first} are left from {first} on, and the tile has {count}:"
                " set_validshape narrows it; in Python pto.zeros_like(t) has the region of t"
            )
        return fail(
            "PTO-M006",
            f"partition of {count} from {first} in dimension {axis} does not fit "
            f"its size {limit} ({self})",
            help=help,
        )

    @property
    def _c0(self) -> int:
        axes = (*self.layout.row_axes, *self.layout.col_axes)
        return C0_SIZE_BYTE // self.dtype.itemsize if C0_AXIS in axes else 1

    def _strided(self, shape: Sequence[int], strides: Sequence[int]) -> npt.NDArray[Any]:
        """A strided view. A tensor may be declared larger than its memory: only the elements used
        must lie inside."""
        if 0 in shape:
            return np.zeros(tuple(shape), self.dtype.numpy)
        self.memory.check(self.address, self.nbytes)
        size = self.dtype.itemsize
        steps = tuple([step * size for step in strides])
        return self.memory.strided(self.address, tuple(shape), steps, self.dtype.numpy)


def _bytes_of(array: npt.NDArray[Any]) -> Bytes:
    """The bytes from the first to the last element of an array with steps >= 0, without a copy."""
    if not array.size:
        return np.zeros(0, np.uint8)
    reach = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
    first = as_strided(array, (1,), (array.itemsize,)).view(np.uint8)
    return as_strided(first, (reach + array.itemsize,), (1,))


def _five(sizes: Sequence[int], fill: int) -> Shape5:
    return _join([fill] * (RANK - len(sizes)), sizes)


def _join(outer: Sequence[int], inner: Sequence[int]) -> Shape5:
    if len(outer) + len(inner) != RANK:
        raise fail("PTO-M007", f"a global tensor has at most {RANK} dimensions, not {len(inner)}")
    a, b, c, d, e = (*outer, *inner)
    return a, b, c, d, e


def _malformed(shape: Sequence[int], strides: Sequence[int], rule: str) -> PtoError:
    return fail("PTO-M007", f"a global tensor {rule}: {tuple(shape)} with {tuple(strides)}")
