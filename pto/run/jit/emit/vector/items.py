"""Loads and stores of lanes, for registers and logical vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import gcd

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.llvm import lane_masks, lanes, native
from pto.run.jit.llvm.picks import pick, put
from pto.run.jit.llvm.text import Text, vector
from pto.run.jit.llvm.value import StoredNumbers, Val

_TOGETHER = 16  # lanes that are written out, at most


def spilled(s: OpContext, *values: tuple[str, Val | None]) -> list[str]:
    """Stack slots of these types, with these values."""
    slots = [s.x.stack(type) for type, _ in values]
    for (type, value), slot in zip(values, slots, strict=True):
        if value is not None:
            s.x.store(type, value, slot, 64)
    return slots


# Loops over lanes are shared procedures on stack slots: written out for a whole register they would
# compile for minutes.


def _call(s: OpContext, key: str, slots: Sequence[str], write: Callable[[Text], None]) -> None:
    s.call(key, [("ptr", slot) for slot in slots], write)


def _item(x: Text, width: int, of: str, i: Val) -> str:
    return x.new(f"getelementptr i{width}, ptr {of}, i64 {i}")


def _each(
    s: OpContext,
    key: str,
    slots: Sequence[str],
    active: lanes.Symbol | None,
    count: int,
    part: Callable[[Text, Val, int], None],
    lane: Callable[[Text, Val], None],
) -> None:
    """Call a procedure that does some lanes at once, or one after the other those that are active;
    its parameters are the slots."""

    def all(x: Text) -> None:
        some = gcd(count, _TOGETHER)
        x.loop(count, some, lambda i: part(x, i, some))

    def each(x: Text) -> None:
        def if_on(i: Val) -> None:
            on = x.load("i8", x.at(f"%p{len(slots)}", i))
            x.when(x.compare("ne", on, 0, "i8"), lambda: lane(x, i))

        x.loop(count, 1, if_on)

    if active is None:
        _call(s, key, slots, all)
        return
    bits = active.astype(np.uint8)
    more = [*slots, *spilled(s, (bits.type, bits.name))]
    whole = partial(_call, s, key, slots, all)
    s.x.when(active.every, whole, lambda: _call(s, f"{key} active", more, each))


def gathered(
    s: OpContext, width: int, base: str, places: lanes.Symbol, active: lanes.Symbol | None = None
) -> str:
    """Items of so many bits at byte offsets that are known to lie inside; 0 in lanes that are
    off."""
    count, item = places.lanes.count, f"i{width}"
    type = vector(count, item)
    first = None if active is None else "zeroinitializer"
    out, at = spilled(s, (type, first), (places.type, places.name))

    def part(x: Text, i: Val, some: int) -> None:
        found = pick(x, "%p1", some, item, StoredNumbers(_item(x, 64, "%p2", i), 64))
        x.store(vector(some, item), found, _item(x, width, "%p0", i))

    def lane(x: Text, i: Val) -> None:
        value = x.load(item, x.at("%p1", x.load("i64", _item(x, 64, "%p2", i))))
        x.store(item, value, _item(x, width, "%p0", i))

    _each(s, f"gather {width} {count}", [out, base, at], active, count, part, lane)
    return s.x.load(type, out, 64)


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
    s: OpContext, width: int, base: str, values: Val, places: lanes.Symbol, active: lanes.Symbol
) -> None:
    """Store lanes in order at byte offsets: of equal offsets the higher lane wins."""
    count, item = places.lanes.count, f"i{width}"
    slots = spilled(s, (vector(count, item), values), (places.type, places.name))

    def part(x: Text, i: Val, some: int) -> None:
        found = x.load(vector(some, item), _item(x, width, "%p1", i))
        put(x, "%p0", some, item, StoredNumbers(_item(x, 64, "%p2", i), 64), found)

    def lane(x: Text, i: Val) -> None:
        value = x.load(item, _item(x, width, "%p1", i))
        x.store(item, value, x.at("%p0", x.load("i64", _item(x, 64, "%p2", i))))

    _each(s, f"scatter {width} {count}", [base, *slots], active, count, part, lane)


def squeezed(s: OpContext, size: int, source: Val | None, bits: str) -> tuple[str, str]:
    """Lanes of `size` bytes whose bit is set, side by side, zeros behind them; without a source,
    the number of set bits before each lane. And the number of set bits."""
    x = s.x
    count = VREG_BYTES // size
    width = 8 * size
    type = vector(count, f"i{width}")
    flags = vector(count, "i8")
    room = f"[{count + 1} x i{width}]"
    active = x.new(f"zext {vector(count, 'i1')} {bits} to {flags}")
    slots = spilled(s, (room, "zeroinitializer"), (type, source), (flags, active), ("i64", None))

    def write(x: Text) -> None:
        def lane(i: str, state: list[str]) -> list[Val]:
            (kept,) = state
            if source is not None:  # the next one kept overwrites one that is not kept
                value, at = x.load(f"i{width}", _item(x, width, "%p1", i)), kept
            else:
                value, at = kept if size == 8 else x.new(f"trunc i64 {kept} to i{width}"), i
            x.store(f"i{width}", value, _item(x, width, "%p0", at))
            on = x.new(f"zext i8 {x.load('i8', x.at('%p2', i))} to i64")
            return [x.new(f"add i64 {kept}, {on}")]

        (total,) = x.fold(count, ["i64"], [0], lane)
        if source is not None:
            x.store(f"i{width}", 0, _item(x, width, "%p0", total))
        x.store("i64", total, "%p3", 8)

    _call(s, f"squeeze {width} {source is None}", slots, write)
    return x.load(type, slots[0], 64), x.load("i64", slots[3], 8)


def counted(s: OpContext, values: lanes.Symbol, active: lanes.Symbol, bins: int) -> str:
    """How many active bytes have each value below `bins`, as `<bins x i16>`."""
    count = values.lanes.count
    flags = active.astype(np.uint8)
    type = vector(bins, "i16")
    whole = (type, "zeroinitializer"), (values.type, values.name), (flags.type, flags.name)
    slots = spilled(s, *whole)

    def write(x: Text) -> None:
        def lane(i: Val) -> None:
            at = x.new(f"zext i8 {x.load('i8', x.at('%p1', i))} to i64")
            more = x.new(f"zext i8 {x.load('i8', x.at('%p2', i))} to i16")
            bin = _item(x, 16, "%p0", at)
            x.store("i16", x.new(f"add i16 {x.load('i16', bin)}, {more}"), bin)

        x.loop(count, 1, lane)

    _call(s, f"count {count}", slots, write)
    return s.x.load(type, slots[0], 64)
