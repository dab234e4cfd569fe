"""The syntax of memref windows, with lists that mix numbers and values: `[%a, 4]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pto.ir.graph import Operation
from pto.ir.text import lexer as lx
from pto.ir.text.cursor import Draft
from pto.ir.text.types import type_text
from pto.isa.row.attributes import Ints, integers

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser
    from pto.ir.text.printer import PrintedLine

_DYNAMIC = -(1 << 63)


def _read_mixed(p: Parser, draft: Draft, name: str) -> None:
    """Values are bound to `name`; the whole list goes to `static_<name>`, values marked dynamic."""
    draft.bound.setdefault(name, [])
    numbers: list[int] = []
    for _ in p.items("[", "]"):
        if p.kind == lx.VALUE:
            draft.bound[name].append(p.use())
            numbers.append(_DYNAMIC)
        elif p.kind == lx.NUMBER:
            numbers.append(int(p.take(), 0))
        else:
            p.fail("PTO-P020", f"expected a number or a value, got {p.shown()}")
    draft.op.attrs[f"static_{name}"] = Ints("i64", tuple(numbers))


def _mixed_text(line: PrintedLine, op: Operation, name: str) -> str:
    values, numbers = iter(op.group(name)), integers(op.attrs, f"static_{name}")
    texts = [line.name(next(values)) if n == _DYNAMIC else str(n) for n in numbers]
    return f"[{', '.join(texts)}]"


_CAST_PARTS = (("offset", "offsets"), ("sizes", "sizes"), ("strides", "strides"))


def read_reinterpret_cast(p: Parser, draft: Draft) -> None:
    draft.bound["source"] = [p.use()]
    p.expect("to")
    for n, (word, name) in enumerate(_CAST_PARTS):
        if n:
            p.expect(",")
        p.expect(word)
        p.expect(":")
        _read_mixed(p, draft, name)
    _read_tail(p, draft)


def _read_tail(p: Parser, draft: Draft) -> None:
    p.optional_dict(draft)
    p.expect(":")
    draft.pending[:] = draft.bound["source"]
    p.types_of(draft)
    p.expect("to")
    p.result_types(draft)


def write_reinterpret_cast(line: PrintedLine, op: Operation) -> None:
    line.put(line.name(op.operands[0]))
    parts = [f"{word}: {_mixed_text(line, op, name)}" for word, name in _CAST_PARTS]
    line.put("to " + ", ".join(parts))
    _write_tail(line, op)


def _write_tail(line: PrintedLine, op: Operation) -> None:
    line.rest(op, *(f"static_{name}" for _, name in _CAST_PARTS))
    line.put(f": {type_text(op.operands[0].type)} to {type_text(op.results[0].type)}")


def read_subview(p: Parser, draft: Draft) -> None:
    draft.bound["source"] = [p.use()]
    for _, name in _CAST_PARTS:
        _read_mixed(p, draft, name)
    _read_tail(p, draft)


def write_subview(line: PrintedLine, op: Operation) -> None:
    line.put(line.name(op.operands[0]))
    line.put("".join(f" {_mixed_text(line, op, name)}" for _, name in _CAST_PARTS))
    _write_tail(line, op)
