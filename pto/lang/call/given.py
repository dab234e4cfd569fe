"""Converts user arguments to operands of rows: numbers to typed constants, tiles to addresses,
words to attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pto.core.dtypes import F32, I1, I16, I32, I64
from pto.core.errors import nearest
from pto.ir.builder import INDEX, scalar_type
from pto.ir.canonical import INT_TYPES, words_of
from pto.ir.graph import Value
from pto.isa.handle.tile import TILE_BUF_ADDR
from pto.isa.row.attributes import (
    Array,
    Attribute,
    Bool,
    Enum,
    Float,
    Int,
    OfType,
    Str,
    Symbol,
    Unit,
)
from pto.isa.row.enums import kinds_of
from pto.isa.row.instr import Attr, Instr, Operand
from pto.isa.row.types import KINDS, Ptr, TileBuf, Type
from pto.isa.row.types import Scalar as ScalarType
from pto.lang.call.place import mistake
from pto.lang.call.session import ValueHandle, current
from pto.lang.call.signature import required_call
from pto.lang.values.scalars import Scalar, as_value, is_number, is_truth
from pto.lang.values.tiles import Tile
from pto.lang.values.views import Global, View, Whole, contiguous

_FIXED = {"index": INDEX, **{k.name: scalar_type(k) for k in (I64, I32, I16, I1)}}
_OF_ELEMENT = (
    *("scalar", "element", "float", "number"),
    *("tile or scalar", "vreg or scalar", "logical vreg or scalar"),
)


def is_array(value: object) -> bool:
    return isinstance(value, Global | View)


def counted_in_memory(row: Instr, operands: Mapping[str, object]) -> Mapping[str, object]:
    """Operands with an element number of a view replaced by its offset from the array's pointer.

    A pointer has no strides: element 5 of `x.T` or `x[2:, 3]` is at another offset than 5.
    """
    offset = row.places.get("offset")
    if offset is None or "offset" not in operands or row.operands[offset].kind != "index":
        return operands
    for operand in row.operands:
        value = operands.get(operand.name)
        if isinstance(value, Global | View) and "pointer" in operand.kind:
            window = value.whole()
            window.array.used()
            index = operands["offset"]
            element = (
                window.place_at(index) if isinstance(index, tuple) else window.place_of(index)  # pyright: ignore[reportUnknownArgumentType]
            )
            return {**operands, operand.name: window.array.pointer, "offset": element}
    return operands


def operand_value(row: Instr, operand: Operand, value: object, elem: ScalarType | None) -> Value:
    """One operand as an SSA value. Views are lowered earlier, together with their tile."""
    if is_number(value) or isinstance(value, Scalar):
        return _number(row, operand, value, elem)
    if isinstance(value, Value):
        return value
    accepts = KINDS[operand.kind].accepts
    if isinstance(value, Tile | Global) and operand.kind in _OF_ELEMENT and not accepts(value.type):
        raise not_taken(row, operand, "a tile" if isinstance(value, Tile) else "an array")
    if isinstance(value, Tile) and not accepts(value.type) and "TileBuf" not in operand.kind:
        return _address(value)
    if isinstance(value, Global) and not accepts(value.type):
        value.used()
        _require_in_order(row, operand, value)
        return value.pointer
    if isinstance(value, ValueHandle):
        return value.used()
    raise mistake(
        "PTO-T200",
        f"{row.mnemonic}: {operand.name} is {KINDS[operand.kind].words}, got {_words(value)}",
    )


def _require_in_order(row: Instr, operand: Operand, array: Whole) -> None:
    """Raise unless the array is contiguous: only then can a pointer replace it."""
    if array.strides != contiguous(array.shape):
        raise mistake(
            "PTO-S201",
            f"{row.mnemonic}: {operand.name} is a pointer, which has no strides, and this view has"
            f" strides {array.strides}",
            help="pass the array itself; transfers by pointer have operands for strides",
        )


def not_taken(row: Instr, operand: Operand, got: str) -> Exception:
    """The error for a tile or an array in a place that does not accept it, with a correct form."""
    sign, help = row.traits.operator, None
    if operand.kind in _OF_ELEMENT and got == "a tile":
        help = f"of two tiles, write a {sign} b" if sign else None
    elif operand.kind in _OF_ELEMENT:
        help = "isa.load_scalar(x, i) reads element i of an array, counted row by row"
    kind = KINDS[operand.kind].words
    return mistake("PTO-T200", f"{row.mnemonic}: {operand.name} is {kind}, got {got}", help=help)


def _words(value: object) -> str:
    if type(value).__module__.startswith("numpy"):
        return f"a NumPy {type(value).__name__}: pass arrays to the kernel as arguments"
    return f"{type(value).__name__} {value!r}"[:80]


def _address(tile: Tile) -> Value:
    """A tile where a pointer is needed: the address of its first element."""
    value = tile.used()
    type = tile.value.type
    if not isinstance(type, TileBuf):
        return value
    pointer = Ptr(type.elem, type.tile.space)
    names = [f"{value.name}_addr"]
    (address,) = current().emit(TILE_BUF_ADDR, {"src": value}, results=[pointer], names=names)
    return address


def _number(row: Instr, operand: Operand, value: object, elem: ScalarType | None) -> Value:
    if operand.kind in _FIXED:
        return as_value(value, _FIXED[operand.kind])
    if operand.kind == "int":
        return as_value(value, value.scalar if isinstance(value, Scalar) else _FIXED["i32"])
    if operand.kind in _OF_ELEMENT or operand.kind in ("any", "scalar or pointer"):
        if isinstance(value, Scalar) and not (value.scalar.is_index or is_truth(value)):
            return value.used()
        return as_value(
            value, elem or (_FIXED["i32"] if isinstance(value, int) else scalar_type(F32))
        )
    if "integer" in operand.kind:
        return as_value(value, _FIXED["i64"])
    raise mistake(
        "PTO-T200",
        f"{row.mnemonic}: {operand.name} is {KINDS[operand.kind].words}, got the number {value!r}",
        help=f"the order is {required_call(row)}" if operand.kind == "tile" else None,
    )


def element_of(row: Instr, operands: dict[str, object]) -> ScalarType | None:
    """The element type that bare numbers of this instruction take: the subject's, or the first."""
    names = [row.subject, *row.operand_names]
    for name in names:
        value = operands.get(name)
        for item in value if isinstance(value, list) else (value,):
            elem = getattr(getattr(item, "type", None), "elem", None)
            if isinstance(elem, ScalarType):
                return elem
    return None


# ---- attributes


def attribute(row: Instr, spec: Attr, value: object) -> Attribute:
    """A keyword argument as the attribute its row declares."""
    if kinds_of(spec.kind):
        return _enum(row, spec, value)
    if isinstance(value, str) and spec.values and value not in spec.values:
        raise _bad_word(row, spec, value)
    make = _MAKERS.get(spec.kind)
    converted = make(value) if make else _any(value)
    if converted is None:
        raise mistake("PTO-T201", f"{row.mnemonic}: {spec.name} is {spec.kind}, got {value!r}")
    return converted


def _enum(row: Instr, spec: Attr, value: object) -> Attribute:
    """An enum from a word in any case; a prefix equal to its kind is optional: V is PIPE_V."""
    allowed = words_of(spec)
    for kind in kinds_of(spec.kind):
        written = str(kind.word(value) if type(value) is int else value).lower()
        shared = kind.name.partition("_")[0]
        for word in kind.words:
            if word in allowed and word.lower() in (written, f"{shared}_{written}"):
                return Enum(kind.name, kind.word(kind.number(word)) or word)
    raise _bad_word(row, spec, value)


def _bad_word(row: Instr, spec: Attr, value: object) -> Exception:
    words = words_of(spec)
    listed = ", ".join(words)
    return mistake(
        "PTO-T201",
        f"{row.mnemonic}: {spec.name} cannot be {value!r}; it is one of {listed}",
        help=nearest(str(value), words),
    )


def _integer(kind: str) -> Callable[[object], Attribute | None]:
    type = INT_TYPES[kind]
    low, high = type.written if isinstance(type, ScalarType) else INDEX.written
    return lambda v: Int(int(v), type) if isinstance(v, int) and low <= v <= high else None


def _any(value: object) -> Attribute | None:
    if isinstance(value, bool):
        return Bool(value)
    if isinstance(value, int):
        return Int(value)
    if isinstance(value, float):
        return Float(repr(value))
    if isinstance(value, str):
        return Str(value)
    if isinstance(value, list | tuple):
        items = [_any(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        return Array(tuple(i for i in items if i is not None))
    return OfType(value) if isinstance(value, Type) else None


_MAKERS: dict[str, Callable[[Any], Attribute | None]] = {
    "int": _integer("int"),
    "i32": _integer("i32"),
    "i8": _integer("i8"),
    "bool": lambda v: Bool(v) if isinstance(v, bool) else None,
    "str": lambda v: Str(v) if isinstance(v, str) else None,
    "symbol": lambda v: Symbol(v) if isinstance(v, str) else None,
    "unit": lambda v: Unit() if v else None,
    "float": lambda v: Float(repr(float(v))) if isinstance(v, int | float) else None,
}
