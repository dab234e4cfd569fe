"""Loops in steady state: what is left out takes as long as it would have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pto
from pto import isa
from pto.observe.timing import Timing, fold

SHAPE = (1, 4096)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in (("ENOUGH", 100), ("WINDOW", 4), ("LOOKS", 2), ("MANY", 16)):
        monkeypatch.setattr(fold, name, value)
    yield


def chain(x: Any, y: Any, tile: pto.Tile, turn: int, width: Any) -> None:
    isa.wait_flag("MTE3", "MTE2", turn)
    isa.tload(tile, x[:, 0:width])
    isa.set_flag("MTE2", "V", 0)
    isa.wait_flag("MTE2", "V", 0)
    isa.tadds(tile, tile, 1.0)
    isa.set_flag("V", "MTE3", 0)
    isa.wait_flag("V", "MTE3", 0)
    isa.tstore(y[:, 0:width], tile)
    isa.set_flag("MTE3", "MTE2", turn)


@pto.kernel(profile="a2a3")
def two_loops(
    x: pto.Global[pto.f32], y: pto.Global[pto.f32], outer: int, inner: int, change: int
) -> None:
    """`inner` pairs of tiles, `outer` times; from iteration `change` on wider ones."""
    tiles = [pto.tile(1, 1024, pto.f32, address=n * 4096) for n in (0, 1)]
    for turn in (0, 1):
        isa.set_flag("MTE3", "MTE2", turn)
    for i in pto.range(0, outer):
        for _ in pto.range(0, inner):
            for turn, tile in enumerate(tiles):
                if i < change:
                    chain(x, y, tile, turn, 256)
                else:
                    chain(x, y, tile, turn, 1024)
    for turn in (0, 1):
        isa.wait_flag("MTE3", "MTE2", turn)


def both(*numbers: int) -> tuple[Timing, Timing]:
    folded = two_loops.time(SHAPE, SHAPE, *numbers, blocks=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "ENOUGH", 10**9)
        return folded, two_loops.time(SHAPE, SHAPE, *numbers, blocks=2)


@pytest.mark.parametrize("trips", [(1, 301), (201, 1), (24, 61), (2, 111)])
def test_as_long_as_the_whole(trips: tuple[int, int], early: None):
    folded, whole = both(*trips, 10**6)
    assert len(folded.stream.jobs) < 0.6 * len(whole.stream.jobs)
    assert folded.us == pytest.approx(whole.us, rel=0.01)
    assert folded.l2_bytes == pytest.approx(whole.l2_bytes, rel=0.02)
    for pipe, share in whole.busy["vector"].items():
        assert folded.busy["vector"][pipe] == pytest.approx(share, abs=0.01)
    assert any("were not simulated" in note for note in folded.notes)
    kinds = [{(w.op.name, w.behind.name): w for w in each.waits} for each in (folded, whole)]
    for kind, wait in kinds[1].items():
        assert kinds[0][kind].times == pytest.approx(wait.times, rel=0.05)
        assert kinds[0][kind].us == pytest.approx(wait.us, rel=0.05, abs=1)
        assert kinds[0][kind].saves_us == pytest.approx(wait.saves_us, rel=0.05, abs=1)


def test_a_loop_that_changes_is_described_to_its_end(early: None):
    folded, whole = both(150, 1, 110)
    assert folded.us == whole.us
    assert len(folded.stream.jobs) == len(whole.stream.jobs)
