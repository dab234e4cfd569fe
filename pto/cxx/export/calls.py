"""Instructions as calls: the reverse of `binding.py`, from the same forms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import dtype
from pto.core.errors import fail
from pto.core.layout import DN
from pto.core.tile import Pad, TileType
from pto.cxx.export import spelling
from pto.cxx.export.places import declared_type, known_region, parameter_type
from pto.cxx.forms import Argument, Form, forms
from pto.ir.graph import Operation, Value
from pto.isa.handle.tile import SET_VALIDSHAPE
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Bool, Enum, Str
from pto.isa.row.instr import Attr, Instr
from pto.isa.row.traits import Control

if TYPE_CHECKING:
    from pto.cxx.export.function import Writer

# Where enumerators stand: before the types of a template, or behind them; others are arguments.
_BEFORE = ("STPhase", "AccPhase", "Coalesce", "QuantType", "HistByte")
_BEHIND = ("AtomicType", "AccToVecMode", "ReluPreMode", "MaskPattern")


def call(writer: Writer, op: Operation) -> None:
    """The first form that has a place for all that the operation has."""
    row = op.row
    assert row is not None
    if any(form.name.startswith("comm::") for form in forms(row)):
        raise fail("PTO-U249", "it goes between ranks, and an export is a launch on one device")
    for result in op.results:
        if not isinstance(result.type, t.TileBuf):
            raise fail("PTO-U249", f"a call of C++ gives no {result.type.kind}")
        writer.line(f"{spelling.tile(result.type.tile)} {writer.name(result)};")
    for form in forms(row):
        text = _written(writer, op, row, form)
        if text is not None:
            writer.line(f"{text};")
            return
    raise fail("PTO-U249", "no form of it in C++ takes these operands and attributes")


def tile_types(function: Operation) -> dict[int, TileType]:
    """The C++ type of each tile of a function, by the identity of its value.

    A valid region that is known stands in the type, unless a function takes the tile or changes
    its region. Tiles that a call wants of one type, and that differ in regions or padding, leave
    the region to the run. Tiles of different shapes stay as they are.
    """
    ops = list(function.walk())
    kept = {id(v) for op in ops if _takes_type(op) for v in op.operands}
    types = {
        id(v): declared_type(v) if id(v) in kept else known_region(v)
        for op in ops
        for v in op.results
        if isinstance(v.type, t.TileBuf)
    }
    groups = [[id(v) for v in group if id(v) in types] for op in ops if (group := _alike(op))]
    changed = True
    while changed:
        changed = False
        for group in groups:
            own = [types[key] for key in group]
            if len({(x.pad, x.valid) for x in own}) > 1 and len({_plain(x) for x in own}) == 1:
                open = {key: replace(types[key], valid=(None, None)) for key in group}
                changed = changed or any(types[key] != open[key] for key in group)
                types |= open
    return types


def _takes_type(op: Operation) -> bool:
    return op.control is Control.CALL or op.row is SET_VALIDSHAPE


def _plain(type: TileType) -> TileType:
    """A tile type without what is known of its region, and without its padding."""
    return replace(type, valid=type.shape, pad=Pad.NULL)


def _alike(op: Operation) -> list[Value]:
    if op.row is None:
        return []
    names = {a.names[0] for form in forms(op.row) for a in form.arguments if a.alike}
    found = [v for name in op.row.operand_names if name in names for v in op.group(name)]
    return [v for v in found if isinstance(v.type, t.TileBuf)]


def _seen_as(writer: Writer, op: Operation, value: Value, argument: Argument) -> str:
    """The tile itself, or its bytes as a tile of the type that the library takes."""
    type, text = declared_type(value), writer.text(value)
    wanted = type
    if argument.element and type.dtype.bits == dtype(argument.element).bits:
        wanted = replace(type, dtype=dtype(argument.element))
    if argument.alike and _plain(type) == _plain(first := declared_type(_alike(op)[0])):
        wanted = replace(wanted, pad=first.pad)
    other = op.operand(argument.rows_of) if argument.rows_of else None
    if other is not None and type.layout == DN and type.cols == 1:
        rows = declared_type(other).rows
        fits = rows < type.rows and rows * type.itemsize % BLOCK_BYTE_SIZE == 0
        wanted = replace(wanted, rows=rows, valid=(None, 1)) if fits else wanted
    if wanted == type:
        return text
    name, whole = writer.fresh(f"{text}_seen"), replace(wanted, valid=(None, None))
    writer.line(f"{spelling.tile(whole)} {name}({text}.GetValidRow(), {text}.GetValidCol());")
    writer.line(f"TASSIGN({name}, (uint64_t){text}.data());")
    return name


def _written(writer: Writer, op: Operation, row: Instr, form: Form) -> str | None:
    attrs = {a.name: op.attrs[a.name] for a in row.attrs if a.name in op.attrs}
    before: list[str] = []
    behind: list[str] = []
    last: list[str] = []
    for name, wanted in form.fixed:
        own = attrs.pop(name, None)
        if own is not None and spelling.word(own, _attr(row, name), row.mnemonic) != wanted:
            return None
        if row.attr(name) is None:
            before.append(f"{name}::{wanted}")
    behind += [_literal(row, attrs.pop(name, None), name) for name in form.literals]
    arguments = _arguments(writer, op, row, form, attrs)
    if arguments is None:
        return None
    texts, types = arguments
    for name, value in attrs.items():
        attr = _attr(row, name)
        enum = spelling.enumeration(attr, row.mnemonic)
        if _is_default(value, attr):
            continue
        if enum is None:
            return None
        word = spelling.word(value, attr, row.mnemonic)
        leading = enum in _BEFORE or enum.endswith("Algorithm")
        (before if leading else behind if enum in _BEHIND else last).append(word)
    head = [*before, *(types if behind else ()), *behind]
    template = f"<{', '.join(head)}>" if head else ""
    return f"{form.name}{template}({', '.join([*texts, *last])})"


def _attr(row: Instr, name: str) -> Attr:
    found = row.attr(name)
    assert found is not None
    return found


def _is_default(value: Attribute, attr: Attr) -> bool:
    """Whether the row says so anyway; a flag that is not set needs no word either."""
    if isinstance(value, Bool):
        return value.value == bool(attr.default)
    return isinstance(value, Enum | Str) and value.value == attr.default


def _literal(row: Instr, value: Attribute | None, name: str) -> str:
    return "0" if value is None else spelling.word(value, _attr(row, name), row.mnemonic)


def _arguments(
    writer: Writer, op: Operation, row: Instr, form: Form, attrs: dict[str, Attribute]
) -> tuple[list[str], list[str]] | None:
    """What is passed, and the types of tiles and tensors among it: tiles first."""
    texts = [writer.text(r) for r in op.results]  # a tile that it gives comes first
    tiles: list[str] = []
    tensors: list[str] = []
    named = {name for a in form.arguments for name in a.names}
    if any(op.group(name) and name not in named for name in row.operand_names):
        return None
    for argument in form.arguments:
        found = _argument(writer, op, row, argument, attrs)
        if found is None:
            return None
        for text, value in found:
            texts.append(text)
            if value is not None and isinstance(value.type, t.TileBuf):
                tiles.append(f"decltype({text})")
            elif value is not None and isinstance(value.type, t.View):
                tensors.append(f"decltype({text})")
            elif form.literals and _is_element(row, argument) and value is not None:
                tiles.append(parameter_type(value.type))
    return texts, [*tiles, *tensors]


def _argument(
    writer: Writer, op: Operation, row: Instr, argument: Argument, attrs: dict[str, Attribute]
) -> list[tuple[str, Value | None]] | None:
    """None where the form wants what the operation does not have."""
    if not argument.names:
        return [] if argument.optional else None
    name = argument.names[0]
    if row.attr(name) is not None and name not in row.operand_names:
        attr, value = _attr(row, name), attrs.pop(name, None)
        if value is None and isinstance(attr.default, str):
            value = Enum(attr.kind, attr.default)  # the chip's library has no default for it
        if value is None:
            return [] if argument.optional else None
        return [(spelling.word(value, attr, row.mnemonic), None)]
    values = op.group(name)
    if argument.role and not all(_has_role(v, argument.role) for v in values):
        return None
    if not values:
        return [] if argument.optional else None
    others = [op.group(other) for other in argument.names[1:]]
    if any(other != values for other in others):
        return None
    return [(_passed(writer, op, v, argument), v) for v in values]


def _passed(writer: Writer, op: Operation, value: Value, argument: Argument) -> str:
    """An operand as the library takes it."""
    if argument.element or argument.rows_of or argument.alike:
        return _seen_as(writer, op, value, argument)
    tensor = writer.tensors.get(id(value))
    tiles = [v.type.tile for v in op.operands if isinstance(v.type, t.TileBuf)]
    if tensor is None or not tiles or not op.traits.sized_by_tile:
        return writer.text(value)
    return writer.tensor(value, tensor.beside(tiles[0]))


def _is_element(row: Instr, argument: Argument) -> bool:
    return any(o.name == argument.names[0] and o.kind == "scalar" for o in row.operands)


def _has_role(value: Value, role: str) -> bool:
    return isinstance(value.type, t.TileBuf) and value.type.tile.role.value == role
