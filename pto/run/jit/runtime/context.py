"""The run-time state of one agent for compiled code: memories, objects, flags, calls of Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from pto.core.errors import PtoError
from pto.core.memory import Memory, Space, address_of
from pto.isa.meaning.cube.accumulator import Epilogue
from pto.isa.meaning.memory.registers import QUEUE_IDS
from pto.isa.meaning.order.ring import ENTRY, TO_VECTOR, Pipe, QueueRing, register_of
from pto.run.jit.runtime import clock
from pto.run.jit.runtime.state import EVENT_IDS, REGISTER_BYTES, Flags, SharedRegisters, Signals
from pto.run.machine.core import Arrivals, Core
from pto.run.reference.code import Wait

MEMORIES: Final = 256  # maximum for one agent


class Word(IntEnum):
    """The state of an agent that compiled code reads: words of 8 bytes, in this order. A pointer is
    set if the code of a unit needs it (`Needs.words`), or always."""

    CALL = "the function that calls Python"
    TABLE = "the address and size of each memory"
    FLAGS = "counts of flags between pipes, if needed"
    SCRATCH_BUFFER = "scratch memory of the thread"
    LOG = "logged accesses to global memory, if the unit logs"
    REGISTERS = "registers, if needed"
    BLOCK = "the number of the block"
    BLOCKS = "the number of blocks"
    SUB = "the number of the sub-block"
    SUBS = "the number of sub-blocks"
    POLL_FLAG = "a word that the timer of the thread sets"
    DIRTY = "1 if Python changed state in this block"
    FIRST = "registers at the start of a block, if needed"
    STATUS = "of a coroutine: RUNS, BROKEN or DONE"
    PASSED = "of a coroutine: ended waits"
    FRAME_BYTES = "of a coroutine: bytes of its frame"
    QUEUES = "rings by queue and direction, if needed"
    AT = "of a coroutine: its wait site; 0: in Python"
    EXPLAINS = "of a coroutine: 1 to get the reason of a wait"
    ITEMS = "scratch memory of work items"
    KEPT = "counts of the slots of work items, if needed"
    KEPT_VALUES = "values of the slots of work items, if needed"
    SIGNALS = "counts of signals between the agents of a core, if needed"
    OWNED = "for each memory 1 if the own rank owns it"
    RECORDS_SUMS = "1 if additions must be recorded"
    ARRIVALS = "arrivals at the barrier of all cores by kind, if needed"

    about: str

    def __new__(cls, about: str) -> Word:
        word = int.__new__(cls, len(cls.__members__))
        word._value_ = len(cls.__members__)
        word.about = about
        return word

    @property
    def offset(self) -> int:
        """Bytes from the start of the context."""
        return 8 * self


# Members that each launch sets, as globals: looking one up in the class takes ten times as long.
_BLOCK, _BLOCKS = Word.BLOCK, Word.BLOCKS
_SUB, _SUBS = Word.SUB, Word.SUBS
_SCRATCH_BUFFER, _POLL_FLAG = Word.SCRATCH_BUFFER, Word.POLL_FLAG
_RECORDS_SUMS = Word.RECORDS_SUMS
# of a ring: state, slots, bytes of a slot, start of the slots in the consumer's buffer and their
# number, location (LOCAL, GLOBAL), start and size in global memory
FIRST_SLOT, QUEUE_WORDS = 6, 8
LOCAL = 1
GLOBAL = 2
PLACE = 3  # 0: a queue that only Python handles; higher bits: epilogue
FINE, FAILED, WAITS = range(3)  # results of a call of Python
RUNS, BROKEN, DONE = range(3)  # values of STATUS
POLL: Final = -1  # poll: signals, and the limit of the launch
_LOG_CAPACITY: Final = 1 << 11  # logged accesses to global memory, for one agent
OVERFLOW: Final = 1 << 60  # more accesses than any log holds
LOG_HEAD: Final = 2  # a log starts with the number of accesses and its capacity
LOG_ENTRY: Final = 5  # words: memory (highest bit: write), address, rows, bytes, pitch
CLEAR: Final = -2  # reset everything to its state at the start of a block
_NUMBER: Final = (1 << 63) - 1
Words = npt.NDArray[np.int64]
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)

Action = Callable[["Context", memoryview], "Wait | None"]


class Needs:
    """The state that the code of a unit uses; a context allocates nothing else."""

    def __init__(self, logs: bool = False) -> None:
        self.logs = logs  # every block logs its accesses to global memory
        self.words: set[int] = set()
        self.spaces: set[int] = set()
        self.flags: set[int] = set()  # offsets of the flags of two pipes
        self.spans: set[tuple[int, int, int]] = set()  # buffer, start and end of a written range
        self.items = 0  # bytes of scratch memory for the values of work items
        self.read_unwritten: set[int] = set()  # buffers that may be read where nothing was written
        self.used: set[tuple[str, int]] = set()  # buffers that the code of a side accesses
        self.popped = 0  # bytes of the largest tile that is popped from a queue

    @property
    def cleared(self) -> list[tuple[int, int, int]]:
        """The ranges that must be zero when a block begins, disjoint, by buffer."""
        found: list[tuple[int, int, int]] = []
        used = self.read_unwritten & self.spaces
        for space, first, end in sorted(span for span in self.spans if span[0] in used):
            if found and found[-1][0] == space and first <= found[-1][2]:
                found[-1] = space, found[-1][1], max(end, found[-1][2])
            else:
                found.append((space, first, end))
        return found


_SPACES: Final = tuple(Space)
_UB, _L1 = _SPACES.index(Space.UB), _SPACES.index(Space.L1)
# Buffers of the other agents of the core have the numbers after the own ones: space, sub-block.
PEER_BUFFERS: Final = {
    peer: len(_SPACES) + n for n, peer in enumerate(((Space.UB, 0), (Space.UB, 1), (Space.L1, 0)))
}
SLOPES: Final = len(_SPACES) + len(PEER_BUFFERS)  # the second segment of the fixpipe buffer
_FIXED: Final = SLOPES + 1


class Context:
    """The state of one agent. Memory n is a local buffer, by its space, or an array after those."""

    def __init__(self, core: Core, needs: Needs) -> None:
        self.core = core
        self.needs = needs
        self._memories: list[Memory | None] = [None] * _FIXED
        self.objects: list[Any] = []
        self.error: BaseException | None = None
        self.wait: Wait | None = None  # the current wait of a coroutine
        self.on_progress: Callable[[int], None] | None = None  # called with the current block
        # makes the device, memories and core of a call that has only passed addresses so far
        self.prepare: Callable[[], None] | None = None
        self.host_calls: list[Action] = []  # host fallbacks of the running region
        self.frame: memoryview = memoryview(b"")
        self.dirty = True  # Python may have written to buffers in this block
        self._pipes: dict[int, Pipe] = {}  # open queues
        self.global_rings: list[QueueRing] = []  # rings in global memory
        self.buffers: tuple[Any, ...] = ()  # memory of the coroutine frame
        self._numbers: dict[int, int] = {}
        self.table = np.zeros((MEMORIES, 2), np.uint64)
        self.words = np.zeros(len(Word), np.uint64)
        self.rows, self._cells = self.table.data, self.words.data  # faster to write
        self._callback = _Callback(self._call_python)
        self.words[Word.CALL] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self.words[Word.TABLE] = self.table.ctypes.data
        self.words[Word.BLOCK : Word.SUBS + 1] = core.block, core.blocks, core.sub, core.subs
        if Word.FLAGS in needs.words:
            core.flags = flags = Flags(core.flags)
            self.words[Word.FLAGS] = flags.counts.ctypes.data
        if Word.REGISTERS in needs.words:
            core.registers = registers_ = SharedRegisters(core.registers)
            self.words[Word.REGISTERS] = registers_.array.ctypes.data
            self._first = registers_.array.copy()
            self.words[Word.FIRST] = self._first.ctypes.data
        if Word.QUEUES in needs.words:
            self._queues = np.zeros((QUEUE_IDS, 2, QUEUE_WORDS), np.uint64)
            self.words[Word.QUEUES] = self._queues.ctypes.data
        self.items = np.empty(needs.items, np.uint8)
        self.words[Word.ITEMS] = self.items.ctypes.data
        if Word.KEPT in needs.words:
            self.words[Word.KEPT] = core.kept.counts.ctypes.data
            self.words[Word.KEPT_VALUES] = core.kept.values.ctypes.data
        self._owned = np.zeros(MEMORIES, np.int64)
        self.words[Word.OWNED] = self._owned.ctypes.data
        if needs.logs:
            self.log(_LOG_CAPACITY)
        self._share_counters()
        self.pointer = self.words.ctypes.data
        for number in needs.spaces:
            self.memory(number)

    def _set(self, number: int, memory: Memory) -> Memory:
        self._memories[number] = memory
        data = memory.data
        self.rows[number, 0], self.rows[number, 1] = address_of(data), data.size
        self._numbers[id(memory)] = number
        if Word.OWNED in self.needs.words:
            device = self.core.device
            self._owned[number] = device.ranks == 1 or device.owner(memory) == device.rank
        return memory

    def memory(self, number: int) -> Memory:
        """The memory of a number. A buffer that the profile lacks is empty: every access fails."""
        found = self._memories[number]
        if found is not None:
            return found
        if number == SLOPES:
            has = self.core.profile.buffers.get(Space.FIXPIPE.value, 0)
            return self._set(number, self.core.slopes if has else Memory(Space.FIXPIPE, 0))
        if number >= len(_SPACES):
            return self._set(number, self._peer(number - len(_SPACES)))
        space = _SPACES[number]
        has = self.core.profile.buffers.get(space.value, 0)
        return self._set(number, self.core.memory(space) if has else Memory(space, 0))

    def _peer(self, number: int) -> Memory:
        """A buffer of another agent; empty if there is no such agent."""
        space, sub = list(PEER_BUFFERS)[number]
        side = "vector" if space is Space.UB else "cube"
        found = [a for a in self.core.cluster.agents if (a.side, a.sub) == (side, sub)]
        return found[0].memory(space) if found else Memory(space, 0)

    def number(self, memory: Memory, *, own: bool = False) -> int | None:
        """The number of a memory, assigned on first use; None if there are too many."""
        if memory.space is not Space.GM and not own:
            number = _SPACES.index(memory.space)
            return number if self.memory(number) is memory else None
        found = self._numbers.get(id(memory))
        if found is None:
            found = len(self._memories)
            if found == MEMORIES:
                return None
            self._memories.append(None)
            self._set(found, memory)
        return found

    def adopt(self, number: int, memory: Memory) -> None:
        """Set the memory that compiled code already has under this number."""
        self._memories += [None] * (number + 1 - len(self._memories))
        self._set(number, memory)

    def begin(self) -> clock.ThreadState:
        """Prepare to run compiled code on the current thread."""
        state = clock.enter()
        self.set_thread(state)
        return state

    def call(self, function: Any, *given: Any) -> Any:
        """Call compiled code on the current thread."""
        state = self.begin()
        try:
            return function(*given)
        finally:
            clock.leave(state)

    def set_thread(self, state: clock.ThreadState) -> None:
        """Pass the scratch memory and poll flag of a thread to compiled code."""
        self._cells[_SCRATCH_BUFFER] = state.scratch_address
        self._cells[_POLL_FLAG] = state.word_address

    def _call_python(self, words: int, number: int) -> int:
        """Run one operation in Python for compiled code. No exception may leave it."""
        try:
            self.core.at_block(int(self.words[Word.BLOCK]))
            if number == POLL:
                self._poll()
            elif number == CLEAR:
                self._clear()
            else:
                self.words[Word.DIRTY] = 1
                self._update_queue_slots()
                action = self.host_calls[number]
                self.dirty |= getattr(action, "writes", True)
                self.wait = action(self, self.frame) if self.prepare is None else self._make(action)
                self.words[Word.AT] = 0
                return FINE if self.wait is None else WAITS
        except BaseException as error:
            self.error = error
            return FAILED
        return FINE

    def _make(self, action: Action) -> Wait | None:
        """Run a host fallback, after making the device and core that it needs."""
        with np.errstate(all="ignore"):
            if self.prepare is not None:
                self.prepare()
            return action(self, self.frame)

    def _update_queue_slots(self) -> None:
        """Take over the slots of queues that compiled code has opened in this block."""
        for ring in self.global_rings:
            first, entry = int(ring.state[ENTRY]), ring.entry
            if first and entry is not None:
                ring.entry = replace(entry, address=first - address_of(entry.memory.data))

    def _poll(self) -> None:
        """Handle signals and the limit, between two iterations of a loop or two blocks."""
        clock.clear_poll_flag()
        limit = self.core.cluster.limit
        if limit is not None:
            limit.look(self.core.name)
        if self.on_progress is not None:
            self.on_progress(int(self.words[Word.BLOCK]))

    def _clear(self) -> None:
        """Reset everything to its state at the start of a block."""
        self.words[Word.DIRTY] = 0
        self.core.clear()
        for memory in self._memories[: len(_SPACES)]:
            if memory is not None:
                memory.data[:] = 0
        self.objects.clear()

    def _share_counters(self) -> None:
        """Share the counters of the current core, which has one more agent, and of its device."""
        cluster = self.core.cluster
        self.words[_RECORDS_SUMS] = self.core.device.records_sums
        if Word.ARRIVALS in self.needs.words and isinstance(cluster.arrivals, Arrivals):
            self.words[Word.ARRIVALS] = cluster.arrivals.come.ctypes.data
        flags = cluster.cross_flags
        if Word.SIGNALS in self.needs.words and type(flags) is not Signals:
            flags = cluster.cross_flags = Signals(flags)
        if type(flags) is Signals:  # `isinstance` is slow with abstract classes
            flags.count_agents(cluster.vectors, int(cluster.has_cube))
            self.words[Word.SIGNALS] = flags.words.ctypes.data

    def reuse_for(self, core: Core) -> None:
        """Use this context for another launch."""
        self._share_counters()
        if self.needs.logs:
            self._log[0] = 0
        cells = self._cells
        cells[_BLOCK], cells[_BLOCKS] = core.block, core.blocks
        cells[_SUB], cells[_SUBS] = core.sub, core.subs

    def clear(self) -> None:
        """Clear the buffer ranges that this agent, or agents connected by queues, have written."""
        for stretch in self._left():
            stretch[:] = 0
        for number, pipe in self._pipes.items():
            self.core.registers[register_of(number)] = pipe

    def _left(self) -> Iterator[npt.NDArray[np.uint8]]:
        slots = map(self._slots, self.core.cluster.queues.values())
        for number, first, end in (*self._cleared, *slots):
            memory = self._memories[number]
            known = number >= len(_SPACES) or (self.core.side, number) in self.needs.used
            if memory is not None and known:
                yield memory.data[first:end]

    def block_resets(self) -> Iterator[tuple[int, int, int]]:
        """The memory to reset for each block: address, source of the copy (0: zeros), bytes."""
        cells = self.words
        cluster = self.core.cluster
        words = self.needs.words
        zeros: list[npt.NDArray[Any]] = [*self._left(), *self.core.counts_and_slopes]
        zeros += [ring.state for ring in cluster.queues.values()]
        if isinstance(cluster.cross_flags, Signals):
            zeros.append(cluster.cross_flags.counts)
        yield from ((array.ctypes.data, 0, array.nbytes) for array in zeros)
        if Word.FLAGS in words:
            yield from ((int(cells[Word.FLAGS]) + at, 0, 4 * EVENT_IDS) for at in self.needs.flags)
        if Word.REGISTERS in words:
            yield int(cells[Word.REGISTERS]), int(cells[Word.FIRST]), REGISTER_BYTES

    def _slots(self, ring: QueueRing) -> tuple[int, int, int]:
        """The slots of a queue, as a range of the consumer's buffer."""
        number, first = (_UB if ring.way == TO_VECTOR else _L1), ring.local or 0
        end = first + (ring.slots - 1) * ring.slot_size
        return number, first, end + max(ring.slot_size, self.needs.popped)

    @cached_property
    def _cleared(self) -> list[tuple[int, int, int]]:
        return self.needs.cleared

    def renew(self, dirty: bool) -> None:
        """Reset for another block of the same launch. If not `dirty`, its queues stay open."""
        self.dirty = True
        if dirty:
            self._pipes.clear()
            self.global_rings.clear()
        self.reuse_for(self.core)
        self.words[[Word.DIRTY, Word.STATUS, Word.PASSED, Word.AT]] = 0
        self.objects.clear()
        if dirty and Word.QUEUES in self.needs.words:
            self._queues[:] = 0

    def release_arrays(self) -> None:
        """Drop the arrays, objects and callback of a launch at its end."""
        self.on_progress = None
        del self._memories[_FIXED:]
        self._numbers.clear()
        self.objects.clear()

    def open_queue(self, number: int, stays: bool) -> None:
        """Let compiled code use a queue if its slots have an address; Python handles other queues.
        Compiled code reopens a queue that `stays` in the next block."""
        pipe: Pipe = self.core.registers[register_of(number)]
        self._pipes[number] = pipe
        for way, ring in pipe.rings.items():
            kind = LOCAL if ring.local is not None else 0
            first = 0
            size = 0
            if ring.entry is not None:
                data, at = ring.entry.memory.data, ring.entry.address
                kind = GLOBAL
                first = data.ctypes.data + at
                size = max(data.size - at, 0)
                ring.state[ENTRY : ENTRY + 2] = first, size
                self.global_rings.append(ring)
            state, local = ring.state.ctypes.data, ring.local or 0
            self.dirty |= kind != LOCAL and not (stays and kind)
            kind |= epilogue_bits(ring.epilogue, ring.number) if kind else 0
            words = state, ring.slots, ring.slot_size, local, ring.local_slots, kind, first, size
            self._queues[number, way - 1] = words

    def log(self, capacity: int) -> None:
        """Start a log of this many accesses to global memory."""
        self._log = np.empty(LOG_HEAD + capacity * LOG_ENTRY, np.int64)
        self._log[:LOG_HEAD] = 0, capacity
        self.words[Word.LOG] = self._log.ctypes.data

    def logged_accesses(self) -> Words | None:
        """The logged accesses to global memory, a row each; None if there were too many."""
        count, capacity = map(int, self._log[:LOG_HEAD])
        if count > capacity:
            return None
        return self._log[LOG_HEAD:][: count * LOG_ENTRY].reshape(count, LOG_ENTRY).copy()

    def failed(self) -> BaseException:
        error, self.error = self.error, None
        return error or clock.interrupted() or PtoError()


def epilogue_bits(epilogue: Epilogue | None, number: int) -> int:
    """A hash of the id and epilogue of a queue, above the bits for its location."""
    return 0 if epilogue is None else (1 + crc32(repr((epilogue, number)).encode())) * (PLACE + 1)


def context_of(core: Core, needs: Needs) -> Context:
    """The context of an agent, made once for each unit of code that it runs."""
    found = core.native
    if not isinstance(found, Context) or found.needs is not needs:
        found = core.native = Context(core, needs)
    return found


def by_machine_address(words: Words, context: Context) -> Words:
    """The accesses with machine addresses, since arrays of the host may overlap."""
    words[:, 1] += context.table[words[:, 0] & _NUMBER, 0].view(np.int64)
    return words
