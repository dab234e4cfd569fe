"""One allocation has one address: refuse programs in which two of its tiles are in use at once.

An allocation inside a loop makes a new tile in every turn, and a called function makes its tiles
anew in every call, each time at the same place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto.core.errors import Diagnostic, Note, PtoError
from pto.ir.graph import Operation, Value
from pto.ir.liveness import LOOPS, Timeline, aliases, carried_args, is_handle
from pto.plan.placement import Placed

Path = tuple[tuple[int, int], ...]  # the branches around an operation: (scf.if, which arm)


def check_loops(function: Operation, roots: Sequence[Value], times: Timeline) -> None:
    """A tile made in a loop must not be in use when the next turn uses the one it makes."""
    names = aliases(function, roots)
    loops = [op for op in times.order if op.name in LOOPS]
    for loop in loops:
        args = carried_args(loop)
        reached = [[n for n in names.get(id(a), ()) if _made_in(roots[n], loop)] for a in args]
        if any(reached):
            _Turn(loop, args, roots, reached, times).check()


def _made_in(root: Value, loop: Operation) -> bool:
    return root.maker is not None and loop in root.maker.ancestors()


class _Turn:
    """One turn of a loop: uses of tiles it makes, and of those that the turn before handed it."""

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
        self.reached = reached  # per argument: the roots it may stand for
        self.made = times.made
        self.at = {id(op): n for n, op in enumerate(times.order)}
        self.new = aliases(loop, roots, carried=False)
        self.old = aliases(loop, args, carried=False)

    def check(self) -> None:
        body = [op for op in self.loop.walk() if op is not self.loop]
        begun: dict[int, dict[Path, int]] = {}
        for op in body:
            for value in () if is_handle(op) else op.operands:
                around = self.held_by(op, value)
                for n in self.new.get(id(value), ()):
                    paths = begun.setdefault(n, {})
                    path, now = branches(around), self.at[id(around)]
                    paths[path] = min(now, paths.get(path, now))
        for op in body:
            for value in op.operands:
                self.check_use(op, value, begun)

    def check_use(self, op: Operation, value: Value, begun: dict[int, dict[Path, int]]) -> None:
        fresh = self.new.get(id(value), ())  # where the two meet, each was judged before
        kept = {n for a in self.old.get(id(value), ()) for n in self.reached[a]}.difference(fresh)
        if not kept:
            return
        around = self.held_by(op, value)
        path, now = branches(around), self.at[id(_last(around))]
        for n in sorted(kept):
            for other, first in begun.get(n, {}).items():
                if first <= now and not _exclude(path, other):
                    raise twice(self.roots[n], op, "the next turn of the loop makes it again")

    def held_by(self, op: Operation, value: Value) -> Operation:
        """The outermost loop inside this one that uses a value from outside it; else `op`."""
        made = self.made.get(id(value), 0)
        found = op
        for above in op.ancestors():
            if above is self.loop:
                break
            if above.name in LOOPS and self.at[id(above)] > made:
                found = above
        return found


def check_calls(taken: Sequence[Placed]) -> None:
    """A tile that a call returned must not be in use when a later call takes its bytes."""
    for kept in taken:
        value, alive = kept.buffer.root, kept.buffer.alive
        if value is None or alive is None:
            continue
        for other in taken:
            again = other.buffer.alive
            if other.buffer.root is not None or other.buffer.op is kept.buffer.op or again is None:
                continue
            shared = other.start < kept.end and kept.start < other.end
            if shared and other.buffer.space is kept.buffer.space and alive.meets(again):
                raise twice(value, other.buffer.op, f"{other.buffer.name} takes the same bytes")


def twice(root: Value, use: Operation, why: str) -> PtoError:
    """Two tiles of one allocation in use at one time."""
    made = root.maker
    where = made.loc if made is not None else use.loc
    message = f"%{root.name} is still in use when {why}, at the same address"
    note = Note(f"it is in use until here, '{use.name}' op", use.loc)
    help = "make two tiles before the loop, and carry both"
    return PtoError(Diagnostic("PTO-M122", message, where, notes=(note,), help=help))


def branches(op: Operation) -> Path:
    """The arms of scf.if that an operation stands in, outermost first."""
    return tuple(_branches(op))[::-1]


def _branches(op: Operation) -> Iterator[tuple[int, int]]:
    inner = op
    for above in op.ancestors():
        if above.name == "scf.if" and inner.parent is not None:
            yield id(above), above.regions.index(inner.parent.region)
        inner = above


def _exclude(a: Path, b: Path) -> bool:
    """They stand in different arms of one scf.if, so one turn runs only one of them."""
    arms = dict(a)
    return any(arms.get(branch, arm) != arm for branch, arm in b)


def _last(op: Operation) -> Operation:
    """The last operation inside, in program order."""
    while True:
        ops = [b.ops[-1] for region in op.regions for b in region.blocks if b.ops]
        if not ops:
            return op
        op = ops[-1]
