"""Races between work items of one launch: conflicting accesses of two warps between two barriers.

The lanes of a warp run in lockstep, so only warps can race. If two lanes store to the same byte by
one instruction, the winner is undefined. Atomic updates are ordered among themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation
from pto.isa.meaning.simt.items import WARP, ActiveItems, Pointers
from pto.run.watch.memory import WatchedMemory

_SEVERAL = -2  # several warps have read a byte
Ints = npt.NDArray[Any]


class _Last:
    """The last access of one kind to each byte: when, by which warp, by which operation."""

    def __init__(self, size: int) -> None:
        self.when = np.zeros(size, np.int32)  # the interval between two barriers
        self.warp = np.zeros(size, np.int32)
        self.op = np.zeros(size, np.int32)

    def by_others(self, places: Ints, warp: Ints, now: int) -> Ints:
        """Whether another warp has accessed each byte in this interval."""
        return (self.when[places] == now) & (self.warp[places] != warp)


class _Marks:
    """The last store and load of each byte of a memory."""

    def __init__(self, size: int) -> None:
        self.stores, self.loads = _Last(size), _Last(size)
        self.atomic = np.zeros(size, np.bool_)


class Conflicts:
    """The races between work items in one sanitized run."""

    def __init__(self) -> None:
        self._stretch = 0
        self._marks: dict[int, _Marks] = {}
        self._ops: dict[int, tuple[int, Operation]] = {}
        self._found: dict[tuple[int, int, str], Diagnostic] = {}

    def findings(self) -> list[Diagnostic]:
        return list(self._found.values())

    def meet(self) -> None:
        """A barrier, or the start of a launch: orders all later accesses after all earlier ones."""
        self._stretch += 1

    def touch(
        self, items: ActiveItems, at: Pointers, nbytes: int, writes: bool, atomic: bool, raw: Ints
    ) -> None:
        memory, op = at.memory, items.op
        if op is None or not isinstance(memory, WatchedMemory):
            return
        number, _ = self._ops.setdefault(id(op), (len(self._ops), op))
        marks = self._marks.setdefault(id(memory), _Marks(memory.size))
        places = (at.addresses[:, None] + np.arange(nbytes)).reshape(-1)
        warp = np.repeat(items.active // WARP, nbytes).astype(np.int32)
        self._compare(marks, memory, places, warp, op, writes, atomic)
        if writes and not atomic:
            self._same_store(memory, at, raw, op)
        self._mark(marks, places, warp, number, writes, atomic)

    def _compare(
        self,
        marks: _Marks,
        memory: WatchedMemory,
        places: Ints,
        warp: Ints,
        op: Operation,
        writes: bool,
        atomic: bool,
    ) -> None:
        now, word = self._stretch, "stores" if writes else "loads"
        bad = marks.stores.by_others(places, warp, now)
        if atomic:
            bad &= ~marks.atomic[places]
        self._report(bad, places, marks.stores.op, memory, op, word, "stored")
        if writes and not atomic:
            bad = marks.loads.by_others(places, warp, now)
            self._report(bad, places, marks.loads.op, memory, op, word, "loaded")

    def _report(
        self,
        bad: Ints,
        places: Ints,
        numbers: Ints,
        memory: WatchedMemory,
        op: Operation,
        now: str,
        before: str,
    ) -> None:
        if not bad.any():
            return
        address = int(places[np.argmax(bad)])
        other = list(self._ops.values())[int(numbers[address])][1]
        key = (id(op), id(other), before)
        if key not in self._found:
            message = (
                f"'{op.name}' op {now} {memory.space.value} {address:#x}, which another warp has"
                f" {before} with no barrier of all work items between them"
            )
            note = Note(f"'{other.name}' op {before} it", other.loc)
            finding = Diagnostic("PTO-R041", message, op.loc, notes=(note,), help=_HELP)
            self._found[key] = finding

    def _same_store(self, memory: WatchedMemory, at: Pointers, raw: Ints, op: Operation) -> None:
        """Report several items that store to one address; an error if their values differ."""
        _, group, counts = np.unique(at.addresses, return_inverse=True, return_counts=True)
        if (counts < 2).all():
            return
        first = np.zeros(counts.size, np.int64)
        first[group] = np.arange(group.size)
        differs = (raw != raw[first[group]]).any(axis=1)
        one = int(np.argmax(differs if differs.any() else counts[group] > 1))
        severity = "error" if differs.any() else "warning"
        message = (
            f"'{op.name}' op: {int(counts[group[one]])} work items store"
            f" {'different values to' if differs.any() else 'the same value to'}"
            f" {memory.space.value} {int(at.addresses[one]):#x} at once; which of them wins is not"
            " defined"
        )
        earlier = self._found.get((id(op), id(op), "same"))
        if earlier is None or earlier.severity == "warning" != severity:
            finding = Diagnostic("PTO-R042", message, op.loc, severity=severity)
            self._found[id(op), id(op), "same"] = finding

    def _mark(
        self, marks: _Marks, places: Ints, warp: Ints, number: int, writes: bool, atomic: bool
    ) -> None:
        now, last = self._stretch, marks.stores if writes else marks.loads
        if writes:
            marks.atomic[places] = atomic
        else:
            warp = np.where(last.by_others(places, warp, now), _SEVERAL, warp)
        last.when[places] = now
        last.warp[places] = warp
        last.op[places] = number


_HELP = "put pto.syncthreads between them, or use an atomic update"
