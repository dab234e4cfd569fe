"""Compiles the text pattern of a row (see `isa/instr.py`) into steps that parse and print it.

A step knows how it starts, how to read itself into a Draft and how to print itself.
Nothing here knows an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from pto.core.errors import nearest
from pto.ir import lexer as lx
from pto.ir.graph import Operation, Region, Value
from pto.ir.types import parse_type
from pto.isa.attributes import Attribute, Bool, Enum, Float, Int, Str, Symbol, Unit
from pto.isa.enums import kinds_of
from pto.isa.instr import Attr, Instr, Operand
from pto.isa.kinds import KINDS
from pto.isa.types import Opaque, Type

if TYPE_CHECKING:
    from pto.ir.parser import Parser
    from pto.ir.printer import Line


@dataclass(slots=True)
class Draft:
    """An operation while it is being read: what its text has named so far."""

    row: Instr
    op: Operation
    bound: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])
    pending: list[Value] = field(default_factory=list[Value])  # waiting for their types
    result_types: list[Type] = field(default_factory=list[Type])

    def bind(self, name: str, value: Value) -> None:
        self.bound.setdefault(name, []).append(value)
        self.pending.append(value)


class Step(Protocol):
    def starts(self, p: Parser) -> bool: ...
    def read(self, p: Parser, draft: Draft) -> None: ...
    def write(self, line: Line, op: Operation) -> None: ...
    def present(self, op: Operation) -> bool: ...


@dataclass(frozen=True, slots=True)
class Literal:
    text: str

    def starts(self, p: Parser) -> bool:
        return p.text == self.text and p.kind in (lx.WORD, lx.PUNCT)

    def read(self, p: Parser, draft: Draft) -> None:
        p.expect(self.text)

    def write(self, line: Line, op: Operation) -> None:
        line.put(self.text)

    def present(self, op: Operation) -> bool:
        return False  # a literal alone never forces its group to be printed


@dataclass(frozen=True, slots=True)
class OneOperand:
    name: str
    kind: str = ""  # of an optional operand: a value of another kind is not this operand

    def starts(self, p: Parser) -> bool:
        value = p.named() if self.kind and p.kind == lx.VALUE else None
        if value is None or isinstance(value.type, Opaque):
            return p.kind == lx.VALUE
        return KINDS[self.kind].accepts(value.type)

    def read(self, p: Parser, draft: Draft) -> None:
        draft.bind(self.name, p.use())

    def write(self, line: Line, op: Operation) -> None:
        values, nth = op.group(self.name), max(line.repeat, 0)
        if nth < len(values):  # an incomplete operation prints what it has
            line.operand(values[nth])

    def present(self, op: Operation) -> bool:
        return bool(op.group(self.name))


@dataclass(frozen=True, slots=True)
class OperandList:
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

    def write(self, line: Line, op: Operation) -> None:
        line.operands(op.group(self.name))

    def present(self, op: Operation) -> bool:
        return bool(op.group(self.name))


@dataclass(frozen=True, slots=True)
class Side:
    """All operands of one side with their types; optional ones are told apart by count and type.

    Some tools write the attribute dictionary inside (`ins(%a {cmpMode = ..} : T)`) or the types
    piecemeal (`ins(%a : T, %scale : i64)`): both are read. `dictionary` prints it inside.
    """

    operands: tuple[Operand, ...]
    dictionary: Dictionary | None = None

    def starts(self, p: Parser) -> bool:
        return p.kind == lx.VALUE

    def read(self, p: Parser, draft: Draft) -> None:
        values: list[Value] = []
        while True:
            if p.kind == lx.VALUE:
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
        for name, chunk in distribute(p, draft.row, self.operands, values):
            draft.bound[name] = chunk

    def write(self, line: Line, op: Operation) -> None:
        line.operands([v for o in self.operands for v in op.group(o.name)])
        if self.dictionary:
            self.dictionary.write(line, op)
        line.put(":")
        line.types(shared=False)

    def present(self, op: Operation) -> bool:
        return any(op.group(o.name) for o in self.operands)


def distribute(
    p: Parser, row: Instr, operands: Sequence[Operand], values: Sequence[Value]
) -> list[tuple[str, list[Value]]]:
    """Give each operand its values: by count where that decides, else by type, left to right.

    Behind a list the order is right to left, so that the list takes what is left over.
    """
    required = sum(not (o.optional or o.variadic) for o in operands)
    open_ended = any(o.variadic for o in operands)
    if len(values) < required or (len(values) > len(operands) and not open_ended):
        most = len(operands) if not open_ended else "more"
        wanted = str(required) if required == most else f"{required} to {most}"
        names = ", ".join(o.name + "?" * o.optional for o in operands)
        p.fail(
            "PTO-P012", f"'{row.name}' op expects {wanted} operands ({names}), got {len(values)}"
        )
    first = next((n for n, o in enumerate(operands) if o.variadic), len(operands))
    sizes = [0] * len(operands)
    start, end, spare = 0, len(values), len(values) - required
    for n in (*range(first), *range(len(operands) - 1, first, -1)):  # behind a list, from the right
        o = operands[n]
        if o.optional:
            value = values[start if n < first else end - 1] if spare else None
            if value is None or not KINDS[o.kind].accepts(value.type):
                continue
            spare -= 1
        if not o.variadic:
            sizes[n] = 1
            start, end = start + (n < first), end - (n > first)
    if open_ended:
        sizes[first] = end - start
    elif start < end:
        words = KINDS[operands[-1].kind].words
        p.fail("PTO-P013", f"'{row.name}' op has no use for %{values[start].name}: expects {words}")
    rest = iter(values)
    return [(o.name, list(islice(rest, n))) for o, n in zip(operands, sizes, strict=True)]


@dataclass(frozen=True, slots=True)
class InPlace:
    """An attribute written among the operands, in any spelling its kind allows."""

    spec: Attr

    def starts(self, p: Parser) -> bool:
        kind = p.kind
        if kinds_of(self.spec.kind) or self.spec.values:
            if kind == lx.WORD:
                return p.text in _words(self.spec)
            return kind in (lx.ATTR, lx.STRING) or p.text == "<"
        wanted = {"int": lx.NUMBER, "i32": lx.NUMBER, "str": lx.STRING, "symbol": lx.SYMBOL}.get(
            self.spec.kind
        )
        return kind == wanted

    def read(self, p: Parser, draft: Draft) -> None:
        set_once(p, draft, self.spec.name, in_place_value(p, self.spec))

    def write(self, line: Line, op: Operation) -> None:
        if self.present(op):
            line.in_place(op.attrs[self.spec.name])

    def present(self, op: Operation) -> bool:
        return self.spec.name in op.attrs


def _words(spec: Attr) -> tuple[str, ...]:
    return spec.values or tuple(w for kind in kinds_of(spec.kind) for w in kind.words)


def set_once(p: Parser, draft: Draft, name: str, value: Attribute) -> None:
    """Text may repeat an attribute (`nd2nz` among the types), but not contradict itself."""
    if draft.op.attrs.setdefault(name, value) != value:
        p.fail("PTO-P019", f"attribute {name} is given twice, and differently", at=p.i - 1)


def in_place_value(p: Parser, spec: Attr) -> Attribute:
    """Read one value; `"PIPE_V"`, `<PIPE_V>`, `#pto.pipe<PIPE_V>` and PIPE_V are the same."""
    enum = bool(kinds_of(spec.kind))
    if enum and p.kind in (lx.STRING, lx.WORD):
        word = p.take()
        return canonical(p, spec, Str(word.strip('"')))
    if enum and p.accept("<"):
        word = p.take()
        p.expect(">")
        return canonical(p, spec, Str(word))
    if spec.values and p.kind == lx.WORD:
        return canonical(p, spec, Str(p.take()))
    return canonical(p, spec, p.attribute())


def canonical(p: Parser, spec: Attr, value: Attribute) -> Attribute:
    """One representation per meaning, or a diagnostic that names what is allowed."""
    if kinds_of(spec.kind):
        return _canonical_enum(p, spec, value)
    if spec.kind in _INT_TYPES and isinstance(value, Int):
        return Int(value.value, _INT_TYPES[spec.kind])
    if spec.kind == "bool" and isinstance(value, Int):
        return Bool(bool(value.value))
    if spec.values and isinstance(value, Str) and value.value not in spec.values:
        _bad_word(p, spec, value.value, spec.values)
    classes = _ATTR_CLASSES.get(spec.kind)
    if classes is not None and not isinstance(value, classes):
        p.fail("PTO-P014", f"attribute {spec.name} is {spec.kind}, got {type(value).__name__}")
    return value


# MLIR reads a bare number as i64; an attribute of another width must say so.
_INT_TYPES = {"int": None, "i32": parse_type("i32")}
_ATTR_CLASSES: dict[str, type[Attribute] | tuple[type[Attribute], ...]] = {
    "int": Int,
    "i32": Int,
    "bool": Bool,
    "str": Str,
    "symbol": Symbol,
    "float": (Float, Int),
}


def _canonical_enum(p: Parser, spec: Attr, value: Attribute) -> Attribute:
    kinds, words = kinds_of(spec.kind), _words(spec)
    word: str | None = None
    if isinstance(value, Str | Enum):
        word = value.value
    elif isinstance(value, Int):
        word = kinds[0].word(value.value)
    if isinstance(value, Enum):
        kinds = tuple(k for k in kinds if k.name == value.kind) or kinds
        if value.kind != kinds[0].name and value.value not in words:
            p.fail("PTO-P014", f"attribute {spec.name} is a {spec.kind}, got a {value.kind}")
    if word is None or word not in words:
        _bad_word(p, spec, "?" if word is None else word, words)
    kind = next((k for k in kinds if word in k.words), kinds[0])
    return Enum(kind.name, kind.word(kind.number(word or "")) or "")


def _bad_word(p: Parser, spec: Attr, word: str, words: Sequence[str]) -> None:
    shown = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
    message = f"attribute {spec.name} cannot be `{word}`; it is one of {shown}"
    p.fail("PTO-T036", message, help=nearest(word, words), at=p.i - 1)


@dataclass(frozen=True, slots=True)
class Flag:
    """A bare word that stands for a unit attribute."""

    name: str

    def starts(self, p: Parser) -> bool:
        return p.kind == lx.WORD and p.text == self.name

    def read(self, p: Parser, draft: Draft) -> None:
        p.i += 1
        draft.op.attrs[self.name] = Unit()

    def write(self, line: Line, op: Operation) -> None:
        line.put(self.name)

    def present(self, op: Operation) -> bool:
        return self.name in op.attrs


@dataclass(frozen=True, slots=True)
class Sets:
    """No text of its own: the words around it stand for this value of an enum."""

    name: str
    value: Enum

    def starts(self, p: Parser) -> bool:
        return True

    def read(self, p: Parser, draft: Draft) -> None:
        set_once(p, draft, self.name, self.value)

    def write(self, line: Line, op: Operation) -> None:
        return

    def present(self, op: Operation) -> bool:
        return op.attrs.get(self.name) == self.value


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The attribute dictionary; prints what no other step prints."""

    elsewhere: frozenset[str]
    read_only: bool = False  # another place prints it

    def starts(self, p: Parser) -> bool:
        return p.text == "{"

    def read(self, p: Parser, draft: Draft) -> None:
        if p.text == "{":
            p.attr_dict(draft)

    def write(self, line: Line, op: Operation) -> None:
        if self.read_only:
            return
        line.dictionary({k: v for k, v in op.attrs.items() if k not in self.elsewhere})

    def present(self, op: Operation) -> bool:
        return any(k not in self.elsewhere for k in op.attrs)


@dataclass(frozen=True, slots=True)
class Types:
    """One type for each pending operand, one shared by all, or those of the operands named."""

    shared: bool
    names: tuple[str, ...] = ()

    def starts(self, p: Parser) -> bool:
        return True

    def read(self, p: Parser, draft: Draft) -> None:
        if self.names:
            draft.pending[:] = [v for n in self.names for v in draft.bound.get(n, [])]
        if self.shared:
            p.shared_type(draft)
        elif draft.pending:
            p.types_of(draft)

    def write(self, line: Line, op: Operation) -> None:
        if self.names:
            line.pending[:] = [("", v) for n in self.names for v in op.group(n)]
        line.types(self.shared)

    def present(self, op: Operation) -> bool:
        return any(op.group(n) for n in self.names)


@dataclass(frozen=True, slots=True)
class ResultTypes:
    def starts(self, p: Parser) -> bool:
        return True

    def read(self, p: Parser, draft: Draft) -> None:
        p.result_types(draft)

    def write(self, line: Line, op: Operation) -> None:
        line.result_types(op)

    def present(self, op: Operation) -> bool:
        return bool(op.results)


@dataclass(frozen=True, slots=True)
class Body:
    """A region without arguments."""

    def starts(self, p: Parser) -> bool:
        return p.text == "{"

    def read(self, p: Parser, draft: Draft) -> None:
        region = Region(draft.op)
        draft.op.regions.append(region)
        p.region(region)

    def write(self, line: Line, op: Operation) -> None:
        line.region(op.regions[0])

    def present(self, op: Operation) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Optional:
    steps: tuple[Step, ...]

    def starts(self, p: Parser) -> bool:
        first = self.steps[0]
        if not first.starts(p):
            return False
        if isinstance(first, Literal) and len(self.steps) > 1:
            return p.ahead(self.steps[1].starts)
        return True

    def read(self, p: Parser, draft: Draft) -> None:
        if self.starts(p):
            for step in self.steps:
                step.read(p, draft)

    def write(self, line: Line, op: Operation) -> None:
        if self.present(op):
            for step in self.steps:
                step.write(line, op)

    def present(self, op: Operation) -> bool:
        return any(s.present(op) for s in self.steps)


@dataclass(frozen=True, slots=True)
class Repeated:
    steps: tuple[Step, ...]

    def starts(self, p: Parser) -> bool:
        return self.steps[0].starts(p)

    def read(self, p: Parser, draft: Draft) -> None:
        while self.starts(p):
            for step in self.steps:
                step.read(p, draft)

    def write(self, line: Line, op: Operation) -> None:
        first = next(s for s in self.steps if isinstance(s, OneOperand))
        for line.repeat in range(len(op.group(first.name))):
            for step in self.steps:
                step.write(line, op)
        line.repeat = -1

    def present(self, op: Operation) -> bool:
        return any(s.present(op) for s in self.steps)


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """Clauses in any order, each at most once; a comma may stand before each."""

    clauses: tuple[Optional, ...]
    comma: bool

    def starts(self, p: Parser) -> bool:
        return any(c.starts(p) for c in self.clauses)

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

    def write(self, line: Line, op: Operation) -> None:
        for clause in self.clauses:
            if clause.present(op):
                if self.comma and line.last != "(":
                    line.put(",")
                clause.write(line, op)

    def present(self, op: Operation) -> bool:
        return any(c.present(op) for c in self.clauses)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Exactly one of the clauses."""

    clauses: tuple[Optional, ...]

    def starts(self, p: Parser) -> bool:
        return any(c.starts(p) for c in self.clauses)

    def read(self, p: Parser, draft: Draft) -> None:
        clause = next((c for c in self.clauses if c.starts(p)), self.clauses[-1])
        for step in clause.steps:
            step.read(p, draft)

    def write(self, line: Line, op: Operation) -> None:
        clause = next((c for c in self.clauses if c.present(op)), self.clauses[-1])
        clause.write(line, op)

    def present(self, op: Operation) -> bool:
        return any(c.present(op) for c in self.clauses)


@dataclass(frozen=True, slots=True)
class Label:
    """A word that stands before the type of the next operand in the type list (`loop i64, i64`)."""

    word: str

    def starts(self, p: Parser) -> bool:
        return True

    def read(self, p: Parser, draft: Draft) -> None:
        return  # the reader of type lists passes over such words

    def write(self, line: Line, op: Operation) -> None:
        line.label = self.word

    def present(self, op: Operation) -> bool:
        return False


_PIECE = re.compile(
    r"'\w+'|\$ins\{\}|types\([\w,]+\)|<[|?*1]|\{\}|->|!\w+=\w+|[$@&~#]\w+\*?|[\w.]+|[(){}\[\],:=<>|]"
)


@cache
def compile_format(row: Instr) -> tuple[Step, ...]:
    """The steps of a row's text pattern."""
    pieces = _PIECE.findall(row.text)
    named = [p[1:].partition("=")[0] for p in pieces if p[0] in "@&!"]
    builder = _Builder(row, pieces, frozenset(named))
    return builder.until(None)


class _Builder:
    def __init__(self, row: Instr, pieces: list[str], elsewhere: frozenset[str]) -> None:
        self.row, self.pieces, self.elsewhere, self.i = row, pieces, elsewhere, 0

    def until(self, end: str | None) -> tuple[Step, ...]:
        steps: list[Step] = []
        while self.i < len(self.pieces) and self.pieces[self.i] not in (end, "|" if end else None):
            steps.append(self.one())
        return tuple(steps)

    def one(self) -> Step:
        piece = self.pieces[self.i]
        self.i += 1
        if piece in ("<?", "<*", "<|", "<1"):
            return self.group(piece)
        makers = {
            "$": self.operand,
            "@": self.attribute,
            "&": Flag,
            "~": Label,
            "!": self.sets,
        }
        make = makers.get(piece[0])
        if make is not None:
            return make(piece[1:])
        words: dict[str, Step] = {
            "{}": Dictionary(self.elsewhere, "$ins{}" in self.pieces),
            "types": Types(False),
            "type": Types(True),
            "results": ResultTypes(),
            "#body": Body(),
        }
        if piece.startswith("types("):
            return Types(False, tuple(piece[6:-1].split(",")))
        return words.get(piece) or Literal(piece.strip("'"))

    def group(self, opener: str) -> Step:
        if opener in ("<|", "<1"):
            comma = self.pieces[self.i] == ","
            self.i += comma
            clauses: list[Optional] = []
            while True:
                clauses.append(Optional(self.until(">")))
                self.i += 1
                if self.pieces[self.i - 1] == ">":
                    listed = tuple(clauses)
                    return OneOf(listed) if opener == "<1" else AnyOrder(listed, comma)
        steps = self.until(">")
        self.i += 1
        return Optional(steps) if opener == "<?" else Repeated(steps)

    def operand(self, name: str) -> Step:
        if name in ("ins", "ins{}", "outs"):
            outs = ("out", "inout")
            chosen = (o for o in self.row.operands if (o.role in outs) == (name == "outs"))
            inside = Dictionary(self.elsewhere) if name == "ins{}" else None
            return Side(tuple(chosen), inside)
        if name.endswith("*"):
            return OperandList(name[:-1])
        if name not in self.row.operand_names:
            raise RuntimeError(f"{self.row.name}: text names ${name}, no such operand")
        kind = next(o.kind if o.optional else "" for o in self.row.operands if o.name == name)
        return OneOperand(name, kind)

    def attribute(self, name: str) -> Step:
        spec = self.row.attr(name)
        if spec is None:
            raise RuntimeError(f"{self.row.name}: text names @{name}, no such attribute")
        return InPlace(spec)

    def sets(self, text: str) -> Step:
        name, _, word = text.partition("=")
        spec = self.row.attr(name)
        if spec is None or word not in _words(spec):
            raise RuntimeError(f"{self.row.name}: text sets !{text}, no such attribute or word")
        return Sets(name, Enum(spec.kind, word))
