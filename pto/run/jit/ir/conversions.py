"""Items of one element type as another in compiled code: the bits that `core.convert` gives. A
definition in primitives, as those of lane functions are.

A value is widened to f32 or f64, which hold it exactly, limited where the pair saturates, rounded
once to the grid of the destination and packed. Bytes that are floats go by the tables of
`core.convert`. Packed types, and 64-bit integers to f64 in odd modes, are not native.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from pto.core.convert import byte_table, clamps_specials
from pto.core.dtypes import BF16, E8M0, F16, F32, F64, HIFLOAT8, I1, DType, pair_rounding
from pto.core.floats import FloatFormat, Round, round_integral, values_of
from pto.core.primitives import (
    absolute,
    const,
    copysign,
    greater_of,
    isinf,
    less_of,
    rint,
    select,
)
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import Kind, unsupported_if

Lane = Any  # lanes: the symbols of an engine
_SMALL: Final = (F16, BF16, F32)
integral: Any = round_integral


def convert(
    a: Lane,
    src: DType,
    dst: DType,
    rounding: Round = Round.RINT,
    saturate: bool = True,
    keep_nan: bool = False,
) -> Lane:
    """As `core.convert.convert`. A type that NumPy does not compute with is held as its bits."""
    unsupported_if(src.is_packed or dst.is_packed or I1 in (src, dst), "packed elements")
    if src is dst:
        return a
    mode = pair_rounding(rounding, src.is_float, dst)
    if src.itemsize == 1 and src.is_float:
        table = byte_table(src, dst, mode, saturate, keep_nan)
        return as_kind(lookup(a.view(np.uint8), table), dst)
    if dst.is_integer:
        to_integer = _of_float if src.is_float else _of_integer
        return to_integer(a, src, dst, mode, saturate)
    if src.is_float:
        return _float_of_float(a, src, dst, mode, saturate, keep_nan)
    return _float_of_integer(a, src, dst, mode, saturate)


def as_kind(a: Lane, dst: DType) -> Lane:
    """Bits under the type that arithmetic sees, where there is one."""
    return a.view(dst.numpy if kinds.computes(dst.numpy) else dst.storage)


# ---- tables


class Table(NamedTuple):
    """The entries of a table, as a part of an expression."""

    data: bytes
    dtype: Kind


def lookup(index: Lane, table: np.ndarray[Any, Any]) -> Lane:
    """table[index] for a table known when the code is made; the index lies inside."""
    return index.primitive("lookup", (index, Table(table.tobytes(), table.dtype)))


# ---- to integers


def _of_integer(a: Lane, src: DType, dst: DType, mode: Round, saturate: bool) -> Lane:
    if saturate and dst.min > src.min:
        a = greater_of(a, const(a, dst.min))
    if saturate and dst.max < src.max:
        a = less_of(a, const(a, dst.max))
    return a.astype(dst.numpy)


def _of_float(a: Lane, src: DType, dst: DType, mode: Round, saturate: bool) -> Lane:
    whole: Any = integral(_exact(a, src), mode)
    if saturate:
        return _limited(whole, dst.numpy)
    # the 64-bit pattern wraps; beyond it all ones, or the lowest
    if whole.dtype == kinds.F32 and dst.bits <= 32:
        return _low_word(whole, src).astype(dst.numpy)
    signed, unsigned = (_limited(whole, np.dtype(k)) for k in (np.int64, np.uint64))
    low = whole < const(whole, 2.0**63)
    return select(low, signed.view(np.uint64), unsigned).astype(dst.numpy)


def _low_word(whole: Lane, src: DType) -> Lane:
    """The low 32 bits of an integral f32 as a 64-bit integer has them. The remainder by 2^32 is
    exact, and half of 2^32 has two representations in 32 bits; f16 does not reach that far."""
    half = 2.0**31
    full = 2.0**32
    word = np.dtype(np.int32)
    rest, beyond = whole, _like(whole, np.inf if src is F16 else full * full)
    if src is not F16:
        rest = whole - rint(whole * (1 / full)) * full
        rest = select(rest < half, rest, _like(whole, -half))
    rest = select(absolute(whole) < beyond, rest, _like(whole, 0.0))
    found = rest.primitive("to_integer", (rest, word))
    return select(whole >= beyond, _like(found, -1), found)


def one_nan(a: Lane) -> Lane:
    """A NaN is the positive quiet one without payload."""
    return select(a != a, const(a, np.nan), a)


def _limited(a: Lane, kind: Kind) -> Lane:
    """An integral float as an integer, limited to its range; NaN is 0."""
    if kind.itemsize == 8 or (kind.itemsize == 4 and kind.kind == "u"):
        return a.primitive("saturated", (a, kind))
    info, word = np.iinfo(kind), np.dtype(np.int32)
    # 2^31 - 1 is no f32: what is limited to the one below becomes it afterwards
    beyond = kind.itemsize == 4 and a.dtype == kinds.F32
    low, high = _like(a, info.min), _like(a, 2.0**31 - 128 if beyond else info.max)
    inside = select(a > low, a, low)
    inside = select(inside < high, inside, high)
    found: Any = inside.primitive("to_integer", (inside, word))
    if beyond:
        found = select(a > high, _like(found, info.max), found)
    return select(a != a, _like(found, 0), found).astype(kind)


# ---- to floats


def _exact(a: Lane, src: DType) -> Lane:
    """In f32 or f64."""
    return a.astype(kinds.F32) if src in _SMALL else a


def _float_of_integer(a: Lane, src: DType, dst: DType, mode: Round, saturate: bool) -> Lane:
    if src.bits == 64:
        if mode is Round.RINT and dst in (F32, F64):
            return a.astype(dst.numpy)
        unsupported_if(dst is F64, f"{mode.name} from {src} to {dst}")
        wide = _for_rounding(a)
        return _rounded(_clip(wide, _form(dst)) if saturate and dst.bits < 32 else wide, dst, mode)
    if src.bits == 32 and dst is F32 and mode is Round.RINT:
        return a.astype(kinds.F32)
    wide = a.astype(kinds.F64 if src.bits == 32 else kinds.F32)
    if dst is F64:
        return wide.astype(kinds.F64)
    if dst is F32 and src.bits < 32:
        return wide
    form = _form(dst)
    if saturate and form.saturates:
        wide = _clip(wide, form)
    return _rounded(wide, dst, mode)


def _for_rounding(a: Lane) -> Lane:
    """64-bit integers as f64 with what does not fit folded into the last bit (round to odd), as
    `rounding.floats_for_rounding` does."""
    below = a < 0 if a.dtype.kind == "i" else np.False_
    bits = a.view(np.uint64)
    size: Any = select(below, 0 - bits, bits)
    lost = ((size & 0x7FF) != 0).astype(np.dtype(np.uint64)) << 11
    folded = (size | lost) & ~np.uint64(0x7FF)
    kept = select(size < (1 << 53), size, folded).astype(kinds.F64)
    return select(below, -kept, kept)


def _float_of_float(
    a: Lane, src: DType, dst: DType, mode: Round, saturate: bool, keep_nan: bool
) -> Lane:
    wide, form = _exact(a, src), _form(dst)
    nearest = dst is F16 and wide.dtype == kinds.F32 and mode is Round.RINT
    if nearest and saturate and clamps_specials(src, dst):
        return _limited_half(wide.astype(kinds.F16), form, keep_nan)
    if saturate and form.saturates:
        limited = _clip(wide, form)
        if clamps_specials(src, dst):
            wide = limited if keep_nan else _without_nan(limited, 0.0)
        else:
            wide = select(isinf(wide), wide, limited) if form.inf else limited
    return _rounded(wide, dst, mode)


def _limited_half(a: Lane, form: FloatFormat, keep_nan: bool) -> Lane:
    """Clamp f16 results by their bits: infinity from rounding becomes the greatest number, and NaN
    becomes 0 or the positive quiet one."""
    bits = a.view(np.uint16)
    size = bits & 0x7FFF
    most, nan = (int(np.array(v, np.float16).view(np.uint16)) for v in (form.max, np.nan))
    found: Any = less_of(size, _like(size, most)) | (bits & 0x8000)
    by = _like(size, nan if keep_nan else 0)
    return select(size > most + 1, by, found).view(np.float16)


def _form(dst: DType) -> FloatFormat:
    if dst.form is None:
        raise TypeError(f"{dst} is no float")
    return dst.form


def _clip(a: Lane, form: FloatFormat) -> Lane:
    """Into the finite range; NaN stays."""
    low, high = (const(a, v) for v in (form.min, form.max))
    above = select(a < low, low, a)
    return select(above > high, high, above)


def _without_nan(a: Lane, by: float) -> Lane:
    return select(a != a, const(a, by), a)


def _rounded(a: Lane, dst: DType, mode: Round) -> Lane:
    """f32 or f64 as `dst`, rounded once; a NaN is the positive quiet one."""
    form = _form(dst)
    if dst in (F16, BF16, F32, F64):
        if mode is Round.RINT or (dst.bits >= 32 and a.dtype == dst.numpy) or dst is F64:
            return one_nan(a).astype(dst.numpy)
        return _on_grid(_roomy(one_nan(a), dst), form, mode).astype(dst.numpy)
    return _byte(_on_grid(_roomy(a, dst), form, mode), dst)


def _roomy(a: Lane, dst: DType) -> Lane:
    """bf16 and e8m0 reach as far as f32: their smallest steps need f64."""
    return a.astype(kinds.F64) if dst in (BF16, E8M0) else a


_SPARE: Final = 27
_FIELDS: Final = {  # of a float: the integer that holds it, mantissa bits, bias
    kinds.F32: (np.dtype(np.int32), 23, 127),
    kinds.F64: (np.dtype(np.int64), 52, 1023),
}


def _on_grid(a: Lane, form: FloatFormat, mode: Round) -> Lane:
    """Rounded to a value of the format, with IEEE overflow: `floats.round_into`."""
    kind, bits, bias = _FIELDS[a.dtype]
    field = (a.view(kind) >> bits) & (2 * bias + 1)
    exponent = greater_of(field - bias, form.emin)
    # beyond the range of all rounded formats, any step with an inverse will do
    exponent = less_of(exponent, bias - _SPARE)
    power = exponent - _mantissa(exponent, form)
    step, back = (((p + bias) << bits).view(a.dtype) for p in (power, -power))
    whole: Any = integral(a * back, mode)
    found = whole * step
    if form.bits == 8 and not form.signed:
        tiny = select(a > 0, _like(a, 2.0**form.emin), _like(a, np.nan))
        found = select(found < 2.0**form.emin, tiny, found)
    return _overflowed(found, form, mode)


def _like(a: Lane, value: float) -> Lane:
    return const(a, value)


def _mantissa(exponent: Lane, form: FloatFormat) -> Any:
    if not form.tapers:
        return form.mantissa
    size, found = absolute(exponent), const(exponent, 0)
    for limit, bits in reversed(form.tapers):
        found = select(size <= limit, _like(exponent, bits), found)
    return found


def _overflowed(a: Lane, form: FloatFormat, mode: Round) -> Lane:
    over = absolute(a) > _like(a, form.max)
    outside = copysign(_like(a, np.inf), a) if form.inf else _like(a, np.nan)
    most = copysign(_like(a, form.max), a)
    finite = absolute(a) < _like(a, np.inf)
    if mode in (Round.TRUNC, Round.ODD):
        outside = select(finite, most, outside)
    elif mode is Round.FLOOR:
        outside = select(finite & (a > 0), most, outside)
    elif mode is Round.CEIL:
        outside = select(finite & (a < 0), most, outside)
    return select(over, outside, a)


def _byte(a: Lane, dst: DType) -> Lane:
    """The code of a value that a format of 8 bits holds."""
    form = _form(dst)
    if a.dtype == kinds.F64:
        a = a.astype(kinds.F32)  # exact
    bits = a.view(np.uint32)
    size = bits & 0x7FFFFFFF
    codes = {HIFLOAT8: _tapered_code, E8M0: _scale_code}.get(dst, _plain_code)
    code = codes(size, form)
    if form.signed:
        sign = (bits >> 31) << 7
        if dst is HIFLOAT8:  # one zero: its negative is the NaN
            sign = select(size == 0, _like(sign, 0), sign)
        if form.inf:
            code = select(size == 0x7F800000, _like(code, _infinity(form)), code)
        code = code | sign
    code = select(a != a, _like(code, form.nan or 0), code)
    return as_kind(code.astype(np.dtype(np.uint8)), dst)


def _infinity(form: FloatFormat) -> int:
    return int(np.flatnonzero(values_of(form) == np.inf)[0])


def _plain_code(size: Lane, form: FloatFormat) -> Lane:
    """Of |value|, by its f32 bits."""
    normal = (size >> (23 - form.mantissa)) - ((127 + form.emin - 1) << form.mantissa)
    steps = size.view(np.float32) * _like(size.view(np.float32), 2.0 ** (form.mantissa - form.emin))
    small = _limited(steps, np.dtype(np.uint32))
    limit = (127 + form.emin) << 23
    return select(size < limit, small, normal)


def _scale_code(size: Lane, form: FloatFormat) -> Lane:
    """2^-127 is subnormal in f32: its exponent field is 0 as its code is."""
    return size >> 23


def _tapered_code(size: Lane, form: FloatFormat) -> Lane:
    """The code of the power of two, and the fraction behind it."""
    field = size >> 23
    place = less_of(greater_of(field, 127 + form.emin), 127 + 15) - (127 + form.emin)
    codes = {v: n for n, v in enumerate(values_of(form)[:128]) if np.isfinite(v)}
    powers = range(form.emin, 16)
    first = np.array([codes[2.0**e] for e in powers], np.uint8)
    shifts = np.array([23 - form.mantissa_at(e) for e in powers], np.uint8)
    wide = np.dtype(np.uint32)
    base, shift = (lookup(place, t).astype(wide) for t in (first, shifts))
    found = base + ((size & 0x7FFFFF) >> shift)
    return select(size == 0, _like(size, 0), found)
