"""The pytest plugin: kernels run on the profiles and under the checks that the command line names.

pytest loads this file in every run of every project, so `pto` is only imported when a test needs
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pto.lang.kernel import Blocks, Bound, Kernel
    from pto.observe.timing import Timing
    from pto.run.launch.host import Report

_PROFILE = "pto_profile"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pto", "kernels of the PTO machine")
    group.addoption(
        "--pto-profile",
        metavar="P,..",
        default="",
        help="run tests that use pto_run once on each of these profiles; default: the kernel's own",
    )
    group.addoption(
        "--pto-sanitize",
        action="store_true",
        help="let the sanitizer watch every pto_run; what it finds fails the test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """A profile that does not exist is found before any test runs."""
    named = _profiles(config)
    if not named:
        return
    from pto.core.errors import PtoError
    from pto.target.profile import profile

    try:
        for name in named:
            profile(name)
    except PtoError as error:
        raise pytest.UsageError(f"--pto-profile: {error}") from None


def _profiles(config: pytest.Config) -> list[str]:
    words = str(config.getoption("--pto-profile")).split(",")
    return [word.strip() for word in words if word.strip()]


def pytest_report_header(config: pytest.Config) -> str | None:
    named = _profiles(config)
    sanitized = config.getoption("--pto-sanitize")
    if not named and not sanitized:
        return None
    where = ", ".join(named) or "of each kernel"
    return f"pto: profile {where}{'; sanitizer on' if sanitized else ''}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = _profiles(metafunc.config)
    parametrized = [m.args[0] for m in metafunc.definition.iter_markers("parametrize") if m.args]
    if (
        named
        and _PROFILE in metafunc.fixturenames
        and not any(_PROFILE in str(n) for n in parametrized)
    ):
        metafunc.parametrize(_PROFILE, named, indirect=True)


@pytest.fixture
def pto_profile(request: pytest.FixtureRequest) -> str | None:
    """The profile of this test, as --pto-profile has it; None: each kernel's own."""
    return getattr(request, "param", None)


@pytest.fixture
def pto_run(request: pytest.FixtureRequest, pto_profile: str | None) -> Callable[..., Report]:
    """Run a kernel in a test and compare it with what is expected.

    >>> def test_add(pto_run):
    ...     pto_run(add[4], x, y, z, expected=x + y)
    ...     pto_run(add[4], x, y, z, reference=lambda x, y, z: x + y, ulp=1)
    """
    sanitized = bool(request.config.getoption("--pto-sanitize"))

    def run(
        kernel: Kernel[...] | Bound[...],
        *args: Any,
        expected: Any = None,
        reference: Callable[..., Any] | None = None,
        rtol: float = 0.0,
        atol: float = 0.0,
        ulp: int = 0,
        blocks: Blocks | None = None,
        sanitize: bool = False,
        **named: Any,
    ) -> Report:
        __tracebackhide__ = True
        from pto.core.errors import PtoError
        from pto.core.findings import rendered
        from pto.lang.diff.compare import Tolerance
        from pto.lang.diff.diff import ComparedCall

        chosen = kernel if pto_profile is None else kernel.on(pto_profile)
        try:
            call = ComparedCall.of(chosen, args, named, blocks)
            unsafe = call.sanitize() if sanitized or sanitize else []
            values = call.kernel.values(args, named)
            within = Tolerance(rtol, atol, ulp)
            report, difference = call.run(values, within, expected=expected, reference=reference)
        except PtoError as error:
            pytest.fail(str(error).strip())
        if difference:
            pytest.fail(str(difference))
        if unsafe:
            pytest.fail(f"the sanitizer found:\n{rendered(unsafe)}")
        return report

    return run


@pytest.fixture
def pto_time() -> Callable[..., Timing]:
    """The time of a kernel on a chip, held to a bound.

    >>> def test_fast(pto_time):
    ...     pto_time(gemm[24], (1536, 1536), device="910b1", at_most=40.0)  # us
    ...     assert pto_time(new[24], x).us <= pto_time(old[24], x).us
    """

    def time(
        kernel: Kernel[...] | Bound[...], *args: Any, at_most: float | None = None, **named: Any
    ) -> Any:
        __tracebackhide__ = True
        from pto.core.errors import PtoError

        try:
            timing = kernel.time(*args, **named)
        except PtoError as error:
            pytest.fail(str(error).strip())
        if at_most is not None and timing.us > at_most:
            pytest.fail(f"{timing.us:.1f} us, and {at_most:.1f} are allowed:\n{timing}")
        return timing

    return time
