"""The origin of an element: the instruction that stored it to global memory, and the one that
computed it.

The program runs twice more on copies of its arguments, watched. The first run finds the last write
to the element. The second stops there and finds the bytes of a local buffer that the element came
from: it changes bytes there, repeats the one instruction, and compares the element. This works for
any instruction, with any change of layout and type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import PtoError
from pto.core.memory import Bytes, Space
from pto.core.tile import Tile
from pto.ir.graph import Module, Operation
from pto.isa.row.types import TileBuf
from pto.observe.races import counters_text
from pto.observe.replay import TrialRun
from pto.run.launch.arrays import copied
from pto.run.launch.host import launch
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.events import Hook, InstructionEvent, Observer
from pto.run.watch.memory import Access, WatchedMemory

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WriteSite:
    """An instruction of a run: the operation, its core, and the counters of its loops."""

    op: Operation
    core: str
    counters: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.op.name.removeprefix("pto.")

    def __str__(self) -> str:
        return f"{self.name} on {self.core}{counters_text(self.op, self.counters, ' ({})')}"


@dataclass(frozen=True, slots=True)
class ValueSource:
    """The source of an element in a local buffer; a tile, if the store names one."""

    space: Space
    address: int
    tile: str | None = None  # its name in the program
    type: str | None = None
    row: int = 0
    col: int = 0

    @property
    def element(self) -> str:
        """`t[3, 17]`, or the byte of the buffer."""
        if self.tile is not None:
            return f"{self.tile}[{self.row}, {self.col}]"
        return f"{self.space.value.upper()} {self.address:#06x}"

    def __str__(self) -> str:
        if self.tile is None:
            return self.element
        return f"{self.element} ({self.type}, at {self.space.value.upper()} {self.address:#06x})"


@dataclass(frozen=True, slots=True)
class Blame:
    """How an element got its value; None if the run does not show it."""

    block: int
    store: WriteSite
    source: ValueSource | None = None
    maker: WriteSite | None = None  # last wrote the source
    left: bytes = b""  # the content of the element after the watched run


def blame(module: Module, run: TrialRun, argument: int, offset: int, width: int) -> Blame | None:
    """The writer of the `width` bytes at byte `offset` of an argument; None if there is none."""
    first = _Watch(argument, offset, width)
    after = _repeated(module, run, first)[argument].reshape(-1).view(np.uint8)
    if first.last is None:
        return None
    left = after[offset : offset + width].tobytes()
    second = _SourceSearch(argument, offset, width, first.hits, first.block)
    _repeated(module, run, second)
    return Blame(first.block, first.last, second.source, second.maker, left)


def _repeated(module: Module, run: TrialRun, watch: _Watch) -> list[Any]:
    """Run on copies of the arguments; returns them after the run."""
    copies = copied(run.args)
    watch.base = copies[watch.argument].ctypes.data
    how: dict[str, Any] = {"check": False, "engine": "reference", **run.options}
    launch(module, args=copies, stepper=watch.tap, **how)
    return copies


@dataclass(slots=True)
class _Doing:
    """The current instruction, so that it can be repeated."""

    step: Step
    core: Core
    regs: Regs
    tiles: Sequence[tuple[str, int]]  # names and slots of its tile operands


class _Tap(Hook):
    """Keeps the current instruction."""

    doing: _Doing | None = None

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        watched = super().step(compiler, op, step)
        if watched is step:
            return step
        tiles = [(v.name, compiler.slot(v)) for v in op.operands if isinstance(v.type, TileBuf)]

        def noted(core: Core, regs: Regs) -> Any:
            self.doing = _Doing(step, core, regs, tiles)
            return watched(core, regs)

        return noted


class _Watch(Observer):
    """Counts the writes to an element and keeps the last."""

    def __init__(self, argument: int, offset: int, width: int) -> None:
        self.argument = argument
        self.base = 0  # address of the argument in this process
        self.hits = 0
        self.last: WriteSite | None = None
        self.block = 0
        self.tap = _Tap(self)
        self._place, self._width = offset, width
        self._memory: WatchedMemory | None = None

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        if core is None and memory.base == self.base:
            self._memory = memory

    def event(self, event: InstructionEvent) -> None:
        if any(self._hits(access) for access in event.accesses):
            self.hits += 1
            self.last = WriteSite(event.op, event.core.name, event.counters)
            self.block = event.core.block

    def _hits(self, access: Access) -> bool:
        if not access.writes or access.memory is not self._memory:
            return False
        starts = access.addresses()
        return bool(
            ((starts < self._place + self._width) & (starts + access.width > self._place)).any()
        )


class _SourceSearch(_Watch):
    """Keeps the writer of every byte of a block's buffers; at hit `wanted` finds the source."""

    def __init__(self, argument: int, offset: int, width: int, wanted: int, block: int) -> None:
        super().__init__(argument, offset, width)
        self.source: ValueSource | None = None
        self.maker: WriteSite | None = None
        self._wanted, self._block = wanted, block
        self._owners: dict[int, npt.NDArray[np.int64]] = {}
        self._writers: list[WriteSite] = []

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        super().memory(memory, core)
        if core is not None and core.block == self._block:
            self._owners[id(memory)] = np.full(memory.size, -1, np.int64)

    def event(self, event: InstructionEvent) -> None:
        before = self.hits
        super().event(event)
        if before < self.hits == self._wanted and event.effect is None:
            self._look(event)
        for access in event.accesses:
            owners = self._owners.get(id(access.memory)) if access.writes else None
            if owners is not None:
                owners[access.where()] = len(self._writers)
        self._writers.append(WriteSite(event.op, event.core.name, event.counters))

    def _look(self, event: InstructionEvent) -> None:
        doing, memory = self.tap.doing, self._memory
        reads = [a for a in event.accesses if not a.writes and id(a.memory) in self._owners]
        if doing is None or memory is None or not reads:
            return
        target = slice(self._place, self._place + self._width)
        probe = _Probe(doing, event.accesses, reads, memory.raw[target])
        source = probe.search()
        self.tap.recorder.take()  # drop the accesses of the probe
        if source is None:
            return
        where, address = source
        self.source = _source(doing, where, address)
        owner = int(self._owners[id(where)][address])
        self.maker = self._writers[owner] if owner >= 0 else None


class _Probe:
    """Repeats one instruction on changed sources; leaves everything unchanged."""

    _CHANGES = (0xFF, 0x41, 0x80)  # one of them survives rounding, saturation and relu

    def __init__(
        self, doing: _Doing, touched: list[Access], reads: list[Access], target: Bytes
    ) -> None:
        self._doing = doing
        self._target = target
        self._kept = [
            (a.memory.raw, b, a.memory.raw[b]) for a in touched for b in [np.unique(a.bytes())]
        ]
        self._parts = [(a.memory, np.unique(a.bytes())) for a in reads]
        self._count = sum(places.size for _, places in self._parts)

    def search(self) -> tuple[WatchedMemory, int] | None:
        """The first byte on which the target depends."""
        plain = self._outcome(0, 0, 0)
        change = next((c for c in self._CHANGES if self._outcome(0, self._count, c) != plain), None)
        if change is None:
            return None
        low, high = 0, self._count
        while high - low > 1:
            middle = (low + high) // 2
            if self._outcome(low, middle, change) != plain:
                high = middle
            else:
                low = middle
        return self._place(low) if self._outcome(low, high, change) != plain else None

    def _outcome(self, low: int, high: int, change: int) -> bytes | None:
        """The target after bytes low..high of the sources were changed; None for an error."""
        at = 0
        for memory, places in self._parts:
            memory.raw[places[max(low - at, 0) : max(high - at, 0)]] ^= np.uint8(change)
            at += places.size
        try:
            self._doing.step(self._doing.core, self._doing.regs)
            outcome = self._target.tobytes()
        except PtoError:
            outcome = None
        for raw, index, saved in self._kept:
            raw[index] = saved
        return outcome

    def _place(self, number: int) -> tuple[WatchedMemory, int]:
        for memory, places in self._parts:
            if number < places.size:
                return memory, int(places[number])
            number -= places.size
        raise RuntimeError("a place beyond all places")


def _source(doing: _Doing, memory: WatchedMemory, address: int) -> ValueSource:
    for name, slot in doing.tiles:
        tile = doing.regs[slot]
        if isinstance(tile, Tile) and tile.memory is memory:
            size = tile.type.itemsize
            items = (address - tile.address) // size
            positions = np.argwhere(tile.offsets() == items)
            if positions.size:
                row, col = (int(n) for n in positions[0])
                start = tile.address + items * size
                return ValueSource(memory.space, start, name, str(tile.type), row, col)
    return ValueSource(memory.space, address)
