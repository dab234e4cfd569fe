"""Operations that are written like one before: only their names differ, so they are not read again.

What becomes of the text of an operation depends on its words, on the types of the values it names,
and on two tokens behind it: no reader looks further. Operations with regions are always read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pto.ir.graph import Operation, Value
from pto.ir.text.lexer import VALUE
from pto.isa.row.attributes import Attribute
from pto.isa.row.instr import Instr
from pto.isa.row.types import Type

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser

_BEHIND: Final = 2  # tokens
_LENGTHS: Final = 8  # that operations of one name may have
_SHAPES: Final = 1 << 14


class Shape(NamedTuple):
    """An operation that was read, and where its words stood, counted from its first token."""

    row: Instr
    attrs: dict[str, Attribute]
    segments: tuple[int, ...] | None
    operands: tuple[tuple[int, Type], ...]
    results: tuple[tuple[int, Type], ...]  # the token of a name, or -1 for a result without one
    name: int
    length: int


class Repeats:
    """The shapes of a program so far."""

    def __init__(self) -> None:
        self._lengths: dict[str, list[int]] = {}
        self._shapes: dict[tuple[str, ...], Shape] = {}

    def forget(self) -> None:
        """Words mean something else from here on."""
        self._lengths.clear()
        self._shapes.clear()

    def read(self, p: Parser) -> Operation | None:
        """The operation at the cursor, if its shape is known; then the cursor is behind it."""
        start, words = p.i, p.tokens.shapes
        for length in self._lengths.get(_head(words, start), ()):
            shape = self._shapes.get(tuple(words[start : start + length]))
            if shape is not None:
                return _made(p, shape)
        return None

    def remember(self, p: Parser, op: Operation, start: int, at: int, names: list[int]) -> None:
        """An operation that was just read: its first token, that of its name, those of results."""
        words, uses = p.tokens.shapes, {id(here): token for token, here, _ in p.uses}
        if op.row is None or op.regions or len(self._shapes) >= _SHAPES:
            return
        if len(uses) != len(op.operands) or p.kinds.count(VALUE, start, p.i) != len(uses) + len(
            names
        ):
            return
        lengths, length = self._lengths.setdefault(_head(words, start), []), p.i - start + _BEHIND
        if length not in lengths:
            if len(lengths) == _LENGTHS:
                return
            lengths.append(length)
        places = [token - start for token in names] or [-1] * len(op.results)
        self._shapes[tuple(words[start : start + length])] = Shape(
            op.row,
            op.attrs,
            op.segments,
            tuple((uses[id(v)] - start, v.type) for v in op.operands),
            tuple(zip(places, (r.type for r in op.results), strict=True)),
            at - start,
            p.i - start,
        )


def _head(words: list[str], start: int) -> str:
    """The name of an operation, mostly: what stands there, or behind `%a =`."""
    return words[start + 2 if words[start] == "%" else start]


def _made(p: Parser, shape: Shape) -> Operation | None:
    """An operation of this shape; None where its values have other types, or there are none."""
    start, texts = p.i, p.texts
    operands: list[Value] = []
    for place, type in shape.operands:
        value = p.value(texts[start + place][1:])
        if value is None or (value.type is not type and value.type != type):
            return None
        operands.append(value)
    where = p.span(start, start + shape.name)
    op = Operation(shape.row.name, shape.row, operands, dict(shape.attrs), where)
    op.segments = shape.segments
    for nth, (place, type) in enumerate(shape.results):
        name = f"unused{nth}" if place < 0 else texts[start + place][1:]
        result = Value(type, name, op)
        op.results.append(result)
        if place >= 0:
            p.define(name, result, start + place)
    p.i = start + shape.length
    return op
