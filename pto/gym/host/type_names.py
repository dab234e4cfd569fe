"""A cursor over tokens, and C++ type names: base, template arguments, pointers, function pointers.

Expressions and statements build on this in `expressions` and `parser`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from pto.core.errors import PtoError
from pto.gym.host.syntax import ARITHMETIC, AUTO, FUNCTION, VOID, CType
from pto.gym.host.tokens import CToken, not_understood

T = TypeVar("T")
_STORAGE = ("const", "constexpr", "static", "inline", "volatile", "extern", "register", "mutable")
_TAGS = ("struct", "enum", "class", "union", "typename")
_DEVICE = ("__gm__", "__global__", "__aicore__", "__ubuf__")
QUALIFIERS = frozenset((*_STORAGE, *_TAGS, *_DEVICE))
_WORDS = frozenset(("unsigned", "signed", "short", "long", "int", "char", "double"))
_KNOWN = {"void": VOID, "auto": AUTO}
_CLASSES = frozenset(("string", "vector", "array", "ifstream"))  # of namespace std
_OPAQUE = frozenset(("aclrtStream", "aclrtContext", "aclrtEvent"))
_NO_TYPE = frozenset(("return", "goto", "case", "else", "sizeof", "break", "continue", "default"))


class TypeParser:
    """Reads types at a cursor; keeps the names a file has declared as types."""

    def __init__(self, tokens: Sequence[CToken]) -> None:
        self.tokens = tokens
        self.at = 0
        self.aliases: dict[str, CType] = {}

    # cursor

    @property
    def token(self) -> CToken:
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> CToken:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def is_at(self, *texts: str) -> bool:
        return self.token.text in texts and self.token.kind in ("op", "name")

    def take(self) -> CToken:
        token = self.token
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        if not self.is_at(*texts):
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> CToken:
        if not self.is_at(text):
            raise self.unexpected(f"`{text}`")
        return self.take()

    def name(self) -> str:
        if self.token.kind != "name":
            raise self.unexpected("a name")
        return self.take().text

    def unexpected(self, wanted: str) -> PtoError:
        found = self.token.text or "the end of the file"
        return not_understood(f"{wanted} is expected here, not `{found}`", self.token.loc)

    def listed(self, close: str, read: Callable[[], T]) -> list[T]:
        """Items with commas between them, and the bracket behind the last."""
        found: list[T] = []
        while not self.accept(close):
            found.append(read())
            if not self.is_at(close):
                self.expect(",")
        return found

    def skip_balanced(self) -> None:
        """Move past the bracketed group that opens here."""
        depth = 0
        while True:
            token = self.take()
            if token.kind == "end":
                raise self.unexpected("a closing bracket")
            depth += token.kind == "op" and token.text in "([{"
            depth -= token.kind == "op" and token.text in ")]}"
            if depth == 0:
                return

    # types

    def qualified(self) -> str:
        """`a::b::c`, without a leading `std::` or `::`."""
        self.accept("::")
        parts = [self.name()]
        while self.is_at("::") and self.peek().kind == "name":
            self.at += 1
            parts.append(self.name())
        return "::".join(parts[1:] if parts[0] == "std" and len(parts) > 1 else parts)

    def try_type(self) -> CType | None:
        """A type at the cursor; None, and no move, when there is none for certain."""
        start = self.at
        try:
            found = self._type(strict=True)
        except PtoError:
            found = None
        if found is None:
            self.at = start
        return found

    def type(self) -> CType:
        """The type that must be here; an undeclared name counts as one."""
        found = self._type(strict=False)
        if found is None:
            raise self.unexpected("a type")
        return found

    def skip_qualifiers(self) -> set[str]:
        """Pass specifiers and attributes; the words that were there."""
        seen: set[str] = set()
        while True:
            if self.token.text in QUALIFIERS:
                seen.add(self.take().text)
            elif self.is_at("[") and (self.peek().text == "[" or self.peek().text == "aicore"):
                self.skip_balanced()
            elif self.is_at("__attribute__", "alignas", "__declspec"):
                self.take()
                self.skip_balanced()
            elif self.token.kind == "string" and "extern" in seen:
                self.take()
            else:
                return seen

    def _type(self, strict: bool) -> CType | None:
        self.skip_qualifiers()
        base = self._base(strict)
        return None if base is None else self.declarator(base)

    def base(self) -> CType:
        """A type without its stars; an undeclared name counts as one."""
        found = self._base(strict=False)
        if found is None:
            raise self.unexpected("a type")
        return found

    def _base(self, strict: bool) -> CType | None:
        words: list[str] = []
        while self.token.text in _WORDS:
            words.append(self.take().text)
            self.skip_qualifiers()
        if words:
            return _of_words(words)
        if self.token.kind != "name" or self.token.text in _NO_TYPE:
            return None
        was_std = self.is_at("std")
        name = self.qualified()
        known = self.aliases.get(name) or ARITHMETIC.get(name) or _KNOWN.get(name)
        if known is None and strict and name not in _OPAQUE and not (was_std and name in _CLASSES):
            return None
        arguments: tuple[CType, ...] = ()
        if self.is_at("<") and (known is not None or was_std or not strict):
            arguments = self.template_arguments()
        self.skip_qualifiers()
        return known or CType(name, arguments=arguments)

    def template_arguments(self) -> tuple[CType, ...]:
        """`<T, 3>`; a number becomes a type of that name."""
        self.expect("<")

        def argument() -> CType:
            return CType(self.take().text) if self.token.kind == "number" else self.type()

        return tuple(self.listed(">", argument))

    def declarator(self, base: CType) -> CType:
        """Stars, references and the abstract function pointer `(*)(...)` after a base type."""
        while True:
            if self.accept("*"):
                base = CType(f"{base.name} *", target=base)
            elif self.accept("&"):
                base = replace(base, is_reference=True)
            elif self.accept("&&"):
                base = replace(base, is_reference=False)
            elif self.token.text in ("const", "volatile", "__gm__", "__restrict__"):
                self.take()
            else:
                break
        if self.is_at("(") and self.peek().text == "*" and self.peek(2).text == ")":
            self.at += 3
            self.skip_balanced()
            return FUNCTION
        return base


def _of_words(words: Sequence[str]) -> CType | None:
    signs = [w for w in words if w in ("unsigned", "signed")]
    sizes = [w for w in words if w not in ("unsigned", "signed")]
    sizes.sort(key=lambda w: ("short", "long", "char", "double", "int").index(w))
    return ARITHMETIC.get("_".join([*signs[:1], *sizes])) or ARITHMETIC.get("_".join(sizes))
