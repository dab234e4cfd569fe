"""`pto isa`: the instruction table by family, by name, as data, and its coverage."""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pto.cli import console, findings
from pto.cli.command_line import CommandLine
from pto.core.errors import fail
from pto.core.render import Piece
from pto.ir.text.format import compile_format
from pto.isa import table
from pto.isa.row import describe
from pto.isa.row.instr import Instr
from pto.target.profile import profile_name
from pto.view.instruction import page

_CHECKOUT = Path(__file__).parents[2]  # of this package; an installed package has no tests
_NAME = re.compile(r"\b(?:pto|arith|scf|func|memref|math|builtin|llvm)\.[\w.]+")

EXAMPLES = """\
  pto isa                      every instruction, by family
  pto isa tadd                 operands, types per profile, rules, meaning, example, citation
  pto isa --profile a2a3       what exists on one profile
  pto isa --format json             the whole table as data
  pto isa --coverage           how many rows are parsed, checked and executed
  pto isa --docs docs/isa      write the reference pages
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="an instruction: tadd, pto.vlds")
    parser.add_argument("--profile", metavar="P", help="show only rows of cpu, a2a3 or a5")
    coverage = "count rows that are parsed, checked, executed and tested, per family"
    parser.add_argument("--coverage", action="store_true", help=coverage)
    parser.add_argument("--docs", metavar="DIR", help="write the reference pages to this folder")
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    if args.docs:
        from pto.view.reference import write_pages

        for path in write_pages(Path(args.docs)):
            print(path)
        return 0
    chosen = _chosen(args.name, args.profile)
    if args.format == "json":
        print(json.dumps([describe.as_data(row) for row in chosen], indent=2))
    elif args.format == "lines":
        findings.data(args, (), map(describe.as_data, chosen))
    elif args.coverage:
        console.write(_coverage(chosen))
    elif args.name:
        console.write(page(chosen[0]))
    else:
        console.write(_listing(chosen))
    return 0


def _chosen(name: str | None, profile: str | None) -> list[Instr]:
    if name:
        row = table.lookup(name) or table.lookup(f"pto.{name.lower()}")
        if row is None:
            advice = table.suggest(f"pto.{name.lower()}") or "`pto isa` lists them"
            raise fail("PTO-U007", f"there is no instruction `{name}`", help=advice)
        return [row]
    rows = list(table.rows())
    if profile is None:
        return rows
    wanted = profile_name(profile)
    return [row for row in rows if wanted in row.profiles]


def _by_family(rows: Iterable[Instr]) -> dict[str, dict[str, list[Instr]]]:
    grouped: dict[str, dict[str, list[Instr]]] = {name: {} for name in describe.SECTIONS}
    for row in rows:
        grouped[row.family.section].setdefault(row.family.name, []).append(row)
    return {section: families for section, families in grouped.items() if families}


def _listing(rows: Sequence[Instr]) -> list[Piece]:
    out: list[Piece] = []
    for section, families in _by_family(rows).items():
        count = sum(map(len, families.values()))
        out.append(("title", f"{describe.SECTIONS[section]} ({count})\n"))
        for family, members in families.items():
            names = " ".join(row.mnemonic for row in members)
            out += [("name", f"  {family}: "), ("", f"{names}\n")]
    out.append(("dim", f"\n{len(rows)} instructions; `pto isa NAME` shows one.\n"))
    return out


def _coverage(rows: Sequence[Instr]) -> list[Piece]:
    """Counts of rows by section and feature; in a checkout also rows that tests use."""
    from pto.run.jit.emit.instructions import compiled_as, why_not

    tests = _CHECKOUT / "tests"
    tested = _tested_names(tests) if (tests / "known").is_dir() else None
    measures: dict[str, Callable[[Instr], bool]] = {
        "rows": lambda row: True,
        "parsed": lambda row: row.text.startswith("=") or bool(compile_format(row)),
        "checked": lambda row: True,  # kinds, attributes and profile are checked for every row
        "executed": lambda row: row.body is not None,
        "jitted": lambda row: compiled_as(row) is not None,
    }
    if tested is not None:
        measures["tested"] = lambda row: row.name in tested
    grouped = _by_family(rows)
    out: list[Piece] = [("title", _count_line("", measures))]
    for section, families in grouped.items():
        members = [row for family in families.values() for row in family]
        counts = [sum(map(test, members)) for test in measures.values()]
        out.append(("", _count_line(describe.SECTIONS[section], counts)))
    totals = [sum(map(test, rows)) for test in measures.values()]
    emitted = " ".join(row.mnemonic for row in rows if compiled_as(row) == "emitter")
    left: dict[str, list[str]] = {}
    for row in rows:
        if row.body is not None and compiled_as(row) is None:
            left.setdefault(why_not(row), []).append(row.mnemonic)
    reasons = [f"{why}: {' '.join(names)}" for why, names in left.items()]
    return [
        *out,
        ("title", _count_line("all", totals)),
        ("", "\nCompiled by an emitter of their own, beside the meaning and tested against it:\n"),
        ("dim", _listed(emitted)),
        ("", "\nRun by the reference engine inside compiled code, and why:\n"),
        *(("dim", _listed(names_of)) for names_of in reasons),
    ]


def _listed(text: str) -> str:
    return textwrap.fill(text, 96, initial_indent="  ", subsequent_indent="    ") + "\n"


def _count_line(name: str, cells: Iterable[object]) -> str:
    return f"  {name:<34}" + "".join(f"{cell!s:>10}" for cell in cells) + "\n"


def _tested_names(folder: Path) -> set[str]:
    """Operation names in our own test programs and tests."""
    names: set[str] = set()
    for path in [*folder.rglob("*.pto"), *folder.rglob("*.py")]:
        names |= set(_NAME.findall(path.read_text(encoding="utf-8", errors="replace")))
    return names
