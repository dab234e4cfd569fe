"""Proofs about kernels; a counterexample is confirmed by a run with it, under the sanitizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, Note, PtoError
from pto.core.render import Piece
from pto.ir.graph import Module, Operation
from pto.isa.row import types as t
from pto.observe.sanitize import sanitize
from pto.prove.questions import Answer, answers
from pto.run.launch.arguments import parameters
from pto.run.launch.call import extents_of
from pto.verify.functions import name_of

CODE = "PTO-V230"
_MOST = 1 << 24  # elements of an array
_BETWEEN = ("PTO-R",)  # findings about two blocks
_OUTSIDE = ("PTO-S07", "PTO-M0", "PTO-M1")  # findings about places


def confirmed(module: Module, function: Operation, answer: Answer, profile: str | None) -> Answer:
    """The answer, where a run shows what it says; else that it is unknown."""
    if answer.verdict != "refuted" or answer.example is None:
        return answer
    found = _findings(module, function, answer, profile)
    wanted = _BETWEEN if answer.question == "blocks" else _OUTSIDE
    if any(d.code.startswith(wanted) for d in found):
        return answer
    text = f"{answer.text}; a run with {answer.example} did not show it"
    return replace(answer, verdict="unknown", text=text)


def _findings(
    module: Module, function: Operation, answer: Answer, profile: str | None
) -> list[Diagnostic]:
    assert answer.example is not None
    args = [_argument(p, answer.example.numbers.get(n)) for n, p in enumerate(parameters(function))]
    options: dict[str, Any] = {"profile": profile, "entry": name_of(function)}
    try:
        verdict = sanitize(module, args=args, blocks=answer.example.blocks, **options)
    except PtoError as error:
        return list(error.diagnostics)
    return list(verdict.findings)


def _argument(parameter: Any, value: int | None) -> Any:
    """A number of the counterexample, or an array that is large enough for most."""
    if isinstance(parameter.type, t.Scalar):
        is_float = parameter.dtype is not None and parameter.dtype.is_float
        return 1.0 if is_float else value or 0
    kind = np.uint8 if parameter.dtype is None else parameter.dtype.numpy
    return np.zeros(min(max(parameter.elements or 0, 1 << 20), _MOST), kind)


def finding(kernel: str, answer: Answer) -> Diagnostic:
    """A refutation as a finding at the line of the use."""
    notes = [Note(f"numbers: {answer.example}")]
    if answer.other is not None and answer.other is not answer.op:
        notes.append(Note(f"the other use: '{answer.other.name}' op", answer.other.loc))
    loc = None if answer.op is None else answer.op.loc
    return Diagnostic(CODE, f"@{kernel}: {answer.text}", loc, notes=tuple(notes), help=_HELP)


_HELP = "guard the use, or state what callers keep to: --assume 'rows >= 8 * blocks'"


class Proofs(tuple[tuple[str, Answer], ...]):
    """Answers about kernels, each with the name of its kernel."""

    __slots__ = ()

    @property
    def findings(self) -> list[Diagnostic]:
        """The refutations, as findings."""
        return [finding(name, a) for name, a in self if a.verdict == "refuted"]

    def pieces(self) -> Iterator[Piece]:
        """A line for each answer, and what it rests on."""
        for name, a in self:
            yield "", f"@{name} {a.question:<7} "
            yield _STYLES[a.verdict], f"{a.verdict:<8}"
            yield "", f" {a.text}\n"
            if a.verdict == "unknown" and a.op is not None and a.op.loc is not None:
                yield "", f"    at {a.op.loc}; a relation between numbers may settle it: --assume\n"
            if a.assumes and a.verdict == "proved":
                yield "", f"    assumed: {'; '.join(a.assumes)}\n"

    def __str__(self) -> str:
        return "".join(text for _, text in self.pieces()).rstrip("\n")


_STYLES = {"proved": "value", "refuted": "error", "unknown": "warning"}


def prove(
    module: Module,
    functions: Sequence[Operation],
    *,
    profile: str | None = None,
    given: Mapping[str, int] | None = None,
    blocks: int | tuple[int, ...] | None = None,
    assume: Sequence[str] = (),
) -> Proofs:
    """The answers about kernels of a program. `given`: integer arguments that are known, by name;
    `blocks` None: any grid."""
    found: list[tuple[str, Answer]] = []
    for function in functions:
        names = [p.name for p in parameters(function)]
        known = {names.index(n): v for n, v in (given or {}).items() if n in names}
        count = None
        if blocks is not None:
            extents = extents_of(blocks)
            count = prod(extents)
            axes = zip(("grid_x", "grid_y"), extents, strict=False)
            known |= {names.index(axis): n for axis, n in axes if axis in names}
        for answer in answers(function, known, count, assume):
            found.append((name_of(function), confirmed(module, function, answer, profile)))
    return Proofs(found)
