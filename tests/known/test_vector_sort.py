"""Sorting and merging in UB, and histograms."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.machine import Bench


def records(scores, indices):
    out = np.empty(2 * len(scores), np.uint32)
    out[0::2] = np.asarray(scores, np.float32).view(np.uint32)
    out[1::2] = indices
    return out


def bitsorted(scores, indices, repeat, elem="f32"):
    bench = Bench()
    live = bench.pointer("o", "ui32, ub", np.full(2 * len(scores) + 8, 77))
    bench.pointer("s", f"{elem}, ub", scores)
    bench.pointer("i", "ui32, ub", indices)
    bench.scalar("n", "index", repeat)
    bench.run("pto.vbitsort %o, %s, %i, %n : {o}, {s}, {i}, index")
    return live


def test_vbitsort_sorts_each_32_by_themselves():
    rng = np.random.default_rng(5)
    scores = rng.integers(-4, 4, 64).astype(np.float32)
    indices = rng.integers(0, 1000, 64).astype(np.uint32)
    got = bitsorted(scores, indices, 2)
    for k in range(2):
        part = list(zip(scores[32 * k : 32 * k + 32], indices[32 * k : 32 * k + 32], strict=True))
        part.sort(key=lambda record: -record[0])  # Python's sort is stable
        want = records([s for s, _ in part], [i for _, i in part])
        assert got[64 * k : 64 * k + 64].tolist() == want.tolist()
    assert (got[128:] == 77).all()


def test_vbitsort_of_halves_fills_the_low_part_of_a_word():
    scores = np.arange(32, dtype=np.float16)
    got = bitsorted(scores, np.arange(32), 1, "f16")
    assert got[0:64:2].tolist() == scores[::-1].view(np.uint16).tolist()
    assert got[1:64:2].tolist() == list(range(31, -1, -1))


def test_vbitsort_repeats_as_often_as_it_is_told():
    assert (bitsorted(np.ones(32), np.ones(32), 0) == 77).all()
    with pytest.raises(PtoError, match="PTO-S140"):
        bitsorted(np.ones(32), np.ones(32), 256)


def merged(lists, config, capacity=32, counts=None):
    """lists of scores; the index of record k of list n is 10 n + k."""
    bench = Bench()
    live = bench.pointer("o", "f32, ub", np.zeros(2 * capacity))
    for n in range(4):
        scores = lists[n] if n < len(lists) else []
        data = records(scores, [10 * n + k for k in range(len(scores))]).view(np.float32)
        bench.pointer(f"s{n}", "f32, ub", data if data.size else np.zeros(2))
    lengths = counts or [len(x) for x in lists]
    bench.scalar("c", "i64", sum(n << 16 * i for i, n in enumerate(lengths)))
    bench.scalar("g", "i64", config)
    taken = bench.run(
        "pto.vmrgsort4 %o, %s0, %s1, %s2, %s3, %c, %g : {o}, {s0}, {s1}, {s2}, {s3}, i64, i64\n"
        "%a, %b, %d, %e = pto.get_vms4_sr : i16, i16, i16, i16",
        results="%a : i16; %b : i16; %d : i16; %e : i16",
    )
    return live[0::2], live.view(np.uint32)[1::2], taken


def test_vmrgsort4_merges_descending_lists_with_earlier_lists_first():
    scores, indices, taken = merged([[9, 5, 1], [8, 5], [5], [7]], 0x0F01)
    assert scores[:7].tolist() == [9, 8, 7, 5, 5, 5, 1]
    assert indices[:7].tolist() == [0, 10, 30, 1, 11, 20, 2]
    assert taken == [3, 2, 1, 1]


def test_vmrgsort4_stops_when_a_list_is_exhausted():
    scores, indices, taken = merged([[9, 5, 1], [8, 7], [6, 0]], 0x1701)
    assert scores[:4].tolist() == [9, 8, 7, 0] and indices[:3].tolist() == [0, 10, 11]
    assert taken == [1, 2, 0, 0]


def test_vmrgsort4_takes_the_lists_its_config_names():
    scores, _, taken = merged([[9, 5], [8], [100], [100]], 0x0301)
    assert scores[:4].tolist() == [9, 8, 5, 0] and taken == [2, 1, 0, 0]
    with pytest.raises(PtoError, match="PTO-S140"):
        merged([[1], [2]], 0x0101)


def test_vmrgsort4_repeats_on_the_records_that_follow():
    bench = Bench()
    live = bench.pointer("o", "f32, ub", np.zeros(32))
    data = records([4, 3, 2, 1, 8, 7, 6, 5], range(8)).view(np.float32)
    bench.pointer("s0", "f32, ub", data)
    for n in range(1, 4):
        bench.scalar(f"k{n}", "index", 2 * n)
    bench.scalar("c", "i64", 0x0001000100010001)
    bench.scalar("g", "i64", 0x0F02)
    moves = "".join(f"%s{n} = pto.addptr %s0, %k{n} : {{s0}} -> {{s0}}\n" for n in range(1, 4))
    bench.run(
        f"{moves}pto.vmrgsort4 %o, %s0, %s1, %s2, %s3, %c, %g"
        " : {o}, {s0}, {s0}, {s0}, {s0}, i64, i64"
    )
    assert live[0:16:2].tolist() == [4, 3, 2, 1, 8, 7, 6, 5]


def test_vmrgsort4_of_an_unsorted_list_is_an_error():
    with pytest.raises(PtoError, match=r"PTO-M145.*list 1 has 9.0 at record 1, after 2.0"):
        merged([[3], [2, 9]], 0x0301)


def sorted_plain(row, elem, values, config=0):
    bench = Bench()
    live = bench.pointer("o", f"{elem}, ub", np.zeros(len(values)))
    bench.pointer("s", f"{elem}, ub", values)
    bench.scalar("g", "i64", config)
    bench.run(f"pto.{row} %o, %s, %g : {{o}}, {{s}}, i64")
    return live


def test_vsort32_of_config_0_sorts_descending():
    values = (np.arange(32) * 7) % 32
    assert sorted_plain("vsort32", "f32", values).tolist() == list(range(31, -1, -1))


def test_vtranspose_of_config_0_turns_a_16x16_block():
    block = np.arange(256).reshape(16, 16)
    assert (
        sorted_plain("vtranspose", "i16", block.reshape(-1)).tolist()
        == block.T.reshape(-1).tolist()
    )


@pytest.mark.parametrize("row", ["vsort32", "vtranspose"])
def test_undocumented_configuration_words_are_refused(row):
    with pytest.raises(PtoError, match=r"PTO-X140.*not defined by the ISA, got 0x101"):
        sorted_plain(row, "i16", np.zeros(256), 0x101)


def histogram(row, acc, src, mask):
    bench = Bench()
    bins = len(acc)
    for name, type, value in (
        ("a", f"!pto.vmi.vreg<{bins}xui16>", np.array(acc, np.uint16)),
        ("s", "!pto.vmi.vreg<256xui8>", np.array(src, np.uint8)),
        ("m", "!pto.vmi.mask<256>", np.array(mask, bool)),
    ):
        bench.values[name], bench.types[name] = value, type
    (got,) = bench.run(
        f"%r = pto.{row} %a, %s, %m : {{a}}, {{s}}, {{m}} -> {{a}}",
        results=f"%r : {bench.types['a']}",
    )
    return got


@pytest.mark.parametrize("bins", [128, 256])
def test_histograms_count_active_bytes(bins):
    rng = np.random.default_rng(2)
    src, mask = rng.integers(0, 256, 256), rng.random(256) < 0.7
    acc = rng.integers(0, 65536, bins)
    chosen = src[mask].tolist()
    plain = [(int(acc[b]) + chosen.count(b)) % 65536 for b in range(bins)]
    below = [(int(acc[b]) + sum(v <= b for v in chosen)) % 65536 for b in range(bins)]
    assert histogram("vmi.vdhist", acc, src, mask).tolist() == plain
    assert histogram("vmi.vchist", acc, src, mask).tolist() == below
