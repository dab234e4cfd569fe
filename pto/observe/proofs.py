"""Proofs about kernels; a counterexample is confirmed by a run with it, under the sanitizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, Note, PtoError
from pto.core.render import Piece
from pto.ir.graph import Module, Operation
from pto.isa.row import types as t
from pto.observe.sanitize import sanitize
from pto.observe.shown import Runs
from pto.plan.calls import peers
from pto.plan.memory import plan_memory
from pto.plan.mode import is_ordered_by_sync
from pto.plan.sync import insert
from pto.prove.apart import of_arrays
from pto.prove.assume import GRID, NO_CALL, KnownCall, Stated
from pto.prove.closed import BLOCK, BLOCKS
from pto.prove.number import number
from pto.prove.questions import (
    OF_FLAGS,
    Answer,
    Question,
    answers,
    order_answers,
    reads_answer,
)
from pto.prove.refute import Counterexample
from pto.run.launch.arguments import parameters
from pto.run.launch.call import extents_of
from pto.target.facts import Profile
from pto.transform.separate import separate
from pto.verify.program import legal_target, target_of

CODE = "PTO-V230"
_MOST = 1 << 24  # elements of an array
_SECONDS = 2.0  # of a run
_BETWEEN = ("PTO-R",)  # findings about two blocks
_OUTSIDE = ("PTO-S07", "PTO-M0", "PTO-M1")  # findings about places


def confirmed(
    module: Module, function: Operation, answer: Answer, profile: str | None, stated: Stated
) -> Answer:
    """The answer if a run confirms it; otherwise unknown."""
    if answer.verdict != "refuted" or not answer.examples:
        return answer
    wanted = _BETWEEN if answer.question == "blocks" else _OUTSIDE
    for example in answer.examples:
        findings = _findings(module, function, example, profile, stated)
        if any(d.code.startswith(wanted) for d in findings):
            return replace(answer, text=_violated(answer, example), examples=(example,))
    example = answer.examples[0]
    text = f"{_violated(answer, example)}; a run with {example} did not show it"
    return replace(answer, verdict="unknown", text=text)


def _violated(answer: Answer, example: Counterexample) -> str:
    """The text of a refutation, with the inequality that a counterexample violates."""
    return f"{answer.text}: {example.fails} does not hold" if example.fails else answer.text


def _findings(
    module: Module,
    function: Operation,
    example: Counterexample,
    profile: str | None,
    stated: Stated,
) -> list[Diagnostic]:
    main_params = parameters(function)
    values = {p.name: example.numbers[n] for n, p in enumerate(main_params) if n in example.numbers}
    params = parameters(*peers(function, module))
    values |= {BLOCK: example.block, BLOCKS: example.blocks}
    sizes = stated.sizes({name: number(value) for name, value in values.items()})
    nbytes = {main_params[n].name: size.rest for n, size in sizes.items()}
    args = [_argument(p, values.get(p.name), example.data, nbytes.get(p.name)) for p in params]
    args = [args[stated.same.get(n, n)] for n in range(len(args))]
    options: dict[str, Any] = {"profile": profile, "entry": function.symbol}
    options |= {"fixes": False, "timeout": _SECONDS}
    blocks = (
        1 if any(p.name == BLOCK for p in main_params) else example.blocks
    )  # else all are one block
    try:
        verdict = sanitize(module, args=args, blocks=blocks, **options)
    except PtoError as error:
        return list(error.diagnostics)
    return list(verdict.findings)


def _argument(parameter: Any, value: int | None, data: int, nbytes: int | None) -> Any:
    """A number of the counterexample, or an array of known size, else one that is large enough for
    most."""
    if isinstance(parameter.type, t.Scalar):
        is_float = parameter.dtype is not None and parameter.dtype.is_float
        return 1.0 if is_float else value or 0
    kind = np.uint8 if parameter.dtype is None else parameter.dtype.numpy
    count = min(max(parameter.elements or 0, 1 << 20), _MOST)
    count = count if nbytes is None else min(nbytes // np.dtype(kind).itemsize, _MOST)
    if data and np.issubdtype(kind, np.integer):
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        return np.full(count, min(max(data, least), most), kind)
    return np.zeros(count, kind)


def finding(kernel: str, answer: Answer) -> Diagnostic:
    """A refutation as a finding at the line of the use."""
    notes = [Note(f"numbers: {answer.example}")]
    if answer.other is not None and answer.other is not answer.op:
        notes.append(Note(f"the other use: '{answer.other.name}' op", answer.other.loc))
    loc = None if answer.op is None else answer.op.loc
    help = _HELP if answer.question in ("bounds", "blocks") else _SHOWN
    return Diagnostic(CODE, f"@{kernel}: {answer.text}", loc, notes=tuple(notes), help=help)


_SHOWN = "pto check FILE --deep shows the runs in which it happens"
_HELP = "guard the use, or state what callers keep to: --assume 'rows >= 8 * blocks'"


class Proofs(tuple[tuple[str, Answer], ...]):
    """Answers about kernels, each with the name of its kernel."""

    __slots__ = ()

    @property
    def findings(self) -> list[Diagnostic]:
        """The refutations, as findings."""
        return [finding(name, a) for name, a in self if a.verdict == "refuted"]

    def pieces(self) -> Iterator[Piece]:
        """A line for each answer with its assumptions; those of all proofs are at the end."""
        proofs = [a.assumes for _, a in self if a.verdict == "proved"]
        shared = (
            [text for text in proofs[0] if all(text in p for p in proofs)] if proofs[1:] else []
        )
        for name, a in self:
            unshared = [text for text in a.assumes if text not in shared]
            yield "", f"@{name} {a.question:<8} "
            yield _STYLES[a.verdict], f"{a.verdict:<8}"
            yield "", f" {a.text}\n"
            if a.verdict == "unknown" and a.op is not None and a.op.loc is not None:
                yield "", f"    at {a.op.loc}; a relation between numbers may settle it: --assume\n"
            if a.verdict == "refuted" and a.example is not None:
                yield "", f"    a run confirms it: {a.example}\n"
            if unshared and a.verdict == "proved":
                yield "", f"    assumed: {'; '.join(unshared)}\n"
        if shared:
            yield "", f"assumed by all proofs: {'; '.join(shared)}\n"

    def __str__(self) -> str:
        return "".join(text for _, text in self.pieces()).rstrip("\n")


_STYLES = {"proved": "value", "refuted": "error", "unknown": "warning"}


def prove(
    module: Module,
    functions: Sequence[Operation],
    *,
    profile: str | None = None,
    numbers: Mapping[str, int] | None = None,
    blocks: int | tuple[int, ...] | None = None,
    assume: Sequence[str] = (),
    arrays: Mapping[str, str] | None = None,
    call: KnownCall = NO_CALL,
) -> Proofs:
    """The answers about kernels of a program; raises what makes it illegal. `numbers`: integer
    arguments that are known, by name; `blocks` None: any grid. `arrays`: sizes in bytes as
    formulas, by name of the parameter. `call`: a call that is legal, and its arrays."""
    target = legal_target(module, profile=profile).profile
    answered: list[tuple[str, Answer]] = []
    order = _Order(module, profile)
    for function in functions:
        together = peers(function, module)
        plan_memory(together, target)
        names = [p.name for p in parameters(function)]
        values = {names.index(n): v for n, v in (numbers or {}).items() if n in names}
        count = None
        if blocks is not None:
            extents = extents_of(blocks)
            count = prod(extents)
            axes = zip(GRID, (*extents, 1), strict=False)
            values |= {names.index(axis): n for axis, n in axes if axis in names}
        stated = Stated(
            values,
            assume,
            {names.index(n): size for n, size in (arrays or {}).items() if n in names},
            {names.index(n): names.index(first) for n, first in call.same.items()},
            [(names.index(a), names.index(b)) for a, b in call.shared],
            call.numbers,
        )
        of_function = [
            *(
                confirmed(module, function, a, profile, stated)
                for a in answers(function, stated, count)
            ),
            *order.answers(function, stated),
        ]
        answered += [(function.symbol, of_arrays(a, together, stated)) for a in of_function]
    return Proofs(answered)


class _Order:
    """Answers about order and reads. Order is that of the program for the cores of the profile;
    where a compiler is to insert flags, with those of `pto sync`."""

    def __init__(self, module: Module, profile: str | None) -> None:
        self._module = module
        self._profile = profile
        self._done: set[int] = set()

    @cached_property
    def _target(self) -> Profile:
        return target_of(self._module, profile=self._profile, device=None).profile

    def answers(self, function: Operation, stated: Stated) -> list[Answer]:
        """Functions that run together have one answer, with the first of them."""
        if id(function) in self._done:
            return []
        together = peers(function, self._module)
        self._done |= {id(f) for f in together}
        name, lacks = function.symbol, is_ordered_by_sync(together)
        runs = Runs(self._module, name, self._profile, stated)

        def order() -> list[Answer]:
            split = separate(self._module, self._target, together)
            module = insert(split.module, self._target) if lacks else split.module
            runs = Runs(module, split.entry, self._profile, stated)
            assumed = [_INSERTED] if lacks else []
            if split.refused is not None:
                assumed.append(_WHOLE + split.refused.message)
            answers = map(runs.decided, order_answers(runs.functions, self._target, stated))
            return [replace(a, assumes=(*a.assumes, *assumed)) for a in answers]

        def reads() -> list[Answer]:
            return [runs.decided(reads_answer(together, self._target, stated))]

        answered = [*_answered(order, OF_FLAGS), *_answered(reads, ("reads",))]
        return [replace(a, assumes=(*stated.assume, *a.assumes)) for a in answered]


def _answered(find: Callable[[], list[Answer]], questions: Sequence[Question]) -> list[Answer]:
    """Answers, also where a program is refused."""
    try:
        return find()
    except PtoError as error:
        first = error.diagnostics[0]
        return [Answer(q, "unknown", first.message, reason=first.code) for q in questions]


_WHOLE = "one core has all pipes: "
_INSERTED = "flags are those that pto sync inserts"
