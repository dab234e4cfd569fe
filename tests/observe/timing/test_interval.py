"""Intervals of times, and costs from a file."""

from __future__ import annotations

import json
from math import hypot
from pathlib import Path

import numpy as np
import pytest

import pto
from examples.timing.operators import copy, elementwise
from pto.cli.main import main
from pto.core.errors import PtoError
from pto.observe.timing.interval import Term, interval
from pto.target.costs import SPREAD

SHAPE = np.empty((1, 1 << 22), np.float32)
SMALL = np.empty((1, 64), np.float32)
LAUNCH = (SHAPE, SHAPE, 16384, 4)


def test_an_interval_by_hand() -> None:
    """Parts of one status add up, parts of different status err independently."""
    terms = [Term("a", "guess", 10.0), Term("b", "guess", 5.0), Term("c", "measured", 40.0)]
    error = hypot(15 * SPREAD["guess"], 40 * SPREAD["measured"])
    low, high = interval(60.0, terms, (60.0, 60.0), 1.0)
    assert (low, high) == pytest.approx((60 - error, 60 + error))


def test_slower_clocks_and_code_widen_it_upwards() -> None:
    terms = [Term("a", "measured", 10.0)]
    low, high = interval(10.0, terms, (8.0, 14.0), 0.5)
    assert low == pytest.approx(10 - hypot(1.5, 2))
    assert high == pytest.approx(10 + hypot(1.5, 4, 5))


def test_the_parts_make_up_the_time_and_the_report_names_them() -> None:
    found = copy.on("a5")[64].time(*LAUNCH, device="950pr")
    assert sum(term.us for term in found.terms) == pytest.approx(found.us, rel=0.01)
    assert found.terms[0].name == "rate of memory"
    assert "most uncertain: rate of memory (shared" in str(found)
    low, high = found.band
    assert low < found.us < high
    assert [term["name"] for term in found.to_json()["terms"]] == [t.name for t in found.terms]


def test_what_rests_on_guesses_is_less_sure() -> None:
    exact = elementwise("exp").on("a2a3")[1].time(SHAPE, SHAPE, 8192, 512, device="910b1")
    guess = elementwise("gelu").on("a5")[1].time(SHAPE, SHAPE, 8192, 512, device="950pr")
    wide = [(t.band[1] - t.band[0]) / t.us for t in (exact, guess)]
    assert wide[0] > 0.1 and wide[1] > 0.1


def test_costs_of_a_file_replace_those_of_the_chip(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    kernel = copy.on("a5")[1]
    usual = kernel.time(*LAUNCH, device="950pr")
    usual.template(str(path))
    costs = json.loads(path.read_text())
    assert costs["classes"]["ub>gm"]["rate"] == 40
    same = kernel.time(*LAUNCH, device="950pr", costs=costs)
    assert same.us == usual.us
    costs["classes"]["ub>gm"]["rate"] = 10
    assert kernel.time(*LAUNCH, device="950pr", costs=costs).us > 1.5 * usual.us
    less = kernel.time(*LAUNCH, device="950pr", costs={"launches": {"vector": {"us": 21.1}}})
    assert less.us == pytest.approx(usual.us + 20)


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"classes": {"gm>ub": {"r_hits": 70}}}, "no number 'r_hits'"),
        ({"classes": {"gm>up": {}}}, "no class 'gm>up'"),
        ({"chips": {}}, "no part 'chips'"),
        ({"chip": {"flag": "ten"}}, "'ten', not a number"),
        ({"chip": [1]}, "not an object"),
        ({"launches": {"slow": {"us": 1}}}, "no kind of launch 'slow'"),
        ({"lanes": {"vexp": [1, 2]}}, "no register instruction 'vexp'"),
        ({"lanes": {"exp": 4}}, "not [latency, interval]"),
    ],
    ids=str,
)
def test_a_misspelt_cost_is_refused(costs: object, words: str) -> None:
    with pytest.raises(PtoError, match="PTO-U360") as error:
        copy.on("a5")[1].time(*LAUNCH, costs=costs)  # type: ignore[arg-type]
    assert words in str(error.value)


TEXT = """\
import pto
from pto import isa

@pto.kernel(profile="a2a3")
def copy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(64, 128, pto.f32, address=0)
    isa.tload(t, x)
    isa.tstore(y, t)
"""


def test_the_command_takes_states_and_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, costs = tmp_path / "k.py", tmp_path / "costs.json"
    source.write_text(TEXT)
    launch = ["time", str(source), "--arg", "x=zeros:64x128", "--arg", "y=zeros:64x128"]
    assert main([*launch, "--cache", "warm", "--costs-template", str(costs)]) == 0
    assert "gm>ub" in json.loads(costs.read_text())["classes"]
    costs.write_text('{"chip": {"mhz": 1, "speed": 2}}')
    assert main([*launch, "--costs", str(costs)]) == 2
    assert "PTO-U360" in capsys.readouterr().err
    assert main([*launch, "--costs", str(tmp_path / "none.json")]) == 2


def test_timings_are_those_of_the_public_name() -> None:
    assert isinstance(copy[1].time(SMALL, SMALL, 16, 4), pto.Timing)
