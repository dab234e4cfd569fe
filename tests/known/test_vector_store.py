"""Vector stores: which bytes of UB change, and that every other byte keeps what it had."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.vectors import Registers, mask_image

OLD = 0xA5
KIND = {"f32": np.float32, "i16": np.int16, "ui8": np.uint8, "i64": np.int64, "f16": np.float16}


def stored(elem, dist="", bits=32, lanes=None, *, offset=0, pointer=None, value=None, nbytes=1024):
    """The bytes behind the pointer after a vsts of a register that counts its bytes."""
    bench = Registers()
    live = bench.pointer(
        "p", f"{pointer or elem}, ub", np.full(nbytes, OLD, np.uint8).view(KIND[pointer or elem])
    )
    raw = np.arange(256, dtype=np.uint8) if value is None else value
    bench.vreg("v", elem, raw.view(KIND[elem]))
    bench.mask("m", bits, lanes)
    bench.scalar("at", "index", offset)
    word = f' {{dist = "{dist}"}}' if dist else ""
    bench.run(f"pto.vsts %v, %p[%at], %m{word} : {{v}}, {{p}}, {{m}}")
    return live.view(np.uint8)


def untouched(got, *written):
    keep = np.ones(got.size, bool)
    for part in written:
        keep[part] = False
    return bool((got[keep] == OLD).all())


@pytest.mark.parametrize("elem, bits", [("f32", 32), ("i16", 16), ("ui8", 8), ("i64", 32)])
def test_norm_writes_256_bytes_at_the_offset_and_no_more(elem, bits):
    size = KIND[elem]().itemsize
    got = stored(elem, bits=bits, offset=64 // size)
    assert got[64:320].tolist() == list(range(256))
    assert untouched(got, slice(64, 320))


@pytest.mark.parametrize("elem, bits", [("f32", 32), ("i16", 16), ("ui8", 8)])
def test_masked_lanes_are_not_written(elem, bits):
    size = bits // 8
    got = stored(elem, bits=bits, lanes=[0, 3, 5, 256 // size - 1])
    lanes = np.zeros((256 // size, size), bool)
    lanes[[0, 3, 5, -1]] = True
    written = lanes.reshape(-1)
    assert got[:256][written].tolist() == np.arange(256)[written].tolist()
    assert untouched(got, np.flatnonzero(written))


def test_an_empty_mask_writes_nothing():
    assert untouched(stored("f32", lanes=0))


def test_64_bit_elements_look_at_every_eighth_bit():
    got = stored("i64", lanes=[0, 1, 4])  # b32 lanes 0, 1, 4: bits 0, 4, 16; elements 0 and 2
    assert got[:8].tolist() == list(range(8)) and got[16:24].tolist() == list(range(16, 24))
    assert untouched(got, slice(0, 8), slice(16, 24))


@pytest.mark.parametrize("bits, elem", [(8, "ui8"), (16, "i16"), (32, "f32")])
def test_1pt_writes_item_0_whatever_the_mask_says(bits, elem):
    for lanes in (None, 0, [3]):
        got = stored(elem, f"1PT_B{bits}", bits, lanes, offset=5)
        at = 5 * bits // 8
        assert got[at : at + bits // 8].tolist() == list(range(bits // 8))
        assert untouched(got, slice(at, at + bits // 8))


@pytest.mark.parametrize(
    "dist, item, kept, mask",
    [("PK_B16", 2, 1, 16), ("PK_B32", 4, 2, 32), ("PK_B64", 8, 4, 32), ("PK4_B32", 4, 1, 32)],
)
def test_packed_stores_keep_the_low_part_of_each_item(dist, item, kept, mask):
    low = np.arange(256, dtype=np.uint8).reshape(-1, item)[:, :kept].reshape(-1)
    for elem in ("f32", "i16", "ui8"):
        got = stored(elem, dist, mask)
        assert got[: low.size].tolist() == low.tolist()
        assert untouched(got, slice(0, low.size))


def test_packed_stores_leave_masked_items_as_they_were():
    got = stored("f32", "PK_B32", 32, [1, 3])
    assert got[2:4].tolist() == [4, 5] and got[6:8].tolist() == [12, 13]
    assert untouched(got, slice(2, 4), slice(6, 8))


def test_pk_b64_reads_a_b32_mask_in_its_64_bit_view():
    got = stored("f32", "PK_B64", 32, [0, 1, 2, 3, 6])  # bits 0, 4, 8, 12, 24: items 0, 1 and 3
    assert got[:8].tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert got[12:16].tolist() == [24, 25, 26, 27]
    assert untouched(got, slice(0, 8), slice(12, 16))


def test_a_pointer_of_another_type_counts_the_offset():
    got = stored("f16", "PK_B32", 32, offset=64, pointer="f16")
    assert got[128:132].tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize(
    "dist, channels, item, mask",
    [("MRG4CHN_B8", 4, 1, 32), ("MRG2CHN_B8", 2, 1, 16), ("MRG2CHN_B16", 2, 2, 32)],
)
def test_merged_stores_interleave_the_planes_of_each_block(dist, channels, item, mask):
    elem = "ui8" if item == 1 else "i16"
    block = np.arange(32, dtype=np.uint8).view(f"u{item}").reshape(channels, -1)
    want = np.ascontiguousarray(block.T).view(np.uint8).reshape(-1)
    got = stored(elem, dist, mask)
    for b in range(8):
        assert got[32 * b : 32 * b + 32].tolist() == (want + 32 * b).tolist()
    masked = stored(elem, dist, mask, lanes=[1])
    group = channels * item
    assert masked[group : 2 * group].tolist() == want[group : 2 * group].tolist()
    assert untouched(masked, slice(group, 2 * group))


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_vstsx2_interleaves_512_bytes_and_ignores_the_mask(bits):
    bench = Registers()
    live = bench.pointer("p", "f32, ub", np.full(768, OLD, np.uint8).view(np.float32))
    low, high = np.arange(256, dtype=np.uint8), np.arange(255, -1, -1).astype(np.uint8)
    bench.vreg("l", "f32", low.view(np.float32))
    bench.vreg("h", "f32", high.view(np.float32))
    bench.mask("m", 32, 0)
    bench.scalar("at", "index", 16)
    bench.run(
        f'pto.vstsx2 %l, %h, %p[%at], "INTLV_B{bits}", %m : {{l}}, {{h}}, {{p}}, index, {{m}}'
    )
    item = f"u{bits // 8}"
    want = np.stack((low.view(item), high.view(item)), axis=1).reshape(-1).view(np.uint8)
    got = live.view(np.uint8)
    assert got[64:576].tolist() == want.tolist()
    assert untouched(got, slice(64, 576))


def block_store(mask=None, block=2, repeat=4, results=""):
    bench = Registers()
    live = bench.pointer("p", "f32, ub", np.zeros(512))
    bench.vreg("v", "f32", np.arange(1, 65))
    bench.mask("m", 32, mask)
    bench.scalar("b", "i16", block)
    bench.scalar("s", "i16", repeat)
    out = bench.run(
        f"{'%r = ' if results else ''}pto.vsstb %v, %p, %b, %s, %m : {{v}}, {{p}}, i16, i16, {{m}}"
        f"{' -> {p}' if results else ''}",
        results=results,
    )
    return live.reshape(-1, 8), bench.values["p"], out


def test_vsstb_places_blocks_like_vsldb():
    blocks, _, _ = block_store(mask=[0, 1, 7])
    assert blocks[4].tolist() == list(range(1, 9))
    assert blocks[6].tolist() == list(range(9, 17))
    assert blocks[18].tolist() == list(range(57, 65))
    assert not np.delete(blocks, [4, 6, 18], axis=0).any()


def test_vsstb_post_update_starts_at_the_base_and_moves_by_repeat_stride():
    blocks, base, (moved,) = block_store(results="%r : !pto.ptr<f32, ub>")
    assert blocks[0].tolist() == list(range(1, 9)) and blocks[14].tolist() == list(range(57, 65))
    assert moved.address == base.address + 4 * 32


def test_vsts_post_update_stores_at_the_base_and_moves_it_on():
    bench = Registers()
    live = bench.pointer("p", "f32, ub", np.zeros(192))
    bench.vreg("v", "f32", np.arange(1, 65))
    bench.mask("m", 32)
    bench.scalar("at", "index", 64)
    (moved,) = bench.run(
        "%r = pto.vsts %v, %p[%at], %m : {v}, {p}, {m} -> {p}", results="%r : !pto.ptr<f32, ub>"
    )
    assert live[:64].tolist() == list(range(1, 65)) and not live[64:].any()
    assert moved.address == bench.values["p"].address + 256


def scattered(elem, index_elem, index, bits, lanes=None, size=128):
    bench = Registers()
    live = bench.pointer("p", f"{elem}, ub", np.full(size, -1))
    bench.vreg("v", elem, np.arange(128))
    bench.vreg("i", index_elem, index)
    bench.mask("m", bits, lanes)
    bench.run("pto.vscatter %v, %p, %i, %m : {v}, {p}, {i}, {m}")
    return live


def test_scatter_writes_active_lanes_at_their_index():
    index = (np.arange(64) * 37 + 5) % 64
    got = scattered("f32", "i32", index, 32)
    assert [got[i] for i in index] == list(range(64))
    assert (got[64:] == -1).all()
    some = scattered("f32", "ui32", index, 32, [2, 9])
    assert [some[index[2]], some[index[9]]] == [2, 9]
    assert (np.delete(some, [index[2], index[9]]) == -1).all()


def test_scatter_of_bytes_sends_those_of_even_number():
    got = scattered("ui8", "ui16", np.arange(127, -1, -1), 16, range(0, 128, 2))
    even = np.arange(0, 128, 2)
    sent = np.resize(np.arange(128), 256)[2 * even]  # the register repeats its values
    assert [got[127 - i] for i in even] == sent.tolist()


def test_scatter_of_16_bit_values_has_16_bit_indices():
    got = scattered("f16", "ui16", np.arange(127, -1, -1), 16)
    assert got.tolist() == list(range(127, -1, -1))


def test_scatter_outside_the_buffer_writes_nothing():
    index = np.arange(64)
    index[9] = 1 << 24
    with pytest.raises(PtoError, match=r"PTO-M141.*lane 9"):
        scattered("f32", "i32", index, 32)


@pytest.mark.parametrize(
    "token, item, step", [("STRIDE_S3_B16", 2, 3), ("STRIDE_S8_B32", 4, 8), ("STRIDE_S2_B64", 8, 2)]
)
def test_vsst_spreads_items_as_its_token_is_spelled(token, item, step):
    bench = Registers()
    live = bench.pointer("p", "ui8, ub", np.full(4096, OLD))
    bench.vreg("v", "ui8", np.arange(256))
    bench.scalar("at", "index", 0)
    bench.run(f'pto.vsst %v, %p[%at], "{token}" : {{v}}, {{p}}')
    places = np.zeros((live.size // item, item), bool)
    places[: 256 // item * step : step] = True
    written = places.reshape(-1)[: live.size]
    assert live[: written.size][written].tolist() == list(range(256))
    assert (live[: written.size][~written] == OLD).all()


def test_norm_at_a_misaligned_address_on_a5_names_the_unaligned_stores():
    with pytest.raises(PtoError, match=r"PTO-M140.*'pto.vsts' op") as caught:
        stored("f32", offset=3)
    assert "pto.vstus" in str(caught.value.diagnostics[0].help)


def test_a_store_past_the_end_of_ub_is_caught_even_if_masked():
    bench = Registers()
    bench.pointer("p", "f32, ub", np.zeros(8))
    bench.vreg("v", "f32", [1])
    bench.mask("m", 32, 1)
    bench.scalar("at", "index", 256 * 1024 // 4 - 32)
    with pytest.raises(PtoError, match="PTO-M001"):
        bench.run("pto.vsts %v, %p[%at], %m : {v}, {p}, {m}")


def test_mask_images_put_lane_i_at_bit_i_2i_4i():
    assert np.flatnonzero(mask_image(8, 3)).tolist() == [0, 1, 2]
    assert np.flatnonzero(mask_image(16, 3)).tolist() == [0, 2, 4]
    assert np.flatnonzero(mask_image(32, 3)).tolist() == [0, 4, 8]
