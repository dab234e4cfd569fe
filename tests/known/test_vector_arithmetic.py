"""Lane-wise arithmetic: numbers worked out by hand or by NumPy, edge values, and masked lanes."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from pto.core.dtypes import dtype
from tests.vectors import Registers, reg

INF, NAN = np.inf, np.nan
SIGNED = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
UNSIGNED = {"ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32}
INTEGERS = {**SIGNED, **UNSIGNED}
MASK = {1: 8, 2: 16, 4: 32, 8: 32}


def bits_of(elem):
    return MASK[dtype(elem).itemsize]


def lanewise(row, elem, *sources, lanes=None, scalar=None, constant="", profile="a5"):
    """pto.row on registers of `sources` (and a scalar last), under a mask of these lanes."""
    bench = Registers(profile)
    names = []
    for n, values in enumerate(sources):
        bench.vreg(f"v{n}", elem, values)
        names.append(f"v{n}")
    if scalar is not None:
        bench.scalar("k", constant or elem, scalar)
        names.append("k")
    bench.mask("m", bits_of(elem), lanes)
    names.append("m")
    values = ", ".join(f"%{n}" for n in names)
    types = ", ".join(f"{{{n}}}" for n in names)
    return bench.one(f"%r = pto.{row} {values} : {types} -> {reg(elem)}", reg(elem))


def head(values, count):
    return np.asarray(values)[:count]


def same_bits(got, want):
    want = np.asarray(want)
    return got[: want.size].tobytes() == want.astype(got.dtype).tobytes()


# ---- one register

F = [0.0, -0.0, 1.5, -2.25, INF, -INF]


@pytest.mark.parametrize("elem", ["f16", "f32"])
def test_abs_and_neg_change_the_sign_only(elem):
    assert same_bits(lanewise("vabs", elem, F), [0.0, 0.0, 1.5, 2.25, INF, INF])
    assert same_bits(lanewise("vneg", elem, F), [-0.0, 0.0, -1.5, 2.25, -INF, INF])
    assert np.isnan(lanewise("vabs", elem, [NAN])).all()


@pytest.mark.parametrize("elem", SIGNED)
def test_the_lowest_integer_wraps_to_itself(elem):
    low, high = np.iinfo(SIGNED[elem]).min, np.iinfo(SIGNED[elem]).max
    assert head(lanewise("vabs", elem, [low, -1, high]), 3).tolist() == [low, 1, high]
    assert head(lanewise("vneg", elem, [low, 1, high]), 3).tolist() == [low, -1, -high]


@pytest.mark.parametrize("elem", UNSIGNED)
def test_unsigned_integers_negate_modulo_their_width(elem):
    top = np.iinfo(UNSIGNED[elem]).max
    assert head(lanewise("vneg", elem, [0, 1, top]), 3).tolist() == [0, top, 1]
    assert head(lanewise("vabs", elem, [0, 200, top]), 3).tolist() == [0, 200, top]


def test_exp_and_ln_are_rounded_once():
    x = np.array([0.0, 1.0, -1.0, 88.0, -87.5, 0.5], np.float32)
    assert same_bits(lanewise("vexp", "f32", x), np.exp(x.astype(np.longdouble)))
    y = np.array([1.0, 2.0, 10.0, 1e-38, 3.4e38], np.float32)
    assert same_bits(lanewise("vln", "f32", y), np.log(y.astype(np.longdouble)))
    h = np.array([1.0, -2.0, 11.0], np.float16)
    assert same_bits(lanewise("vexp", "f16", h), np.exp(h.astype(np.float64)))


def test_exp_and_ln_at_their_edges():
    assert same_bits(lanewise("vexp", "f32", [-INF, INF, 89.0, -104.0]), [0.0, INF, INF, 0.0])
    assert same_bits(lanewise("vln", "f32", [0.0, -0.0, INF]), [-INF, -INF, INF])
    assert np.isnan(lanewise("vln", "f32", [-1.0])).all()
    assert np.isnan(lanewise("vexp", "f32", [NAN])).all()


def test_roots_and_reciprocals():
    assert same_bits(lanewise("vsqrt", "f32", [0.0, -0.0, 2.0, INF]), [0.0, -0.0, 2.0**0.5, INF])
    assert same_bits(lanewise("vsqrt", "f16", [2.0, 9.0]), [2.0**0.5, 3.0])
    assert np.isnan(lanewise("vsqrt", "f32", [-1.0])).all()
    assert same_bits(lanewise("vrec", "f32", [4.0, -3.0, 0.0, -INF]), [0.25, -1 / 3, INF, -0.0])
    assert same_bits(lanewise("vrsqrt", "f32", [4.0, 2.0, 0.0, INF]), [0.5, 0.5**0.5, INF, 0.0])


def test_relu_keeps_nan_and_positive_zero():
    got = lanewise("vrelu", "f32", [-1.5, -0.0, 0.0, 2.5, -INF, INF, NAN])
    assert same_bits(got, [0.0, 0.0, 0.0, 2.5, 0.0, INF]) and np.isnan(got[6])
    assert head(lanewise("vrelu", "i32", [-(2**31), -1, 7]), 3).tolist() == [0, 0, 7]


@pytest.mark.parametrize("elem", INTEGERS)
def test_not_count_ones_and_signs(elem):
    kind, bits = INTEGERS[elem], 8 * INTEGERS[elem]().itemsize
    x = np.array([0, 1, 2, 5, 100, 127]).astype(kind)
    x = np.concatenate((x, ~x))
    assert lanewise("vnot", elem, x)[: x.size].tolist() == (~x).tolist()
    patterns = [format(int(v) & ((1 << bits) - 1), f"0{bits}b") for v in x]
    assert lanewise("vbcnt", elem, x)[: x.size].tolist() == [p.count("1") for p in patterns]
    leading = [bits - len(p.lstrip(p[0])) for p in patterns]
    assert lanewise("vcls", elem, x)[: x.size].tolist() == leading


def test_vmov_copies_active_lanes():
    assert head(lanewise("vmov", "f32", [1.0, 2.0, 3.0, 4.0], lanes=[1, 3]), 4).tolist() == [
        0,
        2,
        0,
        4,
    ]


# ---- two registers


@pytest.mark.parametrize("elem", [*INTEGERS, "i64", "ui64"])
def test_integer_sums_wrap(elem):
    kind = dtype(elem).numpy
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    a, b = np.array([high, low, 5, high], kind), np.array([1, 1, 7, high], kind)
    modulo = 1 << (8 * kind.itemsize)

    def wrapped(fn):
        values = [fn(int(x), int(y)) % modulo for x, y in zip(a, b, strict=True)]
        return [v - modulo if v > high else v for v in values]

    assert head(lanewise("vadd", elem, a, b), 4).tolist() == wrapped(lambda x, y: x + y)
    assert head(lanewise("vsub", elem, a, b), 4).tolist() == wrapped(lambda x, y: x - y)


@pytest.mark.parametrize("elem", ["i16", "ui16", "i32", "ui32"])
def test_integer_products_wrap(elem):
    a = np.array([300, 70000, 65535, 3]).astype(INTEGERS[elem])
    want = (a.astype(object) * a.astype(object)) % (1 << (8 * a.itemsize))
    got = lanewise("vmul", elem, a, a)[:4]
    assert [int(v) % (1 << (8 * a.itemsize)) for v in got] == want.tolist()


def test_float_sums_are_rounded_once():
    h = [2048.0, 65504.0, 2.0**-24]
    assert same_bits(lanewise("vadd", "f16", h, [1.0, 65504.0, 2.0**-24]), [2048.0, INF, 2.0**-23])
    b = ml_dtypes.bfloat16
    got = lanewise("vadd", "bf16", [256.0, 1.0], [1.0, 0.00390625])
    assert got[:2].tolist() == [b(256.0), b(1.0)]  # ties to even
    assert same_bits(lanewise("vmul", "f32", [0.1], [0.1]), np.float32(0.1) * np.float32(0.1))


def test_exceptional_sums_and_quotients():
    got = lanewise("vadd", "f32", [INF, INF, 1.0], [-INF, 1.0, NAN])
    assert np.isnan(got[[0, 2]]).all() and got[1] == INF
    got = lanewise("vdiv", "f32", [1.0, -1.0, 0.0, 5.0, INF], [0.0, 0.0, 0.0, INF, INF])
    assert same_bits(got, [INF, -INF]) and np.isnan(got[[2, 4]]).all() and got[3] == 0
    assert same_bits(lanewise("vdiv", "f16", [1.0, 7.0], [3.0, 2.0]), [1 / 3, 3.5])


def test_integers_divide_toward_zero():
    got = lanewise("vdiv", "i32", [7, -7, 7, -7, 9], [2, 2, -2, -2, 0])
    assert head(got, 5).tolist() == [3, -3, -3, 3, 0]


@pytest.mark.parametrize("elem", ["f16", "bf16", "f32"])
def test_max_and_min_let_nan_win(elem):
    a, b = [1.0, -2.0, NAN, 3.0, INF, -INF], [2.0, -3.0, 1.0, NAN, 5.0, 5.0]
    top, low = lanewise("vmax", elem, a, b), lanewise("vmin", elem, a, b)
    assert [float(v) for v in top[[0, 1, 4, 5]]] == [2.0, -2.0, INF, 5.0]
    assert [float(v) for v in low[[0, 1, 4, 5]]] == [1.0, -3.0, 5.0, -INF]
    assert all(np.isnan(float(x[i])) for x in (top, low) for i in (2, 3))


@pytest.mark.parametrize("elem", INTEGERS)
def test_max_and_min_of_integers_know_their_sign(elem):
    a, b = np.array([-1, 3]).astype(INTEGERS[elem]), np.array([1, 2]).astype(INTEGERS[elem])
    larger = 1 if elem in SIGNED else int(a[0])
    smaller = -1 if elem in SIGNED else 1
    assert head(lanewise("vmax", elem, a, b), 2).tolist() == [larger, 3]
    assert head(lanewise("vmin", elem, a, b), 2).tolist() == [smaller, 2]


@pytest.mark.parametrize("elem", INTEGERS)
def test_bitwise(elem):
    a, b = (
        np.array([0b1100, -1, 0]).astype(INTEGERS[elem]),
        np.array([0b1010, 5, -1]).astype(INTEGERS[elem]),
    )
    assert lanewise("vand", elem, a, b)[:3].tolist() == (a & b).tolist()
    assert lanewise("vor", elem, a, b)[:3].tolist() == (a | b).tolist()
    assert lanewise("vxor", elem, a, b)[:3].tolist() == (a ^ b).tolist()


def test_or_of_floats_works_on_their_bits():
    got = lanewise("vor", "f16", [1.0, 0.0, NAN], [0.0, -2.0, 0.0])
    assert got.view(np.uint16)[:3].tolist() == [0x3C00, 0xC000, 0x7E00]
    assert lanewise("vor", "f32", [1.0], [1.5]).view(np.uint32)[0] == 0x3F800000 | 0x3FC00000


def test_shifts_are_arithmetic_for_signed_and_count_modulo_the_width():
    assert head(lanewise("vshl", "ui16", [1, 1, 0x8001, 1], [0, 15, 1, 17]), 4).tolist() == [
        1,
        0x8000,
        2,
        2,
    ]
    assert head(lanewise("vshr", "i16", [-32768, -1, 7, -9], [15, 3, 1, 1]), 4).tolist() == [
        -1,
        -1,
        3,
        -5,
    ]
    assert head(lanewise("vshr", "ui32", [2**32 - 1, 8], [31, 3]), 2).tolist() == [1, 1]
    assert head(lanewise("vshl", "i8", [1, 64, -1], [7, 1, 4]), 3).tolist() == [-128, -128, -16]


# ---- a register and a scalar


def test_scalar_forms():
    x = [1.5, -2.0, 0.0]
    assert head(lanewise("vadds", "f32", x, scalar=2.5), 3).tolist() == [4.0, 0.5, 2.5]
    assert head(lanewise("vsubs", "f32", x, scalar=2.5), 3).tolist() == [-1.0, -4.5, -2.5]
    assert head(lanewise("vmuls", "f32", x, scalar=-2.0), 3).tolist() == [-3.0, 4.0, -0.0]
    assert head(lanewise("vmaxs", "f32", x, scalar=0.5), 3).tolist() == [1.5, 0.5, 0.5]
    assert head(lanewise("vmins", "f32", x, scalar=0.5), 3).tolist() == [0.5, -2.0, 0.0]


def test_a_signless_scalar_gives_its_bits_to_the_register():
    assert lanewise("vadds", "ui16", [65535], scalar=-2, constant="i16")[0] == 65533
    assert lanewise("vmaxs", "ui8", [128], scalar=-127, constant="i8")[0] == 129
    assert lanewise("vadds", "si16", [32767], scalar=1, constant="i16")[0] == -32768


def test_shifts_by_a_scalar():
    assert lanewise("vshls", "ui16", [0x8001], scalar=1, constant="i16")[0] == 2
    assert lanewise("vshrs", "si16", [-9], scalar=1, constant="i16")[0] == -5
    assert lanewise("vshrs", "ui8", [0x80], scalar=7, constant="i16")[0] == 1


def test_bitwise_with_a_scalar():
    x = [0b1100, -1, 0]
    assert head(lanewise("vands", "i32", x, scalar=6), 3).tolist() == [4, 6, 0]
    assert head(lanewise("vors", "i32", x, scalar=6), 3).tolist() == [14, -1, 6]
    assert head(lanewise("vxors", "i32", x, scalar=6), 3).tolist() == [10, -7, 6]


def test_a_scalar_that_changes_from_step_to_step():
    bench = Registers()
    bench.vreg("a", "f32", [1.0])
    bench.mask("m", 32)
    body = (
        "%lo = arith.constant 0 : index\n%hi = arith.constant 3 : index\n"
        "%st = arith.constant 1 : index\n"
        "%one = arith.constant 1.0 : f32\n"
        "%r, %x = scf.for %i = %lo to %hi step %st iter_args(%v = %a, %k = %one) -> ({a}, f32) {\n"
        "%w = pto.vmuls %v, %k, %m : {a}, f32, {m} -> {a}\n%n = arith.addf %k, %one : f32\n"
        "scf.yield %w, %n : {a}, f32\n}"
    )
    assert bench.one(body, reg("f32")).tolist() == [6.0] * 64


def test_leaky_relu_multiplies_below_zero_and_nan():
    got = lanewise("vlrelu", "f32", [2.0, -4.0, -0.0, -INF, NAN], scalar=0.25)
    assert same_bits(got, [2.0, -1.0, -0.0, -INF]) and np.isnan(got[4])
    slopes = lanewise("vprelu", "f16", [2.0, -4.0, 3.0], [0.5, 0.5, 9.0])
    assert head(slopes, 3).tolist() == [2.0, -2.0, 3.0]


# ---- fused


def exact_fma(a, b, c):
    """a*b + c rounded once to f32, by exact rational arithmetic."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    low = np.float32(float(exact))
    around = [np.nextafter(low, np.float32(-INF)), low, np.nextafter(low, np.float32(INF))]
    best = min(abs(Fraction(float(v)) - exact) for v in around)
    near = [v for v in around if abs(Fraction(float(v)) - exact) == best]
    return next(v for v in near if len(near) == 1 or v.view(np.uint32) % 2 == 0)


def test_vmula_rounds_once():
    rng = np.random.default_rng(7)
    a, b = rng.uniform(-2, 2, (2, 64)).astype(np.float32)
    c = (-a.astype(np.float64) * b).astype(np.float32)  # cancels all but the last bits
    got = lanewise("vmula", "f32", c, a, b)
    assert got.tolist() == [exact_fma(x, y, z) for x, y, z in zip(a, b, c, strict=True)]
    tie = lanewise("vmula", "f32", [2.0**-60], [1 + 2.0**-12], [1 + 2.0**-12])
    assert tie[0] == np.float32(1 + 2.0**-11 + 2.0**-23)  # the tie goes up by the addend alone
    assert lanewise("vmula", "i32", [5], [2**31 - 1], [2])[0] == 3
    assert lanewise("vmula", "bf16", [1.0], [3.0], [0.5])[0] == 2.5
    assert np.isnan(lanewise("vmula", "f32", [-INF], [INF], [1.0])).all()


def test_vaxpy_rounds_twice():
    got = lanewise("vaxpy", "f32", [1.0, 3.0], [10.0, 20.0], scalar=2.0)
    assert head(got, 2).tolist() == [12.0, 26.0]
    a = np.float32(1 + 2.0**-12)
    assert lanewise("vaxpy", "f32", [a], [-float(a * a)], scalar=a)[0] == 0.0


def test_sums_and_differences_with_relu():
    assert head(lanewise("vaddrelu", "f32", [1.0, -5.0], [2.0, 3.0]), 2).tolist() == [3.0, 0.0]
    assert head(lanewise("vsubrelu", "f16", [1.0, 5.0], [2.0, 3.0]), 2).tolist() == [0.0, 2.0]


# ---- masks


@pytest.mark.parametrize("elem", ["i8", "f16", "bf16", "i32", "i64"])
def test_masked_lanes_become_zero_even_of_nan(elem):
    lanes = dtype(elem).lanes
    x = [NAN] if elem in ("f16", "bf16") else [77]
    step = 2 if elem == "i64" else 1  # 64-bit elements look at every second b32 lane
    got = lanewise("vadd", elem, x, x, lanes=[0, 3 * step, (lanes - 1) * step])
    active = [0, 3, lanes - 1]
    assert not got.astype(np.float64)[np.setdiff1d(np.arange(lanes), active)].any()
    assert (got[active] != 0).all()


def test_an_empty_mask_gives_zeros_of_positive_sign():
    assert lanewise("vneg", "f32", [1.0], lanes=0).tobytes() == bytes(256)


def test_operands_stay_as_they_were():
    bench = Registers()
    a = bench.vreg("a", "f32", [-1.0, 2.0])
    bench.mask("m", 32, 1)
    bench.one("%r = pto.vabs %a, %m : {a}, {m} -> {a}", reg("f32"))
    assert a.tolist() == [-1.0, 2.0] * 32


@pytest.mark.parametrize("profile", ["cpu", "a2a3"])
def test_other_profiles_compute_the_same(profile):
    assert lanewise("vadd", "f32", [1.5], [2.0], profile=profile).tolist() == [3.5] * 64


# ---- carries and wide products


def carried(row, a, b, lanes=None, carry=None):
    bench = Registers()
    bench.vreg("a", "ui32", a)
    bench.vreg("b", "ui32", b)
    bench.mask("m", 32, lanes)
    middle = ""
    if carry is not None:
        bench.mask("c", 32, carry)
        middle = ", %c"
    kinds = "{a}, {b}" + (", {c}" if middle else "") + ", {m}"
    value, mask = bench.two(
        f"%r, %s = pto.{row} %a, %b{middle}, %m : {kinds} -> {{a}}, {{m}}",
        reg("ui32"),
        "!pto.mask<b32>",
    )
    assert not mask[np.arange(256) % 4 != 0].any(), "only bit 4i of lane i may be set"
    return value, mask[::4]


TOP = 2**32 - 1


def test_vaddc_carries_out_of_32_bits():
    value, carry = carried("vaddc", [TOP, 1, TOP, 0], [1, 1, TOP, 0])
    assert head(value, 4).tolist() == [0, 2, TOP - 1, 0]
    assert carry[:4].tolist() == [True, False, True, False]


def test_vaddcs_adds_the_carry_in():
    value, carry = carried("vaddcs", [TOP, 1, TOP], [0, 1, TOP], carry=[0, 2])
    assert head(value, 3).tolist() == [0, 2, TOP]
    assert carry[:3].tolist() == [True, False, True]


def test_vsubcs_borrows_where_the_carry_in_is_0():
    value, carry = carried("vsubcs", [5, 5, 5, 0], [5, 5, 4, TOP], carry=[0])
    assert head(value, 4).tolist() == [0, TOP, 0, 0]
    assert carry[:4].tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    "row, carry", [("vaddc", None), ("vsubc", None), ("vaddcs", None), ("vsubcs", None)]
)
def test_masked_lanes_have_neither_value_nor_carry(row, carry):
    extra = {"carry": list(range(64))} if row.endswith("s") else {}
    value, out = carried(row, [TOP], [TOP], lanes=[2], **extra)
    assert np.flatnonzero(out).tolist() in ([2], [])
    assert not np.delete(value, 2).any()


def test_vmull_splits_the_64_bit_product():
    def wide(elem, a, b, lanes=None):
        bench = Registers()
        bench.vreg("a", elem, a)
        bench.vreg("b", elem, b)
        bench.mask("m", 32, lanes)
        return bench.two("%r, %s = pto.vmull %a, %b, %m : {a}, {b}, {m} -> {a}, {a}", reg(elem))

    low, high = wide("i32", [-1, 2**31 - 1, 65536], [2, 2**31 - 1, 65536])
    assert low[:3].tolist() == [-2, 1, 0] and high[:3].tolist() == [-1, 2**30 - 1, 1]
    low, high = wide("ui32", [TOP], [TOP], lanes=[1])
    assert low[:3].tolist() == [0, 1, 0] and high[:3].tolist() == [0, TOP - 1, 0]
