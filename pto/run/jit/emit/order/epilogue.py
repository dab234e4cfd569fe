"""The conversion of an accumulator that a push sends: element type, layout and relu of the epilogue
of its queue. The reference engine applies scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pto.core.dtypes import DType
from pto.core.global_layout import ND as GLOBAL_ND
from pto.core.layout import ND, Layout
from pto.core.tile import Role
from pto.isa.meaning.cube.accumulator import Epilogue, Outlet
from pto.isa.meaning.handle import config
from pto.isa.meaning.memory import registers
from pto.isa.meaning.order import queue, ring
from pto.isa.row.traits import Control
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.order.ring import number_of
from pto.run.jit.emit.tile.elements import TileRef, ViewRef
from pto.run.jit.emit.tile.mover import Mover
from pto.run.jit.emit.tile.tile_layouts import extent, tile_access, tile_layout
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access, Strided
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.text import Text
from pto.run.jit.runtime.context import epilogue_bits
from pto.run.jit.runtime.values import TileDesc, ViewDesc

_SETS = (config.QUANT_SCALAR, config.QUANT_VECTOR)
_CONTEXT = "%p4"  # the parameter after sizes and addresses


@dataclass(frozen=True, slots=True)
class PushConversion:
    """The conversion of an accumulator by the epilogue of a queue."""

    dtype: DType  # of what is sent
    layout: Layout  # in a slot of the consumer's buffer
    relu: str
    epilogue: int  # hash of the epilogue

    def send(self, s: OpContext, tile: TileDesc, dst: Access) -> None:
        """Convert and store elements in a slot, row by row or column by column."""
        source = tile_access(s, tile)
        unsupported_if(len(dst.layout.rows) > 1 or len(dst.layout.cols) > 1, "boxes in a slot")
        named = TileDesc(("", "%p0", "%p1"), tile.type, tile.pitch)
        rows, cols = tile.valid
        places = ("ptr", dst.pointer), ("ptr", source.pointer)
        given = Parameters(("i64", rows), ("i64", cols), *places, ("ptr", "%ctx"))
        layout, profile = dst.layout.renamed(given.name), s.case.profile

        def make(name: str) -> str:
            text, unit = Text(s.e.unit.declare), s.e.unit

            def word(index: int) -> str:
                unit.needs.words.add(index)
                return text.load_fixed("ptr", text.at(_CONTEXT, 8 * index))

            outlet = Outlet(tile.type.dtype, self.dtype, self.relu, profile.scaling)
            self._write(Mover(text, [], word, False), outlet, named, layout)
            return text.procedure(name, given.types)

        key = repr(("send", profile.name, self, tile.type, tile.pitch, layout))
        s.x.do(f"call void {s.e.unit.shared(key, make)}({given.listed})")

    def _write(self, x: Mover, outlet: Outlet, tile: TileDesc, dst: Strided) -> None:
        """The function: rows and columns, slot and tile are its parameters."""
        rows, cols = (Number(x.x, n) for n in tile.valid)
        src = TileRef(tile, "%p3", (rows, cols), tile_layout(tile), extent(tile))
        steps = [Number(x.x, axis[0].stride) for axis in (dst.rows, dst.cols)]
        one, none = Number(x.x, 1), Number(x.x, 0)
        words: Any = x  # `Outlet` is typed with the words on NumPy
        place = ViewDesc(("",) * 12, self.dtype, GLOBAL_ND)
        slot = ViewRef(place, "%p2", (one, one, one, rows, cols), (none, none, none, *steps))

        def write(saturate: bool) -> None:
            change: Any = outlet.change(words, None, None, 0, saturate=saturate)
            x.place(rows, cols, lambda i, j: ((i, j), change(x.read(src, i, j), j), None), slot)

        keeps = x.get(registers.CTRL) >> registers.KEEP_SPECIALS & 1 == 1
        x.when(keeps, lambda: write(False), lambda: write(True))


def push_conversion(s: OpContext, tile: TileDesc) -> PushConversion | None:
    """The conversion of the accumulator that is pushed here; None if it is copied."""
    if tile.type.role is not Role.ACC:
        return None
    number, how = number_of(s), _epilogue(s)
    sets = [s.e.case(op) for op in s.e.compiler.module.walk() if op.body in _SETS]
    is_next = any(config.scale_register(case) == registers.TILE_QUANT for case in sets)
    unsupported_if(is_next or (how is not None and how.scales), "a push with a scale")
    if how is None:
        return None
    is_whole = int(s.case.word("split") or 0) == ring.WHOLE
    unsupported_if(not is_whole, "halves of what is converted")
    layout, bits = queue.LAYOUTS.get(how.layout, ND), epilogue_bits(how, number)
    return PushConversion(how.result(tile.type.dtype), layout, how.relu, bits)


def _epilogue(s: OpContext) -> Epilogue | None:
    """The epilogue of the queue, if this function opens it."""
    function = next(s.op.around(Control.FUNCTION), s.op)
    opened = [s.e.case(op) for op in function.walk() if op.body is ring.INIT_FRONTEND]
    number = number_of(s)
    found = {ring.epilogue_of(case) for case in opened if int(case.word("id") or 0) == number}
    unsupported_if(len(found) > 1, "a queue that is opened in several ways")
    return next(iter(found), None)
