"""Kernels that reach into the memory of other ranks: each runs on every rank of a small world.

PyPTO passes a table for each array that others reach: the rank as its third word, then, from the
fifth on, where the array lies on each rank. Signals that a kernel waits for come from kernels that
ran before it; they are there from the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.gym.models.data import Data, origin
from pto.ir.graph import Module, Operation
from pto.isa.row.order import Await, Poll
from pto.isa.row.traits import Control
from pto.observe.sanitize import watch_run
from pto.run.machine.world import World
from pto.run.watch.events import Observer, Tap
from pto.target.facts import Profile

_RANKS = 2
_RANK_AT, _TABLE_AT = 2, 4  # words of a table
_NAMED = 16  # ranks a table has room for; those that do not run are stood for by those that do
_ARRIVED = 1 << 20


def reaches_others(functions: Sequence[Operation]) -> bool:
    return any(
        op.row is not None and op.row.family.section == "comm" for f in functions for op in f.walk()
    )


class Peers:
    """What a kernel that reaches others needs of its arguments, by position."""

    def __init__(self, function: Operation) -> None:
        args = function.regions[0].block.args
        place = {id(a): n for n, a in enumerate(args)}
        self.signals: set[int] = set()
        self.windows: dict[int, int] = {}  # a table: the array it is about
        self.ranks: set[int] = set()  # numbers that are the rank
        for op in function.walk():
            if op.row is not None and isinstance(op.row.order, Await | Poll):
                self.signals.add(place[id(origin(op.operands[0]))])
            for base, offset in zip(op.operands, op.operands[1:], strict=False):
                call = offset.maker
                if call is not None and call.control is Control.CALL:
                    self.windows[place[id(call.operands[0])]] = place[id(origin(base))]
        self.ranks = {
            n
            for n, a in enumerate(args)
            if a.type.kind == "i32" and not a.name.startswith("__pypto")
        }


def launch_on_ranks(
    module: Module,
    functions: Sequence[Operation],
    data: Data,
    profile: Profile,
    engine: str,
    *,
    watched: bool,
) -> list[list[Any]]:
    """The arguments of every rank after a run of all of them."""
    peers = Peers(functions[0])
    done: list[list[Any]] = []

    def run(observer: Observer | None) -> None:
        world = World(_RANKS, profile.name)
        for device in world.devices:
            device.engine = engine
        args = _arguments(world, peers, data)
        if observer is None:
            world.launch(module, args=args)
            world.synchronize()
        else:
            with world.observed(Tap(observer)):
                world.launch(module, args=args)
                world.synchronize()
        done[:] = args

    if not watched:
        run(None)
        return done
    found = watch_run(profile, run, lambda: None)
    if any(d.severity == "error" for d in found):
        raise PtoError(*found)
    return done


def _arguments(world: World, peers: Peers, data: Data) -> list[list[Any]]:
    ranks = range(len(world))
    shared: Mapping[int, list[Any]] = {
        n: world.symmetric(data.values[n].shape, _element(data, n))
        for n, p in enumerate(data.params)
        if p.is_array
    }
    for n, arrays in shared.items():
        for array in arrays:
            array.view(data.values[n].dtype)[:] = data.values[n]
            if n in peers.signals:
                array[:] = _ARRIVED
    for table, window in peers.windows.items():
        bases = world.addresses(shared[window])
        for rank in ranks:
            words = shared[table][rank]
            words[_RANK_AT] = rank
            words[_TABLE_AT : _TABLE_AT + _NAMED] = np.resize(bases, _NAMED)
    return [
        [
            shared[n][rank] if p.is_array else rank if n in peers.ranks else value
            for n, (p, value) in enumerate(zip(data.params, data.values, strict=True))
        ]
        for rank in ranks
    ]


def _element(data: Data, n: int) -> str:
    kind = data.params[n].dtype
    return kind.name if kind is not None else "u8"
