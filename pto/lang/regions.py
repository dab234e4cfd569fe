"""Valid regions of the tiles of a trace.

Unless the user fixes it, the region of a tile is that of its data, static if known during tracing,
else set at run time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Unpack

from pto.ir.builder import INDEX, Builder, Operands, Parts, new_block
from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, GET_VALIDSHAPE, SET_VALIDSHAPE
from pto.isa.row.instr import Instr
from pto.lang.call.place import KernelError, mistake
from pto.lang.call.session import Session
from pto.lang.values.scalars import as_value
from pto.lang.values.tiles import Extent, Extents, Tile, region_text, same_region


class RegionScope:
    """Changes of valid regions inside one block."""

    def __init__(self, loop: bool, tiles: int) -> None:
        self.loop = loop
        self.tiles = tiles  # how many there were before
        self.changed: dict[Tile, Extents] = {}  # their regions before
        self.early: set[Tile] = set()  # read before they changed


class TileRegions(Session):
    """A session that follows the valid regions of tiles through blocks of the program."""

    def __init__(self, function: Operation) -> None:
        self.builder = Builder(function)
        self.tiles: list[Tile] = []
        self.scopes: list[RegionScope] = []

    @abstractmethod
    def append(self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]) -> Operation:
        """Record an operation here."""

    @abstractmethod
    def broken(self, error: KernelError) -> None:
        """Record an error where none can be raised; the next instruction raises it."""

    def region(self, tile: Tile) -> Extents:
        """The valid rows and columns of a tile here; run-time values if they depend on a branch."""
        for scope in self.scopes:
            if tile not in scope.changed:
                scope.early.add(tile)
        extents = tile.known_region
        static = all(isinstance(n, int) for n in extents)
        tile.seen.add(extents if static else None)
        rows, cols = (self._extent(tile, axis, extent) for axis, extent in enumerate(extents))
        return rows, cols

    def _extent(self, tile: Tile, axis: int, extent: Extent) -> Extent:
        if isinstance(extent, int) or (extent is not None and self.builder.sees(extent.value)):
            return extent
        sizes = self.emit(GET_VALIDSHAPE, {"source": tile.value}, results=[INDEX, INDEX])
        return self.scalar(sizes[axis])

    def set_region(self, tile: Tile, rows: Extent, cols: Extent) -> None:
        """Set the valid region of the tile from here on."""
        before = tile.known_region
        if same_region(before, (rows, cols)):
            return
        if tile.fixed:
            raise mistake(
                "PTO-V200",
                f"the valid region of %{tile.value.name} is fixed as {region_text(before)}, it"
                f" cannot become {region_text((rows, cols))}",
                help="leave out valid= in pto.tile, and the region follows the data",
            )
        for scope in self.scopes:
            scope.changed.setdefault(tile, before)
        tile.known_region = (rows, cols)
        operands = {
            "source": tile.value,
            "valid_row": as_value(rows, INDEX),
            "valid_col": as_value(cols, INDEX),
        }
        tile.settings.append(self.append(SET_VALIDSHAPE, operands))

    # ---- blocks

    def open(self, op: Operation, args: Sequence[Value] = (), *, loop: bool = False) -> Block:
        """Open a new region of `op` for the following operations."""
        block = new_block(op, args)
        self.reopen(block, loop=loop)
        return block

    def reopen(self, block: Block, *, loop: bool = False) -> None:
        self.builder.blocks.append(block)
        self.scopes.append(RegionScope(loop, len(self.tiles)))

    @contextmanager
    def inside(self, block: Block, *, certain: bool = False) -> Generator[None]:
        """A context in which operations are appended to a block that was closed."""
        self.reopen(block)
        yield
        self.close(certain=certain)

    def close(self, *, certain: bool = False) -> None:
        """Leave the innermost region; `certain`: it is executed exactly once."""
        scope = self.scopes.pop()
        self.builder.blocks.pop()
        if certain:
            return
        created = set(self.tiles[scope.tiles :])  # a list would compare tiles by element
        for tile, before in scope.changed.items():
            if same_region(tile.known_region, before) or tile in created:
                continue
            is_static = all(extent is not None for extent in before)  # `in` would compare numbers
            if scope.loop and tile in scope.early and is_static:
                self.broken(_unsteady(tile))
            tile.known_region = (None, None)

    def settle(self, tile: Tile) -> None:
        """Put the region into the type if it is static and equal at all uses; else `valid=?x?`."""
        if tile.fixed or not tile.settings:
            return
        if len(tile.seen) == 1 and None not in tile.seen:
            for op in tile.settings:
                op.erase()
            tile.retype(next(iter(tile.seen)) or tile.shape)
            return
        alloc = tile.value.owner
        if isinstance(alloc, Operation) and alloc.row is ALLOC_TILE:
            for name, extent in zip(("valid_row", "valid_col"), tile.shape, strict=True):
                alloc.set_group(name, [self.constant(extent, INDEX)])
        tile.retype((None, None))


def _unsteady(tile: Tile) -> KernelError:
    return mistake(
        "PTO-V201",
        f"the valid region of %{tile.value.name} at the start of this loop is another one in later"
        " iterations",
        help="load the tile before it is used in the loop, or make it inside the loop",
    )
