"""Which pipe runs one operation: what a row says, resolved by its attributes and operands."""

from __future__ import annotations

from pto.core.memory import Space
from pto.isa.order.flags import named_pipe
from pto.isa.row.instr import PipeBy
from pto.isa.rules.rule import Case

# Buffers that a pipe is taken to keep in order with itself, where sources disagree or are silent:
# decisions.md, buffers a unit keeps in order with itself.
OWN_ORDER = frozenset({("M", Space.L0C), ("FIX", Space.FIXPIPE)})


def pipe_of(case: Case) -> str:
    """MTE2, V, ...; ALL; or `none` where nothing is issued to a pipe."""
    pipe = case.row.pipe
    if isinstance(pipe, PipeBy):
        places = [case.profile.name if n == "@profile" else _role(case, n) for n in pipe.operands]
        for roles, name in pipe.cases:
            if all(role in ("*", place) for role, place in zip(roles, places, strict=True)):
                return name
        return pipe.otherwise
    if pipe.startswith("@"):
        return named_pipe(case, pipe[1:]) or "none"
    return pipe


def inner_flags(case: Case) -> tuple[tuple[str, str, int], ...]:
    """Flags an operation sets and waits for by itself: (source, target, id).

    A row with several forms goes through these pipes where its own is among them.
    """
    found = case.row.inner_flags(case.profile.name)
    return found if found and any(pipe_of(case) in flag[:2] for flag in found) else ()


def _role(case: Case, name: str) -> str | None:
    return case.role(name)
