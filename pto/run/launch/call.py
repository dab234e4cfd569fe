"""One launch: a compiled kernel, its arguments, and the number of blocks.

Text programs, Python kernels, streams and ranks all use it: a call makes a `Launch`, and a stream
runs it.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, runtime_checkable

import numpy as np

from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.memory import Memory
from pto.ir.graph import Module, Operation
from pto.ir.text.parser import parse, parse_file
from pto.isa.row import types as t
from pto.plan.calls import entry_functions
from pto.run.launch.arrays import Borrowed, are_tensors, borrow, of_elements
from pto.run.launch.engine import cluster_target
from pto.run.launch.overlap import joined, written_back
from pto.run.launch.prepared import LaunchGrid, PreparedKernel, Say
from pto.run.launch.progress import Progress
from pto.run.machine.limit import Limit
from pto.target.facts import Profile
from pto.verify import judge

if TYPE_CHECKING:
    from pto.run.machine.device import Device
    from pto.run.watch.events import Hook

_CALLS: Final = 1024
_Made = TypeVar("_Made")
Program = Module | Path | str
Blocks = int | tuple[int, ...]


@runtime_checkable
class Callee(Protocol):
    """A launchable object other than a program: a Python kernel, with or without a grid."""

    def launched(self, device: Device, args: Sequence[Any], named: Mapping[str, Any]) -> Launch: ...


def load(program: Program) -> Module:
    """The module of a program: a parsed module, the path of a file, or text of several lines."""
    if isinstance(program, Module):
        return program
    if isinstance(program, str) and "\n" in program:
        return parse(program)
    try:
        path = Path(program)
    except TypeError:
        type_name = type(program).__name__
    else:
        return parse_file(path)
    raise fail(
        "PTO-U194",
        f"a program is a module, a path or text, not {_a(type_name)}",
        help="a kernel has methods for this: k[blocks](x), k.check(), k.sanitize(x), k.time(x)",
    )


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiouAEIOU' else 'a'} {word}"


_MOST_BLOCKS = (1 << 32) - 1  # the host counts blocks in 32 bits
_MOST_AXES = 3  # of a grid


def count_of(blocks: Blocks) -> int:
    """The number of blocks of a grid."""
    count = prod(extents_of(blocks))
    if count > _MOST_BLOCKS:
        raise fail("PTO-U039", f"a launch has at most {_MOST_BLOCKS:,} blocks, got {count:,}")
    return count


def extents_of(blocks: Blocks) -> tuple[int, ...]:
    """The dimensions of a grid."""
    sizes = blocks if isinstance(blocks, tuple) else (blocks,)
    try:
        extents = tuple(map(operator.index, sizes))
    except TypeError:
        raise fail(
            "PTO-U039", f"a grid is a number of blocks, or a tuple, not {blocks!r}"
        ) from None
    if not extents or min(extents) < 1:
        raise fail("PTO-U039", f"a launch needs at least one block, got {blocks}")
    if len(extents) > _MOST_AXES:
        raise fail(
            "PTO-U039",
            f"a grid has at most {_MOST_AXES} axes, got {len(extents)}: {blocks}",
            help="join axes: block_idx(0) // m and block_idx(0) % m are two numbers of one axis",
        )
    return extents


def kind_of(blocks: Blocks, values: Sequence[Any]) -> list[Hashable]:
    """The key of a call without its values: the grid, and the checked properties of arrays."""
    key: list[Hashable] = [blocks if type(blocks) is int else extents_of(blocks)]
    for value in values:
        kind = type(value)
        key.append(kind)
        if kind is np.ndarray:
            key += value.dtype, value.shape, value.flags.num
        elif are_tensors(kind):
            key += getattr(value, "dtype", None), value.element_size(), value.shape
            key += getattr(value, "device", None), value.is_contiguous()
    return key


class Calls(dict[Hashable, _Made]):
    """A cache of calls by their key; emptied when it is full."""

    def keep(self, key: Hashable, value: _Made) -> None:
        if len(self) >= _CALLS:
            self.clear()
        self[key] = value


_SHOWN: dict[Any, Any] = {}  # Python's registry of warnings that were shown


class PtoWarning(UserWarning):
    """A warning about a program that is launched: of `pto check`, or of its first run.

    It can be pickled and made again from its text; `finding` is there in the process that warned.
    """

    def __init__(self, text: str, finding: Diagnostic | None = None) -> None:
        super().__init__(text)
        self.finding = finding


def require_legal(findings: Sequence[Diagnostic]) -> None:
    """Raise if there are errors; pass warnings to Python, which shows each once."""
    errors = [d for d in findings if d.severity == "error"]
    if errors:
        raise PtoError(*errors)
    for finding in findings:
        warn(finding)


def warn(finding: Diagnostic) -> None:
    """Show a finding as a Python warning at its line."""
    file, line = (finding.loc.file, finding.loc.line) if finding.loc else ("<program>", 0)
    help = f"\n  help: {finding.help}" if finding.help else ""
    warning = PtoWarning(f"{finding.message} [{finding.code}]{help}", finding)
    warnings.warn_explicit(warning, PtoWarning, file, line, registry=_SHOWN)


def prepare(
    module: Module,
    entry: str | None,
    profile: Profile,
    *,
    tap: Hook | None = None,
    engine: str = "reference",
) -> PreparedKernel:
    """Check a program for a profile and compile its kernel."""
    _, findings = judge(module, profile=profile.name, device=profile.device)
    require_legal(findings)
    return PreparedKernel(module, entry_functions(module, entry), profile, tap, engine)


@dataclass(slots=True, eq=False)
class Launch:
    """One launch of a kernel. `printed` is complete when it is done."""

    kernel: PreparedKernel
    device: Device
    args: Sequence[Any]  # scalars, and borrowed arrays
    blocks: int
    progress: Progress | None = None
    timeout: float | None = None  # seconds from its start
    say: Say | None = None  # called with each printed line at once
    is_done: bool = False
    printed: tuple[str, ...] = ()
    fallbacks: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    error: BaseException | None = None  # the reason, if it was abandoned
    _held: list[Memory] = field(default_factory=list[Memory])

    @classmethod
    def of(
        cls,
        kernel: PreparedKernel,
        device: Device,
        args: Sequence[Any],
        blocks: Blocks,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> Launch:
        """A launch with the memory of its arrays, which belong to the kernel until it is done."""
        kernel.require(len(args))
        pairs = zip(kernel.parameters.items(), args, strict=True)
        arguments = {
            name: arg if isinstance(arg, Borrowed) else _argument(name, type, arg)
            for (name, type), arg in pairs
        }
        for name, writer in kernel.writers.items():
            if isinstance(arguments[name], Borrowed) and arguments[name].read_only:
                _require_writable(name, writer)
        arrays = {n: a for n, a in arguments.items() if isinstance(a, Borrowed)}
        if any(a.take is not None for a in arrays.values()):
            arrays = dict(zip(arrays, joined([*arrays.values()]), strict=True))
            arguments |= zip(arrays, written_back(arrays, kernel.writers), strict=True)
        return cls(kernel, device, list(arguments.values()), count_of(blocks), progress, timeout)

    def again(self) -> Launch:
        """A new launch of the same work."""
        return Launch(self.kernel, self.device, self.args, self.blocks, self.progress, self.timeout)

    def begin(self) -> LaunchGrid:
        for arg in self.args:
            if isinstance(arg, Borrowed) and arg.take is not None:
                arg.take()  # a launch before this one may have changed it
        plain = [a.array if isinstance(a, Borrowed) else a for a in self.args]
        values = self.device.values(self.kernel, plain)
        memories = [getattr(value, "memory", None) for value in values.values()]
        self._held = [m for m in memories if isinstance(m, Memory)]
        self.device.hold(self._held)
        grid = LaunchGrid(self.kernel, self.device, values, self.blocks, plain)
        grid.progress = self.progress
        grid.limit = None if self.timeout is None else Limit.of(self.timeout)
        grid.say = self.say
        return grid

    def now(self) -> None:
        """Run the whole launch at once, on threads if useful; it waits for no other launch."""
        try:
            grid = self.begin()
            elsewhere = cluster_target()
            with np.errstate(all="ignore"):
                if elsewhere is None or not elsewhere.run(grid):
                    grid.run()
        except BaseException as error:
            self.error = error
            self.release()
            raise
        self.end(grid)

    def is_alone(self, direct: bool) -> bool:
        """True if no agent waits for another launch or rank and no observer watches. A direct call
        that may have to be restarted counts too. On a cluster, agents may also wait within their
        own block."""
        kernel = self.kernel
        alone = not kernel.can_wait or (direct and kernel.may_wait_early)
        apart = not alone and cluster_target() is not None and kernel.is_closed
        return (alone or apart) and self.device.tap is None

    def end(self, grid: LaunchGrid) -> None:
        self.release()
        self.printed = tuple(grid.printed())
        self.fallbacks = grid.fallbacks
        self.is_done = True
        for arg in self.args:
            if isinstance(arg, Borrowed) and arg.give_back is not None:
                arg.give_back()

    def release(self) -> None:
        self.device.release(self._held)
        self._held = []


def _require_writable(name: str, writer: Operation | None) -> None:
    """Report a write to a read-only array."""
    if writer is not None:
        raise fail(
            "PTO-M194",
            f"%{name} is written to here, and its array is read-only",
            loc=writer.loc,
            help="pass an array that may be written: a copy of it may",
        )


def _argument(name: str, type: t.Type, value: Any) -> Any:
    """The argument as borrowed and checked memory, if it is not yet; scalars are unchanged."""
    borrowed = borrow(value)
    if borrowed is None:
        return value
    elem = getattr(type, "elem", None)
    return of_elements(name, borrowed, elem.dtype) if isinstance(elem, t.Scalar) else borrowed
