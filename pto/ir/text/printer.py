"""Graph to text: a stable custom form that parses back to the same graph, and the generic form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from pto.ir.graph import Block, Module, Operation, Region, Value
from pto.ir.text import attribute_text
from pto.ir.text.format import compile_format
from pto.ir.text.generic import SIZES, arranged
from pto.ir.text.structured import SYNTAX
from pto.ir.text.types import type_text
from pto.isa.row.attributes import Array, Attribute, Enum, Int, Ints
from pto.isa.row.enums import ENUMS
from pto.isa.row.traits import Control
from pto.isa.row.types import Function

_INDENT = "  "
_NAME = re.compile(r"[A-Za-z_$.-][\w$.-]*|\d+")


class Remarks(Protocol):
    """Comments to print before, beside and after operations."""

    def before(self, op: Operation) -> list[str]: ...
    def beside(self, op: Operation) -> str: ...
    def inside(self, depth: int) -> list[str]: ...


def print_module(
    module: Module | Operation, *, generic: bool = False, remarks: Remarks | None = None
) -> str:
    """The program as text, ending in a newline."""
    op = module.op if isinstance(module, Module) else module
    printer = _Generic() if generic else _Custom(remarks)
    printer.operation(op, 0)
    return "\n".join(printer.lines) + "\n"


def print_operation(op: Operation) -> str:
    """One operation without regions, its operands named as their values are."""
    printer = _Custom()
    for value in op.operands:
        printer.names.given[value] = value.name
    printer.operation(op, 0)
    return printer.lines[0]


class _Names:
    """Printed names: as written where that is unique in scope, else with a number appended."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, int]] = [{}]
        self.given: dict[Value, str] = {}

    def define(self, value: Value) -> str:
        hint = value.name if _NAME.fullmatch(value.name) else "v"
        name, n = hint, 0
        while any(name in scope for scope in self.scopes):
            n += 1
            name = f"{'v' * hint.isdecimal()}{hint}_{n}"  # MLIR has no name like %5_1
        self.scopes[-1][name] = 1
        self.given[value] = name
        return f"%{name}"

    def __call__(self, value: Value) -> str:
        return f"%{self.given[value]}"


class PrintedLine:
    """One operation's text as it is being written."""

    __slots__ = ("depth", "label", "last", "out", "pending", "printer", "repeat")

    def __init__(self, printer: _Custom, depth: int) -> None:
        self.printer = printer
        self.depth = depth
        self.out: list[str] = []
        self.pending: list[tuple[str, Value]] = []  # (label, operand) waiting for their types
        self.label = ""
        self.repeat = -1
        self.last = ""

    def put(self, text: str) -> None:
        if self.out and _spaced(self.last, text):
            self.out.append(" ")
        self.out.append(text)
        self.last = text

    def name(self, value: Value) -> str:
        return self.printer.names(value)

    def define(self, value: Value) -> str:
        return self.printer.names.define(value)

    def operand(self, value: Value) -> None:
        self.pending.append((self.label, value))
        self.label = ""
        self.put(self.name(value))

    def operands(self, values: list[Value]) -> None:
        if values:
            self.pending += [("", v) for v in values]
            self.put(", ".join(map(self.name, values)))

    def in_place(self, value: Attribute) -> None:
        """A word where a word reads back, else the full attribute."""
        if isinstance(value, Enum):
            word = f'"{value.value}"' if value.kind in _QUOTED else value.value
            self.put(ENUMS[value.kind].spell(word) if value.kind in _ANGLED else word)
            return
        self.put(attribute_text.write(value))

    def dictionary(self, attrs: dict[str, Attribute]) -> None:
        if attrs:
            self.put("{" + ", ".join(attribute_text.item(k, v) for k, v in attrs.items()) + "}")

    def rest(self, op: Operation, *elsewhere: str) -> None:
        """The dictionary of the attributes that the text does not name elsewhere."""
        self.dictionary({k: v for k, v in op.attrs.items() if k not in elsewhere})

    def attributes(self, op: Operation, *elsewhere: str) -> None:
        """The same after the word `attributes`."""
        if op.attrs.keys() - elsewhere:
            self.put("attributes")
            self.rest(op, *elsewhere)

    def signature(self, op: Operation, values: Sequence[Value]) -> None:
        """`: (T, T) -> T` of these operands and the results."""
        self.put(f": {_signature(op, values)}")

    def attr_text(self, value: Attribute) -> str:
        return attribute_text.write(value)

    def types(self, shared: bool) -> None:
        if not self.pending:
            return
        texts = [f"{label} {type_text(v.type)}".strip() for label, v in self.pending]
        self.pending.clear()
        self.put(texts[0] if shared else ", ".join(texts))

    def result_types(self, op: Operation) -> None:
        self.put(", ".join(type_text(r.type) for r in op.results))

    def region(self, region: Region, *, label: bool = False) -> None:
        """Print the body of a region; the line continues after its closing brace."""
        self.put("{")
        printer = self.printer
        printer.lines.append(_INDENT * self.depth + "".join(self.out))
        printer.block(region.block, self.depth + 1, label)
        self.out = ["}"]
        self.last = "}"


_ANGLED = frozenset(
    (
        *("pipe", "event", "sync_op_type", "pipe_event_type"),
        *("address_space", "membar", "mask_pattern", "padmode"),
        *("fence_scope", "sync_all_mode", "sync_core_type"),
    )
)
_QUOTED = frozenset(("dsb_mem", "dcci_cache_line", "dcci_dst"))


def _spaced(last: str, text: str) -> bool:
    if text[0] in ",)]}" or last[-1] in "([{":
        return False
    if text[0] == "[":
        return last in (",", "=", ":", "to", "sizes", "valid")
    return not (text[0] == "(" and last not in (",", "=", ":", "->") and last[-1] != "}")


def _indented(lines: list[str], depth: int) -> list[str]:
    return [f"{_INDENT * depth}{line}".rstrip() for line in lines]


class _Custom:
    """Operations by the patterns of their rows."""

    def __init__(self, remarks: Remarks | None = None) -> None:
        self.lines: list[str] = []
        self.names = _Names()
        self.remarks = remarks

    def operation(self, op: Operation, depth: int) -> None:
        if self.remarks is None:
            self._operation(op, depth)
            return
        self.lines += _indented(self.remarks.before(op), depth)
        first, beside = len(self.lines), self.remarks.beside(op)
        self._operation(op, depth)
        self.lines[first] += f"  {beside}" if beside else ""

    def _operation(self, op: Operation, depth: int) -> None:
        row = op.row
        if _asks_for_generic(op, row.traits.generic):
            text = f"{_generic_head(op, self.names)}{_generic_tail(op)}"
            self.lines.append(_INDENT * depth + text)
            return
        line = PrintedLine(self, depth)
        if op.results:
            line.put(", ".join(map(self.names.define, op.results)))
            line.put("=")
        line.put(op.name.partition(".")[2] if row.traits.short == "printed" else op.name)
        self.names.scopes.append({})  # block arguments are named while the head is written
        if row.text.startswith("="):
            SYNTAX[row.text][1](line, op)
        else:
            for step in compile_format(row):
                step.write(line, op)
        self.names.scopes.pop()
        self.lines.append(_INDENT * depth + "".join(line.out))

    def block(self, block: Block, depth: int, label: bool) -> None:
        self.names.scopes.append({})
        if label or any(a not in self.names.given for a in block.args):
            args = ", ".join(f"{self.names.define(a)}: {type_text(a.type)}" for a in block.args)
            self.lines.append(_INDENT * (depth - 1) + f"^bb0({args}):")
        for op in block.ops:
            if op.control is not Control.YIELD or op.operands or _must_end(block):
                self.operation(op, depth)
        if self.remarks is not None:
            self.lines += _indented(self.remarks.inside(depth), depth)
        self.names.scopes.pop()


class _Generic:
    """MLIR's generic form, which any MLIR tool reads."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = _Names()

    def operation(self, op: Operation, depth: int) -> None:
        head = _INDENT * depth + _generic_head(op, self.names)
        if op.regions:
            head = self._regions(op, head, depth)
        self.lines.append(f"{head}{_generic_tail(op)}")

    def _regions(self, op: Operation, head: str, depth: int) -> str:
        opener = f"{head} ("
        for n, region in enumerate(op.regions):
            self.lines.append(f"{opener}{{")
            for block in region.blocks:
                self._block(block, depth)
            opener = f"{_INDENT * depth}}}{', ' if n + 1 < len(op.regions) else ''}"
        return opener + ")"

    def _block(self, block: Block, depth: int) -> None:
        self.names.scopes.append({})
        args = ", ".join(f"{self.names.define(a)}: {type_text(a.type)}" for a in block.args)
        if args or not block.ops:  # without a label an empty block would read as no block
            self.lines.append(f"{_INDENT * depth}^bb0{f'({args})' if args else ''}:")
        for op in block.ops:
            self.operation(op, depth + 1)
        self.names.scopes.pop()


def _must_end(block: Block) -> bool:
    """True if an empty block needs a printed terminator to read back."""
    return len(block.ops) == 1 and block.region.owner.control is Control.REGION


def _asks_for_generic(op: Operation, word: str) -> bool:
    return word == "*" or (bool(word) and (word in op.attrs or bool(op.group(word))))


def _generic_head(op: Operation, names: _Names) -> str:
    operands = ", ".join(map(names, arranged(op)[0]))
    results = ", ".join(map(names.define, op.results)) + " = " * bool(op.results)
    return f'{results}"{op.name}"({operands})'


def _generic_tail(op: Operation) -> str:
    operands, sizes = arranged(op)
    attrs = [_generic_item(op, *item) for item in op.attrs.items()]
    attrs += [attribute_text.item(SIZES, sizes)] if sizes else []
    braced = f" {{{', '.join(attrs)}}}" if attrs else ""
    return f"{braced} : {_signature(op, operands)}"


def _signature(op: Operation, values: Sequence[Value]) -> str:
    return type_text(Function(tuple(v.type for v in values), tuple(r.type for r in op.results)))


def _generic_item(op: Operation, name: str, value: Attribute) -> str:
    spec = op.row.attr(name)
    if spec and spec.kind == "numbers" and isinstance(value, Array):
        value = Ints("i64", tuple(n.value for n in value.items if isinstance(n, Int)))
    return attribute_text.item(spec.generic or name if spec else name, value)
