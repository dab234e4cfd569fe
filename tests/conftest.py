"""Settings of the whole test run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import agreement

# A loaded machine is not a bug: no deadlines; and the same examples on every run.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

_OWN = Path(__file__).parent / "run" / "jit"  # tests that compare engines themselves


def pytest_addoption(parser: pytest.Parser) -> None:
    told = {"action": "store_const", "dest": "agree"}
    every = "every program of a test also runs compiled, and must give the same bytes"
    parser.addoption(
        "--agree", const="all", default="sample", help=f"{every}; else a sample", **told
    )
    parser.addoption("--no-agree", const="off", help="no program runs on both engines", **told)


def pytest_configure(config: pytest.Config) -> None:
    agreement.STATE.mode = config.getoption("agree")
    # thousands of small programs: compiling each would take longer than all they do. What compiled
    # code does is compared with the reference in tests/run/jit, and for a sample of all programs.
    os.environ.setdefault("PTO_ENGINE", "reference")
    # compiled code of tests is kept beside the results of the last run
    os.environ.setdefault("PTO_CACHE_DIR", str(config.rootpath / ".pytest_cache" / "jit"))
    if agreement.STATE.mode != "off":
        agreement.install()


@pytest.fixture(scope="module", autouse=True)
def _agreement(request: pytest.FixtureRequest) -> None:
    agreement.STATE.here = _OWN not in request.path.parents
    agreement.STATE.seen = set()
