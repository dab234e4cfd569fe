"""Squeezes in compiled code: loops over lanes, which would compile for minutes if written out."""

from __future__ import annotations

from collections.abc import Callable

from pto.core.constants import VREG_BYTES
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.llvm.text import Text, Val, vector


def lane_by_lane(s: OpContext, name: str, size: int, source: Val, bits: str) -> tuple[str, str]:
    """Calls a loop over lanes of `size` bytes: a register, and how many lanes are on."""
    x, count, width = s.x, VREG_BYTES // size, 8 * size
    type, bytes_type = vector(count, f"i{width}"), vector(count, "i8")
    active = x.new(f"zext {vector(count, 'i1')} {bits} to {bytes_type}")
    rooms = [x.stack(t) for t in (f"[{count + 1} x i{width}]", type, bytes_type)]
    x.store(type, "zeroinitializer", rooms[0], 64)
    x.store(type, source, rooms[1], 64)
    x.store(bytes_type, active, rooms[2], 64)
    make = {"squeeze": _squeeze, "count": _count}[name]
    call = s.e.unit.shared(f"{name} {width}", lambda found: make(found, width, count))
    total = x.new(f"call i64 {call}({', '.join(f'ptr {r}' for r in rooms)})")
    return x.load(type, rooms[0], 64), total


Lane = Callable[[Text, Val, Val], None]  # text, number of the lane, active lanes before it


def _squeeze(name: str, width: int, count: int) -> str:
    """Each lane goes to where the next kept one belongs; one that is not kept is overwritten."""

    def lane(x: Text, i: Val, kept: Val) -> None:
        value = x.load(f"i{width}", x.new(f"getelementptr i{width}, ptr %from, i64 {i}"))
        x.store(f"i{width}", value, x.new(f"getelementptr i{width}, ptr %out, i64 {kept}"))

    def end(x: Text, i: Val, kept: Val) -> None:
        x.store(f"i{width}", 0, x.new(f"getelementptr i{width}, ptr %out, i64 {kept}"))

    return _counting(name, count, lane, end)


def _count(name: str, width: int, count: int) -> str:
    def lane(x: Text, i: Val, kept: Val) -> None:
        value = kept if width == 64 else x.new(f"trunc i64 {kept} to i{width}")
        x.store(f"i{width}", value, x.new(f"getelementptr i{width}, ptr %out, i64 {i}"))

    return _counting(name, count, lane, lambda x, i, kept: None)


def _counting(name: str, count: int, lane: Lane, end: Lane) -> str:
    x = Text()
    total = x.stack("i64")
    x.store("i64", 0, total, 8)

    def one(i: Val) -> None:
        kept = x.load("i64", total, 8)
        lane(x, i, kept)
        on = x.load("i8", x.new(f"getelementptr i8, ptr %active, i64 {i}"))
        x.store("i64", x.add(kept, x.new(f"zext i8 {on} to i64")), total, 8)

    x.loop(count, 1, one)
    kept = x.load("i64", total, 8)
    end(x, count, kept)
    x.do(f"ret i64 {kept}")
    return x.function(f"define internal i64 {name}(ptr %out, ptr %from, ptr %active) noinline")
