"""Unaligned streams: bytes reach UB in order, whole blocks first; nothing beside them changes."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.isa.meaning.memory.registers import AR, SQZN, get
from tests.vectors import Registers, reg

P = "!pto.ptr<f32, ub>"
ALIGN = "!pto.align"


def bench_with(values, start=0):
    """%p points `start` elements behind an aligned place; returns the array from that place on."""
    bench = Registers()
    live = bench.pointer("q", "f32, ub", values)
    bench.scalar("start", "index", start)
    return bench, live


@pytest.mark.parametrize("start", [0, 1, 7, 8, 13])
def test_vldus_loads_from_any_element(start):
    bench, _ = bench_with(np.arange(128), start)
    got = bench.one(
        f"%p = pto.addptr %q, %start : {P} -> {P}\n%a = pto.vldas %p : {P} -> {ALIGN}\n"
        f"%r, %b = pto.vldus %p, %a : {P}, {ALIGN} -> {reg('f32')}, {ALIGN}",
        reg("f32"),
    )
    assert got.tolist() == list(range(start, start + 64))


def test_a_state_serves_the_load_that_follows():
    bench, _ = bench_with(np.arange(192), 3)
    bench.scalar("n", "index", 64)
    first, second = bench.two(
        f"%p = pto.addptr %q, %start : {P} -> {P}\n%a = pto.vldas %p : {P} -> {ALIGN}\n"
        f"%r, %b = pto.vldus %p, %a : {P}, {ALIGN} -> {reg('f32')}, {ALIGN}\n"
        f"%p2 = pto.addptr %p, %n : {P} -> {P}\n"
        f"%s, %c = pto.vldus %p2, %b : {P}, {ALIGN} -> {reg('f32')}, {ALIGN}",
        reg("f32"),
    )
    assert first.tolist() == list(range(3, 67)) and second.tolist() == list(range(67, 131))


def test_a_state_of_another_place_is_an_error():
    bench, _ = bench_with(np.arange(256), 65)
    with pytest.raises(PtoError, match=r"PTO-M142.*0x104.*block at 0x0"):
        bench.one(
            f"%p = pto.addptr %q, %start : {P} -> {P}\n%a = pto.vldas %q : {P} -> {ALIGN}\n"
            f"%r, %b = pto.vldus %p, %a : {P}, {ALIGN} -> {reg('f32')}, {ALIGN}",
            reg("f32"),
        )


def test_uvld_is_both_in_one():
    bench, _ = bench_with(np.arange(128), 5)
    assert bench.one(f"%r = pto.uvld %q[%start] : {P} -> {reg('f32')}", reg("f32"))[0] == 5


def streamed(counts, start=0, flush=True, values=None):
    """Appends the first `counts` elements of registers 100.., 200.., .. to a stream at `start`."""
    bench, live = bench_with(np.full(512, -1.0) if values is None else values, start)
    lines = [f"%p0 = pto.addptr %q, %start : {P} -> {P}", f"%s0 = pto.init_align : {ALIGN}"]
    for n, count in enumerate(counts):
        bench.vreg(f"v{n}", "f32", 100 * (n + 1) + np.arange(64))
        bench.scalar(f"c{n}", "i32", count)
        bench.scalar(f"x{n}", "index", count)
        lines.append(
            f"%s{n + 1} = pto.vstus %s{n}, %c{n}, %v{n}, %p{n}"
            f" : {ALIGN}, i32, {{v{n}}}, {P} -> {ALIGN}"
        )
        lines.append(f"%p{n + 1} = pto.addptr %p{n}, %x{n} : {P} -> {P}")
    last = len(counts) - 1
    if flush:
        lines.append(f"pto.vstas %s{last + 1}, %p{last}, %c{last} : {ALIGN}, {P}, i32")
    bench.run("\n".join(lines))
    return live


def expected(counts):
    return [100 * (n + 1) + i for n, count in enumerate(counts) for i in range(count)]


@pytest.mark.parametrize("start", [0, 1, 7])
@pytest.mark.parametrize("counts", [[3], [64], [3, 5], [1, 2, 64, 7, 8], [0, 4], [64, 64]])
def test_vstus_appends_the_first_elements_of_each_register(counts, start):
    live = streamed(counts, start)
    want = expected(counts)
    assert live[start : start + len(want)].tolist() == want
    assert (live[:start] == -1).all() and (live[start + len(want) :] == -1).all()


def test_before_the_flush_only_whole_blocks_are_written():
    live = streamed([11], 2, flush=False)  # elements 2..12: the block ends at 8
    assert live[2:8].tolist() == [100, 101, 102, 103, 104, 105]
    assert (live[8:] == -1).all()


def test_a_store_that_does_not_follow_the_stream_is_an_error():
    bench, live = bench_with(np.full(256, -1.0))
    bench.vreg("v", "f32", [5])
    bench.scalar("c", "i32", 3)
    bench.scalar("far", "index", 16)
    text = (
        f"%s0 = pto.init_align : {ALIGN}\n"
        f"%s1 = pto.vstus %s0, %c, %v, %q : {ALIGN}, i32, {{v}}, {P} -> {ALIGN}\n"
        f"%p = pto.addptr %q, %far : {P} -> {P}\n"
    )
    with pytest.raises(PtoError, match=r"PTO-M143.*begins at 0x40.*up to 0xc"):
        bench.run(f"{text}%s2 = pto.vstus %s1, %c, %v, %p : {ALIGN}, i32, {{v}}, {P} -> {ALIGN}")
    with pytest.raises(PtoError, match=r"PTO-M143.*names address 0x4c.*is at 0xc"):
        bench.run(f"{text}pto.vstas %s1, %p, %c : {ALIGN}, {P}, i32")
    assert (live == -1).all()


def test_more_elements_than_a_register_has_are_an_error():
    with pytest.raises(PtoError, match=r"PTO-S140.*65 elements of a register of 64"):
        streamed([65])


def squeezed(active, mode="POST_UPDATE", times=1, start=1):
    bench, live = bench_with(np.full(512, -1.0), start)
    bench.vreg("v", "f32", np.arange(64))
    bench.mask("m", 32, active)
    lines = [
        f"%p = pto.addptr %q, %start : {P} -> {P}",
        'pto.sprclr "AR"',
        f"%s0 = pto.init_align : {ALIGN}",
    ]
    for n in range(times):
        lines.append(f"%z{n} = pto.vsqz %v, %m : {{v}}, {{m}} -> {{v}}")
        lines.append(
            f'%s{n + 1} = pto.vstur %s{n}, %z{n}, %p, "{mode}" : {ALIGN}, {{v}}, {P} -> {ALIGN}'
        )
    lines.append(f"pto.vstar %s{times}, %p : {ALIGN}, {P}")
    bench.run("\n".join(lines))
    return live, bench.core


def test_vstur_stores_what_the_squeeze_kept():
    live, core = squeezed([3, 10, 40])
    assert live[:5].tolist() == [-1, 3, 10, 40, -1]
    assert (get(core, SQZN), get(core, AR)) == (12, 12)


def test_vstur_streams_by_the_register_ar():
    live, core = squeezed([3, 10, 40], times=5)
    assert live[1:16].tolist() == [3, 10, 40] * 5 and (live[16:] == -1).all()
    assert get(core, AR) == 60


def test_vstur_without_update_keeps_ar():
    live, core = squeezed([3, 10], mode="NO_POST_UPDATE")
    assert live[:4].tolist() == [-1, 3, 10, -1]
    assert get(core, AR) == 0


def test_vstur_before_any_squeeze_is_an_error():
    bench, _ = bench_with(np.zeros(64))
    bench.vreg("v", "f32", [1])
    with pytest.raises(PtoError, match="PTO-M144"):
        bench.run(
            f"%s0 = pto.init_align : {ALIGN}\n"
            f'%s1 = pto.vstur %s0, %v, %q, "POST_UPDATE" : {ALIGN}, {{v}}, {P} -> {ALIGN}'
        )


@pytest.mark.parametrize("mode, after", [("POST_UPDATE", 69), ("NO_POST_UPDATE", 5)])
def test_vstu_appends_a_whole_register_and_threads_the_offset(mode, after):
    bench, live = bench_with(np.full(256, -1.0))
    bench.vreg("v", "f32", np.arange(64))
    bench.scalar("at", "index", 5)
    offset = bench.one(
        f"%s0 = pto.init_align : {ALIGN}\n"
        f'%s1, %r = pto.vstu %s0, %at, %v, %q, "{mode}"'
        f" : {ALIGN}, index, {{v}}, {P} -> {ALIGN}, index\n"
        f"pto.vsta %s1, %q[%r] : {ALIGN}, {P}, index",
        "index",
    )
    assert offset == after
    assert live[5:69].tolist() == list(range(64))
    assert (live[:5] == -1).all() and (live[69:] == -1).all()


@pytest.mark.parametrize("bits, lanes", [(32, 64), (16, 128)])
def test_pstu_appends_lanes_as_bits(bits, lanes):
    bench = Registers()
    live = bench.pointer("p", f"ui{bits}, ub", np.full(64, 7))
    ptr = f"!pto.ptr<ui{bits}, ub>"
    bench.mask("a", bits, [0, 2, lanes - 1])
    bench.mask("b", bits, 9)
    step = f"{ALIGN}, !pto.mask<b{bits}>, {ptr} -> {ALIGN}, {ptr}"
    bench.run(
        f"%s0 = pto.init_align : {ALIGN}\n%s1, %p1 = pto.pstu %s0, %a, %p : {step}\n"
        f"%s2, %p2 = pto.pstu %s1, %b, %p1 : {step}\n%z = arith.constant 0 : i32\n"
        f"pto.vstas %s2, %p2, %z : {ALIGN}, {ptr}, i32"
    )
    size = lanes // 8
    raw = live.view(np.uint8)
    assert raw[:size].tolist() == [5] + [0] * (size - 2) + [0x80]
    assert raw[size : 2 * size].tolist() == [0xFF, 1] + [0] * (size - 2)
    assert (live[2 * size * 8 // bits :] == 7).all()


def test_flushing_an_empty_stream_does_nothing():
    bench, live = bench_with(np.full(8, -1.0))
    bench.scalar("c", "i32", 3)
    bench.run(f"%s = pto.init_align : {ALIGN}\npto.vstas %s, %q, %c : {ALIGN}, {P}, i32")
    assert (live == -1).all()


def test_special_register_ar_is_stored_as_a_word():
    bench = Registers()
    live = bench.pointer("p", "ui32, ub", np.full(16, 7))
    bench.pointer("d", "ui8, ub", np.zeros(512))
    bench.vreg("v", "ui8", np.arange(256))
    bench.mask("m", 8, 5)
    bench.run(
        'pto.sprclr "AR"\n'
        "%e = pto.init_align : !pto.align\n"
        "%q = pto.vsqz %v, %m : {v}, {m} -> {v}\n"
        '%a = pto.vstur %e, %q, %d, "POST_UPDATE" : !pto.align, {v}, {d} -> !pto.align\n'
        "%c8 = arith.constant 8 : i32\n%c3 = arith.constant 3 : i32\n"
        'pto.sprsts "AR", %p[%c8] : {p}, i32\n'
        '%n = pto.sprsti "AR", %p[%c3] : {p}, i32 -> {p}\n'
        'pto.sprsti "AR", %n[%c3] : {p}, i32\n'
        "pto.vstar %a, %d : !pto.align, {d}"
    )
    assert [n for n in range(16) if live[n] == 5] == [0, 2, 6] and (live == 7).sum() == 13
