"""Kernels that access the memory of other ranks: each runs on every rank of a small world.

PyPTO passes a table for each remotely accessed array: the rank as its third word, then, from the
fifth on, the address of the array on each rank. Signals that a kernel waits for and does not send
come from earlier kernels; they are set from the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.gym.models.data import Data, arguments_of, origin
from pto.ir.graph import Module, Operation, Value
from pto.isa.row.order import Notify, TestSignal, WaitUntil
from pto.isa.row.traits import Control
from pto.observe.sanitize import watch_run
from pto.run.machine.world import World
from pto.run.watch.events import Hook, Observer
from pto.target.facts import Profile

_RANKS = 2
_RANK_AT, _TABLE_AT = 2, 4  # words of a table
_NAMED = 16  # entries of a table; ranks that do not run map to ranks that do
_ARRIVED = 1 << 20


def reaches_others(functions: Sequence[Operation]) -> bool:
    return any(op.row.family.section == "comm" for f in functions for op in f.walk())


class Peers:
    """The roles of the arguments of a kernel that accesses other ranks, by position."""

    def __init__(self, function: Operation) -> None:
        args = function.regions[0].block.args
        self._place = {a.name: n for n, a in enumerate(args)}
        self.windows: dict[int, int] = {}  # a table -> its array
        self.ranks: set[int] = set()  # arguments that are the rank
        bases: set[int] = set()  # arguments from which a rank is computed
        sent: set[int] = set()
        awaited: set[int] = set()
        for op in function.walk():
            order = op.order
            if isinstance(order, WaitUntil | TestSignal | Notify):
                roles = sent if isinstance(order, Notify) else awaited
                roles |= self._arguments(origin(op.operands[0]))
                # a rank does not signal itself: the condition depends on the rank
                for guard in op.around(Control.IF):
                    self.ranks |= self._arguments(guard.operands[0])
            for base, offset in zip(op.operands, op.operands[1:], strict=False):
                call = offset.maker
                if call is not None and call.control is Control.CALL:
                    (table,) = self._arguments(call.operands[0])
                    (self.windows[table],) = self._arguments(origin(base))
                    bases |= self._arguments(call.operands[1])
        self.zeros = bases - self.ranks
        self.signals = awaited - sent  # set from the start

    def _arguments(self, value: Value) -> set[int]:
        """Positions of the arguments from which a value is computed."""
        return {self._place[name] for name in arguments_of(value) if name in self._place}


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
            with world.observed(Hook(observer)):
                world.launch(module, args=args)
                world.synchronize()
        done[:] = args

    if not watched:
        run(None)
        return done
    findings = watch_run(profile, run, lambda: None)
    if any(d.severity == "error" for d in findings):
        raise PtoError(*findings)
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
            shared[n][rank]
            if p.is_array
            else rank
            if n in peers.ranks
            else 0
            if n in peers.zeros
            else value
            for n, (p, value) in enumerate(zip(data.params, data.values, strict=True))
        ]
        for rank in ranks
    ]


def _element(data: Data, n: int) -> str:
    kind = data.params[n].dtype
    return kind.name if kind is not None else "u8"
