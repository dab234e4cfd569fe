"""Packages that only some uses need: what is said where one is not installed."""

from __future__ import annotations

from pto.core.errors import PtoError, fail


def not_installed(what: str, package: str, extra: str) -> PtoError:
    """The error to raise; `extra` is the part of ours that installs the package."""
    return fail(
        "PTO-U010",
        f"{what} needs {package}, which is not installed",
        help=f'pip install "pto-machine[{extra}]"',
    )
