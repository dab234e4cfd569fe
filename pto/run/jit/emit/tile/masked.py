"""Masked loads and stores, strip-mining and guards, for tile instructions.

An instruction becomes one function, called with addresses and extents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.core.dtypes import DType
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm import lane_masks, native, shuffles
from pto.run.jit.llvm.lanes import Symbol, reduced
from pto.run.jit.llvm.text import Text, element, mangled, vector
from pto.run.jit.llvm.value import TRUE, Condition, Val, Value, facts
from pto.run.jit.runtime.values import PointerDesc, TileDesc

VECTOR_BYTES = 256


def disjoint(
    s: OpContext, a: PointerDesc | TileDesc, a_bytes: Val, b: PointerDesc | TileDesc, b_bytes: Val
) -> Condition:
    """True if two byte ranges are disjoint."""
    elsewhere = s.x.compare("ne", a.memory, b.memory)
    if elsewhere.is_true:
        return TRUE
    return elsewhere | s.x.disjoint(a.address, a_bytes, b.address, b_bytes)


def machine_address(s: OpContext, tile: TileDesc) -> str:
    return s.pointer(tile.memory, tile.address)


def copied_unless(s: OpContext, ref: Access, guard: Condition, room: int) -> tuple[Access, int]:
    """A source, and the next free offset of scratch memory. If the destination may not be written
    while the source is read (`guard` is False), a copy is read."""
    x, own = s.x, ref.pointer
    if guard.is_true:
        return ref, room
    copy, shared = x.at(s.e.scratch(), room), ~guard
    x.when(shared, lambda: copy_bytes(x, copy, own, ref.nbytes))
    either = x.new(f"select i1 {shared}, ptr {copy}, ptr {own}")
    return Access(ref.layout, either), room + -(-ref.nbytes // 64) * 64


def covers(s: OpContext, tile: TileDesc, rows: Val, cols: Val) -> Condition:
    """True if a tile has at least this many rows and columns."""
    height, width = tile.type.shape
    x = s.x
    return x.compare("sle", rows, height) & x.compare("sle", cols, width)


def is_empty(s: OpContext, rows: Val, cols: Val) -> Condition:
    return s.x.compare("eq", rows, 0) | s.x.compare("eq", cols, 0)


def guarded(s: OpContext, condition: Condition, fast: Callable[[], None], unless: str) -> None:
    """Emit compiled code for the case that the condition holds, else a host fallback without
    results. `unless` is the reason of the fallback."""
    unsupported_if(condition.is_false, unless)

    def slow() -> None:
        s.e.host_fallback(s.op, unless, seldom=True)

    s.x.when(condition, fast, slow)


def offset(x: Text, base: str, index: Val, step: int, itemsize: int) -> str:
    """base + index * step elements."""
    return x.at(base, x.mul(index, step * itemsize))


def prefix_mask(x: Text, lanes: int, count: Val) -> str:
    """A mask of the first `count` lanes."""
    type = vector(lanes, "i32")
    small = x.new(f"trunc i64 {count} to i32")
    all = shuffles.spread(x, "i32", lanes, small)
    numbers = ", ".join(f"i32 {n}" for n in range(lanes))
    found = x.new(f"icmp ult {type} <{numbers}>, {all}")
    return Value(found, prefix=count)


def copy_bytes(x: Text, to: str, source: str, nbytes: Val) -> None:
    """Copy bytes between ranges that do not overlap."""
    x.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {nbytes}, i1 false)")


def load_lanes(x: Text, dtype: DType, lanes: int, pointer: str, mask: str | None) -> str:
    """Load elements under a mask; lanes that are off are not read and are 0."""
    item = element(dtype)
    type, bits = vector(lanes, item), vector(lanes, "i1")
    if mask is None:
        return x.load(type, pointer)
    prefix = facts(mask).prefix
    if prefix is not None and not native.target().has_masks:
        room = x.stack(type)
        x.store(type, "zeroinitializer", room, 64)
        copy_bytes(x, room, pointer, x.mul(prefix, dtype.itemsize))
        return x.load(type, room, 64)
    name = f"@llvm.masked.load.v{lanes}{mangled(item)}.p0"
    x.declare(f"declare {type} {name}(ptr, i32, {bits}, {type})")
    return x.new(f"call {type} {name}(ptr {pointer}, i32 1, {bits} {mask}, {type} zeroinitializer)")


def store_lanes(
    x: Text, dtype: DType, lanes: int, value: Val, pointer: str, mask: str | None
) -> None:
    """Store elements under a mask; memory of lanes that are off is unchanged."""
    item = element(dtype)
    type = vector(lanes, item)
    if mask is None:
        x.store(type, value, pointer)
        return
    prefix = facts(mask).prefix
    if prefix is not None and not native.target().has_masks:
        room = x.stack(type)
        x.store(type, value, room, 64)
        copy_bytes(x, pointer, room, x.mul(prefix, dtype.itemsize))
        return
    lane_masks.store(x, item, lanes, value, pointer, mask)


def strips(x: Text, lanes: int, count: Val, body: Callable[[Val, str | None], None]) -> None:
    """Call body(first, mask) for strips of `lanes` elements; the last strip is masked."""

    def strip(j: Val, _: Sequence[Symbol], mask: str | None = None) -> Sequence[Symbol]:
        body(j, mask)
        return ()

    folded_strips(x, lanes, count, (), strip)


def folded_strips(
    x: Text, lanes: int, count: Val, first: Sequence[Symbol], strip: Callable[..., Sequence[Symbol]]
) -> Sequence[Symbol]:
    """values = strip(first element, values, mask) for strips of `lanes` elements, from `first` on;
    the last strip is masked."""
    whole, found = x.mul(x.over(count, lanes), lanes), first
    if whole == lanes:
        found = strip(0, found)
    elif whole != 0:
        found = reduced(x, whole, found, strip, lanes)
    rest = x.sub(count, whole)
    if isinstance(rest, int):
        return strip(whole, found, prefix_mask(x, lanes, rest)) if rest else found
    before = x.here
    last = x.fresh("last")
    done = x.fresh("done")
    x.branch(x.compare("ne", rest, 0), last, done)
    x.label(last)
    more = strip(whole, found, prefix_mask(x, lanes, rest))
    ended = x.here
    x.jump(done)
    x.label(done)
    return [
        a.lanes.symbol(a.dtype, x.phi(a.type, [(a.name, before), (b.name, ended)]))
        for a, b in zip(found, more, strict=True)
    ]


def key_of(s: OpContext, *parts: object) -> str:
    """The key of the function of an instruction: everything except addresses and extents."""
    attrs = sorted((name, str(value)) for name, value in s.op.attrs.items())
    return repr((s.case.row.name, s.case.profile.name, attrs, *parts))
