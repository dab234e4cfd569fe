"""`pto check`: checks that a program is well formed and legal for its profile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pto.cli import console, cpp, findings, options, program
from pto.cli.command_line import CPP, CPP_ENDINGS, PYTHON, TEXT, CommandLine
from pto.core import render
from pto.core.errors import Diagnostic, Loc, PtoError, fail
from pto.ir.graph import Module
from pto.ir.text.parser import parse, read_source
from pto.lang.file import kernel_names
from pto.run.launch.engine import cluster_target
from pto.target.facts import EDITIONS
from pto.target.profile import PROFILES
from pto.verify import judge, verify
from pto.verify.program import target_of

EXAMPLES = """\
  pto check kernel.pto                     under the profile the program declares
  pto check --profile a2a3 kernel.pto      under another one
  pto check --all-profiles kernel.pto      which profiles accept it, and why the others do not
  pto check --device 910b1 src/            every .pto file below src/, for one chip
  pto check --deep kernel.pto              also run it, and report races
  pto check --deep --fix kernel.pto        and write kernel.fixed.pto, with the missing flags
  pto check --deep --on ray src/           the same on all processors of a cluster
  pto check --format sarif src/ > out.sarif
  pto check k.py                           every kernel of a Python file; the file is executed
  pto check k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
                                           one kernel, for these shapes
  pto check add.cpp --entry "add<float>" --arg x=rand:16x64xf32
                                           a C++ kernel: by a run, natively, with your rights
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=options.FILES)
    options.add_target(parser)
    edition = parser.add_argument("--edition", choices=EDITIONS, default="current", help=_EDITION)
    manual = parser.add_argument("--manual", action="store_true", help="short for --edition manual")
    every = "check for every profile"
    compared = parser.add_argument("--all-profiles", action="store_true", help=every)
    level = parser.add_argument("--level", type=int, choices=(2, 3), help=_LEVEL)
    deep = parser.add_argument("--deep", action="store_true", help=_DEEP)
    fix = parser.add_argument("--fix", action="store_true", help=_FIX)
    fixed = parser.add_argument("-o", "--out", metavar="FILE", help=options.FIXED)
    kernel = "check this kernel of a Python or C++ file"
    entry = parser.add_argument("--entry", metavar="F", help=kernel)
    values = options.add_values(parser, "give a kernel an array or a number, as for `pto run`")
    grid = "launch a C++ kernel with this many blocks; default: 1"
    blocks = parser.add_argument("--blocks", type=options.grid, default=1, metavar="N", help=grid)
    options.add_on(parser)
    options.add_cpp(parser)
    findings.add_format(parser, "sarif")
    parser.only_for(edition, manual, compared, level, deep, languages=(TEXT, PYTHON))
    parser.only_for(entry, *values, languages=(PYTHON, CPP))
    parser.only_for(blocks, languages=(CPP,))
    parser.only_for(fix, languages=(TEXT,))
    parser.only_with(fix, deep, why="fixes are confirmed by a sanitized run")
    parser.only_with(fixed, fix, why="it names the fixed program")


_DEEP = "also run it on generated inputs, and report races and flags that do not match"
_FIX = "with --deep: write FILE.fixed.pto with fixes that a run has confirmed"
_EDITION = "apply the rules of current (August 2026), april, or the manual; default: current"
_LEVEL = "3: require that the program places its memory; 2: that a compiler does; default: both"


def run(args: argparse.Namespace) -> int:
    files = [checked for path in program_files(args.files) for checked in _kernels(path, args)]
    for file in args.files if args.fix else ():
        program.require_text(file, "--fix")
    if args.fix and args.out and len(files) > 1:
        raise fail(
            "PTO-U232",
            f"-o {args.out} names one file, but there are {len(files)} programs to fix",
        )
    if args.all_profiles:
        return _compare(files, args)
    results = list(_results(files, args))
    every = [d for _, checked in results for d in checked]
    targets = sorted({target for target, _ in results if target})
    summary = _summary(len(files), targets, every)
    status = findings.show(every, args, summary, targets=targets, files=list(map(str, files)))
    if not findings.is_quiet(args):
        _name_unchecked(args.files)
    if args.fix:
        return max([_fix(path, args) for path in files], default=0)
    return status


def program_files(names: Sequence[str]) -> Iterator[Path]:
    """The named files, and all .pto files below the named folders."""
    for name in names:
        path = Path(name)
        if program.is_python(name) or program.is_cpp(name):
            yield path
        elif path.is_dir():
            inside = sorted(path.rglob("*.pto"))
            if not inside:
                others = _not_text(path)
                raise fail(
                    "PTO-U005",
                    f"there is no .pto file below {path}"
                    + (f"; it has {len(others)} of Python or C++" if others else ""),
                    help=_named(others) if others else None,
                )
            yield from inside
        elif path.exists():
            yield path
        else:
            raise fail("PTO-U005", f"there is no file {path}")


def _kernels(path: Path, args: argparse.Namespace) -> Iterator[Path]:
    """Every kernel of a Python file that is given without the name of one; else the file."""
    if not program.is_python(str(path)) or ":" in path.name or args.entry or args.arg:
        yield path
        return
    names = kernel_names(str(path))
    if not names:
        raise fail("PTO-U030", f"{path} has no kernel", help="define one with @pto.kernel")
    for name in names:
        yield Path(f"{path}:{name}")


def _not_text(folder: Path) -> list[Path]:
    """Python and C++ files below a folder, which are not checked because that executes them."""
    return sorted(p for p in folder.rglob("*") if p.suffix in (".py", *CPP_ENDINGS))


def _named(others: Sequence[Path]) -> str:
    return f"name a kernel to execute its file, with your rights: pto check {others[0]}:NAME"


def _name_unchecked(names: Sequence[str]) -> None:
    """Print the unchecked files of folders on standard error."""
    others = [path for name in names if Path(name).is_dir() for path in _not_text(Path(name))]
    if others:
        count = f"{len(others)} file{'s' * (len(others) != 1)} of Python or C++"
        print(f"{count} not checked; {_named(others)}", file=sys.stderr)


def load(
    path: Path, args: argparse.Namespace, profile: str | None = None
) -> tuple[Module | None, list[Diagnostic]]:
    """The program, or the findings of reading it."""
    try:
        return program.read_program(str(path), args, profile), []
    except PtoError as error:
        if str(path) not in args.files and error.code == "PTO-U035":
            return None, [_of_unknown_shape(path)]
        if all(d.is_request for d in error.diagnostics):
            raise
        return None, list(error.diagnostics)


def _of_unknown_shape(path: Path) -> Diagnostic:
    """The finding for a kernel that cannot be traced without arguments."""
    return Diagnostic(
        "PTO-U035",
        f"{path} was not checked: the shapes of its arrays are not known",
        severity="warning",
        help=f"pto check {path} --arg x=zeros:100x128; or write an example into its docstring, or"
        ' sizes into its annotations: pto.Global[pto.f32, "n", 128]',
    )


def _edition(args: argparse.Namespace) -> str:
    return "manual" if args.manual else args.edition


Checked = tuple[str, list[Diagnostic], str]  # the target, the findings, a note about runs


def _results(
    files: Sequence[Path], args: argparse.Namespace
) -> Iterator[tuple[str, list[Diagnostic]]]:
    """The target and findings of each file; notes about its runs go to standard error."""
    for target, diagnostics, note in _elsewhere(files, args) or (
        _check_file(f, args) for f in files
    ):
        if note and not findings.is_quiet(args):
            print(note, file=sys.stderr)
        yield target, diagnostics


def _elsewhere(files: Sequence[Path], args: argparse.Namespace) -> Iterator[Checked] | None:
    """Results from workers of a cluster, which get the texts; None without a cluster."""
    if cluster_target() is None or any(path.suffix != ".pto" for path in files):
        return None
    from pto.cluster import tasks

    pool = tasks.pool()
    try:
        items = [(str(path), read_source(path)) for path in files]
    except PtoError:
        return None
    return None if pool is None else tasks.in_order(pool, "pto.cli.check:checked", items, args)


def checked(args: argparse.Namespace, item: tuple[str, str]) -> Checked:
    """Check one file on a worker."""
    name, text = item
    try:
        module = parse(text, name)
    except PtoError as error:
        return "", list(error.diagnostics), ""
    return _judged(name, module, args)


def _check_file(path: Path, args: argparse.Namespace) -> Checked:
    if program.is_cpp(str(path)):
        return cpp.check(str(path), args)
    module, diagnostics = load(path, args)
    return ("", diagnostics, "") if module is None else _judged(str(path), module, args)


def _judged(name: str, module: Module, args: argparse.Namespace) -> Checked:
    note = ""
    try:
        target, diagnostics = judge(
            module,
            profile=args.profile,
            device=args.device,
            edition=_edition(args),
            level=args.level,
        )
    except PtoError as error:
        if args.profile or args.device:
            raise
        return "", list(error.diagnostics), ""  # the program declares an unknown target
    if not any(module.functions()):
        message = "the program has no function"
        diagnostics = [*diagnostics, Diagnostic("PTO-U030", message, Loc(name, 1), "warning")]
    if args.deep and not any(d.severity == "error" for d in diagnostics):
        more, note = _deep(name, module, args)
        diagnostics = [*diagnostics, *more]
    return str(target), diagnostics, note


def _deep(name: str, module: Module, args: argparse.Namespace) -> tuple[list[Diagnostic], str]:
    """The findings of sanitized runs; a run that does not finish is a finding too."""
    from pto.observe.deep import EARLY, deep
    from pto.observe.mode import ASSUMED

    diagnostics: list[Diagnostic] = []
    runs, modes = 0, dict[str, None]()
    try:
        for looked in deep(module, profile=args.profile, device=args.device):
            runs, modes = runs + looked.runs, {**modes, ASSUMED[looked.verdict.mode]: None}
            diagnostics += [d for d in looked.verdict.findings if d not in diagnostics]
            diagnostics += [looked.stopped] if looked.stopped is not None else []
    except PtoError as error:
        diagnostics += error.diagnostics
    early = sum(d.code == EARLY for d in diagnostics)
    return diagnostics, f"{name}: {'; '.join(modes) or 'not run'}; {runs - early} of {runs} runs"


def _fix(path: Path, args: argparse.Namespace) -> int:
    """Fix a legal program; an illegal one is not changed."""
    from pto.cli.fix import write_fixed
    from pto.observe.deep import launches

    module, _ = load(path, args)
    if module is None:
        return 1
    try:
        runs = launches(module, profile=args.profile, device=args.device)
    except PtoError:
        return 1  # already reported: it cannot be run
    return write_fixed(path, module, runs, args.out)


def _summary(
    files: int, targets: Sequence[str], diagnostics: Sequence[Diagnostic]
) -> list[render.Piece]:
    count = f"{files} file{'s' * (files != 1)}"
    where = "; ".join(targets) or "not well formed"
    return findings.counted(diagnostics, f" in {count}, {where}\n")


def _compare(files: Sequence[Path], args: argparse.Namespace) -> int:
    """One line per profile and file: accepted, or the first error and the number of more errors."""
    accepted = False
    every: list[Diagnostic] = []
    table: list[dict[str, Any]] = []
    for path in files:
        module, diagnostics = load(path, args)
        if module is None:
            every += diagnostics
            if findings.is_text(args):
                console.show(diagnostics, stream=sys.stdout)
            continue
        refused = {name: _refusals(path, module, name, args) for name in PROFILES}
        accepted |= not all(refused.values())
        every += [d for errors in refused.values() for d in errors]
        accepts = [name for name, errors in refused.items() if not errors]
        table.append({"file": str(path), "accepted": accepts})
        if findings.is_text(args):
            console.write([("title", f"{path}\n")])
            for name, errors in refused.items():
                console.write(_verdict(name, errors))
    if not findings.is_text(args):
        findings.show(every, args, files=table)
    return 0 if accepted else 1


def _refusals(
    path: Path, module: Module, profile: str, args: argparse.Namespace
) -> list[Diagnostic]:
    """The errors of a program under one profile."""
    if program.is_python(str(path)):  # its tiles are laid out for a profile
        try:
            module = program.read_program(str(path), args, profile)
        except PtoError as error:
            return list(error.diagnostics)
    target = target_of(module, profile=profile, edition=_edition(args))
    diagnostics = verify(module, target.profile, level=args.level)
    return [d for d in diagnostics if d.severity == "error"]


def _verdict(name: str, errors: Sequence[Diagnostic]) -> list[render.Piece]:
    if not errors:
        return [("name", f"  {name:<5}"), ("value", "accepted\n")]
    reasons: dict[str, Diagnostic] = {}
    for d in errors:
        reasons.setdefault(d.message, d)
    out: list[render.Piece] = [
        ("name", f"  {name:<5}"),
        ("error", f"refused: {len(errors)} findings\n"),
    ]
    for d in list(reasons.values())[:3]:
        line = f"line {d.loc.line}: " if d.loc else ""
        out.append(("", f"         {line}{d.message} [{d.code}]\n"))
    if len(reasons) > 3:
        out.append(("dim", f"         and {len(reasons) - 3} more; `pto check --profile {name}`\n"))
    return out
