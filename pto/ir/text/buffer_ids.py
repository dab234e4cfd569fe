"""The syntax of get_buf and rls_buf, which names its pipe in three ways:

`"PIPE_V", 0, 1`, `[#pto.pipe_event_type<TVEC>, 0, 1]` and `"PIPE_V", %id, %mode : i64, i64`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pto.ir.canonical import INT_TYPES, in_place_value
from pto.ir.graph import Operation
from pto.ir.text import lexer as lx
from pto.ir.text.cursor import Draft
from pto.isa.row.attributes import Enum, Int, integer
from pto.isa.row.types import Scalar

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser
    from pto.ir.text.printer import PrintedLine

_NUMBERS = ("buf_id", "mode")
_DIGITS = re.compile(r"-?\d{1,18}")


def read_buffer_id(p: Parser, draft: Draft) -> None:
    bracketed = p.accept("[")
    spec = draft.row.attr("op_type")
    if spec is not None:
        draft.op.attrs["op_type"] = in_place_value(p, spec)
    p.expect(",")
    _read_number(p, draft, "buf_id")
    if p.accept(","):
        _read_number(p, draft, "mode")
    if bracketed:
        p.expect("]")
    if p.accept(":"):
        p.types_of(draft)
    p.optional_dict(draft)


def _read_number(p: Parser, draft: Draft, name: str) -> None:
    """A number carries no type: a colon after it belongs to the operands."""
    if p.kind == lx.VALUE:
        draft.bind(f"{name}_dyn", p.use())
    elif p.kind == lx.NUMBER and _DIGITS.fullmatch(p.text):
        draft.op.attrs[name] = Int(int(p.take()), INT_TYPES["i32"])
    else:
        p.fail("PTO-P020", f"expected a number or a value, got {p.shown()}")


def write_buffer_id(line: PrintedLine, op: Operation) -> None:
    """As PTOAS prints it: a pipe as a string, a kind of operation in brackets."""
    who = op.attrs.get("op_type")
    is_pipe = isinstance(who, Enum) and who.kind == "pipe"
    parts = [f'"{who.value}"' if is_pipe else line.attr_text(who)] if isinstance(who, Enum) else []
    for name in _NUMBERS:
        number, value = integer(op.attrs, name), op.operand(f"{name}_dyn")
        if number is not None:
            parts.append(str(number))
        elif value is not None:
            parts.append(line.name(value))
            if not (
                isinstance(value.type, Scalar) and value.type.is_index
            ):  # ids of get_buf_dyn are indices, and their type goes unsaid
                line.pending.append(("", value))
    listed = ", ".join(parts)
    line.put(listed if is_pipe else f"[{listed}]")
    if line.pending:
        line.put(":")
        line.types(shared=False)
    line.rest(op, "op_type", *_NUMBERS)
