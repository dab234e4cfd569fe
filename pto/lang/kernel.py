"""`@kernel`: a Python function as a program, specialised for the shapes and constants it gets.

A parameter annotated `pto.Global[...]` is an array in global memory, `pto.Scalar[...]` a number
known when the program runs; any other parameter is a Python constant, part of the specialisation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, cast, overload

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.findings import Findings
from pto.ir.graph import Module
from pto.ir.text.printer import print_module
from pto.lang.bound import Bound
from pto.lang.call.place import KernelError, defines_kernel, mistake, placed
from pto.lang.captured import Captured
from pto.lang.operator import HANDLE
from pto.lang.parameter import (
    Parameter,
    Range,
    bound,
    parameters_of,
    ranges_of,
    require_function,
    require_range,
    shaped,
    unhashable,
)
from pto.lang.pickled import reduced
from pto.lang.tracing import Shape, Specialised, TracedFunction, Tracing, sizes_of
from pto.lang.values.arrays import as_array
from pto.plan.stores import may_be_written
from pto.run.launch.arrays import Borrowed, copied
from pto.run.launch.call import Blocks, Launch, kind_of
from pto.run.launch.engine import switches, wants_debugging, wants_sanitizer
from pto.run.launch.host import Report, report
from pto.run.launch.outcome import warn
from pto.run.launch.overlap import joined, written_back
from pto.run.launch.progress import Progress, ProgressBar
from pto.run.machine.device import Device
from pto.run.machine.world import World
from pto.target.profile import Target
from pto.target.profile import device as find_device
from pto.target.profile import profile as find_profile
from pto.verify import verify

if TYPE_CHECKING:
    from pto.cxx.export.folder import Exported
    from pto.lang.optimize import OptimizedKernel
    from pto.observe import Verdict
    from pto.observe.memory.coverage import Writes
    from pto.observe.proofs import Proofs
    from pto.observe.timing import Timing
    from pto.observe.timing.cache import State as CacheState
    from pto.observe.timing.overrides import Overrides


P = ParamSpec("P")


class Kernel(Generic[P]):
    """A function that traces to a program. `kernel[blocks](x, y)` runs it.

    P are the parameters of the function, which a call takes too.
    """

    @placed
    def __init__(
        self,
        function: Callable[P, object],
        profile: str,
        name: str | None = None,
        *,
        kind: str | None = None,
        peer: Callable[P, object] | None = None,
        debug: bool = True,
        optimized: bool = False,
    ) -> None:
        self._profile = find_profile(profile)
        require_function(function)
        defines_kernel(function.__code__.co_filename)
        self.function = function
        self.profile = profile
        self.kind = kind
        self.peer = peer  # the function of the other side of the core
        self.debug = debug  # pto.assert_ and pto.print are in the program
        self.optimized = optimized  # its times and exports are of the fastest schedule
        self.name = name or function.__name__
        self.__doc__ = function.__doc__
        self.__name__ = self.name
        self._signature = inspect.signature(function)
        self._cache: dict[Hashable, Specialised] = {}
        self._elsewhere: dict[str, Kernel[P]] = {}  # the kernel for other profiles
        self._last: Specialised | None = None
        self._captured = Captured(function, peer)

    def __reduce__(self) -> tuple[object, ...]:
        return reduced(self)

    def __copy__(self) -> Kernel[P]:
        return self

    def __deepcopy__(self, memo: object) -> Kernel[P]:
        return self

    @cached_property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.function)

    @cached_property
    def _constants(self) -> list[int]:
        return [n for n, p in enumerate(self.parameters) if p.kind == "constant"]

    @cached_property
    def _ranges(self) -> list[Range]:
        return ranges_of(self.parameters)

    @cached_property
    def _passed(self) -> list[int]:
        return [n for n, p in enumerate(self.parameters) if p.kind != "constant"]

    @placed
    def on(self, profile: str) -> Kernel[P]:
        """The same kernel for another profile."""
        if profile == self.profile:
            return self
        if profile not in self._elsewhere:
            self._elsewhere[profile] = Kernel(
                self.function,
                profile,
                self.name,
                kind=self.kind,
                peer=self.peer,
                debug=self.debug,
                optimized=self.optimized,
            )
        return self._elsewhere[profile]

    # ---- running

    def __getitem__(self, blocks: Blocks) -> Bound[P]:
        return Bound(self, blocks)

    @overload
    def __call__(self, *args: P.args, **named: P.kwargs) -> Report: ...
    @overload
    def __call__(self, *args: object, engine: str | None, **named: object) -> Report: ...
    @overload
    def __call__(self, *args: object, coverage: bool | None, **named: object) -> Report: ...
    @overload
    def __call__(self, *args: object, timeout: float | None, **named: object) -> Report: ...
    @overload
    def __call__(self, *args: object, progress: bool | Progress, **named: object) -> Report: ...
    def __call__(self, *args: object, **named: object) -> Report:
        """Run one block."""
        return self.run(*args, **named)  # pyright: ignore[reportArgumentType]

    @placed
    def run(
        self,
        *args: object,
        blocks: Blocks = 1,
        engine: str | None = None,
        progress: bool | Progress = False,
        timeout: float | None = None,
        coverage: bool | None = None,
        **named: object,
    ) -> Report:
        """Run on arrays, which are changed in place.

        `engine` is `reference` or `jit`; without it PTO_ENGINE or the default. `progress=True`
        shows the number of finished blocks of a long run on a terminal. `timeout` stops the run
        after that many seconds. `coverage=True` records all writes, on the reference engine:
        `report.coverage` gives the part of each output that was never written. `coverage=False`,
        or PTO_COVERAGE=0, skips the check of the first run for unwritten parts and idle blocks.
        """
        if (handle := HANDLE.get()) is not None:
            options = {"engine": engine, "timeout": timeout, "coverage": coverage}
            set_options = {n: v for n, v in options.items() if v is not None}
            return handle(self, blocks, args, {**named, **set_options})
        if progress is True:
            with ProgressBar() as advance:
                named |= {"blocks": blocks, "engine": engine, "timeout": timeout}
                return self(*args, progress=advance, coverage=coverage, **named)
        values = self.values(args, named)
        fixed = self._fixed(values) if self._constants else ()
        calls, key = self._captured.calls(), (engine, *switches(), *kind_of(blocks, values), *fixed)
        try:
            like = None if progress or coverage else calls.get(key)
        except TypeError:  # an unhashable argument: `specialise` reports it
            like = None
        if like is not None:
            self._last, direct = like
            return direct.run(values, timeout)
        specialised, arrays, run_args = self.specialise(values, blocks)
        sanitized = wants_sanitizer()
        if sanitized:
            self._require_clean(specialised, run_args, blocks)
        writes = _writes() if coverage else None
        chip = Device(self._profile, engine=engine, observer=writes)
        launch = self._launch(specialised, chip, (arrays, run_args), blocks)
        launch.progress, launch.timeout = progress or None, timeout
        launch.say = _say if specialised.speaks else None
        target = Target(chip.profile, None, "the profile of the kernel")
        done = report(chip.run(launch), target, name=self.name)
        if writes is not None:
            names = [p.name for p in self.parameters if p.kind == "array"]
            arrays_by_name = {name: array.array for name, array in zip(names, arrays, strict=True)}
            return replace(done, coverage=writes.coverage(specialised.module, arrays_by_name))
        kind = (blocks, *(array.array.shape for array in arrays))
        if kind not in specialised.seen:
            specialised.seen.add(kind)
            sizes = [n for n in run_args[len(self._passed) :] if isinstance(n, int)]
            warn(launch, coverage, sizes, specialised.cut)
        if not sanitized and (direct := launch.kernel.direct(launch, self._passed, done)):
            calls.keep(key, (specialised, direct))
        return done

    @placed
    def launched(
        self,
        device: Device,
        args: Sequence[object],
        named: Mapping[str, object],
        blocks: Blocks = 1,
    ) -> Launch:
        """A launch of this kernel, to be executed by a stream of `device`."""
        if device.profile.name != self.profile:
            raise mistake(
                "PTO-U193",
                f"kernel {self.name} is for {self.profile}, the device is {device.profile}",
                help=f'launch {self.name}.on("{device.profile.name}")',
            )
        specialised, arrays, run_args = self.specialise(self.values(args, named), blocks)
        return self._launch(specialised, device, (arrays, run_args), blocks)

    def _launch(
        self,
        specialised: Specialised,
        device: Device,
        values: tuple[list[Borrowed], list[object]],
        blocks: Blocks,
    ) -> Launch:
        arrays, run_args = iter(values[0]), values[1]
        kinds = [p.kind for p in self.parameters if p.kind != "constant"]
        args = [next(arrays) if k == "array" else v for k, v in zip(kinds, run_args, strict=False)]
        args += run_args[len(kinds) :]
        return Launch.of(specialised.ready_on(device), device, args, blocks)

    def _require_clean(
        self, specialised: Specialised, run_args: Sequence[object], blocks: Blocks
    ) -> None:
        """PTO_SANITIZE=1: first run on copies under the sanitizer, and raise its errors."""
        from pto.observe import sanitize

        verdict = sanitize(
            specialised.module, args=copied(run_args), blocks=blocks, profile=self.profile
        )
        errors = [d for d in verdict.findings if d.severity == "error"]
        if errors:
            raise KernelError(*errors)

    @placed
    def sanitize(
        self,
        *args: object,
        blocks: Blocks = 1,
        automatic: bool = False,
        timeout: float | None = None,
        **named: object,
    ) -> Verdict:
        """Run under the sanitizer: races, flags that do not match, reads of undefined data.

        `automatic`: assume that a compiler inserts synchronisation, even if tiles have addresses.
        `timeout` ends a run that takes longer, in seconds.
        """
        from pto.observe import sanitize  # only here: a plain run needs no observer

        specialised, arrays, run_args = self.specialise(self.values(args, named), blocks)
        arrays = self._written_back(specialised, arrays, run_args)
        verdict = sanitize(
            specialised.module,
            args=run_args,
            blocks=blocks,
            profile=self.profile,
            automatic=automatic,
            timeout=timeout,
        )
        for array in arrays:
            if array.give_back is not None:
                array.give_back()
        return verdict

    @placed
    def time(
        self,
        *args: object,
        blocks: Blocks = 1,
        device: str | None = None,
        data: bool = False,
        cache: CacheState = "cold",
        costs: Overrides | None = None,
        **named: object,
    ) -> Timing:
        """The estimated time of a launch on a chip (`device`; default: that of the profile).

        Only the shapes of arrays are used, so a shape may replace an array; nothing is computed.
        `data`: use the values of arrays too, if control flow depends on them. `cache`: "cold" if
        earlier launches had other inputs, "warm" if they had the same arrays, "clean" if the L2
        cache holds data of other kernels. `costs` replace numbers of the chip (`pto time --costs`).
        """
        from pto.observe import timing  # only here: a plain run needs no observer

        if self.optimized:
            from pto.lang.optimize import optimize  # only here: a plain run needs no search

            fast = optimize(self, args, named, blocks=blocks, device=device, data=data, again=False)
            return fast.time(*args, data=data, cache=cache, costs=costs, **named)
        how: dict[str, Any] = {"blocks": blocks, "device": device, "data": data}
        how |= {"cache": cache, "costs": costs}
        wanted = self.profile if device is None else find_device(device).profile
        if wanted != self.profile:
            how |= named
            return self.on(wanted).time(*args, **how)
        specialised, run_args = self.called(args, named, blocks)
        return timing.time(specialised.module, args=run_args, profile=self.profile, **how)

    @placed
    def optimize(
        self,
        *args: object,
        blocks: Blocks | None = None,
        device: str | None = None,
        data: bool = False,
        again: bool = False,
        **named: object,
    ) -> OptimizedKernel[P]:
        """The kernel made fast on a chip, for arguments of these shapes; every bit stays.

        A shape may replace an array. Without `blocks` the grid follows from the stores. `data`: use
        the values of arrays too, if control flow depends on them. The result is a kernel with its
        own grid and a `report`; a cached one is used unless `again` is set.
        """
        from pto.lang.optimize import optimize  # only here: a plain run needs no search

        return optimize(self, args, named, blocks=blocks, device=device, data=data, again=again)

    # ---- looking

    def called(
        self, args: Sequence[object], named: Mapping[str, object], blocks: Blocks
    ) -> tuple[Specialised, list[object]]:
        """The program for arguments (a shape may replace an array), and its own arguments."""
        values = zip(self.parameters, self.values(args, named), strict=True)
        specialised, arrays, run_args = self.specialise([shaped(p, v) for p, v in values], blocks)
        self._written_back(specialised, arrays, run_args)
        return specialised, run_args

    def _written_back(
        self, specialised: Specialised, arrays: Sequence[Borrowed], args: Sequence[object]
    ) -> list[Borrowed]:
        """The arrays of a call, of which those that the program writes are written back; raises
        where an array that is copied overlaps another one. `args`: the program's arguments."""
        written = may_be_written([*specialised.module.functions()], len(args))
        passed = [p for p in self.parameters if p.kind != "constant"]
        names = (p.name for p in passed if p.kind == "array")
        by_name = dict(zip(names, arrays, strict=True))
        return written_back(by_name, {p.name for n, p in enumerate(passed) if n in written})

    @placed
    def prove(
        self,
        *args: object,
        blocks: Blocks | None = None,
        assume: Sequence[str] = (),
        **named: object,
    ) -> Proofs:
        """Properties proved for every grid and size; where that fails, for the given shapes.
        Without arguments the shapes are those of the last call, the docstring or annotations."""
        from pto.lang.any_size import example_values, prove  # only here: a run needs no proof

        if not (args or named or self._last):
            args = tuple(example_values(self) or ())
        specialised, run_args = (
            self.called(args, named, 1) if args or named else (self._latest(), ())
        )
        return prove(specialised, run_args, blocks=blocks, assume=assume)

    def module(self, *args: object, **named: object) -> Module:
        """The program for these arguments."""
        return self.specialise(self.values(args, named))[0].module

    @property
    def ir(self) -> str:
        """The program last traced, as .pto text."""
        return print_module(self._latest().module)

    def cpp(self, *args: object, **named: object) -> str:
        """The program as C++ for the PTO header library; without arguments the last one traced."""
        from pto.cxx.export import cpp  # only here: a plain run writes no C++

        specialised = (
            self.specialise(self.values(args, named))[0] if args or named else self._latest()
        )
        return cpp(specialised.module, find_profile(self.profile), self.name)

    @placed
    def export(
        self,
        *args: object,
        out: str,
        blocks: Blocks = 1,
        device: str | None = None,
        world: World | None = None,
        **named: object,
    ) -> Exported:
        """Write a folder that builds and runs on hardware, with the arrays as its inputs. With a
        `world` an argument is the list of the arguments of one rank."""
        from pto.cxx.export.folder import export  # only here: a plain run writes no C++

        if self.optimized and world is None:
            from pto.lang.optimize import optimize  # only here: a plain run needs no search

            fast = optimize(
                self, args, named, blocks=blocks, device=device, data=False, again=False
            )
            return fast.export(*args, out=out, **named)
        kernel = self if device is None else self.on(find_device(device).profile)
        lists = [args] if world is None else [cast("Sequence[object]", rank) for rank in args]
        calls = [kernel.specialise(kernel.values(rank, named), blocks) for rank in lists]
        rank_args, how = [rank for _, _, rank in calls], (blocks, kernel.profile, device, world)
        return export(
            [specialised.module for specialised, _, _ in calls],
            rank_args,
            Path(out),
            self.name,
            *how,
        )

    def __repr__(self) -> str:
        try:
            listed = ", ".join(f"{p.name}: {p}" for p in self.parameters)
        except PtoError:  # an invalid annotation: running the kernel reports it
            listed = ", ".join(self._signature.parameters)
        return f"<kernel {self.name}({listed}), profile {self.profile}>"

    def _repr_html_(self) -> str:
        from pto.lang.notebook import kernel_html  # only notebooks need it

        kinds = [(p.name, str(p)) for p in self.parameters]
        text = "not traced yet: run it once" if self._last is None else self.ir
        return kernel_html(self.name, self.profile, kinds, self.__doc__, text)

    @placed
    def check(self, profile: str | None = None, *args: object, **named: object) -> Findings:
        """Check the program for a profile; without arguments the program last traced."""
        specialised = (
            self.specialise(self.values(args, named))[0] if args or named else self._latest()
        )
        return Findings(verify(specialised.module, find_profile(profile or self.profile)))

    def _latest(self) -> Specialised:
        if self._last is None:
            raise mistake(
                "PTO-U209",
                f"kernel {self.name} has not been traced yet: its program depends on the shapes of"
                " its arguments",
                help=f"run it once, or call {self.name}.module(x, ...)",
            )
        return self._last

    # ---- specialisation

    def _fixed(self, values: Sequence[object]) -> tuple[Hashable, ...]:
        """The keys of constants."""
        try:
            return tuple(self._captured.of(values[n]) for n in self._constants)
        except TypeError:
            raise unhashable(self.name, self.parameters, values) from None

    def values(self, args: Sequence[object], named: Mapping[str, object]) -> list[object]:
        """The arguments, one value per parameter; raises for a number that a type cannot hold."""
        if named or len(args) != len(self.parameters):
            values = bound(self.name, self._signature, self.parameters, args, named)
        else:
            values = list(args)
        if self._ranges:
            require_range(self.name, self.parameters, self._ranges, values)
        return values

    def specialise(
        self, values: list[object], blocks: Blocks = 1
    ) -> tuple[Specialised, list[Borrowed], list[object]]:
        """The program for these values, the memory of the arrays, and the program's arguments."""
        arrays: list[Borrowed] = []
        shapes: list[tuple[tuple[int, ...], DType]] = []
        run_args: list[object] = []
        parameters = self.parameters
        for param, value in zip(parameters, values, strict=True):
            if param.kind == "array":
                array, kind = as_array(self.name, param.name, param.dtype, value)
                arrays.append(array)
                shapes.append((array.array.shape, kind))
                run_args.append(array.array)
            elif param.kind == "scalar":
                run_args.append(value)
        if any(array.take is not None for array in arrays):
            arrays = joined(arrays)
            memory = iter(arrays)
            kinds = (p.kind for p in parameters if p.kind != "constant")
            run_args = [
                next(memory).array if k == "array" else v
                for k, v in zip(kinds, run_args, strict=True)
            ]
        named, sizes = self._sizes(shapes)
        specialised = self._find(values, named)
        self._last = specialised
        return specialised, arrays, [*run_args, *specialised.numbers(self.name, sizes, blocks)]

    def _sizes(
        self, shapes: list[tuple[tuple[int, ...], DType]]
    ) -> tuple[list[Shape], dict[str, int]]:
        """Shapes with the names of sizes, and the values of these names."""
        return sizes_of(self.name, self.parameters, shapes)

    def _find(self, values: list[object], shapes: list[Shape]) -> Specialised:
        debug = self.debug and wants_debugging()
        key = self._captured.key(), self._fixed(values), *shapes, debug
        specialised = self._cache.get(key)
        if specialised is None:
            sources = [TracedFunction(self.function, self.name, self.kind)]
            if self.peer is not None:
                sources.append(TracedFunction(self.peer, self.peer.__name__, "vector"))
            pairs = zip(self.parameters, values, strict=True)
            fixed = [v if p.kind == "constant" else None for p, v in pairs]
            tracing = Tracing(self.profile, debug, sources, self.parameters, fixed, shapes)
            specialised = tracing.program()
            self._captured.leave_out_changed()
            key = self._captured.key(), self._fixed(values), *shapes, debug
            self._cache[key] = specialised
        return specialised


def _writes() -> Writes:
    from pto.observe.memory.coverage import Writes  # only here: a plain run needs no observer

    return Writes()


def _say(block: int, line: str) -> None:
    """Print a line of a block immediately."""
    print(f"block {block}: {line}", flush=True)
