"""Loads, stores and scalars of lanes, for registers and logical vectors."""

from __future__ import annotations

from math import gcd

from pto.core.dtypes import DType
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.llvm import lane_masks, lanes, native, shuffles
from pto.run.jit.llvm.picks import Numbers, pick, put
from pto.run.jit.llvm.text import Text, Val, element, expect, unsupported_if, vector
from pto.run.jit.runtime.values import ScalarValue

_TOGETHER = 16  # lanes that are written out, at most


def scalar_as(s: OpContext, word: ScalarValue, kind: DType) -> Val:
    """A scalar as one lane: integers keep their low bits, floats are rounded to the type."""
    own = word.type.dtype
    if kind.is_float:
        if own is kind:
            return word.name
        one = lanes.Lanes(s.x, 1)
        own = expect(own, DType, "an integer beside floats")
        unsupported_if(not own.is_float, "an integer beside floats")
        vec = s.x.new(
            f"insertelement {one.type(own.numpy)} poison, {element(own)} {word.name}, i64 0"
        )
        cast = lanes.cast(one.symbol(own.numpy, vec), kind.numpy)
        return s.x.new(f"extractelement {cast.type} {cast.name}, i64 0")
    have, want = 64 if own is None else own.bits, kind.bits
    unsupported_if(own is not None and own.is_float, "a float beside integers")
    if have == want:
        return word.name
    if have > want:
        return s.x.new(f"trunc i{have} {word.name} to i{want}")
    op = "zext" if have == 1 or word.type.name.startswith("u") else "sext"
    return s.x.new(f"{op} i{have} {word.name} to i{want}")


def gathered(s: OpContext, width: int, base: str, offsets: str, count: int) -> str:
    """Items of so many bits at byte offsets (`<count x i64>`) that are known to lie inside."""
    x, type, places = s.x, vector(count, f"i{width}"), vector(count, "i64")
    room, at = x.stack(type), x.stack(places)
    x.store(places, offsets, at, 64)
    call = s.e.unit.shared(f"gather {width} {count}", lambda name: _gather(name, width, count))
    x.do(f"call void {call}(ptr {room}, ptr {base}, ptr {at})")
    return x.load(type, room, 64)


def _gather(name: str, width: int, count: int) -> str:
    """Gather in a loop; unrolled for a whole register it would compile for minutes."""
    x, item, some = Text(), f"i{width}", gcd(count, _TOGETHER)

    def part(i: Val) -> None:
        numbers = Numbers(x.new(f"getelementptr i64, ptr %at, i64 {i}"), 64)
        found = pick(x, "%base", some, item, numbers)
        to = x.new(f"getelementptr {item}, ptr %out, i64 {i}")
        x.store(vector(some, item), found, to)

    x.loop(count, some, part)
    x.do("ret void")
    return x.function(f"define internal void {name}(ptr %out, ptr %base, ptr %at) noinline")


def store_lanes(s: OpContext, item: str, count: int, value: Val, pointer: str, bits: str) -> None:
    """Store the lanes with their bit set; of integers."""
    type, ones = vector(count, item), vector(count, "i1")
    if bits == lane_masks.ALL_ON:
        s.x.store(type, value, pointer)
        return
    if not native.target().has_masks:  # all bytes were checked to be inside, and are the agent's
        old = s.x.load(type, pointer)
        chosen = s.x.new(f"select {ones} {bits}, {type} {value}, {type} {old}")
        s.x.store(type, chosen, pointer)
        return
    lane_masks.store(s.x, item, count, value, pointer, bits)


def scattered(
    s: OpContext, base: str, values: lanes.Symbol, places: lanes.Symbol, active: lanes.Symbol
) -> None:
    """Store lanes in order at byte offsets: of equal offsets the higher lane wins."""
    x, count, width = s.x, values.lanes.count, 8 * values.dtype.itemsize
    types = [values.type, vector(count, "i64"), vector(count, "i8")]
    bits = x.new(f"zext {active.type} {active.name} to {types[2]}")
    rooms = [x.stack(ty) for ty in types]
    for type, name, room in zip(types, (values.name, places.name, bits), rooms, strict=True):
        x.store(type, name, room, 64)
    given = f"(ptr {base}, {', '.join(f'ptr {r}' for r in rooms)})"

    def all(name: str) -> str:
        return _scatter(name, width, count)

    def some(name: str) -> str:
        return _scatter_active(name, width, count)

    shared, word = s.e.unit.shared, shuffles.bits_of(x, count, str(active.name))
    x.when(
        x.compare("eq", word, -1, f"i{count}"),
        lambda: x.do(f"call void {shared(f'scatter {width} {count}', all)}{given}"),
        lambda: x.do(f"call void {shared(f'scatter {width} {count} active', some)}{given}"),
    )


_SCATTER = "define internal void {}(ptr %base, ptr %values, ptr %places, ptr %active) noinline"


def _scatter(name: str, width: int, count: int) -> str:
    x, item, some = Text(), f"i{width}", gcd(count, _TOGETHER)

    def part(i: Val) -> None:
        values = x.load(vector(some, item), x.new(f"getelementptr {item}, ptr %values, i64 {i}"))
        numbers = Numbers(x.new(f"getelementptr i64, ptr %places, i64 {i}"), 64)
        put(x, "%base", some, item, numbers, values)

    x.loop(count, some, part)
    x.do("ret void")
    return x.function(_SCATTER.format(name))


def _scatter_active(name: str, width: int, count: int) -> str:
    x = Text()

    def lane(i: Val) -> None:
        on = x.load("i8", x.new(f"getelementptr i8, ptr %active, i64 {i}"))

        def one() -> None:
            value = x.load(f"i{width}", x.new(f"getelementptr i{width}, ptr %values, i64 {i}"))
            offset = x.load("i64", x.new(f"getelementptr i64, ptr %places, i64 {i}"))
            x.store(f"i{width}", value, x.at("%base", offset))

        x.when(x.compare("ne", on, 0, "i8"), one)

    x.loop(count, 1, lane)
    x.do("ret void")
    return x.function(_SCATTER.format(name))
