"""The questions that `pto prove` answers of a kernel, for every size and grid at once.

Each answer is `proved`, `refuted` with numbers for which the property fails, or `unknown` with the
use that was not decided. `observe/proofs.py` confirms refutations by a run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pto.ir.graph import Operation
from pto.plan.memory import plan_memory
from pto.prove.agents import INSIDE
from pto.prove.assume import ANY, Stated
from pto.prove.blocks import conflicts
from pto.prove.bounds import leaving, unproved
from pto.prove.facts import KernelUses, MemUse, facts
from pto.prove.nodes import Undecided
from pto.prove.number import ZERO
from pto.prove.order import Asked, Problem
from pto.prove.reads import unproved_reads
from pto.prove.refute import Counterexample, out_of_bounds, overlapping
from pto.prove.together import problems
from pto.target.facts import Profile

Question = Literal["bounds", "blocks", "order", "deadlock", "reads"]
Verdict = Literal["proved", "refuted", "unknown"]
MEANING: Mapping[Question, str] = {
    "bounds": INSIDE,
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
    examples: tuple[Counterexample, ...] = ()  # calls that refute it; a run confirms the first
    assumes: tuple[str, ...] = ()
    reason: str = ""  # why it is unknown, without names and numbers

    @property
    def example(self) -> Counterexample | None:
        return self.examples[0] if self.examples else None


def answers(function: Operation, stated: Stated = ANY, blocks: int | None = None) -> list[Answer]:
    """Of one kernel; `blocks` None: any grid."""
    uses = facts(function, stated, blocks)
    sizes = ", ".join(s.name for s in uses.arguments.values() if s.low == ZERO)
    assumes = [*stated.assume, *[f"{sizes} >= 0"] * bool(sizes)]
    assumes += [f"blocks == {uses.grid}"] * bool(uses.grid)
    assumes += ["integers do not overflow"] * (blocks is None)
    alone = blocks is None and not uses.asks
    one = Answer("blocks", "proved", MEANING["blocks"], assumes=(ALONE,))
    answered = [_bounds(uses)] if alone else [_bounds(uses), _blocks(uses)]
    return [*(replace(a, assumes=(*assumes, *a.assumes)) for a in answered), *[one] * alone]


_TRIED = 6  # uses that are searched for a counterexample
_EXAMPLES = 4  # calls of one use that a run may confirm
ALONE = "one block is launched: the kernel does not use its block number"


def _bounds(uses: KernelUses) -> Answer:
    left = leaving(uses)
    for use in left[:_TRIED]:
        calls = _different(out_of_bounds(uses, use))
        if calls:
            text = f"'{use.op.name}' op leaves its view of {use.window.root.name}"
            return Answer("bounds", "refuted", text, use.op, None, calls)
    if uses.unknown or left:
        return _open("bounds", uses, left[0] if left else None)
    return Answer("bounds", "proved", MEANING["bounds"])


def _blocks(kernel_uses: KernelUses) -> Answer:
    left = conflicts(kernel_uses)
    if left and not kernel_uses.unknown and not conflicts(kernel_uses, inside=True):
        return Answer("blocks", "proved", MEANING["blocks"], assumes=(MEANING["bounds"],))
    for pair in left[:_TRIED]:
        calls = _different(overlapping(kernel_uses, pair))
        if calls:
            uses = "writes" if pair.other.writes else "reads"
            text = f"one block writes what another one {uses}: {_place(pair.write)}"
            return Answer("blocks", "refuted", text, pair.write.op, pair.other.op, calls)
    if kernel_uses.unknown or left:
        return _open("blocks", kernel_uses, left[0].write if left else None)
    return Answer("blocks", "proved", MEANING["blocks"])


def _different(calls: Iterator[Counterexample]) -> tuple[Counterexample, ...]:
    """The first calls with different numbers, at most `_EXAMPLES`."""
    by_numbers: dict[Hashable, Counterexample] = {}
    for call in calls:
        by_numbers.setdefault(tuple(call.numbers.values()), call)
        if len(by_numbers) == _EXAMPLES:
            break
    return tuple(by_numbers.values())


OF_FLAGS: tuple[Question, ...] = ("order", "deadlock")


def order_answers(
    functions: Sequence[Operation], profile: Profile, stated: Stated = ANY
) -> list[Answer]:
    """Of functions that run together, with the flags that order them: `order` and `deadlock`."""
    assumed = list[tuple[Asked, str]]()
    answered = _of_walk(lambda: problems(functions, profile, stated, assumed), OF_FLAGS)
    return [replace(a, assumes=tuple(t for q, t in assumed if q == a.question)) for a in answered]


def reads_answer(functions: Sequence[Operation], profile: Profile, stated: Stated = ANY) -> Answer:
    """Of functions that run together."""

    def walk() -> list[Problem]:
        if len(functions) > 1:
            raise Undecided(functions[0], "several functions run together")
        return unproved_reads(plan_memory(functions, profile).functions[0], profile, stated)

    return _of_walk(walk, ("reads",))[0]


def _of_walk(walk: Callable[[], list[Problem]], questions: Sequence[Question]) -> list[Answer]:
    try:
        problems_seen = walk()
    except Undecided as end:
        return [_unknown(q, end.op, end.why) for q in questions]
    first = {
        p.question: _unknown(p.question, p.op, p.text, p.other) for p in reversed(problems_seen)
    }
    return [first.get(q) or Answer(q, "proved", MEANING[q]) for q in questions]


def _unknown(question: Question, op: Operation, why: str, other: Operation | None = None) -> Answer:
    return Answer(question, "unknown", f"'{op.name}' op: {why}", op, other, reason=why)


def _open(question: Question, uses: KernelUses, use: MemUse | None) -> Answer:
    """The answer for a use that is not decided, with the reason."""
    if use is None:
        return _unknown(question, *uses.unknown[0])
    needs = unproved(use.window, use.given)
    why = _place(use) if needs is None else f"{needs} is not proved"
    return replace(_unknown(question, use.op, why), reason="an inequality of sizes is not proved")


def _place(use: MemUse) -> str:
    """A window in the notation of slices."""
    axes = [f"{a.offset} : {a.offset + a.size} of {a.extent}" for a in use.window.axes]
    return f"{use.window.root.name}[{', '.join(axes)}]"
