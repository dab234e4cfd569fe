"""Every pattern of every type of at most 16 bits, to every type, against NumPy, ml_dtypes,
en_dtypes and the neighbour search of `oracle.py`. Issue text: "Exact: exhaustive tests over every
4-, 8- and 16-bit pattern".
"""

import math

import numpy as np
import pytest

from pto.core import dtypes as d
from pto.core.convert import Round, convert
from pto.core.dtypes import DType, decode, encode

from . import oracle

SMALL_FLOATS = [t for t in d.ALL if t.is_float and t.bits <= 16 and t.name != "bf16x2"]
# a pair of bf16 is a word of SIMT code: nothing converts it as one
TYPES = [t for t in d.ALL if t.name != "bf16x2"]
NARROW = [t for t in TYPES if t.bits <= 16]
INTEGERS = [t for t in TYPES if t.is_integer]
MODES = [Round[name] for name in oracle.MODES]


def by_name(t: DType) -> str:
    return t.name


def pairs(destinations: list[DType]) -> list[tuple[DType, DType]]:
    """Every type of at most 16 bits with every other type it is converted to."""
    return [(src, dst) for src in NARROW for dst in destinations if src is not dst]


def patterns(t: DType) -> np.ndarray:
    """Every item of a type of at most 16 bits."""
    if t is d.I1:
        return np.array([False, True])
    items = np.arange(1 << (8 * t.itemsize), dtype=t.storage)
    return items.view(t.numpy)


def outside_values(t: DType) -> np.ndarray:
    """The values of `patterns(t)` as float64, from outside; two an item where it is packed."""
    if t.is_packed:
        codes = np.arange(256)
        each = np.stack([codes & 15, codes >> 4], axis=-1).reshape(-1)
        if t.is_float:
            return oracle.values_of_codes(t.name)[each]
        return np.where(each > 7, each - 16, each).astype(np.float64)
    return patterns(t).astype(np.float64) if not t.is_float else oracle.values_of_codes(t.name)


def same_values(got: np.ndarray, expected: np.ndarray) -> bool:
    """Equal values, equal signs of zero, NaN in the same places."""
    nan = np.isnan(expected)
    return bool(
        np.array_equal(np.isnan(got), nan)
        and np.array_equal(got[~nan], expected[~nan])
        and np.array_equal(np.signbit(got[~nan]), np.signbit(expected[~nan]))
    )


def outside_cast(values: np.ndarray, t: DType) -> np.ndarray:
    """NumPy's, ml_dtypes' or en_dtypes' own cast: values of at most 16 bits are exact in f32, so
    it rounds once."""
    with np.errstate(all="ignore"):
        return values.astype(np.float32).astype(oracle.OUTSIDE[t.name]).astype(np.float64)


@pytest.mark.parametrize("t", NARROW, ids=by_name)
def test_every_pattern_decodes_to_the_outside_value(t: DType):
    assert same_values(decode(t, patterns(t)).astype(np.float64), outside_values(t))


@pytest.mark.parametrize("t", NARROW, ids=by_name)
def test_every_pattern_survives_a_round_trip(t: DType):
    items = patterns(t)
    again = encode(t, decode(t, items))
    same = again == items.view(t.storage)
    if t.is_float and not t.is_packed:
        assert np.array_equal(np.isnan(decode(t, again)), np.isnan(outside_values(t)))
        same |= np.isnan(outside_values(t))  # NaN comes back as the one canonical NaN
    assert same.all()


def test_nan_is_the_positive_quiet_one_in_every_type():
    canonical = {d.F16: 0x7E00, d.BF16: 0x7FC0, d.F32: 0x7FC00000, d.F64: 0x7FF8 << 48}
    canonical |= {d.F8E4M3: 0x7F, d.F8E5M2: 0x7E, d.HIFLOAT8: 0x80, d.E8M0: 0xFF}
    for src in (d.F16, d.BF16, d.F8E4M3, d.F8E5M2, d.HIFLOAT8, d.E8M0):
        unknown = patterns(src)[np.isnan(outside_values(src))]
        for dst in canonical.keys() - {src}:
            found = convert(unknown, src, dst, saturate=False).view(dst.storage)
            assert set(found.tolist()) == {canonical[dst]}, (src, dst)


@pytest.mark.parametrize(("src", "dst"), pairs([t for t in TYPES if t.is_float]), ids=by_name)
def test_nearest_conversion_agrees_with_the_outside_cast(src: DType, dst: DType):
    # en_dtypes rounds ties of hifloat8 away, the only mode the hardware has for it.
    mode = Round.ROUND if dst is d.HIFLOAT8 else Round.RINT
    values = outside_values(src)
    expected = outside_cast(values, dst)
    if dst.form is not None and dst.form.nan is None:
        expected[np.isnan(values)] = 0.0  # the outside casts disagree: +0 and -0
    if dst is d.E8M0:
        # ml_dtypes rounds f32 subnormals just above 2^-127 up to 2^-126, which is not nearest.
        expected[(values > 2.0**-127) & (values < 1.5 * 2.0**-127)] = 2.0**-127
    got = decode(dst, convert(patterns(src), src, dst, mode, saturate=False))
    assert same_values(got, expected)


@pytest.mark.parametrize(("src", "dst"), pairs(SMALL_FLOATS), ids=by_name)
def test_every_mode_picks_the_right_neighbour(src: DType, dst: DType):
    values = outside_values(src)
    for mode in MODES:
        loose = decode(dst, convert(patterns(src), src, dst, mode, saturate=False))
        assert same_values(loose, oracle.rounded(dst.name, values, mode.name, False)), mode
        tight = decode(dst, convert(patterns(src), src, dst, mode, saturate=True))
        limited = oracle.rounded(dst.name, values, mode.name, True)
        if src.is_float and not oracle.clamps_specials(src.name, dst.name):
            limited = np.where(np.isfinite(values), limited, values)
        assert same_values(tight, limited), mode


@pytest.mark.parametrize("dst", SMALL_FLOATS, ids=by_name)
def test_no_double_rounding_from_f64_near_any_tie(dst: DType):
    sizes = oracle.grid(dst.name).sizes
    middle = (sizes[1:] + sizes[:-1]) / 2
    near = np.concatenate([np.nextafter(middle, 0), middle, np.nextafter(middle, np.inf), sizes])
    near = np.concatenate([near, -near])
    for mode in MODES:
        expected = oracle.rounded(dst.name, near, mode.name, False)
        got = decode(dst, convert(near, d.F64, dst, mode, saturate=False))
        assert same_values(got, expected), mode


@pytest.mark.parametrize("dst", SMALL_FLOATS, ids=by_name)
def test_no_double_rounding_from_f32_near_any_tie(dst: DType):
    sizes = oracle.grid(dst.name).sizes
    middle = ((sizes[1:] + sizes[:-1]) / 2).astype(np.float32)
    near = np.concatenate([np.nextafter(middle, np.float32(0)), middle])
    near = np.concatenate([near, np.nextafter(middle, np.float32(np.inf))])
    near = np.concatenate([near, -near])
    for mode in MODES:
        expected = oracle.rounded(dst.name, near.astype(np.float64), mode.name, False)
        got = decode(dst, convert(near, d.F32, dst, mode, saturate=False))
        assert same_values(got, expected), mode


def integral(values: np.ndarray, mode: Round) -> np.ndarray:
    """Finite float64 values rounded to Python integers, by arithmetic on Python integers."""
    floors = np.array([math.floor(v) for v in values], dtype=object)
    rest = values - np.array([float(f) for f in floors])
    odd = np.array([f % 2 == 1 for f in floors], dtype=bool)
    up = {
        Round.RINT: (rest > 0.5) | ((rest == 0.5) & odd),
        Round.ROUND: (rest > 0.5) | ((rest == 0.5) & (values > 0)),
        Round.FLOOR: np.zeros(rest.shape, bool),
        Round.CEIL: rest > 0,
        Round.TRUNC: (rest > 0) & (values < 0),
        Round.ODD: (rest > 0) & ~odd,
    }[mode]
    return floors + up.astype(int)


def wrapped(numbers: np.ndarray, t: DType) -> np.ndarray:
    bits = np.clip(numbers, -(2**63), 2**64 - 1) & ((1 << t.bits) - 1)
    return np.where(t.is_signed & (bits >> (t.bits - 1) > 0), bits - (1 << t.bits), bits)


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
@pytest.mark.parametrize("src", SMALL_FLOATS, ids=by_name)
def test_every_float_pattern_to_every_integer_type(src: DType, mode: Round):
    values = outside_values(src)
    finite = np.isfinite(values)
    whole = np.zeros(values.shape, dtype=object)
    whole[finite] = integral(values[finite], mode)
    whole[values == np.inf] = 2**64 - 1  # low bits all ones; clamps like any large number
    whole[values == -np.inf] = -(2**63)
    for dst in [*INTEGERS, d.I1]:
        tight = decode(dst, convert(patterns(src), src, dst, mode, saturate=True))
        assert np.array_equal(tight, np.clip(whole, dst.min, dst.max)), dst
        loose = decode(dst, convert(patterns(src), src, dst, mode, saturate=False))
        assert np.array_equal(loose, wrapped(whole, dst)), dst


@pytest.mark.parametrize("src", [t for t in NARROW if not t.is_float], ids=by_name)
def test_every_integer_pattern_to_every_integer_type(src: DType):
    values = outside_values(src).astype(np.int64).astype(object)
    for dst in [*INTEGERS, d.I1]:
        tight = decode(dst, convert(patterns(src), src, dst, saturate=True))
        assert np.array_equal(tight, np.clip(values, dst.min, dst.max)), dst
        loose = decode(dst, convert(patterns(src), src, dst, saturate=False))
        assert np.array_equal(loose, wrapped(values, dst)), dst


@pytest.mark.parametrize("src", [d.F16, d.BF16, d.F8E4M3, d.F8E5M2, d.HIFLOAT8], ids=by_name)
def test_keep_nan_changes_nothing_but_nan(src: DType):
    for dst in SMALL_FLOATS:
        if src is dst or dst.is_packed:
            continue
        kept = decode(dst, convert(patterns(src), src, dst, keep_nan=True))
        plain = decode(dst, convert(patterns(src), src, dst))
        unknown = np.isnan(outside_values(src))
        assert np.isnan(kept[unknown]).all()
        assert same_values(kept[~unknown], plain[~unknown])
