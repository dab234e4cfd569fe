"""Every element type of the machine: its size, its spellings, and items <-> exact values.

How a float format is built lives in `core/floats.py`; conversion of items from one type to
another in `core/convert.py`; which type a target allows in `pto/target`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from pto.core import floats
from pto.core.constants import VLANE_BYTES, VREG_BYTES
from pto.core.errors import fail, nearest
from pto.core.floats import (
    FloatFormat,
    Round,
    clamp_integers,
    floats_for_rounding,
    floats_of_integers,
    integers_of_floats,
)

Kind = Literal["int", "uint", "float", "bool"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DType:
    """One element type. There is one object per type, so `is` and `==` are the same question."""

    name: str  # the SSA name of the PTO manual (Data Format)
    kind: Kind
    bits: int  # of one value; an item of a packed type holds several values
    values_per_item: int
    storage: np.dtype[Any]  # the unsigned integer that holds one item
    numpy: np.dtype[Any]  # what arithmetic sees; the storage type where NumPy has no such type
    spellings: tuple[str, ...]
    form: FloatFormat | None = None
    itemsize: int = field(init=False)  # bytes of one item
    is_packed: bool = field(init=False)  # one item holds several values
    is_float: bool = field(init=False)
    is_integer: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "itemsize", self.storage.itemsize)
        object.__setattr__(self, "is_packed", self.values_per_item > 1)
        object.__setattr__(self, "is_float", self.kind == "float")
        object.__setattr__(self, "is_integer", self.kind in ("int", "uint"))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (self.name,)  # a copy or an unpickled type is the type itself

    @property
    def lanes(self) -> int:
        """Items in one vector register."""
        return VREG_BYTES // self.itemsize

    @property
    def per_vlane(self) -> int:
        """Items in one VLane of a vector register."""
        return VLANE_BYTES // self.itemsize

    @property
    def is_signed(self) -> bool:
        return self.form.signed if self.form else self.kind == "int"

    @property
    def max(self) -> int | float:
        """The largest finite value."""
        if self.form:
            return self.form.max
        return (1 << (self.bits - self.is_signed)) - 1

    @property
    def min(self) -> int | float:
        """The lowest finite value: -max of a signed float, 2^-127 of e8m0."""
        if self.form:
            return self.form.min
        return -(1 << (self.bits - 1)) if self.is_signed else 0


def _integer(name: str, spellings: str = "") -> DType:
    """`i8`, `u16`: all but further spellings follows from the name."""
    bits, word = int(name[1:]), f"{'u' * (name[0] == 'u')}int{name[1:]}"
    signed = f"s{name}" if name[0] == "i" else f"ui{bits}"
    names = (name, signed, word, f"{word}_t", *spellings.split())
    kind = "int" if name[0] == "i" else "uint"
    return DType(name, kind, bits, 1, np.dtype(f"u{bits // 8}"), np.dtype(word), names)


def _float(name: str, form: FloatFormat, spellings: str, numpy: Any = None) -> DType:
    per_item = 2 if name.endswith("x2") else 1
    storage = np.dtype(f"u{form.bits * per_item // 8}")
    view = numpy or (form.native if per_item == 1 else None) or storage
    names = (name, *spellings.split())
    return DType(name, "float", form.bits, per_item, storage, np.dtype(view), names, form)


# Spellings: the SSA and C++ names of the manual, the builtin and `!pto.` types of programs, and the
# NumPy names. A signless integer is signed, as programs and their compiler read it.
I8: Final = _integer("i8")
U8: Final = _integer("u8")
I16: Final = _integer("i16")
U16: Final = _integer("u16")
I32: Final = _integer("i32", "int")
U32: Final = _integer("u32", "unsigned")
I64: Final = _integer("i64")
U64: Final = _integer("u64")
F16: Final = _float("f16", floats.IEEE_F16, "half float16 aclFloat16")
BF16: Final = _float("bf16", floats.BRAIN_F16, "bfloat16 bfloat16_t __bf16")
# Only converted from and to float4 pairs, and read as two bf16.
BF16X2: Final = _float("bf16x2", floats.BRAIN_F16, "!pto.bf16x2")
F32: Final = _float("f32", floats.IEEE_F32, "float float32")
F64: Final = _float("f64", floats.IEEE_F64, "double float64")
# `f8E4M3` in programs is the same hardware type as `f8E4M3FN`: no infinity, one NaN a sign.
F8E4M3: Final = _float(
    "f8e4m3",
    floats.E4M3,
    "f8E4M3FN f8E4M3 float8_e4m3_t float8_e4m3fn float8_e4m3 fp8_e4m3 fp8_e4m3fn_t",
    ml_dtypes.float8_e4m3fn,
)
F8E5M2: Final = _float(
    "f8e5m2",
    floats.E5M2,
    "f8E5M2 float8_e5m2_t float8_e5m2 fp8_e5m2 fp8_e5m2_t",
    ml_dtypes.float8_e5m2,
)
HIFLOAT8: Final = _float("hifloat8", floats.HIFLOAT, "!pto.hif8 hif8 hifloat8_t")
E8M0: Final = _float(
    "e8m0",
    floats.POWER_OF_TWO,
    "f8E8M0FNU !pto.f8E8M0 float8_e8m0_t float8_e8m0fnu",
    ml_dtypes.float8_e8m0fnu,
)
_E1M2 = "!pto.f4E1M2x2 f4E1M2x2 f4e1m2x2 float4_e1m2x2_t fp4_e1m2x2"
_E2M1 = "!pto.f4E2M1x2 f4E2M1x2 f4e2m1x2 float4_e2m1x2_t fp4_e2m1x2"
FLOAT4_E1M2X2: Final = _float("float4_e1m2x2", floats.E1M2, _E1M2)
FLOAT4_E2M1X2: Final = _float("float4_e2m1x2", floats.E2M1, _E2M1)
_BYTE = np.dtype(np.uint8)
I1: Final = DType("i1", "bool", 1, 1, _BYTE, np.dtype(np.bool_), ("i1", "bool"))
I4X2: Final = DType("i4x2", "int", 4, 2, _BYTE, _BYTE, ("i4x2", "i4", "si4", "int4b_t"))

# fmt: off
ALL: Final[tuple[DType, ...]] = (
    I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64,
    F8E4M3, F8E5M2, HIFLOAT8, E8M0, FLOAT4_E1M2X2, FLOAT4_E2M1X2, I1, I4X2, BF16X2,
)
# fmt: on

_BY_SPELLING: Final = {spelling: t for t in ALL for spelling in t.spellings}
BY_NUMPY: Final = {t.numpy: t for t in ALL if t.numpy != t.storage or t.kind == "uint"}


def dtype(spelling: str | DType | np.dtype[Any]) -> DType:
    """The type a program names, in the case programs write it, or the type of a NumPy array."""
    if isinstance(spelling, DType):
        return spelling
    is_word = isinstance(spelling, str)
    type_of_spelling = _BY_SPELLING.get(spelling) if is_word else BY_NUMPY.get(spelling)
    if type_of_spelling is None:
        name = spelling if is_word else spelling.name
        raise fail("PTO-T001", f"`{name}` is not an element type", help=_help_for(name))
    return type_of_spelling


def _help_for(unknown: str) -> str:
    if unknown == "index":
        return "`index` counts and has no size in memory: store an index as `i32` or `i64`"
    other_case = [s for s in _BY_SPELLING if s.lower() == unknown.lower()]
    if other_case:
        return f"did you mean `{other_case[0]}`? Type names are spelled in this case"
    all_names = "the element types are " + ", ".join(t.name for t in ALL)
    return nearest(unknown, _BY_SPELLING) or all_names


# --- items <-> values -------------------------------------------------------------------------


def items_of(t: DType, items: npt.ArrayLike) -> npt.NDArray[Any]:
    """`items` as storage items of `t`, without a copy; they come in either view of `t`."""
    array = np.asarray(items)
    if array.dtype not in (t.storage, t.numpy):
        allowed = " or ".join(dict.fromkeys((t.storage.name, t.numpy.name)))
        raise fail(
            "PTO-T002",
            f"items of {t} have the NumPy type {allowed}, not {array.dtype.name}",
            help="convert numbers to items with `encode`",
        )
    return array.view(t.storage)


def unpack_nibbles(items: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Both codes of each byte, the low nibble first, along the last axis."""
    items = np.atleast_1d(items)
    pairs = np.stack([items & np.uint8(0xF), items >> np.uint8(4)], axis=-1)
    return pairs.reshape(*items.shape[:-1], items.shape[-1] * 2)


def _halves(items: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Both halves of each word, the low one first, along the last axis."""
    return np.ascontiguousarray(np.atleast_1d(items)).view(np.uint16)


def pack_nibbles(t: DType, codes: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Two codes an item, the first in the low nibble."""
    count = codes.shape[-1] if codes.ndim else 1
    if count % 2:
        raise fail(
            "PTO-T003",
            f"{t} packs two values into one item, and {count} values do not pair up",
            help="pad the last axis to an even length",
        )
    codes = codes.astype(np.uint8) & np.uint8(0xF)
    return codes[..., 0::2] | (codes[..., 1::2] << np.uint8(4))


def decode(t: DType, items: npt.ArrayLike) -> npt.NDArray[Any]:
    """The exact values of `items`: float64, int64, or uint64 of u64.

    A packed type gives its two values side by side along the last axis.
    """
    stored = items_of(t, items)
    if t.is_packed:
        stored = _halves(stored) if t is BF16X2 else unpack_nibbles(stored)
    if t.form:
        return np.asarray(floats.unpack(t.form, stored))
    if t is I1:
        return np.asarray(stored & np.uint8(1)).astype(np.int64)
    if t is I4X2:
        return (stored ^ np.uint8(8)).astype(np.int64) - 8
    return stored.view(t.numpy).astype(np.uint64 if t is U64 else np.int64)


def numbers_of(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """`values` as float64, int64 or uint64, exactly."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return array.astype(np.uint64 if array.dtype == np.uint64 else np.int64, copy=False)
    # NumPy calls most floats of ml_dtypes kind V, as it does records.
    kind, home = array.dtype.kind, array.dtype.type.__module__
    if (kind == "f" or (kind == "V" and home == "ml_dtypes")) and array.dtype.itemsize <= 8:
        return array.astype(np.float64, copy=False)
    raise fail(
        "PTO-T004",
        f"values of NumPy type {array.dtype.name} are not numbers of at most 64 bits",
        help="give integers, floats or booleans that fit 64 bits",
    )


def encode(
    t: DType, values: npt.ArrayLike, rounding: Round = Round.RINT, saturate: bool = True
) -> npt.NDArray[Any]:
    """The storage items of `t` that hold `values`, each rounded once.

    `saturate` limits finite values to the range of `t`; without it a float overflows as IEEE has
    it and an integer wraps modulo 2^bits. f32 and f64 never saturate. A type that has inf and NaN
    keeps them. In other types inf becomes the end of the range (in e4m3 and e8m0 without
    `saturate`: NaN) and NaN becomes 0.
    """
    numbers = numbers_of(values)
    mode = pair_rounding(rounding, numbers.dtype.kind == "f", t)
    to_codes = _integer_codes if t.form is None else _float_codes
    codes = to_codes(t, np.atleast_1d(numbers), mode, saturate).reshape(numbers.shape)
    if t is BF16X2:
        return np.ascontiguousarray(codes.astype(np.uint16)).view(np.uint32)
    return pack_nibbles(t, codes) if t.is_packed else codes


def pair_rounding(rounding: Round, from_float: bool, t: DType) -> Round:
    """`rounding`, with NONE replaced by the default of the pair (`Round`)."""
    if rounding is not Round.NONE:
        return rounding
    if t is HIFLOAT8:
        return Round.ROUND
    return Round.TRUNC if from_float and t.form is None else Round.RINT


def _float_codes(
    t: DType, numbers: npt.NDArray[Any], mode: Round, saturate: bool
) -> npt.NDArray[Any]:
    form = t.form or floats.IEEE_F64
    if numbers.dtype.kind != "f":
        exact = t is F64
        numbers = floats_of_integers(numbers, mode) if exact else floats_for_rounding(numbers)
    if saturate and form.saturates:
        numbers = floats.limit(form, numbers)
    return floats.pack(form, floats.round_into(form, numbers, mode))


def _integer_codes(
    t: DType, numbers: npt.NDArray[Any], mode: Round, saturate: bool
) -> npt.NDArray[Any]:
    low, high = int(t.min), int(t.max)
    if numbers.dtype.kind == "f":
        numbers = integers_of_floats(numbers, mode, low, high, saturate)
    elif saturate:
        numbers = clamp_integers(numbers, low, high)
    codes = numbers.astype(t.storage)
    return codes & np.uint8(1) if t is I1 else codes
