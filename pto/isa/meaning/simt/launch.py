"""Indices of work items, communication between lanes, and values kept between entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.primitives import select
from pto.isa.meaning import lanes as numbers
from pto.isa.meaning.kinds import Cooperative, ItemLaunch, Move
from pto.isa.meaning.memory import registers
from pto.isa.meaning.simt.items import WARP, ActiveItems, Values, lanes
from pto.isa.meaning.tile.mover import Mover
from pto.isa.rules.rule import Case

_ALL = (1 << WARP) - 1
LAUNCH = ItemLaunch("operands")
CALL = ItemLaunch("stored")
SECTION = ItemLaunch("attributes")


def _store_size(x: Mover, z: Any, y: Any, width: Any) -> None:
    x.put(registers.LAUNCH_SIZE, x.number(width), x.number(y), x.number(z))


STORE_SIZE = Move(lambda case: _store_size)


def _query(fn: Callable[[ActiveItems], Any]) -> Cooperative:
    return Cooperative(lambda case: lambda items: items.everywhere(fn(items)))


def _place(items: ActiveItems, axis: str) -> Any:
    x, y, _ = items.size
    rows = items.active.astype(np.int32) // x
    if axis == "x":
        return items.active - (rows * x).astype(np.int64)
    planes = rows // y
    return planes if axis == "z" else rows - planes * y


def _below(items: ActiveItems) -> Any:
    """One bit for each lane below this one."""
    return (1 << lanes(items)) - 1


QUERIES: dict[str, Cooperative] = {
    **{f"tid_{d}": _query(lambda items, d=d: _place(items, d)) for d in "xyz"},
    **{f"block_dim_{d}": _query(lambda items, d=d: getattr(items.size, d)) for d in "xyz"},
    # a launch is one block without a grid: goldens of the public tests have 0 for both
    **{f"grid_dim_{d}": _query(lambda items: 0) for d in "xyz"},
    **{f"block_idx_{d}": _query(lambda items: 0) for d in "xyz"},
    "veccoreid": _query(lambda items: items.core.block * items.core.subs + items.core.sub),
    "clock32": _query(lambda items: items.clock() & _ALL),
    "clock64": _query(lambda items: items.clock()),
    "laneid": _query(lanes),
    "lanemask_eq": _query(lambda items: 1 << lanes(items)),
    "lanemask_lt": _query(_below),
    "lanemask_le": _query(lambda items: 2 * _below(items) + 1),
    "lanemask_gt": _query(lambda items: _ALL ^ (2 * _below(items) + 1)),
    "lanemask_ge": _query(lambda items: _ALL ^ _below(items)),
}

# ---- lanes of a warp


def _vote(fn: Callable[[Any, Any], Any]) -> Cooperative:
    """fn(lanes in which the predicate holds, active lanes), as bits."""

    def run(items: ActiveItems, pred: Values) -> Values:
        return fn(items.ballot(pred), items.ballot(pred == pred))

    return Cooperative(lambda case: run)


VOTES: dict[str, Cooperative] = {
    "vote_all": _vote(lambda yes, here: yes == here),
    "vote_any": _vote(lambda yes, here: yes != 0),
    "vote_uni": _vote(lambda yes, here: (yes == here) | (yes == 0)),
    "vote_ballot": _vote(lambda yes, here: yes),
}


def _shuffle(source: Callable[[Any, Any], Any]) -> Cooperative:
    """A lane reads the value of lane source(lane in its group, control) of its group.

    It keeps its own value if that lane is outside of the group or not active.
    """

    def make(case: Case) -> Callable[..., Values]:
        width = int(case.word("width") or WARP)

        def run(items: ActiveItems, value: Values, control: Values) -> Values:
            local = items.active % width
            wanted = source(local, control.astype(np.int64))
            fine = (wanted >= 0) & (wanted < width)
            return items.from_lane(value, lanes(items) - local + select(fine, wanted, local))

        return run

    return Cooperative(make)


SHUFFLES: dict[str, Cooperative] = {
    "shuffle_idx": _shuffle(lambda lane, index: index),
    "shuffle_up": _shuffle(lambda lane, offset: lane - offset),
    "shuffle_down": _shuffle(lambda lane, offset: lane + offset),
    "shuffle_bfly": _shuffle(lambda lane, mask: lane ^ mask),
}


def _redux(fn: Callable[[Values, Values], Values]) -> Cooperative:
    def make(case: Case) -> Callable[..., Values]:
        unsigned = case.word("signedness") == "unsigned"

        def run(items: ActiveItems, value: Values) -> Values:
            viewed = value.view(f"u{value.dtype.itemsize}") if unsigned else value
            return items.folded(fn, viewed).view(value.dtype)

        return run

    return Cooperative(make)


REDUCTIONS: dict[str, Cooperative] = {
    "redux_add": _redux(numbers.add),
    "redux_max": _redux(numbers.maximum),
    "redux_min": _redux(numbers.minimum),
}

# ---- order and state

SYNCTHREADS = Cooperative(lambda case: lambda items: items.meet())
FENCE = Cooperative(lambda case: lambda items: None)


def _slot(case: Case) -> int:
    return int(case.word("slot") or 0)


KEEP = Cooperative(lambda case: lambda items, payload: items.keep(_slot(case), payload))
RESUME = Cooperative(lambda case: lambda items: items.resume(_slot(case), case.op.results[0].type))
