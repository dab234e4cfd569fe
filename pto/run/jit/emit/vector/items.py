"""Lanes and memory, items and scalars: what registers and logical vectors share."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.run.jit.border.values import Word
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.tile.planes import loop
from pto.run.jit.llvm import lane_masks, lanes, native
from pto.run.jit.llvm.text import NotNative, Text, Val, element, vector


def seen(kind: DType) -> np.dtype[Any]:
    """What symbols see: bits, of types nobody computes with."""
    return kind.numpy if lanes.computes(kind.numpy) else kind.storage


def items_of(spot: lanes.Lanes, found: Any, kind: DType) -> lanes.Symbol:
    """What a lane function returned, as items of a type."""
    if isinstance(found, np.ndarray | np.generic):
        found = spot.constant(seen(kind), found)
    if not isinstance(found, lanes.Symbol):
        raise NotNative("a result that is no lane")
    if found.dtype.itemsize != kind.itemsize or found.dtype == lanes.BOOL:
        raise NotNative("a result of another width")
    return found.view(seen(kind))


def scalar_as(s: Spot, word: Word, kind: DType) -> Val:
    """A scalar as one lane: integers keep their low bits, floats are rounded to the type."""
    own = word.type.dtype
    if kind.is_float:
        if own is kind:
            return word.name
        one = lanes.Lanes(s.x, 1, s.e.unit.declare)
        if own is None or not own.is_float:
            raise NotNative("an integer beside floats")
        vec = s.x.new(
            f"insertelement {one.type(own.numpy)} poison, {element(own)} {word.name}, i64 0"
        )
        cast = lanes.cast(one.symbol(own.numpy, vec), kind.numpy)
        return s.x.new(f"extractelement {cast.type} {cast.name}, i64 0")
    have, want = 64 if own is None else own.bits, kind.bits
    if own is not None and own.is_float:
        raise NotNative("a float beside integers")
    if have == want:
        return word.name
    if have > want:
        return s.x.new(f"trunc i{have} {word.name} to i{want}")
    op = "zext" if have == 1 or word.type.name.startswith("u") else "sext"
    return s.x.new(f"{op} i{have} {word.name} to i{want}")


def gathered(s: Spot, width: int, base: str, offsets: str, count: int) -> str:
    """Items of so many bits at byte offsets (`<count x i64>`) that are known to lie inside."""
    item, x = f"i{width}", s.x
    type, places = vector(count, item), vector(count, "i64")
    if width < 32:  # no machine gathers these; written out lane by lane they compile for minutes
        room, at = x.stack(type), x.stack(places)
        x.store(places, offsets, at, 64)
        call = s.e.unit.shared(f"gather {width} {count}", lambda name: _gather(name, width, count))
        x.do(f"call void {call}(ptr {room}, ptr {base}, ptr {at})")
        return x.load(type, room, 64)
    pointers, bits = vector(count, "ptr"), vector(count, "i1")
    where = x.new(f"getelementptr i8, ptr {base}, {places} {offsets}")
    name = f"@llvm.masked.gather.v{count}{item}.v{count}p0"
    s.e.unit.declare(f"declare {type} {name}({pointers}, i32, {bits}, {type})")
    return x.new(
        f"call {type} {name}({pointers} {where}, i32 1, {bits} splat (i1 true), {type} poison)"
    )


def _gather(name: str, width: int, count: int) -> str:
    x, item = Text(), f"i{width}"

    def lane(i: Val) -> None:
        offset = x.load("i64", x.new(f"getelementptr i64, ptr %at, i64 {i}"))
        value = x.load(item, x.at("%base", offset))
        x.store(item, value, x.new(f"getelementptr {item}, ptr %out, i64 {i}"))

    loop(x, count, 1, lane)
    x.do("ret void")
    return x.function(f"define internal void {name}(ptr %out, ptr %base, ptr %at) noinline")


def store_lanes(s: Spot, item: str, count: int, value: Val, pointer: str, bits: str) -> None:
    """Only the lanes whose bit is on; of integers."""
    type, ones = vector(count, item), vector(count, "i1")
    if bits == "splat (i1 true)":
        s.x.store(type, value, pointer)
        return
    if not native.target().has_masks:  # all bytes were checked to be inside, and are the agent's
        old = s.x.load(type, pointer)
        chosen = s.x.new(f"select {ones} {bits}, {type} {value}, {type} {old}")
        s.x.store(type, chosen, pointer)
        return
    lane_masks.store(s.x, s.e.unit.declare, item, count, value, pointer, bits)


def scattered(
    s: Spot, base: str, values: lanes.Symbol, places: lanes.Symbol, active: lanes.Symbol
) -> None:
    """One lane after the other, to byte offsets: where two hit one place the higher wins."""
    x, count, width = s.x, values.lanes.count, 8 * values.dtype.itemsize
    types = [values.type, vector(count, "i64"), vector(count, "i8")]
    bits = x.new(f"zext {active.type} {active.name} to {types[2]}")
    rooms = [x.stack(ty) for ty in types]
    for type, name, room in zip(types, (values.name, places.name, bits), rooms, strict=True):
        x.store(type, name, room, 64)
    call = s.e.unit.shared(f"scatter {width} {count}", lambda name: _scatter(name, width, count))
    x.do(f"call void {call}(ptr {base}, {', '.join(f'ptr {r}' for r in rooms)})")


def _scatter(name: str, width: int, count: int) -> str:
    x = Text()

    def lane(i: Val) -> None:
        on = x.load("i8", x.new(f"getelementptr i8, ptr %active, i64 {i}"))

        def one() -> None:
            value = x.load(f"i{width}", x.new(f"getelementptr i{width}, ptr %values, i64 {i}"))
            offset = x.load("i64", x.new(f"getelementptr i64, ptr %places, i64 {i}"))
            x.store(f"i{width}", value, x.at("%base", offset))

        x.when(x.compare("ne", on, 0, "i8"), one)

    loop(x, count, 1, lane)
    x.do("ret void")
    head = f"define internal void {name}(ptr %base, ptr %values, ptr %places, ptr %active) noinline"
    return x.function(head)
