"""Text to tokens. A whole type or attribute (`!pto.tile_buf<...>`) is one token.

Linear in the input: the first character that starts no token ends the scan with a diagnostic.
"""

from __future__ import annotations

import re
from typing import Final

from pto.core.errors import Loc, fail

# Token kinds are the group numbers of the expression below.
VALUE: Final = 1
WORD: Final = 2
TYPE: Final = 3
ATTR: Final = 4
STRING: Final = 5
NUMBER: Final = 6
SYMBOL: Final = 7
LABEL: Final = 8
PUNCT: Final = 9
END: Final = 0

MAX_BYTES: Final = 64 << 20
_DEPTH = 4  # nesting of <...> inside one type: memref<..., strided<[..]>, #pto.x<..>> needs two


def _nested(depth: int) -> str:
    """Balanced <...> to a fixed depth. `->` does not close, strings are opaque."""
    inner = r"(?:[^<>\"-]|->|-|\"[^\"\n]*\")*+"
    for _ in range(depth):
        inner = rf"(?:[^<>\"-]|->|-|\"[^\"\n]*\"|<{inner}>)*+"
    return rf"<{inner}>"


_ANGLES = _nested(_DEPTH)
_TOKEN = re.compile(
    rf"""(?:\s|//[^\n]*)*+(?:
      (%[\w$.-]+(?:\#\d+)?)
    | ((?:memref|vector|tensor|tuple|complex|array|dense|affine_map|strided)(?={"<"}){_ANGLES}
        |[A-Za-z_][\w$]*(?:\.[\w$]+)*)
    | (![A-Za-z_][\w.$]*(?:{_ANGLES})?)
    | (\#[A-Za-z_][\w.$]*(?:{_ANGLES})?)
    | ("(?:[^"\\\n]|\\.)*+")
    | (-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]\d+)?))
    | (@(?:[\w$.-]+|"(?:[^"\\\n]|\\.)*+")(?:::@(?:[\w$.-]+|"(?:[^"\\\n]|\\.)*+"))*+)
    | (\^[\w$.-]+)
    | (->|[(){{}}\[\],:=<>?*+/|-])
    )""",
    re.VERBOSE,
)
_COMPOSITE = re.compile(r"(?:memref|vector|tensor|tuple|complex)<")
_BLANK = re.compile(r"(?:\s|//[^\n]*)*+")


class Tokens:
    """The token stream as parallel lists; the last token is END."""

    __slots__ = ("ends", "kinds", "starts", "texts")

    def __init__(self, file: str, text: str) -> None:
        if len(text) > MAX_BYTES:
            size = f"{len(text):,} characters, the limit is {MAX_BYTES:,}"
            raise fail("PTO-P001", f"the file is too large: {size}", loc=Loc(file, 1))
        self.kinds: list[int] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._scan(file, text)

    def _scan(self, file: str, text: str) -> None:
        kinds, texts, starts, ends = self.kinds, self.texts, self.starts, self.ends
        match, pos = _TOKEN.match, 0
        while found := match(text, pos):
            kind = found.lastindex or END
            token = found[kind]
            if kind == WORD and token[-1] == ">" and _COMPOSITE.match(token):
                kind = TYPE
            pos = found.end()
            kinds.append(kind)
            texts.append(token)
            starts.append(pos - len(token))
            ends.append(pos)
        blank = _BLANK.match(text, pos)
        pos = blank.end() if blank else pos
        if pos < len(text):
            raise _bad_character(file, text, pos)
        kinds.append(END)
        texts.append("the end of the file")
        starts.append(len(text))
        ends.append(len(text))


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
