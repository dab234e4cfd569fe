"""A function of kernels in a file of its own, as the page of a launch shows it."""

from typing import Any


def doubled(t: Any) -> Any:
    """Twice a tile."""
    return t * 2.0
