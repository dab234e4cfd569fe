"""The interface for meanings of whole vectors, registers or logical ones, implemented on NumPy.

A meaning of kind `Vectors` is a function of this interface and the operands: vectors and masks are
lanes (`core/primitives.py`), scalars are numbers, places in memory are counted in elements from a
pointer. The same function runs on the implementation of the compiled engine
(`run/jit/emit/vmi/words.py`) with symbolic values. It therefore branches on values only with
`require` and
`choose`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.memory import Memory
from pto.core.pointer import Pointer
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import NumberWords
from pto.isa.meaning.vector.ub import Items, positions
from pto.isa.meaning.vector.values import lane_maker
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

Picks = npt.NDArray[np.int64]
Run = tuple[Any, int]  # starts of runs of consecutive elements, and their lengths
NONE: Final = -1  # a lane number that gives 0


class VectorWords(NumberWords):
    """Implementation on arrays. Every address is checked before anything is read or written."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._seen: dict[np.dtype[Any], tuple[Memory, int, Items]] = {}

    def _at(
        self, pointer: Pointer, item: np.dtype[Any], places: Any, active: Any
    ) -> tuple[Items, Items]:
        """The memory as items aligned with the pointer, and the index of the selected ones.

        The last view of a memory is cached: it costs more than the access itself.
        """
        size, memory = item.itemsize, pointer.memory
        start, phase = divmod(pointer.address, size)
        typed_view = self._seen.get(item)
        if typed_view is None or typed_view[0] is not memory or typed_view[1] != phase:
            typed = memory.data[phase:][: (memory.size - phase) // size * size].view(item)
            typed_view = self._seen[item] = memory, phase, typed
        return typed_view[2], positions(self.case, typed_view[2], start, places, active)

    def runs(self, source: Pointer, item: np.dtype[Any], runs: Sequence[Run]) -> Lanes:
        """Elements of memory, run by run."""
        typed, at = self._at(source, item, _places(runs), None)
        return typed[at]

    def put_runs(
        self, target: Pointer, runs: Sequence[Run], values: Lanes, mask: Lanes | None
    ) -> None:
        """Store active lanes to memory, run by run."""
        typed, at = self._at(target, values.dtype, _places(runs), mask)
        typed[at] = values if mask is None else values[mask]

    def gather(
        self, source: Pointer, item: np.dtype[Any], places: Lanes, mask: Lanes | None
    ) -> Lanes:
        """Single elements; 0 in inactive lanes (None: all are active)."""
        typed, at = self._at(source, item, places, mask)
        if mask is None:
            return typed[at]
        out = np.zeros(mask.size, item)
        out[mask] = typed[at]
        return out

    def scatter(self, target: Pointer, places: Lanes, values: Lanes, mask: Lanes | None) -> None:
        """Store single elements of the active lanes; of equal places the last lane wins."""
        typed, at = self._at(target, values.dtype, places, mask)
        typed[at] = values if mask is None else values[mask]

    def take(self, parts: Sequence[Lanes], picks: Picks) -> Lanes:
        """Lanes of concatenated vectors, by numbers known in advance."""
        every = np.concatenate([*parts, np.zeros(1, parts[0].dtype)])
        return every[picks]  # NONE is the last

    def window(self, parts: Sequence[Lanes | None], start: int, count: int) -> Lanes:
        """`count` lanes of concatenated vectors from a number on; None is a vector of zeros."""
        like = next(part for part in parts if part is not None)
        filled = [np.zeros_like(like) if part is None else part for part in parts]
        return np.concatenate(filled)[start : start + count]

    def by_index(self, value: Lanes, index: Lanes) -> Lanes:
        """Lanes by index; every index is below the number of lanes."""
        return value[index]

    def compress(self, value: Lanes, mask: Lanes) -> Lanes:
        """The active lanes without gaps, zeros after them."""
        out = np.zeros_like(value)
        active = value[mask]
        out[: active.size] = active
        return out

    def counts(self, value: Lanes, mask: Lanes, bins: int) -> Lanes:
        """The number of active lanes that hold 0, 1, .. bins - 1, in 16 bits."""
        return np.bincount(value[mask], minlength=bins)[:bins].astype(np.uint16)

    def spread(self, value: Any, kind: DType, count: int) -> Lanes:
        """A scalar operand in every lane."""
        return np.full(count, lane_maker(kind)(value), kind.numpy)

    def reinterpret(self, value: Lanes, item: np.dtype[Any]) -> Lanes:
        """The same bits as lanes of another width."""
        return np.ascontiguousarray(value).view(item)

    # ---- numbers

    def number(self, value: Any) -> int:
        """An integer operand as a number."""
        return int(value)

    def lanes(self, number: int, count: int) -> Any:
        """A number as int64 lanes."""
        return number

    def scalar(self, number: int, type: t.Scalar) -> int:
        """A scalar result; the number is in the range of its type."""
        return number

    def all(self, mask: Lanes) -> bool:
        """True if the condition holds in every lane."""
        return bool(mask.all())


def _places(runs: Sequence[Run]) -> Picks:
    return np.concatenate([np.arange(start, start + size, dtype=np.int64) for start, size in runs])
