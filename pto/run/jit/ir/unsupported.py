"""How a part of the compiled engine says that it has no form for something."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T")


class UnsupportedLowering(Exception):
    """An instruction has no lowering here, for the reason given; the reference engine runs it."""


def unsupported_if(condition: object, reason: str) -> None:
    """Refuse to lower the instruction if a condition holds."""
    if condition:
        raise UnsupportedLowering(reason)


def expect(value: object, kind: type[_T], reason: str) -> _T:
    """The value, which must be of this class; else there is no lowering."""
    if not isinstance(value, kind):
        raise UnsupportedLowering(reason)
    return value


def certain(value: object, kind: type[_T]) -> _T:
    """The value, which is of this class in every program that the verifier accepts."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
