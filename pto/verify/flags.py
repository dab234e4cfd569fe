"""Flags that can never match, and pipes that a core does not have.

A wait without a matching set hangs the core; a set without a wait leaves the flag set. Only
findings that hold on every path are reported here; the sanitizer watches real runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation
from pto.isa.row.attributes import word
from pto.isa.row.flag import Flag, flag_of, key_of
from pto.isa.row.order import Barrier, OfFlag, SetFlag, WaitFlag
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.target.facts import Profile

Key = tuple[str, Flag]  # the side, and the flag as the profile knows it
_CHOSEN = -1  # the id of a flag given by an operand: matches any


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    calls = any(op.control is Control.CALL for op in module.walk())
    for function in [module.op] if calls else module.functions():
        sets = dict(_flags(function, SetFlag, profile))
        waits = dict(_flags(function, WaitFlag, profile))
        chosen = {flag for _, flag in (*sets, *waits) if flag.id == _CHOSEN}
        for op in (op for key, op in waits.items() if _alone(key, sets, chosen)):
            never = f"waits for {_shown(op)}, which nothing on this side ever sets"
            yield op.finding("PTO-D100", never)
        for op in (op for key, op in sets.items() if _alone(key, waits, chosen)):
            never = f"sets {_shown(op)}, which nothing on this side ever waits for"
            yield op.finding("PTO-D101", never, "warning")
    yield from _of_other_cores(module, profile)


def _of_other_cores(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    """Flags and barriers of pipes that only the other kind of core has."""
    for op in module.walk():
        order = op.order
        if not isinstance(order, OfFlag | Barrier) or (side := op.side()) is None:
            continue
        for name in (order.pipe,) if isinstance(order, Barrier) else (order.src, order.dst):
            pipe = (word(op.attrs, name) or "").removeprefix("PIPE_")
            if profile.side_of(pipe) not in ("", side):
                wrong = f"expects pipes of a {side} core: {name} is {pipe}"
                help = f"only {profile.side_of(pipe)} cores have {pipe}"
                yield op.finding("PTO-X072", wrong, help=help)


def _flags(
    function: Operation, kind: type[OfFlag], profile: Profile
) -> Iterator[tuple[Key, Operation]]:
    for op in function.walk():
        if isinstance(op.order, kind):
            case = Case(op, profile)
            flag = flag_of(case, _CHOSEN if op.operands else None)
            if flag.src != flag.dst:  # equal pipes are an error of the row
                yield (op.side() or "", key_of(flag, profile.sync.flag_identity)), op


def _alone(key: Key, others: dict[Key, Operation], chosen: set[Flag]) -> bool:
    return key not in others and key[1]._replace(id=_CHOSEN) not in chosen


def _shown(op: Operation) -> str:
    """The pipes and event id of a flag operation, as the program writes them."""
    order = op.order
    names = (order.src, order.dst, "event_id") if isinstance(order, OfFlag) else ()
    words = filter(None, (word(op.attrs, name) for name in names))
    return f"[{', '.join(words)}]"
