"""What tests of compiled code ask for."""

from __future__ import annotations

import pytest

from pto.run.jit.emit.outside import Outside


@pytest.fixture
def python_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code that hands an operation to Python while it runs fails the test."""

    def refuse(self: Outside, *_: object) -> None:
        raise AssertionError(f"left to Python: {self.__dict__['_op']!r}")

    monkeypatch.setattr(Outside, "__call__", refuse)
