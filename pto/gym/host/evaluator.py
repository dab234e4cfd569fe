"""The values of expressions of a host program: names, arithmetic, memory, calls and launches.

Each function gives the value of one kind of expression, in a scope, of its operands. Statements
build on this in `interpreter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pto.core.errors import Loc
from pto.gym.host import initialisers
from pto.gym.host import syntax as s
from pto.gym.host.operators import address_of, method
from pto.gym.host.operators import binary as operate
from pto.gym.host.operators import unary as operate_on_one
from pto.gym.host.syntax import Expr
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


# ---- names and places


def literal(scope: Env, value: int | float | str | bool | None) -> Value:
    return value


def name(scope: Env, text: str) -> Value:
    """A name with its qualifiers: `DType::F32`."""
    return variable(scope, text).get()


def variable(scope: Env, text: str) -> LValue:
    found = scope.find(text)
    if found is None and "::" in text:  # a namespace in front
        found = scope.find(text.rpartition("::")[2])
    if found is None:
        raise cannot_follow(f"the name {text} is not known")
    return found


def member(scope: Env, base: Expr, field: str) -> Value:
    return place_of_member(scope, base, field).get()


def place_of_member(scope: Env, base: Expr, field: str) -> LValue:
    value = base.value(scope)
    struct = value.place.get() if isinstance(value, Reference) else value
    if isinstance(struct, CStruct) and field in struct.fields:
        return FieldRef(struct, field)
    raise cannot_follow(f"{described(struct)} has no member {field}")


def index(scope: Env, base: Expr, number: Expr) -> Value:
    return element(scope, base, number).get()


def element(scope: Env, base: Expr, number: Expr) -> LValue:
    array, at = base.value(scope), number.value(scope)
    if isinstance(array, CVector):
        array = array.start
    if isinstance(array, CPointer) and isinstance(at, int):
        return array.moved(at).place
    if not isinstance(array, CArray) or not isinstance(at, int):
        raise cannot_follow(f"element {described(at)} of {described(array)}")
    if not 0 <= at < len(array.items):
        raise cannot_follow(f"element {at} of an array of {len(array.items)}")
    return ElementRef(array, at)


def address(scope: Env, operand: Expr) -> Value:
    return address_of(operand.place(scope))


def dereferenced(scope: Env, operand: Expr) -> Value:
    value = operand.value(scope)
    return value if isinstance(value, Closure | Builtin) else _pointed(value).get()


def pointed(scope: Env, operand: Expr) -> LValue:
    return _pointed(operand.value(scope))


def _pointed(value: Value) -> LValue:
    if isinstance(value, Reference | CPointer):
        return value.place
    raise cannot_follow(f"`*` of {described(value)}")


# ---- arithmetic


def negated(scope: Env, operand: Expr) -> Value:
    return not is_true(operand.value(scope))


def unary(scope: Env, op: str, operand: Expr) -> Value:
    return operate_on_one(op, operand.value(scope))


def binary(scope: Env, op: str, left: Expr, right: Expr) -> Value:
    a = left.value(scope)
    if op in ("&&", "||"):
        if is_true(a) is (op == "||"):
            return op == "||"
        return is_true(right.value(scope))
    return operate(scope.machine.runtime, op, a, right.value(scope))


def assign(scope: Env, op: str, target: Expr, value: Expr) -> Value:
    """`op` is empty for plain =, else the arithmetic: += is +."""
    place = target.place(scope)
    new = initialisers.built(scope, value, s.AUTO if op else place.type)
    if op:
        new = operate(scope.machine.runtime, op, place.get(), new)
    place.set(new)
    return place.get()


def step(scope: Env, delta: int, target: Expr, is_postfix: bool) -> Value:
    """++ and --; written behind, the value is the one before the step."""
    place = target.place(scope)
    before = place.get()
    place.set(operate(scope.machine.runtime, "+", before, delta))
    return before if is_postfix else place.get()


def conditional(scope: Env, condition: Expr, then: Expr, other: Expr) -> Value:
    return (then if is_true(condition.value(scope)) else other).value(scope)


# ---- types


def cast(scope: Env, type_: s.CType, operand: Expr) -> Value:
    wanted = scope.resolved(type_)
    if wanted == s.VOID:
        operand.value(scope)
        return None
    return initialisers.built(scope, operand, wanted)


def construct(scope: Env, type_: s.CType, arguments: Sequence[Expr]) -> Value:
    """`std::string("x")`, `size_t(3)`, `Row{1, 2}`."""
    return initialisers.constructed(scope, scope.resolved(type_), arguments)


def sizeof(scope: Env, of: s.CType | Expr) -> Value:
    structs = scope.machine.structs
    if isinstance(of, s.CType):
        return size_of(scope.resolved(of), structs)
    place = of.place(scope)
    value = place.get()
    if isinstance(value, CArray):
        return len(value.items) * size_of(value.type, structs)
    if isinstance(value, CPointer) and not place.type.is_pointer:  # an array of numbers
        return value.block.data.size
    return size_of(place.type, structs)


# ---- calls


def closure(scope: Env, function: s.FunctionDef) -> Value:
    return Closure(function, scope)


def call(
    scope: Env, callee: Expr, arguments: Sequence[Expr], types: Sequence[s.CType] = ()
) -> Value:
    """`types` are explicit template arguments."""
    function = _callee(scope, callee)
    if isinstance(function, Builtin):
        return _call_builtin(scope, function, arguments)
    if isinstance(function, Closure):
        return scope.machine.call(function, _arguments(scope, function, arguments), types)
    if callable(function):
        return function(*(each.value(scope) for each in arguments))
    raise cannot_follow(f"{described(function)} is called")


def _callee(scope: Env, callee: Expr) -> Value:
    if callee.meaning is member:
        base, field = callee.operands
        found = method(base.value(scope), field)
        if found is not None:
            return found
    return callee.value(scope)


def _call_builtin(scope: Env, callee: Builtin, arguments: Sequence[Expr]) -> Value:
    values = [
        Reference(each.place(scope)) if n in callee.by_reference else each.value(scope)
        for n, each in enumerate(arguments)
    ]
    try:
        return callee.call(scope.machine.runtime, *values)
    except TypeError:  # too many, too few, or of the wrong kind
        given = ", ".join(described(v) for v in values)
        raise cannot_follow(f"{callee.name} is called with ({given})") from None


def _arguments(scope: Env, callee: Closure, arguments: Sequence[Expr]) -> list[Value | LValue]:
    params = callee.definition.params
    if len(params) != len(arguments):
        counts = f"{len(arguments)} arguments for {len(params)} parameters"
        raise cannot_follow(f"{callee.definition.name} is called with {counts}")
    return [_argument(scope, *each) for each in zip(params, arguments, strict=True)]


def _argument(scope: Env, param: s.ParamDecl, given: Expr) -> Value | LValue:
    if param.type.is_reference and given.location is not None:
        return given.place(scope)
    value = initialisers.built(scope, given, param.type)
    return Variable(param.type, value) if param.type.is_reference else value  # a temporary


def launch(
    scope: Env, loc: Loc, kernel: str, config: Sequence[Expr], arguments: Sequence[Expr]
) -> None:
    """`kernel<<<blocks, ...>>>(arguments)`."""
    found = scope.machine.kernels.get(kernel)
    if found is None:
        raise cannot_follow(f"there is no __global__ function {kernel}")
    blocks = config[0].value(scope)
    if not isinstance(blocks, int) or not 0 < blocks <= _MOST_BLOCKS:
        raise cannot_follow(f"{described(blocks)} is no number of blocks")
    values = [each.value(scope) for each in arguments]
    if len(values) != len(found.params):
        counts = f"{len(values)} arguments for {len(found.params)} parameters"
        raise cannot_follow(f"{kernel} is launched with {counts}")
    pairs = zip(found.params, values, strict=True)
    given = tuple(_kernel_argument(p, v) for p, v in pairs)
    names = tuple(p.name for p in found.params)
    asked = tuple(v.block.data.size - v.offset if isinstance(v, CPointer) else 0 for v in values)
    scope.machine.launch(KernelCall(kernel, blocks, given, names, loc, asked))


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
    return value.block.pages[value.offset :]
