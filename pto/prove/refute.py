"""Numbers for which a property fails: sizes, blocks and iterations, tried one after the other.

Only formulas are evaluated here. `observe/proofs.py` runs the program with a counterexample before
it reports one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as pairs
from typing import Final

from pto.prove.blocks import Conflict
from pto.prove.facts import Facts, Use
from pto.prove.number import Number, Symbol, evaluated

_SIZES: Final = (16, 1, 33, 128, 100, 2, 64, 256, 8, 17, 1000)
_BLOCKS: Final = (2, 1, 3, 8)
_DRAWS: Final = 120  # of sizes, where there are several
_PLACES: Final = 1 << 14  # elements of a window that are compared
Known = dict[Symbol, int]
Box = tuple[tuple[int, int, int], ...]  # of each axis: first index, size, distance in bytes


@dataclass(frozen=True, slots=True)
class Example:
    """A call for which a property fails."""

    numbers: Mapping[int, int]  # by number of the parameter
    names: Mapping[str, int]
    blocks: int
    words: str  # where: blocks and iterations

    def __str__(self) -> str:
        sizes = [f"{name} = {value}" for name, value in self.names.items()]
        return ", ".join([*sizes, f"{self.blocks} block{'s' * (self.blocks != 1)}", self.words])


def out_of_bounds(found: Facts, use: Use, assumed: Sequence[Number] = ()) -> Example | None:
    """A call in which a use leaves its view."""
    for numbers, known, blocks in _calls(found, assumed):
        for block in _chosen(blocks):
            for here in _iterations(found, use, known, block):
                for axis in use.window.axes:
                    at, size, extent = (
                        evaluated(n, here) for n in (axis.offset, axis.size, axis.extent)
                    )
                    if at is None or size is None or extent is None:
                        break
                    if at < 0 or at + size > extent:
                        return _example(found, numbers, blocks, _words(use, here, block))
    return None


def overlapping(found: Facts, pair: Conflict, assumed: Sequence[Number] = ()) -> Example | None:
    """A call in which two blocks use one byte, and one of them writes it."""
    for numbers, known, blocks in _calls(found, assumed):
        if blocks == 1:
            continue
        for first, second in pairs(_chosen(blocks), repeat=2):
            if first == second:
                continue
            ours = (_box(pair.write, h) for h in _iterations(found, pair.write, known, first))
            theirs = [_box(pair.other, h) for h in _iterations(found, pair.other, known, second)]
            for a in ours:
                if a is not None and any(b is not None and _share(a, b) for b in theirs):
                    return _example(found, numbers, blocks, f"blocks {first} and {second}")
    return None


def _calls(found: Facts, assumed: Sequence[Number]) -> Iterator[tuple[dict[int, int], Known, int]]:
    """Sizes and grids, as far as they are open."""
    symbols, rng = found.arguments, random.Random(0)
    fixed = found.launch.blocks.value
    grids = _BLOCKS if fixed is None else (fixed,)
    draws: list[tuple[int, ...]] = [(size,) * len(symbols) for size in _SIZES]
    if len(symbols) > 1:
        draws += [tuple(rng.choices(_SIZES, k=len(symbols))) for _ in range(_DRAWS)]
    for sizes in draws if symbols else draws[:1]:
        numbers = dict(zip(symbols, sizes, strict=False))
        known: Known = {symbols[n]: size for n, size in numbers.items()}
        for blocks in grids:
            count = next(found.launch.blocks.symbols(), None)
            here = known if count is None else {**known, count: blocks}
            if all((evaluated(n, here) or 0) >= 0 for n in assumed):
                yield numbers, here, blocks


def _chosen(blocks: int) -> list[int]:
    """The first blocks, and some of the others."""
    return sorted({*range(min(blocks, 3)), blocks // 2, blocks - 1})


def _iterations(found: Facts, use: Use, known: Known, block: int) -> Iterator[Known]:
    """Some iterations in which a use runs: the first ones and the last one of each loop."""
    here: Known = {**known, found.launch.block: block}
    for split in found.splits:
        here[split.over], here[split.rest] = divmod(here[split.whole], split.by)
    turns = [here]
    for loop in use.loops:
        turns = [{**t, loop: n} for t in turns for n in _turns(loop, t)][:64]
    for turn in turns:
        values = [evaluated(g, turn) for g in use.given]
        if all(v is not None and v >= 0 for v in values):
            yield turn


def _turns(loop: Symbol, known: Known) -> list[int]:
    high = None if loop.high is None else evaluated(loop.high, known)
    return [] if high is None or high < 0 else sorted({0, min(1, high), high})


def _box(use: Use, known: Known) -> tuple[int, Box] | None:
    base, axes = evaluated(use.window.base, known), list[tuple[int, int, int]]()
    for axis in use.window.axes:
        given = [evaluated(n, known) for n in (axis.offset, axis.size, axis.stride)]
        at, size, stride = (n if n is not None else -1 for n in given)
        if None in given or size <= 0:
            return None
        axes.append((at, size, stride))
    axes.append((0, use.window.itemsize, 1))
    return None if base is None else (base, tuple(axes))


def _share(a: tuple[int, Box], b: tuple[int, Box]) -> bool:
    ours, theirs = _bytes(a), _bytes(b)
    return ours is not None and theirs is not None and not ours.isdisjoint(theirs)


def _bytes(box: tuple[int, Box]) -> set[int] | None:
    base, axes = box
    found = {base}
    for at, size, stride in axes:
        if len(found) * size > _PLACES:
            size = max(1, _PLACES // len(found))  # fewer are compared, and fewer overlaps seen
        found = {place + (at + n) * stride for place in found for n in range(size)}
    return found


def _example(found: Facts, numbers: dict[int, int], blocks: int, words: str) -> Example:
    names = {found.arguments[n].name: value for n, value in numbers.items()}
    return Example({**found.numbers, **numbers}, names, blocks, words)


def _words(use: Use, known: Known, block: int) -> str:
    loops = [f"{loop.name} = {known[loop]}" for loop in use.loops]
    return ", ".join([f"block {block}", *loops])
