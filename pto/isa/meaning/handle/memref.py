"""Memrefs as values: a tile in a local buffer, or a view of global memory.

Only single elements are read and written here. Handles that are declared before they have an
address are here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.layout import BLayout, Layout, SLayout
from pto.core.memory import Memory, Space
from pto.core.pad import pad
from pto.core.tile import Tile, TileType, Valid
from pto.isa.meaning.handle.elements import ElementHandles, row_of
from pto.isa.meaning.handle.view import (
    Handles,
    TileForm,
    element,
    handle,
    handles,
    memref_strides,
    result_type,
    tile_type,
    valid_region,
)
from pto.isa.meaning.kinds import Do
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Ints, Raw
from pto.isa.row.enums import ENUMS
from pto.isa.rules.rule import Case

Place = Any  # a tile, or a view of global memory
DYNAMIC = -(1 << 63)  # marks an entry of a static list that is given by an operand


def argument_view(type: t.MemRef, memory: Memory, sizes: Sequence[int]) -> GlobalTensor:
    """The view of a kernel argument.

    A `?` size is the size of the array; a single `?` may also be computed from the number of
    elements.
    """
    kind = element(type)
    if kind is None:
        raise fail("PTO-T191", "a memref of index has no size in memory")
    static = [size for size in type.shape if size is not None]
    left = memory.size // max(prod(static) * kind.itemsize, 1)
    if len(static) == len(type.shape):
        shape = static
    elif len(sizes) == len(type.shape):
        shape = [n if size is None else size for size, n in zip(type.shape, sizes, strict=True)]
    elif len(static) == len(type.shape) - 1:
        shape = [left if size is None else size for size in type.shape]
    else:
        raise fail("PTO-S171", f"the size of an argument is not known: its shape is {type.shape}")
    return GlobalTensor.of(memory, 0, kind, shape, memref_strides(type))


# ---- allocation


def _alloc(case: Case) -> Callable[..., Tile]:
    result, op = result_type(case), case.op
    if not isinstance(result, t.MemRef) or not result.space.is_local:
        raise fail("PTO-M191", "only local buffers are allocated in a kernel")

    def alloc(x: Handles, sizes: list[int]) -> Tile:
        dynamic = iter(sizes)
        shape = tuple(x.known(next(dynamic)) if n is None else n for n in result.shape)
        form = TileForm(tile_type(replace(result, shape=shape)))
        return x.tile(form, x.memory(result.space), x.placed(op), form.type.valid)

    return alloc


ALLOC = handles(_alloc)
DEALLOC = handle(lambda x, memref: None)
SAME = handle(lambda x, source: source)

# ---- windows


def _mixed(case: Case, name: str) -> Callable[[list[int]], list[int]]:
    """A list of numbers in which the values of an operand replace the dynamic entries."""
    static = case.op.attrs.get(f"static_{name}")
    numbers = list(static.values) if isinstance(static, Ints) else []

    def fill(values: list[int]) -> list[int]:
        dynamic = iter(values)
        return [next(dynamic) if n == DYNAMIC else n for n in numbers] if numbers else values

    return fill


def _reinterpret(case: Case) -> Callable[..., Place]:
    """A buffer with a new offset, sizes and strides.

    The offset counts from the start of the source.
    """
    result, parts = result_type(case), [_mixed(case, n) for n in ("offsets", "sizes", "strides")]

    def view(x: Handles, base: Place, *lists: list[int]) -> Place:
        offsets, sizes, strides = (fill(v) for fill, v in zip(parts, lists, strict=True))
        kind = base.dtype if is_view(base) else base.type.dtype
        address = base.address + offsets[0] * kind.itemsize
        if is_view(base):
            return x.view(base.memory, address, kind, sizes, strides, base.layout)
        if x.known(strides[-1]) != 1:
            raise fail("PTO-L190", f"elements of a row lie {strides[-1]} apart; tiles have no gaps")
        shape = tuple(x.known(n) for n in sizes)
        shaped = replace(result, shape=shape) if isinstance(result, t.MemRef) else result
        form = TileForm(tile_type(shaped))
        pitch = x.known(strides[-2]) if len(sizes) > 1 else None
        return x.tile(form, base.memory, address, form.type.valid, pitch)

    return view


def is_view(operand: Any) -> bool:
    """True for a view of global memory, in either engine."""
    return hasattr(operand, "strides")


def _subview(case: Case) -> Callable[..., Place]:
    source_type, result = case.type("source"), result_type(case)
    parts = [_mixed(case, n) for n in ("offsets", "sizes", "strides")]
    shape = source_type.shape if isinstance(source_type, t.MemRef) else ()
    result_shape = result.shape if isinstance(result, t.MemRef) else shape

    def window(x: Handles, base: Place, *lists: list[int]) -> Place:
        offsets, sizes, steps = (fill(v) for fill, v in zip(parts, lists, strict=True))
        if is_view(base):
            return _part(x, base, offsets, sizes, steps, result_shape)
        if any(x.known(step) != 1 for step in steps):
            raise fail("PTO-L190", f"a window with steps {steps}; tiles have no gaps")
        return _tile_part(x, base, [n or 1 for n in shape], offsets, sizes)

    return window


def _part(
    x: Handles,
    base: Any,
    offsets: list[int],
    sizes: list[int],
    steps: list[int],
    result_shape: Sequence[int | None],
) -> GlobalTensor:
    rank, start = len(sizes), base.address
    limits, strides = base.shape[5 - rank :], base.strides[5 - rank :]
    for first, size, step, limit, stride in zip(
        offsets, sizes, steps, limits, strides, strict=True
    ):
        x.require(
            x.spans(first, size, step, limit),
            lambda given=(size, first, step, limit): fail(
                "PTO-M006",
                "a window of {} from {} in steps of {} exceeds a size of {}".format(*given),
            ),
        )
        start = start + first * stride * base.dtype.itemsize
    axes = (
        range(rank)
        if len(result_shape) == rank
        else kept_axes([x.known(n) for n in sizes], result_shape)
    )
    shape, strides = [sizes[n] for n in axes], [steps[n] * strides[n] for n in axes]
    return x.view(base.memory, start, base.dtype, shape, strides, base.layout)


def kept_axes(sizes: list[int], result_shape: Sequence[int | None]) -> list[int]:
    """The dimensions that a result type keeps: leading dimensions of size 1 may be dropped."""
    spare = len(sizes) - len(result_shape)
    axes: list[int] = []
    for n, size in enumerate(sizes):
        wanted = result_shape[len(axes)] if len(axes) < len(result_shape) else None
        if spare > 0 and size == 1 and wanted != 1:
            spare -= 1
        else:
            axes.append(n)
    return axes


def _tile_part(
    x: Handles, base: Any, shape: list[int], offsets: list[int], part_sizes: list[int]
) -> Tile:
    """A window of a tile.

    The rows of all leading dimensions are consecutive, so only the last two dimensions may be cut.
    """
    sizes = [x.known(n) for n in part_sizes]
    if any(size not in (1, whole) for size, whole in zip(sizes[:-2], shape[:-2], strict=True)):
        raise fail("PTO-L190", f"a window of {sizes} of a local buffer of {shape} has gaps")
    kind = base.type
    type = TileType.of(kind.role, kind.dtype, prod(sizes[:-1]), sizes[-1], kind.layout)
    return x.window(base, row_of(shape, offsets), offsets[-1], type, type.valid)


REINTERPRET = handles(_reinterpret)
SUBVIEW = handles(_subview)

# ---- single elements


def _access(case: Case) -> tuple[list[int], t.Scalar]:
    """The sizes of a memref, and access to its elements."""
    type, elem = case.type("memref"), case.elem("memref")
    if elem is None or elem.dtype is None:
        raise fail("PTO-T193", "a scalar access needs an element type")
    return [n or 1 for n in type.shape] if isinstance(type, t.MemRef) else [], elem


def _load(case: Case) -> Callable[..., Any]:
    limits, elem = _access(case)
    return lambda x, memref, indices: x.load(memref, limits, indices, elem)


def _store(case: Case) -> Callable[..., None]:
    limits, elem = _access(case)
    return lambda x, value, memref, indices: x.store(memref, limits, indices, elem, value)


LOAD = Do(_load, words=ElementHandles)
STORE = Do(_store, words=ElementHandles)

# ---- tiles described by a config attribute


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
    form = TileForm(configured(case, result_type(case)))
    return lambda x, tile, rows, cols: x.renamed(form, tile, valid_region(form.type, rows, cols))


def _materialize(case: Case) -> Callable[..., Tile]:
    """A tile of the result's type; with view semantics, the first part of a larger tile."""
    form = TileForm(tile_type(result_type(case)))
    type, is_part = form.type, case.word("pto.view_semantics") == "subview"

    def tile(x: Handles, source: Tile, rows: int | None, cols: int | None) -> Tile:
        region = valid_region(type, rows, cols)
        now = source.get_valid() if any(n is None for n in region) else type.shape
        least = zip(region, now, type.shape, strict=True)
        high, wide = (x.least(current, limit) if n is None else n for n, current, limit in least)
        if is_part:
            return x.window(source, 0, 0, type, (high, wide))
        return x.renamed(form, source, (high, wide))

    return tile


def _pointer_cast(case: Case) -> Callable[..., Tile]:
    """A tile at the next of several addresses each time it is executed: multi-buffering."""
    form, op = TileForm(configured(case, result_type(case))), case.op

    def cast(x: Handles, addresses: list[int], rows: int | None, cols: int | None) -> Tile:
        region, memory = valid_region(form.type, rows, cols), x.memory(form.type.space)
        return x.tile(form, memory, x.next_of(op, addresses), region)

    return cast


BIND = handles(_bind)
MATERIALIZE = handles(_materialize)
POINTER_CAST = handles(_pointer_cast)
TILE_TO_MEMREF = handle(lambda x, tile: tile)

# ---- handles without an address


class Unbound:
    """A handle that gets its address from a queue or tassign.

    Until then it has only a valid region.
    """

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
        raise fail("PTO-M190", f"{self!r} has no address, but the operation needs its data")


def is_global(type: t.Type | None) -> bool:
    """True for a view, and for a memref in global memory."""
    return isinstance(type, t.View) or (isinstance(type, t.MemRef) and type.space is Space.GM)


DECLARE = Do(
    lambda case: lambda core: Unbound(result_type(case)), host_only="a handle that has no place yet"
)
