"""More blocks and more bytes never take less time, and no launch beats a rate of its chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

import pto
from pto.observe import timing
from pto.observe.timing import Timing, bench, measure, report, rounds
from pto.observe.timing.rounds import Shown

CHIPS = ["910b1", "910b4", "950pr"]
N = 1 << 26
Vector = pto.Global[pto.f32, "n"]
Left, Right = pto.Global[pto.f16, "m", "k"], pto.Global[pto.f16, "k", "n"]
Sums = pto.Global[pto.f32, "m", "n"]


@pto.kernel
def read(x: Vector, y: pto.Global[pto.f32, 1, 1]) -> None:
    i = pto.block_idx() * 8192
    pto.store(y, pto.load(x[i:], 8192).sum(axis=1), atomic="add")


@pto.kernel
def copy(x: Vector, y: Vector) -> None:
    i = pto.block_idx() * 8192
    pto.store(y[i:], pto.load(x[i:], 8192) + 1.0)


@pto.kernel
def fill(y: Vector) -> None:
    i = pto.block_idx() * 8192
    pto.store(y[i:], pto.full(1, 8192, 1.0, pto.f32))


@pto.kernel
def exponentials(x: Vector, y: Vector, tiles: int, width: int) -> None:
    """`tiles` tiles of `width` a block."""
    for t in pto.range(0, tiles):
        i = (pto.block_idx() * tiles + t) * width
        pto.store(y[i:], pto.exp(pto.load(x[i:], width)))


@pto.kernel
def product(a: Left, b: Right, c: Sums) -> None:
    i, j = pto.block_idx(0) * 128, pto.block_idx(1) * 128
    acc = pto.zeros(128, 128, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], 64):
        acc = pto.dot(pto.load(a[i:, k:], 128, 64), pto.load(b[k:, j:], 64, 128), acc=acc)
    pto.store(c[i:, j:], acc)


@pytest.fixture(autouse=True)
def _times_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits and remedies take most of the time of a report, and no test here asks for them."""
    monkeypatch.setattr(report, "waits_of", lambda *_: [])
    monkeypatch.setattr(timing, "remedies", lambda *_: [])


def timed(kernel: Any, chip: str, blocks: Any, *args: Any) -> Timing:
    return kernel.on("a5" if chip == "950pr" else "a2a3")[blocks].time(*args, device=chip)


def beats_no_rate(t: Timing) -> None:
    """By the bytes of the whole launch; writes that stay in the cache are not among them."""
    chip = bench(t.device, "a5" if t.device == "950pr" else "a2a3").chip
    seconds = t.core_us / 1e6
    assert t.hbm_bytes <= seconds * max(chip.hbm_read, chip.hbm_write) * (1 + 1e-9)
    assert t.l2_bytes <= seconds * chip.l2_read * (1 + 1e-9)
    assert t.hbm_share <= 1 + 1e-9 and t.l2_share <= 1 + 1e-9
    assert all(share <= 1 for pipes in t.busy.values() for share in pipes.values())


def grows(times: Sequence[Timing]) -> None:
    for t in times:
        beats_no_rate(t)
    for less, more in pairwise(times):
        assert more.core_us >= less.core_us, (str(less), str(more))


FLAT: dict[str, Callable[[str, int], Timing]] = {
    "read": lambda chip, n: timed(read, chip, n, (N,), (1, 1)),
    "copy": lambda chip, n: timed(copy, chip, n, (N,), (N,)),
    "fill": lambda chip, n: timed(fill, chip, n, (N,)),
}


@pytest.mark.parametrize(
    ("kernel", "chip"),
    [*((kernel, chip) for kernel in FLAT for chip in ("910b1", "950pr")), ("read", "910b4")],
)
def test_time_grows_with_blocks(kernel: str, chip: str):
    """Around whole rounds of the cores, and where the cache has been filled."""
    one = FLAT[kernel](chip, 200).cores
    counts = [1, one - 1, one, one + 1, 5 * one + 3, 12 * one, 16 * one, 16 * one + 1]
    grows([FLAT[kernel](chip, n) for n in [*counts, 6400, 8000]])


@pytest.mark.parametrize("chip", CHIPS)
def test_a_launch_reads_no_faster_than_memory(chip: str):
    """Inputs of a launch are not in the cache: all bytes come from memory."""
    rate = bench(chip, "a5" if chip == "950pr" else "a2a3").chip.hbm_read
    for blocks in (768, 6400):
        t = FLAT["read"](chip, blocks)
        assert t.hbm_bytes >= 0.99 * blocks * 32768
        assert blocks * 32768 <= t.core_us / 1e6 * rate
        assert t.hbm_share > 0.3


@pytest.mark.parametrize(("chip", "blocks"), [("910b1", 40), ("910b4", 150), ("950pr", 150)])
def test_time_grows_with_bytes(chip: str, blocks: int):
    def each(tiles: int, width: int) -> Timing:
        return timed(exponentials, chip, blocks, (N,), (N,), tiles, width)

    grows([each(tiles, 4096) for tiles in (1, 2, 3, 5, 8, 9, 16, 17, 33)])
    grows([each(4, width) for width in (256, 1536, 2048, 2304, 3072, 8192)])


@pytest.mark.parametrize("chip", CHIPS)
def test_time_grows_with_blocks_that_share_lines(chip: str):
    def each(rows: int) -> Timing:
        return timed(product, chip, (rows, 2), (128 * rows, 256), (256, 256), (128 * rows, 256))

    grows([each(rows) for rows in (1, 2, 6, 12, 13, 25, 40)])


def all_rounds(*args: Any) -> list[Shown]:
    return rounds.chosen(*args[:3], 10**6)


@pytest.mark.parametrize("chip", ["910b1", "950pr"])
@pytest.mark.parametrize("kernel", FLAT)
def test_rounds_that_are_left_out_take_as_long_as_when_simulated(
    kernel: str, chip: str, monkeypatch: pytest.MonkeyPatch
):
    blocks = 20_000 if kernel == "fill" else 5000  # results fill the cache more than twice
    few = FLAT[kernel](chip, blocks)
    monkeypatch.setattr(measure, "chosen", all_rounds)
    every = FLAT[kernel](chip, blocks)
    assert sum(each.skipped for each in few.shown) > 0
    assert len(every.shown) == every.rounds == sum(1 + each.skipped for each in few.shown)
    assert few.core_us == pytest.approx(every.core_us, rel=2e-3)
    assert few.hbm_bytes == pytest.approx(every.hbm_bytes, rel=2e-3)
    for pipe, share in every.busy["vector"].items():
        assert few.busy["vector"][pipe] == pytest.approx(share, abs=2e-3)


def test_rounds_that_do_not_repeat_are_simulated(monkeypatch: pytest.MonkeyPatch):
    """No two rounds count as equal: all of them are simulated, and nothing is said to repeat."""
    monkeypatch.setattr(measure, "repeats", lambda *_: False)
    found = FLAT["copy"]("910b1", 1500)
    assert len(found.shown) == found.rounds
    assert not any(each.skipped for each in found.shown)
