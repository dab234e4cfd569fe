"""Memory spaces as bounded byte arrays, and the roles of the tiles that live in them.

The size of a space and the alignment of a target are arguments. Tiles and global
tensors, which give bytes a shape, live in their own files.
"""

from __future__ import annotations

import ctypes
from enum import Enum
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail, look_up

Bytes = npt.NDArray[np.uint8]
_CACHE_LINE: Final = 64


class Space(Enum):
    """Global memory and the local buffers of one core."""

    GM = "gm"
    UB = "ub"
    L1 = "l1"
    L0A = "l0a"
    L0B = "l0b"
    L0C = "l0c"
    BIAS = "bias"
    FIXPIPE = "fixpipe"
    SCALE_A = "scale_a"
    SCALE_B = "scale_b"

    __hash__ = object.__hash__  # members are singletons; Enum would hash their names in Python

    @property
    def is_local(self) -> bool:
        return self is not Space.GM


# Every spelling found in programs and manuals: pointer spaces, tile locations, CCE qualifiers.
_SPELLINGS: Final = {
    Space.GM: "gm",
    Space.UB: "ub ubuf vec",
    Space.L1: "l1 mat cbuf",
    Space.L0A: "l0a left ca",
    Space.L0B: "l0b right cb",
    Space.L0C: "l0c acc cc",
    Space.BIAS: "bias bt biasbuf",
    Space.FIXPIPE: "fixpipe scaling fb fbuf",
    Space.SCALE_A: "scale_a scale_left",
    Space.SCALE_B: "scale_b scale_right",
}
SPACE_NAMES: Final = {name: space for space, names in _SPELLINGS.items() for name in names.split()}


def space(name: str) -> Space:
    """The space a program calls `name`."""
    wrong_key = f"memory space `{name}`; the names"
    return look_up(SPACE_NAMES, name.lower(), "PTO-M003", wrong_key)


def aligned_bytes(size: int) -> Bytes:
    """Zeros that begin at a cache line: vector code is twice as fast there."""
    raw = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + size]


def address_of(data: npt.NDArray[Any]) -> int:
    """The host address of an array, several times faster than `data.ctypes`."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(data.data))
    except (TypeError, ValueError):  # empty, or read-only
        return data.ctypes.data


class Memory:
    """The bytes of one space. `align` is what the base address of a tile must be a multiple of."""

    __slots__ = ("align", "data", "space")

    def __init__(self, space: Space, size: int, align: int = 1) -> None:
        if size < 0 or align < 1:
            raise fail("PTO-M005", f"cannot make {size} bytes of {space.value} aligned to {align}")
        self.space = space
        self.align = align
        self.data: Bytes = aligned_bytes(size)

    @classmethod
    def over(cls, space: Space, data: Bytes, align: int = 1) -> Memory:
        """A memory over the caller's array, without a copy."""
        if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
            raise fail(
                "PTO-M005",
                f"{space.value} needs a contiguous one-dimensional array of bytes, "
                f"not {data.dtype} of shape {data.shape}",
            )
        memory = cls.__new__(cls)
        memory.space = space
        memory.align = align
        memory.data = data
        return memory

    @property
    def size(self) -> int:
        return self.data.size

    def __repr__(self) -> str:
        return f"Memory({self.space.value}, {self.size} bytes)"

    def check(self, address: int, nbytes: int, align: int = 1) -> None:
        """Raise unless [address, address + nbytes) lies inside and `address` is aligned."""
        if nbytes < 0 or address < 0 or address + nbytes > self.size:
            raise fail(
                "PTO-M001",
                f"{self.space.value} address {address:#x} with {nbytes} bytes ends at "
                f"{address + nbytes:#x}, outside the buffer of {self.size} bytes",
            )
        if address % align:
            raise fail(
                "PTO-M002",
                f"{self.space.value} address {address:#x} is not a multiple of {align} bytes",
                help=f"the nearest aligned addresses are {address // align * align:#x} "
                f"and {(address // align + 1) * align:#x}",
            )

    def view(self, address: int, nbytes: int, align: int = 1) -> Bytes:
        """The bytes themselves: writing to the view writes to memory."""
        self.check(address, nbytes, align)
        return self.data[address : address + nbytes]

    def strided(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: npt.DTypeLike = np.uint8,
    ) -> npt.NDArray[Any]:
        """Items at a byte address and byte strides, over the memory; the caller checks bounds."""
        return np.ndarray(shape, dtype, self.data, address, strides)

    def read(self, address: int, nbytes: int, align: int = 1) -> Bytes:
        """A copy of the bytes."""
        return self.view(address, nbytes, align).copy()

    def write(self, address: int, data: npt.NDArray[Any] | bytes, align: int = 1) -> None:
        """Store the bytes of `data` at `address`; nothing is stored if they do not fit."""
        if isinstance(data, bytes):
            raw = np.frombuffer(data, np.uint8)
        else:
            raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self.view(address, raw.size, align)[:] = raw


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

    __hash__ = object.__hash__  # members are singletons; Enum would hash their names in Python

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
    wrong_key = f"tile role `{name}`; the roles"
    return look_up(
        ROLE_NAMES, name.lower(), "PTO-S003", wrong_key, [member.value for member in Role]
    )
