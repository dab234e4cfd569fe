"""A program that is being edited: parsed again after each change, function by function.

The text is split at the starts of functions. A function with unchanged text keeps its operations
and findings; only checks between functions run again. If splitting fails (a brace is missing,
modules are nested), the whole text is one section. In both cases the findings are those of `pto
check`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from pto.core.errors import Diagnostic, Loc, PtoError
from pto.ir.graph import Block, Module, Operation, Region, Source, Value
from pto.ir.text import lexer as lx
from pto.ir.text.parser import Parser
from pto.target.facts import Profile
from pto.target.profile import Target
from pto.verify import operation
from pto.verify.program import judge, verify

_FUNCTION = re.compile(r"^[ \t]*func\.func\b", re.MULTILINE)


class TextSpan(NamedTuple):
    """A range of the text, by offsets."""

    start: int
    end: int


class Reader(Parser):
    """A parser that records the value of each `%name`."""

    def __init__(self, source: Source, aliases: Mapping[str, str] | None = None) -> None:
        super().__init__(source)
        self.aliases.update(aliases or {})
        self.values: dict[int, Value] = {}  # by token
        self.homes: dict[int, int] = {}  # the token that defines a value, by the value's id

    def use(self) -> Value:
        found = super().use()
        at, _, value = self.uses[-1]
        self.values[at] = value
        return found

    def operation(self) -> Operation:
        start = self.i
        op = super().operation()
        # a value that was not parsed again
        for at in range(start, self.i) if not op.regions else ():
            if self.kinds[at] == lx.VALUE and at not in self.values:
                value = self.value(self.texts[at][1:])
                if value is not None:
                    self.values[at] = value
        return op

    def define(self, name: str, value: Value, at: int) -> None:
        super().define(name, value, at)
        self.values[at] = value
        self.homes[id(value)] = at

    def balance(self) -> int:
        """The number of open braces minus the number of closing ones."""
        pairs = zip(self.kinds, self.texts, strict=True)
        marks = [text for kind, text in pairs if kind == lx.PUNCT]
        return marks.count("{") - marks.count("}")


@dataclass(slots=True)
class Piece:
    """A section of the text that was parsed separately."""

    source: Source
    start: int  # offset of its first character
    reader: Reader | None  # None: not tokenised
    block: Block
    findings: list[Diagnostic]
    module: Module | None = None  # only for a section that is the whole text
    judged: dict[str, tuple[int, list[Diagnostic]]] = field(
        default_factory=dict[str, tuple[int, list[Diagnostic]]]
    )

    def findings_of_operations(self, profile: Profile) -> list[Diagnostic]:
        """Findings about single operations; their lines move with the section."""
        key = str(profile)
        if key not in self.judged:
            findings = [d for op in self.block.ops for d in operation.check(op, profile)]
            self.judged[key] = (self.source.first, findings)
        first, findings = self.judged[key]
        return [_moved(d, self.source.first - first) for d in findings]

    def token(self, offset: int) -> int | None:
        """The token at an offset of the whole text; one that ends there counts, too."""
        if self.reader is None:
            return None
        inside, tokens = offset - self.start, self.reader.tokens
        at = bisect_left(tokens.ends, inside)
        if at + 1 < len(tokens.ends) and tokens.start(at + 1) == inside:
            at += 1  # of two adjacent tokens, the one that starts here
        return at if at < len(tokens.ends) and tokens.start(at) <= inside else None

    def span(self, at: int) -> TextSpan:
        """The span of a token in the whole text."""
        assert self.reader is not None
        tokens = self.reader.tokens
        return TextSpan(self.start + tokens.start(at), self.start + tokens.ends[at])


class Document:
    """One open file. `update` replaces its text."""

    def __init__(self, file: str, profile: str | None = None, device: str | None = None) -> None:
        self.file = file
        self.text = ""
        self.pieces: list[Piece] = []
        self.findings: list[Diagnostic] = []
        self.target: Target | None = None
        self.module: Module | None = None  # None: not well formed
        self.read = 0  # number of sections parsed after the last change
        self._functions: list[Piece] = []  # sections of the last successful split
        self._profile, self._device = profile, device

    def update(self, text: str) -> None:
        """Parse the changed sections, then check the whole."""
        self.text = text
        self.read = 0
        reusable: defaultdict[str, list[Piece]] = defaultdict(list)
        for piece in {id(p): p for p in (*self._functions, *self.pieces)}.values():
            reusable[piece.source.text].append(piece)
        module = self._by_function(reusable)
        if module is None:
            module = self._whole(reusable)
        self.module = None
        self.findings = [d for piece in self.pieces for d in piece.findings]
        if self.findings or module is None:
            return
        self.module = module
        try:
            self.target, self.findings = judge(
                module, profile=self._profile, device=self._device, by=self._judged
            )
        except PtoError as error:  # the target does not exist
            self.findings = list(error.diagnostics)

    def piece(self, offset: int) -> Piece | None:
        """The section that contains an offset."""
        starts = [piece.start for piece in self.pieces]
        n = bisect_right(starts, offset) - 1
        return self.pieces[n] if n >= 0 else None

    def _judged(
        self, module: Module, profile: Profile, *, level: int | None = None
    ) -> list[Diagnostic]:
        of_pieces = [d for piece in self.pieces for d in piece.findings_of_operations(profile)]
        return verify(module, profile, level=level, of_operations=of_pieces)

    # ---- reading

    def _by_function(self, reusable: defaultdict[str, list[Piece]]) -> Module | None:
        """One section per function, and one for the text before.

        None if the text cannot be split.
        """
        starts = [found.start() for found in _FUNCTION.finditer(self.text)]
        if len(starts) < 2:
            return None
        head = self._read(reusable, 0, starts[0], 0)
        if head.reader is None or head.findings:
            return None
        open_braces, aliases = head.reader.balance(), head.reader.aliases
        pieces = [head]
        for start, end in zip(starts, [*starts[1:], len(self.text)], strict=True):
            piece = self._read(reusable, start, end, pieces[-1].source.first, aliases, pieces[-1])
            closes = open_braces if end == len(self.text) else 0
            reader = piece.reader
            if reader is None or reader.balance() != -closes or reader.aliases != aliases:
                return None
            pieces.append(piece)
        self.pieces = self._functions = pieces
        return self._assembled(head, pieces[1:])

    def _read(
        self,
        reusable: defaultdict[str, list[Piece]],
        start: int,
        end: int,
        first: int,
        aliases: Mapping[str, str] | None = None,
        before: Piece | None = None,
    ) -> Piece:
        text = self.text[start:end]
        first += before.source.text.count("\n") if before else 0
        if reusable[text] and (before is None or reusable[text][-1].module is None):
            piece = reusable[text].pop()
            moved = first - piece.source.first
            piece.source.first, piece.start = first, start
            piece.findings = [_moved(d, moved) for d in piece.findings]
            return piece
        self.read += 1
        source = Source(self.file, text, first)
        return _parsed(source, start, partial(_function, aliases=aliases) if before else _head)

    def _assembled(self, head: Piece, functions: list[Piece]) -> Module | None:
        top = head.module
        if top is None:
            return None
        block = top.op.regions[0].block
        count = len(head.block.ops)
        del block.ops[count:]
        for op in (op for piece in functions for op in piece.block.ops):
            op.parent = block
            block.ops.append(op)
        return Module(top.op, Source(self.file, self.text))

    def _whole(self, reusable: defaultdict[str, list[Piece]]) -> Module | None:
        if reusable[self.text] and reusable[self.text][0].start == 0:
            self.pieces = [reusable[self.text][0]]
            return self.pieces[0].module
        self.read += 1
        self.pieces = [_parsed(Source(self.file, self.text), 0, _program)]
        return self.pieces[0].module


def _parsed(source: Source, start: int, parse: Callable[[Piece], Reader]) -> Piece:
    """A section; `parse` sets its tokens and operations, and gives the parser with the findings."""
    piece = Piece(source, start, None, Block(Region(Operation("lsp.piece"))), [])
    try:
        piece.findings = list(parse(piece).findings)
    except PtoError as error:
        piece.findings = list(error.diagnostics)
    return piece


def _program(piece: Piece) -> Reader:
    """The whole text."""
    reader = piece.reader = Reader(piece.source)
    piece.module = reader.program()
    piece.block.ops = [piece.module.op]
    return reader


def _head(piece: Piece) -> Reader:
    """The text before the first function: aliases, and a module that is closed temporarily."""
    head_reader = piece.reader = Reader(piece.source)
    closed = piece.source.text + "\n}" * head_reader.balance()
    reader = Reader(Source(piece.source.file, closed))
    piece.module = reader.program()
    head_reader.aliases = reader.aliases
    head_reader.values = reader.values
    head_reader.homes = reader.homes
    piece.block.ops = list(piece.module.op.regions[0].block.ops)
    return reader


def _function(piece: Piece, aliases: Mapping[str, str] | None) -> Reader:
    """A function and the text up to the next one; the last one closes the module."""
    reader = piece.reader = Reader(piece.source, aliases)
    reader.operations(piece.block, "}")
    return reader


def _moved(finding: Diagnostic, lines: int) -> Diagnostic:
    if not lines:
        return finding
    notes = tuple(replace(n, loc=_lower(n.loc, lines)) for n in finding.notes)
    return replace(finding, loc=_lower(finding.loc, lines), notes=notes)


def _lower(loc: Loc | None, lines: int) -> Loc | None:
    return None if loc is None else replace(loc, line=loc.line + lines)
