"""Groups findings by cause: one finding per cause, with all its locations.

A race is reported at its later access; the missing synchronisation belongs to the earlier one.
Findings with equal code, equal message except for numbers, and the same earlier access have one
cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pto.core.errors import Diagnostic, Note

_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
_SHOWN = 6  # further places of one cause


def _cause(finding: Diagnostic) -> tuple[str, ...]:
    earlier = next((str(n.loc) for n in finding.notes if n.loc and ": " in n.message), "")
    return finding.code, finding.severity, _NUMBERS.sub("#", finding.message), earlier


def grouped(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """One finding for each cause, in the order of their first places."""
    groups: dict[tuple[str, ...], list[Diagnostic]] = {}
    for finding in findings:
        groups.setdefault(_cause(finding), []).append(finding)
    return [_joined(group) for group in groups.values()]


def _joined(group: Sequence[Diagnostic]) -> Diagnostic:
    first, others = group[0], group[1:]
    locations = {str(first.loc)}
    places = [d for d in others if not (str(d.loc) in locations or locations.add(str(d.loc)))]
    if not places:
        return first
    notes = [Note(f"the same here: {d.message}", d.loc) for d in places[:_SHOWN]]
    if len(places) > _SHOWN:
        notes.append(Note(f"and at {len(places) - _SHOWN} more places"))
    return replace(first, notes=(*first.notes, *notes))


def summary(causes: Sequence[Diagnostic], findings: int) -> str:
    """`2 causes, 7 findings`; empty for at most one finding."""
    many = "s" if len(causes) != 1 else ""
    return f"{len(causes)} cause{many}, {findings} findings" if findings > 1 else ""
