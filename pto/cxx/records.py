"""Decodes records of a compiled kernel to calls: arguments and their types.

`include/pto/machine/record.hpp` writes the records; `binding.py` finds the row of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pto.core.compact import Compact
from pto.core.constants import C0_SIZE_BYTE
from pto.core.dtypes import DType, dtype
from pto.core.errors import fail
from pto.core.global_layout import GLOBAL_LAYOUTS
from pto.core.layout import layout as find_layout
from pto.core.pad import pad
from pto.core.tile import Role, TileType
from pto.cxx.forms import enumerators
from pto.cxx.packed import values_in
from pto.ir.builder import scalar_type
from pto.isa.row.types import PipeHandle, TileBuf, Type, View

if TYPE_CHECKING:
    from pto.cxx.native import NativeBuild

TILE, TENSOR, INTEGER, FLOAT, ENUM, POINTER, QUEUE, CONV, LITERAL, NUMBERS, GROUP = range(1, 12)
REGISTER, MASK, ALIGN = SLOTTED = range(12, 15)  # two values each: the slots before and after
PROGRAM = "program"  # the name of a call of a program in text form
CONVOLUTION = 2  # TypeFacts of record.hpp: a convolution tile; its rows count elements
ROLES = tuple(Role)[:-1]  # in the header's order; its last one, Ctrl, is a scalar tile
_LAYOUTS = {(0, 0): "ND", (1, 0): "DN", (1, 1): "NZ", (0, 1): "ZZ", (0, 2): "ZN", (1, 2): "NN"}
GLOBAL = tuple(enumerators()["Layout"].values())  # layouts of tensors, by number
_COMPACT = (Compact.NULL, Compact.NORMAL, Compact.ROW_PLUS_ONE, Compact.NULL)


class Conv(NamedTuple):
    """The geometry of a convolution tile: `facts` of tile.hpp."""

    shape: tuple[int, ...]
    pads: tuple[int, ...]  # left, right, top, bottom
    h: int
    w: int
    filter_h: int
    filter_w: int
    dilation_h: int
    dilation_w: int
    stride_h: int
    stride_w: int
    pad_value: int  # bits
    channels: int
    repeat_stride: int
    repeat_time: int
    repeat_mode: int
    dst_stride: int
    dst_position: int
    transpose: int


@dataclass(frozen=True, slots=True)
class Passed:
    """One argument of a call: its kind, type, and the index of its values in the record."""

    tag: int
    at: int = 0  # among the values
    type: Type | None = None  # of a tile or tensor
    element: str = ""  # of a number or pointer
    facts: Any = None
    word: tuple[str, int] | None = None  # of an enumerator: its type and number
    number: int | None = None  # of a literal, an element of an array, or a default
    widen: tuple[int, int] = (0, 0)  # of a tensor: add to the stride of this dimension
    paired: int | None = None  # of a packed tensor: the dimension counted in single values
    conv: Conv | None = None  # of a convolution tile
    share: int = 1  # of a number: it counts values; values per item


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """An instruction call as recorded from C++."""

    name: str
    path: int
    operands: tuple[Passed, ...]
    literals: tuple[Passed, ...]


@cache
def element(name: str) -> DType | None:
    return None if name in ("", "none", "?", "f64") else dtype(name)


def tile_type(facts: Any, element_name: str, valid: tuple[int, int]) -> TileBuf:
    """The type of a tile. Headers do not check that the valid region fits, so it is cut."""
    kind = element(element_name)
    if kind is None:
        raise fail("PTO-T001", f"{element_name} is not a known element type of tiles")
    layout = find_layout(_LAYOUTS[facts.blayout, facts.slayout], facts.fractal)
    role = ROLES[facts.loc] if facts.loc < len(ROLES) else Role.SCALAR
    pairs = values_in(kind, layout) if facts.slayout else (1, 1)  # of plain tiles: `sizes.py`
    rows, cols = facts.rows // pairs[0], facts.cols // pairs[1]
    height, width = (-(-size // step) for size, step in zip(valid, pairs, strict=True))
    tile = TileType.of(
        role,
        kind,
        rows,
        cols,
        layout,
        pad=pad(facts.pad),
        valid=(min(height, rows), min(width, cols)),
        compact=_COMPACT[facts.compact],
    )
    return TileBuf(scalar_type(kind), tile)


def _flat(facts: Any, element_name: str, shape: Sequence[int]) -> TileBuf:
    """A convolution tile as a plain tile: one line per run of its last dimension."""
    kind = element(element_name)
    if kind is None:
        raise fail("PTO-T001", f"{element_name} is not a known element type of tiles")
    rows = prod(shape[:-1])
    tile = TileType.of(ROLES[facts.loc], kind, rows, shape[-1], find_layout("ND", 512))
    return TileBuf(scalar_type(kind), tile)


def looked_at(facts: Any, element_name: str) -> TileBuf:
    """The type of a tile for reads of single elements or of its address."""
    if facts.kind == CONVOLUTION:
        return _flat(facts, element_name, (1, facts.rows))
    return tile_type(facts, element_name, (1, 1))


def global_layout(facts: Any) -> Any:
    return GLOBAL_LAYOUTS[GLOBAL[facts.layout]]


def read(words: Sequence[int], build: NativeBuild) -> RecordedCall:
    """Decode the call-site part of a record."""
    name = build.string(words[0])
    path = words[1]
    count = words[2]
    at = 3
    position = 0
    passed = list[Passed]()
    group: list[Passed] = []
    while at < len(words):
        if words[at] == GROUP:  # its root and tensors are the last arguments
            count -= 1
            group.append(Passed(INTEGER, position, element="i32", number=words[at + 2]))
            group += [
                _operand(words, at + 3 + 7 * n, position + 6 * n, build)[0][0]
                for n in range(words[at + 1])
            ]
            position, at = position + 6 * words[at + 1], at + 3 + 7 * words[at + 1]
            continue
        decoded, size, values = _operand(words, at, position, build)
        passed += decoded
        at, position = at + size, position + values
        count += len(decoded) - 1 if words[at - size] == NUMBERS else 0
    return RecordedCall(name, path, (*passed[:count], *group), tuple(passed[count:]))


def _operand(
    words: Sequence[int], at: int, position: int, build: NativeBuild
) -> tuple[list[Passed], int, int]:
    """The operands at `at`, their number of words in the site and among the values."""
    tag = words[at]
    if tag == TILE:
        facts = build.facts(words[at + 1])
        name = build.string(facts.element)
        type = tile_type(facts, name, (words[at + 2], words[at + 3]))
        return [Passed(tag, position, type, name, facts)], 4, 1
    if tag == TENSOR:
        facts = build.facts(words[at + 1])
        name, kind = build.string(facts.element), element(build.string(facts.element))
        if kind is None:
            raise fail("PTO-T001", f"a tensor of {name} is not known")
        view = View(tuple(words[at + 2 : at + 7]), scalar_type(kind), True)
        return [Passed(tag, position, view, name, facts)], 7, 6
    if tag == ENUM:
        enum = build.enum(words[at + 1])
        return [Passed(tag, position, word=(enum, words[at + 2]))], 3, 0
    if tag == LITERAL:
        return [Passed(tag, position, number=words[at + 2])], 3, 0
    if tag == NUMBERS:
        many = words[at + 1]
        numbers = words[at + 2 : at + 2 + many]
        if not many:
            return [Passed(tag, position)], 2, 1  # the output of counts
        digits = [Passed(INTEGER, position, element="u32", number=n) for n in numbers]
        return digits, 2 + many, 0
    if tag == CONV:
        facts = build.facts(words[at + 1])
        name, shape = build.string(facts.element), tuple(words[at + 2 : at + 2 + facts.cols])
        if len(shape) == 4 and GLOBAL[facts.layout] == "NC1HWC0":  # the block dimension is implied
            kind = element(name)
            shape += (C0_SIZE_BYTE // (kind.itemsize if kind else 1),)
        conv = Conv(shape, tuple(words[at + 8 : at + 12]), *words[at + 12 : at + 28])
        return [Passed(TILE, position, _flat(facts, name, shape), name, facts, conv=conv)], 28, 1
    if tag in SLOTTED:
        name = build.string(words[at + 1]) if words[at + 1] else ""
        return [Passed(tag, position, element=name)], 2, 2
    if tag == QUEUE:
        return [Passed(tag, position, PipeHandle(), facts=build.facts(words[at + 1]))], 2, 1
    name = build.string(words[at + 1]) if words[at + 1] else ""
    return [Passed(tag, position, element=name)], 2, 1


def number_of(operand: Passed, values: Sequence[int]) -> int | float:
    """The number that an argument is in a record with these values."""
    if operand.tag == FLOAT and operand.number is None:
        return float(np.int64(values[operand.at]).view(np.float64))
    return (values[operand.at] if operand.number is None else operand.number) // operand.share
