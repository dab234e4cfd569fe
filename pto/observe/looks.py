"""What takes further runs: tiles and their places, store streams, and fixes that are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, Operation
from pto.observe.memory.unflushed import StreamTap, dropped
from pto.observe.mend.fix import Gap, suggestion
from pto.observe.storage.places import PlaceTap, has_twins, placed
from pto.observe.storage.roots import Roots
from pto.observe.storage.tiles import TileTap
from pto.plan.memory import plan_memory
from pto.plan.room import SHARED
from pto.run.watch.events import Tap
from pto.target.facts import Profile
from pto.verify.functions import is_defined

_FIXES = 3  # races for which a fix is looked for: each costs a run


class Watcher(Protocol):
    """A sanitizer that has watched a run."""

    def findings(self) -> list[Diagnostic]: ...
    def gaps(self) -> list[tuple[Diagnostic, Gap | None]]: ...


def shared_bytes(
    functions: Sequence[Operation], profile: Profile, found: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """Why pipes may race on two tiles: the planner had no room to keep them apart."""
    if not any(d.code.startswith("PTO-R00") for d in found):
        return []
    return [d for d in plan_memory(functions, profile).warnings if d.code == SHARED]


def closer_looks(
    module: Module, profile: Profile, step_again: Callable[[Tap], None], is_mixed: bool
) -> list[Diagnostic]:
    """Tiles and their places, and store streams, where the program itself leaves a doubt."""
    functions = [f for f in module.functions() if is_defined(f)]
    found: list[Diagnostic] = []
    roots = Roots(functions)
    if roots.needs_look(functions):
        tiles = TileTap(roots, profile)
        step_again(tiles)
        found += tiles.findings()
    pointers = placed(functions) if is_mixed or has_twins(functions) else {}
    if pointers:
        places = PlaceTap(pointers)
        step_again(places)
        found += places.findings()
    stores = dropped(functions)
    if stores:
        streams = StreamTap(stores)
        step_again(streams)
        found += streams.findings()
    return found


def with_fixes(watcher: Watcher, rerun: Callable[[], list[Diagnostic]]) -> list[Diagnostic]:
    """The findings, the first few races with a fix that was tried and found to work."""
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
