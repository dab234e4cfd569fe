"""One dimension of a window on global memory, made from a Python slice or index."""

from __future__ import annotations

from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.values.linear import Linear
from pto.lang.values.scalars import (
    Extent,
    Scalar,
    arith,
    is_at_least,
    is_at_most,
    is_number,
    linear_of,
    select,
)


class WindowSpan:
    """One dimension of a window: its start and extent."""

    __slots__ = ("extent", "is_index", "is_open", "is_whole", "length", "start")

    def __init__(
        self,
        start: Extent,
        extent: Extent,
        is_index: bool,
        is_open: bool,
        is_whole: bool = False,
        length: Extent | None = None,
    ) -> None:
        self.start = start
        self.extent = extent  # upper bound; a Python number if known
        # before the array's end cuts it
        self.length = extent if length is None or is_number(extent) else length
        self.is_index = is_index
        self.is_open = is_open  # it ends at the end of the array
        self.is_whole = is_whole  # written as `:`, or not at all

    def part(self, key: object) -> WindowSpan:
        """The sub-range selected by an index or a slice."""
        inner = span(key, self.extent)
        is_open, is_whole = (a and b for a, b in zip(self._kind, inner._kind, strict=True))
        start = arith("+", self.start, inner.start)
        if isinstance(inner.start, Scalar) and (leaves := self._leaves(inner)) is not None:
            start = select(leaves, -1, start)  # outside of the array, which is an error of the run
        length = inner.length
        if inner.is_open and is_number(self.length) and is_number(inner.start):
            length = self.length - inner.start
        return WindowSpan(start, inner.extent, inner.is_index, is_open, is_whole, length)

    def _leaves(self, inner: WindowSpan) -> Scalar[object] | None:
        """The condition on which a part leaves the sub-range and may stay inside of the array;
        None if it never does. A slice is cut at the end of the sub-range, an index is not."""
        begin, end = inner.start, self.extent
        before = after = None
        if not (is_number(self.start) and self.start == 0) and not is_at_least(begin, 0):
            before = begin < 0
        if inner.is_index and not (self.is_open or (is_number(end) and is_at_most(begin, end - 1))):
            after = begin >= end
        return after if before is None else before if after is None else before | after

    @property
    def _kind(self) -> tuple[bool, bool]:
        return self.is_open, self.is_whole

    def is_exceeded(self, size: Extent, times: int) -> bool:
        """True if Python knows that `size` is more than `times` such slices have."""
        if self.is_open or not (is_number(size) and is_number(self.length)):
            return False
        return size > self.length * times

    def size_for(self, capacity: int) -> Extent:
        """The number of elements to move into a tile with `capacity` elements along this axis."""
        if capacity == 0:
            return 0
        if is_number(self.extent):
            return min(capacity, self.extent)
        if self.is_whole and current().limit(self.extent, capacity):
            return self.extent
        linear = linear_of(self.extent)
        in_tiles = linear is not None and linear.multiple and linear.multiple % capacity == 0
        if in_tiles and (self.is_open or is_at_least(self.extent, capacity)):
            return capacity  # whole tiles: what lies beyond the array is an error, not an edge
        least = lambda: arith("min", arith("max", self.extent, 0), capacity)  # noqa: E731
        if linear is None:
            return least()
        key = capacity, linear.const, frozenset(linear.terms.items())
        return current().once(key, least)


def span(key: Extent, size: Extent) -> WindowSpan:
    if not isinstance(key, slice):
        if is_number(key) and is_number(size) and not -size <= key < size:
            raise mistake("PTO-S201", f"index {key} of a dimension of size {size}")
        start = key + size if is_number(key) and key < 0 else key
        return WindowSpan(_checked(start), 1, True, False)
    if not in_ones(key):
        raise mistake("PTO-S201", f"a window of a window goes in steps of one, not {key.step!r}")
    start = _from_end(0 if key.start is None else key.start, size)
    _require_some(start, size if key.stop is None else _from_end(key.stop, size), size)
    stop = size if key.stop is None else _from_end(key.stop, size)
    length = arith("-", stop, start)
    if is_number(length) and length <= 0:
        raise mistake("PTO-S201", f"a slice of {length} elements: it is empty for all values")
    if key.stop is None:
        return WindowSpan(start, length, False, True, key.start is None)
    if is_number(length) and not is_number(start) and _ends_inside(start, length, size):
        return WindowSpan(start, length, False, False)
    extent = arith("-", _least(stop, size), start)
    return WindowSpan(start, extent, False, False, length=length)


def _least(stop: Extent, size: Extent) -> Extent:
    """The end of a slice, cut at the end of the array; one number for equal slices."""
    forms = linear_of(stop), linear_of(size)
    least = lambda: arith("min", stop, size)  # noqa: E731
    if None in forms or (is_number(stop) and is_number(size)):
        return least()
    key = tuple((form.const, frozenset(form.terms.items())) for form in forms if form is not None)
    return current().once(key, least)


def in_ones(key: slice) -> bool:
    """True for a slice in steps of one."""
    return key.step is None or (is_number(key.step) and key.step == 1)


def _require_some(start: Extent, stop: Extent, size: Extent) -> None:
    """Raise if a slice with known bounds is empty."""
    if is_number(start) and is_number(size) and not 0 <= start < size:
        raise mistake(
            "PTO-S201", f"a slice from {start} on: the dimension has {size}, so it is empty"
        )
    if is_number(start) and is_number(stop) and stop <= start:
        raise mistake("PTO-S201", f"a slice from {start} to {stop} is empty")


def _ends_inside(start: Scalar[object], length: int, size: Extent) -> bool:
    """True if slices of this length divide the array evenly, so that none is cut at the end."""
    step = linear_of(start) or Linear(1)
    return is_number(size) and length > 0 and size % length == 0 and step.multiple % length == 0


def _from_end(bound: Extent, size: Extent) -> Extent:
    return bound + size if is_number(bound) and bound < 0 else _checked(bound)


def _checked(bound: object) -> object:
    if isinstance(bound, int | Scalar):
        return bound  # pyright: ignore[reportUnknownVariableType]
    raise mistake("PTO-S201", f"an index of global memory is an integer, got {bound!r}")
