"""The program that a chip would run for a launch: a function for each core, its pipes in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pto.ir.graph import Module, Operation
from pto.plan.calls import entry_functions
from pto.plan.mode import mode_of
from pto.plan.sync import insert
from pto.target.facts import Profile
from pto.transform.separate import separate

_SYNCED = "the program leaves its flags to a compiler: timed with those of pto sync"
_WHOLE = "timed as one core with all pipes, which no chip has: "
_ALONE = "one vector sub-block of two has all rows: "


@dataclass(frozen=True, slots=True)
class ChipLaunch:
    """A launch as a chip runs it, with what was added to the program."""

    module: Module
    symbols: tuple[str, ...]  # of the functions that are launched together
    args: Sequence[Any]
    notes: tuple[str, ...]

    @property
    def functions(self) -> list[Operation]:
        return self.functions_of(self.module)

    def functions_of(self, module: Module) -> list[Operation]:
        """The functions of the launch in another version of its program."""
        with_bodies = {f.symbol: f for f in module.functions() if f.has_body}
        return [with_bodies[symbol] for symbol in self.symbols]


def chip_launch(
    module: Module,
    functions: Sequence[Operation],
    profile: Profile,
    args: Sequence[Any],
    blocks: int | tuple[int, ...],
) -> ChipLaunch:
    """The launch with `functions` split if they use both cores, with flags if they have none."""
    split = separate(module, profile, functions)
    notes = () if split.refused is None else (_WHOLE + split.refused.message,)
    notes += () if split.whole is None else (_ALONE + split.whole,)
    if split.entry is not None:
        functions = entry_functions(split.module, split.entry)
    symbols = tuple(f.symbol for f in functions)
    launch = ChipLaunch(split.module, symbols, split.arguments(args, blocks), notes)
    if mode_of(launch.functions) != "automatic":
        return launch
    return replace(launch, module=insert(split.module, profile), notes=(*notes, _SYNCED))
