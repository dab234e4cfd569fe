"""Transfers, signals and collectives between ranks, on views of global memory.

How a program reaches another rank: an address says whose memory it is in. Either the host hands a
kernel the arrays of its peers, or addresses as numbers, which `castptr` turns into pointers; memory
of the symmetric heap lies at the same offset on every rank. An asynchronous transfer with a `peer`
takes an address of its own heap for the same place on that rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.pointer import Pointer
from pto.isa.meaning import lanes
from pto.isa.meaning.handle.view import as_tile, as_view, tile_type
from pto.isa.meaning.kinds import Blocked, Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

Array = npt.NDArray[Any]
Combine = Callable[[Array, Array], Array]
_ROWS, _COLS = 3, 4  # the dimensions a staging tile cuts


def require_alike(a: GlobalTensor, b: GlobalTensor, what: str) -> None:
    if a.shape != b.shape:
        raise fail("PTO-S193", f"{what} have one shape: they are {a} and {b}")


class _Staging:
    """The tile that data goes through. Its content afterwards is undefined: ours stays."""

    def __init__(self, case: Case, name: str) -> None:
        self._type = case.type(name)
        self._valid = tile_type(self._type).valid

    def check(self, tile: Any, view: GlobalTensor) -> None:
        """A tensor larger than the tile is cut; an extent fixed by the type must divide it."""
        region = as_tile(tile, self._type).get_valid()
        axes = (("rows", _ROWS), ("columns", _COLS))
        for (what, axis), size, fixed in zip(axes, region, self._valid, strict=True):
            whole = view.shape[axis]
            if (size == 0 and whole) or (fixed is not None and whole > size and whole % size):
                raise fail(
                    "PTO-S191",
                    f"{whole} {what} are cut into pieces of {size}, the valid {what} of the tile",
                    help="a tile with a dynamic valid region may leave a rest",
                )


def _arithmetic(case: Case, name: str, combine: Combine) -> Combine:
    elem = case.elem(name)
    kind = elem.dtype if elem else None
    if kind is None or (kind.is_float and kind.numpy == kind.storage) or kind.is_packed:
        shown = elem.name if elem else "this type"
        raise fail("PTO-T150", f"'{case.op.name}' op combines elements of {shown}")
    return combine


# ---- point to point


def _transfer(case: Case) -> Callable[..., None]:
    types, staging = (case.type("dst"), case.type("src")), _Staging(case, "ping")
    adds = case.word("atomicType") == "atomic_add"
    combine = _arithmetic(case, "dst", lanes.add) if adds else None

    def run(core: Machine, dst: Any, src: Any, ping: Any, pong: Any) -> None:
        target, source = map(as_view, (dst, src), types)
        require_alike(target, source, "both sides of a transfer")
        staging.check(ping, source)
        out, values = target.as_array(), source.as_array()
        out[...] = values if combine is None else combine(out, values)
        if combine is not None:
            core.device.combined(target, values)

    return run


TRANSFER = Do(_transfer)

# ---- asynchronous: done when started, so that events are complete at once


class Token:
    """A transfer engine, or the event of a transfer that is over: there is nothing to hold."""


TOKEN = Token()


def _start(far: str) -> Do:
    """`far` is the side that is on the peer."""

    def make(case: Case) -> Callable[..., Token]:
        types = case.type("dst"), case.type("src")

        def run(core: Machine, dst: Any, src: Any, session: Token, peer: int | None) -> Token:
            target, source = map(as_view, (dst, src), types)
            require_flat(target)
            require_flat(source)
            require_alike(target, source, "both sides of a transfer")
            if peer is not None:
                there = _on_peer(core, target if far == "dst" else source, peer)
                target, source = (there, source) if far == "dst" else (target, there)
            target.as_array()[...] = source.as_array()
            return TOKEN

        return run

    return Do(make)


def require_flat(view: GlobalTensor) -> None:
    wide = [(n, step) for n, step in zip(view.shape, view.strides, strict=True) if n != 1]
    if len(wide) > 1 or (wide and wide[0][1] != 1):
        raise fail("PTO-S192", f"an asynchronous transfer is one run of elements, not {view}")


def _on_peer(core: Machine, view: GlobalTensor, peer: int) -> GlobalTensor:
    if core.device.owner(view.memory) == peer:
        return view
    return replace(view, memory=core.device.twin(view.memory, peer))


BUILD_SESSION = do(lambda core, scratch, workspace: TOKEN)
PUT_ASYNC = _start("dst")
GET_ASYNC = _start("src")
EVENT_DONE = Do(lambda case: lambda core, event, session: 1, looks=True)

# ---- signals

_COMPARE: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "eq": ("==", np.equal),
    "ne": ("!=", np.not_equal),
    "gt": (">", np.greater),
    "ge": (">=", np.greater_equal),
    "lt": ("<", np.less),
    "le": ("<=", np.less_equal),
}


def _words(signal: Any, type: t.Type | None) -> tuple[GlobalTensor, Array]:
    view = as_view(signal, type)
    if view.address % view.dtype.itemsize:
        raise fail("PTO-M193", f"a signal lies at a multiple of 4 bytes, not at {view.address:#x}")
    return view, view.as_array()


def _notify(case: Case) -> Callable[..., None]:
    """One element, the first, wrapping like any integer."""
    type, adds = case.type("signal"), case.word("notifyOp") == "atomic_add"

    def run(core: Machine, signal: Any, value: int) -> None:
        view, words = _words(signal, type)
        if not words.size:
            raise fail("PTO-S193", "a signal has at least one element")
        first = words[:1, :1, :1, :1, :1]
        number = np.asarray(value & 0xFFFF_FFFF, np.uint32).view(words.dtype)
        first[...] = first + number if adds else number
        if adds:
            core.device.combined(replace(view, shape=(1, 1, 1, 1, 1)), number)

    return run


def comparison(case: Case) -> tuple[str, Callable[[Any, Any], Any]]:
    """How a signal is compared: in writing, and as a function."""
    return _COMPARE[case.word("cmp") or "eq"]


def _wait(case: Case) -> Callable[..., Any]:
    type = case.type("signal")
    sign, compare = comparison(case)

    def run(core: Machine, signal: Any, value: int) -> Any:
        view, words = _words(signal, type)
        if compare(words, value).all():
            return None
        shown = " ".join(map(str, words.reshape(-1)[:8]))
        where = core.device.address(Pointer(view.memory, view.address, view.dtype))
        return Blocked(f"a signal {sign} {value} at {where:#x}, where it is {shown}")

    return run


def _test(case: Case) -> Callable[..., int]:
    type, (_, compare) = case.type("signal"), comparison(case)
    return lambda core, signal, value: int(compare(_words(signal, type)[1], value).all())


NOTIFY = Do(_notify)
WAIT = Do(_wait, blocks=True)
TEST = Do(_test, looks=True)

# ---- collectives

Members = Sequence[GlobalTensor]
Work = Callable[[GlobalTensor, Members, int], None]


def _collective(whole: str, staging: str, work: Callable[[Case], Work]) -> Do:
    """`work(whole, members, root)`, done by the root; on the CCU all ranks come together for it."""

    def make(case: Case) -> Callable[..., Any]:
        root, together = int(case.word("root") or 0), case.word("engine") == "CCU"
        types = case.type(whole), case.type("group")
        stage, act = _Staging(case, staging), work(case)

        def run(core: Machine, data: Any, *rest: Any) -> Any:
            tiles, group = rest[:-1], rest[-1]
            members = [as_view(member, types[1]) for member in group]
            if together:
                return _meet(core, members, root, lambda: finish(core, data, tiles, members))
            _require_root(core, members, root)
            return finish(core, data, tiles, members)

        def finish(core: Machine, data: Any, tiles: Sequence[Any], members: Members) -> None:
            for member in members[1:]:
                require_alike(members[0], member, "all members of a group")
            stage.check(tiles[0], members[0])
            act(as_view(data, types[0]), members, root)

        return run

    return Do(make, blocks=True)


def _require_root(core: Machine, members: Members, root: int) -> None:
    owner = core.device.owner(members[root].memory)
    if core.device.ranks > 1 and owner != core.device.rank:
        raise fail(
            "PTO-D196",
            f"rank {core.device.rank} calls a collective whose root is rank {owner}",
            help="on the AIV engine only the root calls it",
        )


def _meet(core: Machine, members: Members, root: int, work: Callable[[], None]) -> Any:
    """Every rank calls; the root works once all have come, and the others wait for it."""
    device = core.device
    ranks = [device.owner(member.memory) for member in members]
    if len(set(ranks)) < len(members):  # several members on one device: one caller stands for all
        work()
        return None
    counts = device.meetings.setdefault(tuple(_place(core, m) for m in members), {})
    me = device.rank
    turn = counts.get(("passed", me), 0) + 1
    counts["come", me] = turn
    if me == ranks[root]:
        late = [r for r in ranks if counts.get(("come", r), 0) < turn]
        if late:
            return Blocked(f"rank {', '.join(map(str, late))} to come to the collective")
        work()
        counts["done"] = turn
    elif counts.get("done", 0) < turn:
        return Blocked(f"the root, rank {ranks[root]}, of the collective")
    counts["passed", me] = turn
    return None


def _place(core: Machine, member: GlobalTensor) -> int:
    """Where a member lies, as every rank knows it."""
    return core.device.address(Pointer(member.memory, member.address, None))


def turn_of(core: Machine, first: GlobalTensor) -> tuple[Any, int] | None:
    """The group that begins with a member, and which of its meetings a rank is at, or was last."""
    place = _place(core, first)
    for group, counts in core.device.meetings.items():
        if group[0] == place:
            return group, counts.get(("come", core.device.rank), 0)
    return None


def _broadcast(case: Case) -> Work:
    def work(src: GlobalTensor, members: Members, root: int) -> None:
        require_alike(src, members[0], "src and the members of a group")
        for member in members:
            member.as_array()[...] = src.as_array()

    return work


def _rows_of(whole: GlobalTensor, members: Members) -> list[Array]:
    """The part of the whole that belongs to each member: its rows, one member after the other."""
    *outer, rows, cols = members[0].shape
    if whole.shape[:3] != tuple(outer) or whole.shape[_COLS] != cols:
        raise fail("PTO-S193", f"the whole {whole} is as wide as its members {members[0]}")
    if whole.shape[_ROWS] < rows * len(members):
        raise fail(
            "PTO-S066",
            f"the whole has {whole.shape[_ROWS]} rows, {len(members)} members have {rows} each",
        )
    array = whole.as_array()
    return [array[:, :, :, n * rows : (n + 1) * rows] for n in range(len(members))]


def _gather(case: Case) -> Work:
    def work(dst: GlobalTensor, members: Members, root: int) -> None:
        for part, member in zip(_rows_of(dst, members), members, strict=True):
            part[...] = member.as_array()

    return work


def _scatter(case: Case) -> Work:
    def work(src: GlobalTensor, members: Members, root: int) -> None:
        for part, member in zip(_rows_of(src, members), members, strict=True):
            member.as_array()[...] = part

    return work


_REDUCE: dict[str, Combine] = {"sum": lanes.add, "max": lanes.maximum, "min": lanes.minimum}


def _reduce(case: Case) -> Work:
    """The root's data first, then every other rank in ascending order."""
    combine = _arithmetic(case, "dst", _REDUCE[case.word("reduceOp") or "sum"])

    def work(dst: GlobalTensor, members: Members, root: int) -> None:
        require_alike(dst, members[0], "dst and the members of a group")
        total = members[root].as_array()
        for number, member in enumerate(members):
            if number != root:
                total = combine(total, member.as_array())
        dst.as_array()[...] = total

    return work


BROADCAST = _collective("src", "ping", _broadcast)
GATHER = _collective("dst", "ping", _gather)
SCATTER = _collective("src", "ping", _scatter)
REDUCE = _collective("dst", "acc", _reduce)
