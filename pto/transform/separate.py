"""A program as the cores of a chip run it: functions that use both cores are split.

Time, order and C++ are of this program; a run executes a function as it is written, on one core
with all pipes, and gives the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, PtoError, fail
from pto.ir.graph import Module, Operation
from pto.target.facts import Profile
from pto.transform.cores import CUBE, uses_both
from pto.transform.pass_result import PassResult
from pto.transform.split import half_name, split


@dataclass(frozen=True, slots=True)
class Separated:
    """A program with a function for each core, and how it is launched."""

    module: Module
    entry: str | None  # the function to launch; None: several, one for each core
    slots_nbytes: int = 0  # of the queues of a block, where they lie in an additional argument
    refused: Diagnostic | None = None  # the reason why a function for both cores stays whole
    whole: str | None = None  # the reason why one vector sub-block of a split one has all rows
    stages: tuple[PassResult, ...] = ()  # of loops that are marked to run in stages

    def arguments(self, args: Sequence[Any], blocks: int | tuple[int, ...]) -> list[Any]:
        """The arguments of a launch: those of the function as written, and the slots of queues."""
        if not self.slots_nbytes:
            return list(args)
        count = blocks if isinstance(blocks, int) else prod(blocks)
        try:
            return [*args, np.zeros(self.slots_nbytes // 4 * count, np.float32)]
        except (MemoryError, ValueError):
            nbytes = self.slots_nbytes
            why = f"queues take {nbytes:,} bytes a block, {nbytes * count:,} for {count:,} blocks"
            raise fail("PTO-U039", why, help="launch fewer blocks, each with a loop") from None

    def required(self) -> Separated:
        """The same; raises the reason if a function stays whole."""
        if self.refused is not None:
            raise PtoError(self.refused)
        return self


def separate(module: Module, profile: Profile, functions: Sequence[Operation]) -> Separated:
    """The program of a launch of `functions`, for the cores of the profile."""
    if len(functions) > 1:
        return Separated(module, None)
    first = functions[0]
    if not profile.separate_cores or not uses_both(first):
        return Separated(module, first.symbol)
    try:
        parts = split(module, first.symbol, profile)
    except PtoError as error:
        return Separated(module, first.symbol, refused=error.diagnostics[0])
    entry = half_name(first.symbol, CUBE)
    nbytes, whole = parts.slots_nbytes, parts.whole
    return Separated(parts.module, entry, nbytes, whole=whole, stages=parts.stages)


def separate_all(module: Module, profile: Profile) -> Separated:
    """The program with every function for both cores split; and the reason why the first one
    left could not be split."""
    refused: Diagnostic | None = None
    for function in [f for f in module.functions() if f.has_body]:
        split = separate(module, profile, [function])
        module, refused = split.module, refused or split.refused
    return Separated(module, None, refused=refused)
