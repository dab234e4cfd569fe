"""Upstream's settings for a kernel: scalars, minimum sizes, outputs, tolerances.

Upstream names parameters by position: v1, v2, ..
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.gym.models.kernels import ModelKernel
from pto.gym.scripts import Scripts

_ASK = Path(__file__).with_name("ask.py")


@dataclass(frozen=True, slots=True)
class Rules:
    """Upstream's settings for one kernel; defaults without a checkout."""

    scalars: Mapping[str, int] = field(default_factory=dict[str, int])
    scalar: int = 1  # an integer without a setting
    elements: Mapping[str, int] = field(default_factory=dict[str, int])
    outputs: tuple[str, ...] = ()  # where upstream sets them
    compared: Mapping[str, int] = field(default_factory=dict[str, int])  # of an output, the first
    closeness: Mapping[str, float] = field(default_factory=dict[str, float])  # half, float
    ulps: int = 0  # of bf16

    def tried(self) -> list[Rules]:
        """Variants to try: these; with 0 for integers without a setting; without scalars.

        Upstream's tables use the kernel's name, and another model may have a kernel of that name.
        """
        free = replace(self, scalars={})
        return [replace(rules, scalar=n) for rules in (self, free) for n in (self.scalar, 0)]


def ask(kernel: ModelKernel, scripts: Scripts, work: Path) -> Rules:
    """The settings from the script of the checkout."""
    if kernel.rules is None:
        return Rules()
    outcome = scripts.run(_ASK, work, [str(kernel.rules), kernel.family, kernel.case])
    if outcome.code != 0:
        output = outcome.output.strip().splitlines()[-1:] or ["no output"]
        raise PtoError(Diagnostic("PTO-U065", f"{kernel.rules} failed: {output[0]}"))
    answer: dict[str, Any] = json.loads(outcome.output)
    answer["outputs"] = tuple(answer["outputs"] or ())
    return Rules(**answer)
