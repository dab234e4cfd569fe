"""Replays a launch for checks that need a further run, and compares two runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, Operation
from pto.run.launch.arrays import copied
from pto.run.launch.host import launch
from pto.run.watch.events import Hook, Observer
from pto.target.facts import Profile
from pto.verify.program import target_of


def told(op: Operation) -> Hashable:
    """The key of an operation in another run: a run of C++ makes new operations."""
    return (op.name, op.loc) if op.loc else id(op)


@dataclass(frozen=True, slots=True)
class TrialRun:
    """One way to run a program: arguments, and options of `launch`."""

    args: Sequence[Any]
    options: dict[str, Any]

    def profile(self, module: Module) -> Profile:
        options = self.options
        target = target_of(module, profile=options.get("profile"), device=options.get("device"))
        return target.profile

    def attempt(self, module: Module, **how: Any) -> tuple[Diagnostic, ...]:
        """Run a module on copies of the arguments; returns the error that ended the run early."""
        try:
            launch(module, args=copied(self.args), **how, **self.options)
        except PtoError as error:
            return error.diagnostics
        return ()


@dataclass(frozen=True, slots=True)
class Replay:
    """The same launch, on new copies of its arguments."""

    module: Module
    args: Sequence[Any]
    written: Any  # arguments that may be written
    options: Mapping[str, Any]
    fails: bool  # it ends where the first run ended

    def _run(self, **how: Any) -> None:
        args = copied(self.args, self.written)
        launch(self.module, args=args, check=False, **how, **self.options)

    def watch(self, observer: Observer) -> None:
        self._run(observer=observer)

    def step(self, tap: Hook) -> None:
        """Replay with a hook for every operation."""
        with suppress(*([PtoError] if self.fails else [])):
            self._run(stepper=tap)
