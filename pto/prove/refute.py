"""Numbers for which a property fails: sizes, blocks and iterations, tried one after the other.

Only formulas are evaluated here. `observe/proofs.py` runs the program with a counterexample before
it reports one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product as pairs
from math import prod
from typing import Final

from pto.prove.assume import GRID
from pto.prove.blocks import BlockPair
from pto.prove.facts import KernelUses, MemUse
from pto.prove.number import Symbol, evaluated

_SIZES: Final = (16, 1, 33, 128, 100, 2, 64, 256, 8, 17, 1000, 0)
_NEGATIVE: Final = -(1 << 16)  # of arguments that are no sizes
_SECONDS: Final = 0.3  # to look for one counterexample
_DATA: Final = (1 << 16, -1)  # that arrays may hold
_BLOCKS: Final = (2, 1, 3, 8, 64, 1024, 9, 25)
_GRIDS: Final = ((1, 1), (2, 1), (1, 2), (3, 4), (2, 2))  # extents along the first axes
_DRAWS: Final = 120  # of sizes, if there are several
_PLACES: Final = 1 << 11  # elements of a window that are compared
Known = dict[Symbol, int]
Box = tuple[tuple[int, int, int], ...]  # of each axis: first index, size, distance in bytes


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A call for which a property fails."""

    numbers: Mapping[int, int]  # by number of the parameter
    names: Mapping[str, int]
    blocks: int
    words: str = ""  # where: blocks and iterations
    data: int = 0  # in arrays of integers
    needs_data: bool = False  # whether it fails because of what arrays hold
    block: int = 0  # in which it fails
    fails: str = ""  # the inequality that does not hold

    def __str__(self) -> str:
        sizes = [f"{name} = {value}" for name, value in self.names.items()]
        sizes += [f"arrays of {self.data}"] if self.data else []
        return ", ".join([*sizes, f"{self.blocks} block{'s' * (self.blocks != 1)}", self.words])


def out_of_bounds(uses: KernelUses, use: MemUse) -> Iterator[Counterexample]:
    """Calls in which a use leaves its view, whatever the arrays hold; then for some data."""
    read = _data([use])
    large = sorted({axis.extent.rest for axis in use.window.axes if axis.extent.value})
    for data in (0, *_DATA) if read else (0,):
        data_values = dict.fromkeys(read, data) if data else {}
        for call, sizes in _calls(uses, large):
            holds = replace(call, data=data, needs_data=bool(data))
            example = _leaves(uses, use, holds, {**sizes, **data_values})
            if example is not None:
                yield example


def _leaves(
    uses: KernelUses, use: MemUse, call: Counterexample, values: Known
) -> Counterexample | None:
    """The call with the block and the iteration in which a use leaves its view."""
    for block in _chosen(call.blocks):
        for here in _iterations(uses, use, values, block):
            if fails := _violated(use, here):
                turns = (f"{loop.name} = {here[loop]}" for loop in use.loops)
                words = ", ".join([f"block {block}", *turns])
                return replace(call, words=words, block=block, fails=fails)
    return None


def _data(uses: Sequence[MemUse]) -> set[Symbol]:
    """The numbers that are read from arrays."""
    symbols = (s for use in uses for n in use.numbers() for s in n.symbols())
    return {s for s in symbols if s.kind == "data"}


def _violated(use: MemUse, values: Known) -> str | None:
    """The first inequality of a window inside its view that does not hold for these numbers."""
    for axis in use.window.axes:
        at, size, extent = (evaluated(n, values) for n in (axis.offset, axis.size, axis.extent))
        if at is None or size is None or extent is None:
            return None
        if at < 0:
            return f"{axis.offset} >= 0"
        if size < 0:
            return f"{axis.size} >= 0"
        if at + size > extent:
            return f"{axis.offset + axis.size} <= {axis.extent}"
    return None


def overlapping(uses: KernelUses, pair: BlockPair) -> Iterator[Counterexample]:
    """Calls in which two blocks access one byte, and one of them writes it."""
    read = _data([pair.write, pair.other])
    where = ", arrays of zeros" if read else ""
    for call, sizes in _calls(uses, (_NEGATIVE,)):
        values = {**sizes, **dict.fromkeys(read, 0)}
        both = pairs(_chosen(call.blocks), repeat=2)
        met = next(((a, b) for a, b in both if a != b and _meet(uses, pair, values, a, b)), None)
        if met is not None:
            words = f"blocks {met[0]} and {met[1]}{where}"
            yield replace(call, words=words, needs_data=bool(read))


def _meet(uses: KernelUses, pair: BlockPair, values: Known, first: int, second: int) -> bool:
    """True if the write of one block and the other use of another one share a byte."""
    ours = (_box(pair.write, h) for h in _iterations(uses, pair.write, values, first))
    theirs = [_box(pair.other, h) for h in _iterations(uses, pair.other, values, second)]
    return any(a is not None and any(b is not None and _share(a, b) for b in theirs) for a in ours)


def _calls(uses: KernelUses, more: Sequence[int] = ()) -> Iterator[tuple[Counterexample, Known]]:
    """Sizes and grids to try, where they are not fixed; `more`: further values of arguments."""
    symbols, rng = uses.arguments, random.Random(0)
    until = time.process_time() + _SECONDS
    fixed = uses.launch.blocks.value
    draws = list(_near(uses, (*more, *_SIZES)))
    draws += [(size,) * len(symbols) for size in (*_SIZES, *more)]
    if len(symbols) > 1:
        draws += [tuple(rng.choices(_SIZES, k=len(symbols))) for _ in range(_DRAWS)]
    for sizes in draws if symbols else draws[:1]:
        pairs = zip(symbols.items(), sizes, strict=True)
        numbers = {n: size if symbol.low is None else abs(size) for (n, symbol), size in pairs}
        values: Known = {symbols[n]: size for n, size in numbers.items()}
        grid = prod(size for symbol, size in values.items() if symbol.name in GRID)
        for blocks in dict.fromkeys((grid, *_BLOCKS)) if fixed is None else (fixed,):
            if time.process_time() > until:
                return
            count = next(uses.launch.blocks.symbols(), None)
            here = values if count is None else {**values, count: blocks}
            if blocks > 0 and all((evaluated(n, here) or 0) >= 0 for n in uses.assumed):
                names = {symbols[n].name: size for n, size in numbers.items()}
                yield Counterexample({**uses.numbers, **numbers}, names, blocks), here


def _near(uses: KernelUses, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The numbers of a call that is known to be legal, on small grids, then those with another one
    of them."""
    if not uses.likely:
        return
    names = [symbol.name for symbol in uses.arguments.values()]
    legal = {**dict.fromkeys(names, _SIZES[0]), **uses.likely}
    for extents in _GRIDS if {*names} & {*GRID} else _GRIDS[:1]:
        legal |= dict(zip(GRID, extents, strict=True))
        yield tuple(legal[name] for name in names)
    for changed in names:
        if changed in uses.likely:
            yield from (tuple({**legal, changed: n}[name] for name in names) for n in sizes)


def _chosen(blocks: int) -> list[int]:
    """The first blocks, and some later ones."""
    return sorted({*range(min(blocks, 3)), blocks // 2, blocks - 1})


def _iterations(uses: KernelUses, use: MemUse, numbers: Known, block: int) -> Iterator[Known]:
    """Some iterations of a use: the first ones and the last one of each loop."""
    here: Known = {**numbers, uses.launch.block: block}
    here |= dict.fromkeys(uses.launch.sub.symbols(), 0)
    for split in uses.splits:
        by = evaluated(split.by, here) or 1
        here[split.over], here[split.rest] = divmod(here[split.whole], by)
    turns = [here]
    for loop in use.loops:
        turns = [{**t, loop: n} for t in turns for n in _turns(loop, t)][:64]
    for iteration in turns:
        values = [evaluated(g, iteration) for g in use.given]
        if all(v is not None and v >= 0 for v in values):
            yield iteration


def _turns(loop: Symbol, values: Known) -> list[int]:
    high = None if loop.high is None else evaluated(loop.high, values)
    return [] if high is None or high < 0 else sorted({0, min(1, high), high})


def _box(use: MemUse, values: Known) -> tuple[int, Box] | None:
    base, axes = evaluated(use.window.base, values), list[tuple[int, int, int]]()
    for axis in use.window.axes:
        numbers = [evaluated(n, values) for n in (axis.offset, axis.size, axis.stride)]
        at, size, stride = (n if n is not None else -1 for n in numbers)
        if None in numbers or size <= 0:
            return None
        axes.append((at, size, stride))
    axes.append((0, use.window.itemsize, 1))
    return None if base is None else (base, tuple(axes))


def _share(a: tuple[int, Box], b: tuple[int, Box]) -> bool:
    (low, high), (begin, end) = _span(a), _span(b)
    return low < end and begin < high and not _bytes(a).isdisjoint(_bytes(b))


def _span(box: tuple[int, Box]) -> tuple[int, int]:
    """The first byte, and the one behind the last."""
    base, axes = box
    ends = [(at * stride, (at + size - 1) * stride) for at, size, stride in axes]
    return base + sum(min(e) for e in ends), base + sum(max(e) for e in ends) + 1


def _bytes(box: tuple[int, Box]) -> set[int]:
    base, axes = box
    addresses = {base}
    for at, size, stride in axes:
        if len(addresses) * size > _PLACES:
            size = max(1, _PLACES // len(addresses))  # fewer are compared, and fewer overlaps seen
        addresses = {address + (at + n) * stride for address in addresses for n in range(size)}
    return addresses
