"""A move (`isa/meaning/kinds.py`) as one function of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pto.core.errors import PtoError
from pto.core.global_layout import C0_AXIS, RANK
from pto.isa.meaning.kinds import Make, Move
from pto.run.jit.border.forms import form_of
from pto.run.jit.border.values import Array, Native, Nothing, TilePlace, ViewPlace, Word
from pto.run.jit.emit.table import KINDS, Spot
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile.elements import TileRef, ViewRef
from pto.run.jit.emit.tile.mover import Mover
from pto.run.jit.emit.tile.numbers import FAULT, LEFT
from pto.run.jit.llvm.index import Fact, Number
from pto.run.jit.llvm.text import NotNative, Text, Val


class _Parameters:
    """Operands as parameters of a function; numbers that are known now stay numbers."""

    def __init__(self, s: Spot) -> None:
        self.s = s
        self.listed: list[str] = ["ptr %ctx"]
        self.given: list[str] = ["ptr %ctx"]
        self.key: list[Any] = []
        self.inside = "true"  # whether views lie inside their memory

    def name(self, type: str, value: Val) -> Val:
        if isinstance(value, int):
            return value
        inner = f"%p{len(self.listed)}"
        self.listed.append(f"{type} {inner}")
        self.given.append(f"{type} {value}")
        return inner

    def _view(self, view: ViewPlace, role: str) -> Any:
        """All between the first and the last element counts as used, and must lie inside."""
        if not view.layout.is_defined or C0_AXIS in view.layout.col_axes:
            raise NotNative("a view of an unusual layout")
        x, reach = self.s.x, 1
        for count, step in zip(view.shape, view.strides, strict=True):
            reach = x.add(reach, x.mul(x.sub(count, 1), step))
        nbytes = x.mul(reach, view.dtype.itemsize)
        self.inside = x.both(self.inside, self.s.e.inside(view.memory, view.address, nbytes))
        self.s.e.touched(view.memory, view.address, 1, nbytes, 0, writes=role != "in")
        pointer = self.name("ptr", self.s.pointer(view.memory, view.address, noted=True))
        names = [self.name("i64", n) for n in (*view.shape, *view.strides)]
        inner = replace(view, names=("", "", *names))
        self.key.append(inner)
        return inner, pointer

    def operand(self, native: Native | None, role: str = "in") -> Any:
        """(what the function sees of an operand, without a text); the key grows."""
        if native is None:
            self.key.append(None)
            return None
        if isinstance(native, TilePlace):
            pointer = self.name("ptr", planes.machine_address(self.s, native))
            inner = replace(native, names=("", *(self.name("i64", n) for n in native.valid)))
            self.key.append(inner)
            return inner, pointer
        if isinstance(native, ViewPlace):
            return self._view(native, role)
        if isinstance(native, Nothing):
            self.key.append(native)
            return native
        if isinstance(native, Word):
            inner = replace(native, names=(self.name(native.types[0], native.name),))
            self.key.append(inner)
            return inner
        raise NotNative(f"an operand that is {type(native).__name__}")


class _Inline(Mover):
    """Writes an instruction that makes values where it stands."""

    def __init__(self, s: Spot, tiles: list[TileRef]) -> None:
        super().__init__(s.x, s.e.unit.declare, tiles, s.e.word, _is_alone(s))
        self._spot = s

    def require(self, fact: Any, error: Callable[[], PtoError]) -> None:
        self._spot.fault_unless(fact.name if isinstance(fact, Fact) else str(fact).lower())

    def array(self, count: int) -> Array:
        x, type = self.x, f"[{count} x i64]"
        if id(self._spot.op.results[0]) in self._spot.e.leaving:
            raise NotNative("an array that outlives its piece of code")
        room = x.stack(type)
        x.store(type, "zeroinitializer", room, 64)
        return Array((-1, x.new(f"ptrtoint ptr {room} to i64")), count)


def _emit(s: Spot) -> Sequence[Native]:
    body = s.body
    if not isinstance(body, Move):
        raise NotNative("no move")
    return emit_move(s, body.make)


def emit_move(s: Spot, meaning: Make, **seen: Native) -> Sequence[Native]:
    """A meaning in the words of a mover; operands that are `seen` as something else."""
    row, tiles = s.case.row, list[TileRef]()
    natives = [
        s.operands(o.name) if o.variadic else seen.get(o.name) or s.operand(o.name)
        for o in row.operands
    ]
    results = [form_of(result.type) for result in s.op.results]
    alone = all(isinstance(result, Nothing) for result in results)  # nothing comes back
    if not alone or not any(isinstance(native, TilePlace | ViewPlace) for native in natives):
        values = [_seen(s, native, tiles) for native in natives]
        found = meaning(s.case)(_Inline(s, tiles), *values)
        return [] if found is None else [found]
    given = _Parameters(s)
    operands = [
        [given.operand(each, o.role) for each in native]
        if isinstance(native, list)
        else given.operand(native, o.role)
        for o, native in zip(row.operands, natives, strict=True)
    ]

    def make(name: str) -> str:
        x, unit = Text(), s.e.unit

        def word(index: int) -> str:
            unit.needs.words.add(index)
            return x.load("ptr", x.at("%ctx", 8 * index), 8, ", !invariant.load !0")

        values = [_inside(x, o, tiles) for o in operands]
        mover = Mover(x, unit.declare, tiles, word, _is_alone(s))
        meaning(s.case)(mover, *values)
        x.do("ret i32 0")
        unit.statuses[name] = mover.statuses
        return x.function(
            f"define internal i32 {name}({', '.join(given.listed)}) noinline nounwind"
        )

    name = s.e.unit.shared(planes.key_of(s, *given.key), make)
    planes.either_way(s, given.inside, lambda: _call(s, name, given), "a view leaves its memory")
    return results


def _call(s: Spot, name: str, given: _Parameters) -> None:
    status = s.x.new(f"call i32 {name}({', '.join(given.given)})")
    s.fault_unless(s.x.compare("ne", status, FAULT, "i32"))
    if LEFT in s.e.unit.statuses[name]:
        left = s.x.compare("eq", status, LEFT, "i32")
        s.x.when(left, lambda: _leave(s))


def _leave(s: Spot) -> None:
    s.e.run_outside(s.op, "operands overlap, or another rank is told of a sum", seldom=True)


def _is_alone(s: Spot) -> bool:
    return s.e.compiler.side == "both"


def _seen(s: Spot, native: Native | list[Native] | None, tiles: list[TileRef]) -> Any:
    if isinstance(native, list):
        return [_seen(s, each, tiles) for each in native]
    if isinstance(native, TilePlace):
        return _inside(s.x, (native, planes.machine_address(s, native)), tiles)
    if native is None or isinstance(native, Word | Array | Nothing):
        return native
    raise NotNative(f"an operand that is {type(native).__name__}")


def _inside(x: Text, operand: Any, tiles: list[TileRef]) -> Any:
    if isinstance(operand, list):
        return [_inside(x, each, tiles) for each in operand]
    if not isinstance(operand, tuple):
        return operand
    place, pointer = operand
    if isinstance(place, ViewPlace):
        sizes = tuple(Number(x, n) for n in (*place.shape, *place.strides))
        return ViewRef(place, pointer, sizes[:RANK], sizes[RANK:])
    valid = Number(x, place.valid[0]), Number(x, place.valid[1])
    found = TileRef(place, pointer, valid, boxes.field(place), boxes.extent(place))
    tiles.append(found)
    return found


KINDS[Move] = _emit
