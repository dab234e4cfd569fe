"""Optional packages: the error for a package that is not installed."""

from __future__ import annotations

from pto.core.errors import PtoError, fail


def not_installed(feature: str, package: str, extra: str) -> PtoError:
    """The error to raise; `extra` is the pip extra of this project that installs the package."""
    return fail(
        "PTO-U010",
        f"{feature} needs {package}, which is not installed",
        help=f'pip install "pto-machine[{extra}]"',
    )
