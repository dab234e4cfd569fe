"""Warnings about a launch that ran, if its result is probably not the intended one.

They follow from the program, the shapes and the number of blocks: an element that two blocks
access and one of them stores, an array with holes, blocks that have nothing to do, no result at
all, a tile that is read and never written. A program that branches on data, or on a number that the
call passes, is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation, Value
from pto.isa.scalar.unit import DEBUG
from pto.plan.calls import names_of
from pto.plan.conflicts import Conflict, conflict
from pto.plan.iterations import Iterations, NotStatic
from pto.plan.stores import Covered, Flags, Reached, Uses, unwritten, uses
from pto.run.launch.arrays import Borrowed
from pto.run.launch.call import Launch
from pto.run.launch.call import warn as show
from pto.run.launch.engine import wants_coverage

_SWITCH = "coverage=False or PTO_COVERAGE=0 leaves this check out"
_EXACT = f"coverage=True reports what a run writes, {_SWITCH}"


def warn(
    done: Launch,
    option: bool | None,
    sizes: Sequence[int] = (),
    traced: Sequence[Diagnostic] = (),
) -> None:
    """Show the first warning about a launch; called once for each set of shapes.

    `option` and PTO_COVERAGE=0 disable the check. `traced`: findings of the Python front end.
    """
    if not wants_coverage(option):
        return
    finding = next(chain(traced, LaunchOutcome(done, sizes).findings()), None)
    if finding is not None:
        show(finding)


class LaunchOutcome:
    """A finished launch: its arrays by name, and the stores of the program to each.

    `sizes` are its last arguments: numbers that follow from shapes and the grid.
    """

    def __init__(self, done: Launch, sizes: Sequence[int]) -> None:
        self._kernel, self._blocks = done.kernel, done.blocks
        self._printed = bool(done.printed)
        names = list(done.kernel.parameters)
        by_name = dict(zip(names, done.args, strict=True))
        self._arrays = {n: a.array for n, a in by_name.items() if isinstance(a, Borrowed)}
        self._names = {
            arg: name for function in done.kernel.functions for arg, name in _named(function, names)
        }
        last = dict(zip(names[len(names) - len(sizes) :], sizes, strict=True))
        self._numbers = {key: last[name] for key, name in self._names.items() if name in last}

    def findings(self) -> Iterator[Diagnostic]:
        kernel = self._kernel
        for function in kernel.functions:
            yield from unwritten(function)
        used = uses(kernel.functions, self._names)
        if used is None or not self._arrays:
            return
        it = self._iterations(self._blocks)
        if self._blocks > 1 and kernel.is_closed:
            clash = conflict(it, used, self._arrays)
            if clash is not None:
                yield _unordered(clash)
        if _share_memory(list(self._arrays.values())):
            return
        stored = self._stored(used, it)
        written = {n: clash for n, clash in stored.items() if clash and used[n].is_known}
        some, reached = self._flags(written.values())
        if len(written) == len(stored) and not some.any():
            yield from self._nothing(used)
            return
        yield from self._parts(used, written, it)
        if len(written) == len(stored) and not it.adapts:
            yield from self._idle(used, np.flatnonzero(reached & ~some).tolist())

    def unwritten_parts(self) -> Iterator[Diagnostic]:
        """Holes in the arrays that the program writes; it need not have run."""
        used = uses(self._kernel.functions, self._names)
        if used is None or not self._arrays:
            return
        it = self._iterations(self._blocks)
        written = {n: r for n, r in self._stored(used, it).items() if r and used[n].is_known}
        yield from self._parts(used, written, it)

    def _stored(self, used: Mapping[str, Uses], it: Iterations) -> dict[str, Reached | None]:
        return {n: _reached(it, u.stores) for n, u in used.items() if u.stores or not u.is_known}

    def _parts(
        self, used: Mapping[str, Uses], written: Mapping[str, Reached], it: Iterations
    ) -> Iterator[Diagnostic]:
        for name, reached in written.items():
            part = None if used[name].is_read else self._covered(reached, name)
            if part is not None and self._are_holes(reached, part, used, it):
                yield self._holes(used[name].stores, part, it.adapts)

    def _covered(self, reached: Reached, name: str, *, complete: bool = True) -> Covered | None:
        """The part of an array that is not covered; None if there is none, or it is too large."""
        try:
            covered = reached.covered(name, self._arrays[name].shape, whole=complete)
        except NotStatic:
            return None
        return covered if covered.never else None

    def _are_holes(
        self, written: Reached, part: Covered, used: Mapping[str, Uses], it: Iterations
    ) -> bool:
        """False for an array that is merely larger than needed: the written elements have no gaps
        between them, and all inputs are read completely."""
        if self._covered(written, part.name, complete=False) is not None:
            return True
        inputs = {name: u for name, u in used.items() if u.is_read}
        loaded = {n: _reached(it, u.loads) if u.is_load_known else None for n, u in inputs.items()}
        return not inputs or any(r and self._covered(r, name) for name, r in loaded.items())

    def _flags(self, written: Iterable[Reached]) -> tuple[Flags, Flags]:
        """Flags of the blocks that store an element, and of the blocks that reach a store."""
        none = np.zeros(self._blocks, np.bool_)
        flags = [(none, none), *(reached_array.blocks(self._blocks) for reached_array in written)]
        some, reached = zip(*flags, strict=True)
        return np.logical_or.reduce(some), np.logical_or.reduce(reached)

    def _iterations(self, blocks: int) -> Iterations:
        agents = max(part.agents for part in self._kernel.parts)
        return Iterations(self._kernel.profile, blocks, agents, self._numbers)

    def _nothing(self, used_arrays: Mapping[str, Uses]) -> Iterator[Diagnostic]:
        functions = self._kernel.functions
        says = self._printed or any(op.row.family is DEBUG for f in functions for op in f.walk())
        if says or not any(a.size for a in self._arrays.values()):
            return
        ops = [op for uses in used_arrays.values() for op in uses.stores]
        why = "every store writes zero elements" if ops else "it has no store"
        message = f"@{self._kernel.name} wrote to none of its arrays: {why}"
        help = f"pto.store(y, t) writes a result; {_EXACT}"
        yield Diagnostic("PTO-U312", message, (ops or functions)[0].loc, "warning", help=help)

    def _idle(self, used_arrays: Mapping[str, Uses], idle: Sequence[int]) -> Iterator[Diagnostic]:
        if not idle:
            return
        first, last = idle[0], idle[-1]
        one = f"block {first} of {self._blocks} writes"
        many = f"{len(idle)} of {self._blocks} blocks ({first} to {last}) write"
        op = next(op for uses in used_arrays.values() for op in uses.stores)
        message = f"{one if first == last else many} nothing: the arrays end before their part"
        fewer = f"a launch of {_count(first)} writes the same; " if last == self._blocks - 1 else ""
        yield Diagnostic("PTO-U311", message, op.loc, "warning", help=f"{fewer}{_EXACT}")

    def _holes(self, ops: Sequence[Operation], part: Covered, adapts: bool) -> Diagnostic:
        more = None if adapts else self._enough(ops, part)
        help = f"a launch of {_count(more)} writes all of it; {_EXACT}" if more else _EXACT
        return Diagnostic("PTO-U310", str(part), ops[0].loc, "warning", help=help)

    def _enough(self, ops: Sequence[Operation], part: Covered) -> int | None:
        """The number of blocks that leaves no hole, if more blocks help."""
        wanted = -(-self._blocks * part.elements // max(1, part.elements - part.never))
        for blocks in {self._blocks + 1, wanted}:
            tried = _reached(self._iterations(blocks), ops)
            if tried is not None and self._covered(tried, part.name) is None:
                return blocks
        return None


def _unordered(clash: Conflict) -> Diagnostic:
    other = clash.other.loc
    note = Note(f"the access of block {clash.blocks[1]}", other)
    notes = (note,) if other != clash.store.loc else ()
    help = (
        'give each block elements of its own, by pto.block_idx(); pto.store(y, t, atomic="add")'
        f" adds up what blocks store; {_SWITCH}"
    )
    message = f"{clash}: the result depends on the order of the blocks"
    return Diagnostic("PTO-U314", message, clash.store.loc, "warning", notes, help)


def _count(blocks: int) -> str:
    return f"{blocks} block{'s' * (blocks != 1)}"


def _named(function: Operation, names: Sequence[str]) -> Iterator[tuple[Value, str]]:
    args = function.regions[0].block.args
    return zip(args, names_of(args, names), strict=False)


def _reached(it: Iterations, ops: Sequence[Operation]) -> Reached | None:
    """The elements that operations reach; None if the address of one is unknown."""
    try:
        return Reached(it, ops)
    except (NotStatic, RecursionError):
        return None


def _share_memory(arrays: Sequence[Any]) -> bool:
    return any(np.may_share_memory(a, b) for a, b in combinations(arrays, 2))
