"""Attribute values in one representation per meaning, whatever their spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pto.core.errors import nearest
from pto.ir.text import lexer as lx
from pto.ir.text.cursor import Draft
from pto.ir.text.types import parse_type
from pto.isa.row.attributes import Array, Attribute, Bool, Enum, Float, Int, Ints, Raw, Str, Symbol
from pto.isa.row.enums import kinds_of
from pto.isa.row.instr import Attr

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser


def words_of(spec: Attr) -> tuple[str, ...]:
    return spec.values or tuple(w for kind in kinds_of(spec.kind) for w in kind.words)


def set_once(p: Parser, draft: Draft, name: str, value: Attribute) -> None:
    """Text may repeat an attribute (`nd2nz` among the types), but not contradict itself."""
    if draft.op.attrs.setdefault(name, value) != value:
        p.fail("PTO-P019", f"attribute {name} is given twice with different values", at=p.i - 1)


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
    if spec.kind in ARITH_FLAGS:
        return _flags(p, spec.kind)
    return canonical(p, spec, p.attribute())


ARITH_FLAGS = {
    "arith.overflow": ("none", "nsw", "nuw"),
    "arith.fastmath": (
        *("none", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast"),
    ),
}
_FLAG = re.compile(r"#(arith\.\w+)<([\w\s,]*)>")


def _flags(p: Parser, kind: str) -> Attribute:
    """`<nsw, nuw>` is short for `#arith.overflow<nsw, nuw>`, which is kept as text."""
    p.expect("<")
    words: list[str] = []
    while not words or p.accept(","):
        if p.kind != lx.WORD or p.texts[p.i] not in ARITH_FLAGS[kind]:
            flags = ", ".join(ARITH_FLAGS[kind])
            p.fail("PTO-P025", f"expected a flag of {kind} ({flags}), got {p.shown()}")
        words.append(p.take())
    p.expect(">")
    return Raw(f"#{kind}<{', '.join(words)}>")


def _are_flags(value: Attribute, kind: str) -> bool:
    match = _FLAG.fullmatch(value.text) if isinstance(value, Raw) else None
    if match is None or match[1] != kind:
        return False
    return all(word.strip() in ARITH_FLAGS[kind] for word in match[2].split(","))


def canonical(p: Parser, spec: Attr, value: Attribute) -> Attribute:
    """One representation per meaning, or a diagnostic that names what is allowed."""
    if kinds_of(spec.kind):
        return _canonical_enum(p, spec, value)
    if spec.kind in ARITH_FLAGS and not _are_flags(value, spec.kind):
        first = ARITH_FLAGS[spec.kind][-1]
        p.fail("PTO-P025", f"expected flags like #{spec.kind}<{first}>", at=p.i - 1)
    if spec.kind in INT_TYPES and isinstance(value, Int):
        return Int(value.value, INT_TYPES[spec.kind])
    if spec.kind == "numbers" and isinstance(value, Ints):
        return Array(tuple(Int(n) for n in value.values))
    if spec.kind == "bool" and isinstance(value, Int):
        return Bool(bool(value.value))
    if isinstance(value, Str) and spec.renamed:
        value = Str(dict(spec.renamed).get(value.value, value.value))
    if spec.values and isinstance(value, Str) and value.value not in spec.values:
        _bad_word(p, spec, value.value, spec.values)
    classes = _ATTR_CLASSES.get(spec.kind)
    if classes is not None and not isinstance(value, classes):
        p.fail("PTO-P014", f"attribute {spec.name} is {spec.kind}, got {type(value).__name__}")
    return value


# MLIR reads a bare number as i64; an attribute of another width must say so.
INT_TYPES = {"int": None, "i32": parse_type("i32"), "i8": parse_type("i8")}


_ATTR_CLASSES: dict[str, type[Attribute] | tuple[type[Attribute], ...]] = {
    "int": Int,
    "i32": Int,
    "i8": Int,
    "bool": Bool,
    "str": Str,
    "symbol": Symbol,
    "float": (Float, Int),
}


def _canonical_enum(p: Parser, spec: Attr, value: Attribute) -> Attribute:
    kinds, words = kinds_of(spec.kind), words_of(spec)
    if not isinstance(value, Str | Enum | Int):
        got = type(value).__name__
        p.fail("PTO-P014", f"attribute {spec.name} is a {spec.kind}, got {got}", at=p.i - 1)
    word = kinds[0].word(value.value) if isinstance(value, Int) else value.value
    first = kinds[0]
    if spec.older and word is not None and word not in words and word.lower() in words:
        word = word.lower()
    if isinstance(value, Enum):
        kinds = tuple(k for k in kinds if k.name == value.kind) or kinds
        if value.kind != kinds[0].name and value.value not in words:
            p.fail("PTO-P014", f"attribute {spec.name} is a {spec.kind}, got a {value.kind}")
    if word is None or word not in words:
        _bad_word(p, spec, "?" if word is None else word, words)
    kind = next((k for k in kinds if word in k.words), kinds[0])
    if spec.older and kind is not first:  # an older spelling becomes today's
        return Enum(first.name, first.word(kind.number(word or "")) or "")
    return Enum(kind.name, kind.word(kind.number(word or "")) or "")


def _bad_word(p: Parser, spec: Attr, word: str, words: Sequence[str]) -> None:
    allowed = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
    message = f"attribute {spec.name} cannot be `{word}`; it is one of {allowed}"
    p.fail("PTO-T036", message, help=nearest(word, words), at=p.i - 1)
