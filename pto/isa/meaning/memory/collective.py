"""Transfers, signals and collectives between ranks, on views of global memory.

An address determines the rank that owns its memory. The host passes a kernel the arrays of its
peers, or their addresses as numbers, which `castptr` converts to pointers. Memory of the symmetric
heap has the same offset on every rank. An asynchronous transfer with a `peer` interprets an address
of its own heap as the same offset on that rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy.typing as npt

from pto.core.errors import PtoError, fail
from pto.core.global_tensor import GlobalTensor
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.handle.view import as_tile, as_view, handle, tile_type
from pto.isa.meaning.kinds import Blocked, Do, Make, Move
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory.views import Combine
from pto.isa.meaning.order.words import AgentSignals
from pto.isa.meaning.tile.mover import Mover
from pto.isa.rules.rule import Case

Array = npt.NDArray[Any]
_ROWS, _COLS = 3, 4  # the dimensions a staging tile cuts


def require_alike(x: Mover, a: GlobalTensor, b: GlobalTensor, subject: str) -> None:
    alike = reduce(and_, (m == n for m, n in zip(a.shape, b.shape, strict=True)))
    x.require(
        alike, lambda: fail("PTO-S193", f"{subject} must have one shape, but they are {a} and {b}")
    )


class _Staging:
    """The tile that buffers data of a transfer.

    Its content afterwards is undefined; here it stays.
    """

    def __init__(self, case: Case, name: str) -> None:
        self._valid = tile_type(case.type(name)).valid

    def check(self, x: Mover, tile: Tile, view: GlobalTensor) -> None:
        """Check that a tile can buffer a tensor: a static extent of the tile must divide it."""
        axes = (("rows", _ROWS), ("columns", _COLS))
        for (axis_name, axis), size, fixed in zip(axes, tile.get_valid(), self._valid, strict=True):
            extent = view.shape[axis]
            fits = (size > 0) | (extent == 0)
            if fixed:
                fits = (extent <= fixed) | (extent % fixed == 0)
            x.require(fits, lambda now=(extent, axis_name, size): _uncut(*now))


def _uncut(extent: int, axis_name: str, size: int) -> PtoError:
    return fail(
        "PTO-S191",
        f"{extent} {axis_name} are cut into parts of {size}, the valid {axis_name} of the tile",
        help="use a tile with a dynamic valid region: the last part may be smaller",
    )


def _arithmetic(case: Case, name: str, combine: Combine) -> Combine:
    elem = case.elem(name)
    kind = elem.dtype if elem else None
    if kind is None or (kind.is_float and kind.numpy == kind.storage) or kind.is_packed:
        shown = elem.name if elem else "this type"
        raise fail("PTO-T150", f"'{case.op.name}' op cannot combine elements of {shown}")
    return combine


# ---- point to point


def _transfer(case: Case) -> Callable[..., None]:
    staging, adds = _Staging(case, "ping"), case.word("atomicType") == "atomic_add"
    combine = _arithmetic(case, "dst", lanes.add) if adds else None

    def run(x: Mover, dst: GlobalTensor, src: GlobalTensor, ping: Tile, pong: Any) -> None:
        require_alike(x, dst, src, "both sides of a transfer")
        staging.check(x, ping, src)
        if combine is None:
            x.assign(dst, [src])
        else:
            x.add_to(dst, src, combine)

    return run


TRANSFER = Move(_transfer)

# ---- asynchronous: complete when started, so events are complete at once


class Token:
    """A transfer engine, or the event of a completed transfer. It has no state."""


TOKEN = Token()


def _start(far: str) -> Move:
    """Start a transfer; `far` is the operand on the peer."""

    def run(x: Mover, dst: GlobalTensor, src: GlobalTensor, session: Any, peer: Any) -> Token:
        require_flat(x, dst)
        require_flat(x, src)
        require_alike(x, dst, src, "both sides of a transfer")
        if peer is not None:
            there = x.on_peer(dst if far == "dst" else src, peer)
            dst, src = (there, src) if far == "dst" else (dst, there)
        x.assign(dst, [src])
        return TOKEN

    return Move(lambda case: run)


def require_flat(x: Mover, view: GlobalTensor) -> None:
    """Require contiguous elements in at most one dimension."""
    one = [n == 1 for n in view.shape]
    lines = [
        reduce(and_, one[:k] + one[k + 1 :]) & (one[k] | (step == 1))
        for k, step in enumerate(view.strides)
    ]
    x.require(
        reduce(or_, lines),
        lambda: fail(
            "PTO-S192",
            f"an asynchronous transfer needs contiguous elements in one dimension, not {view}",
        ),
    )


BUILD_SESSION = handle(lambda x, scratch, workspace: TOKEN)
PUT_ASYNC = _start("dst")
GET_ASYNC = _start("src")
EVENT_DONE = Move(lambda case: lambda x, event, session: x.scalar(1, case.op.results[0].type))

# ---- signals

_SIGNS = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def _notify(case: Case) -> Callable[..., None]:
    type, adds = case.type("signal"), case.word("notifyOp") == "atomic_add"

    def run(x: AgentSignals, signal: Any, value: Any) -> None:
        view = x.words(signal, type)
        x.require(
            reduce(and_, (size > 0 for size in view.shape)),
            lambda: fail("PTO-S193", "a signal needs at least one element"),
        )
        x.notify(view, x.number(value), adds=adds)

    return run


def comparison(case: Case) -> tuple[str, Callable[[Any, Any], Any]]:
    """The comparison of a signal: as text, and as a function."""
    word = case.word("cmp") or "eq"
    return _SIGNS[word], lanes.MODES[word]


def _wait(case: Case) -> Callable[..., Any]:
    type = case.type("signal")
    sign, compare = comparison(case)

    def run(x: AgentSignals, signal: Any, value: Any) -> Any:
        view, wanted = x.words(signal, type), x.number(value)

        def reason() -> Blocked:
            elements = " ".join(map(str, view.as_array().reshape(-1)[:8]))
            where = x.core.device.address(Pointer(view.memory, view.address, view.dtype))
            return Blocked(f"a signal {sign} {wanted} at {where:#x}, where it is {elements}")

        return x.until(
            lambda: x.every(view, lambda word: compare(word, wanted)), lambda: None, reason
        )

    return run


def _test(case: Case) -> Callable[..., int]:
    type, (_, compare) = case.type("signal"), comparison(case)

    def run(core: Machine, signal: Any, value: int) -> int:
        x = AgentSignals(core)
        return int(x.every(x.words(signal, type), lambda word: compare(word, value)))

    return run


NOTIFY = Do(_notify, words=AgentSignals)
WAIT = Do(_wait, blocks=True, words=AgentSignals)
TEST = Do(_test, polls=True)

# ---- collectives

Members = Sequence[GlobalTensor]
Work = Callable[[Mover, GlobalTensor, Members], None]


@dataclass(frozen=True, slots=True)
class Collective(Do):
    """A collective executed by its root: `moves(case)` gives fn(mover, *operands).

    On the CCU it is also a barrier of all ranks.
    """

    moves: Make = field(kw_only=True)


def by_ccu(case: Case) -> bool:
    return case.word("engine") == "CCU"


def root_of(case: Case) -> int:
    return int(case.word("root") or 0)


def _collective(staging: str, work: Callable[[Case], Work]) -> Collective:
    def moves(case: Case) -> Callable[..., None]:
        stage, act = _Staging(case, staging), work(case)

        def run(x: Mover, joint: GlobalTensor, tile: Tile, *rest: Any) -> None:
            members: Members = rest[-1]
            for member in members[1:]:
                require_alike(x, members[0], member, "all members of a group")
            stage.check(x, tile, members[0])
            act(x, joint, members)

        return run

    def make(case: Case) -> Callable[..., Any]:
        root = root_of(case)
        together = by_ccu(case)
        move = moves(case)
        names = [o.name for o in case.row.operands]
        joint_type, tile, group = (case.type(names[n]) for n in (0, 1, -1))

        def run(core: Machine, *operands: Any) -> Any:
            data, first, *others, listed = operands
            members = [as_view(member, group) for member in listed]
            arguments = as_view(data, joint_type), as_tile(first, tile), *others, members
            if together:
                return _meet(core, members, root, lambda: move(Mover(core), *arguments))
            _require_root(core, members, root)
            return move(Mover(core), *arguments)

        return run

    return Collective(make, blocks=True, moves=moves)


def _require_root(core: Machine, members: Members, root: int) -> None:
    owner = core.device.owner(members[root].memory)
    if core.device.ranks > 1 and owner != core.device.rank:
        raise fail(
            "PTO-D196",
            f"rank {core.device.rank} calls a collective of root rank {owner}",
            help="on the AIV engine only the root calls it",
        )


def _meet(core: Machine, members: Members, root: int, work: Callable[[], None]) -> Any:
    """A barrier of all ranks; the root does the work after the last arrival, then all continue."""
    device = core.device
    ranks = [device.owner(member.memory) for member in members]
    # several members on one device: one call counts for all of them
    if len(set(ranks)) < len(members):
        work()
        return None
    counts = device.meetings.setdefault(tuple(_place(core, m) for m in members), {})
    me = device.rank
    meeting = counts.get(("passed", me), 0) + 1
    counts["come", me] = meeting
    if me == ranks[root]:
        late = [r for r in ranks if counts.get(("come", r), 0) < meeting]
        if late:
            return Blocked(f"rank {', '.join(map(str, late))} to come to the collective")
        work()
        counts["done"] = meeting
    elif counts.get("done", 0) < meeting:
        return Blocked(f"the root, rank {ranks[root]}, of the collective")
    counts["passed", me] = meeting
    return None


def _place(core: Machine, member: GlobalTensor) -> int:
    """The address of a member, as every rank numbers it."""
    return core.device.address(Pointer(member.memory, member.address, None))


def turn_of(core: Machine, first: GlobalTensor) -> tuple[Any, int] | None:
    """The first member of the group, and the last barrier this rank reached."""
    location = _place(core, first)
    for group, counts in core.device.meetings.items():
        if group[0] == location:
            return group, counts.get(("come", core.device.rank), 0)
    return None


def _broadcast(x: Mover, src: GlobalTensor, members: Members) -> None:
    require_alike(x, src, members[0], "src and the members of a group")
    for member in members:
        x.assign(member, [src])


def _parts(x: Mover, joint: GlobalTensor, members: Members) -> list[GlobalTensor]:
    """The rows of the whole that belong to each member, in the order of members."""
    *outer, rows, cols = members[0].shape
    pairs = zip((*outer, cols), (*joint.shape[:_ROWS], joint.shape[_COLS]), strict=True)
    x.require(
        reduce(and_, (m == n for m, n in pairs)),
        lambda: fail("PTO-S193", f"the whole {joint} must be as wide as its members {members[0]}"),
    )
    have, count = joint.shape[_ROWS], len(members)
    x.require(
        have >= rows * count,
        lambda: fail(
            "PTO-S066", f"the whole has {have} rows, but {count} members have {rows} each"
        ),
    )
    return [x.rows(joint, rows * n, rows) for n in range(count)]


def _gather(x: Mover, dst: GlobalTensor, members: Members) -> None:
    for part, member in zip(_parts(x, dst, members), members, strict=True):
        x.assign(part, [member])


def _scatter(x: Mover, src: GlobalTensor, members: Members) -> None:
    for part, member in zip(_parts(x, src, members), members, strict=True):
        x.assign(member, [part])


def _reduce(case: Case) -> Work:
    """Combine the root's data first, then every other rank in ascending order."""
    word = case.word("reduceOp") or "sum"
    combine = _arithmetic(case, "dst", lanes.COMBINE["add" if word == "sum" else word])
    root = root_of(case)

    def work(x: Mover, dst: GlobalTensor, members: Members) -> None:
        require_alike(x, dst, members[0], "dst and the members of a group")
        others = [member for n, member in enumerate(members) if n != root]
        x.assign(dst, [members[root], *others], combine)

    return work


BROADCAST = _collective("ping", lambda case: _broadcast)
GATHER = _collective("ping", lambda case: _gather)
SCATTER = _collective("ping", lambda case: _scatter)
REDUCE = _collective("acc", _reduce)
