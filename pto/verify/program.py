"""Verifies a whole program: first each operation separately, then rules between operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, no_collection
from pto.isa.meaning.handle.subview import SUBSET, SUBVIEW
from pto.isa.meaning.simt.memory import OWN_ARRAY
from pto.isa.meaning.tile.compare import PACKING
from pto.isa.order.cross_core import SEMAPHORE
from pto.isa.row.attributes import Str, word
from pto.isa.row.instr import Instr
from pto.isa.row.order import Barrier, OfQueue, OpenQueue, QueueSlots, SetFlag, WaitFlag
from pto.isa.row.traits import Control
from pto.isa.rules.vector import STORE_STATES
from pto.isa.simt.launch import INSIDE, OUTSIDE
from pto.isa.simt.memory import ATOMIC
from pto.target.facts import Profile
from pto.target.profile import Target, choose
from pto.verify import (
    buffers,
    flags,
    functions,
    masks,
    operation,
    pipes,
    queues,
    signals,
    simt,
    streams,
    windows,
)

Check = Callable[[Module, Profile], Iterator[Diagnostic]]


@no_collection()
def verify(
    module: Module,
    profile: Profile,
    *,
    level: int | None = None,
    of_operations: Sequence[Diagnostic] | None = None,
) -> list[Diagnostic]:
    """All findings: four stages per operation (type, shape, layout, profile), then rules between
    operations.

    At `level` 3 the program must place all of its memory, also scratch; at level 2 the compiler
    places it, and a program that places tiles is rejected, as by PTOAS; None accepts both.
    `of_operations`
    are findings per operation that the caller (an editor) has computed already.
    """
    findings = [
        *(operation.check(module, profile, level) if of_operations is None else of_operations),
        *functions.check(module),
        *functions.check_places(module),
        *buffers.check(module, profile, level),
    ]
    present = {op.row for op in module.walk()}
    for concerns, check in _SELDOM:
        if any(map(concerns, present)):
            findings += check(module, profile)
    return sorted(findings, key=_place)


def _has_queue(row: Instr) -> bool:
    return isinstance(row.order, OpenQueue | OfQueue | QueueSlots)


def _is_of_items(row: Instr) -> bool:
    return row.scope in (INSIDE, OUTSIDE) or row.family is ATOMIC or row.body is OWN_ARRAY


# Checks of operations that few programs have, each with the rows that it is about.
_SELDOM: tuple[tuple[Callable[[Instr], bool], Check], ...] = (
    (lambda row: id(row.body) in PACKING, masks.check),
    (lambda row: isinstance(row.order, SetFlag | WaitFlag | Barrier), flags.check),
    (_has_queue, pipes.check),
    (_has_queue, queues.check),
    (lambda row: row.family is SEMAPHORE, signals.check),
    (_is_of_items, simt.check),
    (lambda row: row.name in STORE_STATES, streams.check),
    (lambda row: row.body in (SUBVIEW, SUBSET), windows.check),
)


def _place(finding: Diagnostic) -> tuple[int, int]:
    return (finding.loc.line, finding.loc.col) if finding.loc else (0, 0)


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
    target, findings = judge(module, profile=profile, device=device)
    if _refuses(findings):
        raise PtoError(*(d for d in findings if d.severity == "error"))
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
    modules = (op for op in module.walk() if op.control is Control.MODULE)
    return next((w for op in modules if (w := word(op.attrs, key)) is not None), None)
