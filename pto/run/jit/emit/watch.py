"""Protocols of observers of emission."""

from __future__ import annotations

from typing import Protocol

from pto.ir.graph import Operation
from pto.isa.row import types as t
from pto.run.jit.llvm.text import Val
from pto.run.jit.runtime.values import Lowered


class Watch(Protocol):
    """Adds checks around operations (`written.py`)."""

    def before(self, op: Operation) -> None: ...

    def after(self, op: Operation) -> None: ...

    def access(self, memory: Val, address: Val, nbytes: Val, fine: str) -> None: ...


class Follows(Protocol):
    """Sees operations in the order of emission (`reach.py`)."""

    sure: set[tuple[int, int, int]]

    def operation(self, op: Operation) -> None: ...
    def pointers(self, op: Operation) -> None: ...
    def name(self, native: Lowered, type: t.TileBuf) -> None: ...
