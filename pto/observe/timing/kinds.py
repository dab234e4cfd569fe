"""The blocks of a launch: which do the same, and where in memory each of them does it.

Blocks whose transfers have the same shapes in the same order are of one kind. Where theirs begin
matters, since cores share what the L2 cache holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pto.isa.cost.work import Region, Transfer
from pto.observe.timing.chips import Bench
from pto.observe.timing.stream import Stream

ROUNDS = 4  # of blocks on a core that are simulated; the others take as long as the last of these
_LONG = 20_000  # lines of a stream, beyond which fewer rounds are simulated
_ASKED = 512  # blocks that are asked where their transfers begin
Array = npt.NDArray[np.int64]


class Described(Protocol):
    """A launch that can be asked block by block what it would do."""

    @property
    def blocks(self) -> int: ...

    @property
    def arrays(self) -> list[tuple[int, int]]:
        """Where its arrays lie, and their bytes."""
        ...

    def record(self, number: int) -> Stream:
        """The stream of a block."""
        ...

    def regions(self, number: int) -> list[Region]:
        """What a block transfers, in order."""
        ...


def regions_of(stream: Stream) -> list[Region]:
    works = (job.work for job in stream.jobs)
    return [w.region for w in works if isinstance(w, Transfer) and w.region is not None]


def cores_for(stream: Stream, bench: Bench) -> int:
    """How many blocks run side by side; code without a matrix unit runs on the vector cores."""
    if {"cube", "core"} & {stream.side(agent) for agent in range(len(stream.sides))}:
        return bench.device.cube_cores
    return bench.device.vector_cores // max(1, len(stream.sides))


@dataclass(slots=True)
class Kind:
    """Blocks that do the same at other addresses."""

    stream: Stream
    blocks: dict[int, Array] = field(default_factory=dict[int, Array])  # where transfers begin


@dataclass(slots=True)
class Blocks:
    """Every kind of block, and which blocks of the rounds that are simulated are of which."""

    kinds: list[Kind]
    cores: int
    rounds: int  # that are simulated
    asked: int  # blocks; those that were not are taken to be like the last one

    def sequence(self, core: int, blocks: int) -> tuple[int, ...]:
        """The kinds of the blocks of one core."""
        which = {block: n for n, kind in enumerate(self.kinds) for block in kind.blocks}
        mine = range(core, blocks, self.cores)[: self.rounds]
        return tuple(which.get(block, len(self.kinds) - 1) for block in mine)


def blocks_of(launch: Described, bench: Bench) -> Blocks:
    """All blocks are asked, unless a few say that the others follow from them."""
    first = launch.record(0)
    cores = min(cores_for(first, bench), launch.blocks)
    rounds = max(2, min(ROUNDS, _LONG * ROUNDS // max(1, len(first.lines))))
    wanted = range(min(launch.blocks, rounds * cores))
    regions = {0: regions_of(first)}

    def ask(number: int) -> list[Region]:
        if number not in regions:
            regions[number] = launch.regions(number)
        return regions[number]

    follow = _regular(ask, cores, launch.blocks) if launch.blocks > 8 else None
    if follow is not None:
        return Blocks([Kind(first, {b: follow(b) for b in wanted})], cores, rounds, launch.blocks)
    asked = range(min(launch.blocks, max(_ASKED, len(wanted))))
    found: dict[tuple[Any, ...], Kind] = {}
    for number in asked:
        mine = ask(number)
        shape = tuple(region[1:] for region in mine)
        kind = found.get(shape)
        if kind is None:
            kind = found[shape] = Kind(launch.record(number))
        kind.blocks[number] = _starts(mine)
    return Blocks(list(found.values()), cores, rounds, len(asked))


def _regular(
    ask: Callable[[int], list[Region]], cores: int, blocks: int
) -> Callable[[int], Array] | None:
    """A function from blocks to addresses, where these go up by one step from core to core and by
    another from round to round; None where the blocks that are asked say otherwise."""
    shape = [region[1:] for region in ask(0)]
    base, known = _starts(ask(0)), {}
    for number in (1, cores, 2, cores // 2, cores - 1, cores + 1, 2 * cores + 1, blocks - 1):
        if not 0 < number < blocks:
            continue
        mine = ask(number)
        if [region[1:] for region in mine] != shape:
            return None
        known[number] = _starts(mine)
    step = known[1] - base if cores > 1 else 0 * base
    turn = known[cores] - base if cores in known else 0 * base

    def follow(block: int) -> Array:
        return base + step * (block % cores) + turn * (block // cores)

    if any((follow(number) != found).any() for number, found in known.items()):
        return None
    return follow


def _starts(regions: Sequence[Region]) -> Array:
    return np.array([region.address for region in regions], np.int64)
