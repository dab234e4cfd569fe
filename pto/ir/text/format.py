"""Compiles the text pattern of a row (the language is in `isa/row/instr.py`) into steps."""

from __future__ import annotations

import re
from functools import cache

from pto.ir.canonical import words_of
from pto.ir.text.steps import (
    AnyOrder,
    Dictionary,
    FlagWord,
    InPlace,
    InsOuts,
    Label,
    Literal,
    OneOf,
    OneOperand,
    OperandList,
    Optional,
    RegionBody,
    Repeated,
    ResultTypes,
    Sets,
    TextStep,
    Types,
)
from pto.isa.row.attributes import Enum
from pto.isa.row.instr import Instr

_PIECE = re.compile(
    r"'\w+'|\$ins\{\w*\}|types\([\w,?]+\)|<[|?*1]|\{\}|->|!\w+=\w+|[$@&~#]\w+\*?|[\w.]+|[(){}\[\],:=<>|]"
)


@cache
def compile_format(row: Instr) -> tuple[TextStep, ...]:
    """The steps of a row's text pattern."""
    pieces = _PIECE.findall(row.text)
    named = [p[1:].partition("=")[0] for p in pieces if p[0] in "@&!"]
    builder = _Builder(row, pieces, frozenset(named))
    return builder.until(None)


class _Builder:
    def __init__(self, row: Instr, pieces: list[str], elsewhere: frozenset[str]) -> None:
        self.row = row
        self.pieces = pieces
        self.elsewhere = elsewhere
        self.i = 0

    def until(self, end: str | None) -> tuple[TextStep, ...]:
        steps: list[TextStep] = []
        while self.i < len(self.pieces) and self.pieces[self.i] not in (end, "|" if end else None):
            steps.append(self.one())
        return tuple(steps)

    def one(self) -> TextStep:
        piece = self.pieces[self.i]
        self.i += 1
        if piece in ("<?", "<*", "<|", "<1"):
            return self.group(piece)
        makers = {
            "$": self.operand,
            "@": self.attribute,
            "&": FlagWord,
            "~": Label,
            "!": self.sets,
        }
        make = makers.get(piece[0])
        if make is not None:
            return make(piece[1:])
        words: dict[str, TextStep] = {
            "{}": Dictionary(self.elsewhere, self.inside()),
            "types": Types(False),
            "type": Types(True),
            "results": ResultTypes(),
            "#body": RegionBody(),
        }
        if piece.startswith("types("):
            names = piece[6:-1].split(",")
            skippable = tuple(n[:-1] for n in names if n.endswith("?"))
            return Types(False, tuple(n.rstrip("?") for n in names), skippable)
        return words.get(piece) or Literal(piece.strip("'"))

    def group(self, opener: str) -> TextStep:
        if opener in ("<|", "<1"):
            comma = opener == "<|" and self.pieces[self.i] == ","
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

    def operand(self, name: str) -> TextStep:
        if name in ("ins", "outs") or name.startswith("ins{"):
            outs = ("out", "inout")
            chosen = (o for o in self.row.operands if (o.role in outs) == (name == "outs"))
            return InsOuts(tuple(chosen), self.elsewhere, name[4:-1] if "{" in name else None)
        if name.endswith("*"):
            return OperandList(name[:-1])
        if name not in self.row.operand_names:
            raise RuntimeError(f"{self.row.name}: text names ${name}, no such operand")
        kind = next(o.kind if o.optional else "" for o in self.row.operands if o.name == name)
        return OneOperand(name, kind)

    def inside(self) -> str | None:
        """The operand after which ins(..) contains the attribute dictionary; "" any, None never."""
        return next((p[5:-1] for p in self.pieces if p.startswith("$ins{")), None)

    def attribute(self, name: str) -> TextStep:
        spec = self.row.attr(name)
        if spec is None:
            raise RuntimeError(f"{self.row.name}: text names @{name}, no such attribute")
        return InPlace(spec)

    def sets(self, text: str) -> TextStep:
        name, _, word = text.partition("=")
        spec = self.row.attr(name)
        if spec is None or word not in words_of(spec):
            raise RuntimeError(f"{self.row.name}: text sets !{text}, no such attribute or word")
        return Sets(name, Enum(spec.kind, word))
