"""Compiled code that goes out of bounds ends with the reference's words; it never crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.jit.faults import FAMILIES, alike

ROOT = Path(__file__).parents[3]
UB = 1 << 18  # bytes
LAST = UB // 4 - 64  # the last element where a register fits
WILD = 1 << 40

# family, numbers, what is said
CASES = [
    ("vector load", (LAST, 0, 0, 0), "fine"),
    ("vector load", (LAST + 64, 0, 0, 0), "PTO-M001"),
    ("vector load", (-64, 0, 0, 0), "PTO-M001"),
    ("vector load", (1, 0, 0, 0), "PTO-M140"),
    ("vector store", (LAST, 0, 0, 0), "fine"),
    ("vector store", (LAST + 64, 0, 0, 0), "PTO-M001"),
    ("one element loaded", (UB // 4 - 1, 0, 0, 0), "fine"),
    ("one element loaded", (UB // 4, 0, 0, 0), "PTO-M001"),
    ("gather", (UB // 4 - 1, 0, 0, 0), "fine"),
    ("gather", (UB // 4, 0, 0, 0), "PTO-M141"),
    ("gather", (-1, 0, 0, 0), "PTO-M141"),
    ("scatter", (UB // 4, 0, 0, 0), "PTO-M141"),
    ("gather of blocks", (UB, 0, 0, 0), "PTO-M001"),
    ("pointer sums", (1 << 41, -(1 << 41), 0, 0), "fine"),
    ("pointer sums", (LAST, 64, 0, 0), "PTO-M001"),
    ("loop of stores", (33, 4, 0, 0), "PTO-M140"),
    ("loop of stores", (LAST // 8, 9, 0, 0), "fine"),
    ("loop of stores", (LAST // 8, 10, 0, 0), "PTO-M001"),
    ("scalar in global memory", (1023, 0, 0, 0), "fine"),
    ("scalar in global memory", (1024, 0, 0, 0), "PTO-M001"),
    ("scalar in global memory", (0, -1, 0, 0), "PTO-M001"),
    ("transfer in", (4096, 1, 0, 0), "fine"),
    ("transfer in", (4128, 1, 4128, 4128), "PTO-M161"),
    ("transfer out", (4096, 1, 0, 0), "fine"),
    ("transfer out", (4128, 1, 4128, 4128), "PTO-M161"),
    ("tile address", (UB - 4096, 0, 0, 0), "fine"),
    ("tile address", (UB - 4064, 0, 0, 0), "PTO-M001"),
    ("tile address", (-32, 0, 0, 0), "PTO-M001"),
    ("valid region", (16, 64, 0, 0), "fine"),
    ("valid region", (17, 64, 0, 0), "PTO-V001"),
    ("valid region set", (0, -1, 0, 0), "PTO-V001"),
    ("view", (16, 64, 64, 1), "fine"),
    ("view", (17, 64, 64, 1), "fine"),
    ("view", (16, 64, WILD, 1), "PTO-M001"),
    ("view", (1 << 62, 64, 1 << 62, 1), "PTO-M001"),
    ("part of a view", (0, 0, 16, 64), "fine"),
    ("part of a view", (1, 0, 16, 64), "PTO-M006"),
    ("stored part", (0, 1, 0, 0), "PTO-M006"),
    ("window cut out", (8, 48, 0, 0), "fine"),
    ("window cut out", (9, 48, 0, 0), "PTO-S060"),
    ("window pasted in", (8, 49, 0, 0), "PTO-S060"),
    ("one element", (1023, 1023, 0, 0), "fine"),
    ("one element", (1024, 0, 0, 0), "PTO-M050"),
    ("one element", (0, -1, 0, 0), "PTO-M050"),
    # operands on the same bytes are no fault: all is read before anything is written
    ("tiles that overlap", (256, 512, 0, 0), "fine"),
    ("tiles that overlap", (0, 32, 0, 0), "fine"),
]


@pytest.mark.parametrize("family, numbers, said", CASES)
def test_bounds_are_told_alike(family: str, numbers: tuple[int, ...], said: str) -> None:
    assert alike(family, numbers) == said


def test_every_family_has_a_case_that_fails_and_one_that_does_not() -> None:
    kinds = {(family, said == "fine") for family, _, said in CASES}
    assert {f for f, fine in kinds if not fine} >= {*FAMILIES} - {
        *("tiles that overlap", "unpacking load", "transfer in loops")
    }


def test_random_numbers_never_crash() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.run.jit.faults", "7", "6"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1500:]
    assert "PTO-M" in done.stdout and "fine" in done.stdout
