"""Copy forwarding: products read an operand at its source.

A move from L1 fills a tile of L0. If only products read the tile, and nothing writes its source
before the last of them, the move is left out. A load of a tile of L1 that only such moves read is
left out too: products read rows of global memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pto.core.memory import Space
from pto.core.tile import Role
from pto.ir.graph import Operation, Value
from pto.isa.meaning.handle.view import SET_VALID
from pto.isa.meaning.kinds import Fold, Lane, Move
from pto.isa.meaning.tile import extract, move
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.matmul import PRODUCT
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.emit.cube.factors import Matrix, takes
from pto.run.jit.emit.names import meet
from pto.run.jit.emit.operation import touches_no_tile
from pto.run.jit.emit.tile import masked, tile_layouts
from pto.run.jit.emit.tile.move import view_accesses
from pto.run.jit.ir import strided
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.value import FALSE, TRUE, Condition, Val, all_of
from pto.run.jit.runtime.values import ScalarValue, TileDesc, ViewDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter
    from pto.run.jit.emit.operation import OpContext

_FILLS: Final = (move.MOVE, extract.EXTRACT)
_CONTROL: Final = (Control.FOR, Control.IF, Control.YIELD)


@dataclass(frozen=True, slots=True)
class ForwardedCopy:
    """The source of a tile that is not filled, and the instructions that would fill it."""

    fills: tuple[Operation, ...]
    source: Matrix
    known: Condition  # the run-time condition of forwarding; else the tile is filled
    guard: Condition = TRUE  # else the host runs the products


def fills_factor(op: Operation) -> bool:
    dst = op.operand("dst") if op.body in _FILLS and not op.results else None
    if dst is None or not isinstance(dst.type, t.TileBuf):
        return False
    return dst.type.tile.role in (Role.LEFT, Role.RIGHT)


def loads_factor(op: Operation) -> bool:
    """True if it loads a tile of L1."""
    dst = op.operand("dst") if op.body is move.LOAD else None
    return dst is not None and isinstance(dst.type, t.TileBuf) and dst.type.tile.space is Space.L1


def forwardable(op: Operation) -> bool:
    return fills_factor(op) or loads_factor(op)


def can_forward(e: Emitter, ops: Sequence[Operation], n: int) -> bool:
    """True if only products read what ops[n] fills or loads, and the source is unchanged until the
    last of them."""
    source, last = ops[n].operand("src"), _last_product(e, ops, n)
    if source is None or last is None:
        return False
    between = [op for outer in ops[n + 1 : last + 1] for op in outer.walk()]
    return all(_leaves_alone(e, op, source) for op in between)


def _last_product(e: Emitter, ops: Sequence[Operation], n: int) -> int | None:
    """The last instruction that reads what ops[n] fills or loads; None if not only products read
    it, directly or through tiles that are filled from it."""
    tile, source = ops[n].operand("dst"), ops[n].operand("src")
    if tile is None or source is None or id(tile) in e.stack_slots or id(source) in e.stack_slots:
        return None
    if not e.compiler.names.is_alone(tile):
        return None
    uses = [(m, op) for m, outer in enumerate(ops) for op in outer.walk() if tile in op.operands]
    if sum(op.operands.count(tile) for _, op in uses) != len(tile.uses):
        return None
    uses = [(m, op) for m, op in uses if op.body is not SET_VALID]  # once, before all other uses
    is_load = loads_factor(ops[n])
    writes = loads_factor if is_load else fills_factor
    fills = [m for m, op in uses if op is ops[m] and op.operand("dst") is tile and writes(op)]
    reads = [(m, op) for m, op in uses if op.operand("dst") is not tile]
    if len(fills) + len(reads) != len(uses) or min(m for m, _ in uses) != fills[0]:
        return None
    end = next((m for m in fills if m > n), len(ops))
    if not is_load:
        plain = all(op.body is PRODUCT for _, op in reads)
        return max((m for m, _ in reads if n < m < end), default=None) if plain else None
    if not all(op is ops[m] and fills_factor(op) for m, op in reads):
        return None
    found = [_last_product(e, ops, m) for m, _ in reads if n < m < end]
    known = [m for m in found if m is not None]
    return max(known) if known and len(known) == len(found) else None


def _leaves_alone(e: Emitter, op: Operation, source: Value) -> bool:
    """True if an operation is known not to write the bytes of a tile or a view, and does not
    wait."""
    if op.control is not None:
        return op.control in _CONTROL
    if touches_no_tile(op) or op.results:
        return touches_no_tile(op)
    body = op.body
    if body is SET_VALID:
        return op.operands[0] is not source
    moves = (move.LOAD, move.STORE, PRODUCT)
    if not (isinstance(body, Lane | Fold | Conversion | Move) or body in moves):
        return False
    written = [v for o in op.row.operands if o.role != "in" for v in op.group(o.name)]
    return bool(written) and all(_is_elsewhere(e, value, source) for value in written)


def _is_elsewhere(e: Emitter, value: Value, source: Value) -> bool:
    if not isinstance(value.type, t.TileBuf) or not isinstance(source.type, t.TileBuf):
        kinds = {type(value.type), type(source.type)}  # a view is of global memory
        return kinds == {t.TileBuf, t.View}
    if value.type.tile.space is not source.type.tile.space:
        return True
    if id(value) in e.stack_slots or id(source) in e.stack_slots:
        return False
    first, second = (e.compiler.names.span(each) for each in (value, source))
    return first is not None and second is not None and not meet(first, second)


def forwarded_copy(s: OpContext) -> ForwardedCopy | None:
    """The source that products may read instead of the tile that this instruction fills; None if
    the tile must be filled. A window outside its tile is an error."""
    if s.body is move.LOAD:
        return _rows_of_view(s)
    src, dst = s.need(TileDesc, "src"), s.need(TileDesc, "dst")
    load = s.e.forwarded.get(id(s.op.operand("src")))
    if not _is_plain(s, src, dst):
        return None
    at: tuple[Val, Val] = (0, 0)
    if s.body is not move.MOVE:
        at = s.need(ScalarValue, "indexRow").name, s.need(ScalarValue, "indexCol").name
        s.fault_unless(_is_inside(s, src.type.shape, at, dst.valid))
    if load is None:
        whole = Access(tile_layouts.boxed_layout(src), masked.machine_address(s, src))
    else:
        whole = load.source.access
    found = _window(s, whole, at, dst)
    if found is None:
        return None
    source, known = found
    if load is None:
        return ForwardedCopy((s.op,), source, known)
    known = known & _is_inside(s, src.valid, at, dst.valid)
    return ForwardedCopy((*load.fills, s.op), source, known, load.guard)


def _is_plain(s: OpContext, src: TileDesc, dst: TileDesc) -> bool:
    """True if a move or an extraction copies elements of L1 as they are. Pairs lie along k in
    either factor, so they are arranged on their way."""
    more = any(s.op.operand(name) for name in ("fp", "preQuantScalar", "dst1"))
    relu = s.case.word("reluPreMode") not in (None, "no_relu")
    dtype = dst.type.dtype
    same = src.type.space is Space.L1 and src.type.dtype is dtype and not dtype.is_packed
    whole = src.valid == dst.valid if s.body is move.MOVE else s.case.word("mode") is None
    return same and whole and not (relu or more)


def _rows_of_view(s: OpContext) -> ForwardedCopy | None:
    """The rows that a load reads, as runs of global memory. Its errors are reported here."""
    view, tile = s.need(ViewDesc, "src"), s.need(TileDesc, "dst")
    dtype = tile.type.dtype
    plain = view.dtype is dtype and dtype.is_float and not dtype.is_packed
    if not plain or move.has_margins(s.case):
        return None
    found, *others = view_accesses(s, view, tile, s.case.word("layout"))
    _, rows, cols = found.access.layout
    if others or len(rows) > 1 or cols != strided.axis(1):
        return None
    s.fault_unless(found.in_range)
    source = Matrix(found.access, *tile.type.shape)
    return ForwardedCopy((s.op,), source, TRUE, found.guard)


def _is_inside(
    s: OpContext, extents: tuple[Val, Val], at: tuple[Val, Val], size: tuple[Val, Val]
) -> Condition:
    x, sides = s.x, [*zip(at, size, extents, strict=True)]
    begins = (x.compare("ule", first, limit) for first, _, limit in sides)
    ends = (x.compare("ule", x.add(first, count), limit) for first, count, limit in sides)
    return all_of(*begins, *ends)


def _window(
    s: OpContext, whole: Access, at: tuple[Val, Val], dst: TileDesc
) -> tuple[Matrix, Condition] | None:
    """A window of a matrix, and the condition that it cuts no box; None if products do not take
    the layout."""
    x, is_left = s.x, dst.type.role is Role.LEFT
    known = whole.layout.begins_boxes(x, *at) if takes(whole.layout, left=is_left) else FALSE
    if known.is_false:
        return None
    return Matrix(whole.at(x, *at), *dst.type.shape), known
