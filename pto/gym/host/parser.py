"""C++ statements, and a host file as a whole: text to a `Unit`.

The subset is what host files of cases are written in; anything else is a finding at its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pto.gym.host import interpreter as run
from pto.gym.host import syntax as s
from pto.gym.host.declarations import DeclarationParser
from pto.gym.host.evaluator import closure
from pto.gym.host.expressions import ExpressionParser, named
from pto.gym.host.tokens import CToken, not_understood, read_tokens


def parse_file(path: Path) -> s.TranslationUnit:
    """Read one host file."""
    parser = HostParser(read_tokens(path, _holds), str(path))
    try:
        return parser.unit()
    except RecursionError:
        raise not_understood("the file nests too deeply", parser.token.loc) from None


def _holds(tokens: list[CToken]) -> bool:
    """Whether the arithmetic of an #if is true."""
    end = replace(tokens[-1], kind="end", text="")
    return bool(ExpressionParser([*tokens, end]).expression().value(run.Interpreter([]).shared))


class HostParser(DeclarationParser):
    """Statements and the top level, on top of declarations."""

    def __init__(self, tokens: Sequence[CToken], file: str) -> None:
        super().__init__(tokens, file)
        self._lambdas = 0

    # the file

    def unit(self) -> s.TranslationUnit:
        while self.token.kind != "end":
            self._top_level()
        return self.out

    def _top_level(self) -> None:
        if self.accept(";"):
            return
        if self.is_at("template"):
            self._template()
        elif self.is_at("using", "typedef"):
            self.alias()
        elif self._opens_namespace():
            self._namespace()
        elif not self.definition():
            self.function_or_variables()

    def _opens_namespace(self) -> bool:
        if self.is_at("namespace"):
            return True
        return self.is_at("extern") and self.peek().kind == "string" and self.peek(2).text == "{"

    def _namespace(self) -> None:
        while not self.accept("{"):
            if self.take().kind == "end":
                raise self.unexpected("`{`")
        while not self.accept("}"):
            if self.token.kind == "end":
                raise self.unexpected("`}`")
            self._top_level()

    def _template(self) -> None:
        self.take()
        self.expect("<")
        names = self.listed(">", self._template_parameter)
        before = dict(self.aliases)
        self.aliases |= {n: s.CType(n) for n in names}
        self.templates = tuple(names)
        self._top_level()
        self.templates = ()
        made = {n: t for n, t in self.aliases.items() if n not in names}
        self.aliases = before | made

    def _template_parameter(self) -> str:
        if not self.accept("typename", "class"):
            self.type()
        return self.name()

    def lambda_(self) -> s.Expr:
        at = self.token
        self.skip_balanced()
        params = self.parameters() if self.is_at("(") else ()
        self.accept("mutable")
        result = self.type() if self.accept("->") else s.AUTO
        self._lambdas += 1
        name = f"lambda {self._lambdas}"
        made = s.FunctionDef(name, params, result, self.compound(), False, (), at)
        return s.Expr(at, closure, (made,))

    # statements

    def compound(self) -> s.Stmt:
        at = self.expect("{")
        body: list[s.Stmt] = []
        labels: dict[str, int] = {}
        while not self.accept("}"):
            if self.token.kind == "end":
                raise self.unexpected("`}`")
            if self.token.kind == "name" and self.peek().text == ":" and not self.is_at("default"):
                labels[self.name()] = len(body)
                self.expect(":")
            else:
                body.append(self.statement())
        return s.Stmt(at, run.compound, (body, labels))

    def statement(self) -> s.Stmt:
        at = self.token
        if self.is_at("{"):
            return self.compound()
        reader = STATEMENTS.get(at.text) if at.kind == "name" else None
        if reader is not None:
            return reader(self)
        if self.is_at("using", "typedef"):
            self.alias()
        elif self.definition() or self.accept(";"):
            pass
        elif self.declares():
            return s.Stmt(at, run.declare, tuple(self.variables()))
        else:
            return self._evaluate(";")
        return s.Stmt(at, run.evaluate)  # nothing

    def _evaluate(self, end: str) -> s.Stmt:
        at, steps = self.token, [self.expression()]
        while self.accept(","):
            steps.append(self.expression())
        self.expect(end)
        return s.Stmt(at, run.evaluate, tuple(steps))

    def if_(self) -> s.Stmt:
        at = self.take()
        self.accept("constexpr")
        self.expect("(")
        declared = None
        if self.declares():
            self.skip_qualifiers()
            declared = self.variable(self.base())
        if declared is None or self.accept(";"):
            condition = self.expression()
        else:
            condition = named(declared.at, declared.name)
        self.expect(")")
        then = self.statement()
        other = self.statement() if self.accept("else") else None
        return s.Stmt(at, run.if_, (declared, condition, then, other))

    def for_(self) -> s.Stmt:
        at = self.take()
        self.expect("(")
        each = self._for_each(at)
        if each is not None:
            return each
        if self.accept(";"):
            init = None
        elif self.declares():
            init = s.Stmt(at, run.declare, tuple(self.variables()))
        else:
            init = self._evaluate(";")
        condition = None if self.is_at(";") else self.expression()
        self.expect(";")
        advance = None if self.accept(")") else self._evaluate(")")
        return s.Stmt(at, run.loop, (at, condition, self.statement(), init, advance))

    def _for_each(self, at: CToken) -> s.Stmt | None:
        start = self.at
        if self.declares():
            self.type()
            name = self.name() if self.token.kind == "name" else ""
            if self.accept(":"):
                over = self.initialiser()
                self.expect(")")
                return s.Stmt(at, run.for_each, (at.loc, name, over, self.statement()))
        self.at = start
        return None

    def while_(self) -> s.Stmt:
        at, condition = self.take(), self.parenthesised()
        return s.Stmt(at, run.loop, (at, condition, self.statement()))

    def do_(self) -> s.Stmt:
        at = self.take()
        body = self.statement()
        self.expect("while")
        condition = self.parenthesised()
        self.expect(";")
        return s.Stmt(at, run.loop, (at, condition, body, None, None, True))

    def switch_(self) -> s.Stmt:
        at, subject = self.take(), self.parenthesised()
        self.expect("{")
        cases: list[tuple[s.Expr | None, int]] = []
        body: list[s.Stmt] = []
        while not self.accept("}"):
            if self.is_at("case", "default"):
                is_default = self.take().text == "default"
                cases.append((None if is_default else self.expression(), len(body)))
                self.expect(":")
            else:
                body.append(self.statement())
        return s.Stmt(at, run.switch, (subject, cases, body))

    def return_(self) -> s.Stmt:
        at = self.take()
        value = None if self.is_at(";") else self.initialiser()
        self.expect(";")
        return s.Stmt(at, run.return_, (value,))

    def jump(self) -> s.Stmt:
        at = self.take()
        made = s.Stmt(at, run.break_ if at.text == "break" else run.continue_)
        self.expect(";")
        return made

    def goto(self) -> s.Stmt:
        at, label = self.take(), self.name()
        self.expect(";")
        return s.Stmt(at, run.goto, (label, at.loc))


STATEMENTS = {
    "if": HostParser.if_,
    "for": HostParser.for_,
    "while": HostParser.while_,
    "do": HostParser.do_,
    "switch": HostParser.switch_,
    "return": HostParser.return_,
    "break": HostParser.jump,
    "continue": HostParser.jump,
    "goto": HostParser.goto,
}
