"""A world on a cluster: each worker runs some ranks, and workers exchange memory in rounds.

In a round every worker runs its ranks until all of them wait; then workers exchange their changes.
A round without progress and without changes is a deadlock, reported as in one process. If two
workers changed the same bytes in one round, the order would matter: the world then runs in one
process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pto.cluster.kernel_message import pack
from pto.cluster.windows import RankWindow
from pto.cluster.worker_pool import WorkerDied, WorkerHandle, WorkerPool
from pto.cluster.world import RankLaunch, RoundReport, WindowArgument, WorkerResult, WorldPlan, met
from pto.core.errors import PtoError
from pto.core.intervals import meet, scatter
from pto.run.launch.arrays import Borrowed
from pto.run.launch.call import Launch
from pto.run.launch.prepared import LaunchGrid
from pto.run.machine.agents import deadlock
from pto.run.machine.world import World

Begun = tuple[int, Launch, LaunchGrid]  # the number of its stream, a launch, its blocks
_TRIES = 3  # of a world with dying workers


@dataclass(frozen=True, slots=True)
class WorldTraffic:
    """The cost of a world: workers, rounds and bytes moved."""

    ranks: int
    workers: int
    rounds: int
    exchanged: int  # bytes sent to other workers
    arrays: int
    written: int

    def __str__(self) -> str:
        size = f"{self.ranks} ranks on {self.workers} workers, {self.rounds} rounds"
        moved = f"{self.arrays:,} bytes out, {self.exchanged:,} between, {self.written:,} back"
        return f"{size}: {moved}"


def run(pool: WorkerPool, world: World) -> WorldTraffic | None:
    """Run all submitted work; None if nothing was done and it must run locally."""
    submitted = [stream.launches() for stream in world.busy]
    if not any(submitted) or any(launches is None for launches in submitted):
        return None
    begun = [
        (n, launches, launches.begin()) for n, all in enumerate(submitted) for launches in all or ()
    ]
    try:
        plan = _plan(world, begun)
        done = None if plan is None else _tried(pool, world, plan)
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
        grid.add_printed({0: list(printed.get(number, ()))})
        launch.end(grid)
    return travelled


def _release(begun: Sequence[Begun]) -> None:
    for _, launch, _ in begun:
        launch.release()


def _plan(world: World, begun: Sequence[Begun]) -> WorldPlan | None:
    """The world as data; None if a part of it cannot be sent, or arrays overlap."""
    bases = {id(m): base for device in world.devices for base, m, _ in device.windows()}
    users: dict[int, set[int]] = {}
    launches: list[RankLaunch] = []
    for stream, launch, grid in begun:
        message, rank = pack(launch.kernel), launch.device.rank
        values = list(grid.values.values())
        if message is None or launch.device.tap is not None:
            return None
        args: list[Any] = []
        for arg, value in zip(launch.args, values, strict=True):
            if isinstance(arg, Borrowed):
                base = bases[id(value.memory)]
                users.setdefault(base, set()).add(rank)
                args.append(WindowArgument(base, arg.array.shape, arg.array.dtype))
            else:
                args.append(arg)
        launches.append(
            RankLaunch(rank, stream, message, tuple(args), launch.blocks, launch.timeout)
        )
    everyone = frozenset(range(len(world)))
    windows = [
        RankWindow(
            base, m.size, n, heap, everyone if heap else frozenset({n, *users.get(base, ())})
        )
        for n, device in enumerate(world.devices)
        for base, m, heap in device.windows()
    ]
    spans = sorted((m.data.ctypes.data, m.size) for d in world.devices for _, m, _ in d.windows())
    if any(a + size > b for (a, size), (b, _) in pairwise(spans)):
        return None
    return WorldPlan(len(world), launches[0].message.target, tuple(windows), tuple(launches))


def groups(ranks: int, workers: int) -> list[range]:
    """Ranks by worker: neighbours together, as many groups as workers, or one rank each."""
    count = min(ranks, workers)
    cuts = [ranks * n // count for n in range(count + 1)]
    return [range(a, b) for a, b in pairwise(cuts)]


def _tried(
    pool: WorkerPool, world: World, plan: WorldPlan
) -> tuple[WorldTraffic, list[WorkerResult]] | None:
    """Run the world, again from the start if a worker dies: the host's arrays are unchanged."""
    data = {base: m.data for device in world.devices for base, m, _ in device.windows()}
    shared = {base: pool.shared(contents, contents.nbytes) for base, contents in data.items()}
    for _ in range(_TRIES):
        pool.wait_for_workers()
        workers = pool.ready[: plan.ranks]
        try:
            done = _World(pool, plan, workers).run(shared)
        except WorkerDied:
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
    """The rounds of all workers, coordinated by the host."""

    def __init__(self, pool: WorkerPool, plan: WorldPlan, workers: Sequence[WorkerHandle]) -> None:
        self._pool, self._plan = pool, plan
        self._groups = groups(plan.ranks, len(workers))
        self._workers = workers[: len(self._groups)]
        self._exchanged = 0

    def run(self, shared: Mapping[int, Any]) -> tuple[WorldTraffic, list[WorkerResult]] | None:
        plan, arrays = self._plan, 0
        argses: list[tuple[Any, ...]] = []
        sent = self._pool.shared(plan, sum(len(s.message.program.text) for s in plan.launches))
        for group in self._groups:
            needed = plan.needed(group)
            arrays += sum(w.size for w in needed)
            argses.append((sent, group, *(shared[w.base] for w in needed)))
        self._ask("join", argses)
        rounds = self._rounds()
        if rounds is None:
            return None
        count, updates = rounds
        ends = self._ask("leave", [(n, *updates) for n in range(len(self._workers))])
        back = sum(data.nbytes for end in ends for _, data in end.windows.values())
        size = plan.ranks, len(self._workers), count
        return WorldTraffic(*size, self._exchanged, arrays, back), ends

    def _rounds(self) -> tuple[int, list[Any]] | None:
        """The number of rounds and the changes of the last one; None if the order would matter."""
        updates: list[Any] = []
        meetings: dict[Any, dict[Any, int]] = {}
        count = 0
        while True:
            count += 1
            argses = [(meetings, n, *updates) for n in range(len(self._workers))]
            answers = self._ask("run_round", argses, returns=2)
            reports: list[RoundReport] = [status for status, _ in answers]
            updates = [update for _, update in answers]
            errors = [report.error for report in reports if report.error]
            if errors:
                raise PtoError(*errors[0])
            if order_matters(reports):
                return None
            if all(report.is_done for report in reports):
                return count, updates
            meetings_now = met(report.meetings for report in reports)
            changed = any(report.nbytes for report in reports) or meetings_now != meetings
            self._exchanged += sum(report.nbytes for report in reports) * (len(reports) - 1)
            meetings = meetings_now
            if not changed and not any(report.moved for report in reports):
                stuck = [waiting for report in reports for waiting in report.stuck]
                raise deadlock(stuck, [name for report in reports for name in report.finished])

    def _ask(self, method: str, argses: Sequence[tuple[Any, ...]], returns: int = 1) -> list[Any]:
        return self._pool.call_all(self._workers, method, argses, returns)


def order_matters(reports: Sequence[RoundReport]) -> bool:
    """True if two workers changed the same bytes by other means than additions."""
    for n, one in enumerate(reports):
        for other in reports[n + 1 :]:
            pairs = (
                (one.plain, other.plain),
                (one.plain, other.combined),
                (one.combined, other.plain),
            )
            if any(a is not None and b is not None and meet(a, b) for a, b in pairs):
                return True
    return False
