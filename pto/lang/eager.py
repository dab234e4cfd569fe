"""Eager mode: every instruction is executed when it is called, on one core, with arrays as memory.

Numbers are Python numbers, loops and branches are Python's, `print(t)` shows the values of a tile.
Each instruction is checked as in a program; there are no races, because nothing runs in parallel.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import I64, DType, dtype
from pto.core.errors import Diagnostic, PtoError
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Space
from pto.core.pointer import Pointer as PointerValue
from pto.core.tile import Tile as CoreTile
from pto.ir.builder import INDEX, Builder, Operands, Parts, new_function, new_module, scalar_type
from pto.ir.graph import Operation, Value
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.row.attributes import Str
from pto.isa.row.instr import Instr
from pto.isa.row.types import Mask, TileBuf, Type, View
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.scalar.structure import RETURN
from pto.isa.vector.predicate import PSET
from pto.lang.call.misused import misused
from pto.lang.call.place import KernelError, here, located, mistake
from pto.lang.call.session import Session
from pto.lang.picture import picture
from pto.lang.values.tiles import Extent, Extents, Tile
from pto.lang.values.views import Whole, contiguous, pointer_type
from pto.run.launch.call import warn
from pto.run.launch.engine import wants_coverage
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.run.reference.code import FunctionCode
from pto.run.reference.compile import Compiler
from pto.target.defaults import DEFAULTS
from pto.target.profile import profile as find_profile
from pto.verify import operation

_ALIGN = 512  # every buffer's alignment divides it


class EagerValue(Value):
    """A value of eager mode: an SSA value with its content."""

    __slots__ = ("content",)

    def __init__(
        self, type: Type, name: str, content: object, owner: Operation | None = None
    ) -> None:
        super().__init__(type, name, owner)
        self.content = content


def content(value: Value) -> Any:
    if not isinstance(value, EagerValue):
        raise RuntimeError(f"{value!r} holds nothing")
    return value.content


class Eager(Session):
    """A session that executes each instruction immediately on one core."""

    eager: ClassVar[bool] = True

    def __init__(self, profile: str, block: int = 0, blocks: int = 1) -> None:
        self.profile = profile
        self.name = "eager mode"
        self.is_open = True
        self._facts = find_profile(profile)
        self._module = new_module({"pto.target_arch": Str(profile)})
        self._function = new_function(self._module, "eager", [])
        self._builder = Builder(self._function)
        self._block = self._function.regions[0].block
        self._core = Core(Cluster(Device(self._facts), block, blocks), self._facts, "both", 0, 1)
        self._taken: list[tuple[weakref.ref[Tile], Space, int, int]] = []

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if isinstance(error, Exception) and (advice := misused(error)):
            raise advice from advice.__cause__

    # ---- values

    def emit(self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]) -> list[Value]:
        try:
            parts["where"] = here()
            op = self._builder.make(row, operands, **parts)
            self._require_legal(op)
            return [*self._execute(op)]
        except PtoError as error:
            raise located(error) from None

    def _require_legal(self, op: Operation) -> None:
        self._block.set_ops([op])
        findings = operation.check(self._module, self._facts)
        errors = [d for d in findings if d.severity == "error"]
        if errors:
            raise KernelError(*errors)

    def _execute(self, op: Operation) -> list[EagerValue]:
        """Execute one operation, as a function called with the contents of its operands."""
        operands = list(dict.fromkeys(op.operands))
        end = self._builder.make(RETURN, {"values": op.results})
        self._block.args[:] = operands
        self._block.set_ops([op, end])
        code = Compiler(self._module, self._facts, "both").code(self._function)
        with np.errstate(all="ignore"):
            contents = _results(code, self._core, [content(v) for v in operands])
        pairs = zip(op.results, contents, strict=True)
        return [EagerValue(v.type, v.name, value, op) for v, value in pairs]

    def constant(self, number: float | int | bool, type: ScalarType) -> Value:
        constant = self._builder.constant(number, type)
        is_float = type.dtype is not None and type.dtype.is_float
        number_held = type.dtype.numpy.type(number) if is_float and type.dtype else int(number)
        return EagerValue(type, constant.name, number_held, constant.maker)

    def scalar(self, value: Value) -> Any:
        number = content(value)
        return int(number) if isinstance(number, int | np.integer) else float(number)

    def all_lanes(self, bits: int) -> Value:
        attrs = {"pattern": Str("PAT_ALL")}
        return self.emit(PSET[bits], attrs=attrs, results=[Mask(bits)])[0]

    # ---- arrays

    def array(self, array: npt.NDArray[Any]) -> Whole:
        """A NumPy array, or a slice of one, as global memory; nothing is copied."""
        kind: DType = dtype(array.dtype)
        tensor = GlobalTensor.from_array(array, kind)
        type = View(array.shape, scalar_type(kind), partition=False)
        pointer = EagerValue(pointer_type(kind), "array", PointerValue(tensor.memory, 0, kind))
        value = EagerValue(type, "array", tensor)
        return Whole(value, self, pointer, array.shape, contiguous(array.shape))

    # ---- tiles

    def alloc(self, type: TileBuf, valid: Extents | None, address: int | None) -> Tile:
        region = type.tile.shape if valid is None else (int(valid[0]), int(valid[1]))
        static = TileBuf(type.elem, replace(type.tile, valid=region))
        space, size = type.tile.space, type.tile.nbytes
        start = self._free(space, size) if address is None else int(address)
        addr = self.constant(start, scalar_type(I64))
        (value,) = self.emit(ALLOC_TILE, {"addr": addr}, results=[static], names=["tile"])
        tile = Tile(value, self, valid is not None, region)
        self._taken.append((weakref.ref(tile), space, start, start + size))
        return tile

    def _free(self, space: Space, size: int) -> int:
        """The address of the first gap between the live tiles."""
        self._taken = [entry for entry in self._taken if entry[0]() is not None]
        start = 0
        for low, high in sorted((a, b) for _, s, a, b in self._taken if s is space):
            if start + size <= low:
                break
            start = max(start, -(-high // _ALIGN) * _ALIGN)
        capacity = self._facts.buffers[space.value]
        if start + size > capacity:
            raise mistake(
                "PTO-M200",
                f"{size:,} bytes do not fit: {capacity - start:,} of {capacity:,} bytes"
                f" of {space.value} are free",
                help="tiles are freed when Python drops them: del t, or reuse one",
            )
        return start

    def place(self, tile: Tile, address: Value) -> None:
        tile_content: CoreTile = content(tile.value)
        moved = tile_content.moved(tile_content.memory, content(address))
        tile.value = EagerValue(tile.value.type, tile.value.name, moved, tile.value.maker)

    def region(self, tile: Tile) -> Extents:
        return content(tile.value).get_valid()

    def set_region(self, tile: Tile, rows: Extent, cols: Extent) -> None:
        tile_content: CoreTile = content(tile.value)
        if tile_content.get_valid() == (rows, cols):
            return
        if tile.fixed:
            raise mistake(
                "PTO-V200",
                f"the valid region of this tile is fixed as {tile_content.get_valid()}",
                help="leave out valid= in pto.tile, and the region follows the data",
            )
        try:
            tile_content.set_valid(rows, cols)
        except PtoError as error:
            raise located(error) from None
        type = tile.value.type
        if isinstance(type, TileBuf):
            static = TileBuf(type.elem, replace(type.tile, valid=(rows, cols)))
            tile.value = EagerValue(static, tile.value.name, tile_content, tile.value.maker)

    def numpy(self, tile: Tile) -> npt.NDArray[Any]:
        tile_content: CoreTile = content(tile.value)
        rows, cols = tile_content.get_valid()
        return tile_content.read()[:rows, :cols].copy()

    # ---- expressions

    def adopt(self, tile: Tile, region: tuple[int, int]) -> Tile:
        """A tile over the bytes of another, with a valid region that follows its data."""
        return Tile(tile.value, self, False, region)

    def in_l1(self, tile: Tile, type: TileBuf) -> Tile:
        """A copy of a loaded tile in L1; a traced kernel would load it there directly."""
        copy = self.alloc(type, None, None)
        self.set_region(copy, *self.region(tile))
        content(copy.value).write_valid(content(tile.value).read_valid())
        return copy

    def grid(self) -> list[Value]:
        """All blocks along the first axis."""
        return [self.constant(n, INDEX) for n in (self._core.blocks, 1)]

    def notice(self, finding: Diagnostic) -> None:
        if wants_coverage():
            warn(finding)

    def show(self, tile: Tile) -> str:
        return picture(content(tile.value))

    def show_html(self, tile: Tile) -> str:
        from pto.lang.notebook import tile_html  # only notebooks need it

        return tile_html(content(tile.value))


def _results(code: FunctionCode, core: Core, values: list[object]) -> list[object]:
    """The results of the function; a wait that can never end is an error."""
    if not code.can_wait:
        return code.call(core, values)
    running = code.gen(core, values)
    try:
        wait = next(running)
    except StopIteration as done:
        return done.value
    raise mistake(
        "PTO-U214",
        f"{wait.op.name} waits for an event that nothing can trigger: eager mode runs one core",
        help="eager mode executes in program order: trigger the event before the wait",
    )


def eager(profile: str | None = None, block: int = 0, blocks: int = 1) -> Eager:
    """`with pto.eager("a5"):` executes instructions immediately; NumPy arrays are global memory."""
    return Eager(profile or DEFAULTS.python, block, blocks)
