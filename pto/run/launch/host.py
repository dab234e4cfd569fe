"""The host: prepares arguments, submits programs, gets arrays back. It executes nothing itself.

Launched programs are cached: each is checked, planned and compiled once. The key is the module
object; a module that has changed since is compiled again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy.typing as npt

from pto.core.errors import fail
from pto.ir.graph import Module
from pto.plan.calls import entry_functions
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
from pto.run.launch.outcome import warn
from pto.run.launch.prepared import PreparedKernel
from pto.run.launch.progress import Progress
from pto.run.machine.device import Device
from pto.run.order.schedule import PROGRAM, Schedule, parse_schedule
from pto.target.profile import Target
from pto.verify import judge
from pto.verify.program import target_of

if TYPE_CHECKING:
    from pto.run.jit.runtime.direct import FastPath
    from pto.run.watch.events import Hook, Observer


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
        chip = Device(self.target.profile, engine=kernel.engine)
        done = chip.run(Launch.of(kernel, chip, args, blocks, progress, timeout))
        outcome = report(done, self.target)
        if key not in self.seen:
            self.seen.add(key)
            warn(done, coverage)
        if direct := kernel.direct(done, range(len(args)), outcome):
            self.calls.keep(key, direct)
        return outcome


# ---- programs that were launched before

_KEPT: Final = 64
_Made = TypeVar("_Made")


class ProgramCache(Generic[_Made]):
    """A cache of results by module and options; the least recently used are dropped."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[_Snapshot, _Made]] = OrderedDict()
        self._seen = WeakValueDictionary[int, _Snapshot]()  # of modules with several entries
        self._lock = threading.Lock()

    def get(self, module: Module, how: Hashable, make: Callable[[], _Made]) -> _Made:
        """The result of `make` for this module and these options, made again after a change."""
        key = id(module), how
        with self._lock:
            entry = self._made.get(key)
            if entry is not None and entry[0].is_as_it_was():
                self._made.move_to_end(key)
                return entry[1]
            before = self._seen.get(id(module))
        if before is None or not before.is_as_it_was():
            before = _Snapshot(module)
        value = make()
        with self._lock:
            self._seen[id(module)] = before
            self._made[key] = before, value
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return value


_OF_OPERATION: Final = attrgetter("row", "operands", "attrs", "results", "regions", "segments")
_OF_BLOCK: Final = attrgetter("ops", "args")


class _Snapshot:
    """The state of a module: its operations in order, their fields, and the types of values.

    Lists of the same objects are compared without Python code.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        ops = self._ops = list(module.walk())
        regions = [region for op in ops for region in op.regions]
        blocks = [block for region in regions for block in region.blocks]
        values = [value for op in ops for value in op.results]
        values += [value for block in blocks for value in block.args]
        self._parts = [
            (of, objects, list(map(_kept, map(of, objects))))
            for of, objects in (
                (_OF_OPERATION, ops),
                (_OF_BLOCK, blocks),
                (attrgetter("blocks"), regions),
                (attrgetter("type"), values),
            )
        ]

    def is_as_it_was(self) -> bool:
        if self._module.op is not self._ops[0]:
            return False
        for of, objects, before in self._parts:  # noqa: SIM110 - a call less
            if list(map(of, objects)) != before:
                return False
        return True


def _kept(part: Any) -> Any:
    """A copy of one field, or of a tuple of them, that later changes of lists do not affect."""
    if type(part) is tuple:
        return tuple([_kept(item) for item in part])  # pyright: ignore[reportUnknownVariableType]
    return part.copy() if type(part) in (list, dict) else part  # pyright: ignore


_known: ProgramCache[_Ready] = ProgramCache()


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
    observer: Observer | None = None,
    stepper: Hook | None = None,
    progress: Progress | None = None,
    schedule: Schedule | str | None = None,
    timeout: float | None = None,
    coverage: bool | None = None,
) -> Report:
    """Run one kernel. Arrays are global memory, changed in place, in the parameters' order.

    `progress` is called after each block with the blocks done and their number.
    `schedule` decides the order of effects that synchronisation leaves open: program, early, late,
    random:SEED. `timeout` ends a launch that takes longer, in seconds.
    `check=False` leaves out rules and warnings; `coverage=False`, as PTO_COVERAGE=0, only the
    warnings of a first run: holes, blocks with nothing to do, a tile that is read unwritten.
    """
    module, watched = load(program), bool(observer or stepper)
    when = PROGRAM if schedule is None else _schedule(schedule, watched=watched)

    def prepare() -> _Ready:
        chosen = chosen_engine(engine)
        target, kernels = _target(module, profile, device, check), entry_functions(module, entry)
        return _Ready(target, PreparedKernel(module, kernels, target.profile, None, chosen))

    if not watched and (when is PROGRAM or when == PROGRAM):
        how = entry, profile, device, engine, check, *switches()
        looks = coverage if check else False
        return _known.get(module, how, prepare).run(args, blocks, progress, timeout, looks)
    chosen = chosen_engine(engine)
    target, kernels = _target(module, profile, device, check), entry_functions(module, entry)
    chip = Device(target.profile, observer=observer, engine=chosen)
    automatic = mode_of(kernels) == "automatic"
    if automatic and count_of(blocks) == 1:
        when = PROGRAM  # a compiler is yet to order the pipes, and there is only one block
    chip.tap = stepper or (_scheduler(when, target, automatic) if when != PROGRAM else chip.tap)
    kernel = PreparedKernel(module, kernels, target.profile, chip.tap, chosen)
    return report(chip.run(Launch.of(kernel, chip, args, blocks, progress, timeout)), target, when)


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


def _scheduler(when: Schedule, target: Target, automatic: bool) -> Hook:
    from pto.run.order.deferred import Scheduler

    return Scheduler(when, target.profile.sync, automatic)


def _schedule(requested: Schedule | str | None, *, watched: bool) -> Schedule:
    schedule = PROGRAM if requested is None else parse_schedule(requested)
    if schedule != PROGRAM and watched:
        raise fail(
            "PTO-U231", f"schedule {schedule}: an observer or stepper needs schedule program"
        )
    return schedule


def _target(module: Module, profile: str | None, device: str | None, check: bool) -> Target:
    if not check:
        return target_of(module, profile=profile, device=device)
    target, findings = judge(module, profile=profile, device=device)
    require_legal(findings)
    return target
