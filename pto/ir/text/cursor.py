"""A cursor over tokens: the next token, scopes of SSA names, types and attribute lists.

The syntax of operations is in `ir/text/parser.py` and in the patterns of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NoReturn, Self

from pto.core.errors import Diagnostic, PtoError, nearest
from pto.ir.graph import Operation, Source, Span, Value
from pto.ir.text import attribute_text
from pto.ir.text import lexer as lx
from pto.ir.text.types import is_scalar_word, parse_type, type_text
from pto.isa.row.attributes import Attribute, Unit
from pto.isa.row.instr import Instr, Operand
from pto.isa.row.types import KINDS, Function, Opaque, Type

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser


MAX_FINDINGS = 50
Use = tuple[int, Value, Value]  # token, the value as one operand, the value
POISON = Opaque("<error>")  # the type of a value with a failed definition; it matches any type
_ELIDED = {"pointer": "!pto.ptr", "tile": "!pto.tile_buf", "vreg": "!pto.vreg", "mask": "!pto.mask"}


class ParseFailed(PtoError):
    """One operation could not be read; the parser continues after it."""


class Cursor:
    """A position in the tokens, the names in scope, and the findings so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = lx.Tokens(source.file, source.text)
        self.kinds, self.texts = self.tokens.kinds, self.tokens.texts
        self.i = 0
        self.scopes: list[dict[str, Value]] = [{}]
        self.findings: list[Diagnostic] = []
        self.aliases: dict[str, str] = {}
        self.uses: list[Use] = []  # of the current operation

    # ---- cursor

    @property
    def kind(self) -> int:
        return self.kinds[self.i]

    @property
    def text(self) -> str:
        return self.texts[self.i]

    def at(self, text: str) -> bool:
        """Is the cursor at this punctuation or word?"""
        return self.texts[self.i] == text and self.kinds[self.i] != lx.STRING

    def take(self) -> str:
        """The current token, passed over; the end of the file stays."""
        text = self.texts[self.i]
        self.i += self.kinds[self.i] != lx.END
        return text

    def accept(self, text: str) -> bool:
        is_next = self.at(text)
        self.i += is_next
        return is_next

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail("PTO-P010", f"expected `{text}`, got {self.shown()}")

    def items(self, opener: str, closer: str) -> Iterator[None]:
        """Pass over `opener`, commas and `closer`; the caller reads one item for each iteration."""
        self.expect(opener)
        while not self.accept(closer):
            yield
            if self.text != closer:
                self.expect(",")

    def ahead(self, test: Callable[[Self], bool]) -> bool:
        """Does `test` hold one token further on?"""
        self.i += 1
        holds = test(self)
        self.i -= 1
        return holds

    def shown(self) -> str:
        """The current token as messages name it."""
        text = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        return text if self.kind == lx.END else f"`{text}`"

    def fail(
        self, code: str, message: str, *, help: str | None = None, at: int | None = None
    ) -> NoReturn:
        loc = self.span(self.i if at is None else at).loc
        raise ParseFailed(Diagnostic(code, message, loc, help=help))

    def note(self, code: str, message: str, at: int) -> None:
        """A finding that does not stop the operation."""
        self.record(Diagnostic(code, message, self.span(at).loc))

    def span(self, first: int, last: int | None = None) -> Span:
        """The source range of token `first`, or of the tokens from `first` to `last`."""
        tokens = self.tokens
        return Span(self.source, tokens.start(first), tokens.ends[first if last is None else last])

    def record(self, finding: Diagnostic) -> None:
        """Keep a finding, unless it follows from the one before: nothing was read between them."""
        if self.findings and self.findings[-1].loc == finding.loc:
            return
        self.findings.append(finding)
        if len(self.findings) >= MAX_FINDINGS:
            raise PtoError(*self.findings)

    # ---- SSA names

    def named(self) -> Value | None:
        """The value of the name at the cursor, or None if it is not defined."""
        return self.value(self.text[1:])

    def value(self, name: str) -> Value | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def use(self) -> Value:
        """The operand at the cursor, as a copy of the value until the operation has been read, so
        that each use can be matched to its token."""
        if self.kind != lx.VALUE:
            self.fail("PTO-P020", f"expected an operand, got {self.shown()}")
        at = self.i
        value = self.named()
        name = self.take()[1:]
        if value is not None:
            here = Value(value.type, value.name, value.owner)
            self.uses.append((at, here, value))
            return here
        names = [n for scope in self.scopes for n in scope]
        self.fail("PTO-P011", f"%{name} is not defined here", help=nearest(name, names), at=at)

    def define(self, name: str, value: Value, at: int) -> None:
        if self.value(name) is not None:
            self.note("PTO-P015", f"%{name} is defined twice", at)
        self.scopes[-1][name] = value

    # ---- types

    def type(self, like: Type | None = None, kind: str = "", depth: int = 0) -> Type:
        """A type; `<f32, ub>` without its head takes the head of `like` or of the kind."""
        at = self.i
        try:
            if self.kind in (lx.TYPE, lx.WORD):
                text = self.take()
                return parse_type(self.aliases.get(text, text))
            if self.text == "<":
                return self._elided(like, kind)
            if self.text == "(":
                return self.function_type(depth)
        except PtoError as error:
            if isinstance(error, ParseFailed):
                raise
            diagnostic = error.diagnostics[0]
            self.fail(diagnostic.code, diagnostic.message, help=diagnostic.help, at=at)
        self.fail("PTO-P016", f"expected a type, got {self.shown()}")

    def _elided(self, like: Type | None, kind: str) -> Type:
        first, depth = self.i, 0
        while True:
            depth += (self.text == "<") - (self.text == ">")
            if self.kind == lx.END:
                self.fail("PTO-P010", "expected `>`, got the end of the file")
            self.i += 1
            if depth == 0:
                break
        head = _ELIDED.get(kind, "!pto.tile_buf")
        if like is not None and like is not POISON:
            head = type_text(like).partition("<")[0]
        written = self.span(first, self.i - 1)
        return parse_type(head + self.source.text[written.start : written.end])

    def function_type(self, depth: int = 0) -> Function:
        inputs = self.type_list(depth)
        self.expect("->")
        return Function(tuple(inputs), tuple(self.types(depth)))

    def types(self, depth: int = 0) -> list[Type]:
        """`T` or `(T, T)`."""
        return self.type_list(depth) if self.text == "(" else [self.type(depth=depth + 1)]

    def type_list(self, depth: int = 0) -> list[Type]:
        """`(T, T)`, possibly empty."""
        if depth > lx.MAX_DEPTH:
            self.fail("PTO-P023", f"function types are nested more than {lx.MAX_DEPTH} deep")
        return [self.type(depth=depth + 1) for _ in self.items("(", ")")]

    def signature(self, draft: Draft) -> None:
        """`(T, T) -> T`: types of the pending operands, and of the results."""
        at = self.i
        type = self.function_type()
        if len(type.inputs) != len(draft.pending):
            wanted = len(draft.pending)
            message = f"{wanted} operands need {wanted} types, got {len(type.inputs)}"
            self.fail("PTO-P017", message, at=at)
        for value, written in zip(draft.pending, type.inputs, strict=True):
            self.agree(value, written, at)
        draft.pending.clear()
        draft.result_types = list(type.results)

    def types_of(self, draft: Draft, skippable: Sequence[Value] = ()) -> None:
        """One type for each pending operand; it must be the type the operand has.

        Those of `skippable` operands may be left out.
        """
        for n, value in enumerate(draft.pending):
            ahead = self.texts[self.i + (self.text == ",")]
            if any(value is skipped for skipped in skippable) and ahead != type_text(value.type):
                continue
            if n:
                if self.text != ",":
                    count = len(draft.pending)
                    self.fail(
                        "PTO-P017", f"{count} operands need {count} types, got {n}", at=self.i - 1
                    )
                self.i += 1
            while self.kind == lx.WORD and not is_scalar_word(self.text):
                self.i += 1  # a label: `loop i64, i64`
            at = self.i
            self.agree(value, self.type(value.type), at)
        draft.pending.clear()

    def shared_type(self, draft: Draft) -> None:
        at = self.i
        written = self.type(draft.pending[0].type if draft.pending else None)
        for value in draft.pending:
            self.agree(value, written, at)
        if not draft.pending:
            draft.result_types.append(written)
        draft.pending.clear()

    def agree(self, value: Value, written: Type, at: int) -> None:
        if value.type == written or value.type is POISON:
            return
        actual = type_text(value.type)
        message = f"%{value.name} is {actual}, but its type is written {type_text(written)}"
        self.note("PTO-T040", message, at)

    def result_types(self, draft: Draft) -> None:
        results = draft.row.results
        parenthesised = self.accept("(")
        while not (parenthesised and self.text == ")"):
            nth = len(draft.result_types)
            kind = results[nth].kind if nth < len(results) else ""
            draft.result_types.append(self.type(kind=kind))
            if not self.accept(","):
                break
        if parenthesised:
            self.expect(")")

    # ---- attributes

    def attribute(self) -> Attribute:
        return attribute_text.read(self)

    def attr_items(self, opener: str, closer: str) -> list[tuple[str, Attribute]]:
        """`{key = value, unit, "quoted" = 1}`."""
        items: list[tuple[str, Attribute]] = []
        keys: set[str] = set()
        for _ in self.items(opener, closer):
            if self.kind not in (lx.WORD, lx.STRING):
                self.fail("PTO-P018", f"expected an attribute name, got {self.shown()}")
            key = self.take().strip('"')
            if key in keys:
                self.note("PTO-P019", f"attribute {key} is given twice", self.i - 1)
            keys.add(key)
            items.append((key, self.attribute() if self.accept("=") else Unit()))
        return items


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
    start = 0
    end = len(values)
    spare = len(values) - required
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
        p.fail("PTO-P013", f"'{row.name}' op does not take %{values[start].name}: expects {words}")
    rest = iter(values)
    return [(o.name, list(islice(rest, n))) for o, n in zip(operands, sizes, strict=True)]
