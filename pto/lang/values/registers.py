"""Vector registers, masks and pointers, with operators where one instruction stands behind them.

Operators work on all lanes: an all-true mask is made once a scope.
"""

from __future__ import annotations

from typing import Any

from pto.ir.graph import Value
from pto.isa.row import types as t
from pto.lang.call.place import mistake
from pto.lang.call.session import Handle, Session
from pto.lang.values.scalars import Scalar, is_number


def _call(name: str, *args: Any, **attrs: Any) -> Any:
    from pto.lang.call.invoke import call  # this module wraps what `invoke` returns

    return call(name, args, attrs)


class Vreg(Handle):
    """A vector register: 256 bytes of lanes."""

    __slots__ = ()

    def _with(self, both: str, number: str, other: Any) -> Any:
        if isinstance(other, Vreg):
            return _call(both, self, other)
        if number and (is_number(other) or isinstance(other, Scalar)):
            return _call(number, self, other)
        raise mistake(
            "PTO-T202",
            f"no single instruction joins a vector register and {type(other).__name__} this way",
            help="spread a number over a register with pto.vbr",
        )

    def __add__(self, other: Any) -> Vreg:
        return self._with("vadd", "vadds", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vreg:
        return self._with("vsub", "vsubs", other)

    def __mul__(self, other: Any) -> Vreg:
        return self._with("vmul", "vmuls", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Vreg:
        return self._with("vdiv", "", other)

    def __and__(self, other: Any) -> Vreg:
        return self._with("vand", "vands", other)

    def __or__(self, other: Any) -> Vreg:
        return self._with("vor", "vors", other)

    def __xor__(self, other: Any) -> Vreg:
        return self._with("vxor", "vxors", other)

    def __lshift__(self, other: Any) -> Vreg:
        return self._with("vshl", "vshls", other)

    def __rshift__(self, other: Any) -> Vreg:
        return self._with("vshr", "vshrs", other)

    def __neg__(self) -> Vreg:
        return _call("vneg", self)

    def __abs__(self) -> Vreg:
        return _call("vabs", self)

    def __invert__(self) -> Vreg:
        return _call("vnot", self)

    def _compared(self, word: str, other: Any) -> Mask:
        name = "vcmp" if isinstance(other, Vreg) else "vcmps"
        return _call(name, self, other, cmp_mode=word)

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other)

    def __lt__(self, other: Any) -> Mask:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> Mask:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> Mask:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> Mask:
        return self._compared("ge", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise mistake(
            "PTO-U202",
            "a vector register has many lanes: Python cannot decide on it",
            help="choose lane by lane with pto.vsel(a, b, a < b)",
        )


class Mask(Handle):
    """A predicate: one bit for each lane."""

    __slots__ = ()

    def __and__(self, other: Mask) -> Mask:
        return _call("pand", self, other)

    def __or__(self, other: Mask) -> Mask:
        return _call("por", self, other)

    def __xor__(self, other: Mask) -> Mask:
        return _call("pxor", self, other)

    def __invert__(self) -> Mask:
        return _call("pnot", self)


class Pointer(Handle):
    """An address; `p + n` is n elements further."""

    __slots__ = ()

    def __add__(self, offset: Any) -> Pointer:
        return _call("addptr", self, offset)


_PROXIES: dict[type[t.Type], type[Handle]] = {t.VReg: Vreg, t.Mask: Mask, t.Ptr: Pointer}


def wrap(value: Value, session: Session) -> Any:
    """A result as what users hold."""
    if isinstance(value.type, t.Scalar):
        return session.scalar(value)
    return _PROXIES.get(type(value.type), Handle)(value, session)
