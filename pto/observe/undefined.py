"""Undefined data: bytes nobody has written that reach a result.

A read of such bytes is no mistake in itself: registers are loaded whole, blocks have padding. It is
one when something a person sees depends on them. That is found out by running the program again
with other bytes in the places it read unwritten, and comparing what leaves the chip: a finding is a
value that really changed, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Note, PtoError
from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.observe.races import counters_text
from pto.run.machine.core import Core
from pto.run.watch.events import Event, Observer
from pto.run.watch.memory import Access, WatchedMemory

Buffer = tuple[int, str, int, Space]  # block, side, sub-block, space
Places = npt.NDArray[np.int64]
Run = Callable[[Observer], None]  # once more, on fresh copies of the same arguments
_TRIED = 16  # origins that are tried one by one
_SEED = 20


def buffer_of(core: Core, memory: WatchedMemory) -> Buffer:
    return core.block, core.side, core.sub, memory.space


def buffer_text(buffer: Buffer) -> str:
    return buffer[3].value.upper()


@dataclass(slots=True)
class Origin:
    """An operation that read bytes nobody had written."""

    op: Operation
    counters: tuple[int, ...]
    buffer: Buffer
    grain: int
    places: list[Places] = field(default_factory=list[Places])

    @property
    def bytes(self) -> Places:
        starts = np.unique(np.concatenate(self.places))
        return (starts[:, None] + np.arange(self.grain)).reshape(-1)

    def __str__(self) -> str:
        found = self.bytes
        where = f"{buffer_text(self.buffer)}[{int(found[0]):#06x}..{int(found[-1]) + 1:#06x})"
        inside = counters_text(self.op, self.counters)
        name = self.op.name.removeprefix("pto.")
        return f"{where} is read by {name}{f' ({inside})' if inside else ''} and never written"


class Origins:
    """Reads of unwritten bytes, one entry an operation and buffer."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, Buffer], Origin] = {}

    def add(
        self,
        event_op: Operation,
        counters: tuple[int, ...],
        buffer: Buffer,
        grain: int,
        places: Places,
    ) -> None:
        key = (id(event_op), buffer)
        origin = self.found.get(key)
        if origin is None:
            origin = self.found[key] = Origin(event_op, counters, buffer, grain)
        if grain < origin.grain:
            origin.places = [
                (p[:, None] + np.arange(0, origin.grain, grain)).reshape(-1) for p in origin.places
            ]
            origin.grain = grain
        elif grain > origin.grain:
            places = (places[:, None] + np.arange(0, grain, origin.grain)).reshape(-1)
        origin.places.append(places)


@dataclass(frozen=True, slots=True)
class _Sink:
    """What left the chip, or reached the scalar unit, at one operation."""

    op: Operation
    counters: tuple[int, ...]
    agent: str
    is_store: bool
    values: int


class _Watcher(Observer):
    """Fills buffers before a run, and remembers what reaches a sink."""

    def __init__(self, fill: dict[Buffer, Places]) -> None:
        self._fill = fill
        self._random = np.random.default_rng(_SEED)
        self.sinks: dict[str, list[_Sink]] = {}
        self.error: PtoError | None = None

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        if core is None:
            return
        places = self._fill.get(buffer_of(core, memory))
        if places is not None:
            inside = places[places < memory.size]
            memory.raw[inside] = self._random.integers(1, 256, inside.size, np.uint8)

    def event(self, event: Event) -> None:
        for access in event.accesses:
            is_store = access.writes and access.memory.space is Space.GM
            is_look = (
                not access.writes and event.pipe == "S" and access.memory.space is not Space.GM
            )
            if is_store or is_look:
                agent = event.core.name
                sink = _Sink(event.op, event.counters, agent, is_store, hash(_values(access)))
                self.sinks.setdefault(agent, []).append(sink)


def _values(access: Access) -> bytes:
    if access.array is not None:
        return access.array.tobytes()
    places = np.zeros(0, np.int64) if access.places is None else access.places
    return access.memory.raw[places[:, None] + np.arange(access.width)].tobytes()


def findings(origins: Origins, run: Run) -> list[Diagnostic]:
    """Which unwritten bytes change what leaves the chip, and where it does."""
    known = list(origins.found.values())
    if not known:
        return []
    plain = _watched({}, run)
    whole = _watched(_fills(known), run)
    if _difference(plain, whole) is None:
        return []
    out: list[Diagnostic] = []
    for origin in known[:_TRIED]:
        found = _difference(plain, _watched(_fills([origin]), run))
        if found is not None:
            out.append(_diagnostic(found, (origin,)))
    if out:
        return out
    together = _difference(plain, whole)
    return [_diagnostic(together, known[:_TRIED])] if together is not None else []


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
    """The first thing of any agent that is not the same; an error that only one run has."""
    for agent, sinks in plain.sinks.items():
        for a, b in zip(sinks, other.sinks.get(agent, []), strict=False):
            if (id(a.op), a.counters, a.values) != (id(b.op), b.counters, b.values):
                return a
    return other.error if plain.error is None else None


def _diagnostic(found: _Sink | PtoError, origins: Sequence[Origin]) -> Diagnostic:
    notes = tuple(Note(f"origin: {origin}", origin.op.loc) for origin in origins)
    if isinstance(found, PtoError):
        first: Any = found.diagnostics[0]
        message = f"undefined data decides where memory is accessed: {first.message}"
        return Diagnostic("PTO-V212", message, first.loc, notes=notes)
    where = counters_text(found.op, found.counters)
    place = f" on {found.agent}{f', {where}' if where else ''}"
    name = found.op.name.removeprefix("pto.")
    if found.is_store and all(origin.op is found.op for origin in origins):
        message = f"{name}{place} copies bytes to global memory that nobody has written"
        return Diagnostic("PTO-V214", message, found.op.loc, "warning", notes=notes)
    if found.is_store:
        message = f"undefined data is stored to global memory by {name}{place}"
        return Diagnostic("PTO-V210", message, found.op.loc, notes=notes)
    message = f"undefined data is read by the scalar unit in {name}{place}"
    return Diagnostic("PTO-V213", message, found.op.loc, notes=notes)
