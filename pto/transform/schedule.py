"""Schedules: passes that change when and where a program works, in their order, with their numbers.

No pass of a schedule changes arithmetic, so the bits of all results stay. `pto opt --pass slots=2`
runs one, and the search of `pto/optimize` chooses them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pto.core.errors import fail
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation
from pto.transform.block_order import grouped
from pto.transform.longer import longer
from pto.transform.pass_result import PassResult
from pto.transform.persistent import persistent
from pto.transform.separate import separate
from pto.transform.slots import slots
from pto.transform.stages import mark, unmark
from pto.transform.tidy import tidy
from pto.verify.program import target_of


@dataclass(slots=True)
class ProgramLaunch:
    """A program and the number of blocks that run it; passes change both."""

    module: Module
    blocks: int

    @property
    def functions(self) -> list[Operation]:
        return [f for f in self.module.functions() if f.has_body]


@dataclass(frozen=True, slots=True)
class NumberedPass:
    """A pass with one number."""

    words: str
    number: str  # the meaning of the number
    run: Callable[[ProgramLaunch, int], list[PassResult]]


def _order(launch: ProgramLaunch, rows: int) -> list[PassResult]:
    return [grouped(function, launch.blocks, rows) for function in launch.functions]


def _persistent(launch: ProgramLaunch, cores: int) -> list[PassResult]:
    change = persistent(launch.functions, launch.blocks, cores)
    launch.blocks = cores if change.is_done else launch.blocks
    return [change]


def _of_function(
    run: Callable[[Operation, int], list[PassResult]],
) -> Callable[[ProgramLaunch, int], list[PassResult]]:
    """A pass that changes the functions of a program one by one."""
    return lambda launch, number: [c for f in launch.functions for c in run(f, number)]


def _stages(launch: ProgramLaunch, stages: int) -> list[PassResult]:
    """Mark loops for the split, and say what it makes of them on the target of the program."""
    marks = [mark(function, stages) for function in launch.functions]
    target = target_of(launch.module, profile=None, device=None).profile
    split = separate(launch.module, target, launch.functions)
    results = list(split.stages)
    for loop in (loop for loops in marks for loop in loops):
        if not any(each.is_done and each.loc == loop.loc for each in results):
            unmark(loop)
    if results:
        return results
    why = "no loop uses both cores" if split.refused is None else split.refused.message
    return [PassResult(f"one stage: {why}", is_done=False)]


PASSES = {
    "order": NumberedPass(
        "run blocks in groups of rows, column by column, so that L2 serves both operands",
        "rows of a group",
        _order,
    ),
    "persistent": NumberedPass(
        "let one block a core do the work of all blocks", "cores", _persistent
    ),
    "longer": NumberedPass(
        "load for several iterations of an inner loop at once", "iterations", _of_function(longer)
    ),
    "slots": NumberedPass(
        "give the tiles of inner loops several slots, so that iterations overlap",
        "slots of a tile",
        _of_function(slots),
    ),
    "stages": NumberedPass(
        "run the cube iterations ahead of the vector core in loops that use both",
        "stages of a loop",
        _stages,
    ),
}


@dataclass(frozen=True, slots=True)
class PassStep:
    """One pass of a schedule and its number."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}={self.number}"


Schedule = tuple[PassStep, ...]


def step(text: str) -> PassStep:
    """A step from text: `slots=2`."""
    name, _, number = text.partition("=")
    if name not in PASSES or not number.isdecimal() or int(number) < 1:
        listed = ", ".join(f"{each}=2" for each in PASSES)
        raise fail(
            "PTO-U273", f"`{text}` is no pass", help=f"with a number: {listed}; others: --help"
        )
    return PassStep(name, int(number))


def scheduled(
    launch: ProgramLaunch, schedule: Sequence[PassStep]
) -> tuple[ProgramLaunch, list[list[PassResult]]]:
    """A copy of the program after every step, with the changes of each step."""
    result = ProgramLaunch(copied(launch.module), launch.blocks)
    changes = [PASSES[step.name].run(result, step.number) for step in schedule]
    for function in result.functions:
        tidy(function)
    return result, changes
