"""Instructions as calls: the reverse of `binding.py`, from the same forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.errors import fail
from pto.core.layout import DN, ND
from pto.core.tile import Pad, TileType
from pto.cxx.export import spelling
from pto.cxx.export.places import declare_tile, declared_type, parameter_type
from pto.cxx.forms import CallForm, FormArgument, attribute_of, forms
from pto.cxx.packed import counts_values
from pto.ir.graph import Operation, Value
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Bool, Enum, Str
from pto.isa.row.instr import Attr, Instr
from pto.isa.rules.paths import PAIRS
from pto.isa.tile.extract import WINDOW

if TYPE_CHECKING:
    from pto.cxx.export.function import Writer

# Enumerators that precede or follow the types of a template; all other ones are arguments.
_BEFORE = (
    "STPhase",
    "AccPhase",
    "Coalesce",
    "QuantType",
    "VecStoreMode",
    "HistByte",
    "TInsertMode",
)
_BEHIND = ("AtomicType", "AccToVecMode", "ReluPreMode", "MaskPattern")


class _Passed(NamedTuple):
    """An argument of a call, and its type if it is a template argument."""

    text: str
    type: str = ""
    is_tile: bool = False


def call(writer: Writer, op: Operation) -> None:
    """The first form that has a place for all that the operation has."""
    row = op.row
    returned = [r for r in op.results if not isinstance(r.type, t.TileBuf)]
    for result in op.results:
        if result not in returned:
            declare_tile(writer, result)
        elif not isinstance(result.type, t.Scalar):
            raise fail("PTO-U249", f"a C++ call cannot return a {result.type.kind}")
    for form in forms(row):
        text = _written(writer, op, row, form)
        if text is not None:
            writer.define(returned[0], text) if returned else writer.line(f"{text};")
            return
    raise fail("PTO-U249", "no form of it in C++ takes these operands and attributes")


def tile_types(function: Operation) -> dict[int, TileType]:
    """The C++ type of each tile of a function, by the identity of its value.

    Tiles that a call wants of one type, and that differ in regions or padding, leave the region
    to the run. Tiles of different shapes stay as they are.
    """
    ops = list(function.walk())
    created = [v for op in ops for v in op.results if isinstance(v.type, t.TileBuf)]
    types = {id(v): declared_type(v) for v in created}
    for op in ops:
        for value in op.given("out", "inout") if op.traits.region_of_run else ():
            type = types.get(id(value))
            if type is not None and (op.traits.region_of_run == "all" or type.valid != type.shape):
                types[id(value)] = replace(type, valid=(None, None))
    groups = [[id(v) for v in group if id(v) in types] for op in ops if (group := _alike(op))]
    changed = True
    while changed:
        changed = False
        for group in groups:
            group_types = [types[key] for key in group]
            if (
                len({(x.pad, x.valid) for x in group_types}) > 1
                and len({_plain(x) for x in group_types}) == 1
            ):
                open = {key: replace(types[key], valid=(None, None)) for key in group}
                changed = changed or any(types[key] != open[key] for key in group)
                types |= open
    return types


def _plain(type: TileType) -> TileType:
    """A tile type without what is known of its region, and without its padding."""
    return replace(type, valid=type.shape, pad=Pad.NULL)


def _alike(op: Operation) -> list[Value]:
    names = {a.names[0] for form in forms(op.row) for a in form.arguments if a.alike}
    operands = [v for name in op.row.operand_names if name in names for v in op.group(name)]
    return [v for v in operands if isinstance(v.type, t.TileBuf)]


def _seen_as(writer: Writer, op: Operation, value: Value, argument: FormArgument) -> str:
    """The tile itself, or its bytes as a tile of the type that the library takes."""
    type, text = declared_type(value), writer.text(value)
    wanted = type
    if argument.alike and _plain(type) == _plain(first := declared_type(_alike(op)[0])):
        wanted = replace(wanted, pad=first.pad)
    other = op.operand(argument.rows_of or argument.type_of or argument.bits_of)
    rows, cols = f"{text}.GetValidRow()", f"{text}.GetValidCol()"
    if other is not None and argument.bits_of:
        cols = f"({writer.text(other)}.GetValidCol() + 7) / 8"
    elif other is not None and argument.rows_of and type.layout == DN and type.cols == 1:
        height, block = declared_type(other).rows, BLOCK_BYTE_SIZE // type.itemsize
        if height == 1:  # a column of one number is a row
            wanted = replace(wanted, rows=1, cols=block, valid=(1, 1), layout=ND)
        elif height < type.rows and height % block == 0:
            wanted = replace(wanted, rows=height, valid=(None, 1))
    if wanted == type and (other is None or argument.rows_of):
        return text
    if other is not None and argument.type_of:
        return _placed_at(writer, text, f"auto {{}} = {writer.text(other)};")
    unbounded = replace(wanted, valid=(None, None))
    return _placed_at(writer, text, f"{spelling.tile(unbounded)} {{}}({rows}, {cols});")


def _written(writer: Writer, op: Operation, row: Instr, form: CallForm) -> str | None:
    """The call in one form; None where the form has no place for an operand or an attribute."""
    attrs = {a.name: op.attrs[a.name] for a in row.attrs if a.name in op.attrs and a is not PAIRS}
    named = {name for a in form.arguments for name in a.names}
    if any(op.group(name) and name not in named for name in row.operand_names):
        return None
    before: list[str] = []
    for name, wanted in form.fixed:
        attr = row.attr(name)
        word = wanted if attr is not None else f"{name}::{wanted}"
        before += [word] * (attr is None)
        attr = attr or attribute_of(row, name)  # an enumerator of the form sets an attribute
        value_of_attr = None if attr is None else attrs.pop(attr.name, None)
        if (
            attr is not None
            and value_of_attr is not None
            and spelling.word(value_of_attr, attr, row.mnemonic) != word
        ):
            return None
    behind = [_spelled(row, name, attrs.pop(name, None)) or "0" for name in form.literals]
    if form.leads:
        before, behind = before + behind, []
    passed = [_Passed(writer.text(r)) for r in op.results if isinstance(r.type, t.TileBuf)]
    *others, last_one = form.arguments or [FormArgument(())]
    if last_one.rest:  # the library takes the views of all ranks, and the root, as one group
        *others, root = others
        word = _spelled(row, root.names[0], attrs.pop(root.names[0]))
        passed.insert(0, _Passed(_group(writer, op.group(last_one.names[0]), word or "0")))
    for argument in others if last_one.rest else form.arguments:
        argument_passed = _argument(writer, op, form, argument, attrs)
        if argument_passed is None:
            return None
        passed += argument_passed
    last: list[str] = []
    for name, value in attrs.items():
        attr = row.attr(name)
        assert attr is not None
        enum = spelling.enumeration(attr, row.mnemonic)
        if not _is_default(value, attr):
            if enum is None:
                return None
            leading = enum in _BEFORE or enum.endswith("Algorithm")
            section = before if leading else behind if enum in _BEHIND else last
            section.append(spelling.word(value, attr, row.mnemonic))
    types = [p.type for tiles in (True, False) for p in passed if p.type and p.is_tile is tiles]
    head = [*before, *(types if behind else ()), *behind]
    template = f"<{', '.join(head)}>" if head else ""
    return f"{form.name}{template}({', '.join([*(p.text for p in passed), *last])})"


def _group(writer: Writer, members: Sequence[Value], root: str) -> str:
    """The `ParallelGroup` of the views of all ranks."""
    texts, name = [writer.text(v) for v in members], writer.fresh("group")
    if len({writer.tensors[id(v)].type(v) for v in members}) > 1:
        raise fail("PTO-U249", "the views of a group have one type in C++, with equal strides")
    writer.line(f"decltype({texts[0]}) {name}_of[] = {{{', '.join(texts)}}};")
    group = f"comm::ParallelGroup<decltype({texts[0]})>"
    writer.line(f"{group} {name}({name}_of, {len(texts)}, {root});")
    return name


def _is_default(value: Attribute, attr: Attr) -> bool:
    """Whether it is the default of the row; a flag that is not set needs no word either."""
    if isinstance(value, Bool):
        return value.value == bool(attr.default)
    return isinstance(value, Enum | Str) and value.value == attr.default


def _spelled(row: Instr, name: str, value: Attribute | None) -> str | None:
    """The word of an attribute, or of its default: the library of the chip has none."""
    attr = row.attr(name)
    assert attr is not None
    if value is None and isinstance(attr.default, str):
        value = Enum(attr.kind, attr.default)
    return None if value is None else spelling.word(value, attr, row.mnemonic)


def _argument(
    writer: Writer,
    op: Operation,
    form: CallForm,
    argument: FormArgument,
    attrs: dict[str, Attribute],
) -> list[_Passed] | None:
    """An argument; None where the form wants what the operation does not have."""
    missing = [] if argument.optional else None
    if not argument.names:
        return missing
    name = argument.names[0]
    operand = next((o for o in form.row.operands if o.name == name), None)
    if operand is None:
        word = _spelled(form.row, name, attrs.pop(name, None))
        if word is None and argument.default is not None:
            word = str(argument.default)
        return missing if word is None else [_Passed(word)]
    values = op.group(name)
    roles = {v.type.tile.role.value for v in values if isinstance(v.type, t.TileBuf)}
    wrong = argument.role and values and roles != {argument.role}
    if wrong or any(op.group(other) != values for other in argument.names[1:]):
        return None
    passed: list[_Passed] = []
    for value in values:
        text, type = _passed(writer, op, value, argument), ""
        if isinstance(value.type, t.TileBuf | t.View):
            by_reference = value.maker is None and isinstance(value.type, t.TileBuf)  # by reference
            type = f"std::decay_t<decltype({text})>" if by_reference else f"decltype({text})"
        elif form.literals and operand.kind == "scalar":
            type = parameter_type(value.type)
        elif operand.kind == "i64":  # a number of C++, and no event to wait for
            text = f"(uint64_t){text}"
        text = "&" * argument.pointer + text
        passed.append(_Passed(text, type, isinstance(value.type, t.TileBuf)))
    return passed or missing


def _passed(writer: Writer, op: Operation, value: Value, argument: FormArgument) -> str:
    """An operand as the library takes it."""
    if argument.alike or argument.rows_of or argument.type_of or argument.bits_of:
        return _seen_as(writer, op, value, argument)
    if isinstance(value.type, t.TileBuf) and value.type.tile.dtype.is_packed:
        return _packed(writer, op, value, value.type.tile)
    tensor = writer.tensors.get(id(value))
    tiles = [v.type.tile for v in op.operands if isinstance(v.type, t.TileBuf)]
    if tensor is None or not tiles or not op.traits.sized_by_tile:
        return writer.text(value)
    return writer.tensor(value, tensor.beside(tiles[0]))


def _packed(writer: Writer, op: Operation, value: Value, type: TileType) -> str:
    """A tile of packed pairs: the tile itself, with sizes in values, or its bytes."""
    text, numbers = writer.text(value), [v for v in op.operands if isinstance(v.type, t.Scalar)]
    if op.row.family is WINDOW and any(v.number != 0 for v in numbers):
        raise fail("PTO-U249", "C++ counts the offset of a window of packed values in values")
    if counts_values(op.row, type.layout):
        return text
    return _placed_at(writer, text, f"{spelling.tile(type)} {{}};")


def _placed_at(writer: Writer, text: str, declared: str) -> str:
    """Another tile over the bytes of a tile."""
    name = writer.fresh(f"{text}_seen")
    writer.line(declared.format(name))
    writer.line(f"TASSIGN({name}, (uint64_t){text}.data());")
    return name
