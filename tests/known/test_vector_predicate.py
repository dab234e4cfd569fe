"""Masks as 256 bits: how each instruction generates, combines, rearranges, loads, stores them."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.target.profile import profile
from tests.vectors import Registers, mask_image

WIDTHS = (8, 16, 32)


def bits(image):
    return np.flatnonzero(image).tolist()


def generated(row, width, pattern):
    return Registers().one(
        f'%r = pto.{row}_b{width} "{pattern}" : !pto.mask<b{width}>', f"!pto.mask<b{width}>"
    )


@pytest.mark.parametrize("row", ["pset", "pge"])
@pytest.mark.parametrize("width", WIDTHS)
def test_patterns_name_lanes(row, width):
    step, lanes = width // 8, 2048 // width
    counts = {"PAT_ALL": lanes, "PAT_ALLF": 0, "PAT_H": lanes // 2, "PAT_Q": lanes // 4}
    counts |= {f"PAT_VL{n}": min(n, lanes) for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)}
    for pattern, count in counts.items():
        assert bits(generated(row, width, pattern)) == [step * i for i in range(count)], pattern
    for pattern, every in {"PAT_M3": 3, "PAT_M4": 4}.items():
        assert bits(generated(row, width, pattern)) == [step * i for i in range(0, lanes, every)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [-3, 0, 1, 63, 64, 65, 255, 256, 1000])
def test_plt_counts_down(width, count):
    lanes = 2048 // width
    bench = Registers()
    bench.scalar("n", "i32", count)
    mask, left = bench.two(
        f"%r, %s = pto.plt_b{width} %n : i32 -> !pto.mask<b{width}>, i32",
        f"!pto.mask<b{width}>",
        "i32",
    )
    active = min(max(count, 0), lanes)
    assert bits(mask) == [width // 8 * i for i in range(active)]
    assert left == max(count - lanes, 0)


def combined(row, a, b, mask):
    bench = Registers()
    operands = [("a", a), ("b", b), ("m", mask)] if b is not None else [("a", a), ("m", mask)]
    for name, lanes in operands:
        bench.mask(name, 32, lanes)
    names = ", ".join(f"%{n}" for n, _ in operands)
    types = ", ".join("{m}" for _ in operands)
    return bench.one(f"%r = pto.{row} {names} : {types} -> {{m}}", "!pto.mask<b32>")


def test_logic_is_bit_by_bit_under_the_governing_mask():
    a, b, m = [0, 1, 2, 9], [1, 2, 3, 9], [0, 1, 2, 3]

    def lanes(image):
        return [i // 4 for i in bits(image)]

    assert lanes(combined("pand", a, b, m)) == [1, 2]
    assert lanes(combined("por", a, b, m)) == [0, 1, 2, 3]
    assert lanes(combined("pxor", a, b, m)) == [0, 3]
    assert lanes(combined("psel", a, b, m)) == [0, 1, 2, 9]
    assert lanes(combined("pnot", a, None, m)) == [3]
    assert lanes(combined("pnot", a, None, None)) == [i for i in range(64) if i not in a]


@pytest.mark.parametrize("width", WIDTHS)
def test_interleave_and_back(width):
    step, lanes = width // 8, 2048 // width
    rng = np.random.default_rng(width)
    a, b = rng.random((2, lanes)) < 0.4
    bench = Registers()
    bench.mask("a", width, np.flatnonzero(a).tolist())
    bench.mask("b", width, np.flatnonzero(b).tolist())
    kind = f"!pto.mask<b{width}>"
    low, high = bench.two(
        f"%r, %s = pto.pintlv_b{width} %a, %b : {{a}}, {{b}} -> {{a}}, {{b}}", kind
    )
    stream = np.stack((a, b), axis=1).reshape(-1)
    assert low[::step].tolist() == stream[:lanes].tolist()
    assert high[::step].tolist() == stream[lanes:].tolist()
    low, high = bench.two(
        f"%r, %s = pto.pdintlv_b{width} %a, %b : {{a}}, {{b}} -> {{a}}, {{b}}", kind
    )
    both = np.concatenate((a, b))
    assert (
        low[::step].tolist() == both[0::2].tolist() and high[::step].tolist() == both[1::2].tolist()
    )
    assert not low[np.arange(256) % step != 0].any()


def raw(row, image, part):
    bench = Registers()
    bench.mask("a", 32)
    bench.values["a"] = image
    return bench.one(f'%r = pto.{row} %a, "{part}" : {{a}} -> !pto.mask<b32>', "!pto.mask<b32>")


def test_ppack_and_punpack_work_on_physical_bits():
    image = np.random.default_rng(1).random(256) < 0.5
    low, high = raw("ppack", image, "LOWER"), raw("ppack", image, "HIGHER")
    assert low[:128].tolist() == image[::2].tolist() and not low[128:].any()
    assert high[128:].tolist() == image[::2].tolist() and not high[:128].any()
    assert bits(raw("ppack", mask_image(32, None), "LOWER")) == list(range(0, 128, 2))
    for part, half in (("LOWER", image[:128]), ("HIGHER", image[128:])):
        wide = raw("punpack", image, part)
        assert wide[::2].tolist() == half.tolist() and not wide[1::2].any()


def test_pbitcast_changes_no_bit():
    bench = Registers()
    bench.mask("a", 16, [0, 1, 5])
    got = bench.one("%r = pto.pbitcast %a : {a} -> !pto.mask<b32>", "!pto.mask<b32>")
    assert bits(got) == [0, 2, 10]


IMAGE = np.arange(64, dtype=np.uint8) * 37 + 5


def loaded(row, dist, offset=0, elem="ui8"):
    bench = Registers()
    bench.pointer("p", f"{elem}, ub", np.resize(IMAGE, 256))
    bench.scalar("at", "i32" if row == "pld" else "index", offset)
    place = "%p, %at" if row == "pld" else "%p[%at]"
    kind = "i32" if row == "pld" else "index"
    return bench.one(
        f'%r = pto.{row} {place}, "{dist}" : {{p}}, {kind} -> !pto.mask<b8>', "!pto.mask<b8>"
    )


def bit_list(data):
    return [bool(byte >> k & 1) for byte in data for k in range(8)]


@pytest.mark.parametrize("row, offset", [("plds", 8), ("pld", 1)])
def test_images_load_in_little_endian_bit_order(row, offset):
    data = np.resize(IMAGE, 256)[8:]
    assert loaded(row, "NORM", offset).tolist() == bit_list(data[:32])
    assert loaded(row, "US", offset).tolist() == [b for b in bit_list(data[:16]) for _ in range(2)]
    assert loaded(row, "DS", offset).tolist() == bit_list(data[:64])[::2]


def test_images_lie_at_multiples_of_8_bytes():
    with pytest.raises(PtoError, match=r"PTO-M080.*0x4"):
        loaded("plds", "NORM", 4)


def stored(row, dist, lanes, width=8, offset=0):
    bench = Registers()
    live = bench.pointer("p", "ui8, ub", np.full(96, 0xA5))
    bench.mask("m", width, lanes)
    bench.scalar("at", "i32" if row == "pst" else "index", offset)
    place = "%p, %at" if row == "pst" else "%p[%at]"
    kind = "i32" if row == "pst" else "index"
    bench.run(f'pto.{row} %m, {place}, "{dist}" : {{m}}, {{p}}, {kind}')
    return live


@pytest.mark.parametrize("row, offset", [("psts", 16), ("pst", 2)])
def test_images_store_32_or_16_bytes(row, offset):
    lanes = [0, 1, 8, 255]
    got = stored(row, "NORM", lanes, offset=offset)
    assert got[16:48].tolist() == [3, 1] + [0] * 29 + [0x80]
    assert (got[:16] == 0xA5).all() and (got[48:] == 0xA5).all()
    got = stored(row, "PK", [0, 2, 3, 254], offset=offset)
    assert got[16:32].tolist() == [3] + [0] * 14 + [0x80]
    assert (got[32:] == 0xA5).all()


def test_a_mask_can_outlive_its_register():
    """Stored by one instruction and loaded by the next: every bit comes back."""
    bench = Registers()
    bench.pointer("p", "ui8, ub", np.zeros(64))
    image = np.random.default_rng(9).random(256) < 0.5
    bench.mask("m", 8)
    bench.values["m"] = image
    got = bench.one(
        '%z = arith.constant 0 : index\npto.psts %m, %p[%z], "NORM" : {m}, {p}, index\n'
        '%r = pto.plds %p[%z], "NORM" : {p}, index -> {m}',
        "!pto.mask<b8>",
    )
    assert got.tolist() == image.tolist()


@pytest.mark.parametrize(("dist", "unit"), [("NORM", 32), ("US", 16), ("DS", 32)])
def test_an_immediate_counts_what_its_distribution_reads(dist: str, unit: int):
    assert loaded("pldi", dist, 1).tolist() == loaded("plds", dist, unit).tolist()


@pytest.mark.parametrize(("dist", "unit"), [("NORM", 32), ("PK", 16)])
def test_an_immediate_counts_what_its_distribution_writes(dist: str, unit: int):
    assert (
        stored("psti", dist, [0, 5], offset=2) == stored("psts", dist, [0, 5], offset=2 * unit)
    ).all()


def test_in_april_an_immediate_counted_bytes():
    bench = Registers()
    bench.core.profile = profile("a5", edition="april")
    bench.pointer("p", "ui8, ub", np.arange(128))
    bench.scalar("at", "index", 8)
    got = bench.one('%r = pto.pldi %p[%at], "NORM" : {p}, index -> !pto.mask<b8>', "!pto.mask<b8>")
    assert got.tolist() == bit_list(range(8, 40))


def test_with_a_base_that_moves_on_the_image_is_at_the_base():
    bench = Registers()
    live = bench.pointer("p", "ui8, ub", np.arange(128))
    bench.mask("m", 8, [0])
    bench.scalar("one", "index", 1)
    bench.scalar("zero", "index", 0)
    first, second = bench.two(
        '%r, %next = pto.pldi %p[%one], "US" : {p}, index -> !pto.mask<b8>, {p}\n'
        '%s = pto.plds %next[%zero], "NORM" : {p}, index -> !pto.mask<b8>\n'
        '%end = pto.psti %m, %next[%one], "NORM" : {m}, {p}, index -> {p}\n'
        'pto.psts %m, %end[%zero], "PK" : {m}, {p}, index',
        "!pto.mask<b8>",
    )
    assert first.tolist() == [b for b in bit_list(range(16)) for _ in range(2)]
    assert second.tolist() == bit_list(range(16, 48))
    assert live[16:64].tolist() == [1] + [0] * 31 + [1] + [0] * 15
