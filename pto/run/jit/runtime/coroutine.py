"""A compiled function that waits for other agents: a coroutine that suspends at each wait.

If an argument has no representation in compiled code, the reference engine runs instead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pto.isa.meaning.kinds import Blocked
from pto.run.jit.emit.scheduler import HANDLES
from pto.run.jit.emit.unit import Unit
from pto.run.jit.runtime import clock
from pto.run.jit.runtime.context import BROKEN, DONE, RUNS, Context, Word, context_of
from pto.run.jit.runtime.region import NO_FORM, CompiledRegion
from pto.run.machine.core import Cluster, Core
from pto.run.reference.code import FunctionCode, Wait, Waits

_FRAME: Final = 1 << 14  # bytes that suffice for most coroutines


class _AlignedBuffer:
    """Aligned scratch memory for compiled code."""

    def __init__(self, size: int) -> None:
        self.size = size
        array = np.empty(size + 64, np.uint8)
        begin = -array.ctypes.data % 64
        self.data, self.address = array[begin:].data, array.ctypes.data + begin


class CoroutineGroup:
    """The coroutines of one core: running one runs them all, and possibly the next blocks too."""

    def __init__(self, cluster: Cluster) -> None:
        self.members: list[ActiveCoroutine] = []
        self.has_gone_on = False
        self._cluster = cluster
        self._table = np.zeros((0, 0), np.uint64)
        self._resets = np.zeros((0, 3), np.uint64)

    def go_on(self, blocks: Any) -> None:
        """Run until one fails, all are done, or all wait."""
        members, cluster = self.members, self._cluster
        self.has_gone_on = True
        if any(member.status == BROKEN for member in members):
            return
        if len(self._table.T) != len(members):
            self._table = np.array([m.words for m in members], np.uint64).T.copy()
        first, ahead = cluster.block, cluster.ahead if self._is_clean() else None
        if ahead is not None and not len(self._resets):
            resets = [stretch for member in members for stretch in member.context.block_resets()]
            self._resets = np.array(resets, np.uint64)
        state = clock.enter()
        try:
            for member in members:
                member.context.set_thread(state)
            members[0].context.on_progress = ahead
            tables = (
                self._table.ctypes.data,
                len(members),
                self._resets.ctypes.data,
                len(self._resets),
            )
            now = blocks(*tables, first, first + 1 if ahead is None else cluster.end)
        finally:
            clock.leave(state)
            members[0].context.on_progress = None
        for member, handle in zip(members, self._table[HANDLES], strict=True):
            member.handle = int(handle)
        if ahead is not None:
            ahead(now)

    def _is_clean(self) -> bool:
        """True if compiled code does everything in this block."""
        whole = len(self.members) == len(self._cluster.agents)
        return whole and not any(m.context.words[Word.DIRTY] for m in self.members)


@dataclass(slots=True)
class ActiveCoroutine:
    """A started coroutine and its memory."""

    context: Context
    handle: int
    begin: Any
    buffers: tuple[_AlignedBuffer, ...]

    @property
    def words(self) -> tuple[int, ...]:
        """Its fields for compiled code: `emit/scheduler.py`."""
        frame, memory = self.buffers
        begin = ctypes.cast(self.begin, ctypes.c_void_p).value or 0
        return self.handle, self.context.pointer, begin, frame.address, memory.address, memory.size

    @property
    def status(self) -> int:
        return int(self.context.words[Word.STATUS])


class _Unexplained(Blocked):
    """A wait of compiled code; Python computes its reason on demand."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], Blocked]) -> None:
        self._ask = ask

    @property
    def code(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._ask().code

    def __str__(self) -> str:
        return str(self._ask())


@dataclass(slots=True)
class Coroutine(FunctionCode):
    """The code of one function as one compiled region; `plain` makes its reference code."""

    unit: Unit = field(kw_only=True)
    region: CompiledRegion = field(kw_only=True)
    plain: Callable[[], FunctionCode] = field(kw_only=True)
    _functions: tuple[Any, Any, Any] | None = None

    def gen(self, core: Core, values: list[Any]) -> Waits:
        context = context_of(core, self.unit.needs)
        if context.host_calls is not self.region.host_calls:
            context.host_calls = self.region.host_calls
            context.buffers = _AlignedBuffer(self.region.nbytes), _AlignedBuffer(_FRAME)
        frame = context.buffers[0].data
        if not self.region.fill(frame, self.frame(values), context):
            core.cluster.fallbacks[self.region.op.name, NO_FORM] += 1
            return (yield from self.plain().gen(core, values))
        context.frame, context.dirty = frame, False
        me, crowd = self._start(context), self._crowd(core)
        crowd.members.append(me)
        if me.status == DONE and core.cluster.ahead is not None:
            yield Wait(self.region.op, Blocked("the other agents of its core"))
            if not crowd.has_gone_on:
                crowd.go_on(self._linked()[2])
        while True:
            core.progress = int(context.words[Word.PASSED])
            if me.status == DONE:
                return []
            if me.status == BROKEN:
                raise context.failed()
            yield self._wait(me)
            if me.status == RUNS:  # else another coroutine has run it
                crowd.go_on(self._linked()[2])

    def _crowd(self, core: Core) -> CoroutineGroup:
        if core.cluster.native is None:
            core.cluster.native = CoroutineGroup(core.cluster)
        return core.cluster.native

    def _start(self, context: Context) -> ActiveCoroutine:
        """Start a coroutine; it runs to its first wait, or ends."""
        begin = self._linked()[0]
        while True:
            frame, memory = context.buffers
            context.words[Word.STATUS] = RUNS
            pointers = context.pointer, frame.address, memory.address
            handle = context.call(begin, *pointers, memory.size)
            if handle:
                return ActiveCoroutine(context, handle, begin, context.buffers)
            context.buffers = frame, _AlignedBuffer(int(context.words[Word.FRAME_BYTES]))

    def _wait(self, me: ActiveCoroutine) -> Wait:
        """The wait at which a coroutine is suspended."""
        context, site = me.context, int(me.context.words[Word.AT])
        if site:
            return Wait(self.unit.sites[site - 1], _Unexplained(lambda: self._reason(me)))
        if context.wait is None:
            raise RuntimeError("compiled code waits for nothing")
        return context.wait

    def _reason(self, me: ActiveCoroutine) -> Blocked:
        """Try the operation in Python, which blocks, and return its reason."""
        context, resume = me.context, self._linked()[1]
        context.words[Word.EXPLAINS] = 1
        try:
            context.call(resume, me.handle, 0)
        finally:
            context.words[Word.EXPLAINS] = 0
        found = context.wait
        return Blocked("others") if found is None else found.reason

    def _linked(self) -> tuple[Any, Any, Any]:
        if self._functions is None:
            self._functions = self.unit.coroutine(self.region.name)
        return self._functions
