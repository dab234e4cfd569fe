"""Which rounds of blocks of a core are simulated, and which repeat those.

Rounds differ at the start (cold memory, cores in step), at the end (fewer blocks), and wherever
the cache gives something else. Those between repeat; that they do is compared, not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from pto.observe.timing.kinds import Blocks
from pto.observe.timing.shared import Shared, steady_after
from pto.observe.timing.traffic import Moved, Round

_EQUAL = 1e-3  # of a round: differences of times that count as none


@dataclass(slots=True)
class Shown:
    """A round that is simulated."""

    number: int
    block: int
    kind: int
    moved: list[Moved]
    position: int  # transfers of the core before it
    skipped: int = 0  # rounds behind it that repeat it
    first: int = 0  # its first job
    transfer: int = 0  # its first transfer


def chosen(blocks: Blocks, core: int, rounds: Sequence[Round], more: int) -> list[Shown]:
    """The rounds of a core that are simulated; `more` than are needed if they repeat at once."""
    found: list[Shown] = []
    position = 0
    for kind, each, numbers in _stretches(blocks, core, rounds):
        moved = each.moved[kind]
        head = steady_after(len(moved), position) + 1 + more  # the last of these repeats
        skipped = max(0, len(numbers) - head - 1)
        for n in (*numbers[:head], *numbers[head + skipped :]):
            at = position + (n - numbers[0]) * len(moved)
            found.append(Shown(n, n * blocks.cores + core, kind, moved, at))
        if skipped:
            found[-2].skipped = skipped
        position += len(numbers) * len(moved)
    return found


def _stretches(
    blocks: Blocks, core: int, rounds: Sequence[Round]
) -> Iterator[tuple[int, Round, range]]:
    """Rounds that follow each other, ask for the same, and have a block of the same kind."""
    for each in rounds:
        numbers = range(each.number, each.number + 1 + each.like)
        mine = [n for n in numbers if n * blocks.cores + core < blocks.count]
        for kind, group in groupby(mine, key=lambda n: blocks.kind_in(n, core)):
            same = list(group)
            yield kind, each, range(same[0], same[-1] + 1)


def repeats(shared: Shared, here: Shown, after: Shown, jobs: int) -> bool:
    """True if a round of so many jobs is the one before it, moved in time.

    All its jobs start and end, and memory and cache are done with its transfers, a period later.
    What follows a round depends on nothing else of it, so the next one repeats it too.
    """
    times, count = shared.times, len(here.moved)
    rows = [(here.first, after.first, jobs, each) for each in (times.start, times.done)]
    rows.append((here.transfer, after.transfer, count, shared.served.tolist()))
    moved = [np.array(each[b : b + n]) - np.array(each[a : a + n]) for a, b, n, each in rows if n]
    spans = np.concatenate(moved) if moved else np.zeros(1)
    return bool(np.ptp(spans) <= _EQUAL * spans.max())
