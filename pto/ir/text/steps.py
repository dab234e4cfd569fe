"""The steps a text pattern is made of; each knows how it starts, reads and prints itself.

Nothing here knows an instruction; `ir/text/format.py` compiles patterns into steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pto.ir.canonical import ARITH_FLAGS, INT_TYPES, in_place_value, set_once, words_of
from pto.ir.graph import Operation, Value
from pto.ir.text import lexer as lx
from pto.ir.text.cursor import Draft, distribute
from pto.isa.row.attributes import Enum, Int, Raw, Unit
from pto.isa.row.enums import kinds_of
from pto.isa.row.instr import Attr, Operand
from pto.isa.row.types import KINDS, Opaque

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser
    from pto.ir.text.printer import PrintedLine


class TextStep:
    """A step without text of its own."""

    __slots__ = ()

    def starts(self, p: Parser) -> bool:
        """True if the text at the cursor may be that of the step."""
        return True

    def read(self, p: Parser, draft: Draft) -> None: ...

    def write(self, line: PrintedLine, op: Operation) -> None: ...

    def present(self, op: Operation) -> bool:
        """True if the operation has what the step prints; then its group is printed."""
        return False


@dataclass(frozen=True, slots=True)
class Literal(TextStep):
    text: str

    def starts(self, p: Parser) -> bool:
        return p.text == self.text and p.kind in (lx.WORD, lx.PUNCT)

    def read(self, p: Parser, draft: Draft) -> None:
        p.expect(self.text)

    def write(self, line: PrintedLine, op: Operation) -> None:
        line.put(self.text)


@dataclass(frozen=True, slots=True)
class OneOperand(TextStep):
    name: str
    kind: str = ""  # of an optional operand: a value of another kind is not this operand

    def starts(self, p: Parser) -> bool:
        value = p.named() if self.kind and p.kind == lx.VALUE else None
        if value is None or isinstance(value.type, Opaque):
            return p.kind == lx.VALUE
        return KINDS[self.kind].accepts(value.type)

    def read(self, p: Parser, draft: Draft) -> None:
        draft.bind(self.name, p.use())

    def write(self, line: PrintedLine, op: Operation) -> None:
        values, nth = op.group(self.name), max(line.repeat, 0)
        if nth < len(values):  # an incomplete operation prints what it has
            line.operand(values[nth])

    def present(self, op: Operation) -> bool:
        return bool(op.group(self.name))


@dataclass(frozen=True, slots=True)
class OperandList(TextStep):
    """A comma-separated list bound to one variadic operand."""

    name: str

    def starts(self, p: Parser) -> bool:
        return p.kind == lx.VALUE

    def read(self, p: Parser, draft: Draft) -> None:
        draft.bound.setdefault(self.name, [])
        while p.kind == lx.VALUE:
            draft.bind(self.name, p.use())
            if not (p.text == "," and p.kinds[p.i + 1] == lx.VALUE):
                return
            p.i += 1

    def write(self, line: PrintedLine, op: Operation) -> None:
        line.operands(op.group(self.name))

    def present(self, op: Operation) -> bool:
        return bool(op.group(self.name))


@dataclass(frozen=True, slots=True)
class InsOuts(TextStep):
    """All operands of one side with their types; optional ones are identified by count and type.

    Some tools write the attribute dictionary inside (`ins(%a {cmpMode = ..} : T)`) or the types
    one by one (`ins(%a : T, %scale : i64)`): both are accepted. `inside` names the operand after
    which the dictionary is printed. After a list the word `no_tmp` marks an absent scratch tile.
    """

    operands: tuple[Operand, ...]
    elsewhere: frozenset[str] = frozenset()
    inside: str | None = None

    def starts(self, p: Parser) -> bool:
        return p.kind == lx.VALUE

    def read(self, p: Parser, draft: Draft) -> None:
        values: list[Value] = []
        operands = self.operands
        while True:
            if p.kind == lx.WORD and any(p.text == _left_out(o) for o in operands):
                operands = tuple(o for o in operands if p.text != _left_out(o))
                p.i += 1
            elif p.kind == lx.VALUE:
                values.append(p.use())
                draft.pending.append(values[-1])
            elif p.at("{"):
                p.attr_dict(draft)
            elif p.accept(":"):
                p.types_of(draft)
                if p.accept(","):
                    continue
                break
            else:
                break
            if p.text == "," and (p.kinds[p.i + 1] == lx.VALUE or p.texts[p.i + 1] == "{"):
                p.i += 1
        for name, chunk in distribute(p, draft.row, operands, values):
            draft.bound[name] = chunk

    def write(self, line: PrintedLine, op: Operation) -> None:
        line.operands([v for o in self.operands for v in op.group(o.name)])
        if any(o.variadic and len(op.group(o.name)) > 1 for o in self.operands):
            for word in (_left_out(o) for o in self.operands if not op.group(o.name)):
                line.put(word) if word else None
        if _stands_inside(op, self.inside):
            Dictionary(self.elsewhere).write(line, op)
        line.put(":")
        line.types(shared=False)

    def present(self, op: Operation) -> bool:
        return any(op.group(o.name) for o in self.operands)


def _left_out(o: Operand) -> str:
    return f"no_{o.name}" if o.role == "tmp" and o.optional else ""


def _stands_inside(op: Operation, operand: str | None) -> bool:
    return operand is not None and (operand == "" or bool(op.group(operand)))


@dataclass(frozen=True, slots=True)
class InPlace(TextStep):
    """An attribute written among the operands, in any spelling its kind allows."""

    spec: Attr

    def starts(self, p: Parser) -> bool:
        kind = p.kind
        if kinds_of(self.spec.kind) or self.spec.values:
            if kind == lx.WORD:
                return p.text in words_of(self.spec)
            return kind in (lx.ATTR, lx.STRING) or p.text == "<"
        if self.spec.kind in INT_TYPES:
            return kind == lx.NUMBER
        if self.spec.kind in ARITH_FLAGS:
            return p.at("<")
        return kind == {"str": lx.STRING, "symbol": lx.SYMBOL, "any": lx.ATTR}.get(self.spec.kind)

    def read(self, p: Parser, draft: Draft) -> None:
        set_once(p, draft, self.spec.name, in_place_value(p, self.spec))

    def write(self, line: PrintedLine, op: Operation) -> None:
        if not self.present(op):
            return
        value = op.attrs[self.spec.name]
        if isinstance(value, Int) and self.spec.kind in INT_TYPES:
            value = Int(value.value)  # the row knows the width
        if isinstance(value, Raw) and self.spec.kind in ARITH_FLAGS:
            value = Raw(value.text.removeprefix(f"#{self.spec.kind}"))
        line.in_place(value)

    def present(self, op: Operation) -> bool:
        return self.spec.name in op.attrs


@dataclass(frozen=True, slots=True)
class FlagWord(TextStep):
    """A bare word that sets a unit attribute."""

    name: str

    def starts(self, p: Parser) -> bool:
        return p.kind == lx.WORD and p.text == self.name

    def read(self, p: Parser, draft: Draft) -> None:
        p.i += 1
        draft.op.attrs[self.name] = Unit()

    def write(self, line: PrintedLine, op: Operation) -> None:
        line.put(self.name)

    def present(self, op: Operation) -> bool:
        return self.name in op.attrs


@dataclass(frozen=True, slots=True)
class Sets(TextStep):
    """No text of its own: the words of its clause set this value of an enum."""

    name: str
    value: Enum

    def read(self, p: Parser, draft: Draft) -> None:
        set_once(p, draft, self.name, self.value)

    def present(self, op: Operation) -> bool:
        return op.attrs.get(self.name) == self.value


@dataclass(frozen=True, slots=True)
class Dictionary(TextStep):
    """The attribute dictionary; prints what no other step prints."""

    elsewhere: frozenset[str]
    inside: str | None = None  # if this operand ("" any) is present, printed inside ins(..)

    def starts(self, p: Parser) -> bool:
        return p.text == "{"

    def read(self, p: Parser, draft: Draft) -> None:
        p.optional_dict(draft)

    def write(self, line: PrintedLine, op: Operation) -> None:
        if _stands_inside(op, self.inside):
            return
        line.dictionary({k: v for k, v in op.attrs.items() if k not in self.elsewhere})

    def present(self, op: Operation) -> bool:
        return any(k not in self.elsewhere for k in op.attrs)


@dataclass(frozen=True, slots=True)
class Types(TextStep):
    """One type for each pending operand, one shared by all, or those of the operands named."""

    shared: bool
    names: tuple[str, ...] = ()
    skippable: tuple[str, ...] = ()  # of the names: read where written, not printed

    def read(self, p: Parser, draft: Draft) -> None:
        if self.names:
            draft.pending[:] = [v for n in self.names for v in draft.bound.get(n, [])]
        if self.shared:
            p.shared_type(draft)
        elif draft.pending:
            p.types_of(draft, [v for n in self.skippable for v in draft.bound.get(n, [])])

    def write(self, line: PrintedLine, op: Operation) -> None:
        if self.names:
            printed = [n for n in self.names if n not in self.skippable]
            line.pending[:] = [("", v) for n in printed for v in op.group(n)]
        line.types(self.shared)

    def present(self, op: Operation) -> bool:
        return any(op.group(n) for n in self.names)


@dataclass(frozen=True, slots=True)
class ResultTypes(TextStep):
    def read(self, p: Parser, draft: Draft) -> None:
        p.result_types(draft)

    def write(self, line: PrintedLine, op: Operation) -> None:
        line.result_types(op)

    def present(self, op: Operation) -> bool:
        return bool(op.results)


@dataclass(frozen=True, slots=True)
class RegionBody(TextStep):
    """A region without arguments."""

    def starts(self, p: Parser) -> bool:
        return p.text == "{"

    def read(self, p: Parser, draft: Draft) -> None:
        p.region(draft.op.new_region())

    def write(self, line: PrintedLine, op: Operation) -> None:
        line.region(op.regions[0])

    def present(self, op: Operation) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Optional(TextStep):
    steps: tuple[TextStep, ...]

    def starts(self, p: Parser) -> bool:
        first = self.steps[0]
        if not first.starts(p):
            return False
        if isinstance(first, Literal) and len(self.steps) > 1:
            return p.ahead(self.steps[1].starts)
        return True

    def read(self, p: Parser, draft: Draft) -> None:
        if self.starts(p):
            self.read_all(p, draft)

    def read_all(self, p: Parser, draft: Draft) -> None:
        for step in self.steps:
            step.read(p, draft)

    def write(self, line: PrintedLine, op: Operation) -> None:
        if self.present(op):
            self.write_all(line, op)

    def write_all(self, line: PrintedLine, op: Operation) -> None:
        for step in self.steps:
            step.write(line, op)

    def present(self, op: Operation) -> bool:
        """True if the clause must be printed. A clause with an operand and an enum value depends
        on the operand only: the enum value may be set without the clause."""
        named = [s for s in self.steps if isinstance(s, OneOperand)]
        sets = any(isinstance(s, Sets) for s in self.steps)
        return any(s.present(op) for s in (named if named and sets else self.steps))


@dataclass(frozen=True, slots=True)
class Repeated(Optional):
    def starts(self, p: Parser) -> bool:
        return self.steps[0].starts(p)

    def read(self, p: Parser, draft: Draft) -> None:
        while self.starts(p):
            self.read_all(p, draft)

    def write(self, line: PrintedLine, op: Operation) -> None:
        first = next(s for s in self.steps if isinstance(s, OneOperand))
        for line.repeat in range(len(op.group(first.name))):
            self.write_all(line, op)
        line.repeat = -1


@dataclass(frozen=True, slots=True)
class _Clauses(TextStep):
    clauses: tuple[Optional, ...]

    def starts(self, p: Parser) -> bool:
        return any(c.starts(p) for c in self.clauses)

    def present(self, op: Operation) -> bool:
        return any(c.present(op) for c in self.clauses)


@dataclass(frozen=True, slots=True)
class AnyOrder(_Clauses):
    """Clauses in any order, each at most once, optionally with a comma before each."""

    comma: bool

    def read(self, p: Parser, draft: Draft) -> None:
        left = list(self.clauses)
        while left:
            comma = p.text == ","
            p.i += comma
            clause = next((c for c in left if c.starts(p)), None)
            if clause is None:
                p.i -= comma
                return
            left.remove(clause)
            clause.read(p, draft)

    def write(self, line: PrintedLine, op: Operation) -> None:
        for clause in self.clauses:
            if clause.present(op):
                if self.comma and line.last not in ("(", "{"):
                    line.put(",")
                clause.write(line, op)


@dataclass(frozen=True, slots=True)
class OneOf(_Clauses):
    """Exactly one of the clauses."""

    def read(self, p: Parser, draft: Draft) -> None:
        next((c for c in self.clauses if c.starts(p)), self.clauses[-1]).read_all(p, draft)

    def write(self, line: PrintedLine, op: Operation) -> None:
        next((c for c in self.clauses if c.present(op)), self.clauses[-1]).write_all(line, op)


@dataclass(frozen=True, slots=True)
class Label(TextStep):
    """A word before the type of the next operand in the type list (`loop i64, i64`). The reader of
    type lists passes over it."""

    word: str

    def write(self, line: PrintedLine, op: Operation) -> None:
        line.label = self.word
