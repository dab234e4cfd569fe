"""Bursts: equal numbers of bytes, copied between addresses that advance by strides.

Everything is checked before a byte is written, and read before a byte is written. If bursts write
the same bytes, the later one in program order wins. The file of each instruction defines its units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import PtoError, fail
from pto.core.memory import Bytes, Memory, Space
from pto.core.pointer import Pointer
from pto.isa.meaning import lanes
from pto.isa.meaning.machine import Machine

MOST_BYTES: Final = 1 << 31  # bytes that one instruction may move; more is a mistake or an attack
MOST_OVERLAPPING: Final = 1 << 20  # the greatest number of bursts that are written one at a time


@dataclass(frozen=True, slots=True)
class BurstLoop:
    """The count of a loop, and the bytes by which source and destination advance each iteration."""

    count: int
    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class BurstSide:
    """One side of a transfer: bursts of `width` bytes.

    Counts and strides list outer loops first.
    """

    name: str  # name of the instruction
    verb: str  # reads or writes
    memory: Memory
    address: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    width: int

    @property
    def end(self) -> int:
        """The end of the last byte that a burst touches."""
        reach = sum((c - 1) * s for c, s in zip(self.counts, self.strides, strict=True))
        return self.address + reach + self.width

    def check(self) -> None:
        if self.address < 0 or self.end > self.memory.size:
            raise self._outside()

    def _outside(self) -> PtoError:
        """The error that names the first burst outside the buffer."""
        start, index = self.address, list[int]()
        reach = self.end - self.address - self.width
        for count, stride in zip(self.counts, self.strides, strict=True):
            reach -= (count - 1) * stride
            space_left = self.memory.size - self.width - reach - start
            first = min(count - 1, max(0, space_left // stride + 1)) if stride and start >= 0 else 0
            index.append(first)
            start += first * stride
        burst = index[-1] if index else 0
        loops = f" of loop {', '.join(map(str, index[:-1]))}" if index[:-1] else ""
        return fail(
            "PTO-M161",
            f"'{self.name}' op: burst {burst}{loops} {self.verb} {self.memory.space.value} bytes "
            f"{start:#x} to {start + self.width:#x}, outside the buffer of "
            f"{self.memory.size:#x} bytes",
            help="check the counts, the lengths and the units of the strides",
        )

    @property
    def bytes(self) -> Bytes:
        """A live view of all bursts: one axis per loop, the bytes of a burst last."""
        shape, strides = (*self.counts, self.width), (*self.strides, 1)
        return self.memory.strided(self.address, shape, strides)

    @property
    def is_distinct(self) -> bool:
        """True if no two bursts share a byte."""
        return distinct(self.counts, self.strides, self.width)


def distinct(counts: Sequence[int], strides: Sequence[int], width: int) -> bool:
    """True if it is proven that blocks of `width` bytes at these strides share no byte."""
    extent = width
    for stride, count in sorted(zip(strides, counts, strict=True)):
        if count > 1 and stride < extent:
            return False
        extent += (count - 1) * stride
    return True


def side(
    name: str,
    verb: str,
    at: Pointer,
    counts: tuple[int, ...],
    strides: tuple[int, ...],
    width: int,
) -> BurstSide:
    """One side of a transfer, inside its memory."""
    burst_side = BurstSide(name, verb, at.memory, at.address, counts, strides, width)
    burst_side.check()
    return burst_side


def sides(
    name: str, src: Pointer, dst: Pointer, width: int, loops: Sequence[BurstLoop], wider: int = 0
) -> tuple[BurstSide, BurstSide] | None:
    """Both sides, checked; None if nothing moves. `loops` are listed from inner to outer.

    A burst of the destination is `wider` bytes longer than one of the source.
    """
    numbers = [width, *(n for loop in loops for n in (loop.count, loop.source, loop.destination))]
    if min(numbers) < 0:
        raise fail(
            "PTO-S160",
            f"'{name}' op: a length, count or stride must not be negative, got {min(numbers)}",
        )
    used = [loop for loop in reversed(loops) if loop.count != 1]
    counts = tuple(loop.count for loop in used)
    total = prod(counts) * (width + wider)
    if total == 0:
        return None
    if total > MOST_BYTES:
        raise fail("PTO-M162", f"'{name}' op moves {total} bytes, more than {MOST_BYTES}")
    source = tuple(loop.source for loop in used)
    target = tuple(loop.destination for loop in used)
    reads = side(name, "reads", src, counts, source, width)
    return reads, side(name, "writes", dst, counts, target, width + wider)


def move(name: str, src: Pointer, dst: Pointer, width: int, loops: Sequence[BurstLoop]) -> None:
    """Copy the bursts."""
    if _moved_at_once(src, dst, width, loops):
        return
    both_sides = sides(name, src, dst, width, loops)
    if both_sides is not None:
        reads, writes = both_sides
        put(writes, reads.bytes)


def _moved_at_once(src: Pointer, dst: Pointer, width: int, loops: Sequence[BurstLoop]) -> bool:
    """The common case: bursts that are contiguous on both sides, inside both memories."""
    used = [loop for loop in loops if loop.count != 1]
    total = width
    if used:
        loop = used[0]
        if len(used) > 1 or not loop.source == loop.destination == width:
            return False
        total = width * loop.count
    first = src.address
    last = src.address + total
    target = dst.address
    end = dst.address + total
    if width <= 0 or total <= 0 or first < 0 or target < 0:
        return False
    if last > src.memory.size or end > dst.memory.size:
        return False
    dst.memory.data[target:end] = src.memory.data[first:last]
    return True


def put(writes: BurstSide, values: Bytes) -> None:
    """Write bursts that have the shape of `writes.bytes`."""
    target = writes.bytes
    if writes.is_distinct:
        target[...] = values
        return
    for index, burst in _one_by_one(writes, values):
        target[index] = burst


def combine(
    name: str,
    src: Pointer,
    dst: Pointer,
    width: int,
    loops: Sequence[BurstLoop],
    how: tuple[DType, str],
) -> None:
    """Combine the bursts with memory, element by element of one type."""
    kind, op = how
    if width % kind.itemsize:
        raise fail(
            "PTO-M163",
            f"'{name}' op combines elements of {kind}, and a burst has {width} bytes",
            help=f"give a length that is a multiple of {kind.itemsize}",
        )
    both_sides = sides(name, src, dst, width, loops)
    if both_sides is not None:
        reads, writes = both_sides
        update(writes, reads.bytes.view(kind.numpy), kind, op)


def update(writes: BurstSide, values: npt.NDArray[Any], kind: DType, op: str) -> None:
    """Combine items that have the shape of `writes.bytes` with memory."""
    function, target = lanes.COMBINE[op], writes.bytes.view(kind.numpy)
    if writes.is_distinct:
        target[...] = function(target, values)
        return
    for index, burst in _one_by_one(writes, values):
        target[index] = function(target[index], burst)


def _one_by_one(writes: BurstSide, values: npt.NDArray[Any]) -> Any:
    """(index, burst) in program order; all are read before the first is written."""
    count = prod(writes.counts)
    if count > MOST_OVERLAPPING:
        raise fail(
            "PTO-M162",
            f"'{writes.name}' op writes {count} bursts over each other, more than "
            f"{MOST_OVERLAPPING}",
        )
    copied = values.copy()
    return ((index, copied[index]) for index in product(*map(range, writes.counts)))


def aligned(name: str, pointer: Pointer, step: int, loops: Sequence[BurstLoop] = ()) -> None:
    """Check the alignment of bursts in a local buffer.

    `loops` give their destination strides there.
    """
    if pointer.address % step:
        below = pointer.address // step * step
        raise fail(
            "PTO-M164",
            f"'{name}' op: {pointer.memory.space.value} address {pointer.address:#x} is not a "
            f"multiple of {step} bytes",
            help=f"the nearest aligned addresses are {below:#x} and {below + step:#x}",
        )
    for loop in loops:
        if loop.count > 1 and loop.destination % step:
            raise fail(
                "PTO-M164",
                f"'{name}' op: bursts are {loop.destination} bytes apart in "
                f"{pointer.memory.space.value}, not a multiple of {step}",
            )


def turned(loops: Sequence[BurstLoop]) -> list[BurstLoop]:
    """The same loops with source and destination exchanged."""
    return [BurstLoop(loop.count, loop.destination, loop.source) for loop in loops]


def owned(core: Machine, pointer: Pointer, sub: int = 0) -> Pointer:
    """The same address in the buffer of the agent that owns it.

    UB named by a cube is that of vector sub-block `sub`; L1 named by a vector is the cube's.
    """
    space = pointer.memory.space
    if space is Space.UB and core.side == "cube":
        return Pointer(core.cluster.vector(sub).memory(space), pointer.address, pointer.dtype)
    if space is Space.UB and core.side == "both" and sub:
        return Pointer(core.cluster.vector(sub).memory(space), pointer.address, pointer.dtype)
    if space is Space.L1 and core.side == "vector":
        return Pointer(core.cluster.cube.memory(space), pointer.address, pointer.dtype)
    return pointer
