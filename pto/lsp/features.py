"""Answers about a position in a document: documentation, completion, definition, references.

Positions are offsets of characters; `places.py` converts the protocol's positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from pto.ir.graph import Value
from pto.ir.text import lexer as lx
from pto.ir.text.example import example
from pto.ir.text.structured import SHORT_NAMES
from pto.ir.text.types import HEADS, type_text
from pto.isa.row.describe import attr_text, attr_words
from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import Instr
from pto.isa.table import lookup, rows
from pto.lsp.document import Document, Piece, Reader, TextSpan
from pto.view.instruction import page

_DECLARED = re.compile(r"^[ \t]*func\.func\b[^@\n]*(@[\w$.-]+)", re.MULTILINE)
_WORDS = re.compile(r"[\w.]+")
_NEAR = 40  # lines before and after the statement that defines a row
Kind = Literal["instruction", "value", "type", "attribute", "word", "function"]


class HoverPage(NamedTuple):
    """A page about the word at a span."""

    span: TextSpan
    markdown: str


class Completion(NamedTuple):
    """A completion at a position."""

    label: str
    kind: Kind
    detail: str = ""
    documentation: str = ""


# ---- hover


def hover(document: Document, offset: int) -> HoverPage | None:
    """The page of an instruction with its cost, a value's type, or a function's signature."""
    token = _token(document, offset)
    if token is None:
        return None
    piece, reader, at = token
    kind, text = reader.kinds[at], reader.texts[at]
    answer = ""
    if kind == lx.VALUE and at in reader.values:
        answer = _value_page(reader.values[at])
    elif kind in (lx.WORD, lx.STRING):
        row = row_named(text.strip('"'))
        answer = fenced("".join(words for _, words in page(row)), "text") if row else ""
    elif kind == lx.SYMBOL:
        answer = _function_page(document, text)
    elif kind in (lx.TYPE, lx.ATTR) and text in reader.aliases:
        answer = fenced(reader.aliases[text])
    return HoverPage(piece.span(at), answer) if answer else None


def row_named(word: str) -> Instr | None:
    return lookup(SHORT_NAMES.get(word, word))


def row_home(row: Instr) -> tuple[str, int] | None:
    """File and line of a row in the instruction table; for rows defined in a loop, of the name."""
    module, line = row.home
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return None
    lines = enumerate(Path(spec.origin).read_text(encoding="utf-8").splitlines(), 1)
    wanted = row.mnemonic
    near = [n for n, text in lines if abs(n - line) < _NEAR and wanted in _WORDS.findall(text)]
    return spec.origin, min(near, key=lambda n: abs(n - line), default=line)


def _value_page(value: Value) -> str:
    maker = value.maker
    origin = "an argument" if maker is None else f"`{maker.name}`"
    meaning = f": {maker.row.meaning}" if maker is not None else ""
    return fenced(f"%{value.name} : {type_text(value.type)}") + f"\n{origin}{meaning}"


def _function_page(document: Document, symbol: str) -> str:
    for op in document.module.functions() if document.module else ():
        if f"@{op.symbol}" == symbol:
            return fenced(f"func.func {symbol}{type_text(op.signature)}")
    return ""


def fenced(text: str, language: str = "pto") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


# ---- values: definition, references, rename


def occurrences(document: Document, offset: int) -> tuple[TextSpan | None, list[TextSpan]]:
    """The definition of the value at an offset, and every use of it."""
    token = _token(document, offset)
    if token is None:
        return None, []
    piece, reader, at = token
    value = reader.values.get(at)
    if value is None:
        return _function_home(document, reader.texts[at]), []
    places = [piece.span(n) for n, named in sorted(reader.values.items()) if named is value]
    home = reader.homes.get(id(value))
    return (None if home is None else piece.span(home)), places


def instruction_home(document: Document, offset: int) -> tuple[str, int] | None:
    """File and line of the row of the instruction at an offset."""
    token = _token(document, offset)
    row = row_named(token[1].texts[token[2]].strip('"')) if token else None
    return row_home(row) if row else None


def renamed(document: Document, offset: int, name: str) -> tuple[list[TextSpan], str]:
    """The spans to rename to `%name`, or the reason why not.

    Spans exclude `%` and the number of a result.
    """
    wanted = name.removeprefix("%")
    token = _token(document, offset)
    places = occurrences(document, offset)[1]
    if not places or token is None:
        return [], "there is no value here"
    if not re.fullmatch(r"[A-Za-z_$.][\w$.-]*|\d+", wanted):
        return [], f"%{wanted} is no name of a value"
    taken = {value.name for value in token[1].values.values()}
    if wanted in taken:
        return [], f"%{wanted} is defined already"
    if any("#" in document.text[span.start : span.end] for span in places):
        return [], "one of several results cannot be named by itself"
    return [TextSpan(span.start + 1, span.end) for span in places], ""


def _function_home(document: Document, symbol: str) -> TextSpan | None:
    if not symbol.startswith("@"):
        return None
    return next((span for name, _, span in functions(document.text) if name == symbol), None)


def functions(text: str) -> list[tuple[str, TextSpan, TextSpan]]:
    """Function names, the span of each function (up to the next), and the span of its name."""
    declared = list(_DECLARED.finditer(text))
    ends = [*(match.start() for match in declared[1:]), len(text)]
    return [
        (match[1], TextSpan(match.start(), end), TextSpan(*match.span(1)))
        for match, end in zip(declared, ends, strict=True)
    ]


# ---- completion

_TYPED = re.compile(r"[\w$.%!#@]*$")
_VALUE = re.compile(r"%[\w$.-]*$")
_TYPE = re.compile(r"![\w.]*$")
_ENUM = re.compile(r"#pto(?:\.(\w+)<|<(\w+) )\w*$")
_HASH = re.compile(r"#[\w.]*$")
_SYMBOL = re.compile(r"@[\w$.-]*$")
_START = re.compile(r'^\s*(?:%[\w$.#:, %-]+=\s*)?"?[\w.]*$')
_ATTRIBUTE = re.compile(r"(\w+)\s*=\s*\"?\w*$")
_OPERATION = re.compile(r'(?:^|=)\s*"?([a-z]+\.[\w.]+)', re.MULTILINE)


def word_before(text: str, offset: int) -> TextSpan:
    """The part of a word that ends at an offset."""
    word = _TYPED.search(text, max(0, offset - 200), offset)
    return TextSpan(word.start() if word else offset, offset)


def completions(document: Document, offset: int) -> list[Completion]:
    """Completions at an offset."""
    text = document.text
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    enum = _ENUM.search(line)
    if enum:
        kind = ENUMS.get(enum[1] or enum[2])
        return [Completion(word, "word") for word in kind.words] if kind else []
    if _VALUE.search(line):
        return _values(text, offset)
    if _TYPE.search(line):
        return [Completion(head, "type") for head in sorted({*HEADS, *_aliases(text, "!")})]
    if _HASH.search(line):
        kinds = (kind.spell(kind.words[0]) for kind in ENUMS.values())
        return [Completion(each, "word") for each in sorted({*kinds, *_aliases(text, "#")})]
    if _SYMBOL.search(line):
        names = dict.fromkeys(name for name, _, _ in functions(text))
        return [Completion(name, "function") for name in names]
    if _START.match(line):
        return _instructions(document)
    operations = list(_OPERATION.finditer(text, max(0, offset - 2000), offset))
    row = row_named(operations[-1][1]) if operations else None
    return _attributes(row, line) if row else []


def _instructions(document: Document) -> list[Completion]:
    """Instructions, those of the profile first; names that MLIR abbreviates are short."""
    profile = document.target.profile.name if document.target else None
    return [
        Completion(row.name, "instruction", row.meaning, example(row) or "")
        for row in rows()
        if profile is None or profile in row.profiles
    ]


def _attributes(row: Instr, line: str) -> list[Completion]:
    attribute = _ATTRIBUTE.search(line)
    attr = row.attr(attribute[1]) if attribute else None
    if attr is not None:
        return [Completion(word, "word") for word in attr_words(attr)]
    return [Completion(a.name, "attribute", attr_text(a)) for a in row.attrs]


def _values(text: str, offset: int) -> list[Completion]:
    """Names defined in the function so far, the nearest first."""
    start = max(text.rfind("func.func", 0, offset), 0)
    names = re.findall(r"%[\w$.-]+(?=\s*(?:[,:][^%\n]*)?=|\s*:)", text[start:offset])
    return [Completion(name, "value") for name in dict.fromkeys(reversed(names))]


def _aliases(text: str, mark: str) -> set[str]:
    return set(re.findall(rf"^\s*({mark}\w+)\s*=", text, re.MULTILINE))


# ---- tokens

TOKEN_TYPES = ("variable", "keyword", "type", "enumMember", "string", "number", "function", "label")
_TOKEN_OF = {
    lx.VALUE: 0,
    lx.WORD: 1,
    lx.TYPE: 2,
    lx.ATTR: 3,
    lx.STRING: 4,
    lx.NUMBER: 5,
    lx.SYMBOL: 6,
    lx.LABEL: 7,
}


def tokens(document: Document, start: int, end: int) -> Iterator[tuple[TextSpan, int, bool]]:
    """Words with their kind, and whether each defines a value."""
    for piece in document.pieces:
        reader = piece.reader
        if reader is None or piece.start > end:
            continue
        homes = set(reader.homes.values())
        for at, kind in enumerate(reader.kinds):
            span = piece.span(at)
            if kind in _TOKEN_OF and span.end > start and span.start < end:
                yield span, _TOKEN_OF[kind], at in homes


def _token(document: Document, offset: int) -> tuple[Piece, Reader, int] | None:
    """The token at an offset, with its section and its parser."""
    piece = document.piece(offset)
    at = None if piece is None else piece.token(offset)
    if piece is None or piece.reader is None or at is None:
        return None
    return piece, piece.reader, at
