"""Vector instructions of a2a3 by pointer: repeats of eight 32-byte blocks of UB, under a mask.

The mask is a state of the core: bits of the lanes of a repeat, or how many elements there are in
all. On a5 the compiler drops these instructions, and they do nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.rules.rule import Case

_MASK, _COUNTS = "vector mask", "vector mask counts"  # registers of the core
_BLOCKS = 8  # of a repeat
_ALL = (1 << 64) - 1
_ON = "a2a3"


def _set_mask(core: Machine, low: int, high: int) -> None:
    core.registers[_MASK] = (low & _ALL) | (high & _ALL) << 64


def _counts(on: bool) -> Do:
    def set_mode(core: Machine) -> None:
        core.registers[_COUNTS] = on

    return do(set_mode)


SET_MASK = do(_set_mask)
SET_MASK_COUNT = _counts(True)
SET_MASK_NORM = _counts(False)


def _lanes(core: Machine, kind: DType, repeat: int) -> tuple[int, Any]:
    """How many repeats there are, and which lanes of them take part."""
    per = kind.per_vlane * _BLOCKS
    mask = core.registers.get(_MASK, (1 << 128) - 1)
    if core.registers.get(_COUNTS, False):
        count = mask & _ALL
        repeat = -(-count // per)
        return repeat, (np.arange(repeat * per) < count).reshape(repeat, per)
    bits = np.array([mask >> n & 1 for n in range(per)], np.bool_)
    return repeat, np.broadcast_to(bits, (repeat, per))


def _places(ptr: Pointer, kind: DType, turn: int, block: int, step: int) -> Any:
    """The bytes of one repeat: eight blocks, `block` blocks apart; repeats are `step` apart."""
    first = ptr.address + (turn * step + np.arange(_BLOCKS) * block) * BLOCK_BYTE_SIZE
    if ptr.address % BLOCK_BYTE_SIZE:
        raise fail("PTO-M002", f"ub address {ptr.address:#x} is not a multiple of 32 bytes")
    ptr.memory.check(int(first.min()), int(first.max() - first.min()) + BLOCK_BYTE_SIZE)
    return (first[:, None] + np.arange(BLOCK_BYTE_SIZE)).reshape(-1, kind.itemsize)


def _read(ptr: Pointer, kind: DType, places: Any, on: Any) -> Lanes:
    return np.ascontiguousarray(ptr.memory.data[places[on]]).view(kind.numpy)[:, 0]


def _write(ptr: Pointer, places: Any, on: Any, found: Lanes) -> None:
    ptr.memory.data[places[on]] = np.ascontiguousarray(found).view(np.uint8).reshape(len(found), -1)


def _made(case: Case, run: Callable[..., None]) -> Callable[..., None]:
    return run if case.profile.name == _ON else lambda core, *operands: None


def _binary(fn: Callable[[Lanes, Lanes], Lanes]) -> Do:
    def make(case: Case) -> Callable[..., None]:
        kind = dtype_of(case, "dst")

        def run(core: Machine, dst: Pointer, a: Pointer, b: Pointer, repeat: int, *by: int) -> None:
            repeat, masks = _lanes(core, kind, repeat)
            for turn in range(repeat):
                on = masks[turn]
                to, x, y = (
                    _places(p, kind, turn, by[n], by[n + 3]) for n, p in enumerate((dst, a, b))
                )
                _write(dst, to, on, fn(_read(a, kind, x, on), _read(b, kind, y, on)))

        return _made(case, run)

    return Do(make)


def _unary(fn: Callable[[Lanes], Lanes]) -> Do:
    def make(case: Case) -> Callable[..., None]:
        kind = dtype_of(case, "dst")

        def run(core: Machine, dst: Pointer, a: Pointer, repeat: int, *by: int) -> None:
            repeat, masks = _lanes(core, kind, repeat)
            for turn in range(repeat):
                on = masks[turn]
                to, x = (_places(p, kind, turn, by[n], by[n + 2]) for n, p in enumerate((dst, a)))
                _write(dst, to, on, fn(_read(a, kind, x, on)))

        return _made(case, run)

    return Do(make)


def _scalar(kind: DType, word: int) -> Lanes:
    """The low bits of a word as an element."""
    bits = np.array([word & ((1 << 8 * kind.itemsize) - 1)], kind.storage)
    return bits.view(kind.numpy)


def _with_scalar(fn: Callable[[Lanes, Any], Lanes], *, counts: bool = False) -> Do:
    """`counts`: the scalar is a number of bits, whatever the elements are."""

    def make(case: Case) -> Callable[..., None]:
        kind = dtype_of(case, "dst")

        def run(core: Machine, dst: Pointer, a: Pointer, word: int, repeat: int, *by: int) -> None:
            value: Any = word if counts else _scalar(kind, word)
            repeat, masks = _lanes(core, kind, repeat)
            for turn in range(repeat):
                on = masks[turn]
                to, x = (_places(p, kind, turn, by[n], by[n + 2]) for n, p in enumerate((dst, a)))
                _write(dst, to, on, fn(_read(a, kind, x, on), value))

        return _made(case, run)

    return Do(make)


def _vdup(case: Case) -> Callable[..., None]:
    kind = dtype_of(case, "dst")

    def run(core: Machine, dst: Pointer, word: int, repeat: int, *by: int) -> None:
        repeat, masks = _lanes(core, kind, repeat)
        for turn in range(repeat):
            on = masks[turn]
            to = _places(dst, kind, turn, by[0], by[2])
            _write(dst, to, on, np.repeat(_scalar(kind, word), int(on.sum())))

    return _made(case, run)


def _shift_left(a: Lanes, count: int) -> Lanes:
    return a << min(count, 8 * a.dtype.itemsize - 1) if count < 8 * a.dtype.itemsize else a * 0


def _shift_right(a: Lanes, count: int) -> Lanes:
    return a >> min(count, 8 * a.dtype.itemsize - 1)


BINARY: dict[str, Do] = {
    "vadd": _binary(lanes.add),
    "vsub": _binary(lanes.sub),
    "vmul": _binary(lanes.mul),
    "vdiv": _binary(lanes.div),
    "vmax": _binary(lanes.maximum),
    "vmin": _binary(lanes.minimum),
    "vand": _binary(lanes.bit_and),
    "vor": _binary(lanes.bit_or),
    "vaddrelu": _binary(lambda a, b: lanes.relu(lanes.add(a, b))),
}
UNARY: dict[str, Do] = {
    "vnot": _unary(lanes.bit_not),
    "vabs": _unary(np.abs),
    "vrelu": _unary(lanes.relu),
    "vexp": _unary(mathlib.exp),
    "vln": _unary(mathlib.log),
    "vsqrt": _unary(mathlib.sqrt),
    "vrsqrt": _unary(mathlib.rsqrt),
}
SCALAR: dict[str, Do] = {
    "vadds": _with_scalar(lanes.add),
    "vmuls": _with_scalar(lanes.mul),
    "vmaxs": _with_scalar(lanes.maximum),
    "vmins": _with_scalar(lanes.minimum),
    "vshl": _with_scalar(_shift_left, counts=True),
    "vshr": _with_scalar(_shift_right, counts=True),
}
VDUP = Do(_vdup)
