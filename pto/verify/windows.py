"""Windows on tiles must begin at a multiple of 32 bytes, as tiles do.

Vector registers and transfers access a buffer in whole blocks. Only the scalar unit accesses single
elements, so a window that only it uses may begin anywhere. Only constant offsets are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Module, Operation, Value
from pto.isa.meaning.handle.subview import SUBSET, SUBVIEW
from pto.isa.row.pipe_of import pipe_of
from pto.isa.row.types import TileBuf
from pto.isa.rules.rule import Case
from pto.target.facts import Profile

_BY_ELEMENT = ("none", "S")  # pipes that touch no byte, or one element at a time


class _Start(NamedTuple):
    """The start of a window in bytes from the first byte of its tile, the `pitch` of that tile in
    elements, and the operation that made the window."""

    nbytes: int
    pitch: int
    op: Operation | None


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    """One finding for each window that begins inside a block, at its first use."""
    base, starts = profile.alignment.base, dict[Value, _Start]()
    for op in module.walk() if base > 1 else ():
        for value in op.operands:
            start = starts.get(value)
            if start is None or start.op is None or start.nbytes % base == 0:
                continue
            pipe = pipe_of(Case(op, profile))
            if pipe not in _BY_ELEMENT:
                starts[value] = start._replace(op=None)  # reported once
                yield _finding(op, pipe, start, base, profile)
        window = _made(op, starts)
        if window is not None:
            starts[op.results[0]] = window


def _made(op: Operation, starts: dict[Value, _Start]) -> _Start | None:
    """The start of the tile that an operation makes; None if it makes none or it is not known."""
    source = op.operands[0] if op.operands and op.results and op.traits.names_only else None
    if source is None or not isinstance(source.type, TileBuf):
        return None
    if not isinstance(op.results[0].type, TileBuf) or source.type.tile.layout.is_boxed:
        return None
    tile = source.type.tile
    before = starts.get(source) or _Start(0, tile.shape[tile.layout.pitch_axis], None)
    if op.body not in (SUBVIEW, SUBSET):
        return before  # another name
    line, inside = (_number(v) for v in _along(op.group("offsets"), tile.layout.pitch_axis))
    size = tile.itemsize
    if inside is None or (line is None and before.pitch * size % _BLOCK):
        return None
    skipped = ((line or 0) * before.pitch + inside) * size
    return _Start(before.nbytes + skipped, before.pitch, op)


_BLOCK = 32


def _along(offsets: list[Value], axis: int) -> list[Value | None]:
    """The offset in lines, then the offset inside a line."""
    both: list[Value | None] = [*offsets, None, None]
    return [both[1 - axis], both[axis]]


def _number(value: Value | None) -> int | None:
    return None if value is None else value.number


def _finding(op: Operation, pipe: str, start: _Start, base: int, profile: Profile) -> Diagnostic:
    assert start.op is not None
    message = (
        f"a window that begins {start.nbytes} bytes into its tile is not at a multiple of {base}"
        f" bytes, as {profile} requires for '{op.name}' op (pipe {pipe})"
    )
    other = "load its elements into a tile of their own"
    if profile.name == "a5":  # elsewhere textract begins at a whole block too
        other = "copy it to a new tile with pto.textract"
    help = f"begin the window at a whole block, or {other}"
    return Diagnostic(
        "PTO-M104", message, start.op.loc, help=help, notes=(Note("it is used here", op.loc),)
    )
