"""`@pto.operator`: a Python function that launches kernels, as one unit.

The function prepares arrays on the host, launches kernels and returns the results. The unit runs on
any profile and engine, and its launches are timed, optimised and sanitized together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

from pto.lang.call.place import mistake
from pto.run.launch.call import Blocks
from pto.run.launch.host import Report
from pto.target.profile import Target
from pto.target.profile import device as find_device
from pto.target.profile import profile as find_profile

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel
    from pto.observe import Verdict
    from pto.observe.timing import Timing

P = ParamSpec("P")
R = TypeVar("R")


class KernelLaunch(NamedTuple):
    """One launch of an operator: a kernel for its profile, the grid, the arguments."""

    kernel: Kernel[...]
    blocks: Blocks
    args: tuple[object, ...]
    named: Mapping[str, Any]

    def run(self) -> Report:
        """Run it on its arrays."""
        return self.kernel.run(*self.args, blocks=self.blocks, **self.named)

    def time(
        self, device: str | None = None, *, optimize: bool = False, data: bool = False
    ) -> Timing:
        """Its estimated time; `optimize`: of the fastest schedule that the optimiser finds; `data`:
        with the values of arrays, if control flow depends on them."""
        options = {n: v for n, v in self.named.items() if n not in _OF_RUNS}
        if optimize:
            fast = self.kernel.optimize(*self.args, device=device, data=data, **options)
            return fast.time(*self.args, data=data, **options)
        return self.kernel.time(*self.args, blocks=self.blocks, device=device, data=data, **options)


def _no_report(each: KernelLaunch) -> Report:
    """The report of a launch that was not run as usual."""
    target = Target(find_profile(each.kernel.profile), None, "the profile of the kernel")
    return Report(target, "none", each.kernel.name, 1, ())


_OF_RUNS = ("engine", "coverage", "timeout", "progress")


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """The estimated time of an operator: its launches, one after the other."""

    launches: tuple[Timing, ...]

    @property
    def us(self) -> float:
        """Microseconds of all launches."""
        return sum(launch.us for launch in self.launches)

    @property
    def core_us(self) -> float:
        """Microseconds without the cost of starting each launch."""
        return sum(launch.core_us for launch in self.launches)

    @property
    def band(self) -> tuple[float, float]:
        """The least and the greatest time that is likely."""
        return sum(t.band[0] for t in self.launches), sum(t.band[1] for t in self.launches)

    def __str__(self) -> str:
        return "\n".join(map(str, self.launches))


Handle = Callable[["Kernel[...]", Blocks, tuple[object, ...], Mapping[str, Any]], Report]
HANDLE: ContextVar[Handle | None] = ContextVar("HANDLE", default=None)


@contextmanager
def handled(by: Handle | None) -> Generator[None]:
    """Pass launches of kernels to a function instead of running them."""
    token = HANDLE.set(by)
    try:
        yield
    finally:
        HANDLE.reset(token)


class Operator(Generic[P, R]):
    """A function that launches kernels. Calling it runs them and returns the result."""

    def __init__(
        self, function: Callable[P, R], profile: str | None = None, engine: str | None = None
    ) -> None:
        self.function = function
        self.profile = profile
        self.engine = engine
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__

    def on(self, profile: str | None = None, *, engine: str | None = None) -> Operator[P, R]:
        """The same operator with its kernels for another profile, or on another engine."""
        if profile is not None:
            find_profile(profile)
        return Operator(self.function, profile or self.profile, engine or self.engine)

    def __repr__(self) -> str:
        where = "" if self.profile is None else f", profile {self.profile}"
        return f"<operator {self.__name__}{where}>"

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        """Launch the kernels; the result of the function. Inside another operator its launches are
        launches of that one."""
        outer = HANDLE.get()

        def run(launch: KernelLaunch) -> Report:
            return launch.run() if outer is None else outer(*launch)

        with handled(self._by(run)):
            return self.function(*args, **named)

    def launches(self, *args: P.args, **named: P.kwargs) -> list[KernelLaunch]:
        """The launches that the operator makes, without running them: what arrays hold is not
        computed, so the function must not look at results of its kernels."""
        recorded: list[KernelLaunch] = []

        def note(launch: KernelLaunch) -> Report:
            recorded.append(launch)
            target = Target(find_profile(launch.kernel.profile), None, "the profile of the kernel")
            return Report(target, "none", launch.kernel.name, 1, ())

        with handled(self._by(note)):
            self.function(*args, **named)
        return recorded

    def sanitize(self, *args: P.args, **named: P.kwargs) -> list[Verdict]:
        """Run each launch under the sanitizer; the verdicts of those that have findings."""
        verdicts: list[Verdict] = []

        def watch(launch: KernelLaunch) -> Report:
            options = {n: v for n, v in launch.named.items() if n not in _OF_RUNS}
            verdict = launch.kernel.sanitize(*launch.args, blocks=launch.blocks, **options)
            if not verdict.is_clean:
                verdicts.append(verdict)
            target = Target(find_profile(launch.kernel.profile), None, "the profile of the kernel")
            return Report(target, "reference", launch.kernel.name, 1, ())

        with handled(self._by(watch)):
            self.function(*args, **named)
        return verdicts

    def time(
        self,
        *args: Any,
        device: str | None = None,
        optimize: bool = False,
        with_values: bool = False,
        **named: Any,
    ) -> OperatorTime:
        """The estimated time of all launches on a chip; `optimize`: with the fastest schedules.
        `with_values`: run each launch too, if control flow depends on the values of arrays."""
        chosen = self if device is None else self.on(find_device(device).profile)
        times: list[Timing] = []

        def clock(each: KernelLaunch) -> Report:
            times.append(each.time(device, optimize=optimize, data=with_values))
            return each.run() if with_values else _no_report(each)

        with handled(chosen._by(clock)):
            self.function(*args, **named)
        return OperatorTime(tuple(times))

    def _by(self, act: Callable[[KernelLaunch], Report]) -> Handle:
        def handle(
            kernel: Kernel[...],
            blocks: Blocks,
            args: tuple[object, ...],
            named: Mapping[str, Any],
        ) -> Report:
            retargeted = kernel if self.profile is None else kernel.on(self.profile)
            options = dict(named)
            if self.engine is not None:
                options.setdefault("engine", self.engine)
            with handled(None):
                return act(KernelLaunch(retargeted, blocks, args, options))

        return handle


def operator(function: Callable[P, R]) -> Operator[P, R]:
    """`@pto.operator`: make one unit of a function that launches kernels.

    The function takes NumPy arrays and numbers, allocates results, launches kernels and returns the
    results. `op.on("a2a3")` runs it on another profile, `op.time((x,), device="910b2")` times it.
    """
    if not callable(function):
        raise mistake("PTO-U215", f"pto.operator takes a function, got {function!r}")
    return Operator(function)
