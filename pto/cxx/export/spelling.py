"""How C++ spells types, numbers and words of attributes. The words come from the header itself."""

from __future__ import annotations

import json

import numpy as np

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.memory import Role, Space
from pto.core.tile import Pad, TileType
from pto.cxx.forms import ENUM_KINDS, ENUM_NAMES, element_types, enumerators, qualified
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Bool, Enum, Float, Int, Str
from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import Attr

_BUFFERS = {Space.SCALE_A: "ScaleLeft", Space.SCALE_B: "ScaleRight"}  # scales of MX operands
_PACKED = (Role.LEFT, Role.RIGHT, Role.ACC)  # the matrix unit has no boxes between valid ones


def _camel(words: str) -> str:
    return "".join(word.title() for word in words.split("_"))


def element(dtype: DType) -> str:
    """The C++ type of an element."""
    if not dtype.is_float and not dtype.is_packed and dtype.bits >= 8:
        return f"{'u' * dtype.name.startswith('u')}int{dtype.bits}_t"
    spelled = element_types().get(dtype.name)
    if spelled is None:
        raise fail("PTO-U249", f"C++ has no type for elements of {dtype.name}")
    return spelled


def scalar(type: t.Scalar) -> str:
    """The C++ type of a number: an index is 64 bits wide, an i1 is a bool."""
    if type.dtype is None:
        return "int64_t"
    if type.name.endswith("i1"):
        return "bool"
    return element(type.dtype)


def unsigned(type: t.Type) -> str:
    """The C++ type that reads a number without a sign."""
    name = scalar(type) if isinstance(type, t.Scalar) else "int64_t"
    return name if name.startswith(("u", "bool")) else f"u{name}"


def tile(type: TileType) -> str:
    """`Tile<...>` with no more arguments than it needs. Boxes of left tiles are the chip's own."""
    rows, cols = ("DYNAMIC" if n is None else str(n) for n in type.valid)
    layout = type.layout
    pad = enumerators()["PadValue"].get(type.pad.code)
    packed = type.role in _PACKED and type.valid != type.shape
    if type.role is Role.LEFT and type.pad is Pad.NULL and layout.is_boxed:
        sizes = f"{type.rows}, {type.cols}, {rows}, {cols}"
        return f"TileLeft{'Compact' * packed}<{element(type.dtype)}, {sizes}>"
    template_args = [
        (f"TileType::{_BUFFERS.get(type.space) or _camel(type.role.value)}", ""),
        (element(type.dtype), ""),
        (str(type.rows), ""),
        (str(type.cols), ""),
        (f"BLayout::{_camel(layout.blayout.name)}", "BLayout::RowMajor"),
        (rows, str(type.rows)),
        (cols, str(type.cols)),
        (f"SLayout::{_camel(layout.slayout.name)}", "SLayout::NoneBox"),
        (str(layout.fractal), "512"),
        (f"PadValue::{pad}" if pad else f"PadValue({type.pad.code:#x}ULL)", "PadValue::Null"),
        (f"CompactMode::{'Normal' if packed else _camel(type.compact.name)}", "CompactMode::Null"),
    ]
    while template_args[-1][0] == template_args[-1][1]:
        template_args.pop()
    return f"Tile<{', '.join(word for word, _ in template_args)}>"


def number(value: Attribute, type: t.Type) -> str:
    """A constant as C++ writes it."""
    if isinstance(value, Bool | Int):
        if isinstance(value, Bool) or (isinstance(type, t.Scalar) and type.name.endswith("i1")):
            return str(bool(value.value)).lower()
        return f"{value.value}LL" if abs(value.value) >= 1 << 31 else str(value.value)
    if isinstance(value, Float) and isinstance(type, t.Scalar) and type.dtype is not None:
        return _float(value.text, type.dtype)
    raise fail("PTO-U249", f"C++ has no way to write {value}")


def _float(text: str, dtype: DType) -> str:
    if text.lower().startswith("0x"):
        bits = int(text, 16).to_bytes(dtype.itemsize, "little")
        text = str(np.frombuffer(bits, dtype.numpy)[0])
    value = float(text)
    special = {"inf": "__builtin_inff()", "-inf": "-__builtin_inff()", "nan": '__builtin_nanf("")'}
    plain = special.get(repr(value), f"{value!r}f")
    return plain if dtype.name == "f32" else f"{element(dtype)}({plain})"


def enumeration(attr: Attr, row: str) -> str | None:
    """The enumeration of the header that sets an attribute; None where none does."""
    kinds = attr.kind.split("|")
    named = [enum for enum, name in ENUM_NAMES.items() if name == attr.name]
    of_kind = [enum for enum, kind in ENUM_KINDS.items() if kind in kinds]
    if "precision_mode" in kinds:  # one enumeration for each function
        functions = [row.removeprefix("t"), *(kind.removesuffix("_precision") for kind in kinds)]
        of_kind = [e for f in functions for e in of_kind if e.lower() == f"{f}algorithm"]
    return next(iter(named or of_kind), None)


def word(value: Attribute, attr: Attr, row: str) -> str:
    """An attribute as an argument: an enumerator or a number."""
    enum = enumeration(attr, row)
    if isinstance(value, Bool | Int):
        number = str(value.value).lower()
        return number if enum is None else f"{qualified(enum)}({number})"
    if isinstance(value, Enum):
        if value.kind == "event":
            return value.value
        names = enumerators().get(enum or "", {})
        same_name = value.value if value.value in names.values() else None
        enumerator = same_name or names.get(ENUMS[value.kind].number(value.value))
        if enumerator is not None:
            return enumerator if enum == "pipe_t" else f"{qualified(enum or '')}::{enumerator}"
    if isinstance(value, Str) and enum is None:  # a line of text
        return json.dumps(f"{value.value}\n")
    if isinstance(value, Str) and enum is not None:
        same = [w for w in enumerators()[enum].values() if w.lower() == value.value.lower()]
        if same:
            return f"{enum}::{same[0]}"
    raise fail("PTO-U249", f"C++ has no word for {attr.name} = {value}")
