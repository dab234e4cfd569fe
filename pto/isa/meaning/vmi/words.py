"""The words that meanings of whole vectors are written in, registers or logical ones, on NumPy.

A meaning of kind `Vectors` is a function of these words and the operands: vectors and masks are
lanes (`core/primitives.py`), scalars are numbers to count with, places in memory are counted in
elements from a pointer on. The same function runs on the words of the compiled engine
(`run/jit/emit/vmi/words.py`), where nobody knows values yet: nothing branches on them but by
`require` and `choose`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.pointer import Pointer
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector.ub import Items, positions, whole
from pto.isa.meaning.vector.values import lane_maker
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

Picks = npt.NDArray[np.int64]
Run = tuple[Any, int]  # where elements that follow each other begin, and how many there are
NONE: Final = -1  # a pick that gives 0


class Words:
    """At once, on arrays. Every place is checked before anything is read or written."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._memory: dict[np.dtype[Any], Callable[[Pointer], tuple[Items, int]]] = {}

    def _at(
        self, pointer: Pointer, item: np.dtype[Any], places: Any, active: Any
    ) -> tuple[Items, Items]:
        """The memory as items, and which of them are meant."""
        found = self._memory.get(item)
        if found is None:
            found = self._memory[item] = whole(item)
        typed, start = found(pointer)
        return typed, positions(self._case, typed, start, places, active)

    def runs(self, source: Pointer, item: np.dtype[Any], runs: Sequence[Run]) -> Lanes:
        """Elements of memory, run by run."""
        typed, at = self._at(source, item, _places(runs), None)
        return typed[at]

    def put_runs(
        self, target: Pointer, runs: Sequence[Run], values: Lanes, mask: Lanes | None
    ) -> None:
        """To memory, run by run; only the active ones."""
        typed, at = self._at(target, values.dtype, _places(runs), mask)
        typed[at] = values if mask is None else values[mask]

    def gather(self, source: Pointer, item: np.dtype[Any], places: Lanes, mask: Lanes) -> Lanes:
        """Single elements; 0 in lanes that are off."""
        typed, at = self._at(source, item, places, mask)
        out = np.zeros(mask.size, item)
        out[mask] = typed[at]
        return out

    def scatter(self, target: Pointer, places: Lanes, values: Lanes, mask: Lanes) -> None:
        """Single elements of the active lanes; of equal places the last lane wins."""
        typed, at = self._at(target, values.dtype, places, mask)
        typed[at] = values[mask]

    def take(self, parts: Sequence[Lanes], picks: Picks) -> Lanes:
        """Lanes of vectors that stand one behind the other, by numbers known beforehand."""
        every = np.concatenate([*parts, np.zeros(1, parts[0].dtype)])
        return every[picks]  # NONE is the last

    def window(self, parts: Sequence[Lanes | None], start: int, count: int) -> Lanes:
        """So many lanes from a number on, of vectors one behind the other; None is one of zeros."""
        like = next(part for part in parts if part is not None)
        whole = [np.zeros_like(like) if part is None else part for part in parts]
        return np.concatenate(whole)[start : start + count]

    def by_index(self, value: Lanes, index: Lanes) -> Lanes:
        """Lanes by numbers below their count."""
        return value[index]

    def compress(self, value: Lanes, mask: Lanes) -> Lanes:
        """The active lanes one behind the other, 0 behind them."""
        out = np.zeros_like(value)
        kept = value[mask]
        out[: kept.size] = kept
        return out

    def counts(self, value: Lanes, mask: Lanes, bins: int) -> Lanes:
        """How many active lanes hold 0, 1, .. bins - 1, in 16 bits."""
        return np.bincount(value[mask], minlength=bins)[:bins].astype(np.uint16)

    def spread(self, value: Any, kind: DType, count: int) -> Lanes:
        """A scalar operand in every lane."""
        return np.full(count, lane_maker(kind)(value), kind.numpy)

    def reinterpret(self, value: Lanes, item: np.dtype[Any]) -> Lanes:
        """The same bits as lanes of another width."""
        return np.ascontiguousarray(value).view(item)

    # ---- numbers

    def number(self, value: Any) -> int:
        """An integer operand, to count with."""
        return int(value)

    def lanes(self, number: int, count: int) -> Any:
        """A number beside so many lanes of int64."""
        return number

    def choose(self, fact: bool, a: Callable[[], int], b: int) -> int:
        """The number a() where the fact holds, else b."""
        return a() if fact else b

    def scalar(self, number: int, type: t.Scalar) -> int:
        """A result: a number that its type can hold."""
        return number

    def all(self, mask: Lanes) -> bool:
        """Whether it holds in every lane."""
        return bool(mask.all())

    def require(self, fact: bool, error: Callable[[], PtoError]) -> None:
        """A program that does otherwise stops here; nothing has been written yet."""
        if not fact:
            raise error()


def _places(runs: Sequence[Run]) -> Picks:
    return np.concatenate([np.arange(start, start + size, dtype=np.int64) for start, size in runs])
