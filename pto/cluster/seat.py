"""Some ranks of a world on one worker: they run until none can go on, turn after turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pto.cluster.intervals import Bytes
from pto.cluster.parcel import profile_of, unpack
from pto.cluster.windows import Memories, Update
from pto.cluster.world import Ended, Plan, There, Turn
from pto.core.errors import PtoError
from pto.run.launch.call import Launch
from pto.run.machine.agents import Turns, waits_of
from pto.run.machine.stream import Stream
from pto.run.machine.world import World

_ROUNDS = 1000  # in which agents only look at memory, before they hear from the others


class Seat:
    """`mine` are the ranks that run here; the others are memory alone."""

    def __init__(self, plan: Plan, mine: range, data: Sequence[Bytes]) -> None:
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
        self._turns = Turns()
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
            kernel = unpack(each.parcel)
            launch = Launch.of(kernel, device, args, each.blocks, timeout=each.timeout)
            stream.submit(launch)
            found[number] = launch
        return found

    def _argument(self, arg: Any) -> Any:
        if not isinstance(arg, There):
            return arg
        return self._memories.now[arg.base].view(arg.kind).reshape(arg.shape)

    def turn(
        self, meetings: Mapping[Any, Mapping[Any, int]], own: int, updates: Sequence[Update]
    ) -> tuple[Turn, Update]:
        try:
            with np.errstate(all="ignore"):
                self._hear(meetings, own, updates)
                done = self._turns.go_on(self._world.begin, patience=1, rounds=_ROUNDS)
                added, self._world.added = self._world.added or [], []
                update = self._memories.take(added)
        except PtoError as error:
            return Turn(False, error=tuple(error.diagnostics)), Update({}, ())
        stuck, finished = waits_of(self._turns.live)
        said = Turn(
            done,
            tuple(stuck),
            tuple(finished),
            self._turns.moved,
            update.plain(),
            update.combined(),
            update.nbytes,
            self._world.meetings,
        )
        return said, update

    def _hear(
        self, meetings: Mapping[Any, Mapping[Any, int]], own: int, updates: Sequence[Update]
    ) -> None:
        self._memories.give(updates, own)
        for group, counts in meetings.items():
            known = self._world.meetings.setdefault(group, {})
            for who, count in counts.items():
                known[who] = max(count, known.get(who, 0))

    def leave(self, own: int, updates: Sequence[Update]) -> Ended:
        """What the memory of these ranks has become, and what their launches printed."""
        self._memories.give(updates, own)
        homes = [w.base for w in self._plan.windows if w.rank in self._mine]
        printed = {number: launch.printed for number, launch in self._launches.items()}
        return Ended(self._memories.result(homes), printed)
