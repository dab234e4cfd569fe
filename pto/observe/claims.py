"""Claims of proofs that a watched run contradicts. There must be none: it is tested on mutants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pto.core.errors import Diagnostic
from pto.ir.graph import Operation
from pto.observe.order.fences import NEEDLESS
from pto.observe.shown import CODES
from pto.prove.order import LINES
from pto.prove.questions import Answer, Question, answers, order_answers, reads_answer
from pto.target.facts import Profile

# A run may also leave the array of its host, which a proof for all sizes does not cover.
_CODES: dict[Question, tuple[str, ...]] = {
    **CODES,
    "bounds": ("PTO-S073", "PTO-M006"),
    "blocks": ("PTO-R021", "PTO-R022", "PTO-R023"),
}

_OF_LINES = ("PTO-R043", "PTO-R044")  # findings about what `LINES` assumes


def contradicted(
    functions: Sequence[Operation], profile: Profile, findings: Iterable[Diagnostic]
) -> list[tuple[Question, str]]:
    """The questions about functions that run together which formulas answer with `proved` and a
    finding with no, each with the code of the finding."""
    codes = sorted({d.code for d in findings if d.code not in NEEDLESS})
    codes.sort(key=lambda code: code not in _OF_LINES)  # the last one of a question counts
    refuted: dict[Question, str] = {}
    for code in codes:
        refuted |= {q: code for q, prefix in _CODES.items() if code.startswith(prefix)}
    claims = {a.question: a for a in _answers(functions, profile, refuted) if a.verdict == "proved"}
    return [
        (question, code)
        for question, code in refuted.items()
        if question in claims and not (code in _OF_LINES and LINES in claims[question].assumes)
    ]


def _answers(
    functions: Sequence[Operation], profile: Profile, questions: Iterable[Question]
) -> Iterator[Answer]:
    """Answers to these questions, and to others that come with them, without a run."""
    if {"bounds", "blocks"} & {*questions}:
        for function in functions:
            yield from answers(function)
    if {"order", "deadlock"} & {*questions}:
        yield from order_answers(functions, profile)
    if "reads" in questions:
        yield reads_answer(functions, profile)
