"""Checks of an optimised program before it is used: legal, ordered, and equal in every bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.observe.proofs import prove
from pto.observe.sanitize import sanitize
from pto.plan.calls import entry_functions
from pto.plan.sync import insert
from pto.run.launch.host import launch
from pto.target.facts import Profile
from pto.transform.schedule import ProgramLaunch
from pto.transform.separate import Separated, separate
from pto.verify import verify

_ENGINES = ("reference", "jit")
_ORDER = ("order", "deadlock")
_SECONDS = 20.0  # of a run

Bits = list[bytes]


class RejectedError(Exception):
    """An optimised program that fails a check; its text names the check."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A launch as it is written and as it is optimised, on arguments on which both are run."""

    before: ProgramLaunch
    after: ProgramLaunch
    args: Sequence[Any]


def accepted(
    before: ProgramLaunch,
    after: ProgramLaunch,
    profile: Profile,
    comparisons: Sequence[Comparison],
) -> tuple[str, ...]:
    """What was checked, one sentence each; raises RejectedError if a check fails."""
    errors = [d for d in verify(after.module, profile) if d.severity == "error"]
    if errors:
        raise RejectedError(errors[0].message)
    proved = _require_order(before.module, after.module, profile)
    checked = ["legal, and fits the buffers", proved]
    for each in comparisons:
        _require_equal(each, profile)
    if comparisons:
        _require_clean(comparisons[0 if _is_split(after, profile) else -1], profile)
        shapes = "; ".join(_shapes(each) for each in comparisons)
        checked.append(f"equal bits on both engines, and clean under the sanitizer: {shapes}")
        unfit = [_shapes(each) for each in comparisons if not _runs_on_chip(each.after, profile)]
        if unfit:
            checked.append(
                f"as functions of two cores not run, which do not fit: {'; '.join(unfit)}"
            )
    else:
        checked.append("bits not compared: no small launch of this program is known")
    return tuple(checked)


def _is_split(program: ProgramLaunch, profile: Profile) -> bool:
    return separate(program.module, profile, program.functions).module is not program.module


def _runs_on_chip(program: ProgramLaunch, profile: Profile) -> bool:
    return not _is_split(program, profile) or bool(_on_chip(program, profile))


def _shapes(comparison: Comparison) -> str:
    arrays = (a for a in comparison.args if isinstance(a, np.ndarray))
    return ", ".join("x".join(map(str, a.shape)) for a in arrays)


def _require_order(before: Module, after: Module, profile: Profile) -> str:
    """Raise unless order and deadlock are proved for all sizes, or were not before either."""
    proofs = _verdicts(after, profile)
    lost = [q for q in _ORDER if proofs[q] != "proved"]
    if not lost:
        return "order and absence of deadlock proved for all sizes"
    known = _verdicts(before, profile)
    worse = [q for q in lost if known[q] == "proved"]
    if worse:
        raise RejectedError(f"{worse[0]} of the optimised program is {proofs[worse[0]]}")
    return f"{lost[0]} is {proofs[lost[0]]}, as for the program as it is written"


def _verdicts(module: Module, profile: Profile) -> dict[str, str]:
    answers = prove(module, entry_functions(module, None), profile=profile.name)
    return {answer.question: answer.verdict for _, answer in answers}


def _require_equal(comparison: Comparison, profile: Profile) -> None:
    before = comparison.before
    after = comparison.after
    args = comparison.args
    wanted = bits(before, args, _ENGINES[0], profile)
    programs = [Separated(after.module, None), *_on_chip(after, profile)]
    for program, engine in product(programs, _ENGINES):
        if _bits(program, after.blocks, args, engine, profile) != wanted:
            shapes = _shapes(comparison)
            raise RejectedError(f"other bits than the program as written: {engine}, {shapes}")


def _on_chip(program: ProgramLaunch, profile: Profile) -> list[Separated]:
    """The functions of both cores, in order; none where there are none, or these sizes do not fit.

    Sizes at which rows are counted when the program runs leave all rows to one vector sub-block.
    """
    split = separate(program.module, profile, program.functions)
    if split.module is program.module:
        return []
    try:
        return [replace(split, module=insert(split.module, profile))]
    except PtoError:
        return []


def _require_clean(comparison: Comparison, profile: Profile) -> None:
    """Raise if the sanitizer finds what it does not find in the program as it is written."""
    before, after, args = comparison.before, comparison.after, comparison.args
    known: list[str] | None = None
    for program in (Separated(after.module, None), *_on_chip(after, profile)):
        found = _codes(program, after.blocks, args, profile)
        if found and known is None:
            known = _codes(Separated(before.module, None), before.blocks, args, profile)
        found = [code for code in found if code not in (known or ())]
        if found:
            raise RejectedError(f"the sanitizer finds {found[0]} in the optimised program")


def bits(program: ProgramLaunch, args: Sequence[Any], engine: str, profile: Profile) -> Bits:
    """The bytes of all arrays after a run on copies."""
    return _bits(Separated(program.module, None), program.blocks, args, engine, profile)


def _bits(
    program: Separated, blocks: int, args: Sequence[Any], engine: str, profile: Profile
) -> Bits:
    copies = _copies(args)
    launch(
        program.module,
        entry=program.entry,
        args=program.arguments(copies, blocks),
        blocks=blocks,
        engine=engine,
        profile=profile.name,
        coverage=False,
        timeout=_SECONDS,
    )
    return [each.tobytes() for each in copies if isinstance(each, np.ndarray)]


def _codes(program: Separated, blocks: int, args: Sequence[Any], profile: Profile) -> list[str]:
    verdict = sanitize(
        program.module,
        entry=program.entry,
        args=program.arguments(_copies(args), blocks),
        blocks=blocks,
        profile=profile.name,
        timeout=_SECONDS,
        fixes=False,
    )
    return [each.code for each in verdict.findings]


def _copies(args: Sequence[Any]) -> list[Any]:
    return [each.copy() if isinstance(each, np.ndarray) else each for each in args]


def random_array(array: np.ndarray[Any, np.dtype[Any]], extent: int) -> np.ndarray[Any, Any]:
    """An array like this one with random elements, and extents of at most `extent`."""
    shape, random = tuple(min(n, extent) for n in array.shape), np.random.default_rng(extent)
    if array.dtype.kind in "iub":
        return random.integers(0, 3, shape).astype(array.dtype)
    return random.standard_normal(shape).astype(array.dtype)
