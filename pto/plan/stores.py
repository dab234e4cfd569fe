"""The arguments and elements that a launch stores to, computed from the program without a run.

Tiles are stored through windows of views; their addresses follow from block numbers and loop
counters. Other writes, and windows that depend on data or on a number of the call, are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import prod
from operator import add, mul
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic
from pto.ir.graph import Operation, Value
from pto.isa.handle.view import MAKE_TENSOR_VIEW, PARTITION_VIEW
from pto.isa.meaning.handle.view import ADD_POINTER
from pto.isa.row import types as t
from pto.isa.row.attributes import word
from pto.isa.row.order import OpenQueue
from pto.isa.row.traits import Control
from pto.plan.calls import FunctionNames, callees_first, names_of
from pto.plan.iterations import (
    Ints,
    Iterations,
    IterSpace,
    NotStatic,
    Number,
    PerIter,
    in_space,
    over,
)

_MOST: Final = 1 << 20  # cells between the edges of windows that are compared
Holes = tuple[int, list[Any]]  # number of elements, and the index of the first
Flags = npt.NDArray[np.bool_]
_KINDS: Final = (t.Ptr, t.MemRef, t.View)


@dataclass(frozen=True, slots=True)
class Covered:
    """The written part of one array."""

    name: str
    elements: int
    never: int
    hole: tuple[int, ...] | None  # the index of the first element that is not written

    def __str__(self) -> str:
        if not self.never:
            return f"all of {self.name} written"
        share = percent(self.never, self.elements)
        at = ", ".join(map(str, self.hole or ()))
        return (
            f"{share} % of {self.name} never written: {self.never:,} of {self.elements:,} elements,"
            f" the first is {self.name}[{at}]"
        )


def percent(part: int, total: int) -> str:
    """`36`, `0.4` or `99.998`: as many digits as distinguish a part from nothing and from all."""
    text = f"{100 * part / total:.0f}"
    for digits in range(1, 9):
        if 0 < part < total and float(text) in (0, 100):
            text = f"{100 * part / total:.{digits}f}"
    return text


class _Axis(NamedTuple):
    """One dimension of a window: its start, its size, and those of its view."""

    offset: Number
    size: Number
    stride: Number
    extent: Number

    @property
    def moves(self) -> bool:
        return isinstance(self.offset, PerIter) or isinstance(self.size, PerIter)


class _Window(NamedTuple):
    """The elements that one store writes in each iteration."""

    base: Number
    axes: tuple[_Axis, ...]

    def meant(self, space: IterSpace, as_whole: bool) -> _Window:
        """The intended range of the store. A dimension along which the window moves counts as a
        whole, or from the first to the last element reached; any other is as in the program."""
        return _Window(self.base, tuple(_meant(axis, space, as_whole) for axis in self.axes))


def _meant(axis: _Axis, space: IterSpace, as_whole: bool) -> _Axis:
    if not axis.moves:
        return axis
    if as_whole:
        return axis._replace(offset=0, size=axis.extent)
    offset, size = np.broadcast_arrays(_at(axis.offset, space), _at(axis.size, space))
    some = size > 0
    low = int(offset[some].min(initial=1 << 62))
    high = int((offset + size)[some].max(initial=low))
    return axis._replace(offset=low, size=high - low)


@dataclass(slots=True)
class Uses:
    """The uses of one array by the operations of a program."""

    stores: list[Operation] = field(default_factory=list[Operation])
    loads: list[Operation] = field(default_factory=list[Operation])
    is_read: bool = False
    is_known: bool = True  # `stores` are all writes
    is_load_known: bool = True  # `loads` are all reads


def uses(functions: Sequence[Operation], names: Mapping[Value, str]) -> dict[str, Uses] | None:
    """The uses by parameter name (`names` by argument); None if an operation accesses global memory
    other than parameters. One pass over the operations."""
    uses_of: dict[str, Uses] = {}
    for function in functions:
        for op in function.walk():
            if (op.traits.names_only and not _queues(op)) or op.control is Control.FUNCTION:
                continue
            for value in op.operands:
                if not isinstance(value.type, _KINDS) or not is_global(value.type):
                    continue
                name = names.get(root(value))
                if name is None:
                    return None
                _note(uses_of.setdefault(name, Uses()), op, value)
    return uses_of


def _note(array: Uses, op: Operation, value: Value) -> None:
    roles = _roles(op, value)
    if op.control is not None or op.row.order is not None or not roles or _queues(op):
        array.is_known = array.is_load_known = False
        return
    array.is_read |= roles != {"out"}
    if roles == {"in"}:
        array.is_load_known &= is_plain(op, value)
        array.loads.append(op)
    else:
        array.is_known &= is_plain(op, value)
        array.stores.append(op)


def _roles(op: Operation, value: Value) -> set[str]:
    return {o.role for o in op.row.operands for v in op.group(o.name) if v is value}


def is_plain(op: Operation, value: Value) -> bool:
    """True if an operation loads or stores a tile through a window on global memory."""
    is_view = isinstance(value.type, t.View) and is_global(value.type)
    return op.row.traits.sized_by_tile and is_view and not combines(op)


def writes(op: Operation, value: Value) -> bool:
    return _roles(op, value) != {"in"}


def _queues(op: Operation) -> bool:
    """True for an operation that makes memory the slots of a queue."""
    return op.row.attr("slot_size") is not None


def combines(op: Operation) -> bool:
    """True for a store that adds to memory."""
    return word(op.attrs, "atomicType") not in (None, "atomic_none")


class Reached:
    """The elements of one array that loads or stores reach."""

    def __init__(self, it: Iterations, ops: Sequence[Operation]) -> None:
        """Raises NotStatic if the address of one is unknown."""
        self.parts = [self._part(it, op) for op in ops]  # iterations, and the windows in them

    def _part(self, it: Iterations, op: Operation) -> tuple[IterSpace, _Window]:
        view = next(v for v in op.operands if is_global(v.type))
        if op.parent is None:
            raise NotStatic
        return it.space(op.parent), _window(it, view)

    def blocks(self, count: int) -> tuple[Flags, Flags]:
        """Flags of the blocks that store an element, and of the blocks that reach a store."""
        some, reached = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        for space, window in self.parts:
            blocks = space.blocks()
            reached[blocks] = True
            full = [_at(axis.size, space) > 0 for axis in window.axes]
            some[blocks[reduce(np.logical_and, full, np.ones(len(blocks), np.bool_))]] = True
        return some, reached

    def covered(self, name: str, shape: tuple[int, ...], *, whole: bool) -> Covered:
        """The covered part of the intended range; raises NotStatic if counting is too expensive."""
        frames = {_frame(window) for _, window in self.parts}
        base, strides, _ = frames.pop()
        if frames:
            raise NotStatic  # several views of one array
        holes = self._holes(whole)
        elements = prod(shape)
        if holes is None:
            return Covered(name, elements, 0, None)
        first = base + sum(n * by for n, by in zip(holes[1], strides, strict=True))
        if not 0 <= first < elements:
            raise NotStatic  # the view is larger than the array
        at = tuple(int(n) for n in np.unravel_index(first, shape))
        return Covered(name, elements, holes[0], at)

    def _holes(self, as_whole: bool) -> Holes | None:
        done = np.concatenate([_boxes(space, w) for space, w in self.parts], axis=2)
        all_meant = [_boxes(space, w.meant(space, as_whole)) for space, w in self.parts]
        return _left(np.concatenate(all_meant, axis=2), done)


def _frame(window: _Window) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The address, strides and sizes of a view as integers; else raises NotStatic."""
    strides, extents = [a.stride for a in window.axes], [a.extent for a in window.axes]
    if any(isinstance(n, PerIter) for n in (window.base, *strides, *extents)):
        raise NotStatic
    return cast(Any, (window.base, tuple(strides), tuple(extents)))


def _at(number: Number, space: IterSpace) -> Ints:
    return np.asarray(in_space(number, space), np.int64)


def _boxes(space: IterSpace, window: _Window) -> Ints:
    """Start and end along each axis of the non-empty boxes."""
    axes = window.axes
    count = space.count if any(axis.moves for axis in axes) else min(1, space.count)
    boxes = np.empty((2, len(axes), count), np.int64)
    for n, axis in enumerate(axes):
        boxes[0, n], boxes[1, n] = _at(axis.offset, space), _at(axis.size, space)
    boxes[1] += boxes[0]
    full = (boxes[1] > boxes[0]).all(axis=0)
    return boxes if full.all() else boxes[:, :, full]


def _left(meant: Ints, done: Ints) -> Holes | None:
    """Elements in boxes of `meant` and in none of `done`: their number and the first; None: none.

    Axes are cut at every edge of a box; each cell between edges is covered completely or not at
    all.
    """
    if not meant.size:
        return None
    both = np.concatenate([meant, done], axis=2)
    first = both[:, :, 0]
    same = (both == first[:, :, None]).all(axis=(0, 2)) if done.size else np.zeros(len(first[0]))
    cut_axes = [n for n, is_same in enumerate(same) if not is_same]
    if not cut_axes:
        return None
    edges = [np.unique(both[:, n]) for n in cut_axes]
    if prod(len(axis_edges) for axis_edges in edges) > _MOST:
        raise NotStatic
    cells = (painted(meant[:, cut_axes], edges) > 0) & (painted(done[:, cut_axes], edges) == 0)
    places = np.argwhere(cells)
    if not len(places):
        return None
    widths = [np.diff(axis_edges)[places[:, n]] for n, axis_edges in enumerate(edges)]
    count = int(reduce(mul, widths).sum()) * prod((first[1] - first[0])[same > 0].tolist())
    at = first[0].tolist()
    for n, axis_edges, cell in zip(cut_axes, edges, places[0], strict=True):
        at[n] = int(axis_edges[cell])
    return count, at


def painted(boxes: Ints, edges: Sequence[Ints], weights: Ints | None = None) -> Ints:
    """The number (or sum of weights) of the boxes around each cell between edges: corners of boxes,
    summed along each axis."""
    shape = tuple(len(axis_edges) for axis_edges in edges)
    counts = np.zeros(prod(shape), np.int64)
    ends = [np.searchsorted(axis_edges, boxes[:, n]) for n, axis_edges in enumerate(edges)]
    for corner in product((0, 1), repeat=len(edges)):
        index = np.ravel_multi_index([ends[n][side] for n, side in enumerate(corner)], shape)
        added = np.bincount(index, weights, minlength=len(counts)).astype(np.int64)
        counts += -added if sum(corner) % 2 else added
    counts = counts.reshape(shape)
    for n in range(len(edges)):
        np.cumsum(counts, axis=n, out=counts)
    return counts[(slice(-1),) * len(edges)]


def _window(it: Iterations, value: Value) -> _Window:
    op = value.maker
    if op is None and isinstance(value.type, t.Ptr):
        return _Window(0, ())
    if op is None:
        raise NotStatic
    if op.row is PARTITION_VIEW:
        source = _window(it, op.operands[0])
        groups = zip(op.group("offsets"), op.group("sizes"), source.axes, strict=True)
        axes = (
            axis._replace(offset=over(add, axis.offset, it.value(offset)), size=it.value(size))
            for offset, size, axis in groups
        )
        return _Window(source.base, tuple(axes))
    base = _window(it, op.operands[0]).base
    if op.row is MAKE_TENSOR_VIEW:
        sizes, strides = map(it.value, op.group("shape")), map(it.value, op.group("strides"))
        axes = (_Axis(0, size, by, size) for size, by in zip(sizes, strides, strict=True))
        return _Window(base, tuple(axes))
    if op.body is ADD_POINTER:
        return _Window(over(add, base, it.value(op.operands[1])), ())
    raise NotStatic


def root(value: Value) -> Value:
    """The origin of a pointer or view, through all operations that only rename memory."""
    return value.origin(lambda op: op.control is None and is_global(op.operands[0].type))


def is_global(type: t.Type) -> bool:
    if isinstance(type, t.Ptr | t.MemRef):
        return not type.space.is_local
    return isinstance(type, t.View)


def unwritten(function: Operation) -> Iterator[Diagnostic]:
    """A warning for each tile with a read as its first use."""
    used: set[Value] = set()
    stores: list[tuple[Operation, Value]] = []
    for op in function.walk():
        row = op.row
        if row.traits.allocates and op.group(row.traits.allocates):
            return
        for value in op.operands if not is_name(op) else ():
            type = value.type
            if isinstance(type, t.Ptr | t.MemRef) and type.space.is_local:
                return
            if not isinstance(type, t.TileBuf) or (tile := tile_of(value)) in used:
                continue
            used.add(tile)
            if _reads(op, value) and _is_certain(op, tile):
                stores.append((op, tile))
    for op, tile in stores:
        message = f"'{op.name}' op reads tile {tile.name}, and nothing has written it before"
        yield Diagnostic("PTO-V219", message, op.loc, "warning", help=_HELP)


_HELP = "load or fill it first: pto.zeros, pto.full; until then its bytes have no defined value"


def is_name(op: Operation) -> bool:
    """True for an alias of a tile: a window, a reshape."""
    return op.traits.names_only or any(isinstance(r.type, t.TileBuf) for r in op.results)


def tile_of(value: Value) -> Value:
    """The tile of a window, reshape or other alias."""
    return value.origin(
        lambda op: (
            is_name(op) and not op.traits.allocates and isinstance(op.operands[0].type, t.TileBuf)
        )
    )


def _reads(op: Operation, value: Value) -> bool:
    row = op.row
    if op.control is not None or row.order is not None or row.body is None:
        return False
    # an optional operand may be scratch
    read = (o for o in row.operands if o.role == "in" and not o.optional)
    return any(v is value for o in read for v in op.group(o.name))


def _is_certain(op: Operation, tile: Value) -> bool:
    """True if the read always comes first: an allocation, and no condition between the two."""
    maker = tile.maker
    if maker is None or not maker.traits.allocates:
        return False
    inside = op
    while inside.parent is not maker.parent:
        around = inside.parent_op
        if around is None or around.control in (Control.IF, Control.WHILE):
            return False
        inside = around
    return True


# ---- arguments that a function may write or read, also in functions it calls

_Users = dict[int, Operation] | None  # by the position of the argument; None: any


def writers(function: Operation) -> dict[int, Operation] | None:
    """The arguments in global memory that may be written, with the first writer; None: any.

    Called functions count, with what they write; of unknown ones all that they get.
    """
    return _users(function, _targets)


def readers(function: Operation) -> dict[int, Operation] | None:
    """The arguments in global memory that may be read, as `writers` gives those written."""
    return _users(function, _sources)


def may_be_written(functions: Sequence[Operation], count: int) -> set[int]:
    """The positions of the arguments that may be written, of functions that take `count`."""
    numbers: set[int] = set()
    for function in functions:
        positions = writers(function)
        if positions is None or len(function.regions[0].block.args) != count:
            return set(range(count))
        numbers |= positions.keys()
    return numbers


def used_parameters(
    functions: Sequence[Operation],
    names: Sequence[str],
    users: Callable[[Operation], dict[int, Operation] | None] = writers,
) -> dict[str, Operation | None]:
    """The parameters of a launch that its functions may write, or read with `users=readers`, with
    the first such operation if it is known."""
    used: dict[str, Operation | None] = {}
    for function in functions:
        parameters = names_of(function.regions[0].block.args, names)
        positions = users(function)
        any_of: dict[int, Operation | None] = dict.fromkeys(range(len(parameters)))
        for number, op in (any_of if positions is None else positions).items():
            used[parameters[number]] = used.get(parameters[number]) or op
    return used


def _users(function: Operation, touched: Callable[[Operation], list[Value]]) -> _Users:
    """The arguments in global memory that `touched` operations reach, here and in callees."""
    summaries: dict[Operation, _Users] = {}
    for callee, outgoing in callees_first([function], FunctionNames()):
        summaries[callee] = _users_within(callee, touched, {op: summaries[f] for op, f in outgoing})
    return summaries[function]


def _users_within(
    function: Operation,
    touched: Callable[[Operation], list[Value]],
    calls: Mapping[Operation, _Users],
) -> _Users:
    """The same of one function; `calls` has the arguments that each call reaches."""
    args = {a: n for n, a in enumerate(function.regions[0].block.args)}
    users: dict[int, Operation] = {}
    for op in function.walk():
        inside = calls.get(op, {})
        if inside is None:
            return None
        reached = [(op.operands[n], inner) for n, inner in inside.items()]
        reached += [(v, op) for v in touched(op) if op not in calls]
        for value, user in reached:
            number = args.get(root(value))
            if number is None:
                return None
            users.setdefault(number, user)
    return users


def _targets(op: Operation) -> list[Value]:
    """Values in global memory that an operation may write.

    For a call, all that it passes; for a queue that is set up, the memory of its slots.
    """
    if op.control is Control.CALL or isinstance(op.order, OpenQueue):
        return [v for v in op.operands if is_global(v.type)]
    return [v for v in op.given("out", "inout") if is_global(v.type)]


def _sources(op: Operation) -> list[Value]:
    """Values in global memory that an operation may read; for a call, all that it passes."""
    if op.control is Control.CALL:
        return [v for v in op.operands if is_global(v.type)]
    if op.traits.names_only or op.traits.pure:
        return []
    return [v for v in op.given("in", "inout") if is_global(v.type)]
