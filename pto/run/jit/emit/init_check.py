"""Initialised-bytes check: which bytes of local buffers have been written.

Compiled code maintains one shadow byte for each byte around every instruction: reads are checked
before it, writes are marked after it. Emitters do not depend on it. If the extent of an access is
not known, its whole tile or buffer counts as written, so there are no false reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pto.core.errors import PtoError, fail
from pto.core.memory import Space
from pto.core.pad import Pad
from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Cooperative, Do, Fold, Lane
from pto.isa.meaning.tile.move import beside
from pto.isa.row import types as t
from pto.isa.row.instr import Operand
from pto.isa.row.traits import RegionRule
from pto.run.jit.emit.tile import tile_layouts
from pto.run.jit.emit.tile.copies import strided_runs
from pto.run.jit.ir.strided import Strided
from pto.run.jit.ir.unsupported import UnsupportedLowering, unsupported_if
from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import Val
from pto.run.jit.runtime.context import SHADOW
from pto.run.jit.runtime.values import SPACE_NUMBERS, Lowered, PointerDesc, ScalarValue, TileDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter

_INDEX = t.Scalar("index", None)
_UB = SPACE_NUMBERS[Space.UB]


class InitCheck:
    """Watches the operations of one emitter."""

    def __init__(self, emitter: Emitter) -> None:
        self.e = emitter
        self.x = emitter.text
        self.op: Operation | None = None
        self._seen: set[int] = set()  # buffers with accesses that the current operation reported

    # ---- around an operation

    def before(self, op: Operation) -> None:
        moves = isinstance(op.body, Do) and op.body.defines
        items = isinstance(op.body, Cooperative) or self.e.compiler.launched(op) is not None
        unsupported_if(moves or items, "only the reference engine knows the bytes it uses")
        self.op, self._seen = op, set()
        row = op.row
        if _is_name(op):
            return
        exact = isinstance(row.body, Lane | Fold)
        dst = next((n for o, n in self._tiles(op) if o.role in ("out", "inout")), None)
        for operand, tile in self._tiles(op):
            if operand.role == "in" or (exact and operand.role == "inout"):
                limit = dst if isinstance(row.body, Lane) else None
                self._require(op, operand, tile, limit, every=exact)

    def after(self, op: Operation) -> None:
        row, self.op = op.row, None
        if _is_name(op):
            return
        exact = isinstance(row.body, Lane | Fold) or (_fills_valid(op) and not self._pads(op))
        for operand, tile in self._tiles(op):
            if operand.role != "in":
                is_exact = exact and operand.role != "tmp"
                self._mark(tile, *(_written_region(op, tile) if is_exact else _shape(tile)))
        for operand, native in self._natives(op):
            if operand.role != "in" and isinstance(native, PointerDesc):
                self._mark_all(native.memory, self._seen)
        if _is_stream(op):
            self._mark_all(_UB, set())

    def _pads(self, op: Operation) -> bool:
        """True for a load that also writes elements beside the valid region."""
        dst = op.operand("dst")
        tile = dst.type.tile if dst is not None and isinstance(dst.type, t.TileBuf) else None
        return tile is not None and beside(tile, self.e.compiler.profile) is not None

    def access(self, memory: Val, address: Val, nbytes: Val) -> None:
        """Check or mark an access by pointer; bytes outside the buffer are not looked at."""
        if self.op is None or not isinstance(memory, int) or memory == 0 or self._is_tile(self.op):
            return
        if nbytes == 0 or _is_stream(self.op):
            return
        found = [
            (o, n)
            for o, n in self._natives(self.op)
            if isinstance(n, PointerDesc) and n.memory == memory
        ]
        roles = {o.role for o, _ in found}
        if len(roles) > 1:  # of the operand that begins there, else of any
            roles = {o.role for o, n in found if n.names[1] == address} or {"out"}
        if not roles:
            return
        self._seen.add(memory)
        if roles != {"in"}:
            self._run("write", _run_mark, memory, address, nbytes)
            return
        count = self._run("written", _run_count, memory, address, nbytes)
        words = [ScalarValue((name,), _INDEX) for name in (address, nbytes)]
        say = _never(self.op, found[0][0].name)
        self.e.fail_with(self.x.compare("ne", count, 0), say, *words)

    def _run(
        self, key: str, make: Callable[[str], str], memory: int, address: Val, nbytes: Val
    ) -> str:
        """Count or mark contiguous bytes."""
        words = f"i64 {self.e.size(memory)}, i64 {address}, i64 {nbytes}"
        return self.x.new(
            f"call i64 {self._shared(key, make)}(ptr {self._shadow(memory)}, {words})"
        )

    # ---- operands

    def _natives(self, op: Operation) -> list[tuple[Operand, Lowered]]:
        return [(o, self.e.value(v)) for o in op.row.operands for v in op.group(o.name)]

    def _tiles(self, op: Operation) -> list[tuple[Operand, TileDesc]]:
        return [(o, n) for o, n in self._natives(op) if isinstance(n, TileDesc)]

    def _is_tile(self, op: Operation) -> bool:
        """True if the operands of an instruction describe all its accesses."""
        return not any(isinstance(n, PointerDesc) for _, n in self._natives(op))

    # ---- tiles

    def _require(
        self, op: Operation, operand: Operand, tile: TileDesc, dst: TileDesc | None, *, every: bool
    ) -> None:
        rows, cols = tile.valid
        if dst is not None:  # a lane reads as far as it writes
            rows, cols = (self.x.smaller(*two) for two in zip(tile.valid, dst.valid, strict=True))
        count = self._region("written", _run_count, tile, rows, cols)
        if count is None:
            return
        total = self.x.mul(self.x.mul(rows, cols), tile.type.itemsize)
        if every:
            guard = self.x.compare("eq", count, total)
        else:
            some, none = self.x.compare("ne", count, 0), self.x.compare("eq", total, 0)
            guard = some | none
        words = [ScalarValue((name,), _INDEX) for name in (count, total)]
        self.e.fail_with(guard, _unwritten(op, operand.name, tile.type.space), *words)

    def _mark(self, tile: TileDesc, rows: Val, cols: Val) -> None:
        if self._region("write", _run_mark, tile, rows, cols) is None:
            self._mark_all(tile.memory, set())

    def _mark_all(self, memory: Val, known: set[int]) -> None:
        """Mark a whole buffer as written, unless its accesses were checked one by one."""
        if isinstance(memory, int) and memory != 0 and memory not in known:
            self._run("write", _run_mark, memory, 0, self.e.size(memory))

    def _region(
        self, key: str, make: Callable[[str], str], tile: TileDesc, rows: Val, cols: Val
    ) -> str | None:
        """Count or mark the bytes of a region; None if its layout is not known."""
        if tile.type.dtype.is_packed and not tile.type.layout.is_boxed:
            return None
        try:
            lines = tile_layouts.tile_layout(tile)
        except (UnsupportedLowering, PtoError):  # a layout that is not defined
            return None
        if "cols" not in lines.contiguous_axes:
            lines = lines.swapped
            rows, cols = cols, rows
        run = self._shared(key, make)
        name = self.e.unit.shared(repr((key, lines)), lambda f: _region(f, lines, run))
        base, size = self._shadow(tile.memory), self.e.size(tile.memory)
        words = f"i64 {size}, i64 {tile.address}, i64 {rows}, i64 {cols}"
        return self.x.new(f"call i64 {name}(ptr {base}, {words})")

    def _shadow(self, memory: int) -> str:
        place = self.x.at(self.e.word(SHADOW), 8 * memory)
        self.e.unit.needs.spaces.add(memory)
        return self.x.load("ptr", place, 8)

    def _shared(self, key: str, make: Callable[[str], str]) -> str:
        return self.e.unit.shared(f"shadow {key}", make)


def _is_name(op: Operation) -> bool:
    """True if an operation only names memory."""
    return op.traits.names_only or any(
        isinstance(r.type, t.TileBuf | t.Ptr | t.MemRef) for r in op.results
    )


def _is_stream(op: Operation) -> bool:
    """Unaligned streams hold bytes back: what they touch is known only when it runs."""
    return any(isinstance(v.type, t.Align) for v in (*op.operands, *op.results))


def _shape(tile: TileDesc) -> tuple[Val, Val]:
    return tile.type.rows, tile.type.cols


def _fills_valid(op: Operation) -> bool:
    """A load that pads nothing."""
    dst, pad = op.operand("dst"), op.operand("pad_value")
    if op.traits.region is not RegionRule.VIEW or dst is None or pad is not None:
        return False
    return isinstance(dst.type, t.TileBuf) and dst.type.tile.pad == Pad.NULL


def _written_region(op: Operation, dst: TileDesc) -> tuple[Val, Val]:
    """The rows and columns of a destination that an operation writes: the valid ones; of a fold
    the first row or the first column."""
    rows, cols = dst.valid
    if isinstance(op.body, Fold):
        return (1, cols) if op.body.axis == "column" else (rows, 1)
    return rows, cols


# ---- functions of compiled code; all give how many bytes are written


def _region(name: str, lines: Strided, run: str) -> str:
    """i64 f(shadow, size, address, rows, cols): run(..) on each contiguous run of a region."""
    x, size = Text(), lines.dtype.itemsize
    total = x.stack(I64)
    x.store(I64, 0, total, 8)

    def down(top: list[Val], height: Val, _: int | None) -> None:
        def line(i: Val) -> None:
            first = x.add(top[0], x.mul(i, lines.rows[0].stride))

            def across(left: list[Val], width: Val, _: int | None) -> None:
                address = x.add("%p2", x.mul(x.add(first, left[0]), size))
                given = f"ptr %p0, i64 %p1, i64 {address}, i64 {x.mul(width, size)}"
                count = x.new(f"call i64 {run}({given})")
                x.store(I64, x.add(x.load(I64, total, 8), count), total, 8)

            strided_runs(x, (lines.cols,), 0, "%p4", across)

        x.loop(height, 1, line)

    strided_runs(x, (lines.rows,), 0, "%p3", down)
    return x.procedure(name, ["ptr", *[I64] * 4], I64, x.load(I64, total, 8))


# inlined: few bytes, whose number is known, need no loop
_RUN = "define internal i64 {}(ptr %p0, i64 %p1, i64 %p2, i64 %p3) alwaysinline nounwind"


def _bounded(x: Text) -> None:
    """Bytes outside the buffer count as written: another check reports them."""
    last = x.sub("%p1", "%p3")
    inside = x.compare("sge", last, 0) & x.compare("ule", "%p2", last)
    x.branch(inside, "guard", "out")
    x.label("out")
    x.do("ret i64 %p3")
    x.label("guard")


def _run_mark(name: str) -> str:
    """i64 f(shadow, size, address, nbytes): these bytes are written."""
    x = Text()
    _bounded(x)
    place = x.at("%p0", "%p2")
    x.do(f"call void @llvm.memset.p0.i64(ptr {place}, i8 1, i64 %p3, i1 false)")
    x.do("ret i64 %p3")
    return x.function(_RUN.format(name))


def _run_count(name: str) -> str:
    """i64 f(shadow, size, address, nbytes): how many of these bytes are written."""
    x = Text()
    _bounded(x)
    start, total = x.at("%p0", "%p2"), x.stack(I64)
    x.store(I64, 0, total, 8)
    whole = x.new("and i64 %p3, -64")

    def add(count: Val) -> None:
        x.store(I64, x.add(x.load(I64, total, 8), count), total, 8)

    def many(i: Val) -> None:
        some = x.load("<64 x i8>", x.at(start, i))
        bits = x.new(f"icmp ne <64 x i8> {some}, zeroinitializer")
        word = x.new(f"bitcast <64 x i1> {bits} to i64")
        add(x.new(f"call i64 @llvm.ctpop.i64(i64 {word})"))

    x.loop(whole, 64, many)
    x.loop("%p3", 1, lambda i: add(x.new(f"zext i8 {x.load('i8', x.at(start, i))} to i64")), whole)
    x.do(f"ret i64 {x.load(I64, total, 8)}")
    return x.function(_RUN.format(name))


# ---- messages

Say = Callable[[Sequence[Any]], None]


def _unwritten(op: Operation, name: str, space: Space) -> Say:
    def say(values: Sequence[Any]) -> None:
        count, total = values
        much = "none" if count == 0 else f"{count}"
        raise fail(
            "PTO-V250",
            f"'{op.name}' op reads {name}, of whose {total} bytes in {space.value} "
            f"{much} {'has' if count < 2 else 'have'} been written",
            loc=op.loc,
            help="load it, or fill it with pto.texpands first",
        )

    return say


def _never(op: Operation, name: str) -> Say:
    def say(values: Sequence[Any]) -> None:
        address, nbytes = values
        raise fail(
            "PTO-V251",
            f"'{op.name}' op reads {nbytes} bytes of {name} at {address:#x}, "
            "of which none has been written",
            loc=op.loc,
            help="write them first: by a transfer, or by a store",
        )

    return say
