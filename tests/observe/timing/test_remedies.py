"""What a report offers is what a person gets: each remedy against the program that takes it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import pto
from pto import isa
from pto.lang.kernel import Kernel
from pto.observe.timing import Timing
from tests.examples.test_examples import runs

Vector = pto.Global[pto.f32, "n"]


@pto.kernel(profile="a2a3")
def exponential(
    x: pto.Global[pto.f32],
    y: pto.Global[pto.f32],
    rows: int,
    columns: int,
    buffers: int,
    all: int,
) -> None:
    """Rows through one tile of the vector buffer, or through several in turn, by hand."""
    size = rows * columns * 4
    tiles = [pto.tile(rows, columns, pto.f32, address=k * size) for k in range(buffers)]
    out = pto.tile(rows, columns, pto.f32, address=buffers * size)
    for k in range(buffers):
        isa.set_flag("V", "MTE2", k)
    isa.set_flag("MTE3", "V", 0)
    for turn in pto.range(all // rows // buffers):
        for k, t in enumerate(tiles):
            i = (turn * buffers + k) * rows
            isa.wait_flag("V", "MTE2", k)
            isa.tload(t, x[i : i + rows, 0:columns])
            isa.set_flag("MTE2", "V", 0)
            isa.wait_flag("MTE2", "V", 0)
            isa.wait_flag("MTE3", "V", 0)
            isa.texp(out, t)
            isa.set_flag("V", "MTE2", k)
            isa.set_flag("V", "MTE3", 0)
            isa.wait_flag("V", "MTE3", 0)
            isa.tstore(y[i : i + rows, 0:columns], out)
            isa.set_flag("MTE3", "V", 0)
    for k in range(buffers):
        isa.wait_flag("V", "MTE2", k)
    isa.wait_flag("MTE3", "V", 0)


def timed(rows: int = 64, columns: int = 64, buffers: int = 1, all: int = 4096) -> Any:
    shape = (all, 256)
    return exponential.time(shape, shape, rows=rows, columns=columns, buffers=buffers, all=all)


def offered(found: Any, words: str) -> float:
    """The time with the remedy, as the report says."""
    (saved,) = [each.saves_us for each in found.remedies if words in each.change]
    return found.us - saved


def test_one_more_buffer():
    now, then = timed(), timed(buffers=2)
    assert then.us < 0.95 * now.us
    assert offered(now, "one more buffer for %t") == pytest.approx(then.us, rel=0.03)


def test_tiles_twice_as_large():
    now, then = timed(), timed(rows=128)
    assert then.us < 0.95 * now.us
    assert offered(now, LARGER) == pytest.approx(then.us, rel=0.05)


def test_longer_rows():
    now, then = timed(rows=64, columns=32), timed(rows=16, columns=128, all=1024)
    assert then.us < 0.95 * now.us
    assert offered(now, "rows of 512 bytes, not 128, in tload") == pytest.approx(then.us, rel=0.05)


def test_what_does_not_fit_is_not_offered():
    full = timed(rows=256, columns=96)  # 96 KB each, 192 KB of 256
    assert full.us > 0
    assert not [r for r in full.remedies if "large" in r.change or "buffer" in r.change]


LARGER = "tiles twice as large, half as many on each core"
# examples whose reports offer a remedy: the constants of the example that apply it
COMPARED: dict[tuple[str, str], dict[str, int]] = {
    ("gemm_f16", LARGER): {"K": 128},
    ("gemm_int8", LARGER): {"K": 128},
}
# and those that no constant applies, with the reason
NOT_COMPARED = {
    ("gemm_mx", LARGER): "with larger blocks fewer cores have one",
    ("gemm_mx_fp4", LARGER): "with larger blocks fewer cores have one",
    ("flash_attention", LARGER): "CHUNK has to be DEPTH; with larger ROWS fewer cores have a block",
}


def last_launch(name: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> Timing:
    """The last launch of an example, timed and not run."""
    found: list[Timing] = []

    def timed_alone(self: Kernel, *args: Any, blocks: Any = 1, **named: Any) -> None:
        found.append(self.time(*args, blocks=blocks, **named))

    monkeypatch.setattr(Kernel, "run", timed_alone)
    importlib.import_module(f"examples.{name}").example(profile)
    return found[-1]


@pytest.mark.parametrize(
    ("name", "profile"), [each for each in runs() if each[0] in {name for name, _ in COMPARED}]
)
def test_an_example_that_takes_the_advice_saves_as_much(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
):
    """Fixed costs are paid half as often; the program may save more, by longer rows."""
    if profile == "cpu":
        return
    now = last_launch(name, profile, monkeypatch)
    (remedy,) = now.remedies
    assert str(remedy).endswith(" us less from fixed costs alone")
    for constant, value in COMPARED[name, remedy.change].items():
        monkeypatch.setattr(f"examples.{name}.{constant}", value)
    then = last_launch(name, profile, monkeypatch)
    assert now.us - then.us >= 0.75 * remedy.saves_us


@pto.kernel
def update(p: Vector, g: Vector, m: Vector, w: int) -> None:
    """A tile a block, of an optimiser with one moment."""
    i = pto.block_idx() * w
    mt = pto.load(m[i:], w) * 0.9 + pto.load(g[i:], w) * 0.1
    pto.store(m[i:], mt)
    pto.store(p[i:], pto.load(p[i:], w) - mt * 0.001)


@pytest.mark.parametrize(("chip", "profile"), [("910b1", "a2a3"), ("950pr", "a5")])
@pytest.mark.parametrize("width", [512, 1024])
def test_larger_tiles_of_many_rounds(width: int, chip: str, profile: str):
    """Half as many blocks on each core: rounds are saved as iterations are."""
    n = 1_600_024
    now, then = (
        update.on(profile)[pto.cdiv(n, w)].time((n,), (n,), (n,), w, device=chip, cache="warm")
        for w in (width, 2 * width)
    )
    (saved,) = [each.saves_us for each in now.remedies if each.change == LARGER]
    assert now.us - then.us == pytest.approx(saved, abs=0.9)


def test_rows_are_not_longer_than_those_of_the_array():
    """128 columns of an array of 64: no load has rows of 512 bytes."""
    shape = (4096, 64)
    found = exponential.time(shape, shape, rows=64, columns=32, buffers=1, all=4096)
    assert not [r for r in found.remedies if "rows of 512" in r.change]


def test_the_best_stands_first():
    saves = [each.saves_us for each in timed().remedies]
    assert len(saves) >= 3
    assert saves == sorted(saves, reverse=True)
