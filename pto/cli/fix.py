"""`--fix`: writes the fixed program to a file beside the original. `observe` finds the fixes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pto.cli import console
from pto.core.output import write_whole
from pto.core.render import Piece
from pto.ir.graph import Module
from pto.ir.text.parser import read_source
from pto.observe.fixes.repair import Repair, repair
from pto.observe.replay import TrialRun

SUFFIX = ".fixed.pto"
HELP = f"write a copy, FILE{SUFFIX}, with fixes that were put in, run again and found to work"


def write_fixed(file: Path, module: Module, launches: Sequence[TrialRun], out: str | None) -> int:
    """Fix a program and print the changes; 0 if no finding is left."""
    target = Path(out) if out else file.with_suffix(SUFFIX)
    found = repair(module, launches, read_source(file))
    if found.done:
        write_whole(target, found.text)
    console.write(_words(found, target))
    return 1 if found.left else 0


def _words(found: Repair, target: Path) -> list[Piece]:
    out: list[Piece] = []
    for words in found.done:
        out += [("help", "fixed "), ("", f"{words}\n")]
    for d in found.left:
        out += [("error", "no proven fix "), ("", f"{d.loc or ''}: {d.message} [{d.code}]\n")]
    if found.done:
        state = "not clean yet" if found.left else "re-run: clean"
        out += [("title", f"{target}"), ("dim", f" written, {state}\n")]
    elif not found.left:
        out.append(("value", "nothing to fix\n"))
    return out
