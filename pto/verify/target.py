"""What a program says about its target: module attributes, or the RUN line of a compiler test."""

from __future__ import annotations

import re

from pto.ir.graph import Module
from pto.isa.attributes import Str
from pto.target.choose import Target, choose

_RUN = re.compile(r"//\s*RUN:(?!\s*not\b).*?--pto-arch[= ](\w+)")
_HEADER = 4000  # characters; RUN lines stand at the top of a file


def target_of(
    module: Module,
    *,
    profile: str | None = None,
    device: str | None = None,
    edition: str = "current",
) -> Target:
    """The target to judge `module` by: what is asked for, else what the program declares."""
    arch = _declared(module, "pto.target_arch")
    if arch is None:
        run = _RUN.search(module.source.text, 0, _HEADER)
        arch = run[1] if run else None
    return choose(
        profile_name=profile,
        device_name=device,
        target_arch=arch,
        device_spec=_declared(module, "pto.device-spec"),
        edition=edition,
    )


def _declared(module: Module, key: str) -> str | None:
    """The attribute on the module, or on the first module inside it that has one."""
    for op in module.walk():
        if op.name != "builtin.module":
            continue
        value = op.attrs.get(key)
        if isinstance(value, Str):
            return value.value
    return None
