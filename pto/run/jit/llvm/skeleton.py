"""A function of LLVM text without its work: only where it goes, and the calls that tell of it.

What remains are branches, what they depend on, state of the function's own and the calls of one
function. It can be had where none of that depends on data that the work reads or makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from pto.run.jit.llvm.text import Noted, Text

_NAME = re.compile(r"%[\w.]+")
_RESULT = re.compile(r"  (%[\w.]+) = (.*)")
_STEP = re.compile(r"getelementptr i8, ptr (%[\w.]+)")
_POINTER = re.compile(r", ptr (%[\w.]+)")
_CALL = re.compile(r"call [^(]*?([@%][\w.]+)\(")
_READS = ("masked.", "vp.", "load.")  # intrinsics that read memory


class Skeleton:
    """Of one function; `lines` is None where there is none.

    Calls that are noted stay. `state` is what points to memory that the function may
    read back, `outside` the pointer it calls what is not compiled by: there the skeleton ends with
    what that gives for a failure, but for `look`, which stays. `sure` says of a function that what
    it returns is always 0.
    """

    def __init__(
        self,
        text: Text,
        state: Collection[str],
        outside: str,
        look: int,
        sure: Callable[[str], bool],
    ) -> None:
        self._all = [text.lines[0], *text.allocas, *text.lines[1:]]
        found = (_RESULT.match(line) for line in self._all)
        self._made = {m[1]: m[2] for m in found if m is not None}
        self._state, self._outside = set(state), outside
        self._look, self._sure = f"i32 {look})", sure
        self.lines = self._kept()

    def _kept(self) -> list[str] | None:
        wanted: set[str] = set()
        left = [line for line in self._all if self._stays(line)]
        while left:
            for name in _NAME.findall(left.pop()):
                if name in wanted or name not in self._made:
                    continue
                wanted.add(name)
                line = self._without_work(name, self._made[name])
                if line is None:
                    return None
                left.append(line)
        found = ((_RESULT.match(line), line) for line in self._all)
        return [
            f"  {m[1]} = {self._without_work(m[1], m[2])}" if m is not None else line
            for m, line in found
            if (m[1] in wanted if m is not None else self._stays(line))
        ]

    def _stays(self, line: str) -> bool:
        if line.startswith("  store "):
            return self._is_own(_POINTER.findall(line)[-1])
        if line.startswith("  call "):
            return isinstance(line, Noted)
        return _RESULT.match(line) is None

    def _without_work(self, name: str, op: str) -> str | None:
        """The definition of a name that is needed; None: it depends on data."""
        if op.startswith("load "):
            fixed = "!invariant.load" in op or op.startswith("load volatile")
            return op if fixed or self._is_own(_POINTER.findall(op)[0]) else None
        if not op.startswith("call "):
            return op
        called = _CALL.match(op)
        if called is None:
            return None
        who = called[1]
        if who == self._outside:
            return op if self._look in op else "add i32 1, 0"
        if who.startswith("@llvm."):
            return None if any(word in who for word in _READS) else op
        return "add i32 0, 0" if op.startswith("call i32") and self._sure(who) else None

    def _is_own(self, pointer: str) -> bool:
        """Whether it leads to the stack, the frame or state."""
        while (step := _STEP.match(self._made.get(pointer, ""))) is not None:
            pointer = step[1]
        is_stack = self._made.get(pointer, "").startswith("alloca")
        return is_stack or pointer == "%ctx" or pointer in self._state
