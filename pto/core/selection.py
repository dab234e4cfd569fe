"""Selects cases by a `-k` expression: words, `and`, `or`, `not`, parentheses.

A word holds for a case if its name contains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from pto.core.errors import PtoError, fail

T = TypeVar("T")
Truth = int  # 0: does not hold, 1: may hold, 2: holds; `and` is min, `or` max, `not` 2 - x
Truths = Callable[[str], Truth]  # of each word
_TOKEN = re.compile(r"[()]|[^\s()]+")
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Selection:
    """A parsed expression."""

    truth: Callable[[Truths], Truth]

    def holds(self, name: str) -> bool:
        """True if a case of this name is selected."""
        return self.truth(lambda word: 2 * (word in name)) > 0

    def may_hold(self, prefix: str, text: str) -> bool:
        """True if a case with the name `prefix` and a part of `text` may be selected.

        `prefix` ends in a slash. A program can so be skipped before its table of cases is read.
        """

        def truth(word: str) -> Truth:
            head, slash, tail = word.rpartition("/")
            is_possible = prefix.endswith(head + slash) and tail in text
            return 2 if word in prefix else int(is_possible)

        return self.truth(truth) > 0


def select(expression: str) -> Selection:
    """Read a `-k` expression; an empty one selects every case."""
    if not expression.strip():
        return Selection(lambda of: 2)
    reader = _WordReader(_TOKEN.findall(expression), expression)
    expression_truth = reader.either(0)
    if reader.words:
        raise reader.wrong(f"`{reader.words[0]}` is not expected there")
    return Selection(expression_truth)


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

    def either(self, depth: int) -> Callable[[Truths], Truth]:
        if depth > _DEEPEST:
            raise self.wrong(f"parentheses are more than {_DEEPEST} deep")
        parts = [self._both(depth)]
        while self._accept("or"):
            parts.append(self._both(depth))
        return lambda of: max(part(of) for part in parts)

    def _both(self, depth: int) -> Callable[[Truths], Truth]:
        parts = [self._one(depth)]
        while self._accept("and"):
            parts.append(self._one(depth))
        return lambda of: min(part(of) for part in parts)

    def _one(self, depth: int) -> Callable[[Truths], Truth]:
        flips = 0
        while self._accept("not"):
            flips += 1
        operand = self._word(depth)
        return (lambda of: 2 - operand(of)) if flips % 2 else operand

    def _word(self, depth: int) -> Callable[[Truths], Truth]:
        if self._accept("("):
            inner = self.either(depth + 1)
            if not self._accept(")"):
                raise self.wrong("a `)` is missing")
            return inner
        if not self.words or self.words[0] in (")", "and", "or"):
            raise self.wrong("a word is missing")
        word = self.words.pop(0)
        return lambda of: of(word)


def sampled(items: Sequence[T], text: str) -> list[T]:
    """`N` or `N:SEED` of all, drawn by the seed, in random order."""
    count, _, seed = text.partition(":")
    if not count.isdecimal() or not (seed or "0").isdecimal() or not int(count):
        raise fail("PTO-U061", f"--sample {text}: a number, and a seed, as 100:7")
    return Random(int(seed or 0)).sample(items, min(int(count), len(items)))
