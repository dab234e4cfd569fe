"""With an optimisation switched off, a sample of the tests must fail (`switches.py`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.switches import SAMPLE, SWITCHES


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """Every test of the sample, each with its switch thrown: passed or failed."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.switches", "-n", "0", "--tb=no", "-rA"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *SAMPLE],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=600,
    )
    words = [line.split() for line in done.stdout.splitlines()]
    found = {w[1]: w[0] for w in words if len(w) > 1 and w[0] in ("PASSED", "FAILED", "ERROR")}
    assert set(found) == set(SAMPLE), done.stdout[-3000:] + done.stderr[-3000:]
    return found


@pytest.mark.parametrize("switch", SWITCHES)
def test_its_tests_fail(switch: str, outcomes: dict[str, str]) -> None:
    assert {test: outcomes[test] for test in SWITCHES[switch][1]} == dict.fromkeys(
        SWITCHES[switch][1], "FAILED"
    )
