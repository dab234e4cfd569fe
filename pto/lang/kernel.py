"""`@kernel`: a Python function as a program, specialised for the shapes and constants it gets.

A parameter annotated `pto.Global[...]` is an array in global memory, `pto.Scalar[...]` a number
known when the program runs; any other parameter is a Python constant, part of the specialisation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.printer import print_module
from pto.lang.bound import Bound
from pto.lang.call.place import KernelError, defines_kernel, mistake, placed
from pto.lang.captured import Captured
from pto.lang.findings import Findings
from pto.lang.parameter import Parameter, exact, parameters_of, require_function, shaped, unhashable
from pto.lang.tracing import Shape, Source, Specialised, Tracing, sizes_of
from pto.lang.values.arrays import as_array
from pto.run.launch.arrays import Borrowed
from pto.run.launch.call import Blocks, Launch, kind_of
from pto.run.launch.engine import switches, wants_debugging, wants_sanitizer
from pto.run.launch.entry import entry_functions
from pto.run.launch.host import Report, report
from pto.run.launch.outcome import warn
from pto.run.launch.progress import Bar, Progress
from pto.run.machine.device import Device
from pto.target.choose import Target
from pto.target.device import device as find_device
from pto.target.profile import profile as find_profile
from pto.verify import verify

if TYPE_CHECKING:
    from pto.cxx.export.folder import Exported
    from pto.observe.memory.coverage import Writes
    from pto.observe.proofs import Proofs
    from pto.observe.timing import Timing


class Kernel:
    """A function that traces to a program. `kernel[blocks](x, y)` runs it."""

    @placed
    def __init__(
        self,
        function: Callable[..., Any],
        profile: str,
        name: str | None = None,
        *,
        kind: str | None = None,
        peer: Callable[..., Any] | None = None,
        debug: bool = True,
    ) -> None:
        self._profile = find_profile(profile)
        require_function(function)
        defines_kernel(function.__code__.co_filename)
        self.function = function
        self.profile = profile
        self.kind = kind
        self.peer = peer  # the function of the other side of the core
        self.debug = debug  # pto.assert_ and pto.print are in the program
        self.name = name or function.__name__
        self.__doc__ = function.__doc__
        self.__name__ = self.name
        self._signature = inspect.signature(function)
        self._cache: dict[Any, Specialised] = {}
        self._last: Specialised | None = None
        self._captured = Captured(function, peer)

    @cached_property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.function)

    @cached_property
    def _constants(self) -> list[int]:
        return [n for n, p in enumerate(self.parameters) if p.kind == "constant"]

    @cached_property
    def _passed(self) -> list[int]:
        return [n for n, p in enumerate(self.parameters) if p.kind != "constant"]

    def on(self, profile: str) -> Kernel:
        """The same kernel for another profile."""
        if profile == self.profile:
            return self
        how: dict[str, Any] = {"kind": self.kind, "peer": self.peer, "debug": self.debug}
        return Kernel(self.function, profile, self.name, **how)

    # ---- running

    def __getitem__(self, blocks: Blocks) -> Bound:
        return Bound(self, blocks)

    def __call__(self, *args: Any, **named: Any) -> Report:
        """One block."""
        return self.run(*args, **named)

    @placed
    def run(
        self,
        *args: Any,
        blocks: Blocks = 1,
        engine: str | None = None,
        progress: bool | Progress = False,
        timeout: float | None = None,
        coverage: bool | None = None,
        **named: Any,
    ) -> Report:
        """Run on arrays, which are changed in place.

        `engine` is `reference` or `jit`; without it PTO_ENGINE or the default. `progress=True`
        shows how many blocks are done, on a terminal, when it takes long. `timeout` ends a run that
        takes longer, in seconds. `coverage=True` watches what is written, on the reference engine:
        `report.coverage` says how much of each output never was. `coverage=False`, or
        PTO_COVERAGE=0, leaves out the check of the first run for holes and idle blocks.
        """
        if progress is True:
            with Bar() as seen:
                how: dict[str, Any] = {"blocks": blocks, "engine": engine, "timeout": timeout}
                how |= {"coverage": coverage}
                return self.run(*args, progress=seen, **how, **named)
        values = self.values(args, named)
        fixed = [exact(values[n]) for n in self._constants] if self._constants else ()
        calls, key = self._captured.calls(), (engine, *switches(), *kind_of(blocks, values), *fixed)
        try:
            like = None if progress or coverage else calls.get(key)
        except TypeError:  # a value that nothing can be found by: to specialise will say which
            like = None
        if like is not None:
            self._last, direct = like
            return direct.run(values, timeout)
        made, arrays, given = self.specialise(values, blocks)
        sanitized = wants_sanitizer()
        if sanitized:
            self._require_clean(made, given, blocks)
        seen = _writes() if coverage else None
        chip = Device(self._profile, engine=engine, observer=seen)
        launch = self._launch(made, chip, (arrays, given), blocks)
        launch.progress, launch.timeout = progress or None, timeout
        launch.say = _say if made.speaks else None
        target = Target(chip.profile, None, "as the kernel says")
        done = report(chip.run(launch), target, name=self.name)
        if seen is not None:
            names = [p.name for p in self.parameters if p.kind == "array"]
            held = {name: each.array for name, each in zip(names, arrays, strict=True)}
            return replace(done, coverage=seen.coverage(made.module, held))
        kind = (blocks, *(each.array.shape for each in arrays))
        if kind not in made.seen:
            made.seen.add(kind)
            warn(launch, coverage, given[len(self._passed) :], made.cut)
        if not sanitized and (direct := launch.kernel.direct(launch, self._passed, done)):
            calls.keep(key, (made, direct))
        return done

    @placed
    def launched(
        self, device: Device, args: Sequence[Any], named: Mapping[str, Any], blocks: Blocks = 1
    ) -> Launch:
        """A launch of this kernel for a stream of a device to do."""
        if device.profile.name != self.profile:
            raise mistake(
                "PTO-U193",
                f"kernel {self.name} is for {self.profile}, the device is {device.profile}",
                help=f'launch {self.name}.on("{device.profile.name}")',
            )
        made, arrays, given = self.specialise(self.values(args, named), blocks)
        return self._launch(made, device, (arrays, given), blocks)

    def _launch(
        self,
        made: Specialised,
        device: Device,
        values: tuple[list[Borrowed], list[Any]],
        blocks: Blocks,
    ) -> Launch:
        arrays, given = iter(values[0]), values[1]
        kinds = [p.kind for p in self.parameters if p.kind != "constant"]
        args = [next(arrays) if k == "array" else v for k, v in zip(kinds, given, strict=False)]
        args += given[len(kinds) :]
        return Launch.of(made.ready_on(device), device, args, blocks)

    def _require_clean(self, made: Specialised, given: Sequence[Any], blocks: Blocks) -> None:
        """PTO_SANITIZE=1: a watched run on copies comes first, and its errors are raised."""
        from pto.observe import sanitize

        copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in given]
        verdict = sanitize(made.module, args=copies, blocks=blocks, profile=self.profile)
        errors = [d for d in verdict.findings if d.severity == "error"]
        if errors:
            raise KernelError(*errors)

    @placed
    def sanitize(
        self, *args: Any, blocks: Blocks = 1, automatic: bool = False, **named: Any
    ) -> Findings:
        """Run under the sanitizer: races, flags that do not match, reads of undefined data.

        `automatic`: a compiler will insert synchronisation, although tiles have addresses already.
        """
        from pto.observe import sanitize  # only here: a plain run needs no observer

        made, arrays, given = self.specialise(self.values(args, named), blocks)
        options: dict[str, Any] = {"profile": self.profile, "automatic": automatic}
        verdict = sanitize(made.module, args=given, blocks=blocks, **options)
        for array in arrays:
            if array.give_back is not None:
                array.give_back()
        return Findings(verdict.findings, verdict.about)

    @placed
    def time(
        self,
        *args: Any,
        blocks: Blocks = 1,
        device: str | None = None,
        data: bool = False,
        **named: Any,
    ) -> Timing:
        """How long a launch takes on a chip (`device`; default: the usual one of the profile).

        Arrays give their shapes, and a shape may stand for one; nothing is computed or written.
        `data`: the arrays' values count, where they decide what the kernel does.
        """
        from pto.observe import timing  # only here: a plain run needs no observer

        wanted = self.profile if device is None else find_device(device).profile
        if wanted != self.profile:
            return self.on(wanted).time(*args, blocks=blocks, device=device, data=data, **named)
        module, given = self.called(args, named, blocks)
        return timing.time(
            module, args=given, blocks=blocks, profile=self.profile, device=device, data=data
        )

    # ---- looking

    def called(
        self, args: Sequence[Any], named: Mapping[str, Any], blocks: Blocks
    ) -> tuple[Module, list[Any]]:
        """The program for arguments, where shapes may stand for arrays, and what it is given."""
        values = self.values(args, named)
        stood = [shaped(p, v) for p, v in zip(self.parameters, values, strict=True)]
        made, _, given = self.specialise(stood, blocks)
        return made.module, given

    def prove(
        self, *args: Any, blocks: Blocks | None = None, assume: Sequence[str] = (), **named: Any
    ) -> Proofs:
        """Which properties hold for every grid, and for all sizes that the program leaves open."""
        from pto.observe.proofs import prove  # only here: a plain run needs no proof

        module, _ = self.called(args, named, 1 if blocks is None else blocks)
        functions = entry_functions(module, None)
        return prove(module, functions, profile=self.profile, blocks=blocks, assume=assume)

    def module(self, *args: Any, **named: Any) -> Module:
        """The program for these arguments."""
        return self.specialise(self.values(args, named))[0].module

    @property
    def ir(self) -> str:
        """The program last traced, as .pto text."""
        return print_module(self._latest().module)

    def cpp(self, *args: Any, **named: Any) -> str:
        """The program as C++ for the PTO header library: for these arguments, else the last one."""
        from pto.cxx.export import cpp  # only here: a plain run writes no C++

        made = self.specialise(self.values(args, named))[0] if args or named else self._latest()
        return cpp(made.module, find_profile(self.profile), self.name)

    @placed
    def export(
        self, *args: Any, out: str, blocks: Blocks = 1, device: str | None = None, **named: Any
    ) -> Exported:
        """Write a folder that builds and runs on a board; the arrays are its inputs, unchanged."""
        from pto.cxx.export.folder import export  # only here: a plain run writes no C++

        kernel = self if device is None else self.on(find_device(device).profile)
        made, _, given = kernel.specialise(kernel.values(args, named), blocks)
        how: dict[str, Any] = {"blocks": blocks, "profile": kernel.profile, "device": device}
        return export(made.module, given, Path(out), name=self.name, **how)

    def __repr__(self) -> str:
        try:
            listed = ", ".join(f"{p.name}: {p}" for p in self.parameters)
        except PtoError:  # an annotation that means nothing; running it will say so
            listed = ", ".join(self._signature.parameters)
        return f"<kernel {self.name}({listed}), profile {self.profile}>"

    def _repr_html_(self) -> str:
        from pto.lang.notebook import kernel_html  # only notebooks need it

        kinds = [(p.name, str(p)) for p in self.parameters]
        text = "not traced yet: run it once" if self._last is None else self.ir
        return kernel_html(self.name, self.profile, kinds, self.__doc__, text)

    @placed
    def check(self, profile: str | None = None, *args: Any, **named: Any) -> Findings:
        """Is the program legal under a profile? With arguments, for those; else the last one."""
        made = self.specialise(self.values(args, named))[0] if args or named else self._latest()
        return Findings(verify(made.module, find_profile(profile or self.profile)))

    def _latest(self) -> Specialised:
        if self._last is None:
            raise mistake(
                "PTO-U209",
                f"kernel {self.name} has not been traced yet: its program depends on the shapes of"
                " its arguments",
                help=f"run it once, or ask for {self.name}.module(x, ...)",
            )
        return self._last

    # ---- specialisation

    def _peers(self) -> list[Source]:
        return [] if self.peer is None else [Source(self.peer, self.peer.__name__, "vector")]

    def values(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """What is given, one value a parameter."""
        if not named and len(args) == len(self.parameters):
            return list(args)
        try:
            bound = self._signature.bind(*args, **named)
        except TypeError as error:
            listed = ", ".join(f"{p.name}: {p}" for p in self.parameters)
            other = f'{self.name}.on("a2a3") is this kernel for another profile'
            help = other if "profile" in named else None
            raise mistake("PTO-U210", f"{self.name}({listed}): {error}", help=help) from None
        bound.apply_defaults()
        return list(bound.arguments.values())

    def specialise(
        self, values: list[Any], blocks: Blocks = 1
    ) -> tuple[Specialised, list[Borrowed], list[Any]]:
        """The program for these values, the memory of the arrays, and what its parameters get."""
        arrays: list[Borrowed] = []
        shapes: list[tuple[tuple[int, ...], DType]] = []
        key: list[Any] = []
        given: list[Any] = []
        parameters = self.parameters
        for param, value in zip(parameters, values, strict=True):
            if param.kind == "array":
                array, kind = as_array(self.name, param.name, param.dtype, value)
                arrays.append(array)
                shapes.append((array.array.shape, kind))
                given.append(array.array)
            elif param.kind == "scalar":
                given.append(value)
                key.append(None)
            else:
                key.append((type(value), exact(value)))
        named, sizes = sizes_of(self.name, parameters, shapes)
        made = self._find((*key, *named), values, named)
        self._last = made
        return made, arrays, [*given, *made.numbers(self.name, sizes, blocks)]

    def _find(self, key: Any, values: list[Any], shapes: list[Shape]) -> Specialised:
        key = (*key, self.debug and wants_debugging())
        try:
            found = self._cache.get((key, self._captured.key()))
        except TypeError:
            raise unhashable(self.name, self.parameters, values) from None
        if found is None:
            found = Tracing(self.profile, key[-1], self.parameters, values, shapes).program(
                [Source(self.function, self.name, self.kind), *self._peers()]
            )
            self._captured.leave_out_changed()
            self._cache[key, self._captured.key()] = found
        return found


def _writes() -> Writes:
    from pto.observe.memory.coverage import Writes  # only here: a plain run needs no observer

    return Writes()


def _say(block: int, line: str) -> None:
    """A line that a block prints, as it comes."""
    print(f"block {block}: {line}", flush=True)


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(
    *, profile: str = ..., name: str | None = ..., kind: str | None = ..., debug: bool = ...
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    profile: str = "a5",
    name: str | None = None,
    kind: str | None = None,
    debug: bool = True,
) -> Any:
    """`@pto.kernel(profile="a5")`: make a kernel of a function.

    kind says which side of a core runs it, `cube` or `vector`; without it both do, each its part.
    debug=False leaves pto.assert_ and pto.print out of the program; so does PTO_DEBUG=0.
    """
    if kind not in (None, "cube", "vector"):
        raise mistake("PTO-U215", f"a kernel is cube or vector, not {kind!r}")
    if function is not None:
        return Kernel(function, profile, name, kind=kind, debug=debug)
    return lambda inner: Kernel(inner, profile, name, kind=kind, debug=debug)


def pair(
    cube: Callable[..., Any],
    vector: Callable[..., Any],
    *,
    profile: str = "a5",
    name: str | None = None,
) -> Kernel:
    """One kernel of two functions, for the cube and for the vector side, that meet in queues."""
    same = inspect.signature(cube).parameters.keys() == inspect.signature(vector).parameters.keys()
    if not same:
        raise mistake(
            "PTO-U215",
            f"{cube.__name__} and {vector.__name__} are one kernel: their parameters must be alike",
        )
    return Kernel(cube, profile, name or cube.__name__, kind="cube", peer=vector)
