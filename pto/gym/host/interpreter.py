"""Follows a host program: declarations once, then statements in order.

Bounded: a run has so many steps and so many nested calls, and then it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.core.errors import Loc, PtoError
from pto.gym.host import initialisers
from pto.gym.host import syntax as s
from pto.gym.host.evaluator import Evaluator, KernelCall, resolved
from pto.gym.host.runtime import Runtime
from pto.gym.host.values import (
    CArray,
    Closure,
    CPointer,
    Env,
    LValue,
    Value,
    cannot_follow,
    converted,
    described,
    is_true,
    located,
)

_MOST_STEPS = 5_000_000
_DEEPEST = 60  # calls inside each other


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


class _Goto(Exception):
    def __init__(self, label: str, loc: Loc) -> None:
        self.label = label
        self.loc = loc


class Interpreter(Evaluator):
    """The units of one host program, loaded once; `start` begins a run."""

    def __init__(self, units: Sequence[s.TranslationUnit]) -> None:
        super().__init__()
        self.scopes = [Env(self.shared) for _ in units]
        self.units = list(zip(units, self.scopes, strict=True))
        self._steps = 0
        self._depth = 0
        for unit, scope in self.units:
            self.structs |= unit.structs
            for function in unit.functions:
                self._define(function, scope)
        for unit, scope in self.units:
            for name, value in unit.constants.items():
                scope.declare(name, s.AUTO, self.evaluate(value, scope))
            for variable in unit.variables:
                self.execute(variable, scope)

    def _define(self, function: s.FunctionDef, scope: Env) -> None:
        if function.is_kernel:
            self.kernels[function.name] = function
        elif function.body is not None:
            self.shared.declare(function.name, s.FUNCTION, Closure(function, scope))

    def start(self, runtime: Runtime, launch: Callable[[KernelCall], None]) -> None:
        """Begin a run: its own files and memory, variables as the program declares them."""
        self.runtime = runtime
        self.launch = launch
        self._steps = self._depth = 0
        for unit, scope in self.units:
            for variable in unit.variables:
                if not variable.is_constant:
                    self.execute(variable, scope)

    def call(
        self,
        function: Closure,
        arguments: Sequence[Value | LValue],
        at: s.CToken,
        types: Sequence[s.CType] = (),
    ) -> Value:
        """Call a function of the program with values, or cells for references."""
        made = function.definition
        if self._depth >= _DEEPEST:
            raise cannot_follow(f"calls are more than {_DEEPEST} deep", at.loc)
        if made.body is None:
            raise cannot_follow(f"{made.name} has no body", at.loc)
        scope = Env(function.scope)
        for name, type_ in zip(made.types, types, strict=False):
            scope.declare(f"typename {name}", s.AUTO, type_)
        for param, value in zip(made.params, arguments, strict=True):
            if isinstance(value, LValue):
                scope.names[param.name] = value
            else:
                scope.declare(param.name, param.type, converted(value, param.type))
        self._depth += 1
        try:
            self.execute(made.body, scope)
        except _Return as result:
            return converted(result.value, made.result)
        except _Goto as jump:
            raise cannot_follow(f"there is no label {jump.label}", jump.loc) from None
        finally:
            self._depth -= 1
        return None

    def execute(self, stmt: s.Stmt, scope: Env) -> None:
        self._count(stmt)
        STATEMENTS[type(stmt)](self, stmt, scope)

    def _count(self, stmt: s.Stmt) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise cannot_follow(f"the host program takes more than {_MOST_STEPS} steps", stmt.loc)

    def declare(self, stmt: s.Declare, scope: Env) -> None:
        type_ = resolved(stmt.type, scope)
        try:
            if type_.is_reference and isinstance(
                stmt.init, s.NameExpr | s.MemberExpr | s.IndexExpr
            ):
                scope.names[stmt.name] = self.place(stmt.init, scope)
                return
            scope.declare(stmt.name, type_, initialisers.initial(self, stmt, type_, scope))
        except PtoError as error:
            raise located(error, stmt.at) from None

    def compound(self, stmt: s.Compound, scope: Env) -> None:
        inner = Env(scope) if stmt.opens_scope else scope
        at = 0
        while at < len(stmt.body):
            try:
                self.execute(stmt.body[at], inner)
                at += 1
            except _Goto as jump:
                if jump.label not in stmt.labels:
                    raise
                at = stmt.labels[jump.label]

    def if_(self, stmt: s.IfStmt, scope: Env) -> None:
        if stmt.declared is not None:
            scope = Env(scope)
            self.execute(stmt.declared, scope)
        if is_true(self.evaluate(stmt.condition, scope)):
            self.execute(stmt.then, scope)
        elif stmt.other is not None:
            self.execute(stmt.other, scope)

    def loop(self, stmt: s.LoopStmt, scope: Env) -> None:
        inner = Env(scope)
        if stmt.init is not None:
            self.execute(stmt.init, inner)
        may_enter = stmt.tests_late
        while may_enter or self._goes_on(stmt, inner):
            may_enter = False
            try:
                self.execute(stmt.body, inner)
            except _Continue:
                pass
            except _Break:
                return
            if stmt.advance is not None:
                self.execute(stmt.advance, inner)

    def _goes_on(self, stmt: s.LoopStmt, scope: Env) -> bool:
        self._count(stmt)
        return stmt.condition is None or is_true(self.evaluate(stmt.condition, scope))

    def for_each(self, stmt: s.ForEach, scope: Env) -> None:
        over = self.evaluate(stmt.over, scope)
        if isinstance(over, CPointer) and over.type is not None:  # C++ has arrays of numbers here
            steps = range(over.block.data.size // over.step)
            over = CArray([over.moved(n).place.get() for n in steps], over.type)
        if not isinstance(over, CArray):
            raise cannot_follow(f"a loop over {described(over)}", stmt.loc)
        for item in over.items:
            inner = Env(scope)
            inner.declare(stmt.name, over.type, item)
            try:
                self.execute(stmt.body, inner)
            except _Continue:
                continue
            except _Break:
                return

    def switch(self, stmt: s.Switch, scope: Env) -> None:
        subject = self.evaluate(stmt.subject, scope)
        chosen = [i for v, i in stmt.cases if v is not None and self.evaluate(v, scope) == subject]
        default = [i for v, i in stmt.cases if v is None]
        start = next(iter(chosen + default), len(stmt.body))
        inner = Env(scope)
        try:
            for each in stmt.body[start:]:
                self.execute(each, inner)
        except _Break:
            return

    def return_(self, stmt: s.Return, scope: Env) -> None:
        raise _Return(None if stmt.value is None else self.evaluate(stmt.value, scope))

    def jump(self, stmt: s.Jump, scope: Env) -> None:
        if stmt.word == "goto":
            raise _Goto(stmt.label, stmt.loc)
        raise _Break if stmt.word == "break" else _Continue

    def expression(self, stmt: s.Evaluate, scope: Env) -> None:
        self.evaluate(stmt.expr, scope)


STATEMENTS: dict[type[s.Stmt], Callable[[Interpreter, Any, Env], None]] = {
    s.Declare: Interpreter.declare,
    s.Compound: Interpreter.compound,
    s.IfStmt: Interpreter.if_,
    s.LoopStmt: Interpreter.loop,
    s.ForEach: Interpreter.for_each,
    s.Switch: Interpreter.switch,
    s.Return: Interpreter.return_,
    s.Jump: Interpreter.jump,
    s.Evaluate: Interpreter.expression,
}
