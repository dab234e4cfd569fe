"""Blocks of a C++ launch that execute the same instructions at other global addresses.

A block's native code runs without the simulator and its records are compared, word by word, with
those of a block that was recorded: they may differ only where both words are addresses in global
memory. The transfers of the block then follow from those of the recorded one.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.cxx import native as n
from pto.isa.cost.work import GlobalRegion
from pto.observe.timing.kinds import regions_of, transfers_of
from pto.observe.timing.stream import RecordStream
from pto.run import sites as s

Words = npt.NDArray[np.int64]
_KINDS = 8  # of blocks, beyond which every block is recorded


class Untraceable(Exception):
    """A block reads values from the simulator, so its records need a run."""


def listed(agent: n.NativeAgent, into: list[Words]) -> Iterator[s.Looks]:
    """Run an agent without the simulator; `into` gets its records and amounts of C++ code."""
    try:
        while True:
            status = agent.resume()
            into.append(np.array(agent.words(), np.int64))
            into.append(np.array(agent.amounts(), np.int64))
            if status == n.DONE:
                return
            if status in (n.LOOK, n.FAILED):
                raise Untraceable
            if status in (n.FLUSH, n.LOADS) or not into[-2].size:
                yield s.Looks()
    finally:
        agent.end()


@dataclass(frozen=True, slots=True)
class _Kind:
    """A recorded block: its words by agent, its transfers, and the word that places each."""

    words: list[Words]
    regions: list[GlobalRegion]
    sources: list[tuple[int, int]]  # agent, index of the word with the address or one below it

    def moved(self, words: Sequence[Words]) -> list[GlobalRegion]:
        return [
            region._replace(address=region.address + int(words[agent][at] - self.words[agent][at]))
            for region, (agent, at) in zip(self.regions, self.sources, strict=True)
        ]


@dataclass(slots=True)
class BlockTraces:
    """The transfers of blocks, recorded once for each kind and checked on one more block."""

    run: Callable[[int], list[Words]]  # the words of a block, by agent; may raise Untraceable
    record: Callable[[int], RecordStream]
    arrays: Sequence[tuple[int, int]]
    _kinds: list[_Kind] = field(default_factory=list[_Kind])
    _checked: set[int] = field(default_factory=set[int])
    _possible: bool = True

    def regions(self, number: int) -> list[GlobalRegion]:
        """The transfers of a block, in order."""
        followed = self._followed(number) if self._possible else None
        return regions_of(self.record(number)) if followed is None else followed

    def _followed(self, number: int) -> list[GlobalRegion] | None:
        """The transfers that follow from a recorded block; None: the block has to be recorded."""
        try:
            if not self._kinds and not self._learn(self.run(0), self.record(0)):
                self._possible = False
                return None
            words = self.run(number)
        except Untraceable:
            self._possible = False
            return None
        kind_index = next(
            (k for k, kind in enumerate(self._kinds) if self._same(kind, words)), None
        )
        if kind_index is None:
            stream = self.record(number)
            self._possible = self._learn(words, stream)
            return regions_of(stream)
        moved = self._kinds[kind_index].moved(words)
        if kind_index not in self._checked:
            self._checked.add(kind_index)
            recorded = regions_of(self.record(number))
            self._possible = moved == recorded
            return recorded
        return moved

    def _same(self, kind: _Kind, words: Sequence[Words]) -> bool:
        if [line.size for line in words] != [line.size for line in kind.words]:
            return False
        for mine, theirs in zip(words, kind.words, strict=True):
            other = mine != theirs
            if not (self._is_global(mine[other]) & self._is_global(theirs[other])).all():
                return False
        return True

    def _is_global(self, words: Words) -> npt.NDArray[np.bool_]:
        inside = np.zeros(words.size, bool)
        for start, size in self.arrays:
            inside |= (words >= start) & (words <= start + size)
        return inside

    def _learn(self, words: list[Words], stream: RecordStream) -> bool:
        """Keep a recorded block as a kind; False if some transfer does not follow from a word."""
        if len(self._kinds) == _KINDS:
            return False
        sources: list[tuple[int, int]] = []
        agents = [_Addresses(mine, self._is_global(mine)) for mine in words]
        for job, region in transfers_of(stream):
            agent = stream.pipes[stream.jobs[job].pipe].agent
            at = agents[agent].source(region.address) if agent < len(agents) else None
            if at is None:
                return False
            sources.append((agent, at))
        self._kinds.append(_Kind(words, regions_of(stream), sources))
        return True


class _Addresses:
    """The global addresses among the words of an agent, in order."""

    def __init__(self, words: Words, is_global: npt.NDArray[np.bool_]) -> None:
        self._at = np.flatnonzero(is_global).tolist()
        values = words[self._at].tolist()
        self._by_value: dict[int, list[int]] = {}
        for at, value in zip(self._at, values, strict=True):
            self._by_value.setdefault(value, []).append(at)
        self._values = sorted(self._by_value)
        self._now = 0  # words before it belong to earlier instructions

    def source(self, address: int) -> int | None:
        """The next word with this address, or the word with the greatest one below it."""
        exact = self._by_value.get(address)
        if exact is None:
            below = bisect(self._values, address) - 1
            return self._by_value[self._values[below]][0] if below >= 0 else None
        at = exact[min(bisect(exact, self._now - 1), len(exact) - 1)]
        self._now = max(self._now, at)
        return at


def joined(parts: Sequence[list[Any]]) -> list[Words]:
    """One array of words for each agent."""
    return [np.concatenate(mine) if mine else np.zeros(0, np.int64) for mine in parts]
