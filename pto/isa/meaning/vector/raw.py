"""Vector instructions of a2a3 by pointer: repeats of eight 32-byte blocks of UB, under a mask.

The mask is a state of the core: bits of the lanes of a repeat, or the total number of elements. On
a5 the compiler drops these instructions, so they have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.core.primitives import absolute, on_arrays
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Move, Repeats
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

BLOCKS: Final = 8  # per repeat


def does_nothing(case: Case) -> bool:
    """True if the compiler of the profile drops these instructions."""
    return not case.profile.vector.masked_repeats


def _set_mask(x: Mover, low: Any, high: Any) -> None:
    x.put(registers.LANES, x.number(low), x.number(high))


def _counts(on: int) -> Move:
    return Move(lambda case: lambda x: x.put(registers.COUNTS, on))


SET_MASK = Move(lambda case: _set_mask)
SET_MASK_COUNT = _counts(1)
SET_MASK_NORM = _counts(0)


def _lanes(core: Machine, per: int, repeat: int) -> tuple[int, Any]:
    """The number of repeats, and the active ones of the `per` lanes of each."""
    low, high = registers.get(core, registers.LANES)
    if registers.get(core, registers.COUNTS):
        count = low & registers.MASK
        repeat = -(-count // per)
        return repeat, (np.arange(repeat * per) < count).reshape(repeat, per)
    mask = (low & registers.MASK) | (high & registers.MASK) << 64
    bits = np.array([mask >> n & 1 for n in range(per)], np.bool_)
    return repeat, np.broadcast_to(bits, (repeat, per))


def _places(ptr: Pointer, kind: DType, repeat: int, block: int, step: int) -> Any:
    """The byte positions of one repeat: eight blocks, `block` blocks apart.

    Repeats are `step` apart.
    """
    first = ptr.address + (repeat * step + np.arange(BLOCKS) * block) * BLOCK_BYTE_SIZE
    if ptr.address % BLOCK_BYTE_SIZE:
        raise fail("PTO-M002", f"ub address {ptr.address:#x} is not a multiple of 32 bytes")
    ptr.memory.check(int(first.min()), int(first.max() - first.min()) + BLOCK_BYTE_SIZE)
    return (first[:, None] + np.arange(BLOCK_BYTE_SIZE)).reshape(-1, kind.itemsize)


def _read(ptr: Pointer, kind: DType, places: Any, on: Any) -> Lanes:
    return np.ascontiguousarray(ptr.memory.data[places[on]]).view(kind.numpy)[:, 0]


def _write(ptr: Pointer, places: Any, on: Any, values: Lanes) -> None:
    ptr.memory.data[places[on]] = (
        np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    )


def pointers(case: Case) -> list[str]:
    """The pointer operands, the destination first."""
    return [o.name for o in case.row.operands if isinstance(case.type(o.name), t.Ptr)]


def repeats(case: Case, body: Repeats) -> Callable[..., None]:
    """Execute repeat by repeat: each is read completely before it is written."""
    names = pointers(case)
    kind = dtype_of(case, "dst")
    fn = on_arrays(body.fn)
    at = {operand.name: n for n, operand in enumerate(case.row.operands)}
    width = 8 * kind.itemsize

    def run(core: Machine, *operands: Any) -> None:
        repeat, masks = _lanes(core, kind.per_vlane * BLOCKS, operands[at["repeat"]])
        ways = [
            (
                operands[at[name]],
                operands[at[f"{name}BlockStride"]],
                operands[at[f"{name}RepeatStride"]],
            )
            for name in names
        ]
        word = operands[len(names)] & registers.MASK
        word = min(word, width) if body.scalar == "shift" else word & (1 << width) - 1
        for nth in range(repeat):
            on = masks[nth]
            places = [_places(p, kind, nth, block, step) for p, block, step in ways]
            values = [_read(ways[n][0], kind, places[n], on) for n in range(1, len(ways))]
            if body.scalar:
                bits = np.full(int(on.sum()), word, kind.storage)
                values.append(bits.view(kind.numpy))
            _write(ways[0][0], places[0], on, fn(*values))

    return (lambda core, *given: None) if does_nothing(case) else run


BINARY: dict[str, Repeats] = {
    "vadd": Repeats(lanes.add),
    "vsub": Repeats(lanes.sub),
    "vmul": Repeats(lanes.mul),
    "vdiv": Repeats(lanes.div),
    "vmax": Repeats(lanes.maximum),
    "vmin": Repeats(lanes.minimum),
    "vand": Repeats(lanes.bit_and),
    "vor": Repeats(lanes.bit_or),
    "vaddrelu": Repeats(lambda a, b: lanes.relu(lanes.add(a, b))),
}
UNARY: dict[str, Repeats] = {
    "vnot": Repeats(lanes.bit_not),
    "vabs": Repeats(absolute),
    "vrelu": Repeats(lanes.relu),
    "vexp": Repeats(mathlib.exp),
    "vln": Repeats(mathlib.log),
    "vsqrt": Repeats(mathlib.sqrt),
    "vrsqrt": Repeats(mathlib.rsqrt),
}
SCALAR: dict[str, Repeats] = {
    "vadds": Repeats(lanes.add, "element"),
    "vmuls": Repeats(lanes.mul, "element"),
    "vmaxs": Repeats(lanes.maximum, "element"),
    "vmins": Repeats(lanes.minimum, "element"),
    "vshl": Repeats(lanes.shift_left, "shift"),
    "vshr": Repeats(lanes.shift_right, "shift"),
}
VDUP = Repeats(lambda value: value, "element")
