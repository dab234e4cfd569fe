"""Registers that one instruction sets and later ones read: names, initial values and fields.

This is the only table of `core.registers`; the code that reads a field documents its effect. Most
meanings read and write them by `CoreWords`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import BF16, F16, F32, I8, I16, I32, DType
from pto.isa.meaning.machine import Machine, NumberWords

MASK: Final = (1 << 64) - 1

CTRL: Final = "ctrl"
LOOP_SIZE: Final = "loop size"  # for each direction: (loop1, loop2)
LOOP1_STRIDE: Final = "loop1 stride"  # (source, destination) in bytes
LOOP2_STRIDE: Final = "loop2 stride"
MOV_PAD: Final = "mov pad value"  # bits of one element
L1_PAD: Final = "l1 pad value"
NZ_PARA: Final = "mte2 nz para"
LOOP3: Final = "loop3 para"
CHANNEL: Final = "channel para"
QUANT_PRE: Final = "quant pre"
RELU_ALPHA: Final = "relu alpha"
CLIP_RELU: Final = "fix clip relu"
FPC: Final = "fpc"
HF32: Final = "hf32"  # True if products of f32 tiles round their operands to HF32
TILE_QUANT: Final = "tile quant"  # for the next tpush: (result type, word) or (None, tile of words)
QUEUE_QUANT: Final = "quant of queue"  # per queue id: an f32, or a tile of scales
QUEUE_IDS: Final = 16
FMATRIX: Final = "fmatrix"  # of matrix A or B: height, width and padding of a feature map
IMG2COL_RPT: Final = "img2col repeat"
IMG2COL_PADDING: Final = "img2col padding"  # bits of an element outside the map
AR: Final = "ar"  # position of a stream of squeezed stores, in bytes after its base
SQZN: Final = "sqzn"  # bytes kept by the last squeeze; None: none executed yet
LANES: Final = "vector mask"  # 128 bits in two words: the active lanes of a repeat, or
COUNTS: Final = "vector mask counts"  # 1: the first word is the total number of elements
VMS4_SR: Final = "vms4_sr"  # records the last merge took from each list: four fields of 16 bits

SYNC_ALL: Final = "syncall"  # per kind of core: barriers an agent has passed; is it waiting at one
LAUNCH_SIZE: Final = "simt launch size"  # for following calls of entries: work items in x, y, z

CORE_TYPES: Final = ("aiv_only", "aic_only", "mix")
WAYS: Final = ("outtoub", "ubtoout", "outtol1")

# CTRL: micro-instruction manual
TF32: Final = 46
TF32_AWAY: Final = 47
KEEP_SPECIALS: Final = 48  # 1: inf and NaN stay; 0: saturate
KEEP_NAN: Final = 50
ATOMIC_TYPE: Final = 6  # three bits: the type of atomic writes; 0: plain writes
ATOMIC_OP: Final = 9
ATOMIC_TYPES: Final[dict[int, DType]] = {1: F32, 2: F16, 3: I16, 4: I32, 5: I8, 6: BF16}
ATOMIC_OPS: Final = ("add", "max", "min")

# The scale of pushed accumulators; initially none.

_FIRST: Final[dict[str, Any]] = {
    # A program that never writes CTRL keeps inf and NaN: in the golden fixpipe-acc-store-sat-f16-cv
    # a product runs before the program writes CTRL.
    CTRL: 1 << KEEP_SPECIALS,
    **{f"{LOOP_SIZE} {way}": (1, 1) for way in WAYS},
    **{f"{LOOP1_STRIDE} {way}": (0, 0) for way in WAYS},
    **{f"{LOOP2_STRIDE} {way}": (0, 0) for way in WAYS},
    MOV_PAD: 0,
    L1_PAD: 0,
    NZ_PARA: 1,
    LOOP3: 1,
    CHANNEL: 1 << 48,
    QUANT_PRE: 0,
    RELU_ALPHA: 0,
    CLIP_RELU: 0,
    FPC: 0,
    HF32: False,
    **dict.fromkeys((TILE_QUANT, *(f"{QUEUE_QUANT} {n}" for n in range(QUEUE_IDS)))),
    AR: 0,
    SQZN: None,
    VMS4_SR: 0,
    LANES: (-1, -1),
    COUNTS: 0,
    LAUNCH_SIZE: None,
    **{f"{SYNC_ALL} {kind}": (0, 0) for kind in CORE_TYPES},
    **{f"{name} {m}": None for name in (FMATRIX, IMG2COL_RPT, IMG2COL_PADDING) for m in "AB"},
}

# Registers without an initial value, and the number of their words.
OPTIONAL: Final[dict[str, int]] = {
    LAUNCH_SIZE: 3,
    **{f"{FMATRIX} {m}": 6 for m in "AB"},
    **{f"{IMG2COL_RPT} {m}": 4 for m in "AB"},
    **{f"{IMG2COL_PADDING} {m}": 1 for m in "AB"},
}


def first(name: str) -> Any:
    """The initial value of a register."""
    return _FIRST[name]


def get(core: Machine, name: str) -> Any:
    """The value of a register; its initial value if the program has not written it."""
    return core.registers.get(name, _FIRST[name])


def put(core: Machine, name: str, value: Any) -> None:
    core.registers[name] = value


def names() -> list[str]:
    """Every register with an initial value."""
    return list(_FIRST)


def ctrl_bit(core: Machine, index: int) -> bool:
    return bool(get(core, CTRL) >> index & 1)


def selected_atomic(core: Machine) -> tuple[DType, str] | None:
    """The type and operation of atomic writes to global memory; None: plain writes."""
    ctrl = get(core, CTRL)
    kind = ATOMIC_TYPES.get(ctrl >> ATOMIC_TYPE & 7)
    op = ctrl >> ATOMIC_OP & 3
    return None if kind is None or op >= len(ATOMIC_OPS) else (kind, ATOMIC_OPS[op])


class CoreWords(NumberWords):
    """Words about one core, for the meaning of one instruction; its registers among them."""

    __slots__ = ("case", "core")

    def __init__(self, core: Machine, case: Any = None) -> None:
        self.core = core
        self.case = case  # the instruction; None if no word needs it

    def get(self, register: str, n: int = 0) -> int:
        """Word n of a register; -1: not written yet."""
        value = get(self.core, register)
        return value[n] if isinstance(value, tuple) else -1 if value is None else value

    def put(self, register: str, *words: int) -> None:
        """All words of a register."""
        single = len(words) == 1 and register not in OPTIONAL
        put(self.core, register, words[0] & MASK if single else words)

    def word(self, number: int, storage: np.dtype[Any]) -> npt.NDArray[Any]:
        """The low bits of a number in every lane."""
        return np.asarray(number & (1 << 8 * storage.itemsize) - 1, storage)
