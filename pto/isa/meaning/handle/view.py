"""Pointers, views of global memory and tile handles: values that name places; no data moves."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.global_layout import global_layout
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.core.tile import Compact, Role, Tile, TileType, Valid
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def element(type: t.Type | None) -> DType | None:
    """What a pointer, view or memref holds; None where that is no single element."""
    elem = getattr(type, "elem", None)
    return elem.dtype if isinstance(elem, t.Scalar) else None


def _result(case: Case) -> t.Type:
    return case.op.results[0].type


# ---- pointers


def _add(core: Machine, pointer: Pointer, offset: int) -> Pointer:
    """Between ranks a distance leads to another array: PyPTO adds that of two windows."""
    moved = pointer.at(offset)
    memory, device = moved.memory, core.device
    if memory.space is not Space.GM or 0 <= moved.address <= memory.size or device.ranks == 1:
        return moved
    start = device.address(Pointer(memory, 0, None))
    return device.pointer(start + moved.address, moved.dtype)


def pointer_at(core: Machine, space: Space, address: int, elem: DType | None) -> Pointer:
    """The pointer an integer address means in a space."""
    if space is Space.GM:
        return core.device.pointer(address, elem)
    return Pointer(core.memory(space), address, elem)


def address_of(core: Machine, pointer: Pointer) -> int:
    if pointer.memory.space is Space.GM:
        return core.device.address(pointer)
    return pointer.address


def pointer_to(value: Any) -> Any:
    """The address of the first element of a tile or view; anything else stays."""
    if isinstance(value, Tile):
        return Pointer(value.memory, value.address, value.type.dtype)
    if isinstance(value, GlobalTensor):
        return Pointer(value.memory, value.address, value.dtype)
    return value


def _cast(case: Case) -> Callable[..., Any]:
    source, result = case.op.operands[0].type, _result(case)
    elem = element(result)
    if not isinstance(result, t.Ptr):
        return address_of
    if isinstance(source, t.Scalar):
        return lambda core, number: pointer_at(core, result.space, number, elem)
    return lambda core, pointer: Pointer(pointer.memory, pointer.address, elem)


ADD_POINTER = do(_add)
CAST_POINTER = Do(_cast)

# ---- views of global memory


def _tensor(case: Case) -> Callable[..., GlobalTensor]:
    """A descriptor: whether its elements are inside the memory is checked where they are used."""
    elem = element(_result(case))
    layout = global_layout(case.word("layout") or "nd")

    def make(core: Machine, ptr: Pointer, shape: list[int], strides: list[int]) -> GlobalTensor:
        kind = elem or ptr.dtype
        if kind is None:
            raise fail("PTO-T191", "a view needs an element type")
        return GlobalTensor.of(ptr.memory, ptr.address, kind, shape, strides, layout)

    return make


def _window(
    core: Machine, source: GlobalTensor, offsets: list[int], sizes: list[int]
) -> GlobalTensor:
    return source.partition(offsets, sizes)


def _dimension(of: Callable[[GlobalTensor], tuple[int, ...]]) -> Do:
    """Views are five-dimensional here: a view of rank n uses the last n dimensions."""

    def make(case: Case) -> Callable[..., int]:
        rank = len(getattr(case.op.operands[0].type, "shape", ()))

        def dim(core: Machine, view: GlobalTensor, index: int) -> int:
            if not 0 <= index < rank:
                raise fail("PTO-S074", f"dimension {index} of a view of {rank} dimensions")
            return of(view)[5 - rank + index]

        return dim

    return Do(make)


def _first_element(core: Machine, view: GlobalTensor) -> Pointer:
    return Pointer(view.memory, view.address, view.dtype)


TENSOR_VIEW = Do(_tensor)
PARTITION = do(_window)
DIMENSION = _dimension(lambda view: view.shape)
STRIDE = _dimension(lambda view: view.strides)
VIEW_ADDRESS = do(_first_element)

# ---- tiles


@lru_cache(maxsize=256)
def tile_type(type: t.Type | None) -> TileType:
    """A tile's type, of several the first one's; a memref in a local buffer is a row-major tile of
    its last dimension."""
    if isinstance(type, t.TileBuf | t.MultiTile):
        return type.slot.tile if isinstance(type, t.MultiTile) else type.tile
    if isinstance(type, t.MemRef) and type.space.is_local:
        sizes = [size or 0 for size in type.shape] or [1]
        return TileType.of(_ROLES[type.space], _element(type), prod(sizes[:-1]), sizes[-1])
    raise fail("PTO-T171", f"a {type.kind if type else 'missing value'} is no tile")


_ROLES = {role.space: role for role in reversed(Role)}  # vec, not scalar, for UB


def as_tile(value: Any, type: t.Type | None) -> Tile:
    """What an operand of kind tile is: a tile, or a local pointer that a memref type shapes."""
    if isinstance(value, Tile):
        return value
    if isinstance(value, Pointer):
        return Tile(tile_type(type), value.memory, value.address)
    raise fail("PTO-T171", f"{value!r} stands where a tile is needed")


def as_view(value: Any, type: t.Type | None) -> GlobalTensor:
    """What an operand of kind view is: a view, or a global pointer that a memref type shapes."""
    if isinstance(value, GlobalTensor):
        return value
    if not isinstance(value, Pointer) or not isinstance(type, t.MemRef):
        raise fail("PTO-T171", f"{value!r} stands where a view of global memory is needed")
    if None in type.shape:
        raise fail("PTO-S171", f"nothing says the size of an argument {type.shape}")
    shape = [size or 0 for size in type.shape]
    return GlobalTensor.of(value.memory, value.address, _element(type), shape, memref_strides(type))


def _element(type: t.MemRef) -> DType:
    if type.elem.dtype is None:
        raise fail("PTO-T191", "a memref of index has no size in memory")
    return type.elem.dtype


def memref_strides(type: t.MemRef) -> list[int] | None:
    """Strides as written; None, which means no gaps, where some are unwritten or dynamic."""
    found = re.search(r"strided<\[([^\]]*)\]", type.layout)
    words = found[1].replace(" ", "").split(",") if found else ["?"]
    return None if "?" in words else [int(word) for word in words]


def valid_region(
    type: TileType, rows: int | None, cols: int | None
) -> tuple[int | None, int | None]:
    """The type's extents, the dynamic ones from the operands."""
    return (type.valid[0] if rows is None else rows, type.valid[1] if cols is None else cols)


def _alloc(case: Case) -> Callable[..., Tile]:
    type, op = tile_type(_result(case)), case.op
    space, (all_rows, all_cols) = type.space, type.valid
    make = _remembering(type)

    def alloc(core: Machine, address: int | None, rows: int | None, cols: int | None) -> Tile:
        start = core.place(op) if address is None else address
        region = all_rows if rows is None else rows, all_cols if cols is None else cols
        return make(core.memory(space), start, region)

    return alloc


def _remembering(type: TileType) -> Callable[[Memory, int, Valid], Tile]:
    """Makes tiles, as a rule the one of the last turn again: checked, and seen by NumPy already."""
    last: Tile | None = None
    fixed = type.compact is Compact.NULL  # its bytes do not depend on its region

    def make(memory: Memory, address: int, region: Valid) -> Tile:
        nonlocal last
        if last is not None and last.memory is memory and last.address == address and fixed:
            return last.again(region)
        last = Tile(type, memory, address, region)
        return last

    return make


def _multi_get(case: Case) -> Callable[..., Tile]:
    """The first tile stands for all: the others follow at the distance of a tile's bytes."""
    source = case.type("source")
    count = source.count if isinstance(source, t.MultiTile) else 0

    def get(core: Machine, first: Tile, slot: int) -> Tile:
        if not 0 <= slot < count:
            raise fail("PTO-S142", f"slot {slot} of a multiple tile of {count}")
        start = first.address + slot * first.type.nbytes
        return Tile(first.type, first.memory, start, first.get_valid())

    return get


def _set_valid(core: Machine, tile: Tile, rows: int, cols: int) -> None:
    tile.set_valid(rows, cols)


def renaming(type: TileType) -> Callable[[Tile, Valid], Tile]:
    """The bytes of a tile under another type, with a valid region."""
    make = _remembering(type)

    def rename(tile: Tile, region: Valid) -> Tile:
        if tile.window_pitch is None:
            return make(tile.memory, tile.address, region)
        return tile.retyped(type, region)

    return rename


def _retyped(case: Case) -> Callable[..., Tile]:
    """The same bytes under another tile type, with that type's valid region."""
    type = tile_type(_result(case))
    rename = renaming(type)
    if None in type.valid:
        return lambda core, tile: rename(tile, tile.get_valid())
    return lambda core, tile: rename(tile, type.valid)


def _tile_pointer(case: Case) -> Callable[..., Any]:
    elem = element(_result(case))
    return lambda core, tile: Pointer(tile.memory, tile.address, elem)


def _moved(case: Case) -> Callable[..., Tile]:
    type = tile_type(_result(case))

    def move(core: Machine, tile: Tile, address: int) -> Tile:
        region = valid_region(type, *tile.get_valid()) if None in type.valid else type.valid
        return Tile(type, tile.memory, address, region)

    return move


ALLOC_TILE = Do(_alloc)
MULTI_GET = Do(_multi_get)
SET_VALID = do(_set_valid)
VALID_ROWS = do(lambda core, tile: tile.get_valid()[0])
VALID_COLS = do(lambda core, tile: tile.get_valid()[1])
VALID_SHAPE = do(lambda core, tile: tile.get_valid())
RETYPED = Do(_retyped)
TILE_ADDRESS = Do(_tile_pointer)
ASSIGN = Do(_moved)
