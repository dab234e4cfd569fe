"""The questions that `pto prove` answers of a kernel, for every size and grid at once.

Each answer is `proved`, `refuted` with numbers for which the property fails, or `unknown` with the
use that was not decided. `observe/proofs.py` confirms refutations by a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pto.ir.graph import Operation
from pto.plan.memory import plan_memory
from pto.prove.assume import ANY, Stated
from pto.prove.blocks import conflicts
from pto.prove.bounds import leaving, unproved
from pto.prove.facts import KernelUses, MemUse, facts
from pto.prove.number import ZERO
from pto.prove.order import Problem, Undecided, problems
from pto.prove.reads import unproved_reads
from pto.prove.refute import Counterexample, out_of_bounds, overlapping
from pto.target.facts import Profile

Question = Literal["bounds", "blocks", "order", "deadlock", "reads"]
Verdict = Literal["proved", "refuted", "unknown"]
MEANING: Mapping[Question, str] = {
    "bounds": "every window of global memory stays inside its view",
    "blocks": "no block touches what another block writes",
    "order": "pipes that touch the same bytes do so in order, in all iterations",
    "deadlock": "every wait has its set, and no flag is left over, in all iterations",
    "reads": "every read of a local buffer sees what was written before",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """To one question about one kernel."""

    question: Question
    verdict: Verdict
    text: str
    op: Operation | None = None  # the use that fails, or that is not decided
    other: Operation | None = None
    example: Counterexample | None = None
    assumes: tuple[str, ...] = ()
    reason: str = ""  # why it is unknown, without names and numbers


def answers(
    function: Operation,
    numbers: Mapping[int, int] | None = None,
    blocks: int | None = None,
    assume: Sequence[str] = (),
) -> list[Answer]:
    """Of one kernel; `numbers` and `blocks` as of `facts`."""
    found = facts(function, numbers, blocks, assume=assume)
    assumes = tuple(_assumptions(found, blocks, assume))
    return [_bounds(found, assumes), _blocks(found, assumes)]


def _assumptions(found: KernelUses, blocks: int | None, assume: Sequence[str]) -> list[str]:
    words = [*assume]
    sizes = [s.name for s in found.arguments.values() if s.low == ZERO]
    if sizes:
        words.append(f"{', '.join(sizes)} >= 0")
    if blocks is None:
        words.append("integers do not overflow")
    return words


_TRIED = 6  # uses for which a counterexample is looked for
_ONE = "one block is launched: the kernel does not ask which one it is"


def _bounds(found: KernelUses, assumes: tuple[str, ...]) -> Answer:
    left = leaving(found, lambda root: None)
    for use in left[:_TRIED]:
        example = out_of_bounds(found, use)
        if example is not None:
            needs, root = unproved(use.window, use.given), use.window.root.name
            text = f"'{use.op.name}' op leaves its view of {root}: {needs} does not hold"
            return Answer("bounds", "refuted", text, use.op, None, example, assumes)
    if found.unknown or left:
        return _open("bounds", found, left[0] if left else None, assumes)
    return Answer("bounds", "proved", MEANING["bounds"], assumes=assumes)


def _blocks(found: KernelUses, assumes: tuple[str, ...]) -> Answer:
    if found.launch.blocks.value is None and not found.asks:
        return Answer("blocks", "proved", MEANING["blocks"], assumes=(_ONE,))
    left = conflicts(found)
    if left and not found.unknown and not conflicts(found, inside=True):
        return Answer("blocks", "proved", MEANING["blocks"], assumes=(*assumes, MEANING["bounds"]))
    for pair in left[:_TRIED]:
        example = overlapping(found, pair)
        if example is not None:
            uses = "writes" if pair.other.writes else "reads"
            text = f"one block writes what another one {uses}: {_place(pair.write)}"
            ops = pair.write.op, pair.other.op
            return Answer("blocks", "refuted", text, *ops, example, assumes)
    if found.unknown or left:
        return _open("blocks", found, left[0].write if left else None, assumes)
    return Answer("blocks", "proved", MEANING["blocks"], assumes=assumes)


def order_answers(
    functions: Sequence[Operation], profile: Profile, stated: Stated = ANY
) -> list[Answer]:
    """Of functions that run together, with the flags that order them: `order` and `deadlock`."""
    try:
        if len(functions) > 1:
            raise Undecided(functions[0], "several functions run together")
        found = problems(plan_memory(functions, profile).functions[0], profile, stated)
    except Undecided as end:
        text = f"'{end.op.name}' op: {end.why}"
        return [Answer(q, "unknown", text, end.op, reason=end.why) for q in OF_FLAGS]
    return [_of_problems(q, [p for p in found if p.question == q]) for q in OF_FLAGS]


def reads_answer(functions: Sequence[Operation], profile: Profile, stated: Stated = ANY) -> Answer:
    """Of functions that run together."""
    try:
        if len(functions) > 1:
            raise Undecided(functions[0], "several functions run together")
        found = unproved_reads(plan_memory(functions, profile).functions[0], profile, stated)
    except Undecided as end:
        text = f"'{end.op.name}' op: {end.why}"
        return Answer("reads", "unknown", text, end.op, reason=end.why)
    return _of_problems("reads", [Problem("reads", *each) for each in found])


OF_FLAGS: tuple[Question, ...] = ("order", "deadlock")


def _of_problems(question: Question, found: Sequence[Problem]) -> Answer:
    if not found:
        return Answer(question, "proved", MEANING[question])
    first = found[0]
    text = f"'{first.op.name}' op: {first.text}"
    return Answer(question, "unknown", text, first.op, first.other, reason=first.text)


def _open(
    question: Question, found: KernelUses, use: MemUse | None, assumes: tuple[str, ...]
) -> Answer:
    """The answer for a use that is not decided, with the reason."""
    if use is None:
        op, why = found.unknown[0]
        return Answer(question, "unknown", f"'{op.name}' op: {why}", op, None, None, assumes, why)
    needs = unproved(use.window, use.given)
    why = _place(use) if needs is None else f"{needs} is not proved"
    text, reason = f"'{use.op.name}' op: {why}", "an inequality of sizes is not proved"
    return Answer(question, "unknown", text, use.op, None, None, assumes, reason)


def _place(use: MemUse) -> str:
    """A window in the notation of slices."""
    axes = [f"{a.offset} : {a.offset + a.size} of {a.extent}" for a in use.window.axes]
    return f"{use.window.root.name}[{', '.join(axes)}]"
