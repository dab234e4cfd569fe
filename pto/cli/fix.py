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
    repaired = repair(module, launches, read_source(file))
    if repaired.done:
        write_whole(target, repaired.text)
    console.write(_words(repaired, target))
    return 1 if repaired.left else 0


def _words(repaired: Repair, target: Path) -> list[Piece]:
    out: list[Piece] = []
    for words in repaired.done:
        out += [("help", "fixed "), ("", f"{words}\n")]
    for d in repaired.left:
        out += [("error", "no proven fix "), ("", f"{d.loc or ''}: {d.message} [{d.code}]\n")]
    if repaired.done:
        state = "not clean yet" if repaired.left else "re-run: clean"
        out += [("title", f"{target}"), ("dim", f" written, {state}\n")]
    elif not repaired.left:
        out.append(("value", "nothing to fix\n"))
    return out
