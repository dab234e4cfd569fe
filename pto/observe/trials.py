"""Inputs for `pto check --deep`, made from the program alone, and selected by its control flow.

Arrays are zeros and numbers small. If the program does not state the size of an array, it is large
enough for its addresses. A number that the program rejects is made smaller. Further trials change
one number, one condition or the number of blocks. A trial is kept if a dry run takes a path that no
earlier trial took: the other region of a branch, zero, one or several iterations of a loop, a valid
region that is empty or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.core.dtypes import I1
from pto.core.errors import Diagnostic, PtoError, fail
from pto.ir.graph import Module, Operation, Value
from pto.isa.meaning.scalar.unit import BLOCK_INDEX
from pto.isa.row import types as t
from pto.isa.row.order import WaitUntil
from pto.isa.row.traits import Control
from pto.observe.looks import filling
from pto.observe.order.scopes import values_behind
from pto.observe.replay import TrialRun
from pto.plan.calls import FunctionNames, entry_functions, names_of, with_peers
from pto.run.launch.arguments import LaunchParameter, parameters
from pto.run.machine.agents import DEADLOCK
from pto.run.watch.outline import needs_registers
from pto.run.watch.paths import Outcome, Paths, extents_of
from pto.verify.functions import SIMT_ENTRY, entries
from pto.verify.program import target_of

_ROOM = 1 << 20  # elements of an argument of unknown size
_BLOCKS = 2  # enough for one block to conflict with another, if blocks do different work
_SMALL = 16  # a number of rows, columns or steps
_ATTEMPTS = 8  # to find numbers that a program accepts
_LARGEST = 4096  # number that is tried, and constant that counts as a limit
_MOST_BLOCKS = 64
_KEPT = 6  # trials beside the first
_DRY_RUNS = 120
_DRY_STEPS = 200_000  # of all dry runs together
# A wrong order ends a run too, and is worth a watched one.
_ABOUT_ORDER = ("PTO-R", "PTO-D")
Behind = set[Value]  # values on which a decision depends


@dataclass(slots=True)
class Found:
    """One trial, and the result of its dry run."""

    trial: TrialRun
    paths: Paths
    stopped: Diagnostic | None = None
    words: str = ""  # the special property of its inputs
    is_degenerate: bool = False  # a loop or a tile is empty that is not so in the first trial
    is_alone: bool = False  # it waited for a signal of another rank, and one rank is run

    @property
    def is_usable(self) -> bool:
        """True if a dry run ended normally, or stopped at a wrong order."""
        stopped = self.stopped
        return stopped is None or (stopped.code.startswith(_ABOUT_ORDER) and not self.is_alone)


@dataclass(slots=True)
class Chosen:
    """The trials of one kernel in order, and warnings about negative sizes."""

    trials: list[Found]
    negative: list[Diagnostic] = field(default_factory=list[Diagnostic])


def entry_names(module: Module) -> list[str | None]:
    """None if it is clear which functions run; else every kernel by its name.

    Without marks a function that no other function calls is a kernel.
    """
    try:
        entry_functions(module, None)
    except PtoError as error:
        defined = [f for f in module.functions() if f.has_body]
        functions = entries(defined) or _uncalled(defined)
        if not functions:
            raise error from None
        return _without_peers(module, [f.symbol for f in functions])
    return [None]


def _uncalled(functions: Sequence[Operation]) -> list[Operation]:
    names = FunctionNames()
    called = {
        id(names.find(op.attrs["callee"], function))
        for function in functions
        for op in function.walk()
        if "callee" in op.attrs
    }
    return [
        f
        for f in functions
        if id(f) not in called and SIMT_ENTRY not in f.attrs and not f.signature.results
    ]


def _without_peers(module: Module, names: Sequence[str]) -> list[str | None]:
    """Functions at two ends of a queue run together: once."""
    out, covered = list[str | None](), set[str]()
    for name in names:
        if name not in covered:
            out.append(name)
            covered |= {f.symbol for f in entry_functions(module, name)}
    return out


def choose(
    module: Module,
    entry: str | None,
    *,
    profile: str | None,
    device: str | None,
    seconds: float | None = None,
) -> Chosen:
    """A first trial that the program accepts if possible, and further ones in `seconds`."""
    return _TrialSearch(module, entry, {"profile": profile, "device": device}, seconds).run()


class _TrialSearch:
    """Looks for trials of one kernel by dry runs."""

    def __init__(
        self,
        module: Module,
        entry: str | None,
        target: dict[str, str | None],
        seconds: float | None = None,
    ) -> None:
        self.module = module
        self._until = None if seconds is None else time.monotonic() + seconds
        self.functions = entry_functions(module, entry)
        self.parameters = parameters(*self.functions)
        self.code = with_peers(self.functions, FunctionNames())
        self.sites = [op for f in self.code for op in f.walk() if _decides(op)]
        self._behind = {id(op): values_behind(_asked(op)) for op in self.sites}
        divided = any(op.body is BLOCK_INDEX for f in self.code for op in f.walk())
        chip = target_of(module, profile=target["profile"], device=target["device"])
        self._filling = filling(self.code, chip.profile, chip.device)
        blocks = self._filling or (_BLOCKS if divided else 1)
        self.options = {**target, "entry": entry, "blocks": blocks}
        self._data = needs_registers(self.code) or any(map(self._depends_on_data, self.sites))
        self._runs = self._steps = 0

    def run(self) -> Chosen:
        first = self._fitted(TrialRun([_value(p) for p in self.parameters], self.options))
        chosen = Chosen([first])
        if not first.is_usable:
            return chosen
        outcomes = set(first.paths.outcomes)
        empty = {o for o in outcomes if _is_empty(o)}
        self._note_negative(first, chosen)
        for other in self._others(first):
            self._note_negative(other, chosen)
            fresh = other.paths.outcomes - outcomes
            is_new = fresh or other.stopped
            if len(chosen.trials) > _KEPT or not other.is_usable or not is_new:
                continue
            if other.stopped and any(
                other.stopped == trial_run.stopped for trial_run in chosen.trials
            ):
                continue
            other.is_degenerate = any(_is_empty(o) for o in other.paths.outcomes - empty)
            outcomes |= fresh
            chosen.trials.append(other)
        return chosen

    # ---- trials beside the first

    def _others(self, first: Found) -> Iterator[Found]:
        for n, parameter in enumerate(self.parameters):
            for value in self._values(parameter, first.trial.args[n]):
                args = [*first.trial.args]
                args[n] = value
                yield from self._tried(
                    TrialRun(args, first.trial.options), f"{parameter.name}={value}"
                )
        for blocks in self._block_counts(first.trial.options["blocks"]):
            options = {**first.trial.options, "blocks": blocks}
            yield from self._tried(TrialRun(first.trial.args, options), f"{blocks} blocks")
        if self._data:
            args = [np.ones_like(a) if isinstance(a, np.ndarray) else a for a in first.trial.args]
            yield from self._tried(TrialRun(args, first.trial.options), "arrays of ones")

    def _tried(self, trial: TrialRun, words: str) -> Iterator[Found]:
        if self._until is not None and time.monotonic() > self._until:
            return
        if self._runs < _DRY_RUNS and self._steps < _DRY_STEPS:
            candidate = self._dry(trial)
            candidate.words = words
            yield candidate

    def _values(self, parameter: LaunchParameter, now: Any) -> list[Any]:
        """Other values of a parameter: near the constants that it is compared with."""
        if _is_condition(parameter):
            return [not now]
        near = self._constants(lambda behind: parameter.name in self._arguments(behind))
        if not _is_number(parameter) or near is None:
            return []
        values = {0, 1, 2, _SMALL - 1, _SMALL, _SMALL + 1}
        values |= {v for c in near for v in (c - 1, c, c + 1, 2 * c)}
        return sorted(v for v in values if 0 <= v <= _LARGEST and v != now)

    def _block_counts(self, now: int) -> list[int]:
        """Other numbers of blocks, if a condition uses the block index."""
        near = self._constants(_asks_block)
        counts = {v for c in near or () for v in (c, c + 1)}
        return sorted(v for v in counts if 0 < v <= _MOST_BLOCKS and v != now)

    def _constants(self, concerns: Callable[[Behind], bool]) -> set[int] | None:
        """Constants at the sites that concern something; None if there is no such site."""
        sites = [behind for behind in self._behind.values() if concerns(behind)]
        values = (v.number for behind in sites for v in behind)
        near = {int(c) for c in values if isinstance(c, int) and abs(c) <= _LARGEST}
        return near if sites else None

    def _arguments(self, behind: Behind) -> set[str]:
        """Scalars of the kernel among some values, by name; for those of a callee, all."""
        names, arguments = [p.name for p in self.parameters], set[str]()
        for function in self.code:
            args = function.regions[0].block.args
            is_first = any(function is candidate for candidate in self.functions)
            if is_first:
                pairs = zip(args, names_of(args, names), strict=True)
                arguments |= {name for a, name in pairs if a in behind}
            elif not behind.isdisjoint(args):
                arguments |= set(names)
        return arguments - {p.name for p in self.parameters if p.is_array}

    def _depends_on_data(self, op: Operation) -> bool:
        """True if a deciding value was read from memory."""
        makers = (v.maker for v in self._behind[id(op)])
        return any(m is not None and _reads(m) for m in makers)

    # ---- negative extents

    def _note_negative(self, candidate: Found, chosen: Chosen) -> None:
        """Report negative extents that depend on one argument alone.

        If several arguments or the grid decide, the host must keep their relation.
        """
        for op, name, extent in candidate.paths.negative.values():
            behind = self._behind.get(id(op), set())
            asks = _asks_block(behind) or len(self._arguments(behind)) > 1
            if asks or any(d.loc == op.loc for d in chosen.negative):
                continue
            condition = f" where {candidate.words}" if candidate.words else ""
            message = (
                f"'{op.name}' op gets {name} = {extent}{condition}: on hardware a transfer hangs"
            )
            help = "keep the extent at 0 or more (arith.maxsi), or skip the tile where it is not"
            chosen.negative.append(Diagnostic("PTO-V001", message, op.loc, "warning", help=help))

    # ---- dry runs

    def _dry(self, trial: TrialRun, data: bool = False) -> Found:
        paths = Paths(data=data or self._data)
        left = None if self._until is None else max(0.1, self._until - time.monotonic())
        how: dict[str, Any] = {"check": False, "engine": "reference", "timeout": left}
        stopped = next(iter(trial.attempt(self.module, stepper=paths, **how)), None)
        self._runs, self._steps = self._runs + 1, self._steps + paths.steps
        is_alone = stopped is not None and stopped.code == DEADLOCK and self._awaits_rank(stopped)
        return Found(trial, paths, stopped, is_alone=is_alone)

    def _awaits_rank(self, stopped: Diagnostic) -> bool:
        """True if the operation that stopped a run waits for a signal."""
        return any(isinstance(op.order, WaitUntil) for op in ops_at(self.code, stopped))

    def _fitted(self, trial: TrialRun) -> Found:
        """The trial with smaller numbers, finally with one block, if its program accepts those.

        Data are moved: a transfer may be the operation that rejects a number.
        """
        first = candidate = self._dry(trial, data=True)
        args, options = list(trial.args), dict(trial.options)
        for _ in range(_ATTEMPTS):
            if candidate.stopped is None or candidate.is_usable:
                return candidate
            names = None if candidate.is_alone else self._asked_for(candidate.stopped)
            chosen = [
                n
                for n, p in enumerate(self.parameters)
                if _is_number(p) and args[n] > 0 and (names is None or p.name in names)
            ]
            if not chosen and options["blocks"] in (1, self._filling):
                return first
            if not chosen:
                options["blocks"] = 1
            for n in chosen:
                args[n] = 1 if args[n] > 1 else 0
            candidate = self._dry(TrialRun([*args], {**options}), data=True)
        return first

    def _asked_for(self, stopped: Diagnostic) -> set[str] | None:
        """Arguments on which the operation that stopped a run depends; None: unknown."""
        op = next(ops_at(self.functions, stopped), None)
        return None if op is None else self._arguments(values_behind(op))


def ops_at(functions: Sequence[Operation], finding: Diagnostic) -> Iterator[Operation]:
    """The operations at the location of a finding."""
    ops = (op for function in functions for op in function.walk())
    return (op for op in ops if finding.loc is not None and op.loc == finding.loc)


def _decides(op: Operation) -> bool:
    """True for a branch, a loop, or an operation that sets the size of a tile or window."""
    return op.is_loop or op.control is Control.IF or bool(extents_of(op))


def _asked(op: Operation) -> Operation:
    """The operation with the deciding operands: of a while loop the one that ends its test."""
    is_while = op.is_loop and op.control is not Control.FOR
    return op.regions[0].block.ops[-1] if is_while else op


def _is_empty(outcome: Outcome) -> bool:
    return outcome[1] != "way" and outcome[2] == 0


def _asks_block(behind: Behind) -> bool:
    makers = (v.maker for v in behind)
    return any(m is not None and m.body is BLOCK_INDEX for m in makers)


def _reads(op: Operation) -> bool:
    reads = any(isinstance(v.type, t.PLACES) for v in op.operands)
    return reads and any(isinstance(v.type, t.Scalar) for v in op.results)


def _is_condition(parameter: LaunchParameter) -> bool:
    return isinstance(parameter.type, t.Scalar) and parameter.dtype is I1


def _is_number(parameter: LaunchParameter) -> bool:
    kind = parameter.dtype
    is_whole = kind is None or not kind.is_float
    return isinstance(parameter.type, t.Scalar) and is_whole and not _is_condition(parameter)


def _value(parameter: LaunchParameter) -> Any:
    kind = parameter.dtype
    if _is_condition(parameter):
        return True
    if isinstance(parameter.type, t.Scalar):
        return 1.0 if kind is not None and kind.is_float else _SMALL
    shape = getattr(parameter.type, "shape", None)
    if shape is not None:
        sizes = [_SMALL if n is None else n for n in shape]
    else:
        sizes = [max(parameter.elements or 0, _ROOM)]
    try:
        return np.zeros(sizes, np.uint8 if kind is None else kind.numpy)
    except (MemoryError, ValueError):  # NumPy has a word of its own for sizes beyond all memory
        size = " x ".join(map(str, sizes))
        raise fail("PTO-U008", f"there is no memory left for %{parameter.name} of {size}") from None
