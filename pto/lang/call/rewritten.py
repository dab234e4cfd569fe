"""Code that the front end has rewritten, and why other code of the user's was not."""

from __future__ import annotations

from inspect import CO_GENERATOR
from types import CodeType

DONE: set[CodeType] = set()  # compiled from rewritten syntax trees
_RESUMES = "it is a generator that is not the iterable of a `for` statement of the kernel"
REASONS: dict[CodeType, str] = {}  # functions that run as they are


def why_not(code: CodeType) -> str | None:
    """The reason why a function runs as it is; None for rewritten code."""
    if code in DONE or code in REASONS:
        return None if code in DONE else REASONS[code]
    return _RESUMES if code.co_flags & CO_GENERATOR else None
