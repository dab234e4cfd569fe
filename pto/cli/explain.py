"""`pto explain`: the page of a finding's code. The pages are `pto/explain/<CODE>.md`."""

from __future__ import annotations

import argparse
import re
from importlib import resources

from pto.cli import console
from pto.core.errors import AREAS, fail, nearest
from pto.core.render import Piece

EXAMPLES = """\
  pto explain               every code, by area
  pto explain PTO-L001      one page: the rule, a wrong and a right program
  pto explain l001          the same
"""

_CODE = re.compile(r"(?:PTO-?)?([A-Z])(\d{1,3})", re.IGNORECASE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", metavar="CODE", help="as a finding prints it: PTO-L001")


def run(args: argparse.Namespace) -> int:
    if args.code is None:
        console.write(_listing())
    else:
        console.write_markdown(page(args.code))
    return 0


def codes() -> list[str]:
    """Every code that has a page, in the order of `AREAS`."""
    names = (entry.name for entry in (resources.files("pto") / "explain").iterdir())
    found = [name.removesuffix(".md") for name in names if name.endswith(".md")]
    order = list(AREAS)
    return sorted(found, key=lambda code: (order.index(code[4]), code))


def page(code: str) -> str:
    """The Markdown of one page; `code` as people type it (`s003`, `PTO-S003`)."""
    known = codes()
    wanted = normal_form(code)
    if wanted not in known:
        advice = nearest(wanted, known) or "`pto explain` lists every code"
        raise fail("PTO-U002", f"there is no code `{code}`", help=advice)
    return _read(wanted)


def normal_form(code: str) -> str:
    """`s3`, `S003` and `pto-s003` as `PTO-S003`; anything else in capitals, as it came."""
    match = _CODE.fullmatch(code.strip("[] "))
    if not match:
        return code.upper()
    return f"PTO-{match[1].upper()}{int(match[2]):03d}"


def title(text: str) -> str:
    """The short title on a page's first line, `# CODE: title`."""
    return text.split("\n", 1)[0].partition(": ")[2]


def _read(code: str) -> str:
    return (resources.files("pto") / "explain" / f"{code}.md").read_text(encoding="utf-8")


def _listing() -> list[Piece]:
    known = codes()
    out: list[Piece] = []
    for letter, area in AREAS.items():
        rows = [code for code in known if code[4] == letter]
        if rows:
            out.append(("title", f"{area}\n"))
        for code in rows:
            out += [("name", f"  {code}"), ("", f"  {title(_read(code))}\n")]
    return [*out, ("dim", "\n`pto explain CODE` shows a rule with a wrong and a right program.\n")]
