"""The module of LLVM text that one kernel becomes: its pieces, and the functions they share."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from pto.ir.graph import Operation
from pto.run.jit.border.context import Needs
from pto.run.jit.llvm import native

_END = """
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!2 = !{!"branch_weights", i32 1000000, i32 1}
"""


class Unit:
    """Functions under construction; linked when the first of them is called."""

    def __init__(self) -> None:
        self._pieces: dict[str, str] = {}
        self._shared: dict[str, tuple[str, str]] = {}  # key -> name, text
        self.ordered = False  # Python touches global memory, or agents meet: blocks take turns
        self.needs = Needs()
        self.leaving: set[str] = set()  # shared functions that may leave the work to the reference
        self._names = 0
        self._declared: dict[str, None] = {}
        self._code: native.Code | None = None
        self._lock = threading.Lock()
        self.skipped: Counter[tuple[str, str]] = Counter()  # (operation, why) run by the reference

    def left_out(self, op: Operation, why: str) -> None:
        """Note an operation that the reference engine runs inside compiled code."""
        self.skipped[op.name, why] += 1

    def declare(self, line: str) -> None:
        self._declared[line] = None

    def new_name(self) -> str:
        return f"piece{len(self._pieces)}"

    def add(self, name: str, text: str) -> None:
        self._pieces[name] = text

    def shared(self, key: str, make: Callable[[str], str]) -> str:
        """The name of a function that many places call, made once; `make(name)` gives its text."""
        found = self._shared.get(key)
        if found is None:
            self._names += 1
            name = f"@shared{self._names}"
            self._shared[key] = found = (name, make(name))  # where that gives up, nothing is kept
        return found[0]

    @property
    def text(self) -> str:
        parts = [*self._declared, *(text for _, text in self._shared.values())]
        return "\n".join([*parts, *self._pieces.values(), _END])

    def function(self, name: str) -> Any:
        """A linked piece, to be called with a context and a frame."""
        with self._lock:  # of two threads that come first, one links: code goes with its owner
            if self._code is None:
                self._code = native.target().code(self.text, list(self._pieces))
            return native.function(self._code.address(name))
