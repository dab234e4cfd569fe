"""Cores share memory and cache: stretches of a run that ask for too much, blocks that follow."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import pto
from pto import isa
from pto.isa.cost.work import GlobalRegion
from pto.observe.timing.chips import bench
from pto.observe.timing.kinds import blocks_of
from pto.observe.timing.shared import Load, Servers
from pto.observe.timing.stream import RecordStream
from pto.observe.timing.traffic import rounds_of

CHIP = bench("910b1", "a2a3")


def load_of(work: list[float], parts: list[tuple[int, int]] | None = None) -> Load:
    """Transfers that keep memory busy for so many cycles each."""
    zeros = np.zeros(len(work))
    seconds = np.array(work) / (CHIP.mhz * 1e6)
    return Load(
        items=np.arange(len(work)),
        nbytes=zeros,
        missed=zeros,
        memory=zeros,
        stored=zeros,
        written=zeros,
        seconds=seconds,
        new=zeros,
        writes=zeros > 0,
        lines=zeros,
        alike=zeros,
        parts=parts or [(0, 0)],
    )


def served(begins: list[float], work: list[float], drift: int = 0) -> list[float]:
    load = load_of(work, [(0, drift)])
    done, _ = Servers(load, CHIP.chip, CHIP.mhz).serve(np.array(begins, float))
    return [round(float(each), 6) for each in done]


def test_memory_serves_one_after_the_other_in_the_order_of_their_starts():
    """Two agents, recorded one after the other, start transfers of 100 cycles at the same times."""
    starts = [0.0, 50.0, 100.0]
    assert sorted(served([*starts, *starts], [100.0] * 6)) == [100, 200, 300, 400, 500, 600]
    assert served([0.0, 50.0], [100.0, 100.0]) == served([50.0, 0.0], [100.0, 100.0])[::-1]


def test_no_transfer_waits_where_there_is_enough():
    starts = [100.0 * n for n in range(20)]
    assert all(
        done <= at + 50 for at, done in zip(starts, served(starts, [50.0] * 20), strict=True)
    )


def test_cores_in_step_leave_memory_idle_and_those_out_of_step_do_not():
    """Pairs of transfers of 100 cycles together, then 800 cycles of other work."""
    starts = [at for n in range(40) for at in (1000.0 * n, 1000.0 * n)]
    work = [450.0] * 80
    behind = [a - b for a, b in zip(served(starts, work), starts, strict=True)]
    apart = [a - b for a, b in zip(served(starts, work, drift=32), starts, strict=True)]
    assert behind[1] == 900  # the first ones: all cores want the same at the same time
    assert max(apart[8:]) == 0 or max(apart[8:]) < behind[1]


def test_more_work_behind_a_run_does_not_change_it():
    rng = np.random.default_rng(5)
    starts = np.cumsum(rng.integers(0, 300, 60)).astype(float).tolist()
    work = rng.integers(1, 400, 60).astype(float).tolist()
    whole = served(starts, work)
    for n in range(1, 60):
        assert served(starts[:n], work[:n]) == whole[:n]
    assert whole[-1] >= sum(work)


@dataclass
class Rows:
    """A launch whose blocks load one row each, where `place` says."""

    place: dict[int, int]
    blocks: int
    arrays: list[tuple[int, int]] = field(default_factory=lambda: [(0, 1 << 20)])
    asked: list[int] = field(default_factory=list[int])

    def record(self, number: int) -> RecordStream:
        return RecordStream(sides=["both"])

    def regions(self, number: int) -> list[GlobalRegion]:
        self.asked.append(number)
        return [GlobalRegion(self.place[number], 1, 512, 512, False, False)]


@pytest.mark.parametrize("slots", [48, 10**6], ids=["a ring of the cores", "all apart"])
def test_blocks_that_follow_from_others_are_not_asked(slots: int):
    rows = Rows({n: n % slots * 512 for n in range(480)}, 480)
    rows.record = lambda _: _loads(rows.place[0])  # type: ignore[method-assign]
    found = blocks_of(rows, CHIP)
    assert len(rows.asked) < 40
    for number in range(10):
        assert found.of_round(number)[0][:, 0].tolist() == [
            rows.place[n] for n in range(48 * number, 48 * number + 48)
        ]


def test_blocks_that_do_not_are_all_asked():
    rows = Rows({n: (n % 7) * 512 for n in range(100)}, 100)
    rows.record = lambda _: _loads(rows.place[0])  # type: ignore[method-assign]
    found = blocks_of(rows, CHIP)
    assert sorted(set(rows.asked)) == list(range(1, 100))
    assert [int(found.kinds[0].places[n][0]) for n in (6, 7, 99)] == [6 * 512, 0, 512]


def test_of_very_many_blocks_the_first_are_asked():
    rows = Rows({n: (n % 7) * 512 for n in range(20_000)}, 20_000)
    rows.record = lambda _: _loads(rows.place[0])  # type: ignore[method-assign]
    found = blocks_of(rows, CHIP)
    assert found.asked == 16_384 and found.known == 16_384 // 48
    assert sum(len(sort.cores) for sort in found.sorts()) == 48
    rounds = rounds_of(rows, CHIP, found)
    assert sum(1 + each.like for each in rounds) == found.rounds == 417


def test_a_last_block_that_differs_leaves_the_others_regular():
    rows = Rows({n: n * 512 for n in range(480)} | {480: 7}, 481)
    rows.record = lambda n: _loads(rows.place[n])  # type: ignore[method-assign]
    found = blocks_of(rows, CHIP)
    assert found.affine is not None and len(found.kinds) == 2
    assert found.rounds == 11 and found.of_round(10)[1].tolist() == [[7]]
    assert [(dict(s.kinds), s.cores) for s in found.sorts()] == [
        ({0: 10, 1: 1}, [0]),
        ({0: 10}, list(range(1, 48))),
    ]


def _loads(at: int) -> RecordStream:
    @pto.kernel(profile="a2a3")
    def load(x: pto.Global[pto.u8]) -> None:
        isa.tload(pto.tile(1, 512, pto.u8, address=0), x[0:1, :])
        isa.set_flag("MTE2", "V", 0)
        isa.wait_flag("MTE2", "V", 0)

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
            isa.tload(tile, x[first : first + 64, :])
        isa.set_flag("MTE2", "V", 0)
        isa.wait_flag("MTE2", "V", 0)

    same, apart = (read.time((48 * 64, 1024), each, blocks=48).core_us for each in (False, True))
    assert same > 1.8 * apart


@pto.kernel(profile="a2a3")
def some_longer(x: pto.Global[pto.f16], more: int) -> None:
    """All blocks read the same 64 MB; `more` of them read four rows of tiles more."""
    tile = pto.tile(64, 1024, pto.f16, address=0)
    rounds = pto.select(pto.block_idx() < more, 516, 512)
    for i in pto.range(0, rounds):
        top = i % 512 * 64
        isa.tload(tile, x[top : top + 64, :])
    isa.set_flag("MTE2", "V", 0)
    isa.wait_flag("MTE2", "V", 0)


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
        isa.tload(tile, x[i * 64 : i * 64 + 64, :])
    isa.set_flag("MTE2", "V", 0)
    isa.wait_flag("MTE2", "V", 0)


def test_the_core_with_most_to_do_decides():
    found = triangle.time((48 * 64, 1024), blocks=48)
    assert sum(job.op.name == "pto.tload" for job in found.stream.jobs) == 48


@pto.kernel(profile="a2a3")
def doubled(x: pto.Global[pto.f32], y: pto.Global[pto.f32], rows: int) -> None:
    """Tiles of 64 KB, `rows` of them a block."""
    t = pto.tile(16, 1024, pto.f32, address=0)
    for i in pto.range(0, rows):
        at = (pto.block_idx() * rows + i) * 16
        isa.tload(t, x[at : at + 16, :])
        isa.set_flag("MTE2", "V", 0)
        isa.wait_flag("MTE2", "V", 0)
        isa.tadd(t, t, t)
        isa.set_flag("V", "MTE3", 0)
        isa.wait_flag("V", "MTE3", 0)
        isa.tstore(y[at : at + 16, :], t)
        isa.set_flag("MTE3", "MTE2", 0)
        isa.wait_flag("MTE3", "MTE2", 0)


def test_many_small_blocks_move_as_much_as_few_large_ones():
    """1.2 GB go in and out, more than the cache keeps: all of it through memory."""
    shape = (48 * 400 * 16, 1024)
    few, many = (doubled.time(shape, shape, rows, blocks=48 * 400 // rows) for rows in (400, 4))
    nbytes = 2 * 4 * shape[0] * shape[1]
    assert few.hbm_bytes == pytest.approx(nbytes, rel=0.08)
    assert many.hbm_bytes == pytest.approx(nbytes, rel=0.08)
    assert many.core_us == pytest.approx(few.core_us, rel=0.1)
    assert many.waits[0].times == few.waits[0].times == 400
