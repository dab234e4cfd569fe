"""The trace of one kernel: a program under construction; `regions.py` has the valid regions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Unpack

from pto.core.dtypes import I64
from pto.core.errors import Diagnostic, PtoError
from pto.ir.builder import INDEX, Given, Operands, Parts, scalar_type
from pto.ir.graph import Module, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.row.attributes import Str
from pto.isa.row.instr import Instr
from pto.isa.row.traits import Control
from pto.isa.row.types import Mask, TileBuf
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.scalar.structure import RETURN
from pto.isa.vector.predicate import PSET
from pto.lang.aliasing import require_unshared
from pto.lang.call.place import KernelError, assigned_names, here, located, mistake
from pto.lang.coalesce import Coalesce
from pto.lang.mark import Mark
from pto.lang.regions import TileRegions
from pto.lang.values.asked import SizeOfCall
from pto.lang.values.scalars import Scalar, as_value
from pto.lang.values.tiles import Extents, Tile
from pto.prove.assume import GRID
from pto.transform.reuse import Reuse
from pto.transform.tidy import drop_unused, tidy

if TYPE_CHECKING:
    from pto.lang.front.values import OuterBlock

T = TypeVar("T")


class Trace(TileRegions):
    """A session that records instruction calls as operations of a program."""

    eager: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        profile: str,
        module: Module,
        function: Operation,
        *,
        debug: bool = True,
        of_any_size: bool = False,
    ) -> None:
        self.name = f"kernel {name}"
        self.profile = profile
        self.module = module
        super().__init__(function)
        self.copies: list[Operation] = []  # of tiles to the buffers of variables
        self.hints: list[tuple[Value, Value]] = []  # buffers of a variable before and after
        self.unbound: dict[str, str] = {}  # variables without a value -> reason
        self.advanced: dict[int, int] = {}  # how often the kernel took from an iterator, by id
        self.is_open = True
        self.debug = debug
        self._scalar = SizeOfCall if of_any_size else Scalar[object]
        self.speaks = False  # it prints
        self.limits: dict[str, int] = {}  # upper bounds of named sizes, from tile shapes
        self.cut: list[Diagnostic] = []  # stores of tiles that are larger than their arrays
        self.outer: tuple[OuterBlock, ...] = ()  # bodies of loops over the generators being run
        self._grid: list[Value] = []
        self.masks: dict[int, tuple[Value, ...]] = {}  # all-true ones, by bits
        self._known: dict[Hashable, Any] = {}  # what `once` has computed
        self._broken: KernelError | None = None
        self._loose: dict[
            Value, list[Value]
        ] = {}  # loop arguments with a type that may still change

    def notice(self, finding: Diagnostic) -> None:
        """A warning, shown when the program first runs."""
        self.cut.append(finding)

    # ---- values

    def emit(self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]) -> list[Value]:
        return self.append(row, operands, **parts).results

    def append(self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]) -> Operation:
        self.require_whole()
        for operand in (operands or {}).values():
            for value in (operand,) if isinstance(operand, Value) else operand or ():
                if not self.builder.sees(value):
                    raise _out_of_sight(value)
                if value in self._loose:
                    self.tighten(value, None)
        parts["names"] = parts.get("names") or assigned_names()
        parts["where"] = here()
        try:
            return self.builder.append(row, operands, **parts)
        except PtoError as error:
            raise located(error) from None

    def constant(self, number: float | int | bool, type: ScalarType) -> Value:
        return self.builder.constant(number, type)

    def scalar(self, value: Value) -> Any:
        return self._scalar(value, self)

    def array(self, array: object) -> Any:
        raise mistake(
            "PTO-U212",
            "an array of the host cannot be used inside a kernel",
            help="pass it as an argument annotated pto.Global[...]",
        )

    def all_lanes(self, bits: int) -> Value:
        """An all-true mask, one per scope."""
        for mask in self.masks.get(bits, ()):
            if self.builder.sees(mask):
                return mask
        attrs = {"pattern": Str("PAT_ALL")}
        names = ["all"]
        (mask,) = self.emit(PSET[bits], attrs=attrs, results=[Mask(bits)], names=names)
        self.masks[bits] = (*self.masks.get(bits, ()), mask)
        return mask

    def broken(self, error: KernelError) -> None:
        self._broken = self._broken or error

    def require_whole(self) -> None:
        if self._broken is not None:
            raise self._broken

    # ---- tiles

    def alloc(self, type: TileBuf, valid: Extents | None, address: int | None) -> Tile:
        operands: dict[str, Given] = {"addr": None if address is None else as_value(address, _I64)}
        if valid is not None and None in type.tile.valid:
            operands["valid_row"], operands["valid_col"] = (as_value(n, INDEX) for n in valid)
        op = self.append(ALLOC_TILE, operands, results=[type], names=assigned_names() or ["tile"])
        region = type.tile.shape if valid is None else tuple(valid)
        tile = Tile(op.results[0], self, valid is not None, region)
        self.tiles.append(tile)
        return tile

    def forget(self, value: Value) -> None:
        """Drop the tile of an allocation that was erased."""
        self.tiles = [tile for tile in self.tiles if tile.value is not value]

    def place(self, tile: Tile, address: Value) -> None:
        op = tile.value.owner
        if isinstance(op, Operation):
            op.set_group("addr", [address])

    # ---- arguments of the launch

    @property
    def has_grid(self) -> bool:
        return bool(self._grid)

    def grid(self) -> list[Value]:
        """The extents of the grid along its first axes, as parameters added on first use."""
        if not self._grid:
            entry = self.builder.blocks[0]
            self._grid = [Value(INDEX, name, entry) for name in GRID]
            entry.args += self._grid
        return self._grid

    def limit(self, extent: object, most: int) -> bool:
        value = getattr(extent, "value", None)
        if not isinstance(value, Value) or value.owner is not self.builder.blocks[0]:
            return False
        self.limits[value.name] = min(most, self.limits.get(value.name, most))
        return True

    # ---- expressions

    def sees(self, tile: Tile) -> bool:
        return self.builder.sees(tile.value)

    def adopt(self, tile: Tile, region: tuple[int, int]) -> Tile:
        """A tile over the bytes of another, with a valid region that follows its data."""
        adopted = Tile(tile.value, self, False, region)
        self.tiles.append(adopted)
        return adopted

    def in_l1(self, tile: Tile, type: TileBuf) -> Tile | None:
        """A tile that was loaded and nothing else is loaded to L1 instead, as a tile of `type`."""
        if len(tile.value.uses) != 1 + len(tile.settings):
            return None
        tile.value.type, tile.origin = type, None
        region = tile.known_region
        tile.retype(region if all(isinstance(n, int) for n in region) else tile.shape)
        return tile

    def first_time(self, tile: Tile) -> Any:
        owner = tile.value.owner
        inner = dropwhile(lambda b: b is not getattr(owner, "parent", None), self.builder.blocks)
        first = None
        for block in [*inner][1:]:
            op = block.region.owner
            if op.control in (Control.IF, Control.WHILE):
                raise _first_in_branch(tile)
            low = op.operand("lower") if op.control is Control.FOR else None
            if low is not None:
                begins = self.scalar(block.args[0]) == self.scalar(low)
                first = begins if first is None else first & begins
        return first

    def is_below(self, number: object, end: object) -> bool:
        for block in self.builder.blocks:
            loop = block.region.owner
            if loop.control is Control.FOR and block.args[0] is getattr(number, "value", None):
                return loop.operand("upper") is getattr(end, "value", None)
        return False

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        scalar = self._known.get(key)
        if scalar is None or not self.builder.sees(scalar.value):
            scalar = self._known[key] = make()
        return scalar

    # ---- arguments of loops

    def loosen(self, args: list[Value]) -> None:
        """Mark loop arguments initialised by Python numbers: their first use decides the type."""
        self._loose.update((arg, args) for arg in args)

    def tighten(self, value: Value, type: ScalarType | None) -> None:
        for alias in self._loose.get(value, ()):
            alias.type = type or alias.type
            self._loose.pop(alias, None)

    def is_loose(self, value: Value) -> bool:
        return value in self._loose

    # ---- tracing again

    def mark(self) -> Mark:
        """The state of the trace here, to which `rollback` returns."""
        return Mark(self)

    def rollback(self, mark: Mark) -> None:
        """Discard operations traced since `mark` in the innermost open block."""
        mark.restore()

    # ---- the end

    def finish(self) -> Module:
        """Close the function, decide the types of tiles, remove unused operations."""
        self.require_whole()
        self.builder.append(RETURN)
        function = self.builder.function
        if self.copies:
            require_unshared(function, self.copies)
            self.tiles = Coalesce(function, self.tiles, self.copies, self.hints).run()
        self._reuse(function)
        for tile in self.tiles:
            self.settle(tile)
        drop_unused(function)
        tidy(function)
        return self.module

    def _reuse(self, function: Operation) -> None:
        """Place temporaries in the buffers of their sources where possible."""
        reuse = Reuse(function, [tile.value for tile in self.tiles if tile.is_temporary])
        reuse.run()
        by_value = {tile.value: tile for tile in self.tiles}
        for tile in self.tiles:
            shared = by_value.get(reuse.found(tile.value))
            if shared is not None and shared is not tile:
                shared.seen |= tile.seen
        self.tiles = [t for t in self.tiles if reuse.found(t.value) is t.value]


_I64 = scalar_type(I64)


def _out_of_sight(value: Value) -> KernelError:
    return mistake(
        "PTO-U216",
        f"%{value.name} was made inside a loop, branch or scope that has ended",
        help="bind it to a variable, which keeps its value after the loop; a list or an attribute"
        " does not",
    )


def _first_in_branch(tile: Tile) -> KernelError:
    return mistake(
        "PTO-U086",
        f"the first product into %{tile.value.name} is in a branch or a `while`: if that is not"
        " executed, the accumulator has no value",
        help="multiply once before it, or make the accumulator inside it",
    )
