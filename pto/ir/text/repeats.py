"""A parser cache: an operation that differs from an earlier one only in SSA names is not parsed.

The result of parsing an operation depends on its words, on the types of its operands, and on the
next two tokens: no reader looks further. Operations with regions are always parsed.
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


class CachedShape(NamedTuple):
    """A parsed operation, and the token offsets of its names, counted from its first token."""

    row: Instr
    attrs: dict[str, Attribute]
    segments: tuple[int, ...] | None
    operands: tuple[tuple[int, Type], ...]
    results: tuple[tuple[int, Type], ...]  # the token of a name, or -1 for a result without one
    name: int
    length: int


class ParserCache:
    """The shapes of a program so far."""

    def __init__(self) -> None:
        self._lengths: dict[str, list[int]] = {}
        self._shapes: dict[tuple[str, ...], CachedShape] = {}

    def forget(self) -> None:
        """Clear the cache: an alias was defined, so words may have another meaning."""
        self._lengths.clear()
        self._shapes.clear()

    def read(self, p: Parser) -> Operation | None:
        """The operation at the cursor, if its shape is cached; then the cursor moves past it."""
        start, words = p.i, p.tokens.shapes
        for length in self._lengths.get(_head(words, start), ()):
            shape = self._shapes.get(tuple(words[start : start + length]))
            if shape is not None:
                return _made(p, shape)
        return None

    def remember(self, p: Parser, op: Operation, start: int, at: int, names: list[int]) -> None:
        """Cache an operation that was just parsed: its first token, that of its name, those of its
        results."""
        words, uses = p.tokens.shapes, {here: token for token, here, _ in p.uses}
        if op.regions or len(self._shapes) >= _SHAPES:
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
        self._shapes[tuple(words[start : start + length])] = CachedShape(
            op.row,
            op.attrs,
            op.segments,
            tuple((uses[v] - start, v.type) for v in op.operands),
            tuple(zip(places, (r.type for r in op.results), strict=True)),
            at - start,
            p.i - start,
        )


def _head(words: list[str], start: int) -> str:
    """The cache key, mostly the name of the operation: the first word, or the one after `%a =`."""
    return words[start + 2 if words[start] == "%" else start]


def _made(p: Parser, shape: CachedShape) -> Operation | None:
    """An operation of this shape; None where its values have other types, or there are none."""
    start, texts = p.i, p.texts
    operands: list[Value] = []
    for offset, type in shape.operands:
        value = p.value(texts[start + offset][1:])
        if value is None or (value.type is not type and value.type != type):
            return None
        operands.append(value)
    where = p.span(start, start + shape.name)
    op = Operation(shape.row.name, shape.row, operands, dict(shape.attrs), where)
    op.segments = shape.segments
    for nth, (offset, type) in enumerate(shape.results):
        name = f"unused{nth}" if offset < 0 else texts[start + offset][1:]
        result = Value(type, name, op)
        op.results.append(result)
        if offset >= 0:
            p.define(name, result, start + offset)
    p.i = start + shape.length
    return op
