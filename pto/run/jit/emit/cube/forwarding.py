"""Copy forwarding: products read an operand at its source.

A move from L1 fills a tile of L0. If only products read the tile, and nothing writes its source
before the last of them, the move is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pto.core.memory import Space
from pto.core.tile import Role
from pto.ir.graph import Operation, Value
from pto.isa.meaning import Fold, Lane
from pto.isa.meaning.handle.view import SET_VALID
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.order.flags import IN_ORDER, SET_FLAG, WAIT_FLAG
from pto.isa.meaning.tile import extract, move
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.img2col import IMG2COL, matrix_of
from pto.isa.meaning.tile.matmul import PRODUCT
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.emit.cube.factors import Matrix, takes
from pto.run.jit.emit.cube.image import Image, image
from pto.run.jit.emit.names import meet
from pto.run.jit.emit.registry import is_cheap
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import grid
from pto.run.jit.llvm.text import Val, unsupported_if
from pto.run.jit.runtime.values import ScalarValue, TileDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter, OpContext

_FILLS: Final = (move.MOVE, extract.EXTRACT, IMG2COL)
_CONTROL: Final = (Control.FOR, Control.IF, Control.YIELD)


@dataclass(frozen=True, slots=True)
class ForwardedCopy:
    """The source of a move that is left out."""

    fill: Operation
    source: Matrix | Image
    known: str  # the run-time condition of forwarding; else the tile is filled


def fills_factor(op: Operation) -> bool:
    dst = op.operand("dst") if op.body in _FILLS and not op.results else None
    if dst is None or not isinstance(dst.type, t.TileBuf):
        return False
    return dst.type.tile.role in (Role.LEFT, Role.RIGHT)


def touches_no_tile(op: Operation) -> bool:
    """True for scalars, handles and flags."""
    if op.control is not None or not is_cheap(op):
        return False
    return bool(op.results) or op.body in (SET_FLAG, WAIT_FLAG, IN_ORDER)


def can_forward(e: Emitter, ops: Sequence[Operation], n: int) -> bool:
    """True if only products read the tile that ops[n] fills, and the source is unchanged until the
    last of them."""
    tile, source = ops[n].operand("dst"), ops[n].operand("src")
    if tile is None or source is None or id(tile) in e.cells or id(source) in e.cells:
        return False
    if not e.compiler.names.is_alone(tile):
        return False
    uses = [(m, op) for m, outer in enumerate(ops) for op in outer.walk() if tile in op.operands]
    if sum(op.operands.count(tile) for _, op in uses) != e.compiler.uses(ops[n])[id(tile)]:
        return False
    uses = [(m, op) for m, op in uses if op.body is not SET_VALID]  # once, before all other uses
    fills = [m for m, op in uses if op is ops[m] and fills_factor(op)]
    reads = [m for m, op in uses if op.body is PRODUCT and op.operand("dst") is not tile]
    if len(fills) + len(reads) != len(uses) or min(m for m, _ in uses) != fills[0]:
        return False
    end = next((m for m in fills if m > n), len(ops))
    last = max((m for m in reads if n < m < end), default=n)
    between = [op for outer in ops[n + 1 : last + 1] for op in outer.walk()]
    return last > n and all(_leaves_alone(e, op, source) for op in between)


def _leaves_alone(e: Emitter, op: Operation, source: Value) -> bool:
    """True if an operation is known not to write the bytes of a tile, and does not wait."""
    if op.control is not None:
        return op.control in _CONTROL
    if touches_no_tile(op) or op.row is None or op.results:
        return touches_no_tile(op)
    body = op.body
    if body is IMG2COL and matrix_of(e.case(op))[1]:
        return False  # sets a register that later im2col instructions read
    moves = (move.LOAD, move.STORE, PRODUCT)
    if not (isinstance(body, Lane | Fold | Conversion | Move) or body in moves):
        return False
    written = [v for o in op.row.operands if o.role != "in" for v in op.group(o.name)]
    return bool(written) and all(_is_elsewhere(e, value, source) for value in written)


def _is_elsewhere(e: Emitter, value: Value, source: Value) -> bool:
    if not isinstance(value.type, t.TileBuf) or not isinstance(source.type, t.TileBuf):
        return isinstance(value.type, t.View)  # of global memory
    if value.type.tile.space is not source.type.tile.space:
        return True
    if id(value) in e.cells or id(source) in e.cells:
        return False
    first, second = (e.compiler.names.span(each) for each in (value, source))
    return first is not None and second is not None and not meet(first, second)


def forwarded_copy(s: OpContext) -> ForwardedCopy:
    """The source that products may read instead of the tile that this instruction fills. Raises
    UnsupportedLowering if the tile must be filled. A window outside its tile is an error."""
    src, dst = s.need(TileDesc, "src"), s.need(TileDesc, "dst")
    if s.body is IMG2COL:
        return ForwardedCopy(s.op, *image(s, src, dst))
    relu = s.case.word("reluPreMode") not in (None, "no_relu")
    unsupported_if(
        relu or any(s.op.operand(name) for name in ("fp", "preQuantScalar", "dst1")),
        "more than a move",
    )
    unsupported_if(
        src.type.space is not Space.L1 or src.type.dtype is not dst.type.dtype,
        "elements that change on their way",
    )
    unsupported_if(dst.type.dtype.is_packed, "pairs, which lie along k in either factor")
    at: tuple[Val, Val] = (0, 0)
    if s.body is move.MOVE:
        unsupported_if(src.valid != dst.valid, "a part of a tile")
    else:
        unsupported_if(s.case.word("mode") is not None, "packed elements")
        at = s.need(ScalarValue, "indexRow").name, s.need(ScalarValue, "indexCol").name
        s.fault_unless(_is_inside(s, src, at, dst.valid))
    return ForwardedCopy(s.op, *_window(s, src, at, dst))


def _is_inside(s: OpContext, src: TileDesc, at: tuple[Val, Val], size: tuple[Val, Val]) -> str:
    x, sides = s.x, [*zip(at, size, src.type.shape, strict=True)]
    begins = (x.compare("ule", first, limit) for first, _, limit in sides)
    ends = (x.compare("ule", x.add(first, count), limit) for first, count, limit in sides)
    return x.both(*begins, *ends)


def _window(s: OpContext, src: TileDesc, at: tuple[Val, Val], dst: TileDesc) -> tuple[Matrix, str]:
    x, g = s.x, grid(src)
    unsupported_if(
        not takes(g, left=dst.type.role is Role.LEFT), "a layout that products do not take"
    )
    place, known = 0, "true"
    for first, side, step in zip(at, g.box, (g.down, g.right), strict=True):
        known = x.both(known, x.compare("eq", x.rest(first, side), 0))
        place = x.add(place, x.mul(x.over(first, side), step))
    unsupported_if(known == "false", "a window that begins inside a box")
    pointer = x.at(planes.machine_address(s, src), x.mul(place, g.dtype.itemsize))
    return Matrix(g, pointer, *dst.type.shape), known
