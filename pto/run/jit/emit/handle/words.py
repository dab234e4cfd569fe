"""The words of handles (`isa/meaning/handle/view.py`) in compiled code; no data moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pto.core.compact import Compact
from pto.core.dtypes import DType
from pto.core.global_layout import C0_AXIS, RANK, GlobalLayout
from pto.core.memory import Space
from pto.core.pointer import FARTHEST
from pto.core.tile import TileType
from pto.isa.meaning.handle.elements import ElementHandles, row_of
from pto.isa.meaning.handle.view import Handles, TileForm
from pto.isa.meaning.memory.collective import Token
from pto.isa.row import types as t
from pto.isa.row.flag import Flag
from pto.isa.row.traits import Control
from pto.run.jit.emit.handle.view import Guarded, PointerAt, emits_in, inside, near
from pto.run.jit.emit.operation import WORDS, OpContext
from pto.run.jit.emit.tile import tile_layouts
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import UnsupportedLowering, certain, expect, unsupported_if
from pto.run.jit.llvm.index import Count, Number
from pto.run.jit.llvm.text import I64, Text, is_integer
from pto.run.jit.llvm.value import TRUE, Condition, Val, all_of
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.state import flag_offset
from pto.run.jit.runtime.values import (
    SPACE_NUMBERS,
    Lowered,
    Nothing,
    PointerDesc,
    ScalarValue,
    TileDesc,
    ViewDesc,
)

_FAR = "the pointer leaves its array for one of another rank"


@dataclass(frozen=True, slots=True)
class ViewAt:
    """A view of global memory with numbers that may be SSA values."""

    memory: Val
    address: Number
    dtype: DType
    shape: Sequence[Number]
    strides: Sequence[Number]
    layout: GlobalLayout


@dataclass(frozen=True, slots=True)
class TileAt:
    """A tile with an address and a valid region that may be SSA values."""

    memory: int
    address: Number
    type: TileType
    known_valid: tuple[Number, Number]
    window_pitch: int | None

    def get_valid(self) -> tuple[Number, Number]:
        return self.known_valid


class AgentWords:
    """The agent that runs the code: words of the context."""

    def __init__(self, x: Text) -> None:
        self._x = x

    def __getattr__(self, name: str) -> Number:
        place = self._x.at("%ctx", 8 * _AGENT[name])
        return Number(self._x, self._x.load_fixed(I64, place))


_AGENT = {"block": Word.BLOCK, "blocks": Word.BLOCKS, "sub": Word.SUB, "subs": Word.SUBS}


class Words(Guarded):
    """Emits the handles of one operation in place."""

    def __init__(self, s: OpContext) -> None:
        super().__init__(s)
        self.core = AgentWords(s.x)

    # ---- numbers

    def known(self, number: Count) -> int:
        found = self.number(number).known
        return expect(found, int, "a handle whose type is known only when it runs")

    def below(self, number: Count, limit: int) -> Condition:
        return self.x.compare("ult", self.number(number).value, limit)

    def spans(self, first: Count, size: Count, step: Count, limit: Count) -> Condition:
        first, size, step, limit = map(self.number, (first, size, step, limit))
        guard = (size == 0) | (first + (size - 1) * step < limit)
        for each in (first, size, step):
            guard = guard & (each >= 0) & near(self.x, each.value)
        return guard

    def next_of(self, op: object, numbers: Sequence[Number]) -> Number:
        unsupported_if(len(numbers) != 1, "a buffer for every turn")
        return numbers[0]

    # ---- pointers

    def memory(self, space: Space) -> int:
        return SPACE_NUMBERS[space]

    def pointer(self, memory: Val, address: Number, elem: DType | None) -> PointerAt:
        return PointerAt(memory, address, elem)

    def moved(self, pointer: PointerAt, count: Number) -> PointerAt:
        s = self.s
        x = self.x
        maker = self.s.op.operands[1].maker
        size = expect(pointer.dtype, DType, "a pointer without elements").itemsize
        memory, address = pointer.memory, pointer.address + count * size
        s.fault_unless(near(x, count.value) & near(x, address.value, FARTHEST))
        if maker is None or maker.control is not Control.CALL or isinstance(memory, int):
            return PointerAt(memory, address, pointer.dtype)
        # a distance that may lead to another rank: which array that is, Python knows
        own = x.fresh("own")
        far = x.fresh("far")
        done = x.fresh("done")
        x.branch(x.compare("ule", address.value, s.e.size(memory)), own, far)
        x.label(far)
        (other,), there = s.e.host_fallback(s.op, _FAR, seldom=True), x.here
        x.jump(done)
        x.label(own)
        x.jump(done)
        x.label(done)
        ways = zip((memory, address.value), other.names, strict=True)
        memory, found = (x.phi(I64, [(a, own), (b, there)]) for a, b in ways)
        return PointerAt(memory, Number(x, found), pointer.dtype)

    def global_pointer(self, address: Number, elem: DType | None) -> PointerAt:
        raise UnsupportedLowering("a number that is an address in global memory")

    def address(self, pointer: PointerAt) -> Number:
        raise UnsupportedLowering("the address of a pointer")

    # ---- views of global memory

    def view(
        self,
        memory: Val,
        address: Number,
        dtype: DType,
        shape: Sequence[Count],
        strides: Sequence[Count],
        layout: GlobalLayout,
    ) -> ViewAt:
        sizes, steps = [*map(self.number, shape)], [*map(self.number, strides)]
        unusual = layout.sizes or C0_AXIS in layout.col_axes or not layout.is_defined
        unsupported_if(unusual, "a view of an unusual layout")
        missing = RANK - len(sizes)
        whole = Number(self.x, 1)
        guard = TRUE
        if missing:
            whole = sizes[0] * steps[0]
            for size, step in zip(sizes[1:], steps[1:], strict=True):
                whole = self.greatest(whole, size * step)
        for each in (*sizes, *steps):
            guard = guard & (each >= 0)
        self.s.fault_unless(guard)
        five = (*[Number(self.x, 1)] * missing, *sizes)
        return ViewAt(memory, address, dtype, five, (*[whole] * missing, *steps), layout)

    def part(self, view: ViewAt, offsets: Sequence[Count], sizes: Sequence[Count]) -> ViewAt:
        x = self.x
        guard = TRUE
        address = view.address
        skip = RANK - len(sizes)
        given = zip(view.shape[skip:], view.strides[skip:], offsets, sizes, strict=True)
        for limit, step, first, count in given:
            first, count = self.number(first), self.number(count)
            guard = guard & x.compare("ule", first.value, limit.value)
            guard = guard & x.compare("ule", count.value, (limit - first).value)
            address = address + first * (step * view.dtype.itemsize)
        self.s.fault_unless(guard)
        shape = (*view.shape[:skip], *map(self.number, sizes))
        return ViewAt(view.memory, address, view.dtype, shape, view.strides, view.layout)

    # ---- tiles

    def placed(self, op: object) -> Number:
        return self.number(self.s.e.compiler.placement.address(self.s.op))

    def tile(
        self,
        form: TileForm,
        memory: int,
        address: Number,
        region: Any,
        pitch: int | None = None,
    ) -> TileAt:
        own = form.type.shape[form.type.layout.pitch_axis]
        align = 1 if pitch is not None else self.s.case.profile.alignment.base
        pitch = None if pitch == own else pitch
        return self._tile(form.type, memory, address, region, pitch, align)

    def _tile(
        self,
        type: TileType,
        memory: int,
        address: Number,
        region: Sequence[Count],
        pitch: int | None,
        align: int,
    ) -> TileAt:
        unsupported_if(SPACE_NUMBERS[type.space] != memory, "a tile of another buffer")
        x, made = self.x, self._made(type, address, region, pitch)
        if type.compact is Compact.NORMAL:
            unset = any(id(v) in self.s.e.stack_slots for v in self.s.op.results)
            tile_layouts.require_all_boxes(type, ["", ""] if unset else native(made).valid)
        nbytes = type.nbytes if pitch is None else tile_layouts.extent(native(made))
        guard = self.s.e.inside(memory, address.value, nbytes)
        aligned = x.compare("eq", x.rest(address.value, align), 0)
        guard = guard & self._within(made.get_valid(), type) & aligned
        self.s.fault_unless(guard)
        return made

    def _made(
        self, type: TileType, address: Number, region: Sequence[Count | None], pitch: int | None
    ) -> TileAt:
        unsupported_if(any(n is None for n in region), "a valid region that is set later")
        rows, cols = map(self.number, region)
        return TileAt(SPACE_NUMBERS[type.space], address, type, (rows, cols), pitch)

    def window(self, tile: TileAt, row: Count, col: Count, type: TileType, region: Any) -> TileAt:
        parent, at = native(tile), (self.number(row).value, self.number(col).value)
        stored, layout = tile_layouts.stored_shape(parent), tile_layouts.tile_layout(parent)
        alike = parent.type.layout == type.layout and parent.type.itemsize == type.itemsize
        unsupported_if(
            not alike or Compact.NULL not in (type.compact, parent.type.compact),
            "a window of another form",
        )
        x = self.x
        guard = TRUE
        skipped = 0
        made = self._made(type, tile.address, region, None)
        box, axes = parent.type.box, (layout.rows, layout.cols)
        sizes = zip(at, type.shape, tile.type.shape, made.get_valid(), box, axes, strict=True)
        for first, size, limit, extent, side, along in sizes:
            ends = x.compare("ule", first, limit - size), x.compare("ule", extent.value, size)
            guard = guard & x.compare("sle", size, limit)
            guard = all_of(guard, *ends, x.compare("eq", x.rest(first, side), 0))
            skipped = x.add(skipped, strided.position(x, along, first))
        self.s.fault_unless(guard)
        address = tile.address + Number(x, skipped) * type.itemsize
        axis = type.layout.pitch_axis
        pitch = None if stored[axis] == type.shape[axis] else stored[axis]
        return TileAt(tile.memory, address, type, made.known_valid, pitch)

    def renamed(self, form: TileForm, tile: TileAt, region: Any) -> TileAt:
        pitch = tile.window_pitch
        type = form.type
        own = tile.type
        kept = (type.shape, type.layout, type.itemsize) == (own.shape, own.layout, own.itemsize)
        unsupported_if(pitch is not None and not kept, "a window with gaps becomes another tile")
        return self.tile(form, tile.memory, tile.address, region, pitch)

    def set_valid(self, tile: TileAt, rows: Number, cols: Number) -> None:
        self.s.fault_unless(self._within((rows, cols), tile.type))
        made = self._made(tile.type, tile.address, (rows, cols), tile.window_pitch)
        self.s.e.bind(self.s.op.operands[0], native(made))

    def _within(self, region: Sequence[Number], type: TileType) -> Condition:
        sides = zip(region, type.shape, strict=True)
        return all_of(*(self.x.compare("ule", n.value, limit) for n, limit in sides))

    # ---- flags between pipes

    def _flag(self, keys: Sequence[Flag], n: Count) -> str:
        start = certain(flag_offset(keys[0].src, keys[0].dst), int)
        self.s.e.unit.needs.flags.add(start)
        return self.x.at(self.context(Word.FLAGS), (self.number(n) * 4 + start).value)

    def flag(self, keys: Sequence[Flag], n: Count) -> Number:
        count = self.x.load("i32", self._flag(keys, n), 4)
        return Number(self.x, self.x.new(f"sext i32 {count} to i64"))

    def set_flag(self, keys: Sequence[Flag], n: Count, count: Number) -> None:
        low = self.x.new(f"trunc i64 {count.value} to i32")
        self.x.store("i32", low, self._flag(keys, n), 4)

    # ---- single elements

    def load_at(self, pointer: PointerAt, count: Number, elem: t.Scalar) -> ScalarValue:
        kind = ScalarValue(("",), elem).types[0]
        return ScalarValue((self.x.load(kind, self._behind(pointer, count, elem, False)),), elem)

    def store_at(self, pointer: PointerAt, count: Number, elem: t.Scalar, value: Any) -> None:
        word = self.s.need(ScalarValue, "value")
        self.x.store(word.types[0], word.name, self._behind(pointer, count, elem, True))

    def _behind(self, pointer: PointerAt, count: Number, elem: t.Scalar, writes: bool) -> str:
        """The machine address of an element behind a pointer, inside its memory."""
        s, x = self.s, self.x
        size = _itemsize(elem.dtype)
        address = (pointer.address + count * size).value
        inside = s.e.inside(pointer.memory, address, size)
        s.fault_unless(near(x, count.value) & inside)
        s.e.log_access(pointer.memory, address, 1, size, 0, writes=writes)
        return s.pointer(pointer.memory, address, logged=True)

    def load(self, source: Any, limits: Sequence[int], indices: Any, elem: t.Scalar) -> ScalarValue:
        kind = ScalarValue(("",), elem).types[0]
        element = self._element(source, limits, indices, False)
        return ScalarValue((self.x.load(kind, element),), elem)

    def store(
        self, target: Any, limits: Sequence[int], indices: Any, elem: t.Scalar, value: Number
    ) -> None:
        word = self.s.need(ScalarValue, "value")
        self.x.store(word.types[0], word.name, self._element(target, limits, indices, True))

    def _element(
        self, place: Any, limits: Sequence[Any], indices: Sequence[Number], writes: bool
    ) -> str:
        """The machine address of an element, inside its buffer."""
        s = self.s
        x = self.x
        offset = Number(self.x, 0)
        if isinstance(place, ViewAt):
            skip = RANK - len(indices)
            limits = place.shape[skip:]
            kind = place.dtype
            guard = inside(s, native(place))
            for index, step in zip(indices, place.strides[skip:], strict=True):
                offset = offset + index * step
        else:
            layout, guard = tile_layouts.unboxed_layout(native(place)), TRUE
            kind, column = layout.dtype, indices[-1] if indices else 0
            (down,), (across,) = layout.rows, layout.cols
            offset = row_of(limits, indices) * down.stride + self.number(column) * across.stride
        size = _itemsize(kind)
        for index, limit in zip(indices, limits, strict=True):
            guard = guard & x.compare("ult", index.value, self.number(limit).value)
        address = (place.address + offset * size).value
        if isinstance(place, ViewAt):
            s.e.log_access(place.memory, address, 1, size, 0, writes=writes)
        s.fault_unless(guard)
        return s.pointer(place.memory, address, logged=True)

    # ---- operands and results

    def seen(self, native: Any, type: t.Type | None) -> Any:
        x = self.x
        if isinstance(native, ScalarValue):
            return self.number(native) if is_integer(native.types[0]) else native
        if isinstance(native, PointerDesc):
            return PointerAt(native.memory, Number(x, native.address), native.elem)
        if isinstance(native, TileDesc):
            rows, cols = (Number(x, n) for n in native.valid)
            start = Number(x, native.address)
            return TileAt(native.memory, start, native.type, (rows, cols), native.pitch)
        if isinstance(native, ViewDesc):
            shape, strides = (
                [Number(x, n) for n in each] for each in (native.shape, native.strides)
            )
            start = Number(x, native.address)
            return ViewAt(native.memory, start, native.dtype, shape, strides, native.layout)
        return native

    def lowered(self, found: Any, type: t.Type) -> Lowered:
        if isinstance(found, Number) and isinstance(type, t.Scalar):
            return self.scalar(found, type)
        return Nothing(()) if isinstance(found, Token) else native(found)

    def results(self, found: Any) -> Sequence[Lowered]:
        if not self.s.body.defines:
            return super().results(found)
        (value,), moved = self.s.op.group(self.s.body.defines), native(found)
        type = certain(value.type, t.TileBuf)
        self.s.e.bind(value, moved)  # to its new address
        if self.s.e.live_in is not None:
            self.s.e.live_in.name(moved, type)
        return []


def _itemsize(dtype: DType | None) -> int:
    """The bytes of an element in memory."""
    unsupported_if(dtype is None or dtype.bits < 8, "an element without a size")
    return certain(dtype, DType).itemsize


def native(made: Any) -> Any:
    """A result of the words as a lowered value."""
    if isinstance(made, PointerAt):
        return made.place
    if isinstance(made, TileAt):
        names = (made.address.value, *(n.value for n in made.known_valid))
        return TileDesc(names, made.type, made.window_pitch)
    if isinstance(made, ViewAt):
        numbers = (made.address, *made.shape, *made.strides)
        return ViewDesc((made.memory, *(n.value for n in numbers)), made.dtype, made.layout)
    return made


WORDS[Handles] = WORDS[ElementHandles] = emits_in(Words)
