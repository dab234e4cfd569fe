"""A launch of a program, described block by block: what each block does, without its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.ir.graph import Module, Operation
from pto.isa.cost.moves import touched
from pto.isa.cost.work import GlobalRegion, TransferWork
from pto.observe.timing.fold import FoldedDryRun, Unsteady
from pto.observe.timing.kinds import regions_of
from pto.observe.timing.stream import Recording, RecordStream
from pto.run.launch.prepared import PreparedKernel
from pto.run.machine.agents import Agent, run_cooperatively
from pto.run.machine.core import Cluster
from pto.run.machine.device import Device
from pto.run.watch.events import Hook, InstructionEvent, Observer
from pto.run.watch.outline import Addresses, DryRun, meets_others, needs_registers
from pto.target.facts import Profile


class _RegionTap(Observer):
    """Collects what a run transfers, in order."""

    def __init__(self) -> None:
        self.found: list[GlobalRegion] = []

    def event(self, event: InstructionEvent) -> None:
        work = event.work or (touched(event.accesses) if event.accesses else None)
        if isinstance(work, TransferWork) and work.region is not None:
            self.found.append(work.region)


@dataclass(slots=True)
class BlockLaunch:
    """A launch of a program, described block by block."""

    module: Module
    functions: Sequence[Operation]
    profile: Profile
    args: Sequence[Any]
    blocks: int
    data: bool = False
    whole: bool = False  # loops are described to their end
    _folded: bool = False
    _asked: tuple[list[GlobalRegion], Callable[[int], None]] | None = field(
        default=None, init=False
    )

    def record(self, number: int) -> RecordStream:
        recording = Recording(self.profile.sync)
        registers = needs_registers(self.functions)
        if self.whole or self.data or meets_others(self.functions):
            self._prepared(DryRun(recording, data=self.data, registers=registers))(number)
        else:
            try:
                self._prepared(FoldedDryRun(recording, registers=registers))(number)
            except Unsteady:
                self.whole = True
                return self.record(number)
        recording.end()
        self._folded = bool(recording.stream.folds)
        return recording.stream

    def regions(self, number: int) -> list[GlobalRegion]:
        if self._folded:
            return regions_of(self.record(number))
        if self._asked is None:  # compiled once, run for each block
            self._asked = self._asking()
        tapped, run = self._asked
        tapped.clear()
        run(number)
        return list(tapped)

    def _asking(self) -> tuple[list[GlobalRegion], Callable[[int], None]]:
        """Where a run leaves its transfers, and the run of a block."""
        registers = needs_registers(self.functions)
        if self.data or meets_others(self.functions):
            recorder = _RegionTap()
            return recorder.found, self._prepared(
                DryRun(recorder, data=self.data, registers=registers)
            )
        tap = Addresses(registers=registers)
        return tap.regions, self._prepared(tap)

    def _prepared(self, tap: Hook) -> Callable[[int], None]:
        """A function that runs one block, watched by `tap`."""
        kernel = PreparedKernel(self.module, self.functions, self.profile, tap)

        def run(number: int) -> None:
            device = Device(self.profile)
            device.watch(tap)
            values, waiting = device.values(kernel, self.args), [number]

            def start() -> list[Agent]:
                if not waiting:
                    return []
                cluster = Cluster(device, waiting.pop(), self.blocks)
                return kernel.agents(cluster, values, lambda: None)

            with np.errstate(all="ignore"):
                run_cooperatively(start)

        return run

    @property
    def arrays(self) -> list[tuple[int, int]]:
        passed = [a for a in self.args if isinstance(a, np.ndarray)]
        return [(a.ctypes.data, a.nbytes) for a in passed]
