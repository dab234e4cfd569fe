"""Selects the rounds of blocks of a core that are simulated; the rest repeat those.

Rounds differ at the start (cold memory, cores in step), at the end (fewer blocks), and when cache
hits differ. Rounds between repeat; that is compared, not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from pto.observe.timing.kinds import LaunchBlocks
from pto.observe.timing.shared import SharedTimes, steady_after
from pto.observe.timing.traffic import BlockRound, TransferLoad

_EQUAL = 1e-3  # of a round: smaller differences of times are ignored


@dataclass(slots=True)
class Shown:
    """A round that is simulated."""

    number: int
    block: int
    kind: int
    moved: list[TransferLoad]
    position: int  # transfers of the core before it
    skipped: int = 0  # rounds behind it that repeat it
    first: int = 0  # its first job
    transfer: int = 0  # its first transfer


def chosen(blocks: LaunchBlocks, core: int, rounds: Sequence[BlockRound], more: int) -> list[Shown]:
    """The simulated rounds of a core; `more` than are needed if they repeat at once."""
    rounds_shown: list[Shown] = []
    position = 0
    for kind, block_round, numbers in _stretches(blocks, core, rounds):
        moved = block_round.moved[kind]
        head = steady_after(len(moved), position) + 1 + more  # the last of these repeats
        skipped = max(0, len(numbers) - head - 1)
        for n in (*numbers[:head], *numbers[head + skipped :]):
            at = position + (n - numbers[0]) * len(moved)
            rounds_shown.append(Shown(n, n * blocks.cores + core, kind, moved, at))
        if skipped:
            rounds_shown[-2].skipped = skipped
        position += len(numbers) * len(moved)
    return rounds_shown


def _stretches(
    blocks: LaunchBlocks, core: int, rounds: Sequence[BlockRound]
) -> Iterator[tuple[int, BlockRound, range]]:
    """Consecutive rounds with the same transfers and a block of the same kind."""
    for block_round in rounds:
        numbers = range(block_round.number, block_round.number + 1 + block_round.like)
        mine = [n for n in numbers if n * blocks.cores + core < blocks.count]
        for kind, group in groupby(mine, key=lambda n: blocks.kind_in(n, core)):
            same = list(group)
            yield kind, block_round, range(same[0], same[-1] + 1)


def repeats(shared: SharedTimes, here: Shown, after: Shown, jobs: int) -> bool:
    """True if a round of so many jobs equals the one before it, shifted in time.

    All its jobs start and end, and memory and cache finish its transfers, a period later. Later
    rounds depend on nothing else, so the next one repeats it too.
    """
    times, count = shared.times, len(here.moved)
    rows = [(here.first, after.first, jobs, values) for values in (times.start, times.done)]
    rows.append((here.transfer, after.transfer, count, shared.served.tolist()))
    moved = [
        np.array(values[b : b + n]) - np.array(values[a : a + n]) for a, b, n, values in rows if n
    ]
    spans = np.concatenate(moved) if moved else np.zeros(1)
    return bool(np.ptp(spans) <= _EQUAL * spans.max())
