"""Masks in tiles must be read in the packing in which they were written.

The type of a mask does not state its packing; the operation that wrote it decides. Masks written by
operations other than comparisons, or through an alias, are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation, Value
from pto.isa.meaning.tile.compare import PACKING
from pto.isa.rules.rule import Case
from pto.target.facts import Profile


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    for function in module.functions():
        packed: dict[Value, tuple[Operation, int | None] | None] = {}  # tile -> (writer, packing)
        for op in function.walk():
            row = op.row
            name, bits_of = PACKING.get(id(row.body), ("", None))
            bits = bits_of(Case(op, profile)) if bits_of else None
            for operand in row.operands:
                for value in op.group(operand.name):
                    if operand.role != "in":
                        packed[value] = (op, bits) if operand.name == name else None
                    elif operand.name == name:
                        yield from _judged(op, bits, packed.get(value))


def _judged(
    op: Operation, bits: int | None, written: tuple[Operation, int | None] | None
) -> Iterator[Diagnostic]:
    if written is None or bits is None or written[1] == bits or _has_one_row(op):
        return
    writer, distance = written
    how = "in a distance that only the run knows" if distance is None else f"{distance} bits apart"
    where = f" (line {writer.loc.line})" if writer.loc else ""
    yield op.finding(
        "PTO-L025",
        f"expects the rows of mask {bits} bits apart: '{writer.name}'{where} has packed them {how}",
        "error" if distance is not None else "warning",
        help="fill a tile with the number (texpands) and compare with tcmp, which packs rows as"
        " tsel reads them on every profile; in Python use pto.where",
    )


def _has_one_row(op: Operation) -> bool:
    dst = op.operand("dst")
    tile = getattr(dst.type, "tile", None) if dst is not None else None
    return tile is not None and tile.valid[0] == 1
