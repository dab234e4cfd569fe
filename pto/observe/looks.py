"""Checks that need further runs: overlapping tiles, store streams, and tested fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, Operation
from pto.isa.row.attributes import Enum
from pto.isa.row.order import CoreBarrier, TestSignal
from pto.observe.fixes.fix import Gap, suggestion
from pto.observe.memory.unflushed import StreamTap, dropped
from pto.observe.storage.places import PlaceTap, has_twins, placed
from pto.observe.storage.roots import Roots
from pto.observe.storage.tiles import TileTap
from pto.observe.watcher import Sanitizer
from pto.plan.buffers import SHARED
from pto.plan.calls import sides
from pto.plan.memory import plan_memory
from pto.run.order.resolve import is_used
from pto.run.watch.events import Hook
from pto.target.facts import Profile
from pto.target.profile import DeviceSpec

OCCUPANCY = "PTO-D212"
_FIXES = 3  # races for which a fix is tried: each costs a run


def shared_bytes(
    functions: Sequence[Operation], profile: Profile, findings: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """The reason why pipes may race on two tiles: the planner had to let them share bytes."""
    if not any(d.code.startswith("PTO-R00") for d in findings):
        return []
    return [d for d in plan_memory(functions, profile).warnings if d.code == SHARED]


def unused_tests(functions: Sequence[Operation]) -> Iterator[Diagnostic]:
    """Tests of a signal with an unused result."""
    for op in (op for f in functions for op in f.walk()):
        if isinstance(op.order, TestSignal) and not is_used(op):
            help = "branch on the result, or loop until it holds; pto.comm.twait waits by itself"
            idle = "orders nothing: no operation takes its result"
            yield op.finding("PTO-R045", idle, "warning", help=help)


def occupancy(
    functions: Sequence[Operation], profile: Profile, chip: DeviceSpec | None, blocks: int
) -> Iterator[Diagnostic]:
    """Barriers of all cores in a launch that does not have one block for each.

    The hard form waits for every core of its kind that the device has, also for those without a
    block (pypto issue 1935); a block that begins when another has ended never arrives. Without a
    named device there is no finding: each has its own number of cores.
    """
    for op, agents, wanted in _meetings(functions, profile, chip):
        if chip is not None and (come := blocks * agents) != wanted:
            message = (
                f"'{op.name}' op waits for all {wanted} cores of {chip.name}, and {come} come with"
                f" {blocks} block{'s' * (blocks != 1)}: the launch never ends"
            )
            yield Diagnostic(OCCUPANCY, message, op.loc, help=_SOFT)


def filling(
    functions: Sequence[Operation], profile: Profile, chip: DeviceSpec | None
) -> int | None:
    """The number of blocks that a barrier of all cores needs; None if there is no such barrier."""
    for _, agents, wanted in _meetings(functions, profile, chip):
        return None if wanted % agents else wanted // agents
    return None


def _meetings(
    functions: Sequence[Operation], profile: Profile, chip: DeviceSpec | None
) -> Iterator[tuple[Operation, int, int]]:
    """Barriers of all cores of a device: arrivals of each block, and arrivals that are needed."""
    meetings = [op for f in functions for op in f.walk() if _waits_for_device(op)]
    if chip is None or not meetings:
        return
    parts = sides(functions, profile)
    cores = {"cube": chip.cube_cores, "vector": chip.vector_cores}
    for op in meetings:
        other = {"aic_only": "vector", "aiv_only": "cube"}.get(_word(op, "core_type", "aiv_only"))
        agents = sum(part.agents for part in parts if part.name != other)
        yield op, agents, sum(count for side, count in cores.items() if side != other)


def _waits_for_device(op: Operation) -> bool:
    order = op.order
    return isinstance(order, CoreBarrier) and _word(op, "mode", "hard") == "hard"


def _word(op: Operation, name: str, default: str) -> str:
    value = op.attrs.get(name)
    return value.value if isinstance(value, Enum) else default


_SOFT = "launch one block for each core, or use mode soft with a workspace and used_cores"


def closer_looks(
    module: Module, profile: Profile, step_again: Callable[[Hook], None], is_mixed: bool
) -> list[Diagnostic]:
    """Findings about overlapping tiles and store streams, if the program may have them."""
    functions = [f for f in module.functions() if f.has_body]
    out: list[Diagnostic] = []
    roots = Roots(functions)
    if roots.needs_look(functions):
        tiles = TileTap(roots, profile)
        step_again(tiles)
        out += tiles.findings()
    pointers = placed(functions) if is_mixed or has_twins(functions) else {}
    if pointers:
        places = PlaceTap(pointers)
        step_again(places)
        out += places.findings()
    stores = dropped(functions)
    if stores:
        streams = StreamTap(stores)
        step_again(streams)
        out += streams.findings()
    return out


def with_fixes(watcher: Sanitizer, rerun: Callable[[], list[Diagnostic]]) -> list[Diagnostic]:
    """The findings; the first few races with a fix that was tried and works."""
    findings = watcher.findings()
    for race, gap in watcher.gaps()[:_FIXES]:
        help = None if gap is None else _tried(gap, race, findings, rerun)
        if help is not None:
            findings[findings.index(race)] = replace(race, help=help)
    return findings


def _tried(
    gap: Gap, race: Diagnostic, findings: list[Diagnostic], rerun: Callable[[], list[Diagnostic]]
) -> str | None:
    try:
        return suggestion(gap, race, findings, rerun)
    except PtoError:  # the changed program does not run: no fix
        return None
