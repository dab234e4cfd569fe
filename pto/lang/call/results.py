"""Result types that the row does not fix, inferred from the operands or from `to=`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pto.core.dtypes import F32, I1, I16, I32, I64, DType
from pto.ir.builder import INDEX, Given, scalar_type
from pto.ir.graph import Value
from pto.ir.infer import INFERRED
from pto.ir.text.types import parse_type
from pto.isa.row import types as t
from pto.isa.row.instr import Instr, Result
from pto.lang.call.place import mistake
from pto.lang.call.session import ValueHandle
from pto.lang.values.elements import element

Operands = Mapping[str, Given]


def result_types(row: Instr, operands: Operands, to: object) -> list[t.Type]:
    """The types of the results, without optional ones: Python computes updated addresses itself."""
    values = [v for v in operands.values() if isinstance(v, Value)]
    required = [r for r in row.results if not r.optional]
    return [_type(row, result, values, to) for result in required]


def _type(row: Instr, result: Result, values: list[Value], to: object) -> t.Type:
    if result.type and result.type not in INFERRED:
        return parse_type(result.type)
    if isinstance(to, ValueHandle):
        to = to.type
    if isinstance(to, t.Type):
        return to
    to = None if to is None else element(to)
    find = _BY_KIND.get(result.kind)
    result_type = find(row, values, to) if find else None
    if result_type is None:
        raise mistake(
            "PTO-T203",
            f"{row.mnemonic}: the type of {result.name} is not known",
            help="give it with to=: an element type like pto.f16, or a whole type",
        )
    return result_type


def _vreg(row: Instr, values: list[Value], to: DType | None) -> t.Type | None:
    if to is not None:
        return t.VReg(to.lanes, scalar_type(to))
    for type in (v.type for v in values):
        if isinstance(type, t.VReg):
            return type
        elem = getattr(type, "elem", type)
        if isinstance(elem, t.Scalar) and elem.dtype is not None:
            return t.VReg(elem.dtype.lanes, elem)
    return None


def _mask(row: Instr, values: list[Value], to: DType | None) -> t.Type | None:
    if row.traits.mask_bits:
        return t.Mask(row.traits.mask_bits)
    if to is not None:
        return t.Mask(8 * to.itemsize)
    for value in values:
        if isinstance(value.type, t.VReg) and value.type.elem.dtype:
            return t.Mask(min(32, 8 * value.type.elem.dtype.itemsize))
    return next((v.type for v in values if isinstance(v.type, t.Mask)), None)


def _pointer(row: Instr, values: list[Value], to: DType | None) -> t.Type | None:
    for value in values:
        if isinstance(value.type, t.TileBuf):
            return t.Ptr(value.type.elem, value.type.tile.space)
        if isinstance(value.type, t.View):
            return t.Ptr(value.type.elem)
        if isinstance(value.type, t.Ptr):
            return t.Ptr(scalar_type(to), value.type.space) if to else value.type
    return None


def _tile(row: Instr, values: list[Value], to: DType | None) -> t.Type | None:
    source = next((v.type for v in values if isinstance(v.type, t.TileBuf)), None)
    if source is None or to is None:
        return source
    return t.TileBuf(scalar_type(to), replace(source.tile, dtype=to))


def _scalar(row: Instr, values: list[Value], to: DType | None) -> t.Type | None:
    if to is not None:
        return scalar_type(to)
    elems = (getattr(v.type, "elem", None) for v in values)
    return next((e for e in elems if isinstance(e, t.Scalar)), None)


def _fixed(kind: DType | None) -> Callable[..., t.Type]:
    result = INDEX if kind is None else scalar_type(kind)
    return lambda row, values, to: result


_BY_KIND: dict[str, Callable[[Instr, list[Value], DType | None], t.Type | None]] = {
    "vreg": _vreg,
    "mask": _mask,
    "pointer": _pointer,
    "ub pointer": _pointer,
    "ub buffer": _pointer,
    "pointer or memref": _pointer,
    "pointer or integer": _pointer,
    "tile": _tile,
    "tile or view": _tile,
    "scalar": _scalar,
    "element": _scalar,
    "number": _scalar,
    "align": lambda row, values, to: t.Align(),
    "pipe": lambda row, values, to: t.PipeHandle(),
    "index": _fixed(None),
    **{k.name: _fixed(k) for k in (I64, I32, I16, I1, F32)},
}
