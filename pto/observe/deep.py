"""A sanitized run on made-up inputs, for `pto check --deep`: nothing but the program is needed.

Order rarely depends on values, so zeros and a few small numbers show most of it. Where the program
does not say how large an argument is, there is room for what its addresses reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module
from pto.isa.meaning.scalar.unit import BLOCK_INDEX
from pto.isa.row import types as t
from pto.observe.repair import Trial
from pto.observe.sanitize import Verdict, sanitize
from pto.run.launch.arguments import Parameter, parameters
from pto.run.launch.entry import entry_functions
from pto.verify.functions import entries, is_defined, name_of

_ROOM = 1 << 20  # elements of an argument whose size nothing tells
_BLOCKS = 2  # enough for one block to meet another, where blocks do different work
_SMALL = 16  # what a number of rows, columns or steps is taken to be
# what does not depend on the size of made-up inputs
_KEPT = ("PTO-R", "PTO-D", "PTO-V21", "PTO-M201", "PTO-M202")


def launches(module: Module, *, profile: str | None, device: str | None) -> list[Trial]:
    """Every kernel once, on made-up inputs."""
    is_divided = any(op.body is BLOCK_INDEX for op in module.walk())
    given = {"blocks": _BLOCKS if is_divided else 1, "profile": profile, "device": device}
    return [
        Trial(
            [_value(each) for each in parameters(*entry_functions(module, entry))],
            {**given, "entry": entry},
        )
        for entry in _entries(module)
    ]


def deep(
    module: Module, *, profile: str | None, device: str | None
) -> Iterator[tuple[Verdict, Diagnostic | None]]:
    """For every kernel: what the sanitizer finds, and why the run ended early where it did."""
    for run in launches(module, profile=profile, device=device):
        verdict = sanitize(module, args=run.args, **run.options)
        kept = tuple(d for d in verdict.findings if d.code.startswith(_KEPT))
        other = [d for d in verdict.findings if d not in kept]
        stopped = None if verdict.report is not None or not other else other[0]
        yield Verdict(kept, verdict.mode, verdict.report), stopped


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


def _value(parameter: Parameter) -> Any:
    kind = parameter.dtype
    if isinstance(parameter.type, t.Scalar):
        return 1.0 if kind is not None and kind.is_float else _SMALL
    shape = getattr(parameter.type, "shape", None)
    if shape is not None:
        sizes = [_SMALL if n is None else n for n in shape]
    else:
        sizes = [max(parameter.elements or 0, _ROOM)]
    return np.zeros(sizes, np.uint8 if kind is None else kind.numpy)
