"""Order between pipes and agents, as far as a run in program order needs it.

A flag is a counter, and a wait subtracts one. Effects happen in program order here, so a wait on a
flag that is not set yet can never succeed; `run/order` models pipes that run ahead of each other.
AgentSignals between the cube and the vector side make agents wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import and_
from typing import Any

from pto.core.errors import fail
from pto.isa.meaning.handle.view import Handles, handle, handles
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.order.words import AgentSignals, Receiver
from pto.isa.row.flag import event_of, flag_of, key_of
from pto.isa.rules.rule import Case

NOT_YET_SET = "PTO-D111"  # the launch then runs again with pipes that run ahead


def _flag(*, waits: bool) -> Do:
    """A set adds one to the flag of the row, a wait subtracts one; an operand may give the id."""

    def make(case: Case) -> Callable[..., None]:
        sync = case.profile.sync
        named = [flag_of(case, n) for n in range(sync.event_ids)]
        keys = [key_of(flag, sync.flag_identity) for flag in named]
        event = event_of(case)

        def run(x: Handles, *operands: int) -> None:
            chosen = operands[0] if operands else event
            x.require(
                x.below(chosen, len(named)),
                lambda: fail("PTO-D112", f"event id {chosen} is not below {len(named)}"),
            )
            count = x.flag(keys, chosen)
            if waits:
                x.require(
                    count > 0,
                    lambda: fail(
                        NOT_YET_SET,
                        f"{x.core.name} waits for flag {named[chosen]}, which nothing before it"
                        " has set",
                        help="set the flag first, on a pipe that does not wait for this one",
                    ),
                )
            x.set_flag(keys, chosen, count - 1 if waits else count + 1)

        return run

    return handles(make)


SET_FLAG = _flag(waits=False)
WAIT_FLAG = _flag(waits=True)
# Barriers and buffer ids: effects in program order already satisfy them.
IN_ORDER = handle(lambda x, *operands: None)

# ---- signals between the cube and its vector sub-blocks, and across blocks

_ALL_CORES, _VECTOR_PAIR = "0", "1"  # values of ffts_mode; without it, or 2: the other side


def _signal_id(x: AgentSignals, case: Case, operands: tuple[Any, ...]) -> int:
    """The id: the last operand if there is one, else the attribute."""
    numbers = [operand for operand in operands if operand is not None]
    return x.number(numbers[-1] if numbers else event_of(case))


def _own(x: AgentSignals, case: Case, signal: int) -> int:
    """The id as the second sub-block numbers it; it may also use the cube's number."""
    offset = case.profile.sync.second_vector_id_offset
    if x.side != "vector" or not offset:
        return signal
    return signal - offset * x.choose((x.core.sub > 0) & (signal >= offset), lambda: 1, 0)


def _receivers(x: AgentSignals, case: Case, signal: int) -> list[Receiver]:
    """The agents that a set reaches.

    One to one: ids of the second sub-block have an offset on the cube's side. Otherwise a set of
    the cube reaches both sub-blocks, and the sets of both are combined for the cube. An agent that
    is the whole core signals itself.
    """
    offset = case.profile.sync.second_vector_id_offset
    if x.side == "both":
        return [("both", 0, signal)]
    if x.side == "vector":
        return [("cube", 0, _own(x, case, signal) + x.core.sub * (offset or 0))]
    if offset:
        return [("vector", signal // offset, signal % offset)]
    return [("vector", 0, signal), ("vector", 1, signal)]


def _sent(case: Case) -> Callable[..., None]:
    sync, mode = case.profile.sync, case.word("ffts_mode") or ""
    most = sync.cross_core_counter_max

    def run(x: AgentSignals, *operands: Any) -> None:
        number = _signal_id(x, case, operands)
        if is_meeting(case):
            x.leave_unless(False, "a meeting of many cores")
            _arrive(x.core, mode, number)
            return
        x.leave_unless(x.has_signal(number), "no such signal")
        sender = 0 if sync.second_vector_id_offset else x.core.sub
        reached = _receivers(x, case, number)
        counts = [x.signal(to, sender) + 1 for to in reached]
        for (_, _, signal), count in zip(reached, counts, strict=True):
            if most is not None:
                x.require(
                    count <= most,
                    lambda n=signal: fail(
                        "PTO-D113", f"signal {n} is sent more than {most} times without a wait"
                    ),
                )
        for to, count in zip(reached, counts, strict=True):
            x.set_signal(to, sender, count)

    return run


def _heard(case: Case) -> Callable[..., Any]:
    def run(x: AgentSignals, *operands: Any) -> Any:
        number = _signal_id(x, case, operands)
        x.leave_unless(x.has_signal(number), "no such signal")
        sub = x.core.sub if x.side == "vector" else 0
        mine = x.side, sub, _own(x, case, number)
        # a cube that combines the signals of its sub-blocks waits for all of them
        combined = x.side == "cube" and not case.profile.sync.second_vector_id_offset
        count = x.agents[0] if combined else x.number(1)

        def met() -> Any:
            came = [(count <= n) | (x.signal(mine, n) > 0) for n in range(1 + combined)]
            return reduce(and_, came)

        def take() -> None:
            for n in range(1 + combined):
                x.when(count > n, partial(_subtract, x, mine, n))

        def reason() -> Blocked | None:
            if any(_met(x.core, mode, number) for mode in (_ALL_CORES, _VECTOR_PAIR)):
                return None
            return Blocked(f"signal {number}, which was never sent")

        return x.until(met, take, reason, polls=True)

    return run


def _subtract(x: AgentSignals, to: Receiver, sender: int) -> None:
    x.set_signal(to, sender, x.signal(to, sender) - 1)


def _arrive(core: Machine, mode: str, number: int) -> None:
    core.cluster.arrivals[_meeting(core, mode, number), core.block, core.sub] += 1


def _met(core: Machine, mode: str, number: int) -> bool:
    """True if every participant has arrived at the next barrier of this agent."""
    meeting, counts = _meeting(core, mode, number), core.cluster.arrivals
    blocks = range(core.blocks) if mode == _ALL_CORES else (core.block,)
    passed = (meeting, core.block, core.sub, "passed")
    least = min(counts[meeting, block, sub] for block in blocks for sub in range(core.subs))
    if least <= counts[passed]:
        return False
    counts[passed] += 1
    return True


def _meeting(core: Machine, mode: str, number: int) -> tuple[str, str, int]:
    return mode, core.side, number


def is_meeting(case: Case) -> bool:
    """True for an arrival at a barrier: of all cores of a kind, or of both sub-blocks."""
    return case.word("ffts_mode") in (_ALL_CORES, _VECTOR_PAIR)


SEND = Do(_sent, words=AgentSignals)
HEAR = Do(_heard, blocks=True, words=AgentSignals)
