"""Tiles in their buffers: capacity, alignment and overlap, as far as addresses are constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pto.core.errors import Diagnostic, Note
from pto.core.tile import TileType
from pto.ir.graph import Module, Operation, Value
from pto.ir.liveness import Lifetime, timeline
from pto.isa.handle.config import TASSIGN
from pto.isa.handle.tile import ALLOC_MULTI_TILE, ALLOC_TILE
from pto.isa.order.queue_setup import RESERVE_BUFFER
from pto.isa.row.types import TileBuf
from pto.target.facts import Profile
from pto.target.profile import smallest
from pto.verify.operation import PLACED


@dataclass(frozen=True, slots=True)
class PlacedTile:
    """A tile at a constant address, and its lifetime within its function."""

    op: Operation
    tile: TileType
    space: str
    start: int
    end: int
    alive: Lifetime | None  # None: never used


def check(module: Module, profile: Profile, level: int | None) -> Iterator[Diagnostic]:
    for function in module.functions():
        yield from (*_leveled(function, level), *_moved(function))
        placed = list(_placed(function))
        for tile in placed:
            yield from _fits(tile, profile)
        yield from (*_aligned(function, profile), *_overlaps(placed))
        yield from _too_large(function, profile)


def _allocs(function: Operation) -> Iterator[tuple[Operation, Value, TileType]]:
    for op in function.walk():
        if op.row is ALLOC_TILE and op.results:
            value = op.results[0]
            if isinstance(value.type, TileBuf):
                yield op, value, value.type.tile


def _leveled(function: Operation, level: int | None) -> Iterator[Diagnostic]:
    """Addresses come from the program at level 3, from a compiler at level 2."""
    for op in function.walk() if level is not None else ():
        says = _says_where(op)
        if level == PLACED and says is False:
            needs = f"needs {_WHERE[op.row]} at level 3: no compiler places it"
            yield op.finding("PTO-M107", needs)
        elif level != PLACED and says:
            yield op.finding("PTO-M100", "has an address, which is allowed at level 3 only")


def _moved(function: Operation) -> Iterator[Diagnostic]:
    """Only a tile that the program placed may be moved."""
    for op in function.walk():
        source = op.operands[0].owner if op.row is TASSIGN and op.operands else None
        if not isinstance(source, Operation) or source.row is not ALLOC_TILE:
            continue
        if not source.group("addr"):
            note = Note("it is moved here", op.loc)
            needs = f"requires 'addr' where {op.name} moves the tile"
            yield source.finding("PTO-M101", needs, notes=(note,))


_WHERE: dict[object, str] = {
    RESERVE_BUFFER: "base and auto = false",
    ALLOC_TILE: "addr",
    ALLOC_MULTI_TILE: "addr",
}


_PLACING = (ALLOC_TILE, ALLOC_MULTI_TILE, TASSIGN)


def _says_where(op: Operation) -> bool | None:
    """True if an allocation has an address; None if the operation does not allocate."""
    if op.row is TASSIGN:
        return True
    if op.row is RESERVE_BUFFER:
        return "base" in op.attrs
    return bool(op.group("addr")) if op.row in _WHERE else None


def _placed(function: Operation) -> Iterator[PlacedTile]:
    allocs = list(_allocs(function))
    if not any(op.group("addr") for op, _, _ in allocs):
        return
    times = timeline(function, [value for _, value, _ in allocs])
    for op, value, tile in allocs:
        address, alive = op.operand("addr"), times.of(value)
        start = None if address is None else address.number
        if start is not None:
            end = start + tile.nbytes
            yield PlacedTile(op, tile, tile.space.value, start, end, alive)


def _fits(placed: PlacedTile, profile: Profile) -> Iterator[Diagnostic]:
    size = profile.buffers[placed.space]
    where = f"{placed.space.upper()}[{placed.start:#x}..{placed.end:#x})"
    if placed.end > size:
        message = f"tile at {where} ends outside the buffer of {size:,} bytes on {profile}"
        yield Diagnostic("PTO-M102", message, placed.op.loc)
    else:
        yield from _fits_devices(placed.op, where, placed.space, placed.end, profile)


def _fits_devices(
    op: Operation, subject: str, space: str, end: int, profile: Profile
) -> Iterator[Diagnostic]:
    """Warn about a tile that fits the profile but not every device of it."""
    chip = smallest(profile, space) if profile.device is None else None
    if chip is not None and end > (limit := chip.buffers[space]):
        fits = f"{subject} fits profile {profile}"
        message = f"{fits}, but {chip.name} has only {limit:,} bytes of {space}"
        help = f"`--device {chip.name}` makes this an error"
        yield Diagnostic("PTO-M103", message, op.loc, "warning", help=help)


def _aligned(function: Operation, profile: Profile) -> Iterator[Diagnostic]:
    base = profile.alignment.base
    for op in function.walk():
        address = op.operand("addr") if op.row in _PLACING else None
        start = None if address is None else address.number
        if start is not None and start % base:
            message = (
                f"tile address {start:#x} is not a multiple of {base} bytes, as {profile} requires"
            )
            yield Diagnostic("PTO-M104", message, op.loc)


# Headers give these tables a few KB; PTOAS plans them as large as this (docs/decisions_isa.md).
_CONTESTED = {"bias": 65_536, "fixpipe": 253_952}


def _too_large(function: Operation, profile: Profile) -> Iterator[Diagnostic]:
    """Tiles without an address that are larger than their buffer."""
    for op, _, tile in _allocs(function):
        space = tile.space.value
        if op.group("addr") or not tile.nbytes:
            continue
        size = profile.buffers[space]
        tile_text = f"{tile.rows}x{tile.cols} {tile.dtype.name} tile of {tile.nbytes:,} bytes"
        if tile.nbytes > size:
            message = f"{tile_text} is larger than {space} with {size:,} bytes on {profile}"
            severity = "warning" if tile.nbytes <= _CONTESTED.get(space, 0) else "error"
            yield Diagnostic("PTO-M105", message, op.loc, severity)
        else:
            yield from _fits_devices(op, tile_text, space, tile.nbytes, profile)


def _overlaps(placed: list[PlacedTile]) -> Iterator[Diagnostic]:
    """Two tiles in use at one time share bytes. The same start is a deliberate second name."""
    by_space: dict[str, list[PlacedTile]] = {}
    for tile in placed:
        by_space.setdefault(tile.space, []).append(tile)
    for tiles in by_space.values():
        tiles.sort(key=lambda p: (p.start, p.end))
        active: list[PlacedTile] = []
        for tile in tiles:
            active = [a for a in active if a.end > tile.start]
            yield from (_overlap(a, tile) for a in active[:8] if _clash(a, tile))
            active.append(tile)


def _clash(a: PlacedTile, b: PlacedTile) -> bool:
    if a.alive is None or b.alive is None or not a.alive.meets(b.alive):
        return False
    inside = b.start >= a.start and b.end <= a.end  # a window of a larger tile
    return a.start != b.start and not inside


def _overlap(a: PlacedTile, b: PlacedTile) -> Diagnostic:
    shared = f"{a.space.upper()}[{max(a.start, b.start):#x}..{min(a.end, b.end):#x})"
    message = f"two tiles that are live at the same time share {shared}"
    note = Note("the other tile is placed here", a.op.loc)
    return Diagnostic("PTO-M106", message, b.op.loc, "warning", notes=(note,))
