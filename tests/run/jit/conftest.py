"""What tests of compiled code ask for."""

from __future__ import annotations

from typing import Any

import pytest

from pto.run.jit.emit.frame import HostFallback
from pto.run.jit.llvm import native
from pto.run.jit.runtime.direct import FastPath
from pto.run.launch.call import Launch
from tests.fallbacks import require_listed


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every launch, and every call like one before, falls back to the host only as listed."""
    ended, called = Launch.end, FastPath.run

    def end(self: Launch, grid: Any) -> None:
        ended(self, grid)
        require_listed(self.fallbacks)

    def run(self: FastPath, *given: Any) -> Any:
        report = called(self, *given)
        require_listed(report.fallbacks)
        return report

    monkeypatch.setattr(Launch, "end", end)
    monkeypatch.setattr(FastPath, "run", run)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The LLVM text of everything that is linked."""
    linked, found = native.Target.code, list[str]()

    def code(self: native.Target, text: str, names: list[str]) -> native.Code:
        found.append(text)
        return linked(self, text, names)

    monkeypatch.setattr(native.Target, "code", code)
    return found


@pytest.fixture
def python_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code that hands an operation to Python while it runs fails the test."""

    def refuse(self: HostFallback, *_: object) -> None:
        raise AssertionError(f"left to Python: {self.__dict__['_op']!r}")

    monkeypatch.setattr(HostFallback, "__call__", refuse)
