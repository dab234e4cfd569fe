"""A move (`isa/meaning/kinds.py`) as one function of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pto.isa.meaning.kinds import Move
from pto.run.jit.border.values import Native, TilePlace, Word
from pto.run.jit.emit.table import KINDS, Spot
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile.elements import TileRef
from pto.run.jit.emit.tile.mover import Mover
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.text import NotNative, Text, Val


class _Parameters:
    """Operands as parameters of a function; numbers that are known now stay numbers."""

    def __init__(self, s: Spot) -> None:
        self.s = s
        self.listed: list[str] = ["ptr %room"]
        self.given: list[str] = [f"ptr {s.e.room()}"]
        self.key: list[Any] = []

    def name(self, type: str, value: Val) -> Val:
        if isinstance(value, int):
            return value
        inner = f"%p{len(self.listed)}"
        self.listed.append(f"{type} {inner}")
        self.given.append(f"{type} {value}")
        return inner

    def operand(self, native: Native | None) -> Any:
        """(what the function sees of an operand, without a text); the key grows."""
        if native is None:
            self.key.append(None)
            return None
        if isinstance(native, TilePlace):
            pointer = self.name("ptr", planes.machine_address(self.s, native))
            inner = replace(native, names=("", *(self.name("i64", n) for n in native.valid)))
            self.key.append(inner)
            return inner, pointer
        if isinstance(native, Word):
            inner = replace(native, names=(self.name(native.types[0], native.name),))
            self.key.append(inner)
            return inner
        raise NotNative(f"an operand that is {type(native).__name__}")


def _emit(s: Spot) -> Sequence[Native]:
    body = s.body
    if not isinstance(body, Move):
        raise NotNative("no move")
    given = _Parameters(s)
    operands = [
        [given.operand(v) for v in s.operands(o.name)]
        if o.variadic
        else given.operand(s.operand(o.name))
        for o in s.case.row.operands
    ]

    def make(name: str) -> str:
        x = Text()
        tiles: list[TileRef] = []
        fn = body.make(s.case)
        seen = [_inside(x, o, tiles) for o in operands]
        fn(Mover(x, s.e.unit.declare, tiles), *seen)
        x.do("ret i32 0")
        return x.function(
            f"define internal i32 {name}({', '.join(given.listed)}) noinline nounwind"
        )

    name = s.e.unit.shared(planes.key_of(s, *given.key), make)
    status = s.x.new(f"call i32 {name}({', '.join(given.given)})")
    s.fault_unless(s.x.compare("eq", status, 0, "i32"))
    return []


def _inside(x: Text, operand: Any, tiles: list[TileRef]) -> Any:
    if isinstance(operand, list):
        return [_inside(x, each, tiles) for each in operand]
    if not isinstance(operand, tuple):
        return operand
    place, pointer = operand
    valid = Number(x, place.valid[0]), Number(x, place.valid[1])
    found = TileRef(place, pointer, valid, boxes.field(place), boxes.extent(place))
    tiles.append(found)
    return found


KINDS[Move] = _emit
