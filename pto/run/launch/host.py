"""The host: prepares arguments, submits programs, gets arrays back. It executes nothing itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from pto.core.errors import fail
from pto.core.renamed import renamed
from pto.ir.graph import Module
from pto.plan.mode import mode_of
from pto.run.launch.call import (
    Blocks,
    Calls,
    Launch,
    Program,
    count_of,
    kind_of,
    load,
    require_legal,
)
from pto.run.launch.engine import chosen_engine, switches
from pto.run.launch.entry import entry_functions
from pto.run.launch.known import ProgramCache
from pto.run.launch.outcome import warn
from pto.run.launch.prepared import PreparedKernel
from pto.run.launch.progress import Progress
from pto.run.machine.device import Device
from pto.run.order.schedule import PROGRAM, Schedule, parse_schedule
from pto.target.choose import Target
from pto.verify import judge
from pto.verify.target import target_of

if TYPE_CHECKING:
    from pto.run.jit.runtime.direct import FastPath
    from pto.run.watch.events import Observer, Tap

Argument = npt.NDArray[Any] | int | float | bool


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run: its settings and what it printed. Of the jit engine:

    `left_out`: (instruction, reason) without a lowering, and how often the program has it.
    `fallbacks`: (instruction, reason) of host fallbacks, and how often this run used them.
    `fused`: the instructions of each fusion group.
    `forwarded`: copies that are not made, since their readers use the source.
    """

    target: Target
    engine: str
    entry: str
    blocks: int
    printed: tuple[str, ...]
    schedule: Schedule = PROGRAM
    left_out: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    fallbacks: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    fused: tuple[tuple[str, ...], ...] = ()
    forwarded: tuple[str, ...] = ()
    coverage: Any = None  # how much of its outputs was written, if the kernel measured it

    def __repr__(self) -> str:
        blocks = f"{self.blocks} block{'s' if self.blocks != 1 else ''}"
        how = "" if self.schedule == PROGRAM else f", schedule {self.schedule}"
        return f"@{self.entry} on {self.target}, engine {self.engine}, {blocks}{how}"


@dataclass(slots=True)
class _Ready:
    """A program compiled for a target, and a cache of its calls."""

    target: Target
    kernel: PreparedKernel
    calls: Calls[FastPath] = field(default_factory=Calls["FastPath"])
    seen: set[Any] = field(default_factory=set[Any])  # calls that were checked for warnings

    def run(
        self,
        args: Sequence[Argument],
        blocks: Blocks,
        progress: Progress | None,
        timeout: float | None,
        coverage: bool | None,
    ) -> Report:
        key = tuple(kind_of(blocks, args))
        like = self.calls.get(key) if progress is None else None
        if like is not None:
            return like.run(args, timeout)
        kernel = self.kernel
        chip = Device(self.target.profile, engine=kernel.engine, check_reads=kernel.checks)
        done = chip.run(Launch.of(kernel, chip, args, blocks, progress, timeout))
        found = report(done, self.target)
        if key not in self.seen:
            self.seen.add(key)
            warn(done, coverage)
        if direct := kernel.direct(done, range(len(args)), found):
            self.calls.keep(key, direct)
        return found


_known: ProgramCache[_Ready] = ProgramCache()


@renamed(checks="check_reads")
def launch(
    program: Program,
    *,
    entry: str | None = None,
    args: Sequence[Argument] = (),
    blocks: Blocks = 1,
    profile: str | None = None,
    device: str | None = None,
    engine: str | None = None,
    check: bool = True,
    check_reads: bool = False,
    observer: Observer | None = None,
    stepper: Tap | None = None,
    progress: Progress | None = None,
    schedule: Schedule | str | None = None,
    timeout: float | None = None,
    coverage: bool | None = None,
) -> Report:
    """Run one kernel. Arrays are global memory, changed in place, in the parameters' order.

    `progress` is called after each block with the blocks done and their number.
    `schedule` decides the order of effects that synchronisation leaves open: program, early, late,
    random:SEED. `timeout` ends a launch that takes longer, in seconds.
    `check_reads`: the jit engine reports reads of local memory that was never written.
    `check=False` leaves out rules and warnings; `coverage=False`, as PTO_COVERAGE=0, only the
    warnings of a first run: holes, blocks with nothing to do, a tile that is read unwritten.
    """
    module, watched = load(program), bool(observer or stepper)
    when = PROGRAM if schedule is None else _schedule(schedule, watched=watched)

    def prepare() -> _Ready:
        chosen = _engine(engine, check_reads)
        target, kernels = _target(module, profile, device, check), entry_functions(module, entry)
        return _Ready(
            target, PreparedKernel(module, kernels, target.profile, None, chosen, check_reads)
        )

    if not watched and (when is PROGRAM or when == PROGRAM):
        how = entry, profile, device, engine, check, check_reads, *switches()
        looks = coverage if check else False
        return _known.get(module, how, prepare).run(args, blocks, progress, timeout, looks)
    chosen = _engine(engine, check_reads)
    target, kernels = _target(module, profile, device, check), entry_functions(module, entry)
    chip = Device(target.profile, observer=observer, engine=chosen, check_reads=check_reads)
    automatic = mode_of(kernels) == "automatic"
    if automatic and count_of(blocks) == 1:
        when = PROGRAM  # a compiler is yet to order the pipes, and there is only one block
    chip.tap = stepper or (_scheduler(when, target, automatic) if when != PROGRAM else chip.tap)
    kernel = PreparedKernel(module, kernels, target.profile, chip.tap, chosen, check_reads)
    return report(chip.run(Launch.of(kernel, chip, args, blocks, progress, timeout)), target, when)


def _engine(asked: str | None, check_reads: bool) -> str:
    found = chosen_engine(asked)
    if check_reads and found != "jit":
        raise fail(
            "PTO-U092", "check_reads works on the jit engine only; use the sanitizer on this engine"
        )
    return found


def report(
    done: Launch, target: Target, schedule: Schedule = PROGRAM, name: str | None = None
) -> Report:
    """The report of a finished launch."""
    kernel, name = done.kernel, name or done.kernel.name
    return Report(
        target,
        kernel.engine,
        name,
        done.blocks,
        done.printed,
        schedule,
        left_out=kernel.left_out,
        fallbacks=done.fallbacks,
        fused=tuple(kernel.fused),
        forwarded=tuple(kernel.forwarded),
    )


def _scheduler(when: Schedule, target: Target, automatic: bool) -> Tap:
    from pto.run.order.deferred import Scheduler

    return Scheduler(when, target.profile.sync, automatic)


def _schedule(asked: Schedule | str | None, *, watched: bool) -> Schedule:
    found = parse_schedule(asked)
    if found != PROGRAM and watched:
        raise fail("PTO-U231", f"schedule {found}: an observer or stepper needs schedule program")
    return found


def _target(module: Module, profile: str | None, device: str | None, check: bool) -> Target:
    if not check:
        return target_of(module, profile=profile, device=device)
    target, findings = judge(module, profile=profile, device=device)
    require_legal(findings)
    return target
