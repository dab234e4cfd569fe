"""The sanitizer: one watched run, and everything that is wrong with its order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.core.findings import Findings
from pto.ir.graph import Module
from pto.observe.looks import closer_looks, occupancy, shared_bytes, unused_tests, with_fixes
from pto.observe.memory import undefined
from pto.observe.mode import Mode, looked_at, mode_of, placed_by_hand
from pto.observe.order import flags
from pto.observe.replay import Replay
from pto.observe.storage.assigned import AssignedTap
from pto.observe.watcher import Sanitizer
from pto.plan.calls import entry_functions
from pto.plan.stores import may_be_written
from pto.run.launch.arrays import copied
from pto.run.launch.call import Program, count_of, load
from pto.run.launch.host import Report, launch
from pto.run.launch.progress import Progress
from pto.run.watch.events import Hook, Observer
from pto.target.facts import Profile
from pto.verify.program import target_of


class Verdict(Findings):
    """The findings of a run under the sanitizer; true if none of them is an error.

    `report` is None if the run did not end.
    """

    def __init__(
        self,
        findings: Iterable[Diagnostic],
        mode: Mode,
        report: Report | None,
        about: str = "",
        summary: str = "",
        unwritten: int = 0,
    ) -> None:
        super().__init__(findings, about, summary)
        self.mode: Mode = mode
        self.report = report
        self.unwritten = unwritten  # operations that read unwritten bytes

    def __bool__(self) -> bool:
        """True without errors; `is_clean` is true without warnings too."""
        return all(d.severity != "error" for d in self)

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        return tuple(self)

    @property
    def is_clean(self) -> bool:
        return len(self) == 0


def sanitize(
    program: Program,
    *,
    entry: str | None = None,
    args: Sequence[Any] = (),
    blocks: int | tuple[int, ...] = 1,
    profile: str | None = None,
    device: str | None = None,
    engine: str = "reference",
    check: bool = True,
    timeout: float | None = None,
    automatic: bool = False,
    fixes: bool = True,
    progress: Progress | None = None,
) -> Verdict:
    """Run a kernel as `launch` does, and find what is wrong with its order.

    `automatic`: a compiler will insert synchronisation, although tiles have addresses already.
    `fixes`: the first races come with a fix that was tried, which takes runs of its own.
    """
    module = load(program)
    target = target_of(module, profile=profile, device=device)
    functions = entry_functions(module, entry)
    mode = mode_of(functions)
    about = looked_at(mode, functions, count_of(blocks))
    unordered = [] if automatic or mode == "flags" else placed_by_hand(functions)
    watcher = Sanitizer(target.profile, mode)
    options: dict[str, Any] = {"entry": entry, "blocks": blocks, "profile": profile}
    options |= {"device": device, "engine": engine, "timeout": timeout}
    written = may_be_written(functions, len(args))
    before = copied(args, written)
    report, findings = None, tuple[Diagnostic, ...]()
    try:
        more: dict[str, Any] = {"observer": watcher, "progress": progress, **options}
        report = launch(module, args=args, check=check, **more)
    except PtoError as error:
        findings = error.diagnostics
    if watcher.has_begun:
        again = Replay(module, before, written, options, report is None)
        findings = _judged(watcher, again, findings, fixes)
        if unordered and report is not None and not _needs_order(watcher.profile, again):
            unordered = []
    findings += tuple(shared_bytes(functions, target.profile, findings))
    findings += tuple(occupancy(functions, target.profile, target.device, count_of(blocks)))
    findings += tuple(unused_tests(functions))
    return Verdict((*unordered, *findings), mode, report, about, unwritten=len(watcher.origins))


def _needs_order(profile: Profile, again: Replay) -> bool:
    """True if pipes race in a program without any flag."""
    watcher = Sanitizer(profile, "flags")
    again.watch(watcher)
    return bool(watcher.gaps())


def _judged(
    watcher: Sanitizer, again: Replay, ended: tuple[Diagnostic, ...], fixes: bool
) -> tuple[Diagnostic, ...]:
    """The findings of a run, of further runs, and the error that `ended` it early."""
    looks = closer_looks(again.module, watcher.profile, again.step, watcher.is_mixed)
    if again.fails:
        explained = (flags.explained(error, watcher.order) for error in ended)
        return (*watcher.findings(), *looks, *explained)
    watcher.look_at_lost(again.watch)

    def found_again() -> list[Diagnostic]:
        other = Sanitizer(watcher.profile, watcher.mode)
        again.watch(other)
        return other.findings()

    helped = with_fixes(watcher, found_again) if fixes else watcher.findings()
    late = undefined.findings(watcher.origins, again.watch)
    return (*helped, *looks, *late)


def watch_run(
    profile: Profile,
    run: Callable[[Observer], None],
    ended: Callable[[], None],
    step: Callable[[Hook], None] = lambda tap: None,
    mode: Mode = "flags",
) -> list[Diagnostic]:
    """As `sanitize`, for programs without a module: `run` runs one from its start, `step` runs it
    step by step.

    `ended` is called after the first run has ended.
    """
    watcher = Sanitizer(profile, mode)
    try:
        run(watcher)
    except PtoError as error:
        explained = [flags.explained(d, watcher.order) for d in error.diagnostics]
        return [*watcher.findings(), *explained]
    ended()
    watcher.look_at_lost(run)
    tiles = AssignedTap()
    if watcher.is_mixed:
        step(tiles)
    late = undefined.findings(watcher.origins, run)
    return [*watcher.findings(), *tiles.findings(), *late]


def launch_sanitized(module: Module, **options: Any) -> Report:
    """As `launch`; raises what is wrong. Warnings alone do not stop a run. Checkouts give tile
    programs to a compiler that inserts synchronisation, wherever their tiles lie."""
    verdict = sanitize(module, automatic=True, **options)
    if verdict.report is None or any(d.severity == "error" for d in verdict.findings):
        raise PtoError(*verdict.findings)
    return verdict.report
