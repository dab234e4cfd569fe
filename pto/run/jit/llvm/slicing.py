"""The program slice of a function: its control flow, and calls that log accesses to global memory.

The slice keeps branches, what they depend on, stores to private memory and the logging calls. It
works on the instructions that LLVM has parsed. There is no slice if control flow, or an address
that is logged, depends on data that the function loads or computes from memory of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

_READS = ("masked.", "vp.", "load.")  # intrinsics that read memory


@dataclass(frozen=True)
class Slicer:
    """Slices one parsed function; values are given by name.

    `log` is the function that logs. `host` is the pointer of calls to the host: the slice ends
    there with a failure, except for calls with the number `poll`. `succeeds(name)` is True for a
    function that always returns 0.
    """

    log: str
    host: str
    poll: int
    private: Collection[str]  # pointers to memory that the function may read back
    fixed: Collection[str]  # loads that do not depend on data
    succeeds: Callable[[str], bool]

    def sliced(self, function: Any) -> list[str] | None:
        """The lines of the slice, with labels; None if there is no slice."""
        blocks = {block.name: list(block.instructions) for block in function.blocks}
        made = {i.name: i for block in blocks.values() for i in block if i.name}
        wanted: dict[str, str] = {}  # results that the slice needs: their definition
        left = [i for block in blocks.values() for i in block if self._stays(made, i)]
        while left:
            for name in _used(left.pop()):
                if name in wanted or name not in made:
                    continue
                i = made[name]
                if i.opcode == "call" and (status := self._status(i)):
                    wanted[name] = f"  %{name} = {status}"
                    left += [i] if self._polls(i) else []
                elif self._is_known(made, i):
                    wanted[name] = str(i)
                    left.append(i)
                else:
                    return None
        found: list[str] = []
        for label, block in blocks.items():
            found.append(f"{label}:")
            kept = (wanted.get(i.name) or (str(i) if self._stays(made, i) else "") for i in block)
            found += [line for line in kept if line]
        return found

    def _stays(self, made: dict[str, Any], i: Any) -> bool:
        """True for an instruction without a result that the slice keeps."""
        if i.opcode == "store":
            return self._is_private(made, _last(i))
        return not i.name and (i.opcode != "call" or _last(i) == self.log)

    def _polls(self, call: Any) -> bool:
        """True for a call of the host that polls."""
        if _last(call) != self.host:
            return False
        _, number, _ = call.operands
        return number.get_constant_value() == self.poll % (1 << 32)

    def _status(self, call: Any) -> str:
        """The result of a call of the host, or of a function that always returns 0."""
        called = _last(call)
        if self._polls(call):
            context = next(iter(call.operands)).name
            return f"call i32 %{called}(ptr %{context}, i32 {self.poll})"
        return "add i32 1, 0" if called == self.host else "add i32 0, 0" * self.succeeds(called)

    def _is_known(self, made: dict[str, Any], i: Any) -> bool:
        """True if an instruction loads no data of the program."""
        if i.opcode == "load":
            return i.name in self.fixed or self._is_private(made, _last(i))
        if i.opcode != "call":
            return True
        called = _last(i)
        return called.startswith("llvm.") and not any(word in called for word in _READS)

    def _is_private(self, made: dict[str, Any], pointer: str) -> bool:
        """True if a pointer leads to the stack or to other private memory."""
        while pointer in made and made[pointer].opcode == "getelementptr":
            pointer = next(iter(made[pointer].operands)).name
        return pointer in self.private or (pointer in made and made[pointer].opcode == "alloca")


def _used(i: Any) -> Iterator[str]:
    return (operand.name for operand in i.operands if operand.name)


def _last(i: Any) -> str:
    """The name of the last operand: the callee of a call, the address of a load or store."""
    return list(i.operands)[-1].name
