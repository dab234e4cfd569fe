"""Dependences between accesses to tiles, for sources without flags."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.isa.cost.describe import Describe
from pto.isa.rules.rule import Case
from pto.observe.timing.stream import Recording, TimedTask
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.outline import DryRun, slots_of

_Place = tuple[Any, int, int]  # a buffer, from byte to byte


@dataclass(slots=True)
class _Users:
    """The last writer of a range of a buffer, and the readers since."""

    writer: TimedTask | None = None
    readers: list[TimedTask] = field(default_factory=list[TimedTask])


class Dependent(DryRun):
    """A dry run that also reports the tiles that each step uses."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self._recording = recording
        self._used: dict[_Place, _Users] = defaultdict(_Users)

    def _described(self, compiler: Compiler, op: Operation, case: Case, describe: Describe) -> Step:
        described = super()._described(compiler, op, case, describe)
        slots = slots_of(compiler, op)
        roles = [operand.role for operand in op.row.operands]

        def ordered(core: Core, regs: Regs) -> None:
            pairs = zip(slots, roles, strict=True)
            tiles = [(regs[at], role) for at, role in pairs if at is not None]
            uses = [(_place(tile), role) for tile, role in tiles if isinstance(tile, Tile)]
            recording = self._recording
            recording.needs = [task for use in uses for task in self._before(*use)]
            described(core, regs)
            for storage, role in uses:
                self._uses(storage, role, recording.last)

        return ordered

    def _before(self, storage: _Place, role: str) -> Iterator[TimedTask]:
        buffer, start, end = storage
        for (other, first, last), users in self._used.items():
            if other is buffer and first < end and start < last:
                if users.writer is not None:
                    yield users.writer
                if role != "in":
                    yield from users.readers

    def _uses(self, storage: _Place, role: str, task: TimedTask) -> None:
        users = self._used[storage]
        if role == "in":
            users.readers.append(task)
        else:
            users.writer, users.readers = task, []


def _place(tile: Tile) -> _Place:
    return tile.memory, tile.address, tile.address + tile.type.nbytes
