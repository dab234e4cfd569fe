"""Evaluates expressions of a host program: names, arithmetic, memory, calls and launches.

Statements, and calls of the program's own functions, build on this in `interpreter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Loc, PtoError
from pto.gym.host import initialisers
from pto.gym.host import syntax as s
from pto.gym.host.operators import address_of, binary, method, unary
from pto.gym.host.runtime import NoFiles, Runtime, builtins
from pto.gym.host.values import (
    Builtin,
    CArray,
    Closure,
    CPointer,
    CScalar,
    CStruct,
    CVector,
    ElementRef,
    Env,
    FieldRef,
    LValue,
    Reference,
    Value,
    Variable,
    cannot_follow,
    converted,
    described,
    is_true,
    located,
    size_of,
)

_MOST_BLOCKS = 1 << 16


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One kernel launch: arrays are views of device memory, scalars keep their C++ type."""

    kernel: str
    blocks: int
    arguments: tuple[npt.NDArray[np.uint8] | CScalar, ...]
    names: tuple[str, ...]
    loc: Loc
    asked: tuple[int, ...] = ()  # bytes of each that the host owns; the rest of its pages is unused


def constant_of(expr: s.Expr) -> Value:
    """The value of an expression that needs no names."""
    return Evaluator().evaluate(expr, Env())


class Evaluator:
    """The state of a host program, and its expressions."""

    def __init__(self) -> None:
        self.runtime = Runtime(NoFiles())
        self.launch: Callable[[KernelCall], None] = lambda launch: None
        self.shared = Env()
        self.structs: dict[str, s.StructDef] = {}
        self.kernels: dict[str, s.FunctionDef] = {}
        for name, value in builtins().items():
            self.shared.declare(name, s.AUTO, value)

    def call(
        self,
        function: Closure,
        arguments: Sequence[Value | LValue],
        at: s.CToken,
        types: Sequence[s.CType] = (),
    ) -> Value:
        raise cannot_follow(f"{function.definition.name} is called here", at.loc)

    def evaluate(self, expr: s.Expr, scope: Env) -> Value:
        try:
            return EXPRESSIONS[type(expr)](self, expr, scope)
        except PtoError as error:
            raise located(error, expr.at) from None

    def values(self, exprs: Sequence[s.Expr], scope: Env) -> list[Value]:
        return [self.evaluate(e, scope) for e in exprs]

    # names and places

    def literal(self, expr: s.LiteralExpr, scope: Env) -> Value:
        return expr.value

    def name(self, expr: s.NameExpr, scope: Env) -> Value:
        return self.cell(expr, scope).get()

    def cell(self, expr: s.NameExpr, scope: Env) -> LValue:
        found = scope.find(expr.text)
        if found is None and "::" in expr.text:  # a namespace in front
            found = scope.find(expr.text.rpartition("::")[2])
        if found is None:
            raise cannot_follow(f"the name {expr.text} is not known", expr.loc)
        return found

    def place(self, expr: s.Expr, scope: Env) -> LValue:
        """The assignable location that an expression refers to."""
        if isinstance(expr, s.NameExpr):
            return self.cell(expr, scope)
        if isinstance(expr, s.MemberExpr):
            base = _pointed(self.evaluate(expr.base, scope))
            if isinstance(base, CStruct) and expr.name in base.fields:
                return FieldRef(base, expr.name)
        if isinstance(expr, s.IndexExpr):
            found = self._element(expr, scope)
            if found is not None:
                return found
        if isinstance(expr, s.Unary) and expr.op == "*":
            target = self.evaluate(expr.operand, scope)
            if isinstance(target, Reference | CPointer):
                return target.place
        raise cannot_follow("this cannot be assigned to", expr.loc)

    def _element(self, expr: s.IndexExpr, scope: Env) -> LValue | None:
        base = self.evaluate(expr.base, scope)
        index = self.evaluate(expr.index, scope)
        if not isinstance(index, int):
            return None
        if isinstance(base, CVector):
            base = base.start
        if isinstance(base, CPointer):
            return base.moved(index).place
        if not isinstance(base, CArray):
            return None
        if not 0 <= index < len(base.items):
            raise cannot_follow(f"element {index} of an array of {len(base.items)}", expr.loc)
        return ElementRef(base, index)

    def member(self, expr: s.MemberExpr, scope: Env) -> Value:
        base = _pointed(self.evaluate(expr.base, scope))
        if isinstance(base, CStruct) and expr.name in base.fields:
            return base.fields[expr.name]
        raise cannot_follow(f"{described(base)} has no member {expr.name}", expr.loc)

    def index(self, expr: s.IndexExpr, scope: Env) -> Value:
        return self.place(expr, scope).get()

    # arithmetic

    def unary(self, expr: s.Unary, scope: Env) -> Value:
        if expr.op == "&":
            return address_of(self.place(expr.operand, scope))
        value = self.evaluate(expr.operand, scope)
        if expr.op == "!":
            return not is_true(value)
        if expr.op != "*":
            return unary(expr.op, value)
        if isinstance(value, Closure | Builtin):
            return value
        if isinstance(value, Reference | CPointer):
            return value.place.get()
        raise cannot_follow(f"`*` of {described(value)}")

    def binary(self, expr: s.Binary, scope: Env) -> Value:
        left = self.evaluate(expr.left, scope)
        if expr.op in ("&&", "||"):
            if is_true(left) is (expr.op == "||"):
                return expr.op == "||"
            return is_true(self.evaluate(expr.right, scope))
        right = self.evaluate(expr.right, scope)
        return binary(self.runtime, expr.op, left, right)

    def assign(self, expr: s.Assign, scope: Env) -> Value:
        place = self.place(expr.target, scope)
        value = initialisers.built(self, expr.value, s.AUTO if expr.op else place.type, scope)
        if expr.op:
            value = binary(self.runtime, expr.op, place.get(), value)
        place.set(value)
        return place.get()

    def step(self, expr: s.StepExpr, scope: Env) -> Value:
        place = self.place(expr.target, scope)
        before = place.get()
        place.set(binary(self.runtime, "+", before, expr.delta))
        return before if expr.is_postfix else place.get()

    def conditional(self, expr: s.Conditional, scope: Env) -> Value:
        holds = is_true(self.evaluate(expr.condition, scope))
        return self.evaluate(expr.then if holds else expr.other, scope)

    # types

    def cast(self, expr: s.Cast, scope: Env) -> Value:
        type_ = resolved(expr.type, scope)
        if type_ == s.VOID:
            self.evaluate(expr.operand, scope)
            return None
        return initialisers.built(self, expr.operand, type_, scope)

    def construct(self, expr: s.Construct, scope: Env) -> Value:
        type_ = resolved(expr.type, scope)
        return initialisers.constructed(self, type_, expr.arguments, scope)

    def sizeof(self, expr: s.SizeOf, scope: Env) -> Value:
        if isinstance(expr.of, s.CType):
            return size_of(resolved(expr.of, scope), self.structs)
        place = self.place(expr.of, scope)
        value = place.get()
        if isinstance(value, CArray):
            return len(value.items) * size_of(value.type, self.structs)
        if isinstance(value, CPointer) and not place.type.is_pointer:  # an array of numbers
            return value.block.data.size
        return size_of(place.type, self.structs)

    def lambda_(self, expr: s.Lambda, scope: Env) -> Value:
        return Closure(expr.function, scope)

    def braces(self, expr: s.InitList, scope: Env) -> Value:
        raise cannot_follow("a list in braces stands where one value is needed", expr.loc)

    # calls

    def call_(self, expr: s.CallExpr, scope: Env) -> Value:
        callee = self._callee(expr, scope)
        if isinstance(callee, Builtin):
            return self._call_builtin(callee, expr, scope)
        if isinstance(callee, Closure):
            arguments = self._arguments(callee, expr, scope)
            return self.call(callee, arguments, expr.at, expr.types)
        if callable(callee):
            return callee(*self.values(expr.arguments, scope))
        raise cannot_follow(f"{described(callee)} is called", expr.loc)

    def _callee(self, expr: s.CallExpr, scope: Env) -> Value:
        callee = expr.callee
        if isinstance(callee, s.MemberExpr):
            found = method(self.evaluate(callee.base, scope), callee.name)
            if found is not None:
                return found
        return self.evaluate(callee, scope)

    def _call_builtin(self, callee: Builtin, expr: s.CallExpr, scope: Env) -> Value:
        values: list[Value] = []
        for index, argument in enumerate(expr.arguments):
            if index in callee.by_reference:
                values.append(Reference(self.place(argument, scope)))
            else:
                values.append(self.evaluate(argument, scope))
        try:
            return callee.call(self.runtime, *values)
        except TypeError:  # too many, too few, or of the wrong kind
            given = ", ".join(described(v) for v in values)
            raise cannot_follow(f"{callee.name} is called with ({given})", expr.loc) from None

    def _arguments(self, callee: Closure, expr: s.CallExpr, scope: Env) -> list[Value | LValue]:
        params = callee.definition.params
        if len(params) != len(expr.arguments):
            counts = f"{len(expr.arguments)} arguments for {len(params)} parameters"
            raise cannot_follow(f"{callee.definition.name} is called with {counts}", expr.loc)
        pairs = zip(params, expr.arguments, strict=True)
        return [self._argument(value, param.type, scope) for param, value in pairs]

    def _argument(self, expr: s.Expr, type_: s.CType, scope: Env) -> Value | LValue:
        if not type_.is_reference:
            return initialisers.built(self, expr, type_, scope)
        if not isinstance(expr, s.NameExpr | s.MemberExpr | s.IndexExpr):  # a temporary
            return Variable(type_, initialisers.built(self, expr, type_, scope))
        return self.place(expr, scope)

    def kernel_call(self, expr: s.LaunchExpr, scope: Env) -> Value:
        kernel = self.kernels.get(expr.kernel)
        if kernel is None:
            raise cannot_follow(f"there is no __global__ function {expr.kernel}", expr.loc)
        blocks = self.evaluate(expr.config[0], scope)
        if not isinstance(blocks, int) or not 0 < blocks <= _MOST_BLOCKS:
            raise cannot_follow(f"{described(blocks)} is no number of blocks", expr.loc)
        values = self.values(expr.arguments, scope)
        if len(values) != len(kernel.params):
            counts = f"{len(values)} arguments for {len(kernel.params)} parameters"
            raise cannot_follow(f"{expr.kernel} is launched with {counts}", expr.loc)
        pairs = zip(kernel.params, values, strict=True)
        arguments = tuple(_kernel_argument(p, v) for p, v in pairs)
        names = tuple(p.name for p in kernel.params)
        asked = tuple(
            v.block.data.size - v.offset if isinstance(v, CPointer) else 0 for v in values
        )
        self.launch(KernelCall(expr.kernel, blocks, arguments, names, expr.loc, asked))
        return None


def resolved(type_: s.CType, scope: Env) -> s.CType:
    """The argument of a template parameter."""
    if type_.numpy is not None or type_.is_pointer:
        return type_
    bound = scope.find(f"typename {type_.name}")
    return type_ if bound is None else bound.get()


def _pointed(value: Value) -> Value:
    return value.place.get() if isinstance(value, Reference) else value


def _kernel_argument(param: s.ParamDecl, value: Value) -> npt.NDArray[np.uint8] | CScalar:
    if not param.type.is_pointer:
        if param.type.numpy is None:
            raise cannot_follow(f"the kernel's {param.name} is a {param.type}, no number")
        return CScalar(param.type, converted(value, param.type))
    if value is None:
        return np.zeros(0, np.uint8)
    if not isinstance(value, CPointer):
        raise cannot_follow(f"the kernel's {param.name} is given {described(value)}")
    if value.block.space != "device":
        raise cannot_follow(f"the kernel's {param.name} is given host memory")
    value.span(value.block.data.size - value.offset)  # refuses freed memory and a wild address
    whole = value.block.data if value.block.pages is None else value.block.pages
    return whole[value.offset :]


EXPRESSIONS: dict[type[s.Expr], Callable[[Evaluator, Any, Env], Value]] = {
    s.LiteralExpr: Evaluator.literal,
    s.NameExpr: Evaluator.name,
    s.Unary: Evaluator.unary,
    s.Binary: Evaluator.binary,
    s.Assign: Evaluator.assign,
    s.StepExpr: Evaluator.step,
    s.Conditional: Evaluator.conditional,
    s.CallExpr: Evaluator.call_,
    s.LaunchExpr: Evaluator.kernel_call,
    s.MemberExpr: Evaluator.member,
    s.IndexExpr: Evaluator.index,
    s.Cast: Evaluator.cast,
    s.Construct: Evaluator.construct,
    s.SizeOf: Evaluator.sizeof,
    s.Lambda: Evaluator.lambda_,
    s.InitList: Evaluator.braces,
}
