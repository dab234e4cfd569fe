"""Attribute values: compile-time constants on operations. Text <-> attribute lives in `ir/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pto.isa.row.types import Type


class Attribute:
    """Base of all attribute values; frozen and hashable."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Int(Attribute):
    value: int
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class Float(Attribute):
    text: str  # as written: hexadecimal bit patterns and decimal digits keep every bit
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class Str(Attribute):
    value: str


@dataclass(frozen=True, slots=True)
class Bool(Attribute):
    value: bool


@dataclass(frozen=True, slots=True)
class Unit(Attribute):
    """Present or absent: `{pto.entry}`."""


@dataclass(frozen=True, slots=True)
class Symbol(Attribute):
    """`@name` or `@module::@name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Enum(Attribute):
    """`#pto.pipe<PIPE_V>`, `#pto<round_mode ROUND>`; elided forms get their kind from the row."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Array(Attribute):
    items: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Ints(Attribute):
    """`array<i32: 1, 2>`: a dense list of numbers."""

    elem: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dict(Attribute):
    items: tuple[tuple[str, Attribute], ...]


@dataclass(frozen=True, slots=True)
class OfType(Attribute):
    """A type used as a value."""

    type: Type


@dataclass(frozen=True, slots=True)
class Raw(Attribute):
    """Anything else (`dense<...>`, affine maps), carried as written."""

    text: str


def integer(attrs: Mapping[str, Attribute], name: str) -> int | None:
    """The number of an attribute; None where it is absent or no integer."""
    value = attrs.get(name)
    return value.value if isinstance(value, Int) else None


def integers(attrs: Mapping[str, Attribute], name: str) -> tuple[int, ...]:
    """The numbers of a dense list; none where the attribute is absent or no such list."""
    value = attrs.get(name)
    return value.values if isinstance(value, Ints) else ()


def word(attrs: Mapping[str, Attribute], name: str) -> str | None:
    """The text, enumerator or symbol of an attribute; None where it is absent or none of them."""
    value = attrs.get(name)
    if isinstance(value, Symbol):
        return value.name
    return value.value if isinstance(value, Str | Enum) else None
