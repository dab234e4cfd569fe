"""The blocks of a launch: which do the same work, and the addresses of each.

Blocks with transfers of the same shapes in the same order are of one kind. Their addresses matter,
since cores share the L2 cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pto.isa.cost.work import GlobalRegion, TransferWork
from pto.observe.timing.chips import Bench
from pto.observe.timing.stream import RecordStream

_ASKED, _MOST = 512, 16_384  # blocks with recorded addresses: long ones, short ones
_LINES = 200_000  # of all these together
_FEW = 8  # blocks that are all recorded
Array = npt.NDArray[np.int64]


class Described(Protocol):
    """A launch that describes the work of each block."""

    @property
    def blocks(self) -> int: ...

    @property
    def arrays(self) -> list[tuple[int, int]]:
        """Addresses and bytes of its arrays."""
        ...

    def record(self, number: int) -> RecordStream:
        """The stream of a block."""
        ...

    def regions(self, number: int) -> list[GlobalRegion]:
        """The transfers of a block, in order."""
        ...


def transfers_of(stream: RecordStream) -> list[tuple[int, GlobalRegion]]:
    """The jobs that move to or from global memory, and their regions."""
    works = ((n, job.work) for n, job in enumerate(stream.jobs))
    return [(n, w.region) for n, w in works if isinstance(w, TransferWork) and w.region is not None]


def regions_of(stream: RecordStream) -> list[GlobalRegion]:
    return [region for _, region in transfers_of(stream)]


def cores_for(stream: RecordStream, bench: Bench) -> int:
    """How many blocks run in parallel; code without a matrix unit runs on the vector cores."""
    if {"cube", "core"} & {stream.side(agent) for agent in range(len(stream.sides))}:
        return bench.device.cube_cores
    return bench.device.vector_cores // max(1, len(stream.sides))


@dataclass(slots=True)
class BlockKind:
    """Blocks that do the same at other addresses."""

    stream: RecordStream
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
    """Cores that run blocks of the same kinds."""

    kinds: Counter[int]
    cores: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class LaunchBlocks:
    """Every kind of block, and the addresses of each block, round by round.

    In round `n`, core `c` runs block `n * cores + c`.
    """

    kinds: list[BlockKind]
    cores: int
    count: int
    affine: Affine | None = None  # of kind 0, for the blocks that are not listed

    @property
    def rounds(self) -> int:
        return -(-self.count // self.cores)

    @property
    def asked(self) -> int:
        """Blocks with known addresses; the rest are like those of the last known round."""
        return self.count if self.affine else sum(len(kind.places) for kind in self.kinds)

    @property
    def known(self) -> int:
        """Rounds with known blocks; if not all are known, the last one counted is full."""
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
        by_kind = {n: np.stack(list(mine.values())) for n, mine in enumerate(listed) if mine}
        apart = {block for mine in listed for block in mine}
        cores = np.array([b - first for b in here if b not in apart], np.int64)
        if self.affine is not None and cores.size:
            by_kind[0] = self.affine.at(cores[:, None], number)
        return by_kind

    def sorts(self) -> list[Sort]:
        """Cores, by the kinds of the blocks they run one after the other."""
        by_rounds: dict[tuple[int, ...], Sort] = {}
        for core in range(self.cores):
            rounds = len(range(core, self.count, self.cores))
            few = range(rounds)[-1:] if self.affine else range(min(rounds, self.known))
            kinds = tuple(self.kind_in(number, core) for number in few)
            usual = Counter({0: rounds - len(few)} if self.affine else {})
            sort = by_rounds.setdefault((rounds, *kinds), Sort(usual + Counter(kinds)))
            sort.cores.append(core)
        return list(by_rounds.values())


def blocks_of(launch: Described, bench: Bench) -> LaunchBlocks:
    """Record the addresses of all blocks, unless a few show that the rest follow from them."""
    first = launch.record(0)
    cores = min(cores_for(first, bench), launch.blocks)
    regions = {0: regions_of(first)}

    def ask(number: int) -> list[GlobalRegion]:
        if number not in regions:
            regions[number] = launch.regions(number)
        return regions[number]

    affine = _affine(ask, cores, launch.blocks - 1) if launch.blocks > _FEW else None
    if affine is not None:
        result = LaunchBlocks([BlockKind(first)], cores, launch.blocks, affine)
        last = launch.blocks - 1
        at = affine.at(last % cores, last // cores)
        if _shape(ask(last)) != _shape(ask(0)) or (_starts(ask(last)) != at).any():
            result.kinds.append(BlockKind(launch.record(last), {last: _starts(ask(last))}))
        return result
    kinds: dict[tuple[Any, ...], BlockKind] = {}
    enough = min(_MOST, max(_ASKED, 2 * cores, _LINES // max(1, len(first.lines))))
    for number in range(min(launch.blocks, enough)):
        shape = _shape(ask(number))
        if shape not in kinds:
            kinds[shape] = BlockKind(launch.record(number) if number else first)
        kinds[shape].places[number] = _starts(ask(number))
    return LaunchBlocks(list(kinds.values()), cores, launch.blocks)


def _affine(ask: Callable[[int], list[GlobalRegion]], cores: int, blocks: int) -> Affine | None:
    """Steps that give the addresses of the first `blocks` blocks; None if some block differs.

    Besides the blocks that the steps come from, blocks at powers of two and at odd distances are
    checked: a grid of two dimensions carries at one of them.
    """
    shape, base = _shape(ask(0)), _starts(ask(0))
    near = {1, 2, cores // 2, cores - 1, cores, cores + 1, 2 * cores + 1, blocks - 1}
    far = {1 << n for n in range(blocks.bit_length())} | {blocks * n // 11 for n in range(1, 11)}
    starts: dict[int, Array] = {}
    for number in sorted(near | far):
        if 0 < number < blocks:
            if _shape(ask(number)) != shape:
                return None
            starts[number] = _starts(ask(number))
    nothing = 0 * base
    step = starts[1] - base if cores > 1 else nothing
    affine = Affine(base, step, starts[cores] - base if cores in starts else nothing)
    places = ((affine.at(n % cores, n // cores), at) for n, at in starts.items())
    return None if any((mine != at).any() for mine, at in places) else affine


def _shape(regions: Sequence[GlobalRegion]) -> tuple[Any, ...]:
    return tuple(region[1:] for region in regions)


def _starts(regions: Sequence[GlobalRegion]) -> Array:
    return np.array([region.address for region in regions], np.int64)
