"""Scale registers of accumulator pushes, as words that compiled code shares with Python.

Three words a register: the number of a form, then the bits of a scale, or the address of a row of
scales and how many of them are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from pto.core.dtypes import BF16, F16, F32, I64, U64, DType
from pto.core.memory import Memory, Space
from pto.core.tile import Role, Tile, TileType
from pto.isa.meaning.memory import registers

WORDS: Final = 3
PYTHONS: Final = -1  # a form that only Python handles; 0: not set
_KINDS: Final = (None, "i8", "u8", "i16", "f16", "bf16")
_ELEMENTS: Final = (None, U64, I64, F16, BF16, F32)
_RADIX: Final = 8


def row_type(element: DType, cols: int) -> TileType:
    return TileType.of(Role.SCALING, element, 1, cols)


@dataclass(frozen=True, slots=True)
class Form:
    """One scale for all columns, or a row of scales."""

    kind: str | None = None  # element type of the next push, if it is set
    element: DType | None = None  # of a row
    cols: int = 0

    @classmethod
    def row(cls, type: TileType) -> Form | None:
        """The form of a plain row of scales; None for other tiles."""
        plain = replace(row_type(type.dtype, type.cols), valid=type.valid)
        known = type == plain and type.dtype in _ELEMENTS
        return cls(element=type.dtype, cols=type.cols) if known else None

    @property
    def number(self) -> int:
        low = _KINDS.index(self.kind) + _RADIX * _ELEMENTS.index(self.element)
        return 1 + low + _RADIX * _RADIX * self.cols


def value_of(name: str, words: Sequence[int], memory: Callable[[Space], Memory]) -> Any:
    """The value of a register from words that compiled code has written."""
    form, word, count = words
    rest, kind = divmod(form - 1, _RADIX)
    cols, element = divmod(rest, _RADIX)
    is_next, dtype = name == registers.TILE_QUANT, _ELEMENTS[element]
    if dtype is None:
        return (_KINDS[kind], word) if is_next else np.uint32(word).view(np.float32)
    type = row_type(dtype, cols)
    tile = Tile(type, memory(type.space), word, (1, count), pitch=cols)
    return (None, tile) if is_next else tile
