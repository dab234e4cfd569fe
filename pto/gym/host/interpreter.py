"""Follows a host program: declarations once, then statements in order.

Each function executes one kind of statement. Bounded: a run has so many steps and so many nested
calls, and then it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pto.core.errors import Loc, PtoError
from pto.gym.host import initialisers
from pto.gym.host import syntax as s
from pto.gym.host.evaluator import KernelCall
from pto.gym.host.runtime import NoFiles, Runtime, builtins
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


class Interpreter:
    """The units of one host program, loaded once; `start` begins a run."""

    def __init__(self, units: Sequence[s.TranslationUnit]) -> None:
        self.runtime = Runtime(NoFiles())
        self.launch: Callable[[KernelCall], None] = lambda launch: None
        self.structs: dict[str, s.StructDef] = {}
        self.kernels: dict[str, s.FunctionDef] = {}
        self.shared = Env(self)
        for name, value in builtins().items():
            self.shared.declare(name, s.AUTO, value)
        self.scopes = [self.shared.inner() for _ in units]
        self.units = list(zip(units, self.scopes, strict=True))
        self._steps = self._depth = 0
        for unit, scope in self.units:
            self.structs |= unit.structs
            for function in unit.functions:
                self._define(function, scope)
        for unit, scope in self.units:
            for name, value in unit.constants.items():
                scope.declare(name, s.AUTO, value.value(scope))
            declare(scope, *unit.variables)

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
            declare(scope, *(each for each in unit.variables if not each.is_constant))

    def call(
        self,
        function: Closure,
        arguments: Sequence[Value | LValue],
        types: Sequence[s.CType] = (),
    ) -> Value:
        """Call a function of the program with values, or places for references."""
        made = function.definition
        if self._depth >= _DEEPEST:
            raise cannot_follow(f"calls are more than {_DEEPEST} deep")
        if made.body is None:
            raise cannot_follow(f"{made.name} has no body")
        scope = function.scope.inner()
        for name, type_ in zip(made.types, types, strict=False):
            scope.declare(f"typename {name}", s.AUTO, type_)
        for param, value in zip(made.params, arguments, strict=True):
            if isinstance(value, LValue):
                scope.names[param.name] = value
            else:
                scope.declare(param.name, param.type, converted(value, param.type))
        self._depth += 1
        try:
            made.body.run(scope)
        except _Return as result:
            return converted(result.value, made.result)
        except _Goto as goto:
            raise cannot_follow(f"there is no label {goto.label}", goto.loc) from None
        finally:
            self._depth -= 1
        return None

    def count(self, at: s.CToken) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise cannot_follow(f"the host program takes more than {_MOST_STEPS} steps", at.loc)


def declare(scope: Env, *variables: s.Declare) -> None:
    for each in variables:
        type_, init = scope.resolved(each.type), each.init
        try:
            if type_.is_reference and init is not None and init.location is not None:
                scope.names[each.name] = init.place(scope)
            else:
                scope.declare(each.name, type_, initialisers.initial(scope, each, type_))
        except PtoError as error:
            raise PtoError(*(d.at(each.loc) for d in error.diagnostics)) from None


def evaluate(scope: Env, *expressions: s.Expr) -> None:
    for each in expressions:
        each.value(scope)


def compound(scope: Env, body: Sequence[s.Stmt], labels: Mapping[str, int]) -> None:
    inner, at = scope.inner(), 0
    while at < len(body):
        try:
            body[at].run(inner)
            at += 1
        except _Goto as goto:
            if goto.label not in labels:
                raise
            at = labels[goto.label]


def if_(
    scope: Env, declared: s.Declare | None, condition: s.Expr, then: s.Stmt, other: s.Stmt | None
) -> None:
    if declared is not None:
        scope = scope.inner()
        declare(scope, declared)
    if is_true(condition.value(scope)):
        then.run(scope)
    elif other is not None:
        other.run(scope)


def loop(
    scope: Env,
    at: s.CToken,
    condition: s.Expr | None,
    body: s.Stmt,
    init: s.Stmt | None = None,
    advance: s.Stmt | None = None,
    tests_late: bool = False,
) -> None:
    """`for`, `while` and `do`, which runs its body before the first test."""
    inner = scope.inner()
    if init is not None:
        init.run(inner)
    while tests_late or condition is None or is_true(condition.value(inner)):
        tests_late = False
        scope.machine.count(at)
        try:
            body.run(inner)
        except _Continue:
            pass
        except _Break:
            return
        if advance is not None:
            advance.run(inner)


def for_each(scope: Env, loc: Loc, name: str, sequence: s.Expr, body: s.Stmt) -> None:
    over = sequence.value(scope)
    if isinstance(over, CPointer) and over.type is not None:  # C++ has arrays of numbers here
        steps = range(over.block.data.size // over.step)
        over = CArray([over.moved(n).place.get() for n in steps], over.type)
    if not isinstance(over, CArray):
        raise cannot_follow(f"a loop over {described(over)}", loc)
    for item in over.items:
        inner = scope.inner()
        inner.declare(name, over.type, item)
        try:
            body.run(inner)
        except _Continue:
            continue
        except _Break:
            return


def switch(
    scope: Env,
    subject: s.Expr,
    cases: Sequence[tuple[s.Expr | None, int]],
    body: Sequence[s.Stmt],
) -> None:
    """`cases` are values (None: default), each with the index of its first statement."""
    wanted = subject.value(scope)
    chosen = [i for v, i in cases if v is not None and v.value(scope) == wanted]
    default = [i for v, i in cases if v is None]
    start = next(iter(chosen + default), len(body))
    inner = scope.inner()
    try:
        for each in body[start:]:
            each.run(inner)
    except _Break:
        return


def return_(scope: Env, value: s.Expr | None) -> None:
    raise _Return(None if value is None else value.value(scope))


def break_(scope: Env) -> None:
    raise _Break


def continue_(scope: Env) -> None:
    raise _Continue


def goto(scope: Env, label: str, loc: Loc) -> None:
    raise _Goto(label, loc)
