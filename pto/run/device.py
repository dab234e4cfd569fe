"""The device: owns global memory, gives blocks to cores, and runs their agents until all are done.

Agents of a core go on in a fixed order, each until it has to wait, so a run is deterministic; when
nobody can go on, that is a deadlock with an explanation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, Note, PtoError, fail
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.ir.graph import Module, Operation
from pto.isa import types as t
from pto.isa.attributes import Enum
from pto.plan.memory import plan_memory
from pto.run.code import Code, Wait, Waits
from pto.run.compile import Compiler
from pto.run.core import Cluster, Core
from pto.target.facts import Profile
from pto.verify.functions import name_of

_BASE = 1 << 32  # where the first array lies: no valid address is small by accident
_PAGE = 1 << 12


class Device:
    """Global memory and the cores of one chip."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._next = _BASE
        self._arrays: list[tuple[int, Memory]] = []

    def attach(self, array: np.ndarray[Any, Any]) -> Memory:
        """Make a host array global memory; nothing is copied."""
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise fail("PTO-M113", "an argument array must be contiguous and writeable")
        memory = Memory.over(Space.GM, array.reshape(-1).view(np.uint8))
        self._arrays.append((self._next, memory))
        self._next += -(-max(memory.size, 1) // _PAGE) * _PAGE + _PAGE
        return memory

    def address(self, pointer: Pointer) -> int:
        """The number of a global address, as ptr-to-integer casts give it."""
        for base, memory in self._arrays:
            if memory is pointer.memory:
                return base + pointer.address
        raise fail("PTO-M114", "this pointer is not into global memory")

    def pointer(self, address: int, elem: Any) -> Pointer:
        """The global memory at a number."""
        for base, memory in self._arrays:
            if base <= address <= base + memory.size:
                return Pointer(memory, address - base, elem)
        raise fail("PTO-M114", f"{address:#x} is no global address of this launch")

    def run(
        self, module: Module, kernels: Sequence[Operation], args: list[Any], blocks: int
    ) -> list[str]:
        """Every block, one after the other; returns what they printed."""
        printed: list[str] = []
        values = {id(f): self._arguments(f, args) for f in kernels}
        plans = [(f, side, subs) for f in kernels for side, subs in sides(f, module)]
        codes = {side: Compiler(module, self.profile, side) for _, side, _ in plans}
        placement = plan_memory(kernels, self.profile)
        prepared = [(codes[side].code(name_of(f)), side, subs, id(f)) for f, side, subs in plans]
        with np.errstate(all="ignore"):
            for block in range(blocks):
                cluster = Cluster(self, block, blocks)
                agents = [
                    (Core(cluster, self.profile, side, sub, subs, placement), code, values[key])
                    for code, side, subs, key in prepared
                    for sub in range(subs)
                ]
                run_agents(agents)
                printed += [line for core, _, _ in agents for line in core.printed]
        return printed

    def _arguments(self, function: Operation, args: list[Any]) -> list[Any]:
        wanted = function.regions[0].block.args
        if len(wanted) != len(args):
            shown = ", ".join(f"%{a.name}" for a in wanted) or "none"
            raise fail(
                "PTO-U032",
                f"@{name_of(function)} takes {len(wanted)} arguments ({shown}), got {len(args)}",
            )
        return [self._argument(a.name, a.type, v) for a, v in zip(wanted, args, strict=True)]

    def _argument(self, name: str, type: t.Type, value: Any) -> Any:
        if isinstance(type, t.Ptr):
            if not isinstance(value, np.ndarray):
                raise fail("PTO-U033", f"%{name} is a pointer: it needs an array, got {value!r}")
            elem = type.elem.dtype if isinstance(type.elem, t.Scalar) else None
            return Pointer(self._memory_of(value), 0, elem)
        if isinstance(type, t.Scalar):
            if isinstance(value, np.ndarray):
                raise fail("PTO-U033", f"%{name} is a scalar of type {type.name}, got an array")
            return (
                int(value)
                if type.dtype is None or not type.is_float
                else type.dtype.numpy.type(value)
            )
        if isinstance(type, t.MemRef) and isinstance(value, np.ndarray):
            return Pointer(self._memory_of(value), 0, type.elem.dtype)
        raise fail("PTO-U033", f"%{name} has type {type.kind}, which no host value can be")

    def _memory_of(self, array: np.ndarray[Any, Any]) -> Memory:
        raw = array.reshape(-1).view(np.uint8)
        for _, memory in self._arrays:
            if (
                memory.view(0, memory.size).ctypes.data == raw.ctypes.data
                and memory.size == raw.size
            ):
                return memory
        return self.attach(array)


def sides(function: Operation, module: Module) -> list[tuple[str, int]]:
    """Who runs a kernel: a cube, a vector, or all three agents where it has sections of both."""
    for op in (function, *function.ancestors(), module.op):
        kind = op.attrs.get("pto.kernel_kind")
        if isinstance(kind, Enum):
            return [(kind.value, 1)]
    names = {op.name for op in function.walk()}
    has = [s for s in ("cube", "vector") if f"pto.section.{s}" in names]
    if len(has) == 2:
        return [("cube", 1), ("vector", 2)]
    return [(has[0], 1)] if has else [("both", 1)]


def run_agents(agents: Sequence[tuple[Core, Code, list[Any]]]) -> None:
    """Round robin: each agent until it waits; a round without progress is a deadlock."""
    running: list[tuple[Core, Waits]] = []
    for core, code, values in agents:
        if len(agents) == 1 and not code.can_wait:
            code.call(core, values)
        else:
            running.append((core, code.gen(core, values)))
    waiting: dict[int, Wait] = {}
    while running:
        first = (
            not waiting
        )  # everyone ran up to its first wait, and may have sent what others await
        before = sum(core.progress for core, _ in running)
        left: list[tuple[Core, Waits]] = []
        for core, program in running:
            wait = next(program, None)
            if wait is not None:
                waiting[id(core)] = wait
                left.append((core, program))
        moved = sum(core.progress for core, _ in running) != before or len(left) < len(running)
        if left and not moved and not first:
            raise _deadlock([(core, waiting[id(core)]) for core, _ in left])
        running = left


def _deadlock(stuck: Sequence[tuple[Core, Wait]]) -> PtoError:
    first = stuck[0][1].op
    notes = tuple(
        Note(f"{core.name} waits at '{wait.op.name}' op", wait.op.loc) for core, wait in stuck
    )
    return PtoError(
        Diagnostic("PTO-D110", "deadlock: no agent of this core can go on", first.loc, notes=notes)
    )
