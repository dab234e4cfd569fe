"""`pto suite gym --mutate`: changes the order of a program in one place, and judges the mutants.

The mutations are in `observe/fixes/mutations.py`, the meaning of a judgement in
`observe/fixes/mutants.py`; here are the selected programs and the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pto.core.errors import PtoError
from pto.core.render import Piece
from pto.gym.cases import GymProgram
from pto.ir.graph import Module
from pto.ir.text.parser import parse_file
from pto.observe.fixes.mutants import SCHEDULES, Mutant, mutants
from pto.plan.mode import mode_of
from pto.run.launch.host import Report, launch
from pto.suite.result import Result

_COLUMNS = ("found", "harmless", "missed")
_STYLES = {"found": "value", "harmless": "note", "missed": "error"}


def worth_mutating(programs: Sequence[GymProgram]) -> list[GymProgram]:
    """Programs with synchronisation, their own or of `pto sync`; of equal texts only the first."""
    texts: set[bytes] = set()
    out: list[GymProgram] = []
    for program in programs:
        text = program.kernel.read_bytes() if program.problem is None else b""
        if text in texts or not _is_readable(program):
            continue
        texts.add(text)
        out.append(program)
    return out


def _is_readable(program: GymProgram) -> bool:
    try:
        parse_file(program.kernel)
    except (PtoError, OSError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Mutated:
    """A launch, and the results without each of its synchronising operations."""

    report: Report
    mutants: tuple[Mutant, ...]


class _Launch:
    """Runs a kernel; before its first run, all of its mutants."""

    def __init__(self) -> None:
        self._module: Module | None = None  # of the current program
        self._entries: set[str | None] = set()

    def worth(self, program: GymProgram, cases: list[str]) -> list[str]:
        """Many cases of a tile program differ only in sizes: one of them is enough."""
        is_alike = mode_of(list(parse_file(program.kernel).functions())) == "automatic"
        return cases[:1] if is_alike else cases

    def __call__(
        self, module: Module, *, args: Sequence[Any], asked: Sequence[int] = (), **options: Any
    ) -> Mutated:
        if module is not self._module:
            self._module, self._entries = module, set()
        entry = options.get("entry")
        mutated: tuple[Mutant, ...] = ()
        if entry not in self._entries:
            self._entries.add(entry)
            run_options = {k: v for k, v in options.items() if k != "check"}
            mutated = tuple(mutants(module, args=args, sizes=asked, **run_options))
        return Mutated(launch(module, args=args, **options), mutated)


launch_mutated = _Launch()


# ---- output


def _counts(judged: Sequence[Mutant]) -> Counter[str]:
    return Counter(mutant.judgement for mutant in judged)


def _row(name: str, width: int, counts: Counter[str]) -> list[Piece]:
    out: list[Piece] = [("", f"{name:<{width}}"), ("", f"{sum(counts.values()):>9}")]
    for column in _COLUMNS:
        count = counts[column]
        out.append((_STYLES[column] if count else "dim", f"{count or '.':>10}"))
    return [*out, ("", "\n")]


def table(results: Sequence[Result]) -> list[Piece]:
    """A row a program, then the kinds of operation, then the sum."""
    by_program = {r.case: _mutants(r) for r in results if _mutants(r)}
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in _all(results):
        by_kind.setdefault(mutant.op, []).append(mutant)
    width = max(map(len, ("program", *by_program, *by_kind))) + 2
    head = f"{'mutants':>9}" + "".join(f"{c:>10}" for c in _COLUMNS) + "\n"
    out: list[Piece] = [("title", f"{'program':<{width}}{head}")]
    for name, judged in by_program.items():
        out += _row(name, width, _counts(judged))
    out.append(("title", f"\n{'taken out, or':<{width}}{head}"))
    for name, judged in sorted(by_kind.items()):
        out += _row(name, width, _counts(judged))
    out.append(("dim", "-" * (width + len(head) - 1) + "\n"))
    return out + _row("all", width, _counts(_all(results)))


def _mutants(result: Result) -> Sequence[Mutant]:
    return result.facts.get("mutants", ())


def _all(results: Sequence[Result]) -> list[Mutant]:
    return [mutant for r in results for mutant in _mutants(r)]


def unfound(results: Sequence[Result]) -> list[Piece]:
    """Mutants that the sanitizer did not report, with the reason; equal ones grouped."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for r in results:
        for m in _mutants(r):
            if m.judgement != "found":
                places = groups.setdefault((m.judgement, m.text, m.why), [])
                places.append(f"{r.case}:{m.line}")
    out: list[Piece] = [("", "\n")]
    for (judgement, text, why), places in sorted(groups.items()):
        listed = places if judgement == "missed" else places[:1]
        more = f" and {len(places) - len(listed)} more" if len(places) > len(listed) else ""
        out.append((_STYLES[judgement], judgement))
        out.append(("", f" {text}: {', '.join(listed)}{more} "))
        out.append(("dim", f"({why})\n"))
    return out


def summary(results: Sequence[Result], wall: float) -> list[Piece]:
    counts = _counts(_all(results))
    programs = sum(bool(_mutants(r)) for r in results)
    parts = ", ".join(f"{counts[c]} {c}" for c in _COLUMNS)
    style = "error" if counts["missed"] else "value"
    line = f" of {counts.total()} mutants of {programs} programs in {wall:.1f} s"
    return [("", "\n"), (style, parts), ("dim", f"{line}; schedules: {', '.join(SCHEDULES)}\n")]


def as_json(results: Sequence[Result], wall: float) -> str:
    body = {
        "seconds": wall,
        "schedules": list(SCHEDULES),
        "totals": {column: _counts(_all(results))[column] for column in _COLUMNS},
        "programs": {r.case: [asdict(m) for m in _mutants(r)] for r in results if _mutants(r)},
    }
    return json.dumps(body, indent=2)


def is_good(results: Sequence[Result]) -> bool:
    """No mutant was missed, and every program ran."""
    passed = all(r.status == "passed" for r in results)
    return passed and not any(m.judgement == "missed" for m in _all(results))
