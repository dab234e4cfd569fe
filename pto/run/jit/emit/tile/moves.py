"""A move (`isa/meaning/kinds.py`) as one function of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pto.core.errors import PtoError
from pto.core.global_layout import RANK
from pto.isa.meaning.kinds import Make, Move
from pto.run.jit.emit.frame import Parameters, form_of
from pto.run.jit.emit.handle.view import FAULT, LEFT, bit
from pto.run.jit.emit.operation import KINDS, OpContext
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.elements import TileRef, ViewRef
from pto.run.jit.emit.tile.mover import Mover
from pto.run.jit.emit.tile.tile_layouts import extent, tile_layout
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import TRUE
from pto.run.jit.runtime.values import Array, Lowered, Nothing, PointerDesc, TileDesc, ViewDesc


class _Operands(Parameters):
    """Operands as parameters of a function, after the context."""

    def __init__(self, s: OpContext) -> None:
        super().__init__(("ptr", "%ctx"))
        self.s = s
        self.key: list[Any] = []
        self.inside = TRUE  # whether views lie inside their memory

    def _view(self, view: ViewDesc, role: str) -> Any:
        """A view as a parameter. The range from its first to its last element counts as accessed,
        and must lie inside its memory."""
        x = self.s.x
        nbytes = x.mul(strided.span(x, 1, view.shape, view.strides), view.dtype.itemsize)
        self.inside = self.inside & self.s.e.inside(view.memory, view.address, nbytes)
        self.s.e.log_access(view.memory, view.address, 1, nbytes, 0, writes=role != "in")
        pointer = self.add("ptr", self.s.pointer(view.memory, view.address, logged=True))
        names = [self.name(n) for n in (*view.shape, *view.strides)]
        inner = replace(view, names=("", "", *names))
        self.key.append(inner)
        return inner, pointer

    def operand(self, native: Lowered | None, role: str = "in") -> Any:
        """The operand as the function sees it; extends the key."""
        if native is None:
            self.key.append(None)
            return None
        if isinstance(native, TileDesc):
            pointer = self.add("ptr", masked.machine_address(self.s, native))
            inner = replace(native, names=("", *map(self.name, native.valid)))
            self.key.append(inner)
            return inner, pointer
        if isinstance(native, ViewDesc):
            return self._view(native, role)
        names = [n if isinstance(n, int) else self.name(n, type) for type, n in native.parts]
        self.key.append(native.renamed(names))
        return self.key[-1]


class _Inline(Mover):
    """Emits an instruction with results in place."""

    def __init__(self, s: OpContext, tiles: list[TileRef]) -> None:
        super().__init__(s.x, tiles, s.e.word, _is_alone(s))
        self._spot = s

    def require(self, fact: object, error: Callable[[], PtoError]) -> None:
        self._spot.fault_unless(bit(fact))

    def array(self, count: int) -> Array:
        x, type = self.x, f"[{count} x i64]"
        unsupported_if(
            id(self._spot.op.results[0]) in self._spot.e.live_out,
            "an array that outlives its region",
        )
        room = x.stack(type)
        x.store(type, "zeroinitializer", room, 64)
        return Array((-1, x.new(f"ptrtoint ptr {room} to i64")), count)


def _emit(s: OpContext) -> Sequence[Lowered]:
    return emit_move(s, s.body.make)


def emit_move(s: OpContext, meaning: Make, **seen: Lowered) -> Sequence[Lowered]:
    """Emit a meaning in the words of a mover. `seen` replaces operands by other values."""
    row, tiles = s.case.row, list[TileRef]()
    natives = [
        s.operands(o.name) if o.variadic else seen.get(o.name) or s.operand(o.name)
        for o in row.operands
    ]
    results = [form_of(result.type) for result in s.op.results]
    alone = all(isinstance(result, Nothing) for result in results)  # nothing comes back
    flat = [n for native in natives for n in (native if isinstance(native, list) else [native])]
    elsewhere = PointerDesc if alone else (PointerDesc, ViewDesc)
    unsupported_if(any(isinstance(n, elsewhere) for n in flat), "elements by pointer")
    if not alone or not any(isinstance(native, TileDesc | ViewDesc) for native in natives):
        values = [_each(lambda n: _inside(s.x, _placed(s, n), tiles), n) for n in natives]
        found = meaning(s.case)(_Inline(s, tiles), *values)
        return [] if found is None else [found]
    given = _Operands(s)
    operands = [
        _each(lambda n, role=o.role: given.operand(n, role), native)
        for o, native in zip(row.operands, natives, strict=True)
    ]

    def make(name: str) -> str:
        x, unit = Text(s.e.unit.declare), s.e.unit

        def word(index: int) -> str:
            unit.needs.words.add(index)
            return x.load_fixed("ptr", x.at("%p0", 8 * index))

        values = [_each(lambda o: _inside(x, o, tiles), o) for o in operands]
        mover = Mover(x, tiles, word, _is_alone(s))
        meaning(s.case)(mover, *values)
        unit.statuses[name] = mover.statuses
        return x.procedure(name, given.types, "i32", 0)

    name = s.e.unit.shared(masked.key_of(s, *given.key), make)
    masked.guarded(s, given.inside, lambda: _call(s, name, given), "a view leaves its memory")
    return results


def _call(s: OpContext, name: str, given: _Operands) -> None:
    status = s.x.new(f"call i32 {name}({given.listed})")
    s.fault_unless(s.x.compare("ne", status, FAULT, "i32"))
    if LEFT in s.e.unit.statuses[name]:
        left = s.x.compare("eq", status, LEFT, "i32")
        s.x.when(left, lambda: _leave(s))


def _leave(s: OpContext) -> None:
    s.e.host_fallback(s.op, "operands overlap, or another rank is told of a sum", seldom=True)


def _is_alone(s: OpContext) -> bool:
    return s.e.compiler.side == "both"


def _each(change: Callable[[Any], Any], operand: Any) -> Any:
    """Change an operand; of a variadic one all values."""
    return [change(each) for each in operand] if isinstance(operand, list) else change(operand)


def _placed(s: OpContext, native: Lowered | None) -> Any:
    if isinstance(native, TileDesc):
        return native, masked.machine_address(s, native)
    return native


def _inside(x: Text, operand: Any, tiles: list[TileRef]) -> Any:
    if not isinstance(operand, tuple):
        return operand
    place, pointer = operand
    if isinstance(place, ViewDesc):
        sizes = tuple(Number(x, n) for n in (*place.shape, *place.strides))
        return ViewRef(place, pointer, sizes[:RANK], sizes[RANK:])
    valid = Number(x, place.valid[0]), Number(x, place.valid[1])
    found = TileRef(place, pointer, valid, tile_layout(place), extent(place))
    tiles.append(found)
    return found


KINDS[Move] = _emit
