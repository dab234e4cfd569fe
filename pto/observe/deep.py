"""A sanitized run on made-up inputs, for `pto check --deep`: nothing but the program is needed.

Order rarely depends on values, so zeros and a few small numbers show most of it; conditions are
tried both ways. Where the program does not say how large an argument is, there is room for what its
addresses reach. A number that the program refuses is made smaller: what it bounds, it bounds so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pto.core.dtypes import I1
from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, Operation
from pto.isa.meaning.scalar.unit import BLOCK_INDEX
from pto.isa.row import types as t
from pto.observe.mend.repair import Trial
from pto.observe.order.scopes import values_behind
from pto.observe.sanitize import Verdict, sanitize
from pto.run.launch.arguments import Parameter, parameters
from pto.run.launch.arrays import copied
from pto.run.launch.entry import entry_functions
from pto.run.launch.host import launch
from pto.verify.functions import entries, is_defined, name_of

EARLY = "PTO-U233"  # a run on made-up inputs that did not come to its end
_ROOM = 1 << 20  # elements of an argument whose size nothing tells
_BLOCKS = 2  # enough for one block to meet another, where blocks do different work
_SMALL = 16  # what a number of rows, columns or steps is taken to be
_ATTEMPTS = 8  # to find numbers that a program takes
# what does not depend on the size of made-up inputs
_KEPT = ("PTO-R", "PTO-D", "PTO-V21", "PTO-M201", "PTO-M202")


def launches(module: Module, *, profile: str | None, device: str | None) -> list[Trial]:
    """Every kernel on made-up inputs; more than once where conditions are given."""
    is_divided = any(op.body is BLOCK_INDEX for op in module.walk())
    given = {"blocks": _BLOCKS if is_divided else 1, "profile": profile, "device": device}
    return [
        Trial([_value(each, choice) for each in found], {**given, "entry": entry})
        for entry in _entries(module)
        for found in [parameters(*entry_functions(module, entry))]
        for choice in ((True, False) if any(map(_is_condition, found)) else (True,))
    ]


def deep(
    module: Module, *, profile: str | None, device: str | None
) -> Iterator[tuple[Verdict, Diagnostic | None]]:
    """For every run: what the sanitizer finds, and why it ended early where it did."""
    for run in launches(module, profile=profile, device=device):
        verdict = sanitize(module, args=copied(run.args), **run.options)
        kept, stopped = _divided(verdict)
        if stopped is not None and (fitted := _fitted(module, run, stopped)) is not None:
            verdict = sanitize(module, args=fitted.args, **fitted.options)
            kept, stopped = _divided(verdict)
        if stopped is not None:
            stopped = _ended_early(module, run, stopped)
        yield Verdict(kept, verdict.mode, verdict.report), stopped


def _divided(verdict: Verdict) -> tuple[tuple[Diagnostic, ...], Diagnostic | None]:
    """What holds for any inputs, and what ended the run."""
    kept = tuple(d for d in verdict.findings if d.code.startswith(_KEPT))
    other = [d for d in verdict.findings if d not in kept]
    return kept, None if verdict.report is not None or not other else other[0]


def _ended_early(module: Module, run: Trial, stopped: Diagnostic) -> Diagnostic:
    functions = entry_functions(module, run.options["entry"])
    numbers = [
        f"{p.name}={int(a)}"
        for p, a in zip(parameters(*functions), run.args, strict=True)
        if isinstance(a, int)
    ]
    given = f" ({', '.join(numbers)})" if numbers else ""
    return Diagnostic(
        EARLY,
        f"@{name_of(functions[0])} was not looked at to its end: on made-up inputs{given} it"
        f" stopped at {stopped.code}: {stopped.message}",
        stopped.loc,
        help="pto run FILE --arg NAME=VALUE --sanitize looks at it with inputs of yours",
    )


def _fitted(module: Module, run: Trial, stopped: Diagnostic) -> Trial | None:
    """The run with smaller numbers, at last with one block, where it then comes to its end."""
    functions = entry_functions(module, run.options["entry"])
    found, args, options = parameters(*functions), list(run.args), dict(run.options)
    for _ in range(_ATTEMPTS):
        names = _asked_for(functions, stopped)
        chosen = [
            n
            for n, p in enumerate(found)
            if _is_number(p) and args[n] > 0 and (names is None or p.name in names)
        ]
        if not chosen and options["blocks"] == 1:
            return None
        if not chosen:
            options["blocks"] = 1
        for n in chosen:
            args[n] = 1 if args[n] > 1 else 0
        try:
            launch(module, args=copied(args), check=False, **options)
        except PtoError as error:
            stopped = error.diagnostics[0]
        else:
            return Trial(args, options)
    return None


def _asked_for(functions: Sequence[Operation], stopped: Diagnostic) -> set[str] | None:
    """Arguments that the operation which stopped a run depends on; None: nobody knows."""
    for function in functions:
        for op in function.walk():
            if op.loc is not None and op.loc == stopped.loc:
                own = {id(a): a.name for a in function.regions[0].block.args}
                return {own[id(v)] for v in values_behind(op) if id(v) in own}
    return None


def _entries(module: Module) -> list[str | None]:
    """None where it is clear what runs; else every kernel by its name."""
    try:
        entry_functions(module, None)
    except PtoError as error:
        found = entries([f for f in module.functions() if is_defined(f)])
        if not found:
            raise error from None
        return [name_of(f) for f in found]
    return [None]


def _is_condition(parameter: Parameter) -> bool:
    return isinstance(parameter.type, t.Scalar) and parameter.dtype is I1


def _is_number(parameter: Parameter) -> bool:
    kind = parameter.dtype
    is_whole = kind is None or not kind.is_float
    return isinstance(parameter.type, t.Scalar) and is_whole and not _is_condition(parameter)


def _value(parameter: Parameter, choice: bool) -> Any:
    kind = parameter.dtype
    if _is_condition(parameter):
        return choice
    if isinstance(parameter.type, t.Scalar):
        return 1.0 if kind is not None and kind.is_float else _SMALL
    shape = getattr(parameter.type, "shape", None)
    if shape is not None:
        sizes = [_SMALL if n is None else n for n in shape]
    else:
        sizes = [max(parameter.elements or 0, _ROOM)]
    return np.zeros(sizes, np.uint8 if kind is None else kind.numpy)
