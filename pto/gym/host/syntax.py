"""The shape of a host program: types, expressions, statements, declarations. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from pto.core.errors import Loc
from pto.gym.host.tokens import CToken


@dataclass(frozen=True, slots=True)
class CType:
    """A C++ type as far as a host file needs it: its name, what it points to, its bytes."""

    name: str
    numpy: np.dtype[Any] | None = None  # of an arithmetic type
    target: CType | None = None  # of a pointer
    is_reference: bool = False
    arguments: tuple[CType, ...] = ()  # of a template

    @property
    def is_pointer(self) -> bool:
        return self.target is not None

    @property
    def size(self) -> int | None:
        """Bytes, or None if the name alone does not determine them."""
        if self.is_pointer or self.name == "function":
            return 8
        return None if self.numpy is None else self.numpy.itemsize

    def __str__(self) -> str:
        return f"{self.target} *" if self.target else self.name


def _arithmetic() -> dict[str, CType]:
    spelled = {
        "?": "bool",
        "i1": "char int8_t signed_char std::byte",
        "u1": "uint8_t unsigned_char hifloat8_t float8_e4m3_t float8_e5m2_t float8_e8m0_t"
        " float4_e1m2x2_t float4_e2m1x2_t",
        "i2": "short int16_t short_int signed_short",
        "u2": "uint16_t unsigned_short unsigned_short_int aclFloat16",
        "i4": "int int32_t signed signed_int aclError aclrtMemcpyKind",
        "u4": "uint32_t unsigned unsigned_int",
        "i8": "int64_t long long_int long_long long_long_int ssize_t ptrdiff_t intptr_t",
        "u8": "uint64_t size_t uintptr_t unsigned_long unsigned_long_int unsigned_long_long"
        " unsigned_long_long_int",
        "f2": "half __fp16 float16_t _Float16",
        "f4": "float",
        "f8": "double",
    }
    types = {n: CType(n, np.dtype(d)) for d, names in spelled.items() for n in names.split()}
    bf16 = np.dtype(ml_dtypes.bfloat16)
    return types | {n: CType(n, bf16) for n in ("bfloat16_t", "__bf16", "bfloat16")}


ARITHMETIC = _arithmetic()  # a type of several words is joined by _
VOID = CType("void")
AUTO = CType("auto")
FUNCTION = CType("function")
TEXT = CType("char *", target=ARITHMETIC["char"])


@dataclass(slots=True, eq=False)
class Expr:
    at: CToken

    @property
    def loc(self) -> Loc:
        return self.at.loc


@dataclass(slots=True, eq=False)
class LiteralExpr(Expr):
    value: int | float | str | bool | None


@dataclass(slots=True, eq=False)
class NameExpr(Expr):
    text: str  # with its qualifiers: `DType::F32`


@dataclass(slots=True, eq=False)
class Unary(Expr):
    op: str
    operand: Expr


@dataclass(slots=True, eq=False)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Assign(Expr):
    op: str  # "" for plain =, else the arithmetic: += is "+"
    target: Expr
    value: Expr


@dataclass(slots=True, eq=False)
class StepExpr(Expr):
    """++ and --; written behind, the value is the one before the step."""

    delta: int
    target: Expr
    is_postfix: bool


@dataclass(slots=True, eq=False)
class Conditional(Expr):
    condition: Expr
    then: Expr
    other: Expr


@dataclass(slots=True, eq=False)
class CallExpr(Expr):
    callee: Expr
    arguments: tuple[Expr, ...]
    types: tuple[CType, ...] = ()  # explicit template arguments


@dataclass(slots=True, eq=False)
class LaunchExpr(Expr):
    """`kernel<<<blocks, ...>>>(arguments)`."""

    kernel: str
    config: tuple[Expr, ...]
    arguments: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class MemberExpr(Expr):
    base: Expr
    name: str


@dataclass(slots=True, eq=False)
class IndexExpr(Expr):
    base: Expr
    index: Expr


@dataclass(slots=True, eq=False)
class Cast(Expr):
    type: CType
    operand: Expr


@dataclass(slots=True, eq=False)
class Construct(Expr):
    """`std::string("x")`, `size_t(3)`, `Row{1, 2}`."""

    type: CType
    arguments: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class SizeOf(Expr):
    of: CType | Expr


@dataclass(slots=True, eq=False)
class Lambda(Expr):
    function: FunctionDef


@dataclass(slots=True, eq=False)
class InitList(Expr):
    """`{a, .name = b}`: pairs of a designator ("" without one) and a value."""

    items: tuple[tuple[str, Expr], ...]


@dataclass(slots=True, eq=False)
class Stmt:
    at: CToken

    @property
    def loc(self) -> Loc:
        return self.at.loc


@dataclass(slots=True, eq=False)
class Declare(Stmt):
    type: CType
    name: str
    dims: tuple[Expr | None, ...]  # None: as many as the initialiser has
    init: Expr | None
    construct: tuple[Expr, ...] | None = None  # `T x(a, b);`
    is_constant: bool = False


@dataclass(slots=True, eq=False)
class Evaluate(Stmt):
    expr: Expr


@dataclass(slots=True, eq=False)
class Compound(Stmt):
    body: tuple[Stmt, ...]
    labels: Mapping[str, int] = field(default_factory=dict[str, int])
    opens_scope: bool = True


@dataclass(slots=True, eq=False)
class IfStmt(Stmt):
    declared: Declare | None
    condition: Expr
    then: Stmt
    other: Stmt | None


@dataclass(slots=True, eq=False)
class LoopStmt(Stmt):
    """`for`, `while` and `do`, which runs its body before the first test."""

    init: Stmt | None
    condition: Expr | None
    advance: Stmt | None
    body: Stmt
    tests_late: bool = False


@dataclass(slots=True, eq=False)
class ForEach(Stmt):
    name: str
    type: CType
    over: Expr
    body: Stmt


@dataclass(slots=True, eq=False)
class Switch(Stmt):
    subject: Expr
    cases: tuple[tuple[Expr | None, int], ...]  # value (None: default), index into body
    body: tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None


@dataclass(slots=True, eq=False)
class Jump(Stmt):
    """`break`, `continue`, or `goto` with its label."""

    word: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class ParamDecl:
    name: str
    type: CType


@dataclass(slots=True, eq=False)
class FunctionDef:
    name: str
    params: tuple[ParamDecl, ...]
    result: CType
    body: Compound | None  # None: a prototype
    is_kernel: bool
    types: tuple[str, ...]  # template parameters
    at: CToken


@dataclass(slots=True, eq=False)
class StructDef:
    """Fields in the order an initialiser fills them; a union is one place with several names."""

    name: str
    places: tuple[tuple[str, ...], ...]
    types: Mapping[str, CType]


@dataclass(slots=True)
class TranslationUnit:
    """One translation unit."""

    file: str
    functions: list[FunctionDef] = field(default_factory=list["FunctionDef"])
    structs: dict[str, StructDef] = field(default_factory=dict[str, StructDef])
    constants: dict[str, Expr] = field(default_factory=dict[str, Expr])
    variables: list[Declare] = field(default_factory=list[Declare])
