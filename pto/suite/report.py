"""Results as people and programs read them: a table by group, failures, JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from pto.core import render
from pto.core.errors import Diagnostic
from pto.core.render import Piece, Sources
from pto.suite.result import STATUSES, Result, Status

_STYLES = {"passed": "value", "failed": "error", "not run": "warning", "skipped": "note"}
_MOST_NAMES = 12
MOST_REASONS = 20


def _by_group(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Results by group, in order of appearance."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    return groups


def _counts(results: Sequence[Result]) -> dict[Status, int]:
    return {status: sum(r.status == status for r in results) for status in STATUSES}


def _columns(results: Sequence[Result]) -> list[Status]:
    """The statuses that the table shows: `skipped` only if it occurs."""
    return [s for s in STATUSES if s != "skipped" or any(r.status == s for r in results)]


def table(results: Sequence[Result], title: str) -> list[Piece]:
    """A row for each group, and the sum of them; `title` is what a group is."""
    groups, columns = _by_group(results), _columns(results)
    width = max([len(title), *map(len, groups)])
    head = f"{title:<{width}}" + "".join(f"{c:>9}" for c in columns) + f"{'time':>11}\n"
    out: list[Piece] = [("title", head)]
    for name, members in groups.items():
        note = _note(members[0]) if len(members) == 1 else ""
        out += _row(name, members, columns, width, note)
    out.append(("dim", "-" * (len(head) - 1) + "\n"))
    return out + _row("all", results, columns, width)


def _note(result: Result) -> str:
    """Further measurements of a suite, for a row of one result."""
    counted = [f"{value:,} {name}" for name, value in result.facts.items() if name in _COUNTED]
    return ", ".join(part for part in (*counted, result.why) if part)


_COUNTED = ("tasks", "edges")


def _row(
    name: str, results: Sequence[Result], columns: Sequence[Status], width: int, note: str = ""
) -> list[Piece]:
    counts = _counts(results)
    out: list[Piece] = [("", f"{name:<{width}}")]
    for status in columns:
        style = _STYLES[status] if counts[status] else "dim"
        out.append((style, f"{counts[status] or '.':>9}"))
    end = f"  {note}\n" if note else "\n"
    return [*out, ("dim", f"{sum(r.seconds for r in results):>9.2f} s{end}")]


def failures(
    results: Sequence[Result], sources: Sources, most: int | None = MOST_REASONS
) -> Iterator[list[Piece]]:
    """One block for each reason: results of a group that fail alike are reported together."""
    reasons: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        if not result.is_good:
            key = (result.group, result.outcome, result.why, result.diagnostics)
            reasons.setdefault(key, []).append(result)
    blocks = list(reasons.values())
    for members in blocks[:most]:
        yield _failure(members, sources)
    left = len(blocks) - len(blocks[:most])
    if left:
        yield [("", "\n"), ("dim", f"{left} more reasons; -v shows them\n")]


def _failure(members: Sequence[Result], sources: Sources) -> list[Piece]:
    first = members[0]
    out: list[Piece] = [("", "\n"), (_STYLES[first.status], first.status.upper())]
    out += [("dim", f" ({first.outcome}) "), ("title", first.name + "\n")]
    for other in members[1:_MOST_NAMES]:
        out.append(("", f"  and {other.name}\n"))
    if len(members) > _MOST_NAMES:
        out.append(("dim", f"  and {len(members) - _MOST_NAMES} more\n"))
    messages = {diagnostic.message for diagnostic in first.diagnostics}
    if first.why and first.why not in messages:
        out.append(("", f"  {first.why}\n"))
    for diagnostic in first.diagnostics:
        out += render.pieces(diagnostic, sources)
    return out


def warnings(results: Sequence[Result], sources: Sources) -> Iterator[list[Piece]]:
    """Findings of results that passed, each once."""
    shown: set[Diagnostic] = set()
    for result in results:
        fresh = [d for d in result.diagnostics if result.is_good and d not in shown]
        shown.update(fresh)
        if fresh:
            block: list[Piece] = [("", "\n"), ("title", result.name + "\n")]
            yield block + [piece for d in fresh for piece in render.pieces(d, sources)]


def summary(results: Sequence[Result], engine: str, seconds: float) -> list[Piece]:
    """The last lines: counts, under which profile and engine, and by which checks."""
    counts = _counts(results)
    parts = [f"{count} {status}" for status, count in counts.items() if count]
    targets = sorted({r.target for r in results if r.target})
    where = "; ".join([*targets, *([f"engine {engine}"] if engine else [])])
    style = "value" if all(r.is_good for r in results) else "error"
    about = f" of {len(results)} cases in {seconds:.1f} s" + (f" ({where})" if where else "")
    out: list[Piece] = [("", "\n"), (style, ", ".join(parts)), ("dim", about + "\n")]
    for status in STATUSES:
        outcomes = Counter(r.outcome for r in results if r.status == status and r.outcome)
        words = ", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common())
        out += [("dim", f"{status}: {words}\n")] if words else []
    return out


def by_node(results: Sequence[Result]) -> list[Piece]:
    """The cases and seconds of each node; empty if all cases ran on this machine."""
    out: list[Piece] = []
    remote = sorted((r for r in results if r.node), key=lambda r: r.node)
    for node, members in groupby(remote, key=lambda r: r.node):
        seconds = [r.seconds for r in members]
        out.append(("dim", f"  {node}: {len(seconds)} cases, {sum(seconds):.1f} s\n"))
    return out


def as_json(results: Sequence[Result], seconds: float, **header: Any) -> str:
    """Everything, as one object."""
    groups = {
        name: {**_counts(members), "seconds": sum(r.seconds for r in members)}
        for name, members in _by_group(results).items()
    }
    body = {
        **header,
        "seconds": seconds,
        "totals": _counts(results),
        "groups": groups,
        "cases": [r.data() for r in results],
    }
    return json.dumps(body, indent=2)
