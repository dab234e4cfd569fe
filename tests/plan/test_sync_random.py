"""Random programs without a flag: with what is inserted they are clean, and give the same bits
whenever their effects happen."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.observe.sanitize import sanitize
from pto.plan.sync import insert
from pto.run.launch.host import launch
from pto.target.profile import profile
from tests.plan.unsynced import ROWS, random_program

SEEDS = (0, 4, 7, 12, 17, 29, 32, 41, 58)  # small ones, with every kind of control flow
COUNTS = ((0, 0, 0), (1, 2, 3))  # turns of loops; branches depend on them too
NEEDLESS = ("PTO-R014", "PTO-R015")  # a fence for a way this run did not take


def tensors() -> list[np.ndarray]:
    return [np.arange(ROWS * 16, dtype=np.float32) % n for n in (7, 5)]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_are_clean_and_keep_their_bits(seed: int, target: str):
    module = parse(random_program(random.Random(seed)))
    made = parse(print_module(insert(module, profile(target))))
    for counts in COUNTS:
        verdict = sanitize(made, args=[*tensors(), *counts], profile=target)
        assert verdict.report is not None
        wrong = [d for d in verdict.findings if d.code[:5] in ("PTO-R", "PTO-D")]
        assert [d.message for d in wrong if d.code not in NEEDLESS] == []
        expected = tensors()
        launch(module, args=[*expected, *counts], profile=target)
        for schedule in ("late", "early", f"random:{seed}"):
            actual = tensors()
            launch(made, args=[*actual, *counts], profile=target, schedule=schedule)
            assert [a.tobytes() for a in actual] == [e.tobytes() for e in expected]
