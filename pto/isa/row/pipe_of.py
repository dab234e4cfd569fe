"""Which pipe runs one operation: what a row says, resolved by its attributes and operands."""

from __future__ import annotations

from pto.isa.row.attributes import Enum
from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import PipeBy
from pto.isa.row.order import Barrier
from pto.isa.rules.rule import Case

# The pipe that runs each kind of operation: PTOAS mapSyncOpTypeToPipe.
OP_PIPES = {
    "TLOAD": "MTE2",
    "TSTORE_ACC": "FIX",
    "TSTORE_VEC": "MTE3",
    "TMOV_M2L": "MTE1",
    "TMOV_M2S": "FIX",
    "TMOV_M2B": "MTE1",
    "TMOV_M2V": "V",
    "TMOV_V2M": "FIX",
    "TMATMUL": "M",
    "TVEC": "V",
    "TVECWAIT_EVENT": "V",
}
# Kinds of operation have two names each, with one number.
_EVENTS = ENUMS["pipe_event_type"]
_KINDS = dict(zip(_EVENTS.words, _EVENTS.numbers, strict=True))
_BY_NUMBER = {_KINDS[word]: pipe for word, pipe in OP_PIPES.items()}


def named_pipe(case: Case, name: str) -> str | None:
    """The pipe an attribute names, by itself or through a kind of operation."""
    value = case.op.attrs.get(name)
    if not isinstance(value, Enum):
        return None
    kind = _KINDS.get(value.value)
    return value.value.removeprefix("PIPE_") if kind is None else _BY_NUMBER[kind]


def pipe_of(case: Case) -> str:
    """MTE2, V, ...; ALL; or `none` where nothing is issued to a pipe."""
    pipe, order = case.row.pipe, case.row.order
    if isinstance(order, Barrier):
        return named_pipe(case, order.pipe) or "ALL"
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
