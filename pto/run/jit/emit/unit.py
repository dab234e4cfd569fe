"""The module of LLVM text that one kernel becomes: its pieces, and the functions they share."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from pto.ir.graph import Operation
from pto.run.jit.border.context import Needs
from pto.run.jit.emit.rounds import LESSER, MEMCPY, MEMSET, rounds, taken
from pto.run.jit.emit.turns import BLOCKS, RESUME, blocks, resume
from pto.run.jit.llvm import native

ROUNDS, TAKEN, SURVEY, TOUCHED = "rounds", "taken", "survey", "touched"
_END = """
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!2 = !{!"branch_weights", i32 1000000, i32 1}
!3 = !{i32 1}
"""


class Unit:
    """Functions under construction; linked when the first of them is called."""

    def __init__(self, logs: bool = False) -> None:
        self._pieces: dict[str, str] = {}
        self._shared: dict[Hashable, tuple[str, str]] = {}  # key -> name, text
        self.ordered = False  # global memory is used, and nobody tells where
        self.has_coroutines = False
        self.sites: list[Operation] = []  # where coroutines may wait without asking Python
        self.whole: str | None = None  # the piece that is all of a block
        self.skeleton: Callable[[str], str | None] = lambda name: None  # of that piece
        self._surveys: list[Any] | None = None
        self.needs = Needs(logs)
        self.statuses: dict[str, set[int]] = {}  # shared functions: what they return beside 0
        self.fused: dict[str, int] = {}  # functions that do several instructions: how many
        self.groups: list[tuple[str, ...]] = []  # instructions that run as one loop, in order
        self.forwarded: list[str] = []  # copies that are not made: products read their source
        self._names = 0
        self._declared: dict[str, None] = {}
        self._code: native.Code | None = None
        self._lock = threading.Lock()
        self.skipped: Counter[tuple[str, str]] = Counter()  # (operation, why) run by the reference

    def left_out(self, op: Operation, why: str) -> None:
        """Note an operation that the reference engine runs inside compiled code."""
        self.skipped[op.name, why] += 1

    @property
    def noted(self) -> tuple[int, int]:
        """How many groups and forwarded copies there are; set, to drop those of a region that is
        given up."""
        return len(self.groups), len(self.forwarded)

    @noted.setter
    def noted(self, counts: tuple[int, int]) -> None:
        groups, forwarded = counts
        del self.groups[groups:], self.forwarded[forwarded:]

    def declare(self, line: str) -> None:
        self._declared[line] = None

    def new_name(self) -> str:
        return f"piece{len(self._pieces)}"

    def add(self, name: str, text: str) -> None:
        self._pieces[name] = text

    def always_succeeds(self, name: str) -> bool:
        """True for a shared function that returns a status, which is always 0."""
        return name in self.statuses and not self.statuses[name]

    def shared(self, key: Hashable, make: Callable[[str], str]) -> str:
        """The name of a function that many places call, made once; `make(name)` gives its text."""
        found = self._shared.get(key)
        if found is None:
            self._names += 1
            name = f"@shared{self._names}"
            self._shared[key] = found = (name, make(name))  # where that gives up, nothing is kept
        return found[0]

    @property
    def _functions(self) -> dict[str, str]:
        """Those that Python calls."""
        if self.whole is None and not self.has_coroutines:
            return self._pieces
        self.declare(MEMSET)
        self.declare(MEMCPY)
        if self.whole is None:
            return {**self._pieces, RESUME: resume(), BLOCKS: blocks()}
        self.declare(LESSER)
        loops = {ROUNDS: rounds(ROUNDS, self.whole, self.needs), TAKEN: taken(TAKEN, ROUNDS)}
        return {**self._pieces, **loops}

    @property
    def text(self) -> str:
        functions = self._functions.values()
        return self._module([text for _, text in self._shared.values()], functions)

    def _module(self, shared: Iterable[str], functions: Iterable[str]) -> str:
        return "\n".join([*self._declared, *shared, *functions, _END])

    def function(self, name: str) -> Any:
        """A linked piece, to be called with a context and a frame."""
        return native.function(self._linked().address(name))

    def rounds(self) -> tuple[Any, Any]:
        """The linked loop over blocks, and the one that takes them from a counter (`rounds.py`)."""
        code = self._linked()
        return native.rounds(code.address(ROUNDS)), native.rounds(code.address(TAKEN))

    def coroutine(self, name: str) -> tuple[Any, Any, Any]:
        """What starts a linked coroutine, what resumes one, and several from block to block."""
        code = self._linked()
        resumes = native.function(code.address(RESUME)), native.blocks(code.address(BLOCKS))
        return native.coroutine(code.address(name)), *resumes

    def site(self, op: Operation) -> int:
        """A number above 0 for a wait."""
        self.sites.append(op)
        return len(self.sites)

    def _linked(self) -> native.Code:
        with self._lock:  # of two threads that come first, one links: code goes with its owner
            if self._code is None:
                self._code = native.target().code(self.text, list(self._functions))
            return self._code

    def surveys(self) -> Any:
        """The loop over blocks that only tells what they will use; None where nobody knows."""
        with self._lock:
            if self._surveys is None:
                text = self.skeleton(SURVEY)
                self._surveys = [] if text is None else self._link_surveys(text)
            return self._surveys[0] if self._surveys else None

    def _link_surveys(self, skeleton: str) -> list[Any]:
        loop = rounds(ROUNDS, SURVEY, self.needs, logs=True)
        text = self._module([self._shared[TOUCHED][1]], [skeleton, loop])
        code = native.target().code(text, [ROUNDS])
        return [native.rounds(code.address(ROUNDS)), code]
