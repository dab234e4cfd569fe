"""Attribute text <-> attribute value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pto.core.errors import PtoError
from pto.ir.text import lexer as lx
from pto.ir.text.types import type_text
from pto.isa.row.attributes import (
    Array,
    Attribute,
    Bool,
    Dict,
    Enum,
    Float,
    Int,
    Ints,
    OfType,
    Raw,
    Str,
    Symbol,
    Unit,
)
from pto.isa.row.enums import ENUMS
from pto.isa.row.types import Scalar

if TYPE_CHECKING:
    from pto.ir.text.cursor import Cursor

_ENUM = re.compile(r"#pto(?:\.(\w+)<\s*(\w+)\s*>|<\s*(\w+)\s+(\w+)\s*>)")
_INTS = re.compile(r"array<\s*(\w+)\s*(?::([-\d,\s]*))?>")
_INTEGER = re.compile(r"-?\d{1,40}")
_ESCAPE = re.compile(r"\\(\\|\"|n|t|[0-9a-fA-F]{2})")
_NAMED = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def read(p: Cursor, depth: int = 0) -> Attribute:
    """One attribute value at the cursor."""
    if depth > lx.MAX_DEPTH:
        p.fail("PTO-P023", f"attributes are nested more than {lx.MAX_DEPTH} deep")
    reader = _READERS.get(p.kind)
    if reader is not None:
        return reader(p)
    if p.at("["):
        return Array(tuple([read(p, depth + 1) for _ in p.items("[", "]")]))
    if p.text == "{":
        return Dict(tuple(p.attr_items("{", "}")))
    if p.text in ("(", "<"):
        return OfType(p.type())
    p.fail("PTO-P025", f"expected an attribute value, got {p.shown()}")


def _number(p: Cursor) -> Attribute:
    text = p.take()
    type = p.type() if p.accept(":") else None
    is_float = isinstance(type, Scalar) and type.is_float
    if is_float or (("." in text or "e" in text.lower()) and "x" not in text):
        return Float(text, type)
    if len(text) > 40:
        p.fail("PTO-P026", f"a number of {len(text)} digits is too long", at=p.i - 1)
    return Int(int(text, 0) if "x" in text else int(text), type)


def _word(p: Cursor) -> Attribute:
    text = p.text
    if text in ("true", "false"):
        p.i += 1
        return Bool(text == "true")
    if text == "unit":
        p.i += 1
        return Unit()
    ints = _INTS.fullmatch(text)
    if ints:
        p.i += 1
        values = [v.strip() for v in (ints[2] or "").split(",") if v.strip()]
        if not all(_INTEGER.fullmatch(v) for v in values):
            p.fail("PTO-P025", "expected a list of numbers", at=p.i - 1)
        return Ints(ints[1], tuple(map(int, values)))
    if text.startswith(("dense<", "affine_map<", "strided<", "array<")):
        p.i += 1
        suffix = f" : {type_text(p.type())}" if p.accept(":") else ""
        return Raw(text + suffix)
    return OfType(p.type())


def _hash(p: Cursor) -> Attribute:
    text = p.take()
    text = p.aliases.get(text, text)
    match = _ENUM.fullmatch(text)
    if match is None:
        return Raw(" ".join(text.split()))
    kind, word = match[1] or match[3], match[2] or match[4]
    enum = ENUMS.get(kind)
    if enum is None:
        return Raw(" ".join(text.split()))
    if word not in enum.words:
        allowed = ", ".join(enum.words[:12])
        p.fail("PTO-T036", f"`{word}` is not a {kind}; allowed are {allowed}", at=p.i - 1)
    return Enum(kind, word)


def _string(p: Cursor) -> Attribute:
    return Str(_ESCAPE.sub(_unescape, p.take()[1:-1]))


def _unescape(match: re.Match[str]) -> str:
    return _NAMED.get(match[1]) or chr(int(match[1], 16))


_READERS: dict[int, Callable[[Cursor], Attribute]] = {
    lx.NUMBER: _number,
    lx.WORD: _word,
    lx.ATTR: _hash,
    lx.STRING: _string,
    lx.SYMBOL: lambda p: Symbol(p.take()[1:]),
    lx.TYPE: lambda p: OfType(p.type()),
}


def quote(text: str) -> str:
    """A string literal that reads back as `text`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\{ord(c) & 0xFF:02X}" for c in escaped) + '"'


def write(value: Attribute) -> str:
    """The one spelling we print."""
    writer = _WRITERS.get(value.__class__)
    if writer is None:
        raise PtoError()
    return writer(value)


def _typed(value: Int | Float, text: str) -> str:
    return text if value.type is None else f"{text} : {type_text(value.type)}"


def item(key: str, value: Attribute) -> str:
    """`key = value` inside a dictionary; quoted where MLIR would not read the key bare."""
    name = key if re.fullmatch(r"[A-Za-z_][\w$.]*", key) else quote(key)
    return name if isinstance(value, Unit) else f"{name} = {write(value)}"


_WRITERS: dict[type[Attribute], Callable[..., str]] = {
    Int: lambda v: _typed(v, str(v.value)),
    Float: lambda v: _typed(v, v.text),
    Str: lambda v: quote(v.value),
    Bool: lambda v: "true" if v.value else "false",
    Unit: lambda v: "unit",
    Symbol: lambda v: f"@{v.name}",
    Enum: lambda v: ENUMS[v.kind].spell(v.value),
    Array: lambda v: "[" + ", ".join(map(write, v.items)) + "]",
    Ints: lambda v: (
        f"array<{v.elem}: {', '.join(map(str, v.values))}>" if v.values else f"array<{v.elem}>"
    ),
    Dict: lambda v: "{" + ", ".join(item(k, x) for k, x in v.items) + "}",
    OfType: lambda v: type_text(v.type),
    Raw: lambda v: v.text,
}
