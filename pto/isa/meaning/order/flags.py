"""Order between pipes and agents, as far as a run in program order needs it.

A flag is a counter, and a wait subtracts one. Effects happen in program order here, so a wait on a
flag that is not set yet can never succeed; `run/order` models pipes that run ahead of each other.
Signals between the cube and the vector side make agents wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.errors import fail
from pto.isa.meaning.handle.view import Handles, handle, handles
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.meaning.machine import Machine
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


def _signal_id(case: Case) -> Callable[[tuple[Any, ...]], int]:
    """The id: the last operand if there is one, else the attribute."""
    event = event_of(case)
    return lambda operands: next((o for o in reversed(operands) if o is not None), event)


def _own(core: Machine, signal: int) -> int:
    """The id as the second sub-block numbers it; it may also use the cube's number."""
    offset = core.profile.sync.second_vector_id_offset
    other = core.side == "vector" and core.sub and offset and signal >= offset
    return signal - offset if other and offset else signal


def _receivers(core: Machine, signal: int) -> list[tuple[str, int, int]]:
    """The (side, sub-block, id) that a set reaches.

    One to one: ids of the second sub-block have an offset on the cube's side. Otherwise a set of
    the cube reaches both sub-blocks, and the sets of both are combined for the cube. An agent that
    is the whole core signals itself.
    """
    offset = core.profile.sync.second_vector_id_offset
    if core.side == "both":
        return [("both", 0, signal)]
    if core.side == "vector":
        return [("cube", 0, _own(core, signal) + (offset * core.sub if offset else 0))]
    if offset:
        return [("vector", signal // offset, signal % offset)]
    return [("vector", 0, signal), ("vector", 1, signal)]


def _sent(case: Case) -> Callable[..., None]:
    signal, mode = _signal_id(case), case.word("ffts_mode") or ""
    if is_meeting(case):
        return lambda core, *operands: _arrive(core, mode, signal(operands))

    def run(core: Machine, *operands: Any) -> None:
        sync = core.profile.sync
        sender = 0 if sync.second_vector_id_offset else core.sub
        for key in _receivers(core, signal(operands)):
            count = core.cluster.cross_flags[key, sender] + 1
            most = sync.cross_core_counter_max
            if most is not None and count > most:
                raise fail(
                    "PTO-D113", f"signal {key[2]} is sent more than {most} times without a wait"
                )
            core.cluster.cross_flags[key, sender] = count

    return run


def _heard(case: Case) -> Callable[..., Any]:
    signal = _signal_id(case)

    def run(core: Machine, *operands: Any) -> Any:
        number = signal(operands)
        key = (core.side, core.sub if core.side == "vector" else 0, _own(core, number))
        flags, senders = core.cluster.cross_flags, _senders(core)
        if all(flags[key, sender] > 0 for sender in senders):
            for sender in senders:
                flags[key, sender] -= 1
            return None
        if any(_met(core, mode, number) for mode in (_ALL_CORES, _VECTOR_PAIR)):
            return None
        return Blocked(f"signal {number}, which nobody has sent")

    return run


def _senders(core: Machine) -> list[int]:
    """The senders that one wait needs: all sub-blocks if a cube combines their signals."""
    combined = core.side == "cube" and not core.profile.sync.second_vector_id_offset
    return list(range(core.cluster.vectors)) if combined else [0]


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


SEND = Do(_sent)
HEAR = Do(_heard, blocks=True)
# the same, for signals that are always barriers of all cores
ARRIVE = Do(_sent)
MEET = Do(_heard, blocks=True)
