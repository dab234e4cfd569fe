"""One scalar in every element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.tile import Role, Tile
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import element, put, scalar
from pto.isa.rules.rule import Case


def _fill(case: Case) -> Callable[..., None]:
    """A vec tile over its valid region; a mat tile whole, padding too, in blocks of 32 bytes."""
    dtype = element(case, "dst")
    become = scalar(case.type("scalar"), dtype)

    def step(core: Machine, value: object, dst: Tile) -> None:
        item = become(value)
        if dst.type.role is Role.MAT:
            dst.write(np.full(dst.type.shape, item))
            return
        rows, cols = dst.get_valid()
        if rows and cols:
            put(dst, rows, cols, np.asarray(item))

    return step


FILL = Do(_fill)
