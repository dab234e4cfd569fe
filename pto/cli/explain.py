"""`pto explain`: the page of a finding's code, with rules from the table and a checked example.

`pto/explain/<CODE>.md` contains the reason and a program as a diff: `-` lines belong to the wrong
program, `+` lines to the right one. The rules of a code and their instructions come from the table;
the findings of the wrong program come from checking it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources

from pto.cli import console
from pto.cli.command_line import CommandLine
from pto.core.errors import AREAS, Diagnostic, PtoError, fail, nearest
from pto.core.render import Piece

EXAMPLES = """\
  pto explain               every code, by area
  pto explain PTO-L001      one page: the rule, a wrong and a right program
  pto explain l001          the same
"""

_NAMED = 4  # instructions that a rule is shown with
_DIFF = re.compile(r"^```diff (\w+)\n(.*?)\n```\n", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?:PTO-?)?([A-Z])(\d{1,3})", re.IGNORECASE)


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("code", nargs="?", metavar="CODE", help="the code of a finding: PTO-L001")


def run(args: argparse.Namespace) -> int:
    if args.code is None:
        console.write(_listing())
    else:
        console.write_markdown(page(args.code))
    return 0


def codes() -> list[str]:
    """Every code that has a page, in the order of `AREAS`."""
    names = (entry.name for entry in (resources.files("pto") / "explain").iterdir())
    listed = [name.removesuffix(".md") for name in names if name.endswith(".md")]
    order = list(AREAS)
    return sorted(listed, key=lambda code: (order.index(code[4]), code))


def page(code: str) -> str:
    """The Markdown of one page; `code` in any spelling (`s003`, `PTO-S003`)."""
    every = codes()
    wanted = normal_form(code)
    if wanted not in every:
        advice = nearest(wanted, every) or "`pto explain` lists every code"
        raise fail("PTO-U002", f"there is no code `{code}`", help=advice)
    return "\n".join(_sections(wanted))


def normal_form(code: str) -> str:
    """`s3`, `S003` and `pto-s003` as `PTO-S003`; any other text in capitals."""
    match = _CODE.fullmatch(code.strip("[] "))
    if not match:
        return code.upper()
    return f"PTO-{match[1].upper()}{int(match[2]):03d}"


def title(text: str) -> str:
    """The short title on a page's first line, `# CODE: title`."""
    return text.split("\n", 1)[0].partition(": ")[2]


def programs(code: str) -> tuple[str, str, str]:
    """The language, the wrong and the right program of a page."""
    diff = _DIFF.search(_read(code))
    if diff is None:
        raise ValueError(f"{code}.md has no block ```diff LANGUAGE")
    lines = diff[2].split("\n")
    wrong, right = (
        "\n".join(line[1:] for line in lines if line[:1] != other) for other in ("+", "-")
    )
    return diff[1], wrong, right


def findings(program: str) -> list[Diagnostic]:
    """The findings of checking a program; empty for a fragment."""
    from pto.ir.text.parser import parse
    from pto.verify import judge

    if "func.func" not in program:
        return []
    try:
        return judge(parse(program))[1]
    except PtoError as error:
        return list(error.diagnostics)


def _sections(code: str) -> Iterator[str]:
    """The sections of a page: title and reason, the rules, both programs."""
    language, wrong, right = programs(code)
    yield _DIFF.sub("", _read(code)).rstrip() + "\n"
    rules = _rules().get(code) if language == "pto" else None
    if rules:
        yield "## Rules\n"
        for sentence, names in rules.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield f"- {', '.join(names[:_NAMED])}{more}: {sentence}"
        yield ""
    yield f"## Wrong\n\n```{language}\n{wrong}\n```\n"
    reported = [d for d in findings(wrong) if d.code == code] if language == "pto" else []
    if reported:
        yield f"```text\n{reported[0].severity}[{code}]: {reported[0].message}\n```\n"
    yield f"## Right\n\n```{language}\n{right}\n```\n"


@cache
def _rules() -> dict[str, dict[str, list[str]]]:
    """Code -> sentence of a rule -> the instructions with this rule."""
    from pto.isa.table import rows

    sentences: dict[str, dict[str, list[str]]] = {}
    for row in rows():
        for rule in row.rules:
            where = f" on {', '.join(rule.profiles)}" if rule.profiles else ""
            names = sentences.setdefault(rule.code, {}).setdefault(rule.sentence + where, [])
            names.append(row.name.removeprefix("pto."))
    return sentences


def _read(code: str) -> str:
    return (resources.files("pto") / "explain" / f"{code}.md").read_text(encoding="utf-8")


def _listing() -> list[Piece]:
    every = codes()
    out: list[Piece] = []
    for letter, area in AREAS.items():
        rows = [code for code in every if code[4] == letter]
        if rows:
            out.append(("title", f"{area}\n"))
        for code in rows:
            out += [("name", f"  {code}"), ("", f"  {title(_read(code))}\n")]
    return [*out, ("dim", "\n`pto explain CODE` shows a rule with a wrong and a right program.\n")]
