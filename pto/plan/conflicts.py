"""Blocks of a launch that access one element, of which one stores it: the result then depends on
their order. Found from the windows of all blocks at once, without running the program.

Arrays that overlap are compared where their views have equal strides. Only plain loads and stores
with addresses that follow from block numbers and loop counters are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from pto.core.intervals import stretches
from pto.ir.graph import Operation
from pto.plan.iterations import Ints, Iterations, NotStatic, in_space
from pto.plan.stores import Reached, Uses, is_plain, painted, writes

_MOST: Final = 1 << 20  # cells between the edges of windows


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses of one element by two blocks."""

    store: Operation
    other: Operation
    is_store: bool  # the other
    blocks: tuple[int, int]  # of the store, and of the other
    names: tuple[str, str]  # the parameters that they access
    index: tuple[int, ...]  # of the element, in the array of the store

    def __str__(self) -> str:
        at = ", ".join(map(str, self.index))
        (first, second), (stored, accessed) = self.blocks, self.names
        if stored != accessed:
            does = "stores" if self.is_store else "loads"
            return (
                f"{stored} and {accessed} overlap in memory: block {first} stores {stored}[{at}],"
                f" which block {second} {does} by {accessed}"
            )
        if self.is_store:
            low, high = sorted(self.blocks)
            return f"blocks {low} and {high} both store {stored}[{at}]"
        return f"block {second} loads {stored}[{at}], which block {first} stores"


class _Boxes(NamedTuple):
    """The windows of one operation in all iterations: start and end along each axis."""

    name: str
    op: Operation
    stores: bool
    strides: tuple[int, ...]  # in bytes
    start: int  # of the array, in bytes behind the first of those that overlap
    array: npt.NDArray[Any]
    edges: Ints  # (2, axes, count)
    blocks: Ints  # the block of each


def conflict(
    it: Iterations, used: Mapping[str, Uses], arrays: Mapping[str, npt.NDArray[Any]]
) -> Conflict | None:
    """The first conflict that is certain."""
    for names in _overlapping({name: arrays[name] for name in used if name in arrays}):
        start = min(arrays[name].ctypes.data for name in names)
        boxes: list[_Boxes] = []
        for name in names:
            array = arrays[name]
            for op in dict.fromkeys((*used[name].stores, *used[name].loads)):
                with suppress(NotStatic, RecursionError):
                    boxes.append(_boxes(it, name, op, array, array.ctypes.data - start))
        for strides in {box.strides for box in boxes if box.stores}:
            with suppress(NotStatic):
                first = _first([box for box in boxes if box.strides == strides])
                if first is not None:
                    return first
    return None


def _overlapping(arrays: Mapping[str, npt.NDArray[Any]]) -> list[list[str]]:
    """The names of arrays, those that overlap together."""
    spans = {name: (a.ctypes.data, a.ctypes.data + a.nbytes) for name, a in arrays.items()}
    return [
        [name for name, (start, end) in spans.items() if low <= start < high and start < end]
        for low, high in stretches(spans.values())
    ]


def _boxes(it: Iterations, name: str, op: Operation, array: npt.NDArray[Any], start: int) -> _Boxes:
    """Raises NotStatic if the windows are unknown, or not a part of one grid of addresses."""
    ((space, window),) = Reached(it, [op]).parts
    access = next((v for v in op.operands if is_plain(op, v)), None)
    strides = [axis.stride for axis in window.axes]
    if access is None or not all(isinstance(n, int) and n > 0 for n in strides):
        raise NotStatic
    steps = [cast(int, n) * array.itemsize for n in strides]
    if sorted(steps, reverse=True) != steps:
        raise NotStatic
    begin = start + np.asarray(in_space(window.base, space)) * array.itemsize
    edges = np.empty((2, len(steps), space.count), np.int64)
    for n, (axis, step) in enumerate(zip(window.axes, steps, strict=True)):
        edges[0, n] = begin // step + in_space(axis.offset, space)
        edges[1, n] = edges[0, n] + in_space(axis.size, space)
        begin = begin % step
    if np.any(begin):
        raise NotStatic
    full = (edges[1] > edges[0]).all(axis=0)
    edges, blocks = edges[:, :, full], space.blocks()[full]
    return _Boxes(name, op, writes(op, access), tuple(steps), start, array, edges, blocks)


def _first(boxes: Sequence[_Boxes]) -> Conflict | None:
    """The first element that a block stores and another block accesses."""
    edges = np.concatenate([box.edges for box in boxes], axis=2)
    blocks = np.concatenate([box.blocks for box in boxes])
    stored = np.concatenate([np.full(len(box.blocks), box.stores) for box in boxes])
    cuts = [np.unique(edges[:, n]) for n in range(edges.shape[1])]
    if np.prod([float(len(box)) for box in cuts]) > _MOST:
        raise NotStatic
    count, total = painted(edges, cuts), painted(edges, cuts, blocks)
    squares = painted(edges, cuts, blocks * blocks)
    block = total // np.maximum(count, 1)
    is_one = (block * count == total) & (block * total == squares)
    cells = np.argwhere((painted(edges[:, :, stored], cuts) > 0) & ~is_one)
    if not len(cells):
        return None
    at = np.array([cut[n] for cut, n in zip(cuts, cells[0], strict=True)])
    return _of_element(boxes, at)


def _of_element(boxes: Sequence[_Boxes], at: npt.NDArray[np.int64]) -> Conflict:
    inside: list[tuple[_Boxes, int]] = []
    for box in boxes:
        low, high = box.edges
        holds = ((low <= at[:, None]) & (at[:, None] < high)).all(axis=0)
        inside += [(box, int(block)) for block in np.unique(box.blocks[holds])]
    store, first = next((box, block) for box, block in inside if box.stores)
    others = [(box, block) for box, block in inside if block != first]
    other, second = min(others, key=lambda each: each[0].name != store.name)
    array, names = store.array, (store.name, other.name)
    element = (int(np.dot(at, store.strides)) - store.start) // array.itemsize
    index = tuple(int(n) for n in np.unravel_index(element, array.shape))
    return Conflict(store.op, other.op, other.stores, (first, second), names, index)
