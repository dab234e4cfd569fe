"""Pointers, views of global memory and tile handles: values that name memory. No data moves.

Meanings of handles are functions of `Handles` and the operands. Compiled code runs the same
functions on its own implementation (`run/jit/emit/handle/words.py`), where a number may be known
only at run time. A meaning therefore branches on a number only with `require`, `least` and
`choose`.
Handles have the same fields in both engines: memory and address, the type of a tile, the shape and
strides of a view.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from pto.core.compact import Compact
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.global_layout import GlobalLayout, global_layout
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.core.tile import Role, Tile, TileType, Valid
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.memory.registers import CoreWords
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

# ---- the interface


class TileForm:
    """A tile type, and the last tile made with it: a loop often makes the same tile again."""

    __slots__ = ("_last", "type")

    def __init__(self, type: TileType) -> None:
        self.type = type
        self._last: Tile | None = None

    def at(self, memory: Memory, address: int, region: Valid) -> Tile:
        last = self._last
        if last is not None and last.memory is memory and last.address == address:
            return last.again(region)
        tile = Tile(self.type, memory, address, region)
        if self.type.compact is Compact.NULL:  # the bytes do not depend on the valid region
            self._last = tile
        return tile


class Handles(CoreWords):
    """Makes handles; raises an error if a handle would be invalid."""

    __slots__ = ()

    # ---- numbers

    def least(self, a: int, b: int) -> int:
        return min(a, b)

    def known(self, number: int) -> int:
        """A number that determines the type of a handle.

        Compiled code must know it when it compiles.
        """
        return number

    def below(self, number: int, limit: int) -> bool:
        """True if 0 <= number < limit."""
        return 0 <= number < limit

    def spans(self, first: int, size: int, step: int, limit: int) -> bool:
        """True if `size` numbers from `first` on, `step` apart, are all in 0 .. limit - 1."""
        return min(first, size, step) >= 0 and (size == 0 or first + (size - 1) * step < limit)

    def next_of(self, op: object, numbers: Sequence[int]) -> int:
        """The next of these numbers each time the operation is executed, round robin."""
        if len(numbers) == 1:
            return numbers[0]
        key = f"executions of {id(op)}"
        done = self.core.registers.get(key, 0)
        self.core.registers[key] = done + 1
        return numbers[done % len(numbers)]

    # ---- pointers

    def memory(self, space: Space) -> Memory:
        """A local buffer of this agent."""
        return self.core.memory(space)

    def pointer(self, memory: Memory, address: int, elem: DType | None) -> Pointer:
        return Pointer(memory, address, elem)

    def moved(self, pointer: Pointer, count: int) -> Pointer:
        """A pointer `count` elements further.

        If it leaves the array, it is looked up again by its number: PyPTO adds the distance between
        two windows of different ranks.
        """
        moved, device = pointer.at(count), self.core.device
        memory = moved.memory
        if memory.space is not Space.GM or 0 <= moved.address <= memory.size or device.ranks == 1:
            return moved
        start = device.address(Pointer(memory, 0, None))
        return device.pointer(start + moved.address, moved.dtype)

    def global_pointer(self, address: int, elem: DType | None) -> Pointer:
        """The pointer to a numeric address of global memory."""
        return self.core.device.pointer(address, elem)

    def address(self, pointer: Pointer) -> int:
        """The numeric address of a pointer."""
        if pointer.memory.space is Space.GM:
            return self.core.device.address(pointer)
        return pointer.address

    # ---- views of global memory

    def view(
        self,
        memory: Memory,
        address: int,
        dtype: DType,
        shape: Sequence[int],
        strides: Sequence[int],
        layout: GlobalLayout,
    ) -> GlobalTensor:
        """A view of one to five dimensions; its bounds are checked when it is used."""
        return GlobalTensor.of(memory, address, dtype, shape, strides, layout)

    def part(
        self, view: GlobalTensor, offsets: Sequence[int], sizes: Sequence[int]
    ) -> GlobalTensor:
        """The window of a view with these sizes and offsets, which must be inside the view."""
        return view.partition(offsets, sizes)

    # ---- tiles

    def placed(self, op: object) -> int:
        """The address that the planner assigned to an allocation."""
        return self.core.place(op)

    def tile(
        self,
        form: TileForm,
        memory: Memory,
        address: int,
        region: Valid,
        pitch: int | None = None,
    ) -> Tile:
        """A tile inside its buffer, at an aligned address.

        With a `pitch`, the distance of its lines in elements (or boxes), it may start at any
        element.
        """
        if pitch is None:
            return form.at(memory, address, region)
        return Tile(form.type, memory, address, region, pitch=pitch)

    def window(self, tile: Tile, row: int, col: int, type: TileType, region: Valid) -> Tile:
        """A window of a tile as a tile; it must not cut a box."""
        return tile.window(row, col, type, region)

    def renamed(self, form: TileForm, tile: Tile, region: Valid) -> Tile:
        """The bytes of a tile with another type."""
        if tile.window_pitch is None:
            return form.at(tile.memory, tile.address, region)
        return tile.retyped(form.type, region)

    def set_valid(self, tile: Tile, rows: int, cols: int) -> None:
        """Set the valid region of a tile."""
        tile.set_valid(rows, cols)

    # ---- flags between pipes

    def flag(self, keys: Sequence[Any], n: int) -> int:
        """The number of times a flag is set and not yet waited for."""
        return self.core.flags[keys[n]]

    def set_flag(self, keys: Sequence[Any], n: int, count: int) -> None:
        self.core.flags[keys[n]] = count


def handle(fn: Callable[..., Any]) -> Do:
    """A meaning that needs nothing from the types: fn(handles, *operands)."""
    return Do(lambda case: fn, words=Handles)


def handles(make: Callable[[Case], Callable[..., Any]], defines: str = "") -> Do:
    """A meaning on the interface of handles."""
    return Do(make, words=Handles, defines=defines)


# ---- types


def element(type: t.Type | None) -> DType | None:
    """The element type of a pointer, view or memref; None if it has no single element type."""
    elem = getattr(type, "elem", None)
    return elem.dtype if isinstance(elem, t.Scalar) else None


def result_type(case: Case) -> t.Type:
    return case.op.results[0].type


# ---- pointers


def pointer_to(value: Any) -> Any:
    """The address of the first element of a tile or view; other values are returned unchanged."""
    if isinstance(value, Tile):
        return Pointer(value.memory, value.address, value.type.dtype)
    if isinstance(value, GlobalTensor):
        return Pointer(value.memory, value.address, value.dtype)
    return value


def _cast(case: Case) -> Callable[..., Any]:
    source, result = case.op.operands[0].type, result_type(case)
    elem = element(result)
    if not isinstance(result, t.Ptr):
        return lambda x, pointer: x.address(pointer)
    if not isinstance(source, t.Scalar):
        return lambda x, place: x.pointer(place.memory, place.address, elem)
    if result.space is Space.GM:
        return lambda x, number: x.global_pointer(number, elem)
    return lambda x, number: x.pointer(x.memory(result.space), number, elem)


ADD_POINTER = handle(lambda x, pointer, offset: x.moved(pointer, offset))
CAST_POINTER = handles(_cast)

# ---- views of global memory


def _tensor(case: Case) -> Callable[..., GlobalTensor]:
    """A descriptor of global memory; its bounds are checked when it is used."""
    elem = element(result_type(case))
    layout = global_layout(case.word("layout") or "nd")

    def make(x: Handles, ptr: Pointer, shape: list[int], strides: list[int]) -> GlobalTensor:
        kind = elem or ptr.dtype
        if kind is None:
            raise fail("PTO-T191", "a view needs an element type")
        return x.view(ptr.memory, ptr.address, kind, shape, strides, layout)

    return make


def _dimension(of: Callable[[GlobalTensor], tuple[int, ...]]) -> Do:
    """One dimension of a view. Views have five dimensions: a view of rank n uses the last n."""

    def make(case: Case) -> Callable[..., int]:
        rank = len(getattr(case.op.operands[0].type, "shape", ()))

        def dim(x: Handles, view: GlobalTensor, index: int) -> int:
            number = x.known(index)
            if not 0 <= number < rank:
                raise fail("PTO-S074", f"dimension {number} does not exist: the view has {rank}")
            return of(view)[5 - rank + number]

        return dim

    return handles(make)


TENSOR_VIEW = handles(_tensor)
PARTITION = handle(lambda x, source, offsets, sizes: x.part(source, offsets, sizes))
DIMENSION = _dimension(lambda view: view.shape)
STRIDE = _dimension(lambda view: view.strides)
VIEW_ADDRESS = handle(lambda x, view: x.pointer(view.memory, view.address, view.dtype))

# ---- tiles


@lru_cache(maxsize=256)
def tile_type(type: t.Type | None) -> TileType:
    """The type of a tile operand; the first one's type if there are several.

    A memref in a local buffer is a row-major tile with the size of its last dimension as row
    length.
    """
    if isinstance(type, t.TileBuf | t.MultiTile):
        return type.slot.tile if isinstance(type, t.MultiTile) else type.tile
    if isinstance(type, t.MemRef) and type.space.is_local:
        sizes = [size or 0 for size in type.shape] or [1]
        return TileType.of(_ROLES[type.space], _element(type), prod(sizes[:-1]), sizes[-1])
    raise fail("PTO-T171", f"a {type.kind if type else 'missing value'} is not a tile")


_ROLES = {role.space: role for role in reversed(Role)}  # vec, not scalar, for UB


def as_tile(value: Any, type: t.Type | None) -> Tile:
    """The tile of an operand: a tile, or a local pointer with the shape of a memref type."""
    if isinstance(value, Tile):
        return value
    if isinstance(value, Pointer):
        return Tile(tile_type(type), value.memory, value.address)
    raise fail("PTO-T171", f"{value!r} is used where a tile is needed")


def as_view(value: Any, type: t.Type | None) -> GlobalTensor:
    """The view of an operand: a view, or a global pointer with the shape of a memref type."""
    if isinstance(value, GlobalTensor):
        return value
    if not isinstance(value, Pointer) or not isinstance(type, t.MemRef):
        raise fail("PTO-T171", f"{value!r} is used where a view of global memory is needed")
    if None in type.shape:
        raise fail("PTO-S171", f"the size of an argument is not known: its shape is {type.shape}")
    shape = [size or 0 for size in type.shape]
    return GlobalTensor.of(value.memory, value.address, _element(type), shape, memref_strides(type))


def _element(type: t.MemRef) -> DType:
    if type.elem.dtype is None:
        raise fail("PTO-T191", "a memref of index has no size in memory")
    return type.elem.dtype


def memref_strides(type: t.MemRef) -> list[int] | None:
    """The strides as written; None, which means contiguous, if some are omitted or dynamic."""
    strides = re.search(r"strided<\[([^\]]*)\]", type.layout)
    words = strides[1].replace(" ", "").split(",") if strides else ["?"]
    return None if "?" in words else [int(word) for word in words]


def valid_region(
    type: TileType, rows: int | None, cols: int | None
) -> tuple[int | None, int | None]:
    """The extents of the type; operands give the dynamic ones."""
    return (type.valid[0] if rows is None else rows, type.valid[1] if cols is None else cols)


def _alloc(case: Case) -> Callable[..., Tile]:
    form, op = TileForm(tile_type(result_type(case))), case.op

    def alloc(x: Handles, address: int | None, rows: int | None, cols: int | None) -> Tile:
        start = x.placed(op) if address is None else address
        return x.tile(form, x.memory(form.type.space), start, valid_region(form.type, rows, cols))

    return alloc


def _multi_get(case: Case) -> Callable[..., Tile]:
    """One tile of several.

    The first one has the address; the following ones are at multiples of a tile's bytes.
    """
    source, form = case.type("source"), TileForm(tile_type(case.type("source")))
    count = source.count if isinstance(source, t.MultiTile) else 0

    def get(x: Handles, first: Tile, slot: int) -> Tile:
        x.require(
            x.below(slot, count),
            lambda: fail("PTO-S142", f"slot {slot} does not exist: the multiple tile has {count}"),
        )
        return x.tile(
            form, first.memory, first.address + slot * form.type.nbytes, first.get_valid()
        )

    return get


def _retyped(case: Case) -> Callable[..., Tile]:
    """The same bytes under another tile type, with that type's valid region."""
    form = TileForm(tile_type(result_type(case)))
    is_open = None in form.type.valid
    return lambda x, tile: x.renamed(form, tile, tile.get_valid() if is_open else form.type.valid)


def _tile_pointer(case: Case) -> Callable[..., Any]:
    elem = element(result_type(case))
    return lambda x, tile: x.pointer(tile.memory, tile.address, elem)


ALLOC_TILE = handles(_alloc)
MULTI_GET = handles(_multi_get)
SET_VALID = handle(lambda x, tile, rows, cols: x.set_valid(tile, rows, cols))
VALID_ROWS = handle(lambda x, tile: tile.get_valid()[0])
VALID_COLS = handle(lambda x, tile: tile.get_valid()[1])
VALID_SHAPE = handle(lambda x, tile: tile.get_valid())
RETYPED = handles(_retyped)
TILE_ADDRESS = handles(_tile_pointer)
