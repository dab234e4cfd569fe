"""A launch once more, for what one run does not tell; and how two runs are compared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pto.core.errors import PtoError
from pto.ir.graph import Module, Operation
from pto.run.launch.arrays import copied
from pto.run.launch.host import launch
from pto.run.watch.events import Observer, Tap


def told(op: Operation) -> Hashable:
    """By what an operation is known in another run: one of C++ makes its operations anew."""
    return (op.name, op.loc) if op.loc else id(op)


@dataclass(frozen=True, slots=True)
class Again:
    """The same launch, on fresh copies of its arguments."""

    module: Module
    args: Sequence[Any]
    written: Any  # arguments that may be written to
    options: Mapping[str, Any]
    fails: bool  # it ends where the first did

    def _run(self, **how: Any) -> None:
        args = copied(self.args, self.written)
        launch(self.module, args=args, check=False, **how, **self.options)

    def watch(self, observer: Observer) -> None:
        self._run(observer=observer)

    def step(self, tap: Tap) -> None:
        """An operation at a time."""
        with suppress(*([PtoError] if self.fails else [])):
            self._run(stepper=tap)
