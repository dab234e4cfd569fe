"""C++ declarations: aliases, structs, enums, functions and variables.

Statements, and the file as a whole, build on this in `parser`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.gym.host import syntax as s
from pto.gym.host.evaluator import binary
from pto.gym.host.expressions import ExpressionParser, literal
from pto.gym.host.tokens import CToken, not_understood

_INT = s.ARITHMETIC["int"]
_AFTER_NAME = frozenset(("=", ";", ",", "[", "{", "(", ":"))


class DeclarationParser(ExpressionParser):
    """Adds declarations to expressions and collects what a file defines."""

    def __init__(self, tokens: Sequence[CToken], file: str) -> None:
        super().__init__(tokens)
        self.out = s.TranslationUnit(file)
        self.templates: tuple[str, ...] = ()

    def compound(self) -> s.Stmt:
        raise self.unexpected("a declaration")

    def declares(self) -> bool:
        """Whether a declaration starts here: a type, then a name that a declaration may follow."""
        start = self.at
        try:
            is_certain = bool(self.skip_qualifiers())
            known = self.try_type()
            is_certain = is_certain or known is not None
            if known is None and self.token.kind == "name":
                known = self.type()
            if known is None:
                return False
            if self._is_function_pointer():
                return self.peek(3).text == ")" and self.peek(4).text == "("
            if self.token.kind != "name":
                return False
            before = self.tokens[self.at - 1]
            if not is_certain and before.kind == "op":  # `a && b(c)` is none, `A *b = c` is
                return before.text == "*" and self.peek().text in ("=", ";")
            return self.peek().text in _AFTER_NAME
        finally:
            self.at = start

    # aliases

    def alias(self) -> None:
        """`using` and `typedef`."""
        if self.take().text == "using":
            self._using()
        elif self.is_at("struct", "union", "enum") and self._opens_body():
            self.definition(is_typedef=True)
        else:
            base = self.type()
            pointer = self._function_pointer()
            self.aliases[pointer or self.name()] = s.FUNCTION if pointer else base
        self.expect(";")

    def _using(self) -> None:
        if self.accept("namespace"):
            self.qualified()
            return
        name = self.qualified()
        if self.accept("="):
            self.aliases[name] = self.type()

    # structs and enums

    def _opens_body(self) -> bool:
        """Whether a struct, union or enum is defined here, not only named."""
        ahead = 1
        while self.peek(ahead).text == ":" or self.peek(ahead).kind == "name":
            ahead += 1
        return self.peek(ahead).text == "{"

    def definition(self, is_typedef: bool = False) -> bool:
        """Read a struct, union or enum with a body, if there is one here."""
        if not (self.is_at("struct", "union", "enum", "class") and self._opens_body()):
            return False
        if self.take().text == "enum":
            self._enum(is_typedef)
        else:
            self._struct(is_typedef)
        if not is_typedef:
            self.expect(";")
        return True

    def _enum(self, is_typedef: bool) -> None:
        is_scoped = self.accept("class", "struct")
        name = self.name() if self.token.kind == "name" else ""
        underlying = self.type() if self.accept(":") else _INT
        following: s.Expr | None = None

        def enumerator() -> None:
            nonlocal following
            at, item = self.token, self.name()
            own = self.expression() if self.accept("=") else following or literal(at, 0)
            following = s.Expr(at, binary, ("+", own, literal(at, 1)))
            self.out.constants[f"{name}::{item}"] = own
            if not is_scoped:
                self.out.constants[item] = own

        self.expect("{")
        self.listed("}", enumerator)
        self.aliases[self.name() if is_typedef else name] = underlying

    def _struct(self, is_typedef: bool) -> None:
        name = self.name() if self.token.kind == "name" else ""
        places, types = self._fields()
        if is_typedef:
            name = self.name()
        self.aliases[name] = s.CType(name)
        self.out.structs[name] = s.StructDef(name, places, types)

    def _fields(self) -> tuple[tuple[tuple[str, ...], ...], dict[str, s.CType]]:
        self.expect("{")
        places: list[tuple[str, ...]] = []
        types: dict[str, s.CType] = {}
        while not self.accept("}"):
            if self.is_at("union", "struct") and self.peek().text == "{":
                is_union = self.take().text == "union"
                inner, inner_types = self._fields()
                places += [tuple(n for place in inner for n in place)] if is_union else inner
                types |= inner_types
                self.expect(";")
                continue
            for field in self.variables():
                if field.dims:
                    raise not_understood("an array inside a struct", field.loc)
                places.append((field.name,))
                types[field.name] = field.type
        return tuple(places), types

    # functions

    def function_or_variables(self) -> None:
        """Read a definition that is neither a type nor a namespace."""
        start = self.at
        seen = self.skip_qualifiers()
        result = self.type()
        seen |= self.skip_qualifiers()
        if self.token.kind == "name" and self.peek().text == "(" and self._takes_parameters():
            self._function(result, "__global__" in seen)
            return
        self.at = start
        self.out.variables += self.variables()

    def _takes_parameters(self) -> bool:
        """Whether `name(` declares a function here, not a variable built from values."""
        start = self.at
        self.at += 2
        verdict = self.is_at(")") or self.try_type() is not None
        if not verdict and self.token.kind == "name":  # a parameter of an undeclared type
            verdict = self.peek().kind == "name" or self.peek().text in ("*", "&")
        self.at = start
        return verdict

    def _function(self, result: s.CType, is_kernel: bool) -> None:
        at, name = self.token, self.name()
        params = self.parameters()
        while not self.is_at(";", "{"):  # noexcept and its like
            if self.take().kind == "end":
                raise self.unexpected("a function body")
        body = None if self.accept(";") else self.compound()
        made = s.FunctionDef(name, params, result, body, is_kernel, self.templates, at)
        self.out.functions.append(made)

    def parameters(self) -> tuple[s.ParamDecl, ...]:
        self.expect("(")
        return tuple(each for each in self.listed(")", self._parameter) if each is not None)

    def _parameter(self) -> s.ParamDecl | None:
        if self.accept("..."):
            return None
        type_ = self.type()
        pointer = self._function_pointer()
        if pointer is not None:
            return s.ParamDecl(pointer, s.FUNCTION)
        name = self.name() if self.token.kind == "name" else ""
        while self.is_at("["):
            self.skip_balanced()
            type_ = s.CType(f"{type_.name} *", target=type_)
        if self.accept("="):
            self.expression()
        return None if type_ == s.VOID else s.ParamDecl(name, type_)

    def _is_function_pointer(self) -> bool:
        return self.is_at("(") and self.peek().text == "*" and self.peek(2).kind == "name"

    def _function_pointer(self) -> str | None:
        """The name in `(*name)(...)` after a result type."""
        if not self._is_function_pointer():
            return None
        self.at += 2
        name = self.name()
        self.expect(")")
        self.skip_balanced()
        return name

    # variables

    def variables(self) -> list[s.Declare]:
        """`type a = 1, *b, c[3];`: every name may have stars of its own."""
        is_constant = bool(self.skip_qualifiers() & {"const", "constexpr"})
        base = self.base()
        found = [self.variable(base, is_constant)]
        while self.accept(","):
            found.append(self.variable(base, is_constant))
        self.expect(";")
        return found

    def variable(self, base: s.CType, is_constant: bool = False) -> s.Declare:
        type_ = self.declarator(base)
        at, pointer = self.token, self._function_pointer()
        name = pointer or self.name()
        dims: list[s.Expr | None] = []
        while self.accept("["):
            dims.append(None if self.is_at("]") else self.expression())
            self.expect("]")
        init, construct = None, None
        if self.accept("="):
            init = self.initialiser()
        elif self.is_at("{"):
            init = self.braces()
        elif self.is_at("("):
            construct = self.arguments()
        made = s.FUNCTION if pointer else type_
        is_constant = is_constant and not type_.is_pointer  # `const` is then what it points to
        return s.Declare(at, made, name, tuple(dims), init, construct, is_constant)
