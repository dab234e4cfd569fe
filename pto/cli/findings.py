"""How a command shows what a sanitized run found: text, JSON or SARIF, and what was assumed."""

from __future__ import annotations

import sys

from pto import __version__
from pto.cli import console
from pto.core import render
from pto.core.render import Piece
from pto.observe import Verdict


def show_verdict(verdict: Verdict, format: str) -> int:
    """Print the findings; 1 when one of them is an error."""
    findings = list(verdict.findings)
    report = verdict.report
    target = str(report.target) if report else ""
    if format == "json":
        print(render.as_json(findings, target=target, mode=verdict.mode))
    elif format == "sarif":
        print(render.as_sarif(findings, __version__))
    else:
        console.show(findings, stream=sys.stdout)
        console.write(_summary(verdict))
    return 1 if any(d.severity == "error" for d in findings) else 0


def _summary(verdict: Verdict) -> list[Piece]:
    errors = sum(d.severity == "error" for d in verdict.findings)
    warnings = len(verdict.findings) - errors
    counted = [
        f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n
    ]
    style = "error" if errors else "warning" if warnings else "value"
    gap: list[Piece] = [("", "\n")] if counted else []
    found = ", ".join(counted) or "no findings"
    return [*gap, (style, f"sanitizer: {found}"), ("dim", f"; {verdict.about}\n")]
