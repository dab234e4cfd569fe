"""Single elements in memory and in buffers: extends the interface of handles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.isa.meaning.handle.view import Handles
from pto.isa.meaning.scalar.arith import from_bits, to_bits
from pto.isa.row import types as t


class ElementHandles(Handles):
    """The interface of handles, extended by single elements in memory."""

    __slots__ = ()

    def load_at(self, pointer: Pointer, count: int, elem: t.Scalar) -> Any:
        """The element `index` elements after a pointer; memory holds bits, `elem` is their type."""
        return from_bits(elem, int(_bits_at(pointer, count, elem)[0]))

    def store_at(self, pointer: Pointer, count: int, elem: t.Scalar, value: Any) -> None:
        _bits_at(pointer, count, elem)[0] = to_bits(elem, value)

    def load(
        self,
        source: Tile | GlobalTensor,
        limits: Sequence[int],
        indices: Sequence[int],
        elem: t.Scalar,
    ) -> Any:
        """One element of a buffer with these sizes."""
        array, index = _item(source, limits, indices)
        return from_bits(elem, int(array[index]))

    def store(
        self,
        target: Tile | GlobalTensor,
        limits: Sequence[int],
        indices: Sequence[int],
        elem: t.Scalar,
        value: Any,
    ) -> None:
        array, index = _item(target, limits, indices)
        array[index] = to_bits(elem, value)


def _bits_at(pointer: Pointer, count: int, elem: t.Scalar) -> npt.NDArray[Any]:
    if elem.dtype is None:
        raise fail("PTO-T193", "a scalar access needs an element type")
    size = elem.dtype.itemsize
    return pointer.bytes(count * size, size).view(elem.dtype.storage)


def _item(
    container: Tile | GlobalTensor, limits: Sequence[int], indices: Sequence[int]
) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
    """An array over the memory, and the index of an element in it."""
    if isinstance(container, GlobalTensor):
        array = container.as_array()
        kind = container.dtype
        skip = (0,) * (5 - len(indices))
        limits, index = array.shape[len(skip) :], (*skip, *indices)
    else:
        array, kind = container.view(), container.type.dtype
        index = row_of(limits, indices), indices[-1] if indices else 0
    if array is None:
        raise fail("PTO-L190", "single elements of a boxed tile cannot be accessed")
    if any(not 0 <= i < n for i, n in zip(indices, limits, strict=True)):
        raise fail("PTO-S190", f"index {indices} is outside the memref of shape {list(limits)}")
    return array.view(kind.storage), index


def row_of(shape: Sequence[int], indices: Sequence[Any]) -> Any:
    """The row of an element: the rows of all leading dimensions are numbered in order."""
    row: Any = 0
    for first, extent in zip(indices[:-1], shape[:-1], strict=True):
        row = row * extent + first
    return row
