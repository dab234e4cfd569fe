"""`kernel.optimize`: a kernel with the fastest schedule that a search finds, and what it gained.

The program is traced for the shapes of the arguments, so that passes see numbers. Before it is used
it is checked: order proved, and bits compared with the kernel as written on small launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from pto.core.errors import PtoError
from pto.ir.copied import copied
from pto.lang.bound import Bound
from pto.lang.call.place import mistake
from pto.lang.kernel import Kernel
from pto.lang.parameter import shaped
from pto.optimize.accept import Comparison, bits, random_array
from pto.optimize.grid import grid_of
from pto.optimize.outcome import Task
from pto.optimize.report import Optimization
from pto.optimize.search import cores_of
from pto.prove.assume import GRID
from pto.run.launch.call import extents_of
from pto.target.profile import device as find_device
from pto.target.profile import profile as find_profile
from pto.transform.bind import bind
from pto.transform.schedule import ProgramLaunch, Schedule, scheduled

if TYPE_CHECKING:
    from pto.core.dtypes import DType
    from pto.lang.tracing import Shape, Specialised
    from pto.observe.timing import Bench, Timing
    from pto.run.launch.call import Blocks, Launch
    from pto.run.launch.host import Report
    from pto.run.machine.device import Device

P = ParamSpec("P")
_EXTENTS = (600, 300, 100)  # the largest extents of arrays in a small launch
_COMPARED = 2  # small launches


class SizedKernel(Kernel[P]):
    """A kernel whose programs have every size as a number."""

    key: tuple[object, ...] = ()  # constants and shapes of the last call

    def _find(self, values: list[object], shapes: list[Shape]) -> Specialised:
        self.key = (self._fixed(values), *shapes)
        return super()._find(values, shapes)

    def _sizes(
        self, shapes: list[tuple[tuple[int, ...], DType]]
    ) -> tuple[list[Shape], dict[str, int]]:
        super()._sizes(shapes)  # raises where named sizes differ
        return [*shapes], {}


@dataclass(frozen=True, slots=True)
class SizedLaunch:
    """A launch of a kernel on arrays of known shapes."""

    key: tuple[object, ...]  # constants and shapes
    made: Specialised
    args: list[object]
    grid: tuple[int, ...]
    follows: bool  # the grid is that which the stores of the program need
    launch: ProgramLaunch


class OptimizedKernel(SizedKernel[P]):
    """A kernel with a schedule, for arguments of the shapes that it was optimised for.

    It is launched on its own grid: `kernel(x, y)` runs all its blocks.
    """

    def __init__(
        self, kernel: Kernel[P], sized: SizedLaunch, launch: ProgramLaunch, report: Optimization
    ) -> None:
        how: dict[str, Any] = {"kind": kernel.kind, "peer": kernel.peer, "debug": kernel.debug}
        super().__init__(kernel.function, kernel.profile, kernel.name, **how)
        self.kernel = kernel
        self.launch = launch
        self.blocks = launch.blocks
        self.grid = sized.grid  # of the kernel as written
        self.report = report
        self.key = sized.key
        self._made = replace(sized.made, module=launch.module)
        self._last = self._made

    def __getitem__(self, blocks: Blocks) -> Bound[P]:
        return Bound(self, self._own_grid(blocks))

    def run(self, *args: object, **named: object) -> Report:
        return super().run(*args, **self._on_own_grid(named))

    def launched(
        self,
        device: Device,
        args: Sequence[object],
        named: Mapping[str, object],
        blocks: Blocks | None = None,
    ) -> Launch:
        return super().launched(device, args, named, self._own_grid(blocks))

    def sanitize(self, *args: object, **named: object) -> Any:
        return super().sanitize(*args, **self._on_own_grid(named))

    def time(self, *args: object, **named: object) -> Timing:
        return super().time(*args, **self._on_own_grid({"device": self.report.device} | named))

    def export(self, *args: object, **named: object) -> Any:
        return super().export(*args, **self._on_own_grid({"device": self.report.device} | named))

    def _on_own_grid(self, named: Mapping[str, object]) -> dict[str, Any]:
        return {**named, "blocks": self._own_grid(named.get("blocks"))}

    def _own_grid(self, blocks: Any) -> Blocks:
        """The grid of the optimised launch, also where that of the kernel as written is given."""
        if blocks is not None:
            extents = extents_of(blocks)
            if prod(extents) != prod(self.grid) and extents != (self.blocks,):
                raise mistake(
                    "PTO-U275",
                    f"{self.name} was optimised for a grid of {self.grid}, not {blocks}",
                    help="leave the grid out: an optimised kernel has its own",
                )
        return self.blocks

    def _find(self, values: list[object], shapes: list[Shape]) -> Specialised:
        key = (self._fixed(values), *shapes)
        if key != self.key:
            raise mistake(
                "PTO-U275",
                f"{self.name} was optimised for other shapes or constants",
                help=f"optimise it for these too: {self.name}.kernel.optimize(...)",
            )
        return self._made


def optimize(
    kernel: Kernel[P],
    args: Sequence[object],
    named: Mapping[str, object],
    *,
    blocks: Blocks | None,
    device: str | None,
    again: bool,
) -> OptimizedKernel[P]:
    """The kernel with the fastest schedule for a launch; a cached result is used unless `again`."""
    from pto.observe.timing import bench  # only here: a plain run needs no model

    if isinstance(kernel, OptimizedKernel):
        kernel = kernel.kernel
    if device is not None:
        kernel = kernel.on(find_device(device).profile)
    chip = bench(device, kernel.profile)
    values = [
        shaped(p, v) for p, v in zip(kernel.parameters, kernel.values(args, named), strict=True)
    ]
    sized = _sized(kernel, values, blocks, chip)

    def compare(schedule: Schedule) -> list[Comparison]:
        small = islice(_small_launches(kernel, values, sized, chip), _COMPARED)
        return [_compared(each, schedule) for each in small]

    task = Task(kernel.name, sized.launch, sized.args, chip, compare)
    launch, report = task.outcome(again=again)
    return OptimizedKernel(kernel, sized, launch, report)


def _sized(
    kernel: Kernel[...], values: list[object], blocks: Blocks | None, chip: Bench
) -> SizedLaunch:
    """The launch of a kernel on these arguments, on a grid that follows from it unless given."""
    how: dict[str, Any] = {"kind": kernel.kind, "peer": kernel.peer, "debug": kernel.debug}
    fixed = SizedKernel(kernel.function, kernel.profile, kernel.name, **how)
    made, _, given = fixed.specialise(values, 1)
    launch = ProgramLaunch(copied(made.module), 1)
    needed = grid_of(launch.module, {}, cores_of(launch, chip))
    grid = _required(needed, kernel.name) if blocks is None else extents_of(blocks)
    launch.blocks = prod(grid)
    for function in launch.functions:
        bind(function, dict(zip(GRID, (*grid, 1), strict=False)))
    given = given[: len(given) - len(GRID) * made.has_grid]
    made = replace(made, has_grid=False, module=launch.module, ready={}, seen=set())
    return SizedLaunch(fixed.key, made, given, grid, needed == grid, launch)


def _required(grid: tuple[int, ...] | None, kernel: str) -> tuple[int, ...]:
    if grid is None:
        raise mistake(
            "PTO-U274",
            f"{kernel}: the grid does not follow from what its blocks store",
            help="give it: blocks=24, or blocks=(4, 8)",
        )
    return grid


def _compared(small: SizedLaunch, schedule: Schedule) -> Comparison:
    """A small launch with a schedule, on so few cores that each has several blocks."""
    cores = max(1, small.launch.blocks // 3)
    few = tuple(
        replace(each, number=cores) if each.name == "persistent" else each for each in schedule
    )
    return Comparison(small.launch, scheduled(small.launch, few)[0], small.args)


def _small_launches(
    kernel: Kernel[...], values: list[object], sized: SizedLaunch, chip: Bench
) -> Iterator[SizedLaunch]:
    """Launches of the kernel on small arrays with random elements, the largest first.

    Extents are cut alike, so that arrays still fit each other. A launch that the kernel as written
    cannot run, as a size that it refuses, is left out.
    """
    profile = find_profile(kernel.profile)
    for extent in _EXTENTS:
        small = [random_array(v, extent) if isinstance(v, np.ndarray) else v for v in values]
        same = all(
            getattr(a, "shape", None) == getattr(b, "shape", None)
            for a, b in zip(small, values, strict=True)
        )
        if not same and not sized.follows:
            continue
        try:
            launch = _sized(kernel, small, sized.grid if same else None, chip)
            bits(launch.launch, launch.args, "jit", profile)
        except PtoError:
            continue
        yield launch
        if same:
            return
