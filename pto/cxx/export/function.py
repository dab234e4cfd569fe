"""One function as C++: control flow, numbers and calls. Tiles and tensors are in `places.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from string import Formatter
from typing import NamedTuple

from pto.core.errors import Loc, PtoError, fail
from pto.core.tile import TileType
from pto.cxx.export import spelling
from pto.cxx.export.calls import call, tile_types
from pto.cxx.export.places import (
    PLACES,
    Tensor,
    declare_tile,
    declared_type,
    parameter_type,
    variable_type,
)
from pto.cxx.forms import expression, forms, reason
from pto.ir.choice import ways
from pto.ir.graph import Block, Operation, Value
from pto.isa.row import types as t
from pto.isa.row.attributes import Symbol
from pto.isa.row.traits import Control
from pto.plan.buffers import Placement

_KEYWORDS = """auto bool break case char class const continue default delete do double else enum
 explicit float for goto half if inline int long namespace new operator private register return
 short signed sizeof static struct switch template this typedef union unsigned using void volatile
 while block_idx block_num pipe event and or not xor main"""
_RESERVED = frozenset(_KEYWORDS.split())
_SIDES = {"cube": "__DAV_CUBE__", "vector": "__DAV_VEC__"}
SIGNALS = "ffts"  # the argument with the memory that carries signals between cores of a2a3
SET_SIGNALS = ("#ifndef __CPU_SIM", f"    set_ffts_base_addr((uint64_t){SIGNALS});", "#endif")


class Line(NamedTuple):
    """A line of C++, and the place in the source of the operation that it is for."""

    text: str
    loc: Loc | None = None


class Writer:
    """Lines of C++ for one function, and the C++ name of every value so far."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.lines: list[Line] = []
        self.at: Loc | None = None  # of the operation that is written
        self.depth = 1
        self.texts: dict[int, str] = {}  # of a value, by its identity
        self.tensors: dict[int, Tensor] = {}
        self.declared: dict[tuple[int, str], str] = {}  # views in scope, by layout
        self.types: dict[int, TileType] = {}  # of tiles that operations give
        self._taken: set[str] = set(_RESERVED)

    # ---- names and lines

    def line(self, text: str) -> None:
        self.lines.append(Line("    " * self.depth + text, self.at))

    def name(self, value: Value) -> str:
        """A new name for a value: its own, where C++ allows that."""
        base = identifier(value.name)
        self.texts[id(value)] = text = self.fresh("v" * base[0].isdigit() + base)
        return text

    def fresh(self, base: str) -> str:
        """A name that nothing has yet."""
        name, n = base, 1
        while name in self._taken:
            name, n = f"{base}_{n}", n + 1
        self._taken.add(name)
        return name

    def text(self, value: Value) -> str:
        if id(value) in self.texts:
            return self.texts[id(value)]
        if id(value) in self.tensors:
            return self.tensor(value, self.tensors[id(value)])
        raise fail("PTO-U249", f"%{value.name} ({value.type.kind}) has no form in C++")

    def tensor(self, value: Value, tensor: Tensor) -> str:
        """The name of a view; it is declared where the block has no name for it yet."""
        key = (id(value), tensor.layout)
        if key not in self.declared:
            self.declared[key] = tensor.declared(self, value)
            self.texts.pop(id(value))
        return self.declared[key]

    def tile_type(self, value: Value) -> TileType:
        """The C++ type of a tile; a parameter has that of its value."""
        return self.types.get(id(value)) or declared_type(value)

    def define(self, value: Value, text: str) -> None:
        const = "const " * isinstance(value.type, t.Scalar)
        self.line(f"{const}{variable_type(value.type)} {self.name(value)} = {text};")

    # ---- operations

    def block(self, block: Block, ends: Callable[[Operation], None] | None = None) -> None:
        self.depth += 1
        outside = dict(self.declared)
        for op in block.ops:
            if op.is_terminator:
                if ends is not None:
                    ends(op)
            else:
                self.operation(op)
        self.depth -= 1
        self.declared = outside

    def operation(self, op: Operation) -> None:
        self.at = op.loc
        try:
            self._operation(op)
        except PtoError as error:
            first = error.diagnostics[0]
            if first.loc is not None:
                raise
            message = f"'{op.name}' op: {first.message}"
            raise fail(first.code, message, loc=op.loc, help=first.help) from None

    def _operation(self, op: Operation) -> None:
        row = op.row
        if op.control in _CONTROL:
            _CONTROL[op.control](self, op)
        elif row.traits.constant:
            result = op.results[0]
            self.texts[id(result)] = spelling.number(op.attrs["value"], result.type)
        elif (written := PLACES.get(row.name) or PLACES.get(type(row.order))) is not None:
            written(self, op)
        elif text := expression(row, op.attrs):
            self._expression(op, text)
        elif forms(row):
            call(self, op)
        else:
            raise fail("PTO-U249", f"it has no form in C++: {reason(row)}")

    def _expression(self, op: Operation, form: str) -> None:
        """A row that is an expression of C++, or a statement where it gives a tile or nothing."""
        if op.results and isinstance(op.results[0].type, t.Ptr):
            source = op.operands[0].origin(lambda made: made.traits.pure or made.traits.names_only)
            if isinstance(source.type, t.Scalar):
                raise fail("PTO-U249", "a number that is an address here is none on a board")
        names = {name for _, name, _, _ in Formatter().parse(form) if name}
        text = form.format(**{name: self._word(op, name) for name in sorted(names)})
        if not op.results or isinstance(op.results[0].type, t.TileBuf):
            self.line(f"{text};")
            return
        for result, part in zip(op.results, text.split("; "), strict=True):
            same = op.traits.same_number and parameter_type(result.type)
            if same and same == parameter_type(op.operands[0].type):
                self.texts[id(result)] = part  # two types here are one in C++
            else:
                self.define(result, part)

    def _word(self, op: Operation, name: str) -> str:
        """An operand, an attribute, a tile that is declared for the result, or its type (`T`)."""
        row = op.row
        if name == "T":
            return parameter_type(op.results[0].type)
        attr, value = row.attr(name), op.attrs.get(name)
        if attr is not None:
            default = str(attr.default)
            return default if value is None else spelling.word(value, attr, row.mnemonic)
        operand = name.removeprefix("u_")
        if operand not in row.operand_names:
            return declare_tile(self, op.results[0])
        (word,) = op.group(operand)
        if isinstance(word.type, t.TileBuf) and word.type.tile.dtype.is_packed:
            raise fail("PTO-U249", f"C++ counts single values of {word.type.tile.dtype.name}")
        if name == operand:
            return self.text(word)
        return f"({spelling.unsigned(word.type)}){self.text(word)}"

    # ---- control

    def _assigned(self, targets: Sequence[str], values: Iterable[Value]) -> None:
        """Several variables at once: all are read before one is written."""
        pairs = [(a, self.text(v), v) for a, v in zip(targets, values, strict=True)]
        pairs = [p for p in pairs if p[0] != p[1]]
        if len(pairs) > 1:
            for n, (target, text, value) in enumerate(pairs):
                fresh = f"{target}_next"
                self.line(f"const {parameter_type(value.type)} {fresh} = {text};")
                pairs[n] = (target, fresh, value)
        for target, text, _ in pairs:
            self.line(f"{target} = {text};")

    def _variables(self, values: Sequence[Value], begin: Iterable[Value] = ()) -> list[str]:
        """A variable for each, that later lines assign."""
        names: list[str] = []
        for value, first in zip_longest(values, begin):
            start = f" = {self.text(first)}" if first is not None else ""
            names.append(self.name(value))
            self.line(f"{variable_type(value.type)} {names[-1]}{start};")
        return names

    def for_loop(self, op: Operation) -> None:
        lower, upper, step = (self.text(v) for v in op.operands[:3])
        body = op.regions[0].block
        names = self._variables(op.results, op.operands[3:])
        for arg, name in zip(body.args[1:], names, strict=True):
            self.texts[id(arg)] = name
        i = self.name(body.args[0])
        self.line(f"for (int64_t {i} = {lower}; {i} < {upper}; {i} += {step}) {{")
        self.block(body, lambda end: self._assigned(names, end.operands))
        self.line("}")

    def while_loop(self, op: Operation) -> None:
        before, after = (region.block for region in op.regions)
        state = self._variables(before.args, op.operands)
        results = self._variables(op.results)

        def tested(end: Operation) -> None:
            condition, *values = end.operands
            self.line(f"if (!({self.text(condition)})) {{")
            self._assigned(results, values)
            self.line("break; }")
            for arg, value in zip(after.args, values, strict=True):
                self.texts[id(arg)] = self.text(value)

        self.line("while (true) {")
        self.block(before, tested)
        self.block(after, lambda end: self._assigned(state, end.operands))
        self.line("}")

    def if_else(self, op: Operation) -> None:
        results, condition = self._variables(op.results), self.text(op.operands[0])
        heads, end = [f"if ({condition}) {{", "else {"], "}"
        if "cases" in op.attrs:
            numbers = {n: f"case {number}: {{" for number, n in ways(op).items()}
            heads, end = [numbers.get(n, "default: {") for n in range(len(op.regions))], "} break;"
            self.line(f"switch ({condition}) {{")
        for head, region in zip(heads, op.regions, strict=True):
            if region.blocks:
                self.line(head)
                self.block(region.block, lambda last: self._assigned(results, last.operands))
                self.line(end)
        if "cases" in op.attrs:
            self.line("}")

    def section(self, op: Operation) -> None:
        self.lines.append(Line(f"#if defined({_SIDES[op.traits.side]})"))
        self.depth -= 1
        self.block(op.regions[0].block)
        self.depth += 1
        self.lines.append(Line("#endif"))

    def calling(self, op: Operation) -> None:
        callee = op.attrs["callee"]
        assert isinstance(callee, Symbol)
        args_text = ", ".join(self.text(v) for v in op.operands)
        text = f"{identifier(callee.name)}({args_text})"
        self.define(op.results[0], text) if op.results else self.line(f"{text};")


_CONTROL: dict[Control, Callable[[Writer, Operation], None]] = {
    Control.FOR: Writer.for_loop,
    Control.WHILE: Writer.while_loop,
    Control.IF: Writer.if_else,
    Control.SECTION: Writer.section,
    Control.CALL: Writer.calling,
}


def identifier(name: str) -> str:
    """The name of a function as a C++ identifier."""
    name_text = re.sub(r"\W", "_", name)
    return f"{name_text}_" if name_text in _RESERVED else name_text


def function(
    op: Operation,
    placement: Placement,
    *,
    entry: bool,
    side: str | None,
    signals: bool = False,
) -> list[Line]:
    """A function with its body; an entry is a kernel. `side` is the only one that has the body.

    With `signals` it takes the memory first that carries signals between cores.
    """
    writer = Writer(placement)
    body = op.regions[0].block
    params = [f"__gm__ uint64_t* {writer.fresh(SIGNALS)}"] if signals else []
    params += [f"{parameter_type(a.type)} {writer.name(a)}" for a in body.args]
    returned: list[str] = []

    def ends(end: Operation) -> None:
        if len(end.operands) > 1:
            raise fail(
                "PTO-U249", "a C++ function has one result, this one has several", loc=op.loc
            )
        for value in end.operands:
            returned.append(parameter_type(value.type))
            writer.line(f"return {writer.text(value)};")

    writer.depth, writer.types = 0, tile_types(op)
    writer.block(body, ends)
    kind = "__global__ AICORE" if entry else "AICORE inline"
    lines = writer.lines
    if signals:
        lines = [*map(Line, SET_SIGNALS), *lines]
    if side is not None:
        other = [Line("#else"), Line("    return {};")] if returned else []
        lines = [Line(f"#if defined({_SIDES[side]})"), *lines, *other, Line("#endif")]
    head = (
        f"{kind} {returned[0] if returned else 'void'} {identifier(op.symbol)}({', '.join(params)})"
    )
    return [Line(head), Line("{"), *lines, Line("}"), Line("")]
