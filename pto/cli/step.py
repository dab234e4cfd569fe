"""The prompt of `pto run --step`: the current line, its operands, and commands."""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from pto.cli import console
from pto.core.errors import PtoError, fail
from pto.core.excerpt import excerpt
from pto.core.global_tensor import GlobalTensor
from pto.core.pointer import Pointer
from pto.core.render import Piece, Sources, place
from pto.core.tile import Tile
from pto.ir.graph import Module, Value
from pto.ir.text.types import type_text
from pto.isa.row import types as t
from pto.run.watch.step import Move, Stepper, Stop, require_line

HELP = "n next, c continue, p NAME print a value, q quit; at the end of the input it continues\n"
_MOST = 8  # rows or columns shown without a gap
_WHERE = re.compile(r"\+(\d{1,9})|(\d{1,9})")
_MOVES: dict[str, Move] = {
    **dict.fromkeys(("n", "next", ""), "next"),
    **dict.fromkeys(("c", "continue"), "continue"),
    **dict.fromkeys(("q", "quit"), "quit"),
}


def stepper(module: Module, where: str, stream: TextIO | None = None) -> Stepper:
    """A stepper that stops at a line (`12`) or before an instruction counted from 1 (`+3`)."""
    match = _WHERE.fullmatch(where)
    if match is None:
        help = "--step 12 stops at line 12, --step +3 before the third instruction"
        raise fail("PTO-U040", f"--step {where}: give a line number or +N", help=help)
    text = module.source.text  # empty for a Python kernel, which is in its file
    texts = Sources({module.source.file: text} if text else None)
    prompt = Prompt(texts, stream or sys.stdin)
    if match[2]:
        require_line(module, int(match[2]))
        return Stepper(prompt.ask, line=int(match[2]))
    return Stepper(prompt.ask, after=int(match[1]) - 1)


class Prompt:
    """Shows a stop and reads a command, from a terminal or a pipe."""

    def __init__(self, sources: Sources, stream: TextIO) -> None:
        self._sources = sources
        self._stream = stream
        self._is_over = False

    def ask(self, stop: Stop) -> Move:
        if self._is_over:
            return "continue"
        console.write(show(stop, self._sources))
        while True:
            console.write([("dim", "(pto) ")])
            sys.stdout.flush()
            line = self._stream.readline()
            if not self._stream.isatty():
                console.write([("", line if line.endswith("\n") else f"{line}\n")])
            if not line:
                self._is_over = True
                return "continue"
            word, _, rest = line.strip().partition(" ")
            if word in _MOVES:
                return _MOVES[word]
            console.write(_printed(stop, rest) if word in ("p", "print") else [("dim", HELP)])


def show(stop: Stop, sources: Sources) -> list[Piece]:
    """The line of source with a caret, then the operands."""
    head = f"{stop.core.name}, {stop.done} instruction{'s' * (stop.done != 1)} done\n"
    out: list[Piece] = [("title", head), *place(stop.op.loc, sources, "note", "^", "")]
    printed: set[int] = set()
    for value, now in stop.operands:
        if id(value) not in printed:
            printed.add(id(value))
            out += describe(value, now)
    return out


def _printed(stop: Stop, name: str) -> list[Piece]:
    try:
        return describe(*stop.value(name.strip()))
    except PtoError as error:
        return [("error", f"{error.diagnostics[0].message}\n")]


def describe(value: Value, now: Any) -> list[Piece]:
    """A named value: its type and content."""
    name: Piece = ("name", f"  %{value.name} ")
    try:
        if isinstance(now, Tile):
            return [name, *_tile(now)]
        if isinstance(now, GlobalTensor):
            return [name, ("", f"view {now}\n"), *_table(now.read_matrix())]
        if isinstance(now, Pointer):
            return [name, *_pointer(now)]
        if isinstance(now, np.ndarray):
            lanes = now if now.ndim == 2 else now.reshape(1, -1)
            return [name, ("", f"{type_text(value.type)}\n"), *_table(lanes)]
    except PtoError as error:
        return [name, ("", f"{type_text(value.type)}: {error.diagnostics[0].message}\n")]
    if isinstance(value.type, t.Scalar) and now is not None:
        return [name, ("", f"{type_text(value.type)} = "), ("value", f"{_number(now)}\n")]
    nothing = " has no value yet" if now is None else ""
    return [name, ("", f"{type_text(value.type)}{nothing}\n")]


def _tile(tile: Tile) -> list[Piece]:
    rows, cols = tile.get_valid()
    where = f"at {tile.memory.space.value} {tile.address:#x}"
    head: Piece = ("", f"tile {tile.type} {where}, valid {rows}x{cols}\n")
    return [head, *_table(tile.read(), (rows, cols))]


def _pointer(pointer: Pointer) -> list[Piece]:
    kind = pointer.dtype
    size = pointer.memory.size - pointer.address
    description = f"pointer to {kind.name if kind else 'bytes'}, {pointer.memory.space.value}"
    head: Piece = ("", f"{description} {pointer.address:#x}, {size:,} bytes from there\n")
    count = 0 if kind is None else min(_MOST, size // kind.itemsize)
    if kind is None or count <= 0:
        return [head]
    raw = pointer.bytes(0, count * kind.itemsize)
    return [head, *_table(raw.view(kind.numpy).reshape(1, -1))]


def _table(array: npt.NDArray[Any], valid: tuple[int, int] | None = None) -> list[Piece]:
    """Some rows and columns of an array; elements outside the valid region are in brackets."""
    rows, cols = valid or array.shape
    picked = [
        excerpt(size, edge, _MOST) for size, edge in zip(array.shape, (rows, cols), strict=True)
    ]

    def word(r: int, c: int) -> str:
        number = _number(array[r, c])
        return number if r < rows and c < cols else f"[{number}]"

    words = {(r, c): word(r, c) for r in picked[0] for c in picked[1] if r >= 0 and c >= 0}
    heads = {c: f"c{c}" for c in picked[1] if c >= 0}
    width = max((len(w) for w in (*words.values(), *heads.values())), default=0)
    gap = f"{'..':>{width}}"
    cells = "".join(f" {heads.get(c, '..'):>{width}}" for c in picked[1])
    out: list[Piece] = [("gutter", f"{'':8}{cells}\n")]
    for r in picked[0]:
        out.append(("gutter", f"    r{r:<3}" if r >= 0 else "    .."))
        for c in picked[1] if r >= 0 else ():
            style = "" if r < rows and 0 <= c < cols else "dim"
            out.append((style, f" {words.get((r, c), gap):>{width}}"))
        out.append(("", "\n"))
    return out


def _number(value: Any) -> str:
    try:
        return f"{float(value):.6g}" if not isinstance(value, int | np.integer) else str(value)
    except (TypeError, ValueError):
        return str(value)
