"""Undefined data: bytes that were never written and that affect a result.

A read of such bytes is no error in itself: registers are loaded whole, blocks have padding. It is
one if an observable value depends on them. To find out, the program runs again with other bytes in
the locations it read unwritten, and the values that leave the chip are compared: a finding is a
value that really changed, never a guess.

Bytes that a transfer copies unchanged, because it is longer than the computed data, are a warning
unless they are used as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Note, PtoError
from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.row import types as t
from pto.observe.memory.accesses import TimedAccess
from pto.observe.memory.shadow import Footprint, Shadow
from pto.observe.order.clocks import Clocks
from pto.observe.races import counters_text
from pto.observe.replay import told
from pto.run.machine.core import Core
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import Access, WatchedMemory

Buffer = tuple[int, str, int, Space]  # block, side, sub-block, space
Places = npt.NDArray[np.int64]
Run = Callable[[Observer], None]  # run again on new copies of the same arguments
_TRIED = 16  # origins that are tried one by one
_SEED = 20
_BLOCK = 32  # bytes: the unit of transfers


def buffer_of(core: Core, memory: WatchedMemory) -> Buffer:
    return core.block, core.side, core.sub, memory.space


def buffer_text(buffer: Buffer) -> str:
    return buffer[3].value.upper()


@dataclass(slots=True)
class Origin:
    """An operation that read unwritten bytes."""

    op: Operation
    counters: tuple[int, ...]
    buffer: Buffer
    grain: int
    places: list[Places] = field(default_factory=list[Places])
    beside: set[Operation] = field(default_factory=set[Operation])  # writers of its other bytes

    def add(self, places: Places, grain: int) -> None:
        """Add the starts of granules; those of the smallest size are kept."""
        self.places = [_granules(p, self.grain, grain) for p in self.places]
        self.places.append(_granules(places, grain, self.grain))
        self.grain = min(grain, self.grain)

    @property
    def bytes(self) -> Places:
        starts = np.unique(np.concatenate(self.places))
        return (starts[:, None] + np.arange(self.grain)).reshape(-1)

    @property
    def is_loaded_in_part(self) -> bool:
        """True if the rest was loaded and whole blocks were not, so that they are no padding."""
        _, counts = np.unique(self.bytes // _BLOCK, return_counts=True)
        loads = all(op.row.pipe == "MTE2" for op in self.beside)
        return loads and bool((counts == _BLOCK).any())

    def __str__(self) -> str:
        positions = self.bytes
        where = (
            f"{buffer_text(self.buffer)}[{int(positions[0]):#06x}..{int(positions[-1]) + 1:#06x})"
        )
        inside = counters_text(self.op, self.counters, " ({})")
        name = self.op.name.removeprefix("pto.")
        return f"{where} is read by {name}{inside} and never written"


def _granules(starts: Places, size: int, smaller: int) -> Places:
    """The starts of smaller granules in larger ones."""
    return (starts[:, None] + np.arange(0, size, min(size, smaller))).reshape(-1)


class UnwrittenReads:
    """Finds reads of bytes in local buffers that were never written."""

    def __init__(self, clocks: Clocks) -> None:
        self.origins: dict[tuple[int, Buffer], Origin] = {}  # by operation and buffer
        self._threads = clocks.threads
        self._buffers: dict[int, Buffer] = {}  # by memory

    def watch(self, core: Core, memory: WatchedMemory) -> None:
        self._buffers[id(memory)] = buffer_of(core, memory)

    def touch(self, touch: TimedAccess) -> None:
        cells, op = touch.cells, touch.moment.op
        if touch.access.writes or not isinstance(cells, Footprint) or cells.is_full:
            return
        shadow: Shadow = touch.access.memory.shadow
        places = shadow.unwritten(cells, id(op))
        buffer = self._buffers.get(id(shadow.memory))
        if places is not None and buffer is not None:
            fresh = Origin(op, touch.moment.counters, buffer, shadow.grain)
            origin = self.origins.setdefault((id(op), buffer), fresh)
            origin.add(places, shadow.grain)
            origin.beside.update(
                self._threads[thread].moments[time - 1].op for thread, time in shadow.writers(cells)
            )


@dataclass(frozen=True, slots=True)
class _Sink:
    """A value that left the chip, came back, or reached the scalar unit, at one operation."""

    op: Operation
    counters: tuple[int, ...]
    agent: str
    kind: Literal["store", "load", "look"]  # of the scalar unit, in a local buffer
    values: int

    @property
    def told(self) -> tuple[Any, ...]:
        """The key by which two runs are compared."""
        return told(self.op), self.counters, self.values


class _Watcher(Observer):
    """Fills buffers before a run, and keeps the values that reach a sink."""

    def __init__(self, fill: dict[Buffer, Places]) -> None:
        self._fill = fill
        self._random = np.random.default_rng(_SEED)
        self.sinks: dict[str, list[_Sink]] = {}
        self.error: PtoError | None = None
        self._global: list[tuple[Any, Any]] = []  # arrays of the host: current and original content

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        if core is None:
            self._global.append((memory.raw, memory.raw.copy()))
            return
        places = self._fill.get(buffer_of(core, memory))
        if places is not None:
            inside = places[places < memory.size]
            memory.raw[inside] = self._random.integers(1, 256, inside.size, np.uint8)

    def event(self, event: InstructionEvent) -> None:
        written = {_place(access) for access in event.accesses if access.writes}
        for access in event.accesses:
            is_global = access.memory.space is Space.GM
            if is_global and not access.writes and _place(access) in written:
                continue  # an atomic update, which does not use the value as data
            if is_global or (event.pipe == "S" and not access.writes):
                agent = event.core.name
                kind = "look" if not is_global else "store" if access.writes else "load"
                sink = _Sink(event.op, event.counters, agent, kind, hash(_values(access)))
                self.sinks.setdefault(agent, []).append(sink)

    def replaces_data(self, other: _Watcher) -> bool:
        """True if values from the host were replaced by values that differ at the end."""
        pairs = zip(self._global, other._global, strict=False)
        return any((was[now != then] != 0).any() for (now, was), (then, _) in pairs)


def _place(access: Access) -> tuple[Any, ...]:
    places = None if access.places is None else access.places.tobytes()
    return id(access.memory), access.start, access.nbytes, places


def _values(access: Access) -> bytes:
    if access.array is not None:
        return access.array.tobytes()
    return access.memory.raw[access.bytes()].tobytes()


def findings(origins: Sequence[Origin], run: Run) -> list[Diagnostic]:
    """Findings for unwritten bytes that change what leaves the chip."""
    if not origins:
        return []
    plain = _watched({}, run)
    filled = _watched(_fills(origins), run)
    if _difference(plain, filled) is None:
        return []
    out: list[Diagnostic] = []
    for origin in origins[:_TRIED]:
        other = _watched(_fills([origin]), run)
        difference = _difference(plain, other)
        if difference is not None:
            out.append(_diagnostic(difference, (origin,), plain, other))
    if out:
        return out
    together = _difference(plain, filled)
    return [] if together is None else [_diagnostic(together, origins[:_TRIED], plain, filled)]


def _fills(origins: Sequence[Origin]) -> dict[Buffer, Places]:
    out: dict[Buffer, list[Places]] = {}
    for origin in origins:
        out.setdefault(origin.buffer, []).append(origin.bytes)
    return {buffer: np.unique(np.concatenate(parts)) for buffer, parts in out.items()}


def _watched(fill: dict[Buffer, Places], run: Run) -> _Watcher:
    watcher = _Watcher(fill)
    try:
        run(watcher)
    except PtoError as error:
        watcher.error = error
    return watcher


def _difference(plain: _Watcher, other: _Watcher) -> _Sink | PtoError | None:
    """The first difference of any agent, or an error that only one run has."""
    first = next((sink for sink in _differences(plain, other) if sink.kind != "load"), None)
    return first or (other.error if plain.error is None else None)


def _differences(plain: _Watcher, other: _Watcher) -> Iterator[_Sink]:
    for agent, sinks in plain.sinks.items():
        for a, b in zip(sinks, other.sinks.get(agent, []), strict=False):
            if a.told != b.told:
                yield a


def _harm(consumer: _Sink, origins: Sequence[Origin], plain: _Watcher, other: _Watcher) -> str:
    """The effect of undefined bytes that a transfer has copied; empty if none is known."""
    reader = next((sink for sink in _differences(plain, other) if sink.kind == "load"), None)
    if reader is not None:
        line = f", line {reader.op.loc.line}" if reader.op.loc else ""
        return f"{reader.op.name.removeprefix('pto.')}{line} reads them there"
    if not any(origin.beside for origin in origins):
        return "nothing of what it copies was ever written"
    is_tile = any(isinstance(v.type, t.TileBuf) for v in consumer.op.operands)
    if is_tile and any(origin.is_loaded_in_part for origin in origins):
        return "they are elements of a tile that was loaded in part"
    return ""


def _diagnostic(
    sink: _Sink | PtoError, origins: Sequence[Origin], plain: _Watcher, other: _Watcher
) -> Diagnostic:
    notes = tuple(Note(f"origin: {origin}", origin.op.loc) for origin in origins)
    if isinstance(sink, PtoError):
        first: Any = sink.diagnostics[0]
        message = f"undefined data decides where memory is accessed: {first.message}"
        return Diagnostic("PTO-V212", message, first.loc, notes=notes)
    agent = f" on {sink.agent}{counters_text(sink.op, sink.counters)}"
    name = sink.op.name.removeprefix("pto.")
    if sink.kind == "store" and all(told(origin.op) == told(sink.op) for origin in origins):
        message = f"{name}{agent} copies bytes to global memory that were never written"
        harm = _harm(sink, origins, plain, other)
        if not harm:
            if plain.replaces_data(other):
                message += ", over values that the host had put there"
            return Diagnostic("PTO-V214", message, sink.op.loc, "warning", notes=notes)
        return Diagnostic("PTO-V214", f"{message}: {harm}", sink.op.loc, notes=notes)
    if sink.kind == "store":
        message = f"undefined data is stored to global memory by {name}{agent}"
        return Diagnostic("PTO-V210", message, sink.op.loc, notes=notes)
    message = f"undefined data is read by the scalar unit in {name}{agent}"
    return Diagnostic("PTO-V213", message, sink.op.loc, notes=notes)
