"""Fills: one scalar in every element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.tile import Role, Tile
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element
from pto.isa.rules.rule import Case


def _fill(case: Case) -> Callable[..., None]:
    """Fill the valid region of a vec tile, or all bytes of a mat tile in blocks of 32 bytes."""
    dtype, type = element(case, "dst"), case.type("scalar")

    def run(x: Mover, value: Any, dst: Tile) -> None:
        rows, cols = dst.type.shape if dst.type.role is Role.MAT else dst.get_valid()
        x.fill(dst, x.lane(value, type, dtype), (0, rows), (0, cols))

    return run


FILL = Move(_fill)
