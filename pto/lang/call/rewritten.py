"""Code that the front end has rewritten, and why other code of the user's was not."""

from __future__ import annotations

from types import CodeType

DONE: set[CodeType] = set()  # compiled from rewritten syntax trees
REASONS: dict[CodeType, str] = {}  # functions that run as they are


def why_not(code: CodeType) -> str | None:
    """The reason why a function runs as it is; None for rewritten code."""
    return None if code in DONE else REASONS.get(code)
