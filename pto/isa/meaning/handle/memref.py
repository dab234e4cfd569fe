"""Memrefs as values: a tile in a local buffer, a view in global memory. No data moves but single
elements. Also handles that are declared before anything gives them a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy.typing as npt

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.layout import BLayout, Layout, SLayout
from pto.core.memory import Memory, Space
from pto.core.pad import pad
from pto.core.tile import Tile, TileType, Valid
from pto.isa.meaning.handle.view import (
    as_tile,
    as_view,
    element,
    memref_strides,
    tile_type,
    valid_region,
)
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.scalar.arith import from_bits, to_bits
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Ints, Raw, Str
from pto.isa.row.enums import ENUMS
from pto.isa.rules.rule import Case

Place = Tile | GlobalTensor
DYNAMIC = -(1 << 63)  # stands in a static list where a value gives the number


def argument_view(type: t.MemRef, memory: Memory, given: Sequence[int]) -> GlobalTensor:
    """A kernel argument: `?` sizes are those of the array, or what its elements leave for one."""
    kind = element(type)
    if kind is None:
        raise fail("PTO-T191", "a memref of index has no size in memory")
    known = [size for size in type.shape if size is not None]
    left = memory.size // max(prod(known) * kind.itemsize, 1)
    if len(known) == len(type.shape):
        shape = known
    elif len(given) == len(type.shape):
        shape = [n if size is None else size for size, n in zip(type.shape, given, strict=True)]
    elif len(known) == len(type.shape) - 1:
        shape = [left if size is None else size for size in type.shape]
    else:
        raise fail("PTO-S171", f"nothing says the size of an argument {type.shape}")
    return GlobalTensor.of(memory, 0, kind, shape, memref_strides(type))


def _place(value: Any, type: t.Type | None) -> Place:
    """What a memref operand names; the address of a tile or view is shaped by the memref's type."""
    local = isinstance(type, t.TileBuf) or (isinstance(type, t.MemRef) and type.space.is_local)
    if isinstance(value, Tile | GlobalTensor):
        return value
    return as_tile(value, type) if local else as_view(value, type)


def _result(case: Case) -> t.Type:
    return case.op.results[0].type


# ---- allocation


def _alloc(case: Case) -> Callable[..., Tile]:
    result, op = _result(case), case.op
    if not isinstance(result, t.MemRef) or not result.space.is_local:
        raise fail("PTO-M191", "only local buffers are allocated in a kernel")
    open_sizes = [n for n, size in enumerate(result.shape) if size is None]

    def alloc(core: Machine, sizes: list[int]) -> Tile:
        shape = list(result.shape)
        for at, size in zip(open_sizes, sizes, strict=True):
            shape[at] = size
        type = tile_type(replace(result, shape=tuple(shape)))
        return Tile(type, core.memory(type.space), core.place(op))

    return alloc


ALLOC = Do(_alloc)
DEALLOC = do(lambda core, memref: None)
SAME = Do(lambda case: lambda core, source: _place(source, case.op.operands[0].type))

# ---- windows


def _mixed(case: Case, name: str) -> Callable[[list[int]], list[int]]:
    """A list of numbers, of which the values of an operand fill the open places."""
    static = case.op.attrs.get(f"static_{name}")
    numbers = list(static.values) if isinstance(static, Ints) else []

    def fill(values: list[int]) -> list[int]:
        given = iter(values)
        return [next(given) if n == DYNAMIC else n for n in numbers] if numbers else values

    return fill


def _reinterpret(case: Case) -> Callable[..., Place]:
    """A buffer under new offset, sizes and strides, counted from where the source begins."""
    source_type, result = case.type("source"), _result(case)
    parts = [_mixed(case, n) for n in ("offsets", "sizes", "strides")]

    def view(core: Machine, source: Any, *lists: list[int]) -> Place:
        base = _place(source, source_type)
        offsets, sizes, strides = (fill(v) for fill, v in zip(parts, lists, strict=True))
        kind = base.type.dtype if isinstance(base, Tile) else base.dtype
        address = base.address + offsets[0] * kind.itemsize
        if isinstance(base, GlobalTensor):
            return GlobalTensor.of(base.memory, address, kind, sizes, strides, base.layout)
        if strides[-1] != 1:
            raise fail("PTO-L190", f"elements of a row lie {strides[-1]} apart; tiles have no gaps")
        shape = replace(result, shape=tuple(sizes)) if isinstance(result, t.MemRef) else result
        pitch = strides[-2] if len(sizes) > 1 else None
        return Tile(tile_type(shape), base.memory, address, pitch=pitch)

    return view


def _subview(case: Case) -> Callable[..., Place]:
    source_type, result = case.type("source"), _result(case)
    parts = [_mixed(case, n) for n in ("offsets", "sizes", "strides")]
    shape = source_type.shape if isinstance(source_type, t.MemRef) else ()
    kept = result.shape if isinstance(result, t.MemRef) else shape

    def window(core: Machine, source: Any, *lists: list[int]) -> Place:
        base = _place(source, source_type)
        offsets, sizes, steps = (fill(v) for fill, v in zip(parts, lists, strict=True))
        if isinstance(base, GlobalTensor):
            return _part(base, offsets, sizes, steps, kept)
        if set(steps) != {1}:
            raise fail("PTO-L190", f"a window with steps {steps}; tiles have no gaps")
        return _tile_part(base, [n or 1 for n in shape], offsets, sizes)

    return window


def _part(
    base: GlobalTensor,
    offsets: list[int],
    sizes: list[int],
    steps: list[int],
    kept: Sequence[int | None],
) -> GlobalTensor:
    rank = len(sizes)
    limits, strides = base.shape[5 - rank :], base.strides[5 - rank :]
    for first, size, step, limit in zip(offsets, sizes, steps, limits, strict=True):
        if first < 0 or size < 0 or step < 0 or (size and first + (size - 1) * step >= limit):
            raise fail(
                "PTO-M006",
                f"a window of {size} from {first} in steps of {step} exceeds a size of {limit}",
            )
    start = sum(first * stride for first, stride in zip(offsets, strides, strict=True))
    axes = kept_axes(sizes, kept)
    return GlobalTensor.of(
        base.memory,
        base.address + start * base.dtype.itemsize,
        base.dtype,
        [sizes[n] for n in axes],
        [steps[n] * strides[n] for n in axes],
        base.layout,
    )


def kept_axes(sizes: list[int], kept: Sequence[int | None]) -> list[int]:
    """The dimensions a result type keeps: ones of size 1 may be left out, from the front on."""
    spare = len(sizes) - len(kept)
    axes: list[int] = []
    for n, size in enumerate(sizes):
        wanted = kept[len(axes)] if len(axes) < len(kept) else None
        if spare > 0 and size == 1 and wanted != 1:
            spare -= 1
        else:
            axes.append(n)
    return axes


def _tile_part(base: Tile, shape: list[int], offsets: list[int], sizes: list[int]) -> Tile:
    """Rows of all leading dimensions follow each other, so only the last two may be cut."""
    if any(size not in (1, whole) for size, whole in zip(sizes[:-2], shape[:-2], strict=True)):
        raise fail("PTO-L190", f"a window of {sizes} of a local buffer of {shape} has gaps")
    row = 0
    for first, whole in zip(offsets[:-1], shape[:-1], strict=True):
        row = row * whole + first
    rows = prod(sizes[:-1])
    kind = base.type
    return base.window(
        row, offsets[-1], TileType.of(kind.role, kind.dtype, rows, sizes[-1], kind.layout)
    )


REINTERPRET = Do(_reinterpret)
SUBVIEW = Do(_subview)

# ---- single elements


def _finder(case: Case) -> Callable[[Any, list[int]], tuple[npt.NDArray[Any], tuple[int, ...]]]:
    """fn(memref, indices) -> an array over the memory, and where in it the element is."""
    type = case.type("memref")
    shape = type.shape if isinstance(type, t.MemRef) else ()

    def item(value: Any, indices: list[int]) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
        place = _place(value, type)
        if isinstance(place, GlobalTensor):
            array, kind = place.as_array(), place.dtype
            limits, index = array.shape[5 - len(shape) :], (0,) * (5 - len(shape)) + tuple(indices)
        else:
            kind, limits = place.type.dtype, [n or 1 for n in shape]
            row = 0
            for first, whole in zip(indices[:-1], limits[:-1], strict=True):
                row = row * whole + first
            array, index = place.view(), (row, indices[-1] if indices else 0)
        if array is None:
            raise fail("PTO-L190", "elements of a boxed tile are not read one by one")
        if any(not 0 <= i < n for i, n in zip(indices, limits, strict=True)):
            raise fail("PTO-S190", f"index {indices} of a memref of {list(limits)}")
        return array.view(kind.storage), index

    return item


def _scalar(case: Case) -> t.Scalar:
    elem = case.elem("memref")
    if elem is None or elem.dtype is None:
        raise fail("PTO-T193", "a scalar access needs an element type")
    return elem


def _load(case: Case) -> Callable[..., Any]:
    item, elem = _finder(case), _scalar(case)

    def load(core: Machine, memref: Any, indices: list[int]) -> Any:
        array, index = item(memref, indices)
        return from_bits(elem, int(array[index]))

    return load


def _store(case: Case) -> Callable[..., None]:
    item, elem = _finder(case), _scalar(case)

    def store(core: Machine, value: Any, memref: Any, indices: list[int]) -> None:
        array, index = item(memref, indices)
        array[index] = to_bits(elem, value)

    return store


LOAD = Do(_load)
STORE = Do(_store)

# ---- tiles with their description beside them


def configured(case: Case, type: t.Type) -> TileType:
    """A memref's tile type with the layout and pad that `config` gives."""
    plain = tile_type(type)
    config = case.op.attrs.get("config")
    if config is None:
        return plain
    fields = _fields(config)
    layout = Layout(
        BLayout(_word("blayout", fields.get("blayout", "0"))),
        SLayout(_word("slayout", fields.get("slayout", "0"))),
        int(fields.get("s_fractal_size", "512")),
    )
    return replace(plain, layout=layout, pad=pad(int(fields.get("pad", "0"))))


_FIELD = re.compile(r"(\w+)\s*=\s*(?:#pto\.\w+<(\w+)>|(\w+))")


def _fields(config: Attribute) -> dict[str, str]:
    text = config.text if isinstance(config, Raw) else str(config)
    return {name: word or number for name, word, number in _FIELD.findall(text)}


def _word(kind: str, text: str) -> str:
    return ENUMS[kind].word(int(text)) or text if text.isdigit() else text


def _bind(case: Case) -> Callable[..., Tile]:
    """The same bytes as a tile of the configured type."""
    source_type, type = case.type("source"), configured(case, _result(case))

    def bind(core: Machine, source: Any, rows: int | None, cols: int | None) -> Tile:
        return as_tile(source, source_type).retyped(type, valid_region(type, rows, cols))

    return bind


def _materialize(case: Case) -> Callable[..., Tile]:
    """A tile of the result's type; with view semantics, the first part of a larger one."""
    source_type, type = case.type("source"), tile_type(_result(case))
    semantics = case.op.attrs.get("pto.view_semantics")
    is_part = isinstance(semantics, Str) and semantics.value == "subview"

    def tile(core: Machine, source: Any, rows: int | None, cols: int | None) -> Tile:
        whole = as_tile(source, source_type)
        (height, width), (high, wide) = valid_region(type, rows, cols), type.shape
        now = whole.get_valid() if height is None or width is None else (high, wide)
        region = (
            min(now[0], high) if height is None else height,
            min(now[1], wide) if width is None else width,
        )
        return whole.window(0, 0, type, region) if is_part else whole.retyped(type, region)

    return tile


def _pointer_cast(case: Case) -> Callable[..., Tile]:
    """Of several addresses a different one each time it is executed: a buffer for every turn."""
    type, op = configured(case, _result(case)), case.op

    def cast(core: Machine, addresses: list[int], rows: int | None, cols: int | None) -> Tile:
        key = f"turn of {id(op)}"
        turn = core.registers.get(key, 0)
        core.registers[key] = turn + 1
        place = addresses[turn % len(addresses)]
        return Tile(type, core.memory(type.space), place, valid_region(type, rows, cols))

    return cast


BIND = Do(_bind)
MATERIALIZE = Do(_materialize)
POINTER_CAST = Do(_pointer_cast)
TILE_TO_MEMREF = do(lambda core, tile: tile)

# ---- handles without a place


class Unbound:
    """A handle that a queue or tassign gives a place; before, it has only a valid region."""

    def __init__(self, type: t.Type) -> None:
        self.handle = type
        self._valid: Valid = tile_type(type).valid if not is_global(type) else (None, None)

    def __repr__(self) -> str:
        return "a handle without a place (declared, and neither popped nor assigned)"

    @property
    def valid(self) -> Valid:
        return self._valid

    def get_valid(self) -> tuple[int, int]:
        rows, cols = self._valid
        if rows is None or cols is None:
            raise fail("PTO-V002", "the valid region of this handle is dynamic and was not set")
        return rows, cols

    def set_valid(self, rows: int, cols: int) -> None:
        self._valid = rows, cols

    def __getattr__(self, name: str) -> Any:
        raise fail("PTO-M190", f"{self!r} is used where data is needed")


def is_global(type: t.Type | None) -> bool:
    """A view, or a memref in global memory."""
    return isinstance(type, t.View) or (isinstance(type, t.MemRef) and type.space is Space.GM)


DECLARE = Do(
    lambda case: lambda core: Unbound(_result(case)), stays="a handle that has no place yet"
)
