"""Selects the target to verify a program for: requested, declared, or the first that accepts it."""

from __future__ import annotations

import re
from collections.abc import Callable

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module
from pto.isa.row.attributes import Str
from pto.isa.row.traits import Control
from pto.target.choose import Target, choose
from pto.verify.program import verify

# A compiler test names its target on a RUN line; a test that must fail has `not` there.
_RUN = re.compile(r"//\s*RUN:(?!\s*not\b).*?--pto-arch[= ](\w+)")
_RUN_NOT = re.compile(r"//\s*RUN:\s*not\b.*?--pto-arch[= ](\w+)")
_HEADER = 4000  # characters; RUN lines are at the top of a file


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
    """The target, and all findings for it.

    A program that declares no target is checked for the default profile; if that rejects it, for
    the first other profile that accepts it.
    """
    target = target_of(module, profile=profile, device=device, edition=edition)
    findings = by(module, target.profile, level=level)
    if target.declared or not _refuses(findings):
        return target, findings
    for name in _FALLBACKS:
        other = target_of(module, profile=name, edition=edition)
        found = by(module, other.profile, level=level)
        if not _refuses(found):
            reason = f"the program declares none, and {target.profile} rejects it"
            return Target(other.profile, None, reason, declared=False), found
    return target, findings


def legal_target(
    module: Module, *, profile: str | None = None, device: str | None = None
) -> Target:
    """The target that `judge` chooses; raises the errors under it."""
    target, found = judge(module, profile=profile, device=device)
    if _refuses(found):
        raise PtoError(*(d for d in found if d.severity == "error"))
    return target


def _refuses(findings: list[Diagnostic]) -> bool:
    return any(d.severity == "error" for d in findings)


def target_of(
    module: Module,
    *,
    profile: str | None = None,
    device: str | None = None,
    edition: str = "current",
) -> Target:
    """The target to verify `module` for: the arguments, else the declaration in the program."""
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
    """Set the target attribute of a program, unless it declares this profile already."""
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
