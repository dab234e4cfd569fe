"""`pto.tune` and `@pto.autotune`: find the fastest constants of a kernel by the timing model.

A configuration gives values to the constant parameters of the kernel. It is accepted if its program
is legal, fits the buffers, writes all of its results, and gives those of the first configuration;
the shortest time wins. Results are cached on disk by program (`PTO_CACHE_DIR`, `pto cache`).
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, cast

import numpy as np

from pto.cluster.kernel_message import ProgramText
from pto.core import disk_cache as cache
from pto.core.edition import edition
from pto.core.errors import PtoError, fail
from pto.core.processors import usable
from pto.ir.graph import Module
from pto.ir.text.printer import print_module
from pto.lang.kernel import Blocks, Kernel
from pto.lang.optimize import grid_of_call
from pto.lang.parameter import shaped
from pto.lang.trial import Arrays, ArrayShape, Config, Sheet, Trial, differs, refused_by
from pto.run.launch.call import count_of
from pto.run.launch.engine import cluster_target
from pto.run.launch.outcome import LaunchOutcome
from pto.run.launch.progress import ProgressBar
from pto.run.machine.device import Device
from pto.target.profile import device as find_device

if TYPE_CHECKING:
    from pto.cluster.worker_pool import WorkerPool

Args = Sequence[object] | Mapping[str, object]  # in their order, or by their names
Grid = Blocks | Callable[[Config], Blocks] | None  # None: as many blocks as the stores need


@dataclass(frozen=True, slots=True)
class Tuning:
    """All tried configurations, the fastest first. Prints as a table."""

    trials: tuple[Trial, ...]
    kept: bool = False  # read from the cache

    @property
    def best(self) -> Config:
        return self.trials[0].config

    @property
    def us(self) -> float:
        return self.trials[0].us or 0.0

    def __str__(self) -> str:
        return "\n".join(map(str, self.trials))

    __repr__ = __str__


def configurations(space: Mapping[str, Sequence[object]] | Iterable[Config]) -> list[Config]:
    """All combinations of a mapping's values; a list of configurations unchanged."""
    if not isinstance(space, Mapping):
        return [dict(config) for config in space]
    values = cast(Mapping[str, Sequence[object]], space)
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def tune(
    kernel: Kernel[...],
    space: Mapping[str, Sequence[object]] | Iterable[Config],
    args: Args,
    *,
    blocks: Grid = None,
    device: str | None = None,
    rtol: float = 0.0,
    processes: int | None = None,
    again: bool = True,
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> Tuning:
    """Try every configuration on copies of `args`; the result has the fastest first.

    `space` is a mapping of names to values, or a list of mappings. `blocks` may be a function of
    the configuration; without it each has the grid that its stores need. `rtol` is the allowed
    relative difference to the first result: 0 requires equal bits, which another order of summation
    does not give. A shape may replace an array; then nothing is compared. `on_trial` is called with
    each finished trial, in order. With `again=False` a cached result for the same programs and
    shapes is used.
    """
    configs = configurations(space)
    if not configs:
        raise fail("PTO-U270", "there is no configuration to try")
    job = _Job(kernel, args, blocks, device, rtol)
    name = job.name(configs)
    before = None if again else _kept(name, configs)
    trials = before or []
    for trial in trials:
        on_trial(trial)
    if before is None:
        with ProgressBar("configurations") as advance:
            for trial in _all_tried(job, configs, processes):
                trials.append(trial)
                on_trial(trial)
                advance(len(trials), len(configs))
        cache.store(name, json.dumps([[t.us, t.bound, t.refused] for t in trials]).encode())
    return _ranked(kernel, trials, before is not None)


def _ranked(kernel: Kernel[...], trials: list[Trial], cached: bool) -> Tuning:
    counted = sorted((t for t in trials if t.us is not None), key=lambda t: t.us or 0.0)
    if not counted:
        reasons = "; ".join(f"{t.words}: {t.refused}" for t in trials[:3])
        raise fail("PTO-U271", f"every configuration of {kernel.name} is rejected: {reasons}")
    return Tuning((*counted, *(t for t in trials if t.us is None)), cached)


def _kept(name: str, configs: list[Config]) -> list[Trial] | None:
    raw = cache.load(name)
    if raw is None:
        return None
    return [Trial(c, *outcome) for c, outcome in zip(configs, json.loads(raw), strict=True)]


def _kind(value: object) -> object:
    """Shape and type of an array; any other value as it is."""
    return (value.shape, value.dtype) if isinstance(value, np.ndarray) else value


@dataclass(slots=True)
class _Job:
    """The inputs shared by all trials."""

    kernel: Kernel[...]
    args: Args
    blocks: Grid
    device: str | None
    rtol: float
    wanted: Arrays | None = None
    grids: dict[str, Blocks] = field(default_factory=dict[str, Blocks])  # that follow from stores

    def outcome(self, config: Config) -> tuple[Trial, Arrays | None]:
        """The result of a configuration, and the arrays after its run."""
        try:
            values, grid = self.values(config), self.grid(config)
            self._require_whole(values, grid)
            arrays = self._run(values, grid)
            wrong = differs(arrays, self.wanted, self.rtol)
            if wrong:
                return Trial(config, refused=wrong), None
            timing = self.kernel.time(*values, blocks=grid, device=self.device)
        except PtoError as error:
            return refused_by(config, error), None
        return Trial(config, timing.us, timing.bound), arrays

    def name(self, configs: list[Config]) -> str:
        """The cache key of the result, from programs, sizes and settings."""
        parts = [edition(), f"{self.device} {self.rtol}"]
        for config in configs:
            try:
                ran, timed, arguments = self._programs(config)
                kinds = list(map(_kind, arguments))
                parts += [print_module(ran), print_module(timed)]
                parts.append(f"{self.grid(config)} {kinds} {self._runs(self.values(config))}")
            except PtoError as error:
                parts.append(str(error))
        return cache.key("tuning", *parts)

    def sheet(self, config: Config) -> Sheet:
        """A trial as data, for a worker without the kernel's source."""
        self._require_whole(self.values(config), self.grid(config))
        ran, timed, arguments = self._programs(config)
        profiles, runs = (self.kernel.profile, self._timed().profile), self.wanted is not None
        if not runs:
            arguments = [
                ArrayShape(a.shape, a.dtype) if isinstance(a, np.ndarray) else a for a in arguments
            ]
        programs = ProgramText.of(ran), ProgramText.of(timed)
        return Sheet(config, programs, profiles, arguments, count_of(self.grid(config)), runs)

    def grid(self, config: Config) -> Blocks:
        if self.blocks is not None:
            return self.blocks(config) if callable(self.blocks) else self.blocks
        name = repr(config)
        if name not in self.grids:
            self.grids[name] = grid_of_call(self._timed(), self.values(config), self.device)
        return self.grids[name]

    def values(self, config: Config) -> list[object]:
        """The arguments of the kernel, one value per parameter."""
        if isinstance(self.args, Mapping):
            return self.kernel.values((), {**self.args, **config})
        return self.kernel.values(self.args, config)

    def _programs(self, config: Config) -> tuple[Module, Module, list[object]]:
        """The program to run, the program to time, and their arguments."""
        values, grid = self.values(config), self.grid(config)
        ran, arguments = self.kernel.called(values, {}, grid)
        timed, _ = self._timed().called(values, {}, grid)
        return ran.module, timed.module, arguments

    def _timed(self) -> Kernel[...]:
        device = self.device
        return self.kernel if device is None else self.kernel.on(find_device(device).profile)

    def _require_whole(self, values: list[object], grid: Blocks) -> None:
        """Raise if a launch leaves a part of a result as it was: it does less than others."""
        pairs = zip(self.kernel.parameters, values, strict=True)
        device = Device(self.kernel.profile)
        launch = self.kernel.launched(device, [shaped(p, v) for p, v in pairs], {}, grid)
        passed = sum(p.kind != "constant" for p in self.kernel.parameters)
        holes = LaunchOutcome(launch, launch.args[passed:]).unwritten_parts()
        hole = next(holes, None)
        if hole is not None:
            raise PtoError(replace(hole, severity="error"))

    def _runs(self, values: list[object]) -> bool:
        """False if shapes replace arrays, so that there is no data to run on."""
        pairs = zip(self.kernel.parameters, values, strict=True)
        return not any(p.kind == "array" and isinstance(v, tuple) for p, v in pairs)

    def _run(self, values: list[object], grid: Blocks) -> Arrays | None:
        """The arrays after a run on copies."""
        if not self._runs(values):
            return None
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in values]
        self.kernel.run(*copies, blocks=grid)
        return [a for a in copies if isinstance(a, np.ndarray)]


_AT_WORK: list[_Job] = []  # in a forked process: its job


def _all_tried(job: _Job, configs: list[Config], processes: int | None) -> Iterator[Trial]:
    """Run configurations here until one is accepted; its result is the reference for the rest."""
    left = list(configs)
    while left and job.wanted is None:
        trial, job.wanted = job.outcome(left.pop(0))
        yield trial
        if trial.us is not None:
            break
    yield from _tried(job, left, processes)


def _tried(job: _Job, configs: list[Config], processes: int | None) -> Iterable[Trial]:
    """Trials in parallel on a cluster or in forked processes, in the order of `configs`."""
    pool = _pool()
    if pool is not None:
        return _sent(pool, job, configs)
    count = min(processes or usable(), len(configs))
    if count < 2 or sys.platform == "win32":
        return (job.outcome(config)[0] for config in configs)
    return _forked(job, configs, count)


def _pool() -> WorkerPool | None:
    if cluster_target() is None:
        return None
    from pto.cluster import tasks

    return tasks.pool()


def _sent(pool: WorkerPool, job: _Job, configs: list[Config]) -> Iterator[Trial]:
    """Trials on a cluster. Programs are sent, not kernels: workers do not have the source file."""
    from pto.cluster import tasks

    prepared: list[Sheet | Trial] = []
    for config in configs:
        try:
            prepared.append(job.sheet(config))
        except PtoError as error:
            prepared.append(refused_by(config, error))
    sheets = [sheet for sheet in prepared if isinstance(sheet, Sheet)]
    shared = job.device, job.rtol, job.wanted
    answers = tasks.in_order(pool, "pto.lang.trial:tried", sheets, shared)
    for sheet in prepared:
        yield next(answers) if isinstance(sheet, Sheet) else sheet


def _forked(job: _Job, configs: list[Config], count: int) -> Iterable[Trial]:
    _AT_WORK.append(job)
    try:
        with multiprocessing.get_context("fork").Pool(count) as pool:
            yield from pool.imap(_work, configs)
    finally:
        _AT_WORK.pop()


def _work(config: Config) -> Trial:
    return _AT_WORK[-1].outcome(config)[0]


@dataclass(slots=True)
class Autotuned:
    """A kernel that finds its fastest configuration at the first call with new shapes.

    A cached result of `pto tune` or of an earlier process is used.
    """

    kernel: Kernel[...]
    configs: list[Config]
    blocks: Grid
    device: str | None
    rtol: float
    chosen: dict[Hashable, Tuning] = field(default_factory=dict[Hashable, Tuning])

    def __call__(self, *args: object) -> object:
        best = self.tuning(*args).best
        grid = _Job(self.kernel, args, self.blocks, self.device, self.rtol).grid(best)
        return self.kernel.run(*args, blocks=grid, **best)

    def tuning(self, *args: object) -> Tuning:
        """The tuning result for arguments of these shapes; computed once."""
        key = tuple(map(_kind, args))
        if key not in self.chosen:
            self.chosen[key] = tune(
                self.kernel,
                self.configs,
                args,
                blocks=self.blocks,
                device=self.device,
                rtol=self.rtol,
                again=False,
            )
        return self.chosen[key]


def autotune(
    configs: Mapping[str, Sequence[object]] | Iterable[Config],
    *,
    blocks: Grid = None,
    device: str | None = None,
    rtol: float = 0.0,
) -> Callable[[Kernel[...]], Autotuned]:
    """`@pto.autotune(configs=[...])` above `@pto.kernel`: calls run the fastest configuration."""
    return lambda kernel: Autotuned(kernel, configurations(configs), blocks, device, rtol)
