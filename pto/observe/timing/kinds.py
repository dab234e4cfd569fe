"""The blocks of a launch: which do the same, and where in memory each of them does it.

Blocks whose transfers have the same shapes in the same order are of one kind. Where theirs begin
matters, since cores share what the L2 cache holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pto.isa.cost.work import Region, Transfer
from pto.observe.timing.chips import Bench
from pto.observe.timing.stream import Stream

_ASKED, _MOST = 512, 16_384  # blocks that are asked where their transfers begin: long ones, short
_LINES = 200_000  # of all these together
_FEW = 8  # blocks that are all asked
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
    places: dict[int, Array] = field(default_factory=dict[int, Array])  # block -> addresses


class Affine(NamedTuple):
    """Addresses that grow by one step from core to core and by another from round to round."""

    base: Array
    step: Array
    turn: Array

    def at(self, core: int | Array, number: int | Array) -> Array:
        return self.base + self.step * core + self.turn * number


@dataclass(slots=True)
class Sort:
    """Cores that run blocks of the same kinds: the first of them, and how many there are."""

    core: int
    kinds: Counter[int]
    cores: int = 0


@dataclass(slots=True)
class Blocks:
    """Every kind of block, and the addresses of each block, round by round.

    In round `n`, core `c` runs block `n * cores + c`.
    """

    kinds: list[Kind]
    cores: int
    count: int
    affine: Affine | None = None  # of kind 0, for the blocks that are not listed

    @property
    def rounds(self) -> int:
        return -(-self.count // self.cores)

    @property
    def asked(self) -> int:
        """Blocks whose addresses are known; the others are like those of the last round known."""
        return self.count if self.affine else sum(len(kind.places) for kind in self.kinds)

    @property
    def known(self) -> int:
        """Rounds whose blocks are all known; where one is not, the last round is full."""
        return self.rounds if self.asked == self.count else max(1, self.asked // self.cores)

    def kind_in(self, number: int, core: int) -> int:
        """The kind of the block that a core runs in a round."""
        block = min(number, self.known - 1) * self.cores + core
        return next((n for n, kind in enumerate(self.kinds) if block in kind.places), 0)

    def of_round(self, number: int) -> dict[int, Array]:
        """The addresses of each block of a round, by kind: a row a block."""
        first = number * self.cores
        here = range(first, min(self.count, first + self.cores))
        listed = [{b: kind.places[b] for b in here if b in kind.places} for kind in self.kinds]
        found = {n: np.stack(list(mine.values())) for n, mine in enumerate(listed) if mine}
        apart = {block for mine in listed for block in mine}
        cores = np.array([b - first for b in here if b not in apart], np.int64)
        if self.affine is not None and cores.size:
            found[0] = self.affine.at(cores[:, None], number)
        return found

    def sorts(self) -> list[Sort]:
        """Cores, by the kinds of the blocks they run one after the other."""
        found: dict[tuple[int, ...], Sort] = {}
        for core in range(self.cores):
            rounds = len(range(core, self.count, self.cores))
            few = range(rounds)[-1:] if self.affine else range(min(rounds, self.known))
            kinds = tuple(self.kind_in(number, core) for number in few)
            usual = Counter({0: rounds - len(few)} if self.affine else {})
            sort = found.setdefault((rounds, *kinds), Sort(core, usual + Counter(kinds)))
            sort.cores += 1
        return list(found.values())


def blocks_of(launch: Described, bench: Bench) -> Blocks:
    """All blocks are asked, unless a few say that the others follow from them."""
    first = launch.record(0)
    cores = min(cores_for(first, bench), launch.blocks)
    regions = {0: regions_of(first)}

    def ask(number: int) -> list[Region]:
        if number not in regions:
            regions[number] = launch.regions(number)
        return regions[number]

    affine = _affine(ask, cores, launch.blocks - 1) if launch.blocks > _FEW else None
    if affine is not None:
        found = Blocks([Kind(first)], cores, launch.blocks, affine)
        last = launch.blocks - 1
        at = affine.at(last % cores, last // cores)
        if _shape(ask(last)) != _shape(ask(0)) or (_starts(ask(last)) != at).any():
            found.kinds.append(Kind(launch.record(last), {last: _starts(ask(last))}))
        return found
    kinds: dict[tuple[Any, ...], Kind] = {}
    enough = min(_MOST, max(_ASKED, 2 * cores, _LINES // max(1, len(first.lines))))
    for number in range(min(launch.blocks, enough)):
        shape = _shape(ask(number))
        if shape not in kinds:
            kinds[shape] = Kind(launch.record(number) if number else first)
        kinds[shape].places[number] = _starts(ask(number))
    return Blocks(list(kinds.values()), cores, launch.blocks)


def _affine(ask: Callable[[int], list[Region]], cores: int, blocks: int) -> Affine | None:
    """Steps that give the addresses of the first `blocks` blocks; None where some block differs.

    Besides the blocks that the steps come from, blocks at powers of two and at odd distances are
    asked: a grid of two dimensions carries at one of them.
    """
    shape, base = _shape(ask(0)), _starts(ask(0))
    near = {1, 2, cores // 2, cores - 1, cores, cores + 1, 2 * cores + 1, blocks - 1}
    far = {1 << n for n in range(blocks.bit_length())} | {blocks * n // 11 for n in range(1, 11)}
    known: dict[int, Array] = {}
    for number in sorted(near | far):
        if 0 < number < blocks:
            if _shape(ask(number)) != shape:
                return None
            known[number] = _starts(ask(number))
    nothing = 0 * base
    step = known[1] - base if cores > 1 else nothing
    found = Affine(base, step, known[cores] - base if cores in known else nothing)
    places = ((found.at(n % cores, n // cores), at) for n, at in known.items())
    return None if any((mine != at).any() for mine, at in places) else found


def _shape(regions: Sequence[Region]) -> tuple[Any, ...]:
    return tuple(region[1:] for region in regions)


def _starts(regions: Sequence[Region]) -> Array:
    return np.array([region.address for region in regions], np.int64)
