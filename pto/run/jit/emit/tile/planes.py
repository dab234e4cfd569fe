"""Tiles as planes of elements at fixed steps, and loops over them: what tile instructions share.

An instruction becomes one function, called with addresses and extents. Boxed layouts have no fixed
steps and are not handled here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pto.core.dtypes import DType
from pto.run.jit.border.values import Place, TilePlace
from pto.run.jit.emit.table import Spot
from pto.run.jit.llvm import lane_masks, native
from pto.run.jit.llvm.text import NotNative, Text, Val, element, mangled, vector

VECTOR_BYTES = 256


class Plane(NamedTuple):
    """Steps in elements from row to row and from column to column; 0: the same for all."""

    dtype: DType
    rows: int
    cols: int

    @property
    def swapped(self) -> Plane:
        return Plane(self.dtype, self.cols, self.rows)


def plane(tile: TilePlace) -> Plane:
    layout = tile.type.layout
    if layout.is_boxed or tile.type.dtype.is_packed:
        raise NotNative("a boxed or packed tile")
    pitch = tile.pitch or tile.type.shape[layout.pitch_axis]
    return (
        Plane(tile.type.dtype, pitch, 1)
        if layout.name == "ND"
        else Plane(tile.type.dtype, 1, pitch)
    )


def extent(tile: TilePlace) -> int:
    """Bytes from the first to the last element."""
    shape, p = tile.type.shape, plane(tile)
    return ((shape[0] - 1) * p.rows + (shape[1] - 1) * p.cols + 1) * tile.type.itemsize


def apart(s: Spot, a: Place | TilePlace, a_bytes: Val, b: Place | TilePlace, b_bytes: Val) -> str:
    """Whether so many bytes at two places have none in common."""
    elsewhere = s.x.compare("ne", a.memory, b.memory)
    if elsewhere == "true":
        return "true"
    return s.x.either(elsewhere, s.x.apart(a.address, a_bytes, b.address, b_bytes))


def machine_address(s: Spot, tile: TilePlace) -> str:
    return s.pointer(tile.memory, tile.address)


def kept(s: Spot, tile: TilePlace, fine: str, room: int) -> tuple[str, int]:
    """The machine address of a source, and of the next one's scratch memory: where it is not `fine`
    to write the destination meanwhile, a copy is read."""
    x, own = s.x, machine_address(s, tile)
    if fine == "true":
        return own, room
    copy, nbytes = x.at(s.e.room(), room), extent(tile)
    shared = x.negated(fine)
    x.when(shared, lambda: copy_bytes(x, s.e.unit.declare, copy, own, nbytes))
    return x.new(f"select i1 {shared}, ptr {copy}, ptr {own}"), room + -(-nbytes // 64) * 64


def enough(s: Spot, tile: TilePlace, rows: Val, cols: Val) -> str:
    """Whether a tile has so many rows and columns."""
    height, width = tile.type.shape
    x = s.x
    return x.both(x.compare("sle", rows, height), x.compare("sle", cols, width))


def either_way(s: Spot, condition: str, fast: Callable[[], None], unless: str) -> None:
    """Compiled code where the condition holds, else a host fallback; no results. `unless` says in
    words when the condition does not hold."""
    if condition == "false":
        raise NotNative(unless)

    def slow() -> None:
        s.e.run_outside(s.op, unless, seldom=True)

    s.x.when(condition, fast, slow)


def loop(x: Text, count: Val, step: Val, body: Callable[[str], None], start: Val = 0) -> None:
    """for i = start; i < count; i += step."""
    before, head, inside, done = x.here, x.fresh("loop"), x.fresh("in"), x.fresh("out")
    x.jump(head)
    x.label(head)
    place, i = len(x.lines), x.name()
    more = x.new(f"icmp slt i64 {i}, {count}")
    x.branch(more, inside, done)
    x.label(inside)
    body(i)
    following = x.new(f"add nsw i64 {i}, {step}")
    x.lines.insert(place, f"  {i} = phi i64 [ {start}, %{before} ], [ {following}, %{x.here} ]")
    x.jump(head)
    x.label(done)


def reduced(
    x: Text,
    count: Val,
    type: str | Sequence[str],
    first: Sequence[Val],
    step: Callable[[str, list[str]], Sequence[Val]],
    by: Val = 1,
    start: Val = 0,
) -> list[str]:
    """Running values, of one type or one each: values = first; for i = start; i < count; i += by:
    values = step(i, values)."""
    types = [type] * len(first) if isinstance(type, str) else type
    before, head, inside, done = x.here, x.fresh("sum"), x.fresh("in"), x.fresh("out")
    x.jump(head)
    x.label(head)
    place, i = len(x.lines), x.name()
    values = [x.name() for _ in first]
    more = x.new(f"icmp slt i64 {i}, {count}")
    x.branch(more, inside, done)
    x.label(inside)
    found = step(i, values)
    following = x.new(f"add nsw i64 {i}, {by}")
    x.lines[place:place] = [
        f"  {i} = phi i64 [ {start}, %{before} ], [ {following}, %{x.here} ]",
        *(
            f"  {name} = phi {kind} [ {a}, %{before} ], [ {b}, %{x.here} ]"
            for name, kind, a, b in zip(values, types, first, found, strict=True)
        ),
    ]
    x.jump(head)
    x.label(done)
    return values


def offset(x: Text, base: str, index: Val, step: int, itemsize: int) -> str:
    """base + index * step elements."""
    if step == 0:
        return base
    return x.at(base, x.mul(index, step * itemsize))


def head(x: Text, lanes: int, count: Val) -> str:
    """A predicate of the first `count` of so many lanes."""
    type = vector(lanes, "i32")
    small = x.new(f"trunc i64 {count} to i32")
    one = x.new(f"insertelement {type} poison, i32 {small}, i64 0")
    all = x.new(f"shufflevector {type} {one}, {type} poison, {type} zeroinitializer")
    numbers = ", ".join(f"i32 {n}" for n in range(lanes))
    found = x.new(f"icmp ult {type} <{numbers}>, {all}")
    x.heads[found] = count
    return found


def _copy(
    x: Text, declare: Callable[[str], None], to: str, source: str, count: Val, itemsize: int
) -> None:
    """So many items, of processors that cannot load and store under a mask."""
    copy_bytes(x, declare, to, source, x.mul(count, itemsize))


def copy_bytes(x: Text, declare: Callable[[str], None], to: str, source: str, nbytes: Val) -> None:
    """Bytes of places that do not overlap."""
    declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    x.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {nbytes}, i1 false)")


def load_lanes(
    x: Text,
    declare: Callable[[str], None],
    dtype: DType,
    lanes: int,
    pointer: str,
    mask: str | None,
) -> str:
    """Loads elements under a mask: nothing is read where that is off, and 0 given."""
    item = element(dtype)
    type, bits = vector(lanes, item), vector(lanes, "i1")
    if mask is None:
        return x.load(type, pointer)
    if mask in x.heads and not native.target().has_masks:
        room = x.stack(type)
        x.store(type, "zeroinitializer", room, 64)
        _copy(x, declare, room, pointer, x.heads[mask], dtype.itemsize)
        return x.load(type, room, 64)
    name = f"@llvm.masked.load.v{lanes}{mangled(item)}.p0"
    declare(f"declare {type} {name}(ptr, i32, {bits}, {type})")
    return x.new(f"call {type} {name}(ptr {pointer}, i32 1, {bits} {mask}, {type} zeroinitializer)")


def store_lanes(
    x: Text,
    declare: Callable[[str], None],
    dtype: DType,
    lanes: int,
    value: Val,
    pointer: str,
    mask: str | None,
) -> None:
    """Stores elements under a mask: memory is left alone where that is off."""
    item = element(dtype)
    type = vector(lanes, item)
    if mask is None:
        x.store(type, value, pointer)
        return
    if mask in x.heads and not native.target().has_masks:
        room = x.stack(type)
        x.store(type, value, room, 64)
        _copy(x, declare, pointer, room, x.heads[mask], dtype.itemsize)
        return
    lane_masks.store(x, declare, item, lanes, value, pointer, mask)


def strips(x: Text, lanes: int, count: Val, body: Callable[[Val, str | None], None]) -> None:
    """body(first, mask) over `count` elements, so many lanes at a time; the last ones masked."""
    whole = x.mul(x.over(count, lanes), lanes)
    if whole == lanes:
        body(0, None)
    elif whole != 0:
        loop(x, whole, lanes, lambda j: body(j, None))
    rest = x.sub(count, whole)
    if rest == 0:
        return
    x.when(x.compare("ne", rest, 0), lambda: body(whole, head(x, lanes, rest)))


def key_of(s: Spot, *parts: Any) -> str:
    """What tells the functions of one instruction apart: everything but addresses and extents."""
    attrs = sorted((name, str(value)) for name, value in s.op.attrs.items())
    return repr((s.case.row.name, s.case.profile.name, attrs, *parts))


def parameters(types: Sequence[str]) -> tuple[str, list[str]]:
    """The parameter list of a function, and its names."""
    names = [f"%p{n}" for n in range(len(types))]
    return ", ".join(f"{ty} {name}" for ty, name in zip(types, names, strict=True)), names
