"""Findings about what a profile does not have. Owns no table: the profile is the table."""

from __future__ import annotations

from collections.abc import Callable

from pto.core.errors import Diagnostic, Note
from pto.target.facts import Profile
from pto.target.feature import FEATURES
from pto.target.profile import ROWS

_SCALE_ROLES = frozenset({"scale_left", "scale_right"})  # PTO manual: required by MX formats


def check_tile(
    target: Profile, role: str, layout: str, fractal: int | None, dtype: str, *, pad: str = "null"
) -> tuple[Diagnostic, ...]:
    """Everything this profile refuses about a tile; empty when it is legal."""
    findings = (
        check_layout(target, role, layout, fractal),
        check_type(target, dtype, what=f"{role} tile"),
        check_feature(target, "mx", what=f"{role} tile") if role in _SCALE_ROLES else None,
        check_feature(target, "custom_pad", what=f"{role} tile") if pad == "custom" else None,
    )
    return tuple(finding for finding in findings if finding)


def check_layout(
    target: Profile, role: str, layout: str, fractal: int | None = None
) -> Diagnostic | None:
    """PTO-X001 when the role may not have the layout."""
    if target.allows_layout(role, layout, fractal):
        return None
    box = "" if fractal is None or layout in ("ND", "DN") else f" with fractal {fractal}"
    cites = dict.fromkeys(cell.cite for cell in target.legal_layouts(role))
    return Diagnostic(
        "PTO-X001",
        f"{role} tile: layout {layout}{box} is not legal under profile {target}; "
        + target.explain_layout(role),
        notes=tuple(Note(cite) for cite in cites),
        help=_elsewhere(target, lambda other: other.allows_layout(role, layout, fractal)),
    )


def check_type(target: Profile, dtype: str, *, what: str) -> Diagnostic | None:
    """PTO-X002 when the profile has no elements of this type."""
    if target.allows_type(dtype):
        return None
    gate = next((row for row in FEATURES.values() if dtype in row.types), None)
    row = f"; {gate.title}: {target.feature(gate.key).word}" if gate else ""
    return Diagnostic(
        "PTO-X002",
        f"{what}: {dtype} elements are not legal under profile {target}{row}",
        notes=(Note(gate.cite),) if gate else (),
        help=_elsewhere(target, lambda other: other.allows_type(dtype)),
    )


def check_feature(target: Profile, key: str, *, what: str) -> Diagnostic | None:
    """PTO-X003 when `what` needs a feature the profile lacks."""
    support = target.feature(key)
    if support.present:
        return None
    return Diagnostic(
        "PTO-X003",
        f"{what}: needs {support.feature.title}, which profile {target} lists as: {support.word}",
        notes=(Note(support.feature.cite),),
        help=_elsewhere(target, lambda other: other.supports(key)),
    )


def _elsewhere(target: Profile, accepts: Callable[[Profile], bool]) -> str | None:
    """Where the same thing is legal: another profile, or this one in the other edition."""
    accepting = {(row.name, row.edition) for row in ROWS if accepts(row)}
    others = [row.name for row in ROWS if (row.name, target.edition) in accepting]
    if others:
        return f"legal under {', '.join(dict.fromkeys(others))}"
    if (target.name, "current") in accepting:
        return "legal in the current edition; the manual's table does not have it"
    return None
