"""`pto.tune` and `@pto.autotune`: which constants make a kernel fastest, by the timing model.

A configuration gives values to parameters of the kernel that are Python constants. It counts when
its program is legal, fits the buffers, and gives what the first one gives; then its time decides.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pto.core.errors import PtoError, fail
from pto.lang.kernel import Blocks, Kernel
from pto.lang.trial import Config, Sheet, Trial, differs, refused_by
from pto.run.launch import place
from pto.run.launch.call import count_of
from pto.run.launch.progress import Bar
from pto.target.device import device as find_device

if TYPE_CHECKING:
    from pto.cluster.crew import Crew

Grid = Blocks | Callable[[Config], Blocks]


@dataclass(frozen=True, slots=True)
class Tuning:
    """Every configuration that was tried, the fastest first. Printing it gives the table."""

    trials: tuple[Trial, ...]

    @property
    def best(self) -> Config:
        return self.trials[0].config

    @property
    def us(self) -> float:
        return self.trials[0].us or 0.0

    def __str__(self) -> str:
        return "\n".join(map(str, self.trials))

    __repr__ = __str__


def configurations(space: Mapping[str, Sequence[Any]] | Iterable[Config]) -> list[Config]:
    """All combinations of a mapping's values; a list stands for itself."""
    if not isinstance(space, Mapping):
        return [dict(each) for each in space]
    values = cast(Mapping[str, Sequence[Any]], space)
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def tune(
    kernel: Kernel,
    space: Mapping[str, Sequence[Any]] | Iterable[Config],
    args: Sequence[Any],
    *,
    blocks: Grid = 1,
    device: str | None = None,
    rtol: float = 0.0,
    processes: int | None = None,
) -> Tuning:
    """Try every configuration on copies of `args`; the result has the fastest first.

    `space` is a mapping of names to values, or a list of mappings. `blocks` may be a function of
    the configuration. `rtol` is how far a result may lie from the first one's: 0 asks for the same
    bits, which another order of sums does not give. Shapes may stand for arrays: nothing is
    compared then.
    """
    configs = configurations(space)
    if not configs:
        raise fail("PTO-U270", "there is no configuration to try")
    job = _Job(kernel, list(args), blocks, device, rtol)
    first = job.outcome(configs[0])
    trials = [first.trial]
    if first.arrays is not None:
        job.wanted = first.arrays
    with Bar("configurations") as seen:
        for n, trial in enumerate(_tried(job, configs[1:], processes), 2):
            trials.append(trial)
            seen(n, len(configs))
    counted = sorted((t for t in trials if t.us is not None), key=lambda t: t.us or 0.0)
    if not counted:
        reasons = "; ".join(f"{t}" for t in trials[:3])
        raise fail("PTO-U271", f"no configuration of {kernel.name} counts: {reasons}")
    return Tuning((*counted, *(t for t in trials if t.us is None)))


@dataclass(slots=True)
class _Outcome:
    trial: Trial
    arrays: list[Any] | None = None


@dataclass(slots=True)
class _Job:
    """What every trial needs."""

    kernel: Kernel
    args: list[Any]
    blocks: Grid
    device: str | None
    rtol: float
    wanted: list[Any] | None = None

    def outcome(self, config: Config) -> _Outcome:
        grid = self.blocks(config) if callable(self.blocks) else self.blocks
        try:
            arrays = self._run(config, grid)
            wrong = differs(arrays, self.wanted, self.rtol)
            if wrong:
                return _Outcome(Trial(config, refused=wrong))
            timing = self.kernel.time(*self.args, blocks=grid, device=self.device, **config)
        except PtoError as error:
            return _Outcome(refused_by(config, error))
        return _Outcome(Trial(config, timing.us, timing.bound), arrays)

    def sheet(self, config: Config) -> Sheet:
        """The same trial as data, for a worker that has no kernel."""
        grid = self.blocks(config) if callable(self.blocks) else self.blocks
        kernel = self.kernel
        timed = kernel if self.device is None else kernel.on(find_device(self.device).profile)
        (ran, given), (priced, _) = (
            each.called(self.args, config, grid) for each in (kernel, timed)
        )
        profiles, runs = (kernel.profile, timed.profile), self.wanted is not None
        return Sheet.of(config, (ran, priced), profiles, given, count_of(grid), runs)

    def _run(self, config: Config, grid: Blocks) -> list[Any] | None:
        """The arrays after a run on copies; None where shapes stand for arrays."""
        if any(isinstance(a, tuple) for a in self.args):
            return None
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in self.args]
        self.kernel.run(*given, blocks=grid, **config)
        return [a for a in given if isinstance(a, np.ndarray)]


_AT_WORK: list[_Job] = []  # of a process that was forked: the job it belongs to


def _tried(job: _Job, configs: list[Config], processes: int | None) -> Iterable[Trial]:
    """Side by side on a cluster, or where processes can be forked, in the order of `configs`."""
    crew = _crew()
    if crew is not None:
        return _sent(crew, job, configs)
    count = min(processes or os.cpu_count() or 1, len(configs))
    if count < 2 or sys.platform == "win32":
        return (job.outcome(config).trial for config in configs)
    return _forked(job, configs, count)


def _crew() -> Crew | None:
    if place.current() is None:
        return None
    from pto.cluster import tasks

    return tasks.crew()


def _sent(crew: Crew, job: _Job, configs: list[Config]) -> Iterator[Trial]:
    """Programs travel, not kernels: a worker has nothing of the file that they are written in."""
    from pto.cluster import tasks

    made: list[Sheet | Trial] = []
    for config in configs:
        try:
            made.append(job.sheet(config))
        except PtoError as error:
            made.append(refused_by(config, error))
    sheets = [each for each in made if isinstance(each, Sheet)]
    shared = job.device, job.rtol, job.wanted
    answers = tasks.in_order(crew, "pto.lang.trial:tried", sheets, shared)
    for each in made:
        yield next(answers) if isinstance(each, Sheet) else each


def _forked(job: _Job, configs: list[Config], count: int) -> Iterable[Trial]:
    _AT_WORK.append(job)
    try:
        with multiprocessing.get_context("fork").Pool(count) as pool:
            yield from pool.imap(_work, configs)
    finally:
        _AT_WORK.pop()


def _work(config: Config) -> Trial:
    return _AT_WORK[-1].outcome(config).trial


@dataclass(slots=True)
class Autotuned:
    """A kernel that looks for its fastest configuration at the first call with new shapes."""

    kernel: Kernel
    configs: list[Config]
    blocks: Grid
    device: str | None
    rtol: float
    chosen: dict[Any, Tuning] = field(default_factory=dict[Any, Tuning])

    def __call__(self, *args: Any) -> Any:
        found = self.tuning(*args).best
        grid = self.blocks(found) if callable(self.blocks) else self.blocks
        return self.kernel.run(*args, blocks=grid, **found)

    def tuning(self, *args: Any) -> Tuning:
        """What was tried for arguments of these shapes; made once."""
        key = tuple((a.shape, a.dtype) if isinstance(a, np.ndarray) else a for a in args)
        if key not in self.chosen:
            self.chosen[key] = tune(
                self.kernel,
                self.configs,
                args,
                blocks=self.blocks,
                device=self.device,
                rtol=self.rtol,
            )
        return self.chosen[key]


def autotune(
    configs: Mapping[str, Sequence[Any]] | Iterable[Config],
    *,
    blocks: Grid = 1,
    device: str | None = None,
    rtol: float = 0.0,
) -> Callable[[Kernel], Autotuned]:
    """`@pto.autotune(configs=[...])` above `@pto.kernel`: calls run the fastest configuration."""
    return lambda kernel: Autotuned(kernel, configurations(configs), blocks, device, rtol)
