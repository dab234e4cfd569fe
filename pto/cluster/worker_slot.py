"""The ranks of a world that run on one worker, round after round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.cluster.kernel_message import profile_of, unpack
from pto.cluster.windows import Memories, Update
from pto.cluster.world import (
    Meetings,
    RoundReport,
    WindowArgument,
    WorkerResult,
    WorldPlan,
    met,
)
from pto.core.errors import PtoError
from pto.core.intervals import Bytes
from pto.run.launch.call import Launch
from pto.run.machine.agents import CoScheduler, waits_of
from pto.run.machine.stream import Stream
from pto.run.machine.world import World

_ROUNDS = 1000  # rounds in which agents only poll memory before workers exchange changes


class WorkerSlot:
    """Runs the ranks `mine`; of other ranks it only has memory."""

    def __init__(self, plan: WorldPlan, mine: range, data: Sequence[Bytes]) -> None:
        self._plan, self._mine = plan, mine
        needed = plan.needed(mine)
        pairs = zip(needed, data, strict=True)
        self._memories = Memories(needed, {window.base: contents for window, contents in pairs})
        self._world = World(plan.ranks, profile_of(plan.target))
        self._world.added = []
        for window in plan.windows:
            local = self._memories.now.get(window.base)
            buffer = np.zeros(window.size, np.uint8) if local is None else local
            self._world[window.rank].open_window(window.base, buffer, window.heap)
        self._rounds = CoScheduler()
        self._launches = self._submitted()

    def _submitted(self) -> dict[int, Launch]:
        launches: dict[int, Launch] = {}
        streams: dict[tuple[int, int], Stream] = {}
        for number, planned in enumerate(self._plan.launches):
            if planned.rank not in self._mine:
                continue
            device = self._world[planned.rank]
            key = planned.rank, planned.stream
            stream = streams.get(key) or streams.setdefault(key, device.stream())
            args = [self._argument(arg) for arg in planned.args]
            kernel = unpack(planned.message)
            launch = Launch.of(kernel, device, args, planned.blocks, timeout=planned.timeout)
            stream.submit(launch)
            launches[number] = launch
        return launches

    def _argument(self, arg: Any) -> Any:
        if not isinstance(arg, WindowArgument):
            return arg
        return self._memories.now[arg.base].view(arg.kind).reshape(arg.shape)

    def run_round(
        self, meetings: Meetings, number: int, updates: Sequence[Update]
    ) -> tuple[RoundReport, Update]:
        try:
            with np.errstate(all="ignore"):
                self._memories.give(updates, number)
                self._world.meetings.update(met([self._world.meetings, meetings]))
                done = self._rounds.go_on(self._world.begin, patience=1, rounds=_ROUNDS)
                added, self._world.added = self._world.added or [], []
                update = self._memories.take(added)
        except PtoError as error:
            return RoundReport(False, error=tuple(error.diagnostics)), Update({}, ())
        stuck, finished = waits_of(self._rounds.live)
        report = RoundReport(
            done,
            tuple(stuck),
            tuple(finished),
            self._rounds.moved,
            update.plain(),
            update.combined(),
            update.nbytes,
            self._world.meetings,
        )
        return report, update

    def leave(self, worker_number: int, updates: Sequence[Update]) -> WorkerResult:
        """The final memory of these ranks, and the output of their launches."""
        self._memories.give(updates, worker_number)
        homes = [w.base for w in self._plan.windows if w.rank in self._mine]
        printed = {number: launch.printed for number, launch in self._launches.items()}
        return WorkerResult(self._memories.result(homes), printed)
