"""Phases: which operands an instruction accesses on which pipe, in which order, as row data.

Most instructions are one phase: all operands on the pipe of the row. Some are short programs of
the library; their rows have one line per form and profile. The first line with true conditions
applies; a form without a line is one phase:

    coalesce=row: V>S MTE3>S S(idx) MTE2(mem->dst) S>MTE2 MTE2>V

    S(idx)           reads idx on S          MTE2(mem->dst)  reads mem and writes dst on MTE2
    V>S  V>S:0,1     S waits for the earlier work of V, by a flag of id 0, or of ids 0 and 1
    V[S]             all operands on V, with scalar steps between flags from V to S and back: for
                     everything around the instruction this is work of V

    coalesce=row  the word of an attribute      +tmp  -tmp  an operand or attribute is there, is not
    dst@mat       the role of a tile            src:i16,i32  an element type
    idx~src       two tiles have one valid region
    src0!32       a valid row is known not to be a whole number of 32-byte blocks
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

INNER_EVENT = 0  # set_flag(PIPE_V, PIPE_S, EVENT_ID0) inside pto-isa's TROWMAX, TEXTRACT, MGATHER


@dataclass(frozen=True, slots=True)
class PipeAccess:
    """Accesses of one pipe. Without names: all operands, by their roles (read, write)."""

    pipe: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()  # pipes that do part of it, in order with `pipe` on both sides

    @property
    def is_of_all(self) -> bool:
        return not self.reads and not self.writes


@dataclass(frozen=True, slots=True)
class InnerFlag:
    """A flag inside the instruction: `dst` waits for the earlier work of `src`."""

    src: str
    dst: str
    ids: tuple[int, ...] = (INNER_EVENT,)


Step = PipeAccess | InnerFlag


@dataclass(frozen=True, slots=True)
class PhaseForm:
    """One form of an instruction as a list of phases, and the conditions for it."""

    when: tuple[str, ...]  # all of them hold
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        text = " ".join(map(_shown, self.steps))
        return f"{' '.join(self.when)}: {text}" if self.when else text

    def pipes(self) -> tuple[str, ...]:
        """The pipes that touch operands, in order of their first access."""
        touched = [s for s in self.steps if isinstance(s, PipeAccess)]
        return tuple(dict.fromkeys(p for s in touched for p in (s.pipe, *s.nested)))

    def flags(self) -> tuple[tuple[str, str, int], ...]:
        """Flags that it sets and waits for by itself: (source, target, id)."""
        return tuple(dict.fromkeys(flag for step in self.steps for flag in _flags(step)))


def _flags(step: Step) -> Iterator[tuple[str, str, int]]:
    if isinstance(step, InnerFlag):
        yield from ((step.src, step.dst, n) for n in step.ids)
        return
    for pipe in step.nested:
        yield step.pipe, pipe, INNER_EVENT
        yield pipe, step.pipe, INNER_EVENT


def _shown(step: Step) -> str:
    if isinstance(step, InnerFlag):
        ids = "" if step.ids == (INNER_EVENT,) else f":{','.join(map(str, step.ids))}"
        return f"{step.src}>{step.dst}{ids}"
    nested = f"[{','.join(step.nested)}]" if step.nested else ""
    if step.is_of_all:
        return f"{step.pipe}{nested}"
    names = ",".join(step.reads) + (f"->{','.join(step.writes)}" if step.writes else "")
    return f"{step.pipe}{nested}({names})"


_STEP = re.compile(
    r"(\w+)(?:>(\w+)(?::([\d,]+))?|(?:\[([\w,]+)\])?(?:\(([\w,]*)(?:->([\w,]+))?\))?)"
)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _step(word: str) -> Step:
    match = _STEP.fullmatch(word)
    if match is None:
        raise RuntimeError(f"{word!r} is no phase")
    pipe, target, ids, nested, reads, writes = match.groups()
    if target:
        return InnerFlag(pipe, target, tuple(map(int, _names(ids))) or (INNER_EVENT,))
    return PipeAccess(pipe, _names(reads), _names(writes), _names(nested))


def forms(text: str) -> tuple[PhaseForm, ...]:
    """Parse the forms of a text, one per line."""
    out: list[PhaseForm] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        when, _, steps = f"{line} ".rpartition(": ")
        out.append(PhaseForm(tuple(when.split()), tuple(map(_step, steps.split()))))
    return tuple(out)
