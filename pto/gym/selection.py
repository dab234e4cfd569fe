"""Selects cases by a `-k` expression: words, `and`, `or`, `not`, parentheses.

A word holds for a case if its name contains it. Cases are found in `cases`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from pto.core.errors import PtoError, fail

T = TypeVar("T")
Bounds = tuple[bool, bool]  # (holds for certain, may hold)
_TOKEN = re.compile(r"[()]|[^\s()]+")
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Selection:
    """A parsed expression."""

    bounds: Callable[[Callable[[str], Bounds]], Bounds]

    def holds(self, name: str) -> bool:
        """True if a case of this name is selected."""
        return self.bounds(lambda word: (word in name, word in name))[1]

    def may_hold(self, prefix: str, text: str) -> bool:
        """True if a case with the name `prefix` and a part of `text` may be selected.

        `prefix` ends in a slash. A program can so be skipped before its table of cases is read.
        """

        def word_bounds(word: str) -> Bounds:
            head, slash, tail = word.rpartition("/")
            is_possible = prefix.endswith(head + slash) and tail in text
            return word in prefix, word in prefix or is_possible

        return self.bounds(word_bounds)[1]


def select(expression: str) -> Selection:
    """Read a `-k` expression; an empty one selects every case."""
    if not expression.strip():
        return Selection(lambda of: (True, True))
    reader = _WordReader(_TOKEN.findall(expression), expression)
    found = reader.either(0)
    if reader.words:
        raise reader.wrong(f"`{reader.words[0]}` is not expected there")
    return found


class _WordReader:
    def __init__(self, words: list[str], text: str) -> None:
        self.words = words
        self.text = text

    def wrong(self, reason: str) -> PtoError:
        message = f"-k {self.text!r} cannot be read: {reason}"
        return fail(
            "PTO-U061", message, help='combine words with and, or and not: -k "tadd and not f16"'
        )

    def _accept(self, word: str) -> bool:
        if self.words[:1] != [word]:
            return False
        del self.words[0]
        return True

    def either(self, depth: int) -> Selection:
        if depth > _DEEPEST:
            raise self.wrong(f"parentheses are more than {_DEEPEST} deep")
        found = self._both(depth)
        while self._accept("or"):
            found = _or(found, self._both(depth))
        return found

    def _both(self, depth: int) -> Selection:
        found = self._one(depth)
        while self._accept("and"):
            found = _and(found, self._one(depth))
        return found

    def _one(self, depth: int) -> Selection:
        flips = 0
        while self._accept("not"):
            flips += 1
        found = self._word(depth)
        return _not(found) if flips % 2 else found

    def _word(self, depth: int) -> Selection:
        if self._accept("("):
            found = self.either(depth + 1)
            if not self._accept(")"):
                raise self.wrong("a `)` is missing")
            return found
        if not self.words or self.words[0] in (")", "and", "or"):
            raise self.wrong("a word is missing")
        word = self.words.pop(0)
        return Selection(lambda of: of(word))


def _and(a: Selection, b: Selection) -> Selection:
    def bounds(of: Callable[[str], Bounds]) -> Bounds:
        x, y = a.bounds(of), b.bounds(of)
        return x[0] and y[0], x[1] and y[1]

    return Selection(bounds)


def _or(a: Selection, b: Selection) -> Selection:
    def bounds(of: Callable[[str], Bounds]) -> Bounds:
        x, y = a.bounds(of), b.bounds(of)
        return x[0] or y[0], x[1] or y[1]

    return Selection(bounds)


def _not(a: Selection) -> Selection:
    def bounds(of: Callable[[str], Bounds]) -> Bounds:
        certain, possible = a.bounds(of)
        return not possible, not certain

    return Selection(bounds)


def sampled(found: Sequence[T], text: str) -> list[T]:
    """`N` or `N:SEED` of all, drawn by the seed, in random order."""
    count, _, seed = text.partition(":")
    if not count.isdecimal() or not (seed or "0").isdecimal() or not int(count):
        raise fail("PTO-U061", f"--sample {text}: a number, and a seed, as 100:7")
    return Random(int(seed or 0)).sample(found, min(int(count), len(found)))
