"""Pad values that fill a tile outside its valid region, and their bits in each element type."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Final

from pto.core.dtypes import DType
from pto.core.errors import fail, nearest

CUSTOM_BASE: Final = 0x1_0000_0000  # a custom pad is this bit with the value's bits below it

# Min and Max per type (pto-isa constants.hpp).
_BITS: Final = {
    "f32": (0xFF800000, 0x7F800000),
    "f16": (0xFC00, 0x7C00),
    "bf16": (0xFF80, 0x7F80),
    "i32": (0x80000000, 0x7FFFFFFF),
    "u32": (0, 0xFFFFFFFF),
    "i16": (0x8000, 0x7FFF),
    "u16": (0, 0xFFFF),
    "i8": (0x80, 0x7F),
    "u8": (0, 0xFF),
    # The ISA maps every standard pad of these types to zero bits.
    **dict.fromkeys(("i64", "u64", "f8e4m3", "f8e5m2", "hifloat8", "e8m0"), (0, 0)),
    **dict.fromkeys(("float4_e1m2x2", "float4_e2m1x2"), (0, 0)),
}


@dataclass(frozen=True, slots=True)
class Pad:
    """`code` is the number of the text form; a custom pad carries its bits in it.

    Null and Invalid leave the elements undefined: reading one is an error of the program.
    """

    name: str
    code: int

    NULL: ClassVar[Pad]
    ZERO: ClassVar[Pad]
    MAX: ClassVar[Pad]
    MIN: ClassVar[Pad]
    INVALID: ClassVar[Pad]

    @classmethod
    def custom(cls, value: float) -> Pad:
        """PadValueCustom(value): the f32 pattern of `value`, for tiles of f32.

        Narrower types use the low bits of the pattern: give them theirs with `custom_bits`.
        """
        try:
            packed = struct.pack("<f", value)
        except OverflowError:
            raise fail("PTO-L005", f"pad value {value!r} is outside the range of f32") from None
        return cls.custom_bits(int.from_bytes(packed, "little"))

    @classmethod
    def custom_bits(cls, bits: int) -> Pad:
        """A custom pad from the bit pattern of one element of at most 32 bits."""
        if not 0 <= bits < CUSTOM_BASE:
            raise fail("PTO-L005", f"custom pad bits {bits:#x} do not fit in 32 bits")
        return cls(f"custom({bits:#x})", CUSTOM_BASE | bits)

    def __str__(self) -> str:
        return self.name

    @property
    def is_custom(self) -> bool:
        return self.code >= CUSTOM_BASE

    @property
    def is_defined(self) -> bool:
        """False where elements outside the valid region have no value."""
        return self not in (Pad.NULL, Pad.INVALID)

    def bits(self, dtype: DType) -> int:
        """The pattern of one stored item of `dtype`; Null and Invalid encode as zero."""
        if self.is_custom:
            return self.code & ((1 << min(32, 8 * dtype.itemsize)) - 1)
        if self not in (Pad.MIN, Pad.MAX):
            return 0
        if dtype.name not in _BITS:
            raise fail("PTO-L006", f"pad {self.name} is not defined by the ISA for {dtype.name}")
        return _BITS[dtype.name][self == Pad.MAX]


Pad.NULL = Pad("null", 0)
Pad.ZERO = Pad("zero", 1)
Pad.MAX = Pad("max", 2)
Pad.MIN = Pad("min", 3)
Pad.INVALID = Pad("invalid", 0)  # PTO manual only; no number of its own in the text form

PADS: Final = {each.name: each for each in (Pad.NULL, Pad.ZERO, Pad.MAX, Pad.MIN, Pad.INVALID)}
_CODES: Final = {each.code: each for each in (Pad.NULL, Pad.ZERO, Pad.MAX, Pad.MIN)}


def pad(spelling: str | int) -> Pad:
    """The pad a program writes as a name, as 0..3, or as a custom number."""
    if isinstance(spelling, str):
        pad_value = PADS.get(spelling.lower())
    elif CUSTOM_BASE <= spelling < 2 * CUSTOM_BASE:
        pad_value = Pad.custom_bits(spelling - CUSTOM_BASE)
    else:
        pad_value = _CODES.get(spelling)
    if pad_value is None:
        raise fail(
            "PTO-L005",
            f"unknown pad value `{spelling}`; the names are {', '.join(PADS)}, the numbers 0 to 3 "
            f"and custom numbers {CUSTOM_BASE:#x} plus 32 bits",
            help=nearest(str(spelling).lower(), PADS),
        )
    return pad_value
