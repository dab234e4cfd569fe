"""`kernel.optimize`: a kernel with the fastest schedule that a search finds, and what it gained.

The program is traced for the shapes of the arguments, so that passes see numbers. Before it is used
it is checked: order proved, and bits compared with the kernel as written on small launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import numpy as np

from pto.core.errors import PtoError
from pto.ir.copied import copied
from pto.lang.bound import Bound
from pto.lang.call.place import mistake
from pto.lang.kernel import Kernel
from pto.lang.parameter import shaped
from pto.optimize.accept import Bits, Comparison, bits, random_array
from pto.optimize.bound import cores_of
from pto.optimize.grid import grid_of
from pto.optimize.outcome import Task
from pto.optimize.report import Optimization
from pto.optimize.search import Numbers, Point, Program
from pto.prove.assume import GRID
from pto.run.launch.call import extents_of
from pto.target.profile import device as find_device
from pto.target.profile import profile as find_profile
from pto.transform.bind import bind
from pto.transform.schedule import ProgramLaunch, scheduled

if TYPE_CHECKING:
    from pto.core.dtypes import DType
    from pto.cxx.export.folder import Exported
    from pto.lang.tracing import Shape, Specialised
    from pto.observe import Verdict
    from pto.observe.timing import Bench, Timing
    from pto.run.launch.arrays import Array
    from pto.run.launch.call import Blocks, Launch
    from pto.run.launch.host import Report
    from pto.run.machine.device import Device

P = ParamSpec("P")
_SMALL = (512, 300, 100)  # the largest extents of arrays in a small launch
_EXTENTS = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512)  # of tiles, for constants of a kernel
_COMPARED = 2  # small launches


class SizedKernel(Kernel[P]):
    """A kernel that traces every size as a number."""

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
    values: list[object]  # of the parameters of the kernel
    args: list[object]  # of the program
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
        super().__init__(
            kernel.function,
            kernel.profile,
            kernel.name,
            kind=kernel.kind,
            peer=kernel.peer,
            debug=kernel.debug,
        )
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

    def sanitize(self, *args: object, **named: object) -> Verdict:
        return super().sanitize(*args, **self._on_own_grid(named))

    def time(self, *args: object, **named: object) -> Timing:
        return super().time(*args, **self._on_own_grid({"device": self.report.device} | named))

    def export(self, *args: object, **named: object) -> Exported:
        return super().export(*args, **self._on_own_grid({"device": self.report.device} | named))

    def _on_own_grid(self, named: Mapping[str, object]) -> dict[str, Any]:
        return {**named, "blocks": self._own_grid(cast("Blocks | None", named.get("blocks")))}

    def _own_grid(self, blocks: Blocks | None) -> Blocks:
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
    data: bool,
    again: bool,
) -> OptimizedKernel[P]:
    """The kernel with the fastest schedule for a launch; a cached result is used unless `again`."""
    from pto.observe.timing import bench  # only here: a plain run needs no model

    if isinstance(kernel, OptimizedKernel):
        kernel = kernel.kernel
    if device is not None:
        kernel = kernel.on(find_device(device).profile)
    chip = bench(device, kernel.profile)
    arguments = signature(kernel.function).bind_partial(*args, **named).arguments
    values = dict(zip((p.name for p in kernel.parameters), kernel.values(args, named), strict=True))
    values = {p.name: shaped(p, values[p.name]) for p in kernel.parameters}
    subject = _Subject(kernel, values, blocks, chip, free=set(values) - set(arguments))
    written = subject.sized({})
    task = Task(
        kernel.name,
        subject.program,
        subject.constants(),
        subject.space,
        chip,
        subject.compared,
        data,
    )
    program, report = task.outcome(again=again)
    return OptimizedKernel(kernel, written, program.launch, report)


def grid_of_call(kernel: Kernel[...], values: Sequence[object], device: str | None) -> Blocks:
    """The grid on which the stores of a kernel fill its arrays; an error if it does not follow."""
    from pto.observe.timing import bench  # only here: a plain run needs no model

    shapes = [shaped(p, v) for p, v in zip(kernel.parameters, values, strict=True)]
    return _sized(kernel, shapes, None, bench(device, kernel.profile)).grid


@dataclass(slots=True)
class _Subject:
    """A kernel that is optimised for a launch."""

    kernel: Kernel[...]
    values: dict[str, object]  # of all parameters
    blocks: Blocks | None  # the grid, if it is given
    chip: Bench
    free: set[str]  # parameters with their default values
    known: dict[tuple[object, ...], SizedLaunch] = field(
        default_factory=dict[tuple[object, ...], SizedLaunch]
    )

    def constants(self) -> dict[str, int]:
        """The constants that may change: numbers with their defaults, if the grid follows."""
        if self.blocks is not None:
            return {}
        values = ((p.name, self.values[p.name]) for p in self.kernel.parameters)
        return {
            name: value
            for name, value in values
            if name in self.free and type(value) is int and value in _EXTENTS
        }

    def space(self) -> dict[str, list[int]]:
        """Values to try for each constant on which the bits of results do not depend."""
        small = next(self._small_launches({}), None)
        if small is None:
            return {}
        wanted = self._bits(small)
        candidates: dict[str, list[int]] = {}
        for name, value in self.constants().items():
            for other in (2 * value, value // 2):
                try:
                    if self._bits(self._on_small(small, {name: other})) == wanted:
                        near = [n for n in _EXTENTS if value <= n * 8 <= value * 64]
                        candidates[name] = near
                    break
                except PtoError:
                    continue
        return candidates

    def program(self, constants: Numbers) -> Program:
        """The launch with other constants, on the grid that follows."""
        sized = self.sized(constants)
        return Program(sized.launch, sized.args)

    def sized(self, constants: Numbers) -> SizedLaunch:
        key = tuple(constants.items())
        if key not in self.known:
            values = {**self.values, **constants}
            self.known[key] = _sized(self.kernel, [*values.values()], self.blocks, self.chip)
        return self.known[key]

    def compared(self, point: Point) -> list[Comparison]:
        """Small launches as written and at a point, each with several blocks a core."""
        comparisons: list[Comparison] = []
        for small in islice(self._small_launches(point.constants), _COMPARED):
            other = self._on_small(small, point.constants)
            few = {**point.passes}
            if "persistent" in few:
                few["persistent"] = max(1, other.launch.blocks // 3)
            schedule = Point(point.constants, few).schedule
            after = scheduled(other.launch, schedule)[0]
            comparisons.append(Comparison(small.launch, after, small.args))
        return comparisons

    def _small_launches(self, constants: Numbers) -> Iterator[SizedLaunch]:
        """Launches of the kernel on small arrays with random elements, the largest first.

        Extents are cut alike, so that arrays still fit each other. A launch that the kernel as
        written or with other constants refuses is left out.
        """
        for extent in _SMALL:
            values = {
                name: random_array(v, extent) if isinstance(v, np.ndarray) else v
                for name, v in self.values.items()
            }
            same = all(
                np.shape(cast("Array", values[n])) == np.shape(cast("Array", v))
                for n, v in self.values.items()
                if isinstance(v, np.ndarray)
            )
            if not same and not self.sized({}).follows:
                continue
            blocks = self.blocks if same else None
            try:
                small = _sized(self.kernel, [*values.values()], blocks, self.chip)
                self._bits(small)
                self._bits(self._on_small(small, constants))
            except PtoError:
                continue
            yield small
            if same:
                return

    def _on_small(self, small: SizedLaunch, constants: Numbers) -> SizedLaunch:
        """A small launch with other constants."""
        if not constants:
            return small
        values = {**dict(zip(self.values, small.values, strict=True)), **constants}
        return _sized(self.kernel, [*values.values()], None, self.chip)

    def _bits(self, launch: SizedLaunch) -> Bits:
        profile = find_profile(self.kernel.profile)
        return bits(launch.launch, launch.args, "jit", profile)


def _sized(
    kernel: Kernel[...], values: list[object], blocks: Blocks | None, chip: Bench
) -> SizedLaunch:
    """The launch of a kernel on these arguments, on a grid that follows from it unless given."""
    fixed = SizedKernel(
        kernel.function,
        kernel.profile,
        kernel.name,
        kind=kernel.kind,
        peer=kernel.peer,
        debug=kernel.debug,
    )
    try:
        fixed.specialise(values)
        traced = fixed
    except PtoError:  # it needs a size as a number of the program, to convert it
        traced = kernel
    specialised, _, run_args = traced.specialise(values)
    launch = ProgramLaunch(copied(specialised.module), 1)
    count = sum(p.kind != "constant" for p in kernel.parameters)
    names = [arg.name for arg in launch.functions[0].regions[0].block.args]
    numbers = cast("dict[str, int]", dict(zip(names[count:], run_args[count:], strict=True)))
    needed = grid_of(launch.module, numbers, cores_of(launch, chip))
    grid = _required(needed, kernel.name) if blocks is None else extents_of(blocks)
    launch.blocks = prod(grid)
    numbers |= {name: n for name, n in zip(GRID, (*grid, 1), strict=False) if name in numbers}
    for function in launch.functions:
        bind(function, numbers)
    specialised = replace(specialised, has_grid=False, module=launch.module, ready={}, seen=set())
    return SizedLaunch(
        fixed.key, specialised, values, run_args[:count], grid, needed == grid, launch
    )


def _required(grid: tuple[int, ...] | None, kernel: str) -> tuple[int, ...]:
    if grid is None:
        raise mistake(
            "PTO-U274",
            f"{kernel}: the grid does not follow from what its blocks store",
            help="give it: blocks=24, or blocks=(4, 8)",
        )
    return grid
