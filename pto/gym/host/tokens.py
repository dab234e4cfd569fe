"""C++ text to tokens: comments are removed, conditionals evaluated, macros expanded.

Tokens are parsed in `parser`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pto.core.errors import Loc, PtoError, fail

Kind = Literal["name", "number", "string", "char", "op", "end"]

_LARGEST_FILE = 4 << 20
_DEEPEST = 32  # includes, macro expansions and conditionals inside each other
_MOST_TOKENS = 1_000_000

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\\\n|//[^\n]*|/\*.*?\*/)
      | (?P<line>\n)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<char>'(?:[^'\\\n]|\\.)*')
      | (?P<op><<<|>>>|<<=|>>=|\.\.\.|->|::|\+\+|--|&&|\|\||\#\#
              |[-+*/%&|^=!<>]=|<<|[-+*/%&|^~!<>=?:;,.(){}\[\]\#])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True, eq=False)
class CToken:
    kind: Kind
    text: str
    file: str
    line: int
    col: int

    @property
    def loc(self) -> Loc:
        return Loc(self.file, self.line, self.col, self.col + max(1, len(self.text)))


@dataclass(frozen=True, slots=True)
class MacroDef:
    params: tuple[str, ...] | None  # None: no parentheses
    body: tuple[CToken, ...]


def not_understood(message: str, loc: Loc | None) -> PtoError:
    """The host file steps out of the subset this reader follows."""
    return fail("PTO-U062", message, loc=loc, help="`pto explain PTO-U062` lists what is followed")


def read_tokens(path: Path, holds: Callable[[list[CToken]], bool]) -> list[CToken]:
    """Every token of a host file after preprocessing, ended by one of kind `end`.

    `holds` judges the arithmetic of an #if, which only a parser can read.
    """
    reader = _Preprocessor(holds)
    reader.read(path, 0)
    out = reader.finish()
    last = out[-1] if out else CToken("end", "", str(path), 1, 1)
    return [*out, CToken("end", "", last.file, last.line, last.col)]


# Of an #if: its lines count now, no branch has counted yet, or none will from here on.
_Branch = Literal["taken", "waiting", "passed"]


def _counts(states: Sequence[_Branch]) -> bool:
    return all(state == "taken" for state in states)


class _Preprocessor:
    """Directives of one translation unit: the active lines, and the values of macros."""

    def __init__(self, holds: Callable[[list[CToken]], bool]) -> None:
        self.macros: dict[str, MacroDef] = {}
        self.holds = holds
        self._waiting: list[CToken] = []  # expanded before a directive changes macros
        self._done: list[CToken] = []

    def finish(self) -> list[CToken]:
        self._done += _expand(self._waiting, self.macros, frozenset())
        self._waiting = []
        return self._done

    def read(self, path: Path, depth: int) -> None:
        if depth > _DEEPEST:
            raise not_understood(f"includes are more than {_DEEPEST} deep", Loc(str(path), 1))
        states: list[_Branch] = []  # of the open conditionals
        for line in _lines(_text_of(path), str(path)):
            if line[0].text != "#":
                if _counts(states):
                    self._waiting += line
                continue
            word = line[1].text if len(line) > 1 else ""
            if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
                self._conditional(word, line, states)
            elif _counts(states):
                self._directive(word, line, path, depth)
        if states:
            raise not_understood("an #if is never closed", Loc(str(path), 1))

    def _conditional(self, word: str, line: Sequence[CToken], states: list[_Branch]) -> None:
        if word in ("if", "ifdef", "ifndef"):
            states.append("waiting" if _counts(states) else "passed")
        elif not states:
            raise not_understood(f"#{word} without an #if", line[0].loc)
        elif word == "endif":
            states.pop()
            return
        elif states[-1] == "taken":
            states[-1] = "passed"
        if states[-1] == "waiting":
            test = "if" if word == "elif" else word
            if word == "else" or self._holds(test, line):
                states[-1] = "taken"

    def _holds(self, word: str, line: Sequence[CToken]) -> bool:
        if len(line) < 3:
            raise not_understood(f"#{word} without a condition", line[0].loc)
        if word == "ifdef":
            return line[2].text in self.macros
        if word == "ifndef":
            return line[2].text not in self.macros
        return self.holds(_condition(list(line[2:]), self.macros))

    def _directive(self, word: str, line: list[CToken], path: Path, depth: int) -> None:
        if word == "define":
            self.finish()
            self._define(line)
        elif word == "undef" and len(line) > 2:
            self.finish()
            self.macros.pop(line[2].text, None)
        elif word == "include" and len(line) > 2 and line[2].kind == "string":
            # A header beside the file is part of the case; any other belongs to the runtime, which
            # `runtime` replaces.
            beside = path.parent / line[2].text[1:-1]
            if beside.is_file():
                self.read(beside, depth + 1)
        elif word == "error":
            raise not_understood("#error is reached", line[0].loc)

    def _define(self, line: list[CToken]) -> None:
        if len(line) < 3 or line[2].kind != "name":
            raise not_understood("#define without a name", line[0].loc)
        name, rest = line[2], line[3:]
        touching = bool(rest) and rest[0].col == name.col + len(name.text)
        if not (touching and rest[0].text == "("):
            self.macros[name.text] = MacroDef(None, tuple(rest))
            return
        close = next((i for i, t in enumerate(rest) if t.text == ")"), None)
        if close is None:
            raise not_understood(f"the parameters of macro {name.text} do not end", name.loc)
        params = tuple(t.text for t in rest[1:close] if t.text != ",")
        self.macros[name.text] = MacroDef(params, tuple(rest[close + 1 :]))


def _text_of(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > _LARGEST_FILE:
            raise not_understood(
                f"{path.name} has {size} bytes: not a host file", Loc(str(path), 1)
            )
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        reason = error.strerror or str(error)
        raise fail("PTO-U064", f"{path} cannot be read: {reason}") from None


def _lines(text: str, file: str) -> Iterator[list[CToken]]:
    """Tokens by logical line; a line that ends in a backslash continues in the next."""
    line: list[CToken] = []
    number, start, at, count = 1, 0, 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            where = Loc(file, number, at - start + 1)
            raise not_understood(f"{text[at]!r} is not C++ this reader knows", where)
        kind, word = match.lastgroup, match.group()
        if kind == "line":
            if line:
                yield line
            line = []
        elif kind != "space":
            line.append(CToken(kind, word, file, number, at - start + 1))  # pyright: ignore[reportArgumentType]
            count += 1
            if count > _MOST_TOKENS:
                raise not_understood(f"more than {_MOST_TOKENS} tokens", Loc(file, number))
        newlines = word.count("\n")
        if newlines:
            number += newlines
            start = at + word.rindex("\n") + 1
        at = match.end()
    if line:
        yield line


def _expand(
    tokens: Sequence[CToken], macros: dict[str, MacroDef], hidden: frozenset[str]
) -> Iterator[CToken]:
    """Tokens with every macro replaced; a macro inside its own expansion stays as it is."""
    if len(hidden) > _DEEPEST:
        raise not_understood(f"macros are more than {_DEEPEST} deep", tokens[0].loc)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        macro = macros.get(token.text) if token.kind == "name" else None
        if token.text == "__LINE__":
            yield replace(token, kind="number", text=str(token.line))
        elif token.text == "__FILE__":
            yield replace(token, kind="string", text='"' + Path(token.file).name + '"')
        elif macro is None or token.text in hidden:
            yield token
        elif macro.params is None:
            body = [_moved(t, token) for t in macro.body]
            yield from _expand(body, macros, hidden | {token.text})
        elif at < len(tokens) and tokens[at].text == "(":
            arguments, at = _arguments(tokens, at)
            ready = [list(_expand(a, macros, hidden)) for a in arguments]
            body = _substitute(macro, token, arguments, ready)
            yield from _expand(body, macros, hidden | {token.text})
        else:
            yield token


def _arguments(tokens: Sequence[CToken], at: int) -> tuple[list[list[CToken]], int]:
    """The arguments of a macro call with its `(` at `at`, and the end of the call."""
    opening, depth = tokens[at], 0
    found: list[list[CToken]] = [[]]
    while at < len(tokens):
        token = tokens[at]
        at += 1
        depth += token.text in "([{" and token.kind == "op"
        depth -= token.text in ")]}" and token.kind == "op"
        if depth == 0:
            return found, at
        if depth == 1 and token.text == ",":
            found.append([])
        elif not (depth == 1 and token is opening):
            found[-1].append(token)
    raise not_understood("a macro call does not end", opening.loc)


def _bound(macro: MacroDef, call: CToken, arguments: list[list[CToken]]) -> dict[str, list[CToken]]:
    params = macro.params or ()
    if not params or params[-1] != "...":
        return dict(zip(params, arguments, strict=False))
    fixed = len(params) - 1
    rest = [t for i, a in enumerate(arguments[fixed:]) for t in ([_comma(call)] * (i > 0) + a)]
    return dict(zip(params, arguments[:fixed], strict=False)) | {"__VA_ARGS__": rest}


def _substitute(
    macro: MacroDef, call: CToken, written: list[list[CToken]], ready: list[list[CToken]]
) -> list[CToken]:
    """A macro's body with its arguments: as written beside # and ##, expanded elsewhere."""
    shown_as, bound = _bound(macro, call, written), _bound(macro, call, ready)
    out: list[CToken] = []
    body, at = macro.body, 0
    while at < len(body):
        token = body[at]
        if token.text == "#" and at + 1 < len(body) and body[at + 1].text in bound:
            shown = " ".join(t.text for t in shown_as[body[at + 1].text])
            shown = shown.replace("\\", "\\\\").replace('"', '\\"')
            out.append(replace(_moved(token, call), kind="string", text=f'"{shown}"'))
            at += 2
            continue
        is_joined = at + 2 < len(body) and body[at + 1].text == "##"
        found = (shown_as if is_joined else bound).get(token.text, [_moved(token, call)])
        at += 1
        while at + 1 < len(body) and body[at].text == "##":
            right = body[at + 1]
            found = _pasted(found, shown_as.get(right.text, [_moved(right, call)]))
            at += 2
        out += found
    return out


def _pasted(left: list[CToken], right: list[CToken]) -> list[CToken]:
    """The last token of one and the first of another as one."""
    if not left or not right:
        return left + right
    return [*left[:-1], replace(left[-1], text=left[-1].text + right[0].text), *right[1:]]


def _comma(call: CToken) -> CToken:
    return replace(call, kind="op", text=",")


def _moved(token: CToken, call: CToken) -> CToken:
    """A token of a macro's body, with the location of the call."""
    return replace(token, file=call.file, line=call.line, col=call.col)


def _condition(tokens: list[CToken], macros: dict[str, MacroDef]) -> list[CToken]:
    """An #if condition as arithmetic: `defined` answered, and every unknown name 0."""
    settled: list[CToken] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.text == "defined":
            wrapped = at < len(tokens) and tokens[at].text == "("
            name = tokens[at + wrapped].text if at + wrapped < len(tokens) else ""
            at += 3 if wrapped else 1
            token = replace(token, kind="number", text=str(int(name in macros)))
        settled.append(token)
    expanded = _expand(settled, macros, frozenset())
    return [replace(t, kind="number", text="0") if t.kind == "name" else t for t in expanded]
