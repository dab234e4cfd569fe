"""Imports every file of this package, which registers the emitters."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import Literal

import pto.run.jit.emit as package
from pto.isa.meaning.kinds import Do
from pto.isa.row.instr import Instr
from pto.isa.row.traits import Control
from pto.run.jit.emit.operation import EMITTERS, KINDS, STRUCTURES, WORDS


def load() -> None:
    for name in ("primitives", "exponential"):  # they register primitives
        import_module(f"pto.run.jit.llvm.{name}")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)


UNTOLD = "no reason is given"


def why_not(row: Instr) -> str:
    """Why the reference engine runs a row inside compiled code."""
    if isinstance(row.body, Do) and row.body.host_only:
        return row.body.host_only
    if isinstance(row.body, Do) and row.body.blocks:
        return "may wait for another agent"
    if isinstance(row.body, Do) and row.body.defines:
        return "defines the address of a declared handle"
    if isinstance(row.body, Do) and row.body.polls:
        return "polls memory that other agents write"
    if row.order is not None:
        return "signals another agent, or changes a queue"
    return UNTOLD


def compiled_as(row: Instr) -> Literal["meaning", "structure", "emitter"] | None:
    """How a row is compiled: from its meaning, as control flow, by an emitter of its own."""
    load()
    if isinstance(row.body, Control):  # terminators are emitted with their operation
        ends = row.body.is_terminator or row.body in (Control.FUNCTION, Control.MODULE)
        return "structure" if ends or row.body in STRUCTURES else None
    if id(row.body) in EMITTERS:
        return "emitter"
    in_words = isinstance(row.body, Do) and row.body.words in WORDS
    return "meaning" if in_words or type(row.body) in KINDS else None
