"""One allocation has one address: reject programs in which two of its tiles are in use at once.

An allocation inside a loop makes a new tile in every iteration, and a called function makes its
tiles again in every call, each time at the same address.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

from pto.core.errors import Diagnostic, Note, PtoError
from pto.ir.graph import Operation, Value
from pto.ir.liveness import Timeline, aliases, carried_args, is_handle
from pto.isa.row.traits import Control
from pto.plan.buffers import Placed

Path = tuple[tuple[Operation, int], ...]  # the branches around an operation: (scf.if, which arm)


def check_loops(roots: Sequence[Value], placed: Container[Value], times: Timeline) -> None:
    """Reject a tile of a loop that is still in use when the next iteration uses its own.

    `placed` has the ids of roots with an address from the program, which are not checked.
    """
    loops = [op for op in times.order if op.is_loop]
    for loop in loops:
        args = carried_args(loop)
        reached = [
            [n for n in times.names.get(a, ()) if _made_in(roots[n], loop, placed)] for a in args
        ]
        if any(reached):
            _Iteration(loop, args, roots, reached, times).check()


def _made_in(root: Value, loop: Operation, placed: Container[Value]) -> bool:
    maker = root.maker
    return maker is not None and root not in placed and loop in maker.ancestors()


class _Iteration:
    """One iteration of a loop: uses of its own tiles, and of those from the iteration before."""

    def __init__(
        self,
        loop: Operation,
        args: Sequence[Value],
        roots: Sequence[Value],
        reached: Sequence[Sequence[int]],
        times: Timeline,
    ) -> None:
        self.loop = loop
        self.roots = roots
        self.reached = reached  # roots that each argument may refer to
        self.made = times.made
        self.at = {op: n for n, op in enumerate(times.order)}
        self.new = aliases(loop, roots, carried=False)
        self.old = aliases(loop, args, carried=False)

    def check(self) -> None:
        body = [op for op in self.loop.walk() if op is not self.loop]
        begun = self.begun(body)
        for op in body:
            for value in op.operands:
                self.check_use(op, value, begun)

    def begun(self, body: Sequence[Operation]) -> dict[int, dict[Path, int]]:
        """The first use of this iteration's tile, by root and branch."""
        starts: dict[int, dict[Path, int]] = {}
        for op in body:
            returned = op.results if "callee" in op.attrs else []  # the callee has used them
            for value in [] if is_handle(op) else [*op.operands, *returned]:
                fresh = self.new.get(value)
                if fresh:
                    around = self.held_by(op, value)
                    path, now = branches(around), self.at[around]
                    for n in fresh:
                        paths = starts.setdefault(n, {})
                        paths[path] = min(now, paths.get(path, now))
        return starts

    def check_use(self, op: Operation, value: Value, begun: dict[int, dict[Path, int]]) -> None:
        fresh = self.new.get(value, ())  # a value that may be either was checked before
        stale = {n for a in self.old.get(value, ()) for n in self.reached[a]}.difference(fresh)
        if not stale:
            return
        around = self.held_by(op, value)
        path, now = branches(around), self.at[_last(around)]
        for n in sorted(stale):
            for other, first in begun.get(n, {}).items():
                if first <= now and not _exclude(path, other):
                    raise _twice(self.roots[n], "the next turn of the loop makes it again", op)

    def held_by(self, op: Operation, value: Value) -> Operation:
        """The outermost loop inside this one that uses a value from outside it; else `op`."""
        time = self.made.get(value, 0)
        holder = op
        for above in op.ancestors():
            if above is self.loop:
                break
            if above.is_loop and self.at[above] > time:
                holder = above
        return holder


def check_calls(taken: Sequence[Placed]) -> None:
    """Reject a tile returned by a call that is in use when a later call takes its bytes."""
    frames = [p for p in taken if p.buffer.root is None]
    for placed in taken:
        value = placed.buffer.root
        for frame in frames if value is not None else ():
            if value is not None and _takes(frame, placed):
                why = f"{frame.buffer.name} is called again"
                raise _twice(value, why, frame.buffer.op)


def _takes(frame: Placed, other_placed: Placed) -> bool:
    one, other = frame.buffer, other_placed.buffer
    if one.space is not other.space or one.op is other.op or one.alive is None:
        return False
    if frame.start >= other_placed.end or other_placed.start >= frame.end:
        return False
    together = other.alive is not None and one.alive.meets(other.alive)
    return together and not _exclude(branches(one.op), branches(other.op))


def _twice(root: Value, why: str, there: Operation) -> PtoError:
    """The error of two live tiles of one allocation; `there` is the last use of the first."""
    maker = root.maker
    where = maker.loc if maker is not None else there.loc
    message = f"%{root.name} is still in use when {why}, and both lie at one address"
    note = Note(f"it is in use here, at '{there.name}' op", there.loc)
    help = "make as many tiles as are in use together, before the loop or in the caller"
    return PtoError(Diagnostic("PTO-M122", message, where, notes=(note,), help=help))


def branches(op: Operation) -> Path:
    """The arms of scf.if around an operation, outermost first."""
    steps = pairwise([op, *op.ancestors()])
    inside = [(above, inner.home.region) for inner, above in steps if above.control is Control.IF]
    return tuple((branch, branch.regions.index(region)) for branch, region in reversed(inside))


def _exclude(a: Path, b: Path) -> bool:
    """True if they are in different arms of one scf.if, so that only one of them runs."""
    arms = dict(a)
    return any(arms.get(branch, arm) != arm for branch, arm in b)


def _last(op: Operation) -> Operation:
    """The last operation inside, in program order."""
    while True:
        ops = [b.ops[-1] for b in op.blocks() if b.ops]
        if not ops:
            return op
        op = ops[-1]
