"""The arguments of an exported launch: what each array holds before it, and what a board compares
after it. The launch runs here for that, on copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import PtoError, fail
from pto.core.memory import address_of
from pto.cxx.export.host import TAKEN, free_name
from pto.cxx.export.places import parameter_type
from pto.cxx.export.tolerance import ExportTolerance, adds_floats, tolerance
from pto.ir.graph import Module
from pto.isa.row.order import OpenQueue
from pto.isa.row.types import Ptr
from pto.observe.memory.additions import FloatAdditions
from pto.plan.calls import entry_functions
from pto.plan.stores import readers, used_parameters
from pto.run.launch.arguments import LaunchParameter, parameters
from pto.run.launch.call import Blocks
from pto.run.launch.host import launch
from pto.run.machine.world import World
from pto.run.watch.events import Hook, Observer
from pto.target.facts import Profile

_Key = tuple[int, int]  # address and size
_Contents = Mapping[_Key, npt.NDArray[Any]]  # of every array


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the kernel: an array by its files, or a number."""

    name: str
    type: str  # as the kernel of C++ declares it
    value: Any
    dtype: DType | None = None
    file: str = ""  # the name of an array, of all that the ranks have
    expected: Any = None  # an array after the run, where the kernel writes it
    tolerance: ExportTolerance | None = None
    rank: int = 0  # the rank that has the array
    shared: bool = False  # other ranks reach it

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, np.ndarray)


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    """The launch as it is written, to run here on copies of its arrays."""

    module: Module
    lists: Sequence[Sequence[Any]]  # of each rank
    blocks: Blocks
    profile: Profile
    world: World | None
    arrays: Mapping[_Key, Argument]

    def after(self, before: _Contents) -> _Contents:
        """The arrays after a run on these contents."""
        copies = _copied(before)
        self._run(copies, None)
        return copies

    def watched(
        self, before: _Contents, kinds: Mapping[_Key, DType]
    ) -> tuple[_Contents, dict[_Key, float]]:
        """The same, and how much sums of atomic additions may differ in another order."""
        copies = _copied(before)
        additions = FloatAdditions({address_of(copies[key]): kinds[key] for key in kinds})
        self._run(copies, additions)
        return copies, {key: additions.error(address_of(copies[key])) for key in kinds}

    def _run(self, copies: _Contents, observer: Observer | None) -> None:
        lists = [[copies.get(_key(v), v) for v in args] for args in self.lists]
        if self.world is None:
            how: dict[str, Any] = {"profile": self.profile.name, "observer": observer}
            launch(self.module, args=lists[0], blocks=self.blocks, **how)
            return
        ranks = World(len(lists), self.profile)
        for key, argument in self.arrays.items():
            ranks[argument.rank].attach(copies[key], heap=True)
        with nullcontext() if observer is None else ranks.observed(Hook(observer)):
            ranks.launch(self.module, args=lists, blocks=self.blocks)
            ranks.synchronize()

    def start(self, before: _Contents, after: _Contents, outputs: Collection[_Key]) -> _Contents:
        """Contents that a launch changes: outputs that it leaves as they were, and does not read,
        begin with other bytes where it writes."""
        other = {key: ~_bytes(before[key]) for key in outputs if _same(before, after, key)}
        if not other:
            return before
        filled = {key: _filled(before[key], raw) for key, raw in other.items()}
        with suppress(PtoError):
            again = self.after({**before, **filled})
            for key, raw in other.items():
                is_written = _bytes(again[key]) == _bytes(after[key])
                chosen = np.where(is_written, raw, _bytes(before[key]))
                filled[key] = _filled(before[key], chosen)
            last = self.after({**before, **filled})
            if all(_same(last, after, key) for key in after):
                return {**before, **filled}
        return before


def _copied(arrays: _Contents) -> _Contents:
    return {key: np.array(array) for key, array in arrays.items()}


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(array.tobytes(), np.uint8)


def _filled(array: npt.NDArray[Any], raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """An array like this one, of other bytes."""
    return np.frombuffer(raw.tobytes(), array.dtype).reshape(array.shape)


def _same(first: _Contents, second: _Contents, key: _Key) -> bool:
    return first[key].tobytes() == second[key].tobytes()


def arguments(
    as_written: Module,
    module: Module,
    lists: Sequence[Sequence[Any]],
    blocks: Blocks,
    profile: Profile,
    world: World | None,
) -> list[list[Argument]]:
    """The arguments of `module`, with what a launch of `as_written` makes of each array.

    The bytes of arrays that hold the slots of queues are the library's own: they are not compared.
    """
    params = parameters(*entry_functions(module, None))
    count = len(parameters(*entry_functions(as_written, None)))
    arrays = _arrays(lists, [p.name for p in params], world)
    run = _Rehearsal(as_written, [args[:count] for args in lists], blocks, profile, world, arrays)
    pairs = [(_key(v), p) for args in lists for v, p in zip(args, params, strict=True)]
    slots, written, read = _uses(module, [p.name for p in params])
    before: _Contents = {key: a.value for key, a in arrays.items()}
    kinds = {key: p.dtype for key, p in pairs if key in arrays and p.dtype and p.dtype.is_float}
    errors: dict[_Key, float] = {}
    if adds_floats(module):
        after, errors = run.watched(before, kinds)
    else:
        after = run.after(before)
    outputs = {key for key, p in pairs if p.name in written}
    sources = {key for key, p in pairs if p.name in read}
    start = run.start(before, after, (outputs - sources) & after.keys())
    reads_sums = any(error and key in sources for key, error in errors.items())

    def argument(value: Any, param: LaunchParameter) -> Argument:
        key, type = _key(value), parameter_type(param.type).replace("__gm__ ", "")
        recorded = arrays.get(key, Argument("", "", value))
        if key in outputs and param.name not in slots:
            how = tolerance(module, param.dtype, errors.get(key, 0.0), reads_sums)
            recorded = replace(recorded, value=start[key], expected=after[key], tolerance=how)
        return replace(recorded, name=param.name, type=type, dtype=param.dtype)

    listed = [[argument(v, p) for v, p in zip(args, params, strict=True)] for args in lists]
    if not any(a.tolerance for args in listed for a in args):
        raise fail("PTO-U249", "the launch writes no array: a board has nothing to compare")
    return listed


def _uses(module: Module, names: Sequence[str]) -> tuple[set[str], set[str], set[str]]:
    """The parameters that hold slots of queues, those that are written, and those that are read."""
    opened = [op for op in module.walk() if isinstance(op.order, OpenQueue)]
    used = [v for op in opened for v in op.operands if isinstance(v.type, Ptr)]
    slots = {v.origin(lambda op: op.traits.names_only).name for v in used}
    functions = entry_functions(module, None)
    written = set(used_parameters(functions, names)) - slots
    return slots, written, set(used_parameters(functions, names, readers))


def _key(value: Any) -> _Key:
    """The bytes of an array; a number has none."""
    return (address_of(value), value.nbytes) if isinstance(value, np.ndarray) else (0, 0)


def _arrays(
    lists: Sequence[Sequence[Any]], names: Sequence[str], world: World | None
) -> dict[_Key, Argument]:
    """Every array once, by its identity: the rank that has it, and whether others reach it."""
    uses: list[tuple[int, int, str, Any]] = []
    owners: dict[_Key, int] = {}
    for rank, args in enumerate(lists):
        for name, v in zip(names, args, strict=True):
            if isinstance(v, np.ndarray):
                memory = None if world is None else world[0].memory_of(v)
                owner = None if world is None or memory is None else world[0].owner(memory)
                uses.append(
                    (owners.setdefault(_key(v), rank if owner is None else owner), rank, name, v)
                )
    by_key: dict[_Key, Argument] = {}
    for owner, rank, name, v in sorted(uses, key=lambda use: use[0] != use[1]):
        label = free_name(name, TAKEN) if world is None else f"{name}_{owner}"
        while _key(v) not in by_key and label in {a.file for a in by_key.values()}:
            label += "_"
        old = by_key.get(_key(v)) or Argument("", "", v, file=label, rank=owner)
        by_key[_key(v)] = replace(old, shared=old.shared or rank != owner)
    return by_key
