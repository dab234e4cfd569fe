"""Vector registers, masks and pointers; an operator is a single instruction.

Operators apply to all lanes: an all-true mask is created once per scope.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from pto.ir.graph import Value
from pto.isa.row import types as t
from pto.lang.call.place import mistake
from pto.lang.call.session import Session, ValueHandle
from pto.lang.values.operators import COMMUTES, COMPARED, Comparisons, Operators, operations
from pto.lang.values.scalars import Scalar, is_number
from pto.lang.values.tiles import Tile

R = TypeVar("R", covariant=True)


class _Register(Operators[R], ValueHandle):
    """A value with operators that are single instructions, selected by the operand types."""

    __slots__ = ()

    def operate(self, sign: str, a: object, b: object) -> R:
        if a is not self and sign in COMMUTES:
            a, b = b, a
        return self.apply(sign, a, b) if a is self else self._refuse(a)

    def apply(self, sign: str, *operands: Any, **attrs: object) -> Any:
        from pto.lang.call.invoke import invoke  # it wraps results in the classes of this module

        for operand in operands:
            if not isinstance(operand, ValueHandle) and not is_number(operand):
                self._refuse(operand)
        types = [None if is_number(o) or isinstance(o, Scalar) else o.type for o in operands]
        rows = operations(sign, *types)
        return invoke(rows[0], operands, attrs) if rows else self._refuse(operands[-1])

    def _refuse(self, other: object) -> NoReturn:
        raise mistake(
            "PTO-T202",
            f"no single instruction joins a {self.type.kind} and {type(other).__name__} this way",
            help="spread a number over a register with pto.vbr",
        )

    def __invert__(self) -> R:
        return self.apply("~", self)


class Vreg(Comparisons["Mask"], _Register["Vreg"]):
    """A vector register: 256 bytes of lanes."""

    __slots__ = ()

    def __neg__(self) -> Vreg:
        return self.apply("-x", self)

    def __abs__(self) -> Vreg:
        return self.apply("abs", self)

    def compare(self, sign: str, a: object, b: object) -> Mask:
        return self.apply("compare", a, b, cmp_mode=COMPARED[sign])

    def __bool__(self) -> bool:
        raise mistake(
            "PTO-U202",
            "a vector register has many lanes: Python cannot decide on it",
            help="choose lane by lane with isa.vsel(a, b, a < b)",
        )


class Mask(_Register["Mask"]):
    """A predicate: one bit for each lane."""

    __slots__ = ()


class Pointer(_Register["Pointer"]):
    """An address; `p + n` is n elements further."""

    __slots__ = ()


_PROXIES: dict[type[t.Type], type[ValueHandle]] = {t.VReg: Vreg, t.Mask: Mask, t.Ptr: Pointer}


def wrap(value: Value, session: Session) -> Any:
    """A result of an instruction as an object of the user-level class."""
    if isinstance(value.type, t.Scalar):
        return session.scalar(value)
    if isinstance(value.type, t.TileBuf):
        tile = value.type.tile
        rows, cols = (n if v is None else v for n, v in zip(tile.shape, tile.valid, strict=True))
        return Tile(value, session, True, (rows, cols))
    return _PROXIES.get(type(value.type), ValueHandle)(value, session)
