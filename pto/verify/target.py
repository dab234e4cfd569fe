"""Which target a program is judged by: what is asked for, what it declares, what accepts it."""

from __future__ import annotations

import re
from collections.abc import Callable

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module
from pto.isa.row.attributes import Str
from pto.isa.row.traits import Control
from pto.target.choose import Target, choose
from pto.verify.program import verify

# A compiler test names its target on a RUN line; one it must refuse says `not`.
_RUN = re.compile(r"//\s*RUN:(?!\s*not\b).*?--pto-arch[= ](\w+)")
_RUN_NOT = re.compile(r"//\s*RUN:\s*not\b.*?--pto-arch[= ](\w+)")
_HEADER = 4000  # characters; RUN lines stand at the top of a file


_FALLBACKS = ("a5", "cpu")  # tried in this order after the default


def judge(
    module: Module,
    *,
    profile: str | None = None,
    device: str | None = None,
    edition: str = "current",
    level: int | None = None,
    by: Callable[..., list[Diagnostic]] = verify,
) -> tuple[Target, list[Diagnostic]]:
    """The target and every finding under it.

    A program that names no target is judged by the default profile, or by the first other one that
    accepts it when the default does not.
    """
    target = target_of(module, profile=profile, device=device, edition=edition)
    findings = by(module, target.profile, level=level)
    if target.declared or not _refuses(findings):
        return target, findings
    for name in _FALLBACKS:
        other = target_of(module, profile=name, edition=edition)
        found = by(module, other.profile, level=level)
        if not _refuses(found):
            reason = f"the program names none, and {target.profile} refuses it"
            return Target(other.profile, None, reason, declared=False), found
    return target, findings


def _refuses(findings: list[Diagnostic]) -> bool:
    return any(d.severity == "error" for d in findings)


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
        text = module.source.text
        run = _RUN.search(text, 0, _HEADER) or _RUN_NOT.search(text, 0, _HEADER)
        arch = run[1] if run else None
    try:
        return choose(
            profile_name=profile,
            device_name=device,
            target_arch=arch,
            device_spec=_declared(module, "pto.device-spec"),
            edition=_declared(module, "pto.edition") or edition
            if edition == "current"
            else edition,
        )
    except PtoError as error:
        if profile is not None or device is not None:
            raise
        raise PtoError(*(d.at(module.op.loc) for d in error.diagnostics)) from None


def declare(module: Module, profile: str) -> None:
    """Make a program name its profile, where its attributes name another one or none."""
    arch, spec = (_declared(module, key) for key in ("pto.target_arch", "pto.device-spec"))
    if not (arch or spec) or choose(target_arch=arch, device_spec=spec).profile.name != profile:
        modules = [op for op in module.walk() if op.control is Control.MODULE]
        named = [op for op in modules if "pto.target_arch" in op.attrs]
        (named or modules)[0].attrs["pto.target_arch"] = Str(profile)


def _declared(module: Module, key: str) -> str | None:
    """The attribute on the module, or on the first module inside it that has one."""
    for op in module.walk():
        if op.control is not Control.MODULE:
            continue
        value = op.attrs.get(key)
        if isinstance(value, Str):
            return value.value
    return None
