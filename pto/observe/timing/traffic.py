"""The transfers of a launch through the L2 cache and memory, round by round.

All rounds go through the cache, since the hits of a round depend on those before it. Equal
consecutive rounds are kept once, with their number. Rounds are left out only where they must
repeat: every address moves by a fixed step from round to round, and the cache either has been
filled twice since the start, so that nothing from before the launch is left in it, or keeps all
data of two launches.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pto.isa.cost.work import GlobalRegion
from pto.observe.timing.cache import LINE, SECTOR, Cache, State
from pto.observe.timing.chips import Bench
from pto.observe.timing.fold import weights
from pto.observe.timing.kinds import Described, LaunchBlocks, regions_of, transfers_of
from pto.observe.timing.shared import Load
from pto.target.costs import Chip

_BLOCK = 32  # bytes
_SMALL = 8192  # bytes of a copy that reaches less than the rate of memory
_SAME = 5e-3  # of the bytes of a transfer: smaller differences of rounds are ignored
_TURNS = 2.0  # how often the cache is filled until nothing from before is left
_KEPT = 0.26  # of the cache: with less, one line in two hundred is lost
_END = 4  # rounds after some were left out; the first half only fills the cache


class TransferLoad(NamedTuple):
    """A transfer of one core, and the traffic of all cores that make it at the same time."""

    job: int
    region: GlobalRegion
    cores: int  # that make it, or an equal one
    missed: float  # share that memory serves
    read: float  # bytes read from memory, of all cores
    written: float  # bytes written to memory, of all cores
    new: float  # of both, bytes at the rate of arrays that are new to the chip
    alike: float  # cores that access the same bytes


@dataclass(slots=True)
class BlockRound:
    """A round, by the kinds of its blocks, and how many equal ones follow."""

    number: int
    moved: dict[int, list[TransferLoad]]
    like: int = 0  # equal rounds after this one


def rounds_of(
    launch: Described, bench: Bench, blocks: LaunchBlocks, state: State = "cold"
) -> list[BlockRound]:
    """Every transfer of a launch that finds the cache in a state."""
    shortest = min(
        (r.row_bytes for kind in blocks.kinds for r in regions_of(kind.stream)), default=LINE
    )
    cache = Cache(bench.l2_bytes, launch.arrays, LINE if shortest >= LINE else SECTOR)
    if state != "clean":
        _through(cache, blocks)
        cache.begin_again(state)
    return _through(cache, blocks)


def _through(cache: Cache, blocks: LaunchBlocks) -> list[BlockRound]:
    transfers = [transfers_of(kind.stream) for kind in blocks.kinds]
    often = [weights(kind.stream) for kind in blocks.kinds]
    repeats = blocks.affine is not None and _moves_alike(cache, blocks, transfers[0])
    rounds: list[BlockRound] = []
    begin = cache.brought
    number = 0
    again = 0
    while number < blocks.known:
        before = cache.brought
        moved = _round(cache, blocks.of_round(number), transfers, often)
        same = bool(rounds) and _alike(rounds[-1].moved, moved)
        if same or again > 0:
            rounds[-1].like += 1
        else:
            rounds.append(BlockRound(number, moved))
        number, again = number + 1, again - 1
        left = blocks.rounds - _END - number
        a_round, all = cache.brought - before, cache.brought - begin
        stays = 2 * (all + a_round * left) <= _KEPT * cache.lines
        if repeats and same and left > 0 and (stays or all >= _TURNS * cache.lines):
            cache.advance(a_round * left)
            rounds[-1].like += left
            number, again = number + left, _END // 2
    rounds[-1].like += blocks.rounds - number  # blocks without recorded addresses
    return rounds


def _moves_alike(
    cache: Cache, blocks: LaunchBlocks, transfers: list[tuple[int, GlobalRegion]]
) -> bool:
    """True if all transfers of one array move by the same step: their overlap never changes."""
    assert blocks.affine is not None
    steps: dict[int, set[int]] = defaultdict(set)
    for (_, region), stride in zip(transfers, blocks.affine.turn.tolist(), strict=True):
        steps[cache.array_of(region)].add(stride)
    return all(len(turns) == 1 for turns in steps.values())


def _alike(some: dict[int, list[TransferLoad]], others: dict[int, list[TransferLoad]]) -> bool:
    if some.keys() != others.keys():
        return False
    a, b = (
        np.array([m[2:] for mine in group.values() for m in mine], np.float64).reshape(-1, 6)
        for group in (some, others)
    )
    sizes = [m.region.nbytes * m.cores for mine in some.values() for m in mine]
    scale = np.ones_like(a)
    scale[:, 2:5] = np.maximum(sizes, 1)[:, None]
    return bool((np.abs(a - b) <= _SAME * scale).all())


def _round(
    cache: Cache,
    places: dict[int, Any],
    transfers: list[list[tuple[int, GlobalRegion]]],
    often: list[Any],
) -> dict[int, list[TransferLoad]]:
    """All blocks of a round at a time, each with its first transfer, then its second, ..."""
    moved: dict[int, list[TransferLoad]] = {block: [] for block in places}
    for i in range(max((len(transfers[block]) for block in places), default=0)):
        groups: dict[Any, list[int]] = defaultdict(list)  # kinds with equal transfers
        for block in places:
            if i < len(transfers[block]):
                region = transfers[block][i][1]
                groups[cache.array_of(region), region[1:]].append(block)
        running = sum(len(places[block]) for kinds in groups.values() for block in kinds)
        for kinds in groups.values():
            addresses = np.concatenate([places[block][:, i] for block in kinds])
            job, region = transfers[kinds[0]][i]
            moved_transfer = cache.transfer(region, addresses, float(often[kinds[0]][job]))
            scale = running / addresses.size
            for block in kinds:
                job, region = transfers[block][i]
                read, written, new = (amount * scale for amount in moved_transfer[1:4])
                shared = running, moved_transfer.missed, read, written, new, moved_transfer.alike
                moved[block].append(TransferLoad(job, region, *shared))
    return moved


def load_of(traffic: list[TransferLoad], arrays: list[tuple[int, int]], chip: Chip) -> Load:
    """The demand as arrays, one entry a transfer."""
    starts = sorted(start for start, _ in arrays)
    regions = [transfer.region for transfer in traffic]
    padded = np.array([_padding(region, starts, chip.unaligned) for region in regions])
    lines, sectors = (
        np.array([_given(region, unit) for region in regions]) * padded for unit in (LINE, SECTOR)
    )
    cores = np.array([transfer.cores for transfer in traffic], np.float64)
    past = np.array([region.passes_by for region in regions], np.float64)
    rows = np.array([region.rows for region in regions]) * past * cores * chip.past_row
    nbytes = np.array([float(region.nbytes) for region in regions])
    writes = np.array([region.writes for region in regions], bool)
    read = np.array([transfer.read for transfer in traffic]) * padded + np.where(writes, 0.0, rows)
    written = np.array([transfer.written for transfer in traffic]) * padded + np.where(
        writes, rows, 0.0
    )
    new = np.array([transfer.new for transfer in traffic]) * padded
    slower = _slower(nbytes, chip)
    return Load(
        items=np.array([transfer.job for transfer in traffic], np.int64),
        nbytes=nbytes * padded,
        missed=np.array([transfer.missed for transfer in traffic]),
        memory=read + written,
        stored=np.where(writes, nbytes * cores, 0.0),
        written=written,
        seconds=(read / chip.hbm_read + written / chip.hbm_write) * slower,
        new=new / chip.hbm_new * slower,
        writes=writes,
        lines=sectors * cores,
        alike=np.where(past > 0, lines, sectors)
        * np.array([transfer.alike for transfer in traffic]),
    )


def _slower(nbytes: Any, chip: Chip) -> Any:
    """How much longer memory is busy with small copies; a larger copy never takes less in all."""
    least = np.minimum(nbytes, _SMALL) / chip.small_copies
    return np.maximum(nbytes, least) / np.maximum(nbytes, 1.0)


def _given(region: GlobalRegion, unit: int) -> float:
    """Bytes of whole units that the L2 cache reads for a load with possibly shorter rows."""
    if region.writes:
        return 0.0
    if region.pitch == region.row_bytes:
        return float(region.nbytes)
    return float(region.rows * max(unit, region.row_bytes))


def _padding(region: GlobalRegion, starts: list[int], unaligned: int) -> float:
    """The factor of a transfer with rows that do not begin at a block; arrays begin at one."""
    at = bisect(starts, region.address) - 1
    offset = region.address - starts[at] if at >= 0 else 0
    off = offset % _BLOCK or (region.rows > 1 and region.pitch % _BLOCK)
    is_short = off and region.nbytes and not region.writes
    return 1.0 + unaligned / region.row_bytes if is_short else 1.0
