"""Roles of tiles: the buffer each lives in, the unit that works on it, and the names of both."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import Final

from pto.core.errors import fail, nearest
from pto.core.memory import Space


class Role(Enum):
    """The purpose of a tile; it decides the buffer of the tile and the unit that works on it."""

    VEC = "vec"
    MAT = "mat"
    LEFT = "left"
    RIGHT = "right"
    ACC = "acc"
    BIAS = "bias"
    SCALING = "scaling"
    SCALE_LEFT = "scale_left"
    SCALE_RIGHT = "scale_right"
    SCALAR = "scalar"

    @cached_property
    def space(self) -> Space:
        return PLACES[self][0]

    @property
    def unit(self) -> str:
        """V vector, M matrix, S scalar (PTO manual, Tiles And Valid Regions: TileType)."""
        return PLACES[self][1]


# PTO manual, hardware mapping of local tile buffers; the rest: pto-isa buffer_limits.hpp. The
# sources name no buffer for scalar tiles: here they lie in UB.
PLACES: Final = {
    Role.VEC: (Space.UB, "V"),
    Role.MAT: (Space.L1, "M"),
    Role.LEFT: (Space.L0A, "M"),
    Role.RIGHT: (Space.L0B, "M"),
    Role.ACC: (Space.L0C, "M"),
    Role.BIAS: (Space.BIAS, "M"),
    Role.SCALING: (Space.FIXPIPE, "M"),
    Role.SCALE_LEFT: (Space.SCALE_A, "M"),
    Role.SCALE_RIGHT: (Space.SCALE_B, "M"),
    Role.SCALAR: (Space.UB, "S"),
}

ROLE_NAMES: Final = {
    **{each.value: each for each in Role},
    # tmov text spells the location of a scaling tile so (pto-isa pto_tile.hpp)
    "scale": Role.SCALING,
    # ScaleLeft and ScaleRight of the manual
    "scaleleft": Role.SCALE_LEFT,
    "scaleright": Role.SCALE_RIGHT,
}


def role(name: str) -> Role:
    """The role a program calls `name`: `vec`, `Vec`, `ScaleLeft`, `scale_left`, ..."""
    found = ROLE_NAMES.get(name.lower())
    if found is None:
        raise fail(
            "PTO-S003",
            f"unknown tile role `{name}`; the roles are {', '.join(each.value for each in Role)}",
            help=nearest(name.lower(), ROLE_NAMES),
        )
    return found
