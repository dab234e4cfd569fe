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
        self._memories = Memories(needed, {window.base: each for window, each in pairs})
        self._world = World(plan.ranks, profile_of(plan.target))
        self._world.added = []
        for window in plan.windows:
            own = self._memories.now.get(window.base)
            room = np.zeros(window.size, np.uint8) if own is None else own
            self._world[window.rank].open_window(window.base, room, window.heap)
        self._rounds = CoScheduler()
        self._launches = self._submitted()

    def _submitted(self) -> dict[int, Launch]:
        found: dict[int, Launch] = {}
        streams: dict[tuple[int, int], Stream] = {}
        for number, each in enumerate(self._plan.launches):
            if each.rank not in self._mine:
                continue
            device = self._world[each.rank]
            key = each.rank, each.stream
            stream = streams.get(key) or streams.setdefault(key, device.stream())
            args = [self._argument(arg) for arg in each.args]
            kernel = unpack(each.message)
            launch = Launch.of(kernel, device, args, each.blocks, timeout=each.timeout)
            stream.submit(launch)
            found[number] = launch
        return found

    def _argument(self, arg: Any) -> Any:
        if not isinstance(arg, WindowArgument):
            return arg
        return self._memories.now[arg.base].view(arg.kind).reshape(arg.shape)

    def run_round(
        self, meetings: Meetings, own: int, updates: Sequence[Update]
    ) -> tuple[RoundReport, Update]:
        try:
            with np.errstate(all="ignore"):
                self._memories.give(updates, own)
                self._world.meetings.update(met([self._world.meetings, meetings]))
                done = self._rounds.go_on(self._world.begin, patience=1, rounds=_ROUNDS)
                added, self._world.added = self._world.added or [], []
                update = self._memories.take(added)
        except PtoError as error:
            return RoundReport(False, error=tuple(error.diagnostics)), Update({}, ())
        stuck, finished = waits_of(self._rounds.live)
        said = RoundReport(
            done,
            tuple(stuck),
            tuple(finished),
            self._rounds.moved,
            update.plain(),
            update.combined(),
            update.nbytes,
            self._world.meetings,
        )
        return said, update

    def leave(self, own: int, updates: Sequence[Update]) -> WorkerResult:
        """The final memory of these ranks, and the output of their launches."""
        self._memories.give(updates, own)
        homes = [w.base for w in self._plan.windows if w.rank in self._mine]
        printed = {number: launch.printed for number, launch in self._launches.items()}
        return WorkerResult(self._memories.result(homes), printed)
