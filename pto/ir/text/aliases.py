"""Type aliases in a program that is printed again: `!tile = !pto.tile_buf<...>` stays an alias."""

from __future__ import annotations

import re
from itertools import takewhile

from pto.ir.text import lexer as lx
from pto.ir.text.types import parse_type, type_text

_SKIPPED = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*'  # strings and comments
_COMMENT = re.compile(r"[ \t]*//")


def restored(text: str, file: str, printed: str) -> str:
    """The printed program with the aliases of its source, defined after the first comments."""
    aliases, first = _defined(lx.Tokens(file, text))
    if not aliases:
        return printed
    by_type = {type: name for name, type in reversed(aliases.items())}
    longest = sorted(by_type, key=len, reverse=True)
    pattern = re.compile(f"{_SKIPPED}|({'|'.join(map(re.escape, longest))})")
    lines = pattern.sub(lambda m: by_type[m[1]] if m[1] else m[0], printed).split("\n")
    comments = sum(map(bool, map(_COMMENT.match, text[:first].split("\n"))))
    head = len([*takewhile(_COMMENT.match, lines[:comments])])
    definitions = [f"{name} = {type}" for name, type in aliases.items()]
    return "\n".join([*lines[:head], *definitions, *lines[head:]])


def _defined(tokens: lx.Tokens) -> tuple[dict[str, str], int]:
    """The aliases with their types, and the offset after the name of the first one.

    A name that is defined twice is left out: its uses mean different types.
    """
    aliases: dict[str, str] = {}
    twice: set[str] = set()
    first = 0
    kinds, texts = tokens.kinds, tokens.texts
    for n in range(len(texts) - 2):
        if kinds[n] != lx.TYPE or texts[n + 1] != "=" or kinds[n + 2] != lx.TYPE:
            continue
        name, type = texts[n], aliases.get(texts[n + 2], texts[n + 2])
        twice |= {name} & aliases.keys()
        first = first if aliases else tokens.ends[n]
        aliases[name] = type_text(parse_type(type))
    return {name: type for name, type in aliases.items() if name not in twice}, first
