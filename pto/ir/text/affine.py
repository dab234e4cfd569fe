"""Affine operations, read as the arithmetic they are: `affine.apply`, `min`, `max` and `for`.

A map `(d0, d1)[s0] -> (d0 * 32 + s0, d1 floordiv 4)` is applied to values: its expressions become
operations of `arith` before the one that is read, and `affine.for` becomes `scf.for`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from pto.ir.builder import INDEX, constant_attribute
from pto.ir.graph import Operation, Span, Value
from pto.ir.text import lexer as lx
from pto.ir.text.cursor import Draft
from pto.ir.text.scf_text import read_turns
from pto.isa.row.attributes import Attribute
from pto.isa.row.instr import Instr
from pto.isa.row.traits import FOLDED
from pto.isa.scalar.arith import (
    ADDI,
    CEILDIVSI,
    CONSTANT,
    FLOORDIVSI,
    MAXSI,
    MINSI,
    MULI,
    SUBI,
)
from pto.isa.scalar.structure import FOR

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser

Number = int | Value  # a known number, or the value that holds it
_MAP = re.compile(r"affine_map<\s*\(([^()]*)\)\s*(?:\[([^]]*)\])?\s*->\s*\((.*)\)\s*>", re.S)
_WORD = re.compile(r"\s*(\d+|[A-Za-z_]\w*|[-+*(),])")


class _ArithSteps:
    """Emits the `arith` operations of affine maps, with constant folding."""

    def __init__(self, p: Parser, where: Span) -> None:
        self.p, self.where, self.ops = p, where, list[Operation]()
        self._constants: dict[int, Value] = {}

    def value(self, number: Number) -> Value:
        if isinstance(number, Value):
            return number
        if number not in self._constants:
            constant = self._made(CONSTANT, [], {"value": constant_attribute(number, INDEX)})
            constant.name = f"c{number}" if number >= 0 else f"cm{-number}"
            self._constants[number] = constant
        return self._constants[number]

    def of(self, row: Instr, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return FOLDED[row.traits.operator](a, b)
        return self._made(row, [self.value(a), self.value(b)])

    def last(self, number: Number) -> Operation:
        """Remove and return the operation that computes `number`; made if there is none here."""
        maker = number.maker if isinstance(number, Value) else None
        if maker is None or maker not in self.ops:
            maker = (self.value(number) if isinstance(number, int) else self._same(number)).maker
        assert maker is not None
        self.ops.remove(maker)
        return maker

    def _same(self, value: Value) -> Value:
        return self._made(ADDI, [value, self.value(0)])

    def _made(
        self, row: Instr, operands: list[Value], attrs: dict[str, Attribute] | None = None
    ) -> Value:
        self.ops.append(Operation.of(row, operands, attrs, self.where))
        return self.ops[-1].new_result(INDEX, "affine")


class _Expressions:
    """Parses the results of a map; each term is (number, True if it contains no dimension)."""

    def __init__(
        self, steps: _ArithSteps, text: str, dims: dict[str, Value], others: dict[str, Value]
    ) -> None:
        self.steps = steps
        self.p = steps.p
        self.dims = dims
        self.others = others
        self.words, at = list[str](), 0
        while word_match := _WORD.match(text, at):
            self.words.append(word_match[1])
            at = word_match.end()
        if text[at:].strip():
            self._wrong(text[at:].strip()[0])
        self.at, self.depth = 0, 0

    def all(self) -> list[Number]:
        results = [self._sum()[0]]
        while self._accept(","):
            results.append(self._sum()[0])
        if self.at < len(self.words):
            self._wrong(self.words[self.at])
        return results

    def _accept(self, *words: str) -> str:
        word = self.words[self.at] if self.at < len(self.words) else ""
        self.at += word in words
        return word if word in words else ""

    def _wrong(self, word: str) -> NoReturn:
        self.p.fail("PTO-P025", f"expected an affine expression, got `{word or 'the end'}`")

    def _sum(self) -> tuple[Number, bool]:
        left, plain = self._product()
        while sign := self._accept("+", "-"):
            right, also = self._product()
            left = self.steps.of(ADDI if sign == "+" else SUBI, left, right)
            plain = plain and also
        return left, plain

    def _product(self) -> tuple[Number, bool]:
        left, plain = self._factor()
        while word := self._accept("*", "floordiv", "ceildiv", "mod"):
            right, also = self._factor()
            if not also and not (word == "*" and plain):
                self.p.fail("PTO-P025", f"expected a constant or a symbol beside `{word}`")
            plain = plain and also
            left = self._apply(word, left, right)
        return left, plain

    def _apply(self, word: str, a: Number, b: Number) -> Number:
        if word == "*":
            return self.steps.of(MULI, a, b)
        if isinstance(b, int) and b <= 0:
            self.p.fail("PTO-P025", f"expected a positive number after `{word}`, got {b}")
        if word != "mod":
            return self.steps.of(FLOORDIVSI if word == "floordiv" else CEILDIVSI, a, b)
        multiple = self.steps.of(MULI, self.steps.of(FLOORDIVSI, a, b), b)
        return self.steps.of(SUBI, a, multiple)

    def _factor(self) -> tuple[Number, bool]:
        self.depth += 1
        if self.depth > lx.MAX_DEPTH:
            self.p.fail("PTO-P023", f"expressions are nested more than {lx.MAX_DEPTH} deep")
        word = self.words[self.at] if self.at < len(self.words) else ""
        self.at += 1
        if word == "-":
            number, plain = self._factor()
            factor = self.steps.of(MULI, number, -1), plain
        elif word == "(":
            factor = self._sum()
            if not self._accept(")"):
                self._wrong(self.words[self.at] if self.at < len(self.words) else "")
        elif word.isdecimal():
            factor = int(word), True
        elif word in self.dims:
            factor = self.dims[word], False
        elif word in self.others:
            factor = self.others[word], True
        else:
            self._wrong(word)
        self.depth -= 1
        return factor


def _operands(p: Parser, opener: str, closer: str) -> list[Value]:
    """`(%a, %b)`: the values themselves."""
    uses = [p.use() for _ in p.items(opener, closer)]
    return [value for _, _, value in p.uses[len(p.uses) - len(uses) :]]


def _results(p: Parser, steps: _ArithSteps) -> list[Number]:
    """`map(%d)[%s]`: the numbers it gives."""
    at, text = p.i, p.aliases.get(p.text, p.text)
    match = _MAP.fullmatch(text)
    if match is None:
        p.fail("PTO-P025", f"expected an affine_map, got {p.shown()}")
    p.i += 1
    dims = _operands(p, "(", ")")
    symbols = _operands(p, "[", "]") if p.text == "[" else []
    names = [
        [n.strip() for n in (part or "").split(",") if n.strip()] for part in match.group(1, 2)
    ]
    for wanted, values_of in zip(names, (dims, symbols), strict=True):
        if len(wanted) != len(values_of):
            message = f"the map takes {len(wanted)} values here, got {len(values_of)}"
            p.fail("PTO-P012", message, at=at)
    values = (dict(zip(n, v, strict=True)) for n, v in zip(names, (dims, symbols), strict=True))
    return _Expressions(steps, match[3], *values).all()


def _one(p: Parser, steps: _ArithSteps, row: Instr | None) -> Number:
    """The result of a map, or the least or the greatest of several."""
    at = p.i
    first, *others = _results(p, steps)
    for other in others:
        if row is None:
            p.fail("PTO-P012", f"expected a map with one result, got {1 + len(others)}", at=at)
        first = steps.of(row, first, other)
    return first


def _read_for(p: Parser, steps: _ArithSteps, at: int) -> Operation:
    """`%i = 0 to min map(%n) step 2 iter_args(..) -> (T) { .. }`."""
    draft = Draft(FOR, Operation.of(FOR))
    name, token = p.take()[1:], p.i - 1
    if p.kinds[token] != lx.VALUE:
        p.fail("PTO-P020", "expected the loop variable", at=token)
    for word, operand, fold in (("=", "lower", MAXSI), ("to", "upper", MINSI)):
        p.expect(word)
        draft.bound[operand] = [steps.value(_bound(p, steps, fold))]
    step = int(p.take()) if p.accept("step") and p.text.isdecimal() else 1
    draft.bound["step"] = [steps.value(step)]
    read_turns(p, draft, name, token)
    p.assemble(draft, at)
    return draft.op


def _bound(p: Parser, steps: _ArithSteps, fold: Instr) -> Number:
    if p.kind == lx.NUMBER and p.text.removeprefix("-").isdecimal():
        return int(p.take())
    if p.kind == lx.VALUE:
        p.use()
        return p.uses[-1][2]
    several = p.accept("max" if fold is MAXSI else "min")
    return _one(p, steps, fold if several else None)


def _reader(row: Instr | None) -> Callable[[Parser, _ArithSteps, int], Operation]:
    return lambda p, steps, at: steps.last(_one(p, steps, row))


_READERS = {
    "affine.apply": _reader(None),
    "affine.min": _reader(MINSI),
    "affine.max": _reader(MAXSI),
    "affine.for": _read_for,
}


def is_affine(name: str) -> bool:
    return name in _READERS


def read_affine(p: Parser, start: int) -> Operation:
    """The operation at the cursor; operations to insert before it go to `p.steps`."""
    at, name = p.i, p.take()
    steps = _ArithSteps(p, p.span(start, at))
    op = _READERS[name](p, steps, at)
    op.where, p.steps = steps.where, steps.ops
    p.counted = True  # its text is not that of one operation
    return op
