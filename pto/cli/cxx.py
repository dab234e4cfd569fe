"""`pto cxx`: the header for C++ kernels, and system tests of C++ projects."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pto.cli import console, findings, options, place
from pto.cli.command_line import CommandLine
from pto.cli.progress import progress
from pto.core.errors import fail
from pto.core.processors import usable
from pto.core.render import Piece
from pto.core.selection import select
from pto.cxx import header, st

_RIGHTS = place.RIGHTS.format(what="tests, which are native code, and generators")
EXAMPLES = (
    """\
  pto cxx header -o include                 the header, for compilers and editors (clangd)
  pto cxx st project/tests/npu/a2a3/src/st  system tests: kernel, main.cpp, generator
  pto cxx st tests/st -k "tadd or tsub"     the cases whose names match
  pto cxx st tests/st -j 2 --format json > st.json
"""
    + _RIGHTS
)


def add_arguments(parser: CommandLine) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="header|st")
    make = verbs.add_parser("header", help="write the header tree")
    make.add_argument("-o", metavar="DIR", type=Path, required=True, help="write to this folder")
    test = verbs.add_parser("st", help="run system tests", description=_RIGHTS)
    test.add_argument("path", metavar="DIR", type=Path, nargs="+", help="folders of tests")
    options.add_selection(test, "cases")
    options.add_jobs(test)
    ranks = "run each test with N ranks; default: the first number with which it passes"
    test.add_argument("--ranks", metavar="N", type=int, help=ranks)
    profile = "use this profile: cpu, a2a3 or a5; default: the one in the path"
    test.add_argument("--profile", metavar="P", help=profile)
    options.add_timeout(test, "a case", 300.0)
    test.add_argument("-x", action="store_true", help="stop at the first case that fails")
    options.add_on(test)
    test.add_argument("-v", action="store_true", help="show every failed case in full")
    options.add_cpp(test)
    findings.add_format(test)


def run(args: argparse.Namespace) -> int:
    if args.what == "header":
        header.write(args.o)
        print(f"{args.o}: compile with -I{args.o} -std=c++17")
        return 0
    jobs = usable() if args.j is None else args.j
    if jobs < 1:
        raise fail("PTO-U061", f"-j {jobs}: at least one process is needed")
    if args.ranks is not None and args.ranks < 1:
        raise fail("PTO-U061", f"--ranks {args.ranks}: at least one host is needed")
    ranks = st.RANKS if args.ranks is None else (args.ranks,)
    how = st.TestOptions(args.profile, tuple(map(Path, args.include)), tuple(args.define), ranks)
    folders = st.find(args.path, how)
    select(args.k)  # reports a wrong expression before anything runs
    start = time.perf_counter()
    with progress(sum(len(f.cases) for f in folders)) as seen:

        def report(case: st.CaseResult) -> bool:
            seen(case.status in st.PASSED)
            if args.format == "lines":
                findings.line(case.data())
            return args.x and case.status not in (*st.PASSED, "skipped")

        cases = st.run(folders, args.k, jobs, args.timeout, report)
    if args.format == "json":
        findings.data(args, cases=[case.data() for case in cases])
    elif findings.is_text(args):
        console.write(_table(cases, time.perf_counter() - start))
        console.write(place.by_node([(c.node, c.seconds) for c in cases]))
        if args.v:
            _show(cases)
    return 0 if all(case.status in (*st.PASSED, "skipped") for case in cases) else 1


def _show(cases: Sequence[st.CaseResult]) -> None:
    """Print the failed cases; a finding of several cases is printed once."""
    told: set[str] = set()
    for case in cases:
        if case.status not in st.PASSED:
            print(f"\n{case.folder}/{case.name}: {case.status}")
            console.show([d for d in case.findings if str(d) not in told], stream=sys.stdout)
            told |= {str(d) for d in case.findings}


def _table(cases: Sequence[st.CaseResult], seconds: float) -> list[Piece]:
    """One row per folder, the reasons of failures, and the totals."""
    seen = [s for s in st.STATUSES if any(c.status == s for c in cases)]
    folders = list(dict.fromkeys(c.folder for c in cases))
    width = max([len("folder"), *map(len, folders)], default=6)
    head = f"{'folder':<{width}}" + "".join(f"{s:>9}" for s in seen) + "\n"
    out: list[Piece] = [("title", head)]
    for folder in folders:
        counts = Counter(c.status for c in cases if c.folder == folder)
        row = "".join(f"{counts[s] or '':>9}" for s in seen)
        good = all(s in st.PASSED or not counts[s] for s in counts)
        out.append(("" if good else "warning", f"{folder:<{width}}{row}\n"))
    counts = Counter(c.status for c in cases)
    out.append(("title", f"{'':<{width}}" + "".join(f"{counts[s]:>9}" for s in seen) + "\n"))
    reasons = Counter(
        f"{c.status}: {c.findings[0].code} {c.findings[0].message.splitlines()[0][:110]}"
        for c in cases
        if c.findings
    )
    out += [("dim", f"  {n:5} {why}\n") for why, n in reasons.most_common(20)]
    passed = sum(counts[s] for s in st.PASSED)
    text = f"{passed:,} of {len(cases):,} cases pass, {counts['exact']:,} of them bit for bit"
    out.append(("title", f"{text}, {seconds:.0f} s\n"))
    return out
