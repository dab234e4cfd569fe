"""The questions that `pto prove` answers of a kernel, for every size and grid at once.

Each answer is `proved`, `refuted` with numbers for which the property fails, or `unknown` with the
use that was not decided. `observe/proofs.py` confirms refutations by a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pto.ir.graph import Operation
from pto.prove.blocks import conflicts
from pto.prove.bounds import leaving, unproved
from pto.prove.facts import Facts, Use, facts
from pto.prove.refute import Example, out_of_bounds, overlapping

Question = Literal["bounds", "blocks"]
Verdict = Literal["proved", "refuted", "unknown"]
MEANING: Mapping[Question, str] = {
    "bounds": "every window of global memory stays inside its view",
    "blocks": "no block touches what another block writes",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """To one question about one kernel."""

    question: Question
    verdict: Verdict
    text: str
    op: Operation | None = None  # the use that fails, or that is not decided
    other: Operation | None = None
    example: Example | None = None
    assumes: tuple[str, ...] = ()


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


def _assumptions(found: Facts, blocks: int | None, assume: Sequence[str]) -> list[str]:
    words = [*assume]
    sizes = [s.name for s in found.arguments.values() if s.low is not None]
    if sizes:
        words.append(f"{', '.join(sizes)} >= 0")
    if blocks is None:
        words.append("integers do not overflow")
    return words


def _bounds(found: Facts, assumes: tuple[str, ...]) -> Answer:
    left = leaving(found, lambda root: None)
    for use in left:
        example = out_of_bounds(found, use, found.assumed)
        if example is not None:
            needs, root = unproved(use.window, use.given), use.window.root.name
            text = f"'{use.op.name}' op leaves its view of {root}: {needs} does not hold"
            return Answer("bounds", "refuted", text, use.op, None, example, assumes)
    if found.unknown or left:
        return _open("bounds", found, left[0] if left else None, assumes)
    return Answer("bounds", "proved", MEANING["bounds"], assumes=assumes)


def _blocks(found: Facts, assumes: tuple[str, ...]) -> Answer:
    left = conflicts(found)
    for pair in left:
        example = overlapping(found, pair, found.assumed)
        if example is not None:
            uses = "writes" if pair.other.writes else "reads"
            text = f"one block writes what another one {uses}: {_place(pair.write)}"
            ops = pair.write.op, pair.other.op
            return Answer("blocks", "refuted", text, *ops, example, assumes)
    if found.unknown or left:
        return _open("blocks", found, left[0].write if left else None, assumes)
    return Answer("blocks", "proved", MEANING["blocks"], assumes=assumes)


def _open(question: Question, found: Facts, use: Use | None, assumes: tuple[str, ...]) -> Answer:
    """The answer for a use that is not decided, with the reason."""
    if use is None:
        op, why = found.unknown[0]
        return Answer(question, "unknown", f"'{op.name}' op: {why}", op, assumes=assumes)
    needs = unproved(use.window, use.given)
    why = _place(use) if needs is None else f"{needs} is not proved"
    return Answer(question, "unknown", f"'{use.op.name}' op: {why}", use.op, assumes=assumes)


def _place(use: Use) -> str:
    """A window in the notation of slices."""
    axes = [f"{a.offset} : {a.offset + a.size} of {a.extent}" for a in use.window.axes]
    return f"{use.window.root.name}[{', '.join(axes)}]"
