"""A world on a cluster: workers have ranks, ranks have their own memory, and turns are shared.

In a turn every worker lets its ranks run until none can go on; then all hear what the others have
changed. When nobody moved and nothing changed, that is a deadlock, told as in one process. Where
two workers changed the same bytes in one turn, order would show: it then runs in one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pto.cluster.crew import Crew, Hand, Lost
from pto.cluster.intervals import meet, scatter
from pto.cluster.parcel import pack
from pto.cluster.windows import Window
from pto.cluster.world import Ended, Plan, Submitted, There, Turn
from pto.core.errors import PtoError
from pto.run.launch.arrays import Borrowed
from pto.run.launch.call import Launch
from pto.run.launch.prepared import Grid
from pto.run.machine.agents import deadlock
from pto.run.machine.world import World

Begun = tuple[int, Launch, Grid]  # the number of its stream, a launch, its blocks
_TRIES = 3  # of a world whose workers die


@dataclass(frozen=True, slots=True)
class Travelled:
    """What a world has cost."""

    ranks: int
    workers: int
    turns: int
    exchanged: int  # bytes told to other workers
    arrays: int
    written: int

    def __str__(self) -> str:
        size = f"{self.ranks} ranks on {self.workers} workers, {self.turns} turns"
        moved = f"{self.arrays:,} bytes out, {self.exchanged:,} between, {self.written:,} back"
        return f"{size}: {moved}"


def run(crew: Crew, world: World) -> Travelled | None:
    """All that has been submitted; None: nothing has been done, it stays here."""
    found = [stream.launches() for stream in world.busy]
    if not any(found) or any(each is None for each in found):
        return None
    begun = [(n, each, each.begin()) for n, all in enumerate(found) for each in all or ()]
    try:
        plan = _plan(world, begun)
        done = None if plan is None else _tried(crew, world, plan)
    except BaseException:
        _release(begun)
        raise
    if done is None:
        _release(begun)
        return None
    travelled, ends = done
    for stream in world.busy:
        stream.is_done_elsewhere()
    printed = {n: lines for end in ends for n, lines in end.printed.items()}
    for number, (_, launch, grid) in enumerate(begun):
        grid.told({0: list(printed.get(number, ()))})
        launch.end(grid)
    return travelled


def _release(begun: Sequence[Begun]) -> None:
    for _, launch, _ in begun:
        launch.release()


def _plan(world: World, begun: Sequence[Begun]) -> Plan | None:
    """None where something has no form that can be sent, or arrays overlap."""
    bases = {id(m): base for device in world.devices for base, m, _ in device.windows()}
    users: dict[int, set[int]] = {}
    launches: list[Submitted] = []
    for stream, launch, grid in begun:
        parcel, rank = pack(launch.kernel), launch.device.rank
        values = list(grid.values.values())
        if parcel is None or launch.device.tap is not None:
            return None
        args: list[Any] = []
        for arg, value in zip(launch.args, values, strict=True):
            if isinstance(arg, Borrowed):
                base = bases[id(value.memory)]
                users.setdefault(base, set()).add(rank)
                args.append(There(base, arg.array.shape, arg.array.dtype))
            else:
                args.append(arg)
        launches.append(Submitted(rank, stream, parcel, tuple(args), launch.blocks, launch.timeout))
    everyone = frozenset(range(len(world)))
    windows = [
        Window(base, m.size, n, heap, everyone if heap else frozenset({n, *users.get(base, ())}))
        for n, device in enumerate(world.devices)
        for base, m, heap in device.windows()
    ]
    spans = sorted((m.data.ctypes.data, m.size) for d in world.devices for _, m, _ in d.windows())
    if any(a + size > b for (a, size), (b, _) in pairwise(spans)):
        return None
    return Plan(len(world), launches[0].parcel.target, tuple(windows), tuple(launches))


def groups(ranks: int, workers: int) -> list[range]:
    """Neighbours together, as many groups as there are workers, or one rank each."""
    count = min(ranks, workers)
    cuts = [ranks * n // count for n in range(count + 1)]
    return [range(a, b) for a, b in pairwise(cuts)]


def _tried(crew: Crew, world: World, plan: Plan) -> tuple[Travelled, list[Ended]] | None:
    """Again from the beginning where a worker dies: arrays here are as before."""
    data = {base: m.data for device in world.devices for base, m, _ in device.windows()}
    shared = {base: crew.shared(each, each.nbytes) for base, each in data.items()}
    for _ in range(_TRIES):
        crew.muster()
        hands = crew.ready[: plan.ranks]
        done = _World(crew, plan, hands).run(shared)
        if isinstance(done, Lost):
            continue
        if done is None:
            return None
        travelled, ends = done
        for end in ends:
            for base, (where, values) in end.windows.items():
                scatter(data[base], where, values)
        return travelled, ends
    return None


class _World:
    """Turns of all workers, seen from here."""

    def __init__(self, crew: Crew, plan: Plan, hands: Sequence[Hand]) -> None:
        self._crew, self._plan = crew, plan
        self._groups = groups(plan.ranks, len(hands))
        self._hands = hands[: len(self._groups)]
        self._exchanged = 0

    def run(self, shared: Mapping[int, Any]) -> tuple[Travelled, list[Ended]] | Lost | None:
        plan, arrays = self._plan, 0
        argses: list[tuple[Any, ...]] = []
        sent = self._crew.shared(plan, sum(len(s.parcel.program.text) for s in plan.launches))
        for group in self._groups:
            needed = plan.needed(group)
            arrays += sum(w.size for w in needed)
            argses.append((sent, group, *(shared[w.base] for w in needed)))
        found = self._ask("join", argses)
        if isinstance(found, Lost):
            return found
        turns = self._turns()
        if not isinstance(turns, tuple):
            return turns
        count, updates = turns
        ends = self._ask("leave", [(n, *updates) for n in range(len(self._hands))])
        if isinstance(ends, Lost):
            return ends
        back = sum(data.nbytes for end in ends for _, data in end.windows.values())
        size = plan.ranks, len(self._hands), count
        return Travelled(*size, self._exchanged, arrays, back), ends

    def _turns(self) -> tuple[int, list[Any]] | Lost | None:
        """How many it took, and what the last ones changed; None: order would show."""
        updates: list[Any] = []
        meetings: dict[Any, dict[Any, int]] = {}
        count = 0
        while True:
            count += 1
            argses = [(meetings, n, *updates) for n in range(len(self._hands))]
            found = self._ask("turn", argses, returns=2)
            if isinstance(found, Lost):
                return found
            said: list[Turn] = [status for status, _ in found]
            updates = [update for _, update in found]
            errors = [turn.error for turn in said if turn.error]
            if errors:
                raise PtoError(*errors[0])
            if order_shows(said):
                return None
            if all(turn.is_done for turn in said):
                return count, updates
            known = _met(turn.meetings for turn in said)
            changed = any(turn.nbytes for turn in said) or known != meetings
            self._exchanged += sum(turn.nbytes for turn in said) * (len(said) - 1)
            meetings = known
            if not changed and not any(turn.moved for turn in said):
                stuck = [each for turn in said for each in turn.stuck]
                raise deadlock(stuck, [name for turn in said for name in turn.finished])

    def _ask(self, method: str, argses: Sequence[tuple[Any, ...]], returns: int = 1) -> Any:
        return self._crew.together(self._hands, method, argses, returns)


def order_shows(said: Sequence[Turn]) -> bool:
    """Whether two workers changed the same bytes, other than by adding to them."""
    for n, one in enumerate(said):
        for other in said[n + 1 :]:
            pairs = (
                (one.plain, other.plain),
                (one.plain, other.combined),
                (one.combined, other.plain),
            )
            if any(a is not None and b is not None and meet(a, b) for a, b in pairs):
                return True
    return False


def _met(said: Any) -> dict[Any, dict[Any, int]]:
    """Who has come to which meeting, and how often: counts only grow."""
    found: dict[Any, dict[Any, int]] = {}
    for meetings in said:
        for group, counts in meetings.items():
            own = found.setdefault(group, {})
            for who, count in counts.items():
                own[who] = max(count, own.get(who, 0))
    return found
