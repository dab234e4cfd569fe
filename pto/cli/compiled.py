"""The jit engine's part in a run: fused groups, forwarded copies, host fallbacks. Text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pto.core.render import Piece
from pto.run.launch.host import Report


def facts(report: Report) -> dict[str, Any]:
    """Facts about compiled code in a report, for JSON."""
    return {
        "fused": [list(group) for group in report.fused],
        "forwarded": list(report.forwarded),
        "not_compiled": _rows(report.left_out),
        "fallbacks": _rows(report.fallbacks),
    }


def lines(report: Report) -> list[Piece]:
    """The same facts as text."""
    if report.engine != "jit":
        return [("dim", f"engine {report.engine}: nothing is compiled\n")]
    out = [*_groups(report), *_counted("not compiled", report.left_out)]
    if not report.left_out:
        out.append(("dim", "every operation was compiled\n"))
    if not report.fallbacks:
        out.append(("dim", "no host fallback in this run\n"))
    return [*out, *_counted("host fallbacks in this run", report.fallbacks)]


def _groups(report: Report) -> list[Piece]:
    out: list[Piece] = [("dim", f"fused groups: {len(report.fused)}\n")]
    out += [("", f"  {' + '.join(group)}\n") for group in report.fused]
    copies = Counter(report.forwarded).items()
    if copies:
        out.append(("dim", "copies that are not made, since their readers use the source:\n"))
    return [*out, *(("", f"  {count} x {name}\n") for name, count in copies)]


def _counted(title: str, counts: Mapping[tuple[str, str], int]) -> list[Piece]:
    if not counts:
        return []
    rows = [("", f"  {count} x {name}: {why}\n") for (name, why), count in sorted(counts.items())]
    return [("dim", f"{title}:\n"), *rows]


def _rows(counts: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [
        {"instruction": name, "reason": why, "count": count}
        for (name, why), count in sorted(counts.items())
    ]
