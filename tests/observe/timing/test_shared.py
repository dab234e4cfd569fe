"""Cores share memory and cache: stretches of a run that ask for too much, blocks that follow."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import pto
from pto.isa.cost.work import Region
from pto.observe.timing.chips import bench
from pto.observe.timing.kinds import blocks_of
from pto.observe.timing.shared import Load, Windows
from pto.observe.timing.stream import Stream

CHIP = bench("910b1", "a2a3")


def asked(*transfers: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray, Load]:
    begins, ends, nbytes = (np.array(each, float) for each in zip(*transfers, strict=True))
    zeros = np.zeros(len(transfers))
    items = np.arange(len(transfers))
    return begins, ends, Load(items, nbytes, zeros + 1, nbytes, zeros > 0, zeros, zeros)


def test_transfers_at_a_time_share_whatever_the_order_of_the_record():
    """Two agents, recorded one after the other, ask for 10 bytes a cycle each at the same time."""
    one = [(t * 100.0, t * 100.0 + 100, 1000.0) for t in range(20)]
    for rows in ([*one, *one], [row for row in one for _ in (0, 1)]):
        begins, ends, load = asked(*rows)
        windows = Windows()
        assert windows.adjust(begins, ends, load, (10.0, 1e9))
        slow, slow_l2, _ = windows.felt(begins, ends)
        assert slow == pytest.approx(2**0.8)
        assert (slow_l2 == 1).all()


def test_nobody_is_slowed_where_there_is_enough():
    begins, ends, load = asked(*((t * 100.0, t * 100.0 + 50, 1000.0) for t in range(960)))
    windows = Windows()
    assert not windows.adjust(begins, ends, load, (11.0, 1e9))
    assert (windows.felt(begins, ends)[0] == 1).all()


@dataclass
class Rows:
    """A launch whose blocks load one row each, where `place` says."""

    place: dict[int, int]
    blocks: int
    arrays: list[tuple[int, int]] = field(default_factory=lambda: [(0, 1 << 20)])
    asked: list[int] = field(default_factory=list[int])

    def record(self, number: int) -> Stream:
        return Stream(sides=["both"])

    def regions(self, number: int) -> list[Region]:
        self.asked.append(number)
        return [Region(self.place[number], 1, 512, 512, False, False)]


@pytest.mark.parametrize("slots", [48, 10**6], ids=["a ring of the cores", "all apart"])
def test_blocks_that_follow_from_others_are_not_asked(slots: int):
    rows = Rows({n: n % slots * 512 for n in range(480)}, 480)
    rows.record = lambda _: _loads(rows.place[0])  # type: ignore[method-assign]
    found = blocks_of(rows, CHIP)
    assert len(rows.asked) < 12
    assert {n: int(at[0]) for n, at in found.kinds[0].blocks.items()} == {
        n: rows.place[n] for n in range(4 * 48)
    }


def test_blocks_that_do_not_are_all_asked():
    rows = Rows({n: (n % 7) * 512 for n in range(100)}, 100)
    rows.record = lambda _: _loads(rows.place[0])  # type: ignore[method-assign]
    found = blocks_of(rows, CHIP)
    assert sorted(set(rows.asked)) == list(range(1, 100))
    assert [int(found.kinds[0].blocks[n][0]) for n in (6, 7, 99)] == [6 * 512, 0, 512]


def _loads(at: int) -> Stream:
    @pto.kernel(profile="a2a3")
    def load(x: pto.Global[pto.u8]) -> None:
        pto.tload(pto.tile(1, 512, pto.u8, address=0), x[0:1, :])
        pto.set_flag("MTE2", "V", 0)
        pto.wait_flag("MTE2", "V", 0)

    stream = load.time((1, 512), blocks=1).stream
    (job,) = (job for job in stream.jobs if job.op.name == "pto.tload")
    region = job.work.region._replace(address=at)
    stream.jobs = [job._replace(work=job.work._replace(region=region))]
    return stream


def test_cores_that_want_the_same_lines_wait_for_each_other():
    """As a vendor's guide says; 48 blocks read the same rows, or each its own."""

    @pto.kernel(profile="a2a3")
    def read(x: pto.Global[pto.f16], apart: bool) -> None:
        tile = pto.tile(64, 1024, pto.f16, address=0)
        first = pto.block_idx() * 64 if apart else 0
        for _ in pto.range(0, 50):
            pto.tload(tile, x[first : first + 64, :])
        pto.set_flag("MTE2", "V", 0)
        pto.wait_flag("MTE2", "V", 0)

    same, apart = (read.time((48 * 64, 1024), each, blocks=48).core_us for each in (False, True))
    assert same > 1.8 * apart


@pto.kernel(profile="a2a3")
def some_longer(x: pto.Global[pto.f16], more: int) -> None:
    """All blocks read the same 64 MB; `more` of them read four rows of tiles more."""
    tile = pto.tile(64, 1024, pto.f16, address=0)
    rounds = pto.select(pto.block_idx() < more, 516, 512)
    for i in pto.range(0, rounds):
        top = i % 512 * 64
        pto.tload(tile, x[top : top + 64, :])
    pto.set_flag("MTE2", "V", 0)
    pto.wait_flag("MTE2", "V", 0)


def test_blocks_of_another_kind_bring_lines_too():
    """Two blocks have more to do; the others still read what they read, so memory gives it once."""
    alike, mixed = (some_longer.time((512 * 64, 1024), more, blocks=48) for more in (0, 2))
    assert mixed.hbm_bytes == pytest.approx(alike.hbm_bytes, rel=0.02)
    assert alike.core_us < mixed.core_us < 1.03 * alike.core_us


@pto.kernel(profile="a2a3")
def triangle(x: pto.Global[pto.f16]) -> None:
    """Block n reads n + 1 tiles, as causal attention does."""
    tile = pto.tile(64, 1024, pto.f16, address=0)
    for i in pto.range(0, pto.block_idx() + 1):
        pto.tload(tile, x[i * 64 : i * 64 + 64, :])
    pto.set_flag("MTE2", "V", 0)
    pto.wait_flag("MTE2", "V", 0)


def test_the_core_with_most_to_do_decides():
    found = triangle.time((48 * 64, 1024), blocks=48)
    assert sum(job.op.name == "pto.tload" for job in found.stream.jobs) == 48


@pto.kernel(profile="a2a3")
def doubled(x: pto.Global[pto.f32], y: pto.Global[pto.f32], rows: int) -> None:
    """Tiles of 64 KB, `rows` of them a block."""
    t = pto.tile(16, 1024, pto.f32, address=0)
    for i in pto.range(0, rows):
        at = (pto.block_idx() * rows + i) * 16
        pto.tload(t, x[at : at + 16, :])
        pto.set_flag("MTE2", "V", 0)
        pto.wait_flag("MTE2", "V", 0)
        pto.tadd(t, t, t)
        pto.set_flag("V", "MTE3", 0)
        pto.wait_flag("V", "MTE3", 0)
        pto.tstore(y[at : at + 16, :], t)
        pto.set_flag("MTE3", "MTE2", 0)
        pto.wait_flag("MTE3", "MTE2", 0)


def test_many_small_blocks_move_as_much_as_few_large_ones():
    """1.2 GB go in and out, more than the cache keeps: all of it through memory."""
    shape = (48 * 400 * 16, 1024)
    few, many = (doubled.time(shape, shape, rows, blocks=48 * 400 // rows) for rows in (400, 4))
    nbytes = 2 * 4 * shape[0] * shape[1]
    assert few.hbm_bytes == pytest.approx(nbytes, rel=0.08)
    assert many.hbm_bytes == pytest.approx(nbytes, rel=0.08)
    assert many.core_us == pytest.approx(few.core_us, rel=0.1)
    assert many.waits[0].times == few.waits[0].times == 400
