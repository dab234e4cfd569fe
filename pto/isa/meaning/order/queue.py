"""Data in the slots of a queue: tiles, halves of tiles, entries in global memory.

A push waits for a free slot, a pop for a full one. If the slots are in the consumer's local buffer,
a popped tile stays in its slot until tfree. If they are in global memory, a pop loads a copy and
frees the slot at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.layout import DN, ND, NZ, Layout
from pto.core.memory import Space
from pto.core.tile import Role, Tile, TileType, Valid
from pto.isa.meaning.cube.accumulator import finished, outgoing
from pto.isa.meaning.handle.memref import Unbound, is_global
from pto.isa.meaning.handle.view import as_tile, element, tile_type, valid_region
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.order.ring import TO_VECTOR, WHOLE, Pipe, QueueRing, by_id, own, vectors
from pto.isa.meaning.tile.move import padding
from pto.isa.meaning.tile.patch import cut, paste
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

BY_ROWS, BY_COLS, _ODD_ROWS, _ODD_COLS = range(1, 5)  # split: pto-isa TPush.hpp
_BY_ROWS = (BY_ROWS, _ODD_ROWS)
_BY_COLS = (BY_COLS, _ODD_COLS)
_ODD = (_ODD_ROWS, _ODD_COLS)

LAYOUTS = {"nz2dn": DN, "nz2nz": NZ}  # modes of an acc_push_epilogue; all other modes leave rows

# ---- halves


# Compiled code calls these functions with numbers that only the run knows; its splits are even.


def part(split: int, sub: Any, rows: Any, cols: Any) -> tuple[Any, Any]:
    """The start of a sub-block's half; of an odd number the first has one more."""
    more = 1 if split in _ODD else 0
    if split in _BY_ROWS:
        return sub * (rows + more), 0
    return (0, sub * (cols + more)) if split in _BY_COLS else (0, 0)


def whole_of(split: int, sub: Any, rows: Any, cols: Any) -> tuple[Any, Any]:
    """The region of which a sub-block has this half."""
    odd = 0 if split not in _ODD else 2 * sub - 1
    if split in _BY_ROWS:
        return 2 * rows + odd, cols
    return (rows, 2 * cols + odd) if split in _BY_COLS else (rows, cols)


def half_of(split: int, sub: Any, rows: Any, cols: Any) -> tuple[Any, Any]:
    """A sub-block's half of a region; of an odd number the first has one more."""
    more = 1 if split in _ODD and sub == 0 else 0
    if split in _BY_ROWS:
        return (rows + more) // 2, cols
    return (rows, (cols + more) // 2) if split in _BY_COLS else (rows, cols)


def slot_type(way: int, split: int, tile: TileType, layout: Layout = ND) -> TileType:
    """The type of a slot in a local buffer: a half for each vector sub-block, or the whole tile for
    the cube."""
    if split in _ODD:
        raise fail("PTO-X190", f"split {split} of {tile} needs a queue in global memory")
    if way == TO_VECTOR:
        return TileType.of(Role.VEC, tile.dtype, *half_of(split, 0, *tile.shape), layout)
    return TileType.of(Role.MAT, tile.dtype, *whole_of(split, 0, *tile.shape), tile.layout)


# ---- push


def _send(core: Machine, ring: QueueRing, tile: Tile, split: int) -> None:
    number = int(ring.taken[own(core)])
    region = tile.get_valid()
    full_region = region if ring.way == TO_VECTOR else whole_of(split, core.sub, *region)
    echoes = ring.way != TO_VECTOR and split == WHOLE and core.sub
    if not (echoes and 0 in region):  # a second sub-block without data of its own reports no region
        ring.set_region(number, full_region)
    if ring.entry is not None:
        _to_global(core, ring, tile, split, number)
    elif ring.way == TO_VECTOR:
        _to_vectors(core, ring, tile, split, number)
    else:
        _to_cube(core, ring, tile, split, number)


def _slot_view(ring: QueueRing, tile: Tile, split: int, sub: int, number: int) -> GlobalTensor:
    """A tile's valid region as a matrix in a slot of global memory, row by row."""
    entry = ring.entry
    if entry is None:
        raise RuntimeError("a ring without global memory")
    rows, cols = tile.get_valid()
    row, col = part(split, sub, rows, cols)
    pitch, kind = whole_of(split, sub, rows, cols)[1], tile.type.dtype
    ring.require_room(((row + rows - 1) * pitch + col + cols) * kind.itemsize, tile.type)
    address = entry.address + ring.slot(number) + (row * pitch + col) * kind.itemsize
    return GlobalTensor.of(entry.memory, address, kind, [rows, cols], [pitch, 1])


def _to_global(core: Machine, ring: QueueRing, tile: Tile, split: int, number: int) -> None:
    """Store the whole tile (cube) or its half (vector sub-block)."""
    chosen = WHOLE if ring.way == TO_VECTOR else split
    rows, cols = tile.get_valid()
    if rows and cols:
        view = _slot_view(ring, tile, chosen, own(core), number)
        view.write_matrix(cut(tile, 0, 0, rows, cols))


def _to_vectors(core: Machine, ring: QueueRing, tile: Tile, split: int, number: int) -> None:
    """Store row-major into UB: all of it to sub-block 0, or a half to each."""
    layout = LAYOUTS.get(ring.epilogue.layout if ring.epilogue else "", ND)
    type = slot_type(ring.way, split, tile.type, layout)
    rows, cols = half_of(split, 0, *tile.get_valid())
    ring.require_room(type.nbytes, type)
    subs = vectors(core, split)
    values = [cut(tile, *part(split, sub, rows, cols), rows, cols) for sub in subs]
    for sub, half in zip(subs, values, strict=True):
        memory = core.cluster.vector(sub).memory(Space.UB)
        paste(Tile(type, memory, (ring.local or 0) + ring.slot(number)), 0, 0, half)


def _to_cube(core: Machine, ring: QueueRing, tile: Tile, split: int, number: int) -> None:
    """Store into L1 in the layout of the tile: a half next to the other sub-block's."""
    type, (rows, cols) = slot_type(ring.way, split, tile.type), tile.get_valid()
    ring.require_room(type.nbytes, type)
    target = Tile(type, core.cluster.cube.memory(Space.L1), (ring.local or 0) + ring.slot(number))
    paste(target, *part(split, core.sub, rows, cols), cut(tile, 0, 0, rows, cols))


# ---- pop


def _receive(
    core: Machine, ring: QueueRing, type: TileType, valid: Valid | None, split: int
) -> Tile:
    number = int(ring.popped[own(core)])
    memory = core.memory(type.space)
    if valid is not None and None in valid:
        valid = _sent(core, ring, valid, split, number)
    if ring.entry is None:
        return Tile(type, memory, (ring.local or 0) + ring.slot(number), valid)
    start = (ring.local or 0) + number % ring.local_slots * ring.slot_size
    tile = Tile(type, memory, start, valid)
    rows, cols = tile.get_valid()
    if rows and cols:
        chosen = split if ring.way == TO_VECTOR else WHOLE
        tile.write_valid(_slot_view(ring, tile, chosen, own(core), number).read_matrix())
        beside = padding(type, core.profile)
        if beside is not None:
            beside(tile)
    return tile


def _sent(core: Machine, ring: QueueRing, valid: Valid, split: int, number: int) -> Valid:
    """The region of a popped tile: pushed extents replace the dynamic ones of its type."""
    pushed = ring.region(number)
    if ring.way == TO_VECTOR:
        pushed = half_of(split, core.sub, *pushed)
    rows, cols = valid
    return pushed[0] if rows is None else rows, pushed[1] if cols is None else cols


def _entry(core: Machine, ring: QueueRing, type: t.Type, number: int, split: int) -> GlobalTensor:
    """The slot as a view; a vector sub-block gets its half."""
    first = ring.entry
    if first is None:
        raise fail(
            "PTO-D193",
            f"{ring.name} has its slots in local buffers: its entries are tiles, not views",
        )
    kind = element(type)
    shape = [n or 0 for n in getattr(type, "shape", ())]
    if isinstance(first, GlobalTensor):
        view = first
    elif kind is None:
        raise fail("PTO-T191", "a view needs an element type")
    else:
        view = GlobalTensor.of(first.memory, first.address, kind, shape)
    at = 0
    if core.side == "vector" and split != WHOLE:
        rows, cols = view.shape[3:]
        at = core.sub * (rows * cols if split in _BY_ROWS else cols) * view.dtype.itemsize
    return replace(view, address=view.address + ring.slot(number) + at)


# ---- instructions

Act = Callable[[Machine, Pipe, Mapping[str, Any]], Any]  # of operands by their names


def _on_queue(act: Callable[[Case], Act], *, blocks: bool = False, defines: str = "") -> Do:
    """An instruction on a queue, which an operand holds or an id names."""

    def make(case: Case) -> Callable[..., Any]:
        run = act(case)
        find = by_id(case)
        names = case.row.operand_names

        def on_queue(core: Machine, *operands: Any) -> Any:
            named = dict(zip(names, operands, strict=True))
            pipe = named["pipe_handle"] if "pipe_handle" in named else find(core)
            return run(core, pipe, named)

        return on_queue

    return Do(make, blocks, defines=defines)


def _entry_type(case: Case) -> t.Type:
    """The type of a popped or allocated entry: a result, or a handle that gets its address."""
    return (case.op.results or case.op.operands)[0].type


def _push(case: Case) -> Act:
    split, type = int(case.word("split") or 0), case.type("tile")
    is_view = is_global(type)

    def push(core: Machine, pipe: Pipe, named: Mapping[str, Any]) -> Any:
        ring, me = pipe.ring(core, out=True), own(core)
        if is_view:
            if ring.pushed[me] >= ring.taken[me]:
                raise fail("PTO-D194", f"{core.name} pushes an entry of {ring.name} without talloc")
            ring.pushed[me] += 1
            return None
        full = ring.room(core, split)
        if full is not None:
            return full
        tile = as_tile(named["tile"], type)
        if ring.epilogue is not None and tile.type.role is Role.ACC:
            tile = finished(core, tile, ring.epilogue, ring.number)
        _send(core, ring, outgoing(core, tile), split)
        ring.taken[me] += 1
        ring.pushed[me] += 1
        return None

    return push


def _pop(case: Case) -> Act:
    split, type = int(case.word("split") or 0), _entry_type(case)
    tile = None if is_global(type) else tile_type(type)

    def pop(core: Machine, pipe: Pipe, named: Mapping[str, Any]) -> Any:
        ring, me = pipe.ring(core, out=False), own(core)
        empty = ring.ready(core, split)
        if empty is not None:
            return empty
        if tile is None:
            popped: Any = _entry(core, ring, type, int(ring.popped[me]), split)
        else:
            popped = _receive(core, ring, tile, _asked_region(tile, named), split)
        ring.popped[me] += 1
        if ring.entry is not None and tile is not None:
            ring.free(core)
        return popped

    return pop


def _asked_region(type: TileType, named: Mapping[str, Any]) -> Valid | None:
    """The valid region that operands give a popped tile; a handle keeps its own."""
    handle = named.get("tile")
    if isinstance(handle, Unbound):
        return handle.valid
    if isinstance(handle, Tile):
        return handle.get_valid()
    return valid_region(type, named.get("valid_row"), named.get("valid_col"))


def _allocate(case: Case) -> Act:
    split, type = int(case.word("split") or 0), _entry_type(case)

    def allocate(core: Machine, pipe: Pipe, named: Mapping[str, Any]) -> Any:
        ring, me = pipe.ring(core, out=True), own(core)
        full = ring.room(core, split)
        if full is not None:
            return full
        entry = _entry(core, ring, type, int(ring.taken[me]), split)
        ring.taken[me] += 1
        return entry

    return allocate


def _free(case: Case) -> Act:
    """Free a slot. A tile popped from global memory is a copy: its slot is already free."""
    has_entry = case.type("entry") is not None

    def free(core: Machine, pipe: Pipe, named: Mapping[str, Any]) -> None:
        ring = pipe.ring(core, out=False)
        if ring.entry is None or has_entry:
            ring.free(core)

    return free


# By id, which compiled code knows, and by a handle.
PUSH_TO, PUSH = (_on_queue(_push, blocks=True) for _ in range(2))
POP_FROM, POP = _on_queue(_pop, blocks=True), _on_queue(_pop, blocks=True, defines="tile")
ALLOCATE_TO = _on_queue(_allocate, blocks=True)
ALLOCATE = _on_queue(_allocate, blocks=True, defines="entry")
FREE_FROM, FREE = (_on_queue(_free) for _ in range(2))
