"""Text to tokens. A whole type or attribute (`!pto.tile_buf<...>`) is one token.

Linear in the input: the first character that starts no token ends the scan with a diagnostic.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from itertools import accumulate, islice
from typing import Final, Generic, TypeVar

from pto.core.errors import Loc, fail

END: Final = 0
VALUE: Final = 1
WORD: Final = 2
TYPE: Final = 3
ATTR: Final = 4
STRING: Final = 5
NUMBER: Final = 6
SYMBOL: Final = 7
LABEL: Final = 8
PUNCT: Final = 9
_BAD: Final = 10

MAX_BYTES: Final = 64 << 20
MAX_DEPTH = 64  # nesting of regions, attributes and function types
_DEPTH = 4  # nesting of <...> inside one type: memref<..., strided<[..]>, #pto.x<..>> needs two
_BATCH: Final = 1 << 14
_REMEMBER: Final = 1 << 17
T = TypeVar("T", str, int)


def _nested(depth: int) -> str:
    """Balanced <...> to a fixed depth. `->` does not close, strings are opaque."""
    inner = r"(?:[^<>\"-]++|->|-|\"[^\"\n]*\")*+"
    for _ in range(depth):
        inner = rf"(?:[^<>\"-]++|->|-|\"[^\"\n]*\"|<{inner}>)*+"
    return rf"<{inner}>"


_ANGLES = _nested(_DEPTH)
_BLANKS = r"(?:\s++|//[^\n]*)*+"
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"'
_KINDS = (  # frequent ones first
    (PUNCT, r"[(){}\[\],:=<>?*+/|]"),
    (VALUE, r"%[\w$.-]++(?:\#\d+)?"),
    (TYPE, rf"![A-Za-z_][\w.$]*(?:{_ANGLES})?"),
    (TYPE, rf"(?:memref|vector|tensor|tuple|complex)(?=<){_ANGLES}"),
    (WORD, rf"(?:array|dense|affine_map|strided)(?=<){_ANGLES}|[A-Za-z_][\w$]*(?:\.[\w$]+)*"),
    (NUMBER, r"-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]\d+)?)"),
    (PUNCT, "->|-"),
    (ATTR, rf"\#[A-Za-z_][\w.$]*(?:{_ANGLES})?"),
    (STRING, _QUOTED),
    (SYMBOL, rf"@(?:[\w$.-]+|{_QUOTED})(?:::@(?:[\w$.-]+|{_QUOTED}))*+"),
    (LABEL, r"\^[\w$.-]+"),
    (END, r"\Z"),
    (_BAD, r"[\s\S]++"),  # the rest of the text: an unclosed token is searched for once
)
_TOKEN = re.compile(_BLANKS + "(?:" + "|".join(f"(?:{text})" for _, text in _KINDS) + ")")
_ALONE = re.compile("|".join(f"({text})" for _, text in _KINDS))
_BLANK = re.compile(_BLANKS)


class _Memo(dict[str, T], Generic[T]):
    """A cache of a function of strings: a program has few distinct tokens."""

    def __init__(self, function: Callable[[str], T]) -> None:
        self.function = function

    def __missing__(self, key: str) -> T:
        if len(self) > _REMEMBER:
            self.clear()
        value = self[key] = self.function(key)
        return value


def _kind(token: str) -> int:
    match = _ALONE.match(token)
    return _KINDS[(match.lastindex or 1) - 1][0] if match else END


class Tokens:
    """The token stream as parallel lists; the last token is END."""

    __slots__ = ("ends", "kinds", "shapes", "texts")

    def __init__(self, file: str, text: str) -> None:
        if len(text) > MAX_BYTES:
            size = f"{len(text):,} characters, the limit is {MAX_BYTES:,}"
            raise fail("PTO-P001", f"the file is too large: {size}", loc=Loc(file, 1))
        self.kinds = bytearray()
        self.texts: list[str] = []
        self.shapes: list[str] = []  # the texts, all values alike: operations of one shape agree
        self.ends = array("I")
        self._scan(text)
        if (at := self.kinds.find(_BAD)) >= 0:
            raise _bad_character(file, text, self.start(at))

    def _scan(self, text: str) -> None:
        """Scan in batches, each with functions that loop in C."""
        texts = _Memo(lambda raw: raw[_end_of_blank(raw) :])
        kinds, end = _Memo(_kind), 0
        shapes = _Memo(lambda token: "%" if kinds[token] == VALUE else token)
        matches = map(re.Match[str].group, _TOKEN.finditer(text))
        while batch := list(islice(matches, _BATCH)):
            tokens = list(map(texts.__getitem__, batch))
            self.texts += tokens
            self.shapes += map(shapes.__getitem__, tokens)
            self.kinds += bytes(map(kinds.__getitem__, tokens))
            self.ends.extend(islice(accumulate(map(len, batch), initial=end), 1, None))
            end = self.ends[-1]
        while self.kinds and self.kinds[-1] == END:
            for column in (self.kinds, self.texts, self.shapes, self.ends):
                column.pop()
        self.kinds.append(END)
        self.texts.append("the end of the file")
        self.shapes += ["", "", ""]  # the reader looks up to three tokens past an operation
        self.ends.append(len(text))

    def start(self, at: int) -> int:
        """The offset at which a token begins."""
        return self.ends[at] - (len(self.texts[at]) if self.kinds[at] != END else 0)


def _end_of_blank(text: str) -> int:
    blank = _BLANK.match(text)
    return blank.end() if blank else 0


def _bad_character(file: str, text: str, pos: int) -> Exception:
    line = text.count("\n", 0, pos) + 1
    col = pos - text.rfind("\n", 0, pos)
    reasons = {
        '"': "this string is not closed on its line",
        "!": "this type is not closed: `<` and `>` do not match",
        "#": "this attribute is not closed: `<` and `>` do not match",
    }
    reason = reasons.get(text[pos], f"no token starts with {text[pos]!r}")
    return fail("PTO-P002", reason, loc=Loc(file, line, col))
