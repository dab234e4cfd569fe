"""Access to UB by pointer: live views of items, checked for bounds and alignment.

Each function is made once per instruction and caches the last view of the memory: a view of the
bytes as items costs more than the access itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.memory import Memory
from pto.core.pointer import Pointer
from pto.isa.rules.rule import Case

Items = npt.NDArray[Any]
Build = Callable[[Items], Any]  # items -> the image made of them, or several; it only moves items


def dtype_of(case: Case, name: str) -> DType:
    """The element type of an operand or result of a prepared program."""
    elem = case.elem(name)
    if elem is None or elem.dtype is None:
        raise fail("PTO-T140", f"{case.row.name}: {name} has no element type")
    return elem.dtype


def item_type(bits: int, register: DType) -> np.dtype[Any]:
    """The type of items of this width: the register's element type if the widths agree."""
    return register.numpy if 8 * register.itemsize == bits else np.dtype(f"u{bits // 8}")


def element_alignment(case: Case, size: int) -> int:
    """The alignment of an access to items of `size` bytes under this profile."""
    return size if case.profile.alignment.local_element else 1


@dataclass(frozen=True, slots=True)
class ItemAccess:
    """`count` items at a pointer, aligned to `align` bytes."""

    at: Callable[[Pointer, int], Items]  # (pointer, byte offset) -> the items, writeable
    dtype: np.dtype[Any]
    count: int
    align: int
    build: Build | None  # None: unchanged


def access(
    case: Case,
    dtype: np.dtype[Any],
    count: int,
    build: Build | None = None,
    *,
    align: int = 0,
    refused: Callable[[Memory, int], Any] | str = "",
) -> ItemAccess:
    """The access to items. `align` is their alignment in bytes; 0: that of an item.

    `refused` raises the finding for a bad address, or names the instruction that accepts it.
    """
    size, name = dtype.itemsize, case.row.name
    nbytes = size * count
    needed = align or element_alignment(case, size)
    shift, low = size.bit_length() - 1, max(needed, size) - 1
    memory: Memory | None = None
    typed: Items = np.empty(0, dtype)
    last = -1

    def at(pointer: Pointer, offset: int) -> Items:
        nonlocal memory, typed, last
        if pointer.memory is not memory:
            memory = pointer.memory
            typed = memory.data[: memory.size // size * size].view(dtype)
            last = memory.size - nbytes
        address = pointer.address + offset
        if address & low or not 0 <= address <= last:
            return elsewhere(pointer.memory, address)
        start = address >> shift
        return typed[start : start + count]

    def elsewhere(memory: Memory, address: int) -> Items:
        if address % needed and not isinstance(refused, str):
            refused(memory, address)
        if address % needed:
            misaligned(name, memory, address, needed, str(refused))
        return memory.view(address, nbytes).view(dtype)

    return ItemAccess(at, dtype, count, needed, build)


def register_access(case: Case, kind: DType, instead: str) -> ItemAccess:
    """The access to a whole register; `instead` names the instruction for other addresses."""
    align = case.profile.alignment.vector
    return access(case, kind.numpy, kind.lanes, align=align if align > 1 else 0, refused=instead)


def misaligned(name: str, memory: Memory, address: int, needed: int, instead: str) -> NoReturn:
    where = f"{memory.space.value} address {address:#x}"
    below = address // needed * needed
    nearest = f"the nearest aligned addresses are {below:#x} and {below + needed:#x}"
    raise fail(
        "PTO-M140",
        f"'{name}' op needs an address that is a multiple of {needed} bytes, got {where}",
        help=f"{instead}; {nearest}" if instead else nearest,
    )


def positions(case: Case, typed: Items, start: int, index: Items, active: Items | None) -> Items:
    """start + index of the active lanes (None: all); an error names the first bad lane."""
    where = index.astype(np.int64) + start
    if active is not None:
        where = where[active]
    if where.size and (where.min() < 0 or where.max() >= typed.size):
        lanes = np.arange(index.size) if active is None else np.flatnonzero(active)
        n = int(np.flatnonzero((where < 0) | (where >= typed.size))[0])
        lane = int(lanes[n])
        raise fail(
            "PTO-M141",
            f"'{case.row.name}' op: lane {lane} has index {int(index[lane])}, "
            f"byte {int(where[n]) * typed.itemsize:#x} of a buffer of "
            f"{typed.size * typed.itemsize:#x} bytes",
            help="use an index inside the buffer, or switch the lane off in the mask",
        )
    return where


def block_places(
    case: Case, pointer: Pointer, offsets: Items, active: Items
) -> npt.NDArray[np.int64]:
    """The start of each active 32-byte block at these byte offsets, checked for bounds."""
    places = offsets.astype(np.int64)[active] + pointer.address
    if not places.size:
        return places
    pointer.memory.check(int(places.min()), BLOCK_BYTE_SIZE)
    pointer.memory.check(int(places.max()), BLOCK_BYTE_SIZE)
    odd = places % case.profile.alignment.vector
    if odd.any():
        bad = int(places[np.flatnonzero(odd)[0]])
        misaligned(case.row.name, pointer.memory, bad, BLOCK_BYTE_SIZE, "")
    return places
