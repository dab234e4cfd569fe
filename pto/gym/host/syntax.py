"""The shape of a host program: types, expressions, statements, declarations.

The functions that expressions and statements refer to are in `evaluator` and `interpreter`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from pto.core.errors import Loc, PtoError, fail
from pto.gym.host.tokens import CToken

if TYPE_CHECKING:
    from pto.gym.host.values import Env, LValue


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
    """An expression: the function that gives its value, and its operands.

    The function takes the scope first. `location` is a second one, of what can be assigned to.
    """

    at: CToken
    meaning: Callable[..., Any]
    operands: tuple[Any, ...] = ()
    location: Callable[..., Any] | None = None

    @property
    def loc(self) -> Loc:
        return self.at.loc

    def value(self, scope: Env) -> Any:
        try:
            return self.meaning(scope, *self.operands)
        except PtoError as error:
            raise self._located(error) from None

    def place(self, scope: Env) -> LValue:
        """The assignable location that the expression refers to."""
        if self.location is None:
            raise fail("PTO-U063", "this cannot be assigned to", loc=self.loc)
        try:
            return self.location(scope, *self.operands)
        except PtoError as error:
            raise self._located(error) from None

    def _located(self, error: PtoError) -> PtoError:
        """The error, here unless it knows its place already."""
        error.diagnostics = tuple(d.at(self.loc) for d in error.diagnostics)
        return error


@dataclass(slots=True, eq=False)
class Stmt:
    """A statement: the function that executes it, which takes the scope first, and its operands."""

    at: CToken
    meaning: Callable[..., None]
    operands: tuple[Any, ...] = ()

    def run(self, scope: Env) -> None:
        scope.machine.count(self.at)
        self.meaning(scope, *self.operands)


@dataclass(slots=True, eq=False)
class Declare:
    """A variable, or a field of a struct."""

    at: CToken
    type: CType
    name: str
    dims: tuple[Expr | None, ...]  # None: as many as the initialiser has
    init: Expr | None
    construct: tuple[Expr, ...] | None = None  # `T x(a, b);`
    is_constant: bool = False

    @property
    def loc(self) -> Loc:
        return self.at.loc


@dataclass(frozen=True, slots=True)
class ParamDecl:
    name: str
    type: CType


@dataclass(slots=True, eq=False)
class FunctionDef:
    name: str
    params: tuple[ParamDecl, ...]
    result: CType
    body: Stmt | None  # None: a prototype
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
