"""The pytest plugin, as pytest itself runs it: in a folder and a command line of its own."""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import ml_dtypes  # noqa: F401
import numpy  # noqa: F401
import pytest

import pto

# pytester removes the modules that a run inside this process has imported. A module imported again
# has classes of its own, and kernels of later tests would meet two of each.
for _each in pkgutil.walk_packages(pto.__path__, "pto."):
    if not _each.name.endswith("__main__"):
        with suppress(ImportError):  # of an optional package
            import_module(_each.name)


@pytest.fixture(autouse=True)
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs inside this one load no plugin for asyncio, which warns about its future defaults.
    `pytester` removes the variable first."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:asyncio")


SUITE = """
import numpy as np
import pto
from pto import isa

@pto.kernel
def add_one(x: pto.Global[pto.f32], y: pto.Global[pto.f32], much: float = 1.0) -> None:
    i = pto.block_idx() * 8
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x[i:, :])
    isa.tadds(t, t, much)
    isa.tstore(y[i:, :], t)

@pto.kernel
def racy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(16, 64, pto.f32, address=0)
    isa.tload(t, x)
    isa.tadds(t, t, 1.0)
    isa.set_flag("V", "MTE3", 0)
    isa.wait_flag("V", "MTE3", 0)
    isa.tstore(y, t)

@pto.kernel
def wide(x: pto.Global[pto.bf16]) -> None:
    t = pto.tile(16, 64, pto.bf16)
    isa.tload(t, x)
    isa.tadds(t, t, 1.0)
    isa.tstore(x, t)

X = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(kernels=SUITE)
    return pytester


def run(suite: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    head = "import ml_dtypes\nimport numpy as np\nimport pytest\nfrom kernels import *\n"
    suite.makepyfile(test_it=head + body)
    return suite.runpytest_inprocess(
        "-p", "pto.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist", *options
    )


GOOD = """
def test_value(pto_run):
    y = np.zeros_like(X)
    report = pto_run(add_one[2], X, y, expected=X + 1)
    assert (y == X + 1).all()
    assert report.blocks == 2

def test_function(pto_run):
    pto_run(add_one, X, np.zeros_like(X), 2.0, reference=lambda x, y, n: x + n, blocks=2)

def test_nothing_expected(pto_run):
    pto_run(add_one[2], X, np.zeros_like(X), much=3.0)
"""


def test_a_right_kernel_passes(suite: pytest.Pytester):
    run(suite, GOOD).assert_outcomes(passed=3)


def test_each_profile_is_a_test(suite: pytest.Pytester):
    result = run(suite, GOOD, "--pto-profile", "a2a3, a5", "-v")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*profile a2a3, a5*", "*test_value*a2a3*", "*test_value*a5*"])


def test_a_profile_that_is_none_is_refused_at_the_start(suite: pytest.Pytester):
    result = run(suite, GOOD, "--pto-profile", "a9")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--pto-profile: *a9*"])


def test_a_wrong_kernel_shows_the_element_its_tile_and_its_line(suite: pytest.Pytester):
    body = """
def test_wrong(pto_run):
    wanted = X + 1
    wanted[13, 7] = -5
    pto_run(add_one[2], X, np.zeros_like(X), expected=wanted)
"""
    result = run(suite, body)
    result.assert_outcomes(failed=1)
    line = SUITE[: SUITE.index("isa.tadds")].count("\n")  # the first line of SUITE is empty
    result.stdout.fnmatch_lines(
        [
            ">*pto_run(add_one*",
            "*y?13, 7? is 840, wanted -5*1 of 1,024 elements of y differ*",
            f"*kernels.py:{line}:5*",
            "*isa.tadds(t, t, much)*",
            "*^^^^^^^*",
            "*t?5, 7? was last written by tadds on block 1*",
        ]
    )


def test_the_sanitizer_fails_a_test_that_gives_the_right_values(suite: pytest.Pytester):
    body = """
def test_racy(pto_run):
    pto_run(racy, X, np.zeros_like(X), expected=X + 1)
"""
    run(suite, body).assert_outcomes(passed=1)
    result = run(suite, body, "--pto-sanitize")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*sanitizer on*", "*the sanitizer found*", "*PTO-R*"])


def test_a_test_may_ask_for_the_sanitizer_itself(suite: pytest.Pytester):
    body = """
def test_racy(pto_run):
    pto_run(racy, X, np.zeros_like(X), sanitize=True)
"""
    run(suite, body).assert_outcomes(failed=1)


def test_what_a_profile_lacks_fails_with_its_code(suite: pytest.Pytester):
    body = """
def test_wide(pto_run):
    pto_run(wide, np.zeros((16, 64), ml_dtypes.bfloat16), expected=1.0)
"""
    result = run(suite, body, "--pto-profile", "a2a3,a5")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*PTO-X011*"])


def test_a_test_may_name_its_own_profiles(suite: pytest.Pytester):
    body = """
@pytest.mark.parametrize("pto_profile", ["a5"], indirect=True)
def test_own(pto_run, pto_profile):
    assert pto_profile == "a5"
    pto_run(add_one[2], X, np.zeros_like(X), expected=X + 1)
"""
    run(suite, body, "--pto-profile", "a2a3,a5").assert_outcomes(passed=1)


def test_a_suite_without_kernels_is_left_alone(suite: pytest.Pytester):
    body = "def test_plain():\n    assert True\n"
    result = run(suite, body, "--pto-profile", "a2a3,a5")
    result.assert_outcomes(passed=1)


def test_the_package_announces_the_plugin():
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\n"pto.pytest_plugin" = "pto.pytest_plugin"' in text


def test_a_kernel_that_is_too_slow_shows_where_it_waits(suite: pytest.Pytester):
    body = """
def test_bound(pto_time):
    assert pto_time(add_one[2], X.shape, X.shape, device="910b1", at_most=1000.0).us > 0

def test_too_slow(pto_time):
    pto_time(add_one[2], X.shape, X.shape, device="910b1", at_most=0.001)
"""
    found = run(suite, body)
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["*us, and 0.0 are allowed*", "*bound by*"])
