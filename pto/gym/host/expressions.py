"""C++ expressions: tokens to the `Expr` of `syntax`, by precedence climbing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pto.gym.host import evaluator as ev
from pto.gym.host import syntax as s
from pto.gym.host.initialisers import braces
from pto.gym.host.tokens import CToken, not_understood
from pto.gym.host.type_names import TypeParser

_BINARY = {
    op: level
    for level, ops in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), start=1
    )
    for op in ops.split()
}
_ASSIGN = {"=": ""} | {f"{op}=": op for op in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")}
_UNARY = {"!": ev.negated, "&": ev.address}
_STEPS = {"++": 1, "--": -1}
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"))
_WORDS = {"nullptr": None, "NULL": None, "true": True, "false": False}
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "r": "\r"}
_DEEPEST = 200  # brackets inside each other


class ExpressionParser(TypeParser):
    """Adds expressions to types. Lambdas need statements, which `parser` adds."""

    def __init__(self, tokens: Sequence[CToken]) -> None:
        super().__init__(tokens)
        self._depth = 0

    def lambda_(self) -> s.Expr:
        raise self.unexpected("an expression")

    def expression(self) -> s.Expr:
        """Anything an initialiser or an argument may be; no top-level comma."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise not_understood(f"more than {_DEEPEST} nested expressions", self.token.loc)
        left = self._conditional()
        operator = self.token.text
        if self.token.kind == "op" and operator in _ASSIGN:
            at = self.take()
            left = s.Expr(at, ev.assign, (_ASSIGN[operator], left, self.expression()))
        self._depth -= 1
        return left

    def _conditional(self) -> s.Expr:
        condition = self._binary(1)
        if not self.is_at("?"):
            return condition
        at = self.take()
        then = self.expression()
        self.expect(":")
        return s.Expr(at, ev.conditional, (condition, then, self.expression()))

    def _binary(self, lowest: int) -> s.Expr:
        left = self._unary()
        while self.token.kind == "op" and _BINARY.get(self.token.text, 0) >= lowest:
            operator = self.take()
            right = self._binary(_BINARY[operator.text] + 1)
            left = s.Expr(operator, ev.binary, (operator.text, left, right))
        return left

    def _unary(self) -> s.Expr:
        token = self.token
        if token.kind == "op" and token.text in ("-", "+", "~"):
            return s.Expr(self.take(), ev.unary, (token.text, self._unary()))
        if token.kind == "op" and token.text in _UNARY:
            return s.Expr(self.take(), _UNARY[token.text], (self._unary(),))
        if token.text == "*":
            return s.Expr(self.take(), ev.dereferenced, (self._unary(),), ev.pointed)
        if token.text in _STEPS:
            return s.Expr(self.take(), ev.step, (_STEPS[token.text], self._unary(), False))
        if token.text == "sizeof":
            return self._sizeof()
        if token.text == "(":
            cast = self._c_cast()
            if cast is not None:
                return cast
        return self._postfix(self._primary())

    def _sizeof(self) -> s.Expr:
        at = self.take()
        if not self.accept("("):
            return s.Expr(at, ev.sizeof, (self._unary(),))
        type_ = self.try_type()
        if type_ is not None and self.accept(")"):
            return s.Expr(at, ev.sizeof, (type_,))
        inner = self.expression()
        self.expect(")")
        return s.Expr(at, ev.sizeof, (inner,))

    def _c_cast(self) -> s.Expr | None:
        """`(type)operand`, or None, and no move, when the bracket holds an expression."""
        start, at = self.at, self.token
        self.take()
        found = self.try_type()
        if found is None and self.token.kind == "name":  # `(Unknown *)x`
            found = self._undeclared_pointer()
        if found is not None and self.accept(")") and self._starts_operand():
            return s.Expr(at, ev.cast, (found, self._unary()))
        self.at = start
        return None

    def _undeclared_pointer(self) -> s.CType | None:
        start = self.at
        found = self.type()
        if found.is_pointer and self.is_at(")"):
            return found
        self.at = start
        return None

    def _starts_operand(self) -> bool:
        token = self.token
        if token.kind in ("name", "number", "string", "char"):
            return True
        return token.kind == "op" and token.text in ("(", "&", "*", "-", "+", "~", "!", "::", "{")

    def _postfix(self, base: s.Expr) -> s.Expr:
        while True:
            token = self.token
            if token.kind != "op":
                return base
            if token.text == "(":
                base = s.Expr(base.at, ev.call, (base, self.arguments()))
            elif token.text == "[":
                self.take()
                base = s.Expr(token, ev.index, (base, self.expression()), ev.element)
                self.expect("]")
            elif token.text in (".", "->"):
                self.take()
                base = s.Expr(token, ev.member, (base, self.name()), ev.place_of_member)
            elif token.text in _STEPS:
                base = s.Expr(self.take(), ev.step, (_STEPS[token.text], base, True))
            elif token.text == "<<<" and base.meaning is ev.name:
                base = self._kernel_call(base)
            elif token.text == "<" and base.meaning is ev.name:
                call = self._template_call(base)
                if call is None:
                    return base
                base = call
            else:
                return base

    def _kernel_call(self, kernel: s.Expr) -> s.Expr:
        self.expect("<<<")
        config = [self.expression()]
        while self.accept(","):
            config.append(self.expression())
        self.expect(">>>")
        operands = (kernel.loc, *kernel.operands, config, self.arguments())
        return s.Expr(kernel.at, ev.launch, operands)

    def _template_call(self, name: s.Expr) -> s.Expr | None:
        """`f<T>(x)`, or None, and no move, when `<` compares."""
        start = self.at
        self.take()
        types: list[s.CType] = []
        while True:
            found = self.try_type()
            if found is None:
                break
            types.append(found)
            if not self.accept(","):
                break
        if types and self.accept(">") and self.is_at("("):
            return s.Expr(name.at, ev.call, (name, self.arguments(), types))
        self.at = start
        return None

    def arguments(self) -> tuple[s.Expr, ...]:
        self.expect("(")
        return tuple(self.listed(")", self.initialiser))

    def initialiser(self) -> s.Expr:
        return self.braces() if self.is_at("{") else self.expression()

    def braces(self) -> s.Expr:
        at = self.expect("{")
        return s.Expr(at, braces, tuple(self.listed("}", self._item)))

    def _item(self) -> tuple[str, s.Expr]:
        """A value in braces, and its designator if it has one."""
        designator = ""
        if self.is_at(".") and self.peek().kind == "name" and self.peek(2).text in ("=", "{"):
            self.take()
            designator = self.name()
            self.accept("=")
        return designator, self.initialiser()

    def _primary(self) -> s.Expr:
        token = self.token
        if token.kind == "number":
            return literal(self.take(), number_of(token))
        if token.kind == "string":
            return literal(token, self._string())
        if token.kind == "char":
            return literal(self.take(), ord(unescaped(token.text[1:-1]) or "\0"))
        if token.text == "(":
            return self.parenthesised()
        if token.text == "[":
            return self.lambda_()
        if token.kind == "name" or token.text == "::":
            return self._named()
        raise self.unexpected("an expression")

    def parenthesised(self) -> s.Expr:
        self.expect("(")
        inner = self.expression()
        self.expect(")")
        return inner

    def _string(self) -> str:
        parts: list[str] = []
        while self.token.kind == "string":  # adjacent literals are one
            parts.append(unescaped(self.take().text[1:-1]))
        return "".join(parts)

    def _named(self) -> s.Expr:
        token = self.token
        if token.text in _WORDS:
            return literal(self.take(), _WORDS[token.text])
        if token.text in _CASTS:
            self.take()
            self.expect("<")
            type_ = self.type()
            self.expect(">")
            return s.Expr(token, ev.cast, (type_, self.parenthesised()))
        start = self.at
        type_ = self.try_type()
        if type_ is not None and self.is_at("(", "{"):
            listed = self.braces() if self.is_at("{") else None
            values = (listed,) if listed else self.arguments()
            return s.Expr(token, ev.construct, (type_, values))
        self.at = start
        return named(token, self.qualified())


def literal(at: CToken, value: int | float | str | bool | None) -> s.Expr:
    return s.Expr(at, ev.literal, (value,))


def named(at: CToken, text: str) -> s.Expr:
    return s.Expr(at, ev.name, (text,), ev.variable)


_NUMBER = re.compile(
    r"(?P<hex>0[xX][0-9a-fA-F]+)|(?P<bin>0[bB][01]+)"
    r"|(?P<float>(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?)|(?P<int>\d+)"
)


def number_of(token: CToken) -> int | float:
    """The value of a numeric literal; its suffix only matters where a float is meant."""
    text = token.text.replace("'", "")
    match = _NUMBER.match(text)
    if match is None or re.fullmatch(r"[uUlLzZfF]*", text[match.end() :]) is None:
        raise not_understood(f"`{token.text}` is not a number", token.loc)
    body = match.group()
    if match["hex"] or match["bin"]:
        return int(body, 0)
    if match["float"]:
        return float(body)
    if "f" in text[match.end() :].lower():
        return float(body)
    is_octal = len(body) > 1 and re.fullmatch(r"0[0-7]+", body)
    return int(body, 8 if is_octal else 10)


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text)
